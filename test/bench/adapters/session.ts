/** Midcourse through its public face: a session, a prompt and a report a generation, and subscribers that drain its events. */
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { Agent, AgentRuntime, type Event, type Ids, Input, Limits, type Session } from "../../../src/index.ts"
import type { Adapter, Outcome, Running, Work } from "../adapter.ts"
import { idle } from "../measure.ts"
import { ended } from "./fibers.ts"
import { Current, drive, type Driven, layer, type Provider, toolkit } from "./provider.ts"

const agent = Agent.make({ name: "bench", instructions: "", toolkit, maxRequests: 1_000_000 })

export type Services = Layer.Success<ReturnType<typeof layer>> | AgentRuntime.AgentRuntime

/** Everything that does not change from one generation to the next. */
export const services = <E>(
  provider: Provider,
  runtime: Layer.Layer<AgentRuntime.AgentRuntime, E>
): Effect.Effect<Context.Context<Services>, E, Scope.Scope> =>
  Layer.build(
    Layer.mergeAll(layer(provider), runtime, Limits.layer({ identities: 1_000_000, pendingSteering: 1_000_000 }))
  )

/** Calls `onDelta` with the deltas among the events, and looks at the others only to see that they are none. */
const watch = (events: ReadonlyArray<Event.SessionEvent>, { onDelta }: Work): void => {
  for (const event of events) if (event.type === "text.delta" && onDelta !== undefined) onDelta(event.text)
}

const outcomes = {
  finished: "done",
  cancelled: "cancelled",
  failed: "failed: failed",
  stopped: "failed: stopped",
  exhausted: "failed: exhausted"
} as const

/** What a host holds of a generation it has started. */
interface Started {
  readonly session: Session.Session
  readonly generation: Ids.GenerationId
  readonly submit: (text: string) => Effect.Effect<void>
}

/** One generation in a session of its own. */
export const generation = (driven: Driven, onStart: (started: Started) => void = () => {}) =>
  Effect.gen(function* () {
    const { work } = driven
    const runtime = yield* AgentRuntime.AgentRuntime
    const scope = yield* Scope.Scope
    const session = yield* runtime.open(agent)
    for (let subscriber = 0; subscriber < (work.subscribers ?? 1); subscriber++) {
      const drained = Stream.runForEachArray(session.events(), (events) => Effect.sync(() => watch(events, work)))
      yield* Effect.forkIn(Effect.ignore(drained), scope, { startImmediately: true })
    }
    const receipt = yield* session.submit(Input.prompt("hi"))
    if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
    const generation = receipt.generationId
    const live = session.capability("live.steering")
    driven.steer = (text) =>
      Effect.flatMap(live.submit(Input.steer(text), generation), (receipt) =>
        receipt.accepted ? Effect.void : Effect.die(`refused: ${receipt.reason}`)
      )
    onStart({ session, generation, submit: driven.steer })
    const report = yield* session.await(generation)
    return outcomes[report.outcome] satisfies Outcome
  })

/** Whether a receipt comes in the step that asks for it: without a store it does. */
export type Receipts = "at once" | "in time"

export const adapter = (context: Context.Context<Services>, receipts: Receipts): Adapter => ({
  start: (work): Running => {
    const driven = drive(work)
    const scope = Scope.makeUnsafe()
    const own = Context.add(Context.add(context, Current, driven), Scope.Scope, scope)
    let started: Started | undefined
    const running = (): Started => {
      if (started === undefined) throw new Error("not started yet")
      return started
    }
    const host = Effect.orDie(generation(driven, (it) => (started = it)))
    const done = ended(Effect.runForkWith(own)(host))
    // The host has its answer first: closing the session is no part of how long the generation took to end.
    const settled = done.then(idle).then(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const run = receipts === "at once" ? Effect.runSync : Effect.runPromise
    return {
      done,
      settled,
      steer: (text) => run(running().submit(text)),
      steerAll: (texts) => {
        const { submit } = running()
        return Effect.runPromise(
          Effect.gen(function* () {
            for (const text of texts) yield* submit(text)
          })
        )
      },
      cancel: () => {
        const { generation, session } = running()
        Effect.runFork(session.cancel(generation))
      }
    }
  }
})

/** In memory, over a provider of either kind. */
export const inMemory = async (provider: Provider): Promise<Adapter> =>
  adapter(await Effect.runPromise(Effect.scoped(services(provider, AgentRuntime.layerMemory))), "at once")
