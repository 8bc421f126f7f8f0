/** A generation with tools, as a scenario for `Interleavings`: what may happen to it, and everything that must hold afterwards. */
import { Context, Effect, Exit, Fiber, Layer, Schedule, Scope, Stream } from "effect"
import { AiError, type LanguageModel, type Prompt } from "effect/ai"
import {
  Agent,
  AgentRuntime,
  Checkpointer,
  ContextStore,
  type Event,
  type Ids,
  Input,
  type Receipt,
  ResumeCondition,
  SessionStore,
  type Session,
  ToolPolicy,
  ToolScope
} from "../../src/index.ts"
import { Interleavings, ScriptedModel } from "../../src/testing/index.ts"
import { inputId, toolkit } from "./harness.ts"
import * as Truth from "./truth.ts"

interface Fixture {
  readonly began: Array<string>
  readonly slow: boolean
  running: number
  /** The most handlers that ran at once. */
  peak: number
  onTool: (count: number) => void
}
const Fixture = Context.Reference<Fixture>("test/Fixture", {
  defaultValue: () => ({ began: [], slow: false, running: 0, peak: 0, onTool: () => {} })
})

const quick = Effect.andThen(Effect.void, Effect.void)
const slow = Effect.andThen(Effect.yieldNow, quick)

const handle =
  (name: string) => (params: { readonly path: string }, call: { readonly toolCallId?: string | undefined }) =>
    Effect.flatMap(Fixture, (fixture) =>
      // Counted in the step that also sees to its being counted down.
      Effect.uninterruptibleMask((restore) => {
        fixture.began.push(call.toolCallId ?? name)
        fixture.running++
        fixture.peak = Math.max(fixture.peak, fixture.running)
        const done = Effect.sync(() => void fixture.running--)
        const work = Effect.andThen(
          Effect.sync(() => fixture.onTool(fixture.began.length)),
          Effect.as(fixture.slow ? slow : quick, `${name} ${params.path}`)
        )
        return Effect.onExit(restore(work), () => done)
      })
    )

const handlers = toolkit.toLayer({ look: handle("look"), edit: handle("edit"), send: handle("send") })

export type Action =
  | "steer"
  | "narrow"
  | "remark"
  | "ordinary"
  | "followUp"
  | "collect"
  | "prompt"
  | "cancel"
  | "cancelAll"
  | "stop"
  | "pause"
  | "pauseEdit"
  | "resume"
  | "allow"
  | "deny"
  | "promote"
  | "withdraw"
  | "close"
  | "reader"
  | "listener"

export interface Shape {
  readonly name: string
  /** The session is kept in a store whose writes take several steps. */
  readonly kept?: boolean
  readonly actions: ReadonlyArray<Action>
  /** The tools of each response before the answer. Default: twice `look` and `edit`. */
  readonly responses?: ReadonlyArray<ReadonlyArray<string>>
  readonly concurrency?: number
  /** Handlers take a turn of their own. */
  readonly slow?: boolean
  /** Steers submitted from inside the `when`th tool call, the second unless said. */
  readonly pending?: number
  readonly when?: number
  /** Follow-ups submitted right after the prompt. */
  readonly queued?: number
  /** A context of the host's whose writes take several steps: those before they land, or those after. */
  readonly store?: { readonly lands: "late" | "early"; readonly tells: boolean }
  /** Calls of this tool wait for a decision. */
  readonly asks?: string
  /** So many requests fail, in a way that may pass, before the first is answered. */
  readonly failing?: number
  /** The host's checkpoint takes several steps. */
  readonly checkpoint?: boolean
}

/** Messages kept outside the journal; each write takes a while and can be interrupted on the way. */
const slowStore = (lands: "late" | "early", tells: boolean): ContextStore.Service => {
  const messages: Array<Prompt.Message> = []
  const busy = Effect.andThen(Effect.void, Effect.andThen(Effect.yieldNow, Effect.void))
  const write = (added: ReadonlyArray<Prompt.Message>) => Effect.sync(() => void messages.push(...added))
  return {
    append: (added) => (lands === "late" ? Effect.andThen(busy, write(added)) : Effect.andThen(write(added), busy)),
    messages: Effect.sync(() => [...messages]),
    has: (id) =>
      Effect.sync(() => {
        if (!tells) return "cannot-tell"
        return messages.some((message) => Input.idOfMessage(message) === id) ? "present" : "absent"
      })
  }
}

