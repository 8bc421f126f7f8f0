import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, type Layer, Scope, Stream } from "effect"
import type { LanguageModel, Prompt } from "effect/ai"
import { Agent, AgentRuntime, ContextStore, Input, type Ids, type Receipt, type Session } from "../../src/index.ts"
import { Interleavings, ScriptedModel } from "../../src/testing/index.ts"
import { toolkit } from "../support/harness.ts"
import * as Truth from "../support/truth.ts"

interface Fixture {
  readonly began: Array<string>
  onTool: (name: string, count: number) => void
}
const Fixture = Context.Reference<Fixture>("test/Fixture", {
  defaultValue: () => ({ began: [], onTool: () => {} })
})

const handle =
  (name: string) => (params: { readonly path: string }, call: { readonly toolCallId?: string | undefined }) =>
    Effect.flatMap(Fixture, (fixture) =>
      Effect.andThen(
        Effect.sync(() => {
          fixture.began.push(call.toolCallId ?? name)
          fixture.onTool(name, fixture.began.length)
        }),
        Effect.as(Effect.andThen(Effect.void, Effect.void), `${name} ${params.path}`)
      )
    )

const handlers = toolkit.toLayer({ look: handle("look"), edit: handle("edit"), send: handle("send") })
const two = (n: number) =>
  ScriptedModel.calls([
    { name: "look", params: { path: `a${n}` } },
    { name: "edit", params: { path: `b${n}` } }
  ])
const answer = (request: ScriptedModel.Request): ScriptedModel.Step => {
  const results = request.prompt.filter((message) => message.role === "tool").length
  return results < 2 ? two(request.index) : ScriptedModel.text("done")
}

type Action = "steer" | "cancel" | "stop" | "ordinary" | "followUp" | "close" | "reader"

