/** Runs generated sequences through engine and reference, and gives the first disagreement as a minimal replay. */
import { Context, Deferred, Duration, Effect, Layer, Random, Schedule } from "effect"
import {
  Agent,
  AgentRuntime,
  ContextStore,
  Limits,
  type Session,
  ToolPolicy,
  ToolReconciler,
  Uncancellable
} from "../../src/index.ts"
import { generator } from "../../src/testing/internal/schedule.ts"
import * as Truth from "../support/truth.ts"
import { type Command, describe, grace, retries, retryDelay, type Sequence } from "./Command.ts"
import { reported, stands, told } from "./Compare.ts"
import { Drive } from "./Drive.ts"
import {
  handlers,
  makeProvider,
  makeStore,
  policy,
  type Provider,
  reconciler,
  Running,
  stepOf,
  type Store,
  toolkit
} from "./Fixture.ts"
import { generate, shrink } from "./Generate.ts"
import { make, type Model } from "./Reference.ts"
import { requesting, running, step } from "./Step.ts"

export interface Disagreement {
  /** Which command it follows; past the last for what is found at the end. */
  readonly at: number
  readonly wrong: ReadonlyArray<string>
}

/** Another face over the same session: a fault to be found. */
export type Wrap = (session: Session.Session) => Session.Session

export interface Bench {
  readonly run: (sequence: Sequence, wrap?: Wrap) => Disagreement | undefined
  /** Commands run so far, by kind and by what came of them. */
  readonly counts: Map<string, number>
}

export const makeBench: Effect.Effect<Bench> = Effect.gen(function* () {
  const provider = yield* makeProvider
  const services = yield* Effect.scoped(Layer.build(Layer.mergeAll(provider.layer, handlers, AgentRuntime.layerMemory)))
  const defaults = yield* Limits.Limits
  const counts = new Map<string, number>()
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
  return {
    counts,
    run: (sequence, wrap = (session) => session) => runOne(provider, services, defaults, sequence, wrap, count)
  }
})

type Services = Layer.Success<typeof handlers> | AgentRuntime.AgentRuntime | Layer.Success<Provider["layer"]>

const runOne = (
  provider: Provider,
  services: Context.Context<Services>,
  defaults: Limits.Limits,
  { commands, setting }: Sequence,
  wrap: Wrap,
  count: (what: string) => void
): Disagreement | undefined => {
  provider.reset()
  const fixture: Running = { began: [], gates: new Map() }
  const agent = Agent.make({
    name: "reference",
    instructions: "",
    toolkit,
    tools: setting.concurrency === 1 ? "sequential" : { concurrency: setting.concurrency },
    onCorrection: setting.onCorrection,
    maxRequests: setting.maxRequests,
    steering: setting.steering,
    retry: Schedule.spaced(Duration.millis(retryDelay)).pipe(Schedule.upTo({ times: retries }))
  })
  const limits = {
    ...defaults,
    identities: setting.identities,
    pendingSteering: setting.pendingSteering,
    queued: setting.queued,
    pauses: setting.pauses,
    collectDebounce: Duration.millis(setting.collectDebounce),
    collectCap: setting.collectCap
  }
  const store = setting.store === "journal" ? undefined : makeStore(setting.store === "tells")
  const draw = generator(1)
  const context = services.pipe(
    Context.add(Running, fixture),
    Context.add(ContextStore.ContextStore, store?.service),
    Context.add(ToolPolicy.ToolPolicy, policy),
    Context.add(ToolReconciler.ToolReconciler, reconciler),
    Context.add(Limits.Limits, limits),
    Context.add(Uncancellable.GraceTime, Duration.millis(grace)),
    Context.add(Random.Random, { nextDoubleUnsafe: draw, nextIntUnsafe: () => Math.floor(draw() * 2 ** 31) })
  )
  const open = Effect.flatMap(AgentRuntime.AgentRuntime, (runtime) => Effect.orDie(runtime.open(agent)))
  let model = make(setting)
  let at = 0
  let drive: Drive | undefined
  const opened = (): Drive => (drive ??= new Drive(Effect.provideContext(open, context), Context.empty(), wrap))
  try {
    const all: ReadonlyArray<Command> = [...commands, { do: "close" }]
    for (; at < all.length; at++) {
      const command = all[at]
      if (command === undefined) continue
      count(command.do)
      const before = model
      const wrong = together(opened(), { provider, fixture, store }, before, command)
      model = wrong.model
      if (wrong.found.length > 0) return { at, wrong: wrong.found }
    }
    const end = opened()
    const truth = end.do(Truth.told(end.session, end.given))
    const lies = [
      ...Truth.lies(truth, setting.maxRequests),
      ...Truth.toolLies(truth, fixture.began),
      ...provider.scripted.violations
    ]
    for (const gen of model.gens) if (gen.ended !== undefined) count(`generation ${gen.ended}`)
    for (const { status } of model.known.values()) {
      count(`input ${status.tag}${status.tag === "Held" ? ` ${status.reason}` : ""}`)
    }
    for (const call of model.gens.flatMap((gen) => gen.calls)) count(`call ${call.status.split(" ", 2).join(" ")}`)
    return lies.length > 0 ? { at, wrong: lies } : undefined
  } catch (error) {
    return { at, wrong: [String(error)] }
  } finally {
    if (drive !== undefined && !model.closed) {
      try {
        drive.perform({ do: "close" }, () => {})
      } catch {
        // What is wrong has been said.
      }
    }
  }
}