const both = ["look", "edit"]
const passing = new AiError.InternalProviderError({ description: "a passing fault" })

/** The script of a shape: its failures, its responses, then answers. */
const script =
  ({ failing = 0, responses = [both, both] }: Shape) =>
  (request: ScriptedModel.Request): ScriptedModel.Step => {
    if (request.index <= failing) return ScriptedModel.fail(passing)
    const calls = responses[request.prompt.filter((message) => message.role === "tool").length]
    if (calls === undefined) return ScriptedModel.text("done")
    return ScriptedModel.calls(calls.map((name, index) => ({ name, params: { path: `${request.index}.${index}` } })))
  }

export interface Rest {
  readonly told: Truth.Told
  readonly outcome: string
}

export type Needs = AgentRuntime.AgentRuntime | Layer.Success<typeof handlers> | LanguageModel.LanguageModel

/** Controls that were accepted, for the outcomes they promise. */
type Controls = Array<Truth.Control>

const scenario = (
  shape: Shape,
  model: ScriptedModel.ScriptedModel["Service"],
  show: (rest: Rest) => void = () => {}
): Interleavings.Scenario<Rest, never, Needs> => {
  const agent = Agent.make({
    name: "fixture",
    instructions: "",
    toolkit,
    tools: shape.concurrency === undefined ? "sequential" : { concurrency: shape.concurrency },
    retry: Schedule.spaced("1 second").pipe(Schedule.upTo({ times: 2 }))
  })
  const policy: ToolPolicy.Service = ({ name }) =>
    Effect.succeed(name === shape.asks ? ToolPolicy.ask("may it?") : ToolPolicy.allow)
  // A pause or a question would hold the session for ever; time moves when nothing else can.
  const waits = shape.asks !== undefined || shape.actions.some((action) => action.startsWith("pause"))
  return {
    name: shape.name,
    arm: "manual",
    setup: (probe) => {
      model.reset()
      const given: Array<Receipt.Receipt> = []
      const controls: Controls = []
      const readers: Array<Array<number>> = []
      const fixture: Fixture = { began: [], slow: shape.slow === true, running: 0, peak: 0, onTool: () => {} }
      let session: Session.Session | undefined
      let generation: Ids.GenerationId | undefined
      let count = 0
      const give = (submitted: Effect.Effect<Receipt.Receipt>) =>
        Effect.map(submitted, (receipt) => void given.push(receipt))
      const live = <A>(use: (session: Session.Session, id: Ids.GenerationId) => Effect.Effect<A>) =>
        Effect.suspend((): Effect.Effect<A | void> =>
          session === undefined || generation === undefined ? Effect.void : use(session, generation)
        )
      const steer = (options: Input.Options = {}) =>
        live((open, id) => {
          const input = Input.steer("left", { id: `s${++count}`, ...options })
          return give(open.capability("live.steering").submit(input, id))
        })
      const submit = (make: (id: string) => Input.Input) => live((open) => give(open.submit(make(`i${++count}`))))
      const end = (how: "cancel" | "stop", options: Session.ControlOptions = {}) =>
        live((open, id) =>
          Effect.map(open[how](id, options), ({ accepted }) => {
            if (accepted) controls.push({ how, generationId: id })
          })
        )
      const read = (each: (event: Event.SessionEvent) => Effect.Effect<unknown>) =>
        live((open) =>
          Effect.forkDetach(Effect.ignore(Stream.runForEach(open.events(), each)), { startImmediately: true })
        )
      const decide = (allow: boolean) =>
        live((open) =>
          Effect.flatMap(asking(open), (calls) =>
            Effect.forEach(calls, (call) =>
              open.decide(call, allow ? { _tag: "Allow" } : { _tag: "Deny", reason: "not now" })
            )
          )
        )
      const ofQueue = (
        use: (open: Session.Session, id: Ids.InputId, live: Ids.GenerationId) => Effect.Effect<unknown>
      ) =>
        live((open, id) =>
          Effect.flatMap(open.status, ({ queuedInputIds: [head] }) =>
            head === undefined ? Effect.void : use(open, head, id)
          )
        )
      const every: Record<Action, () => Effect.Effect<unknown>> = {
        steer,
        narrow: () => steer({ scope: ToolScope.tools("edit") }),
        remark: () => steer({ scope: ToolScope.none }),
        cancel: () => end("cancel"),
        cancelAll: () => end("cancel", { followUps: "hold" }),
        stop: () => end("stop"),
        ordinary: () => submit((id) => Input.steer("plain", { id })),
        followUp: () => submit((id) => Input.followUp("later", { id })),
        collect: () => submit((id) => Input.collect("some time", { id })),
        prompt: () => submit((id) => Input.prompt("another", { id })),
        pause: () => live((open) => open.pause()),
        pauseEdit: () =>
          live((open) => open.pause({ scope: ToolScope.tools("edit"), until: ResumeCondition.signal("go") })),
        resume: () => live((open) => Effect.andThen(open.resume(), open.resume("go"))),
        allow: () => decide(true),
        deny: () => decide(false),
        promote: () => ofQueue((open, head, id) => give(open.promote(head, id, inputId(`r${++count}`)))),
        withdraw: () => ofQueue((open, head) => open.withdraw(head)),
        close: () => Scope.close(scope, Exit.void),
        reader: () => {
          const got: Array<number> = []
          readers.push(got)
          return read((event) =>
            Effect.sync(() => {
              if (event.live === undefined) got.push(event.sequence)
            })
          )
        },
        // From inside its handler a listener steers when a request starts, but not for ever.
        listener: () => read((event) => (event.type === "request.started" && event.request < 3 ? steer() : Effect.void))
      }
      const scope = Scope.makeUnsafe()
      fixture.onTool = (n) => {
        if (n !== (shape.when ?? 2)) return
        for (let i = 0; i < (shape.pending ?? 0); i++) Effect.runSync(steer())
      }
      const main = Effect.gen(function* () {
        const runtime = yield* AgentRuntime.AgentRuntime
        const store = shape.store && slowStore(shape.store.lands, shape.store.tells)
        const opening = runtime
          .open(agent)
          .pipe(
            Effect.orDie,
            Effect.provideService(Scope.Scope, scope),
            Effect.provideService(ContextStore.ContextStore, store)
          )
        const asked = shape.asks === undefined ? opening : Effect.provideService(opening, ToolPolicy.ToolPolicy, policy)
        const open =
          shape.checkpoint === true
            ? yield* Effect.provideService(asked, Checkpointer.Checkpointer, () => slow)
            : yield* asked
        session = open
        const prompt = yield* open.submit(Input.prompt("go", { id: "p" }))
        given.push(prompt)
        if (!prompt.accepted || prompt.generationId === null) return yield* Effect.die("not started")
        generation = prompt.generationId
        for (let i = 0; i < (shape.queued ?? 0); i++) yield* every.followUp()
        const host = waits ? yield* Effect.forkDetach(unblock(open)) : undefined
        probe.arm()
        const report = yield* Effect.orDie(open.await(generation))
        // What was injected while this fiber was being woken may have started another generation.
        while (true) {
          yield* Effect.ignore(open.awaitIdle)
          const { closed, generation: busy, pauses, queuedInputIds } = yield* open.status
          if (closed || (busy === null && (queuedInputIds.length === 0 || pauses.length === 0))) {
            if (closed || queuedInputIds.length === 0) {
              probe.disarm()
              break
            }
          }
          if (waits) yield* Effect.sleep("1 second")
        }
        if (host !== undefined) yield* Fiber.interrupt(host)
        // A session that is closing tells of its end when its events end.
        if ((yield* open.status).closed) yield* Effect.orDie(Stream.runDrain(open.events()))
        const told = yield* Truth.told(open, given)
        const dispositions = told.receipts.map((receipt) => receipt.disposition[0]).join("")
        const tools = report.tools.map((call) => call.status._tag[0]).join("")
        yield* Scope.close(scope, Exit.void)
        return { told, outcome: `${report.outcome} ${dispositions}${shape.actions.length > 1 ? ` ${tools}` : ""}` }
      }).pipe(Effect.provideService(Fixture, fixture))
      return {
        main,
        actions: Object.fromEntries(shape.actions.map((action) => [action, every[action]])),
        check: (exit) => {
          if (Exit.isFailure(exit)) return ["the session did not come to rest"]
          const { told } = exit.value
          show(exit.value)
          const lies = [
            ...Truth.lies(told, agent.maxRequests),
            ...Truth.toolLies(told, fixture.began),
            ...Truth.controlLies(told, controls),
            ...Truth.pauseLies(told),
            ...Truth.requestLies(told),
            ...model.violations.map((violation) => `L-P3 ${violation}`)
          ]
          if (fixture.running > 0) lies.push(`L-E4 ${fixture.running} handlers run after the end`)
          if (fixture.peak > (shape.concurrency ?? 1)) lies.push(`L-T4 ${fixture.peak} handlers ran at once`)
          for (const got of readers) {
            const last = told.events.length
            if (got.slice(0, last).some((sequence, index) => sequence !== index + 1) || got.length < last) {
              lies.push(`L-V2 a reader got ${got.length} of ${last}`)
            }
          }
          return lies
        },
        outcome: (exit) => (Exit.isSuccess(exit) ? exit.value.outcome : "none"),
        stateKey: () => {
          if (session === undefined) return ""
          const { generation: now, sequence } = Effect.runSync(session.status)
          return `${sequence} ${now?.phase._tag} ${now?.pendingInputIds.length}`
        }
      }
    }
  }
}