interface Shape {
  readonly name: string
  readonly actions: ReadonlyArray<Action>
  /** Steers submitted from inside the second tool call. */
  readonly pending?: number
  /** A context of the host's whose writes take several steps: those before they land, or those after. */
  readonly store?: { readonly lands: "late" | "early"; readonly tells: boolean }
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

interface Rest {
  readonly told: Truth.Told
  readonly outcome: string
}

type Needs = AgentRuntime.AgentRuntime | Layer.Success<typeof handlers> | LanguageModel.LanguageModel

const scenario = (
  shape: Shape,
  model: ScriptedModel.ScriptedModel["Service"]
): Interleavings.Scenario<Rest, never, Needs> => {
  const agent = Agent.make({ name: "fixture", instructions: "", toolkit })
  return {
    name: shape.name,
    arm: "manual",
    setup: (probe) => {
      model.reset()
      const given: Array<Receipt.Receipt> = []
      const readers: Array<Array<number>> = []
      const fixture: Fixture = { began: [], onTool: () => {} }
      let session: Session.Session | undefined
      let generation: Ids.GenerationId | undefined
      let count = 0
      const give = (submitted: Effect.Effect<Receipt.Receipt>) =>
        Effect.map(submitted, (receipt) => void given.push(receipt))
      const live = <A>(use: (session: Session.Session, id: Ids.GenerationId) => Effect.Effect<A>) =>
        session === undefined || generation === undefined ? Effect.void : use(session, generation)
      const steer = () =>
        live((open, id) => {
          const input = Input.steer("left", { id: `s${++count}` })
          return give(open.capability("live.steering").submit(input, id))
        })
      const every: Record<Action, () => Effect.Effect<unknown>> = {
        steer,
        cancel: () => live((open, id) => open.cancel(id)),
        stop: () => live((open, id) => open.stop(id)),
        ordinary: () => live((open) => give(open.submit(Input.steer("plain", { id: `o${++count}` })))),
        followUp: () => live((open) => give(open.submit(Input.followUp("later", { id: `f${++count}` })))),
        close: () => Scope.close(scope, Exit.void),
        reader: () =>
          live((open) => {
            const got: Array<number> = []
            readers.push(got)
            const read = Stream.runForEach(open.events(), (event) =>
              Effect.sync(() => {
                if (event.live === undefined) got.push(event.sequence)
              })
            )
            return Effect.forkDetach(Effect.ignore(read), { startImmediately: true })
          })
      }
      const scope = Scope.makeUnsafe()
      const main = Effect.gen(function* () {
        const runtime = yield* AgentRuntime.AgentRuntime
        const store = shape.store && slowStore(shape.store.lands, shape.store.tells)
        const open = yield* runtime
          .open(agent)
          .pipe(
            Effect.orDie,
            Effect.provideService(Scope.Scope, scope),
            Effect.provideService(ContextStore.ContextStore, store)
          )
        session = open
        const prompt = yield* open.submit(Input.prompt("go", { id: "p" }))
        given.push(prompt)
        if (!prompt.accepted || prompt.generationId === null) return yield* Effect.die("not started")
        generation = prompt.generationId
        fixture.onTool = (_, n) => {
          if (n !== 2) return
          for (let i = 0; i < (shape.pending ?? 0); i++) Effect.runSync(steer())
        }
        probe.arm()
        const report = yield* Effect.orDie(open.await(generation))
        // What was injected while this fiber was being woken may have started another generation.
        while (true) {
          yield* Effect.ignore(open.awaitIdle)
          const { closed, generation: busy, queuedInputIds } = yield* open.status
          if (closed || (busy === null && queuedInputIds.length === 0)) {
            probe.disarm()
            break
          }
        }
        // A session that is closing tells of its end when its events end.
        if ((yield* open.status).closed) yield* Effect.orDie(Stream.runDrain(open.events()))
        const told = yield* Truth.told(open, given)
        const dispositions = told.receipts.map((receipt) => receipt.disposition[0]).join("")
        yield* Scope.close(scope, Exit.void)
        return { told, outcome: `${report.outcome} ${dispositions}` }
      }).pipe(Effect.provideService(Fixture, fixture))
      return {
        main,
        actions: Object.fromEntries(shape.actions.map((action) => [action, every[action]])),
        check: (exit) => {
          if (Exit.isFailure(exit)) return ["the session did not come to rest"]
          const { told } = exit.value
          const lies = [...Truth.lies(told), ...Truth.toolLies(told, fixture.began)]
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

const explore = (shape: Shape, options: Interleavings.Options) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(answer, { direct: true })
    const result = yield* Interleavings.explore(scenario(shape, model), options).pipe(
      Effect.provide([AgentRuntime.layerMemory, handlers, model.layer])
    )
    yield* Effect.sync(() => process.stdout.write(`${Interleavings.report(result)}\n`))
    assert.isUndefined(result.violation, Interleavings.report(result))
    assert.isAbove(Object.keys(result.outcomes).length, 1, "the schedules must differ in what comes of them")
    return result
  })

describe("interruption at every scheduling point", () => {
  const few = { preemptions: 1, random: 300 } as const
  it.live(
    "L-B2 L-D6 L-E4 three pending steers and a cancel",
    () => explore({ name: "cancel", actions: ["cancel"], pending: 3 }, few),
    120_000
  )
  for (const store of [
    { lands: "late", tells: true },
    { lands: "early", tells: true },
    { lands: "late", tells: false },
    { lands: "early", tells: false }
  ] as const) {
    const name = `${store.lands} landing, ${store.tells ? "telling" : "not telling"}`
    it.live(
      `L-B3 L-D4 three pending steers, a context of the host's own (${name}) and a cancel`,
      () => explore({ name, actions: ["cancel"], pending: 3, store }, few),
      120_000
    )
  }
  it.live(
    "L-C5 L-E3 three pending steers and a stop",
    () => explore({ name: "stop", actions: ["stop"], pending: 3 }, few),
    120_000
  )
  it.live("L-E1 L-E2 a steer", () => explore({ name: "steer", actions: ["steer"], pending: 1 }, few), 120_000)
  it.live("L-F5 an ordinary steer", () => explore({ name: "ordinary", actions: ["ordinary"] }, few), 120_000)
  it.live(
    "L-F2 L-F6 a follow-up",
    () => explore({ name: "follow-up", actions: ["followUp"], pending: 1 }, few),
    120_000
  )
  it.live(
    "L-C7 the session's scope closes",
    () => explore({ name: "close", actions: ["close"], pending: 2 }, few),
    120_000
  )
  it.live(
    "L-V2 a reader joins",
    () => explore({ name: "reader", actions: ["reader", "steer"], pending: 1 }, few),
    120_000
  )
  it.live(
    "L-D6 everything at once",
    () =>
      explore(
        { name: "all", actions: ["steer", "cancel", "stop", "ordinary", "followUp", "close", "reader"], pending: 1 },
        { preemptions: 2, random: 3000, pairs: 1000 }
      ),
    240_000
  )
})