interface Outside {
  readonly provider: Provider
  readonly fixture: Running
  readonly store: Store | undefined
}

/** One command of both. */
const together = (
  drive: Drive,
  { fixture, provider, store }: Outside,
  before: Model,
  command: Command
): { readonly model: Model; readonly found: ReadonlyArray<string> } => {
  const found: Array<string> = []
  const answered = drive.perform(command, () => {
    if (command.do === "answer" && requesting(before)) {
      const prefix = `c${before.live?.n}.${before.live?.requests}`
      if (!provider.answer(stepOf(command.with, prefix))) found.push("no request is under way")
    }
    if (command.do === "jam") store?.jam()
    if (command.do === "write" && before.live?.phase.tag === "Writing" && store?.end(command.how) !== true) {
      found.push("no write hangs")
    }
    if (command.do === "tool") {
      const call = running(before, command.at)
      const gate = call && fixture.gates.get(call.providerId)
      if (gate !== undefined) Deferred.doneUnsafe(gate, Effect.succeed(command.how))
      else if (call !== undefined) found.push(`call ${call.key} does not run`)
    }
  })
  const [listened, ...more] = drive.listened
  const seen = {
    calls: new Map([...drive.calls.values()].map((call) => [call.key, call.status])),
    effective: drive.pauses(),
    accepted: answered?.accepted === true,
    requests: drive.requests()
  }
  const stepped = step(before, command, seen, { ...seen, accepted: listened?.accepted === true })
  const { model } = stepped
  found.push(...told(drive, before, stepped.expected, answered))
  if ((stepped.listened === undefined) !== (drive.listened.length === 0) || more.length > 0) {
    found.push(
      `a listener ran ${drive.listened.length} times, which should have run ${stepped.listened ? "once" : "not"}`
    )
  } else if (stepped.listened !== undefined) {
    found.push(...told(drive, model, stepped.listened, listened).map((each) => `inside the listener: ${each}`))
  }
  found.push(...stands(drive, model))
  for (const gen of model.gens) {
    if (gen.ended !== undefined && before.gens[gen.n - 1]?.ended === undefined)
      found.push(...reported(drive, model, gen.n))
  }
  return { model, found }
}

/** A disagreement in words, with what is needed to run it again. */
export const report = (seed: number, sequence: Sequence, { at, wrong }: Disagreement): string =>
  [
    `seed ${seed} disagrees after command ${at + 1} of ${sequence.commands.length}`,
    ...sequence.commands.map((command, index) => `  ${index + 1}. ${describe(command)}`),
    ...wrong.map((each) => `  > ${each}`),
    `  replay ${JSON.stringify(sequence)}`
  ].join("\n")

export interface Found {
  readonly seed: number
  readonly sequence: Sequence
  readonly disagreement: Disagreement
}

/** The first seed from `from` on whose sequence disagrees, shrunk. */
export const search = (bench: Bench, from: number, count: number, wrap?: Wrap): Found | undefined => {
  for (let seed = from; seed < from + count; seed++) {
    const sequence = generate(seed)
    if (bench.run(sequence, wrap) === undefined) continue
    const minimal = shrink(sequence, (shorter) => bench.run(shorter, wrap) !== undefined)
    const disagreement = bench.run(minimal, wrap)
    if (disagreement !== undefined) return { seed, sequence: minimal, disagreement }
  }
  return undefined
}