/** The calls that wait for a decision, as the events say. */
const asking = (open: Session.Session): Effect.Effect<ReadonlyArray<Ids.ToolCallId>> =>
  Effect.map(Truth.told(open, []), ({ events }) => {
    const calls = new Set<Ids.ToolCallId>()
    for (const event of events) {
      if (event.type === "tool.approval_requested") calls.add(event.call_id)
      else if (Truth.isToolEnd(event) || event.type === "tool.started") calls.delete(event.call_id)
    }
    return [...calls]
  })

/** Ends every pause and answers every question, whenever nothing else can happen. */
const unblock = (open: Session.Session): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!(yield* open.status).closed) {
      yield* Effect.sleep("1 minute")
      yield* open.resume()
      yield* open.resume("go")
      for (const call of yield* asking(open)) yield* open.decide(call, { _tag: "Allow" })
    }
  })

/** A store that is empty for every schedule, and between whose writes others may run. */
const keeping = Layer.effect(
  SessionStore.SessionStore,
  Effect.map(SessionStore.SessionStore, (store) => ({
    ...store,
    claim: (id: Ids.SessionId, agent: string) => Effect.andThen(store.forget(id), store.claim(id, agent)),
    append: (commit: SessionStore.Append) =>
      Effect.andThen(Effect.yieldNow, Effect.andThen(store.append(commit), Effect.yieldNow))
  }))
).pipe(Layer.provide(SessionStore.layerMemory))

const runtimeOf = (shape: Shape): Layer.Layer<AgentRuntime.AgentRuntime> =>
  shape.kept === true ? Layer.provide(AgentRuntime.layer, keeping) : AgentRuntime.layerMemory

/** Explores a shape; the result's own report says how many schedules and from which seed. */
export const explore = (shape: Shape, options: Interleavings.Options): Effect.Effect<Interleavings.Result> =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script(shape), { direct: true })
    return yield* Interleavings.explore(scenario(shape, model), options).pipe(
      Effect.provide([runtimeOf(shape), handlers, model.layer])
    )
  })

/** Runs one schedule of a shape again, and shows the session as it came to rest. */
export const replay = (shape: Shape, json: string, show: (rest: Rest) => void): Effect.Effect<Interleavings.Replayed> =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script(shape), { direct: true })
    return yield* Interleavings.replay(scenario(shape, model, show), json).pipe(
      Effect.provide([runtimeOf(shape), handlers, model.layer])
    )
  })
