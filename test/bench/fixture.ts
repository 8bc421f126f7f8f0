/** Generations as Effects, for the figures that compare two stores inside one process. */
import { type Context, Effect, Exit, Scope } from "effect"
import { AgentRuntime } from "../../src/index.ts"
import * as Hosted from "./adapters/session.ts"
import { Current, drive } from "./adapters/provider.ts"

/** Everything that does not change from one generation to the next, over a provider of `LanguageModel.make`. */
export const services: Effect.Effect<Context.Context<Hosted.Services>> = Effect.scoped(
  Hosted.services("made", AgentRuntime.layerMemory)
)

/** One generation of so many steps in a session of its own, with one subscriber. */
export const generation = (steps: number) =>
  Effect.gen(function* () {
    let asked = 0
    const provider = () => (++asked > steps ? "done" : "tool")
    const driven = drive({ provider, tool: () => undefined })
    const scope = yield* Scope.make()
    const run = Effect.provideService(Hosted.generation(driven), Current, driven)
    const outcome = yield* Scope.provide(run, scope)
    yield* Scope.close(scope, Exit.void)
    return outcome
  })
