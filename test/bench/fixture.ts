/** Generations as Effects, for figures that compare two ways inside one process. */
import { type Context, Effect, Exit, Scope } from "effect"
import { AgentRuntime } from "../../src/index.ts"
import type { Outcome } from "./adapter.ts"
import { loop } from "./adapters/loop.ts"
import * as Midcourse from "./adapters/midcourse.ts"
import { Current, drive, type Driven } from "./adapters/provider.ts"
import { cpuTime } from "./measure.ts"

export { toolkit } from "./adapters/provider.ts"
export { median } from "./measure.ts"

/** Everything that does not change from one generation to the next, over a provider of `LanguageModel.make`. */
export const services: Effect.Effect<Context.Context<Midcourse.Services>> = Effect.scoped(
  Midcourse.services("made", AgentRuntime.layerMemory)
)

/** Runs what asks for so many calls of the tool and then answers. */
const driven = <E, R>(
  steps: number,
  subscribers: number,
  run: (driven: Driven) => Effect.Effect<Outcome, E, R>
): Effect.Effect<Outcome, E, R> =>
  Effect.suspend(() => {
    let asked = 0
    const driven = drive({ provider: () => (++asked > steps ? "done" : "tool"), tool: () => undefined, subscribers })
    return Effect.provideService(run(driven), Current, driven)
  })

/** One generation of so many steps in a session of its own, with one subscriber, or none. */
export const generation = (steps: number, subscribed: boolean) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const outcome = yield* Scope.provide(
      driven(steps, subscribed ? 1 : 0, (driven) => Midcourse.generation(driven)),
      scope
    )
    yield* Scope.close(scope, Exit.void)
    return outcome
  })

/** The same requests with nothing around them: what the provider's own path costs. */
export const bare = (steps: number) => driven(steps, 0, (driven) => loop(driven, "call", []))

/** CPU microseconds an effect takes in this process. */
export const cpu = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = cpuTime()
    yield* effect
    return cpuTime() - before
  })
