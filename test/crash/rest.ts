/** Bringing a session to rest: what every process does that opens what another has left. */
import { Duration, Effect } from "effect"
import { ContextStore, Limits, ToolPolicy, Uncancellable } from "../../src/index.ts"
import type { Harness } from "../support/harness.ts"
import type { Actor } from "./chaos.ts"

/** Sessions opened in the effect are this actor's. */
export const configured =
  (actor: Actor, context: ContextStore.Service | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    effect.pipe(
      Effect.provideService(ToolPolicy.ToolPolicy, actor.policy),
      Effect.provideService(ContextStore.ContextStore, context),
      Effect.provideService(Uncancellable.GraceTime, Duration.millis(200)),
      Effect.provide(Limits.layer({ collectDebounce: Duration.millis(3) }))
    )

/** Ends every pause and waits until nothing lives and nothing is to be started. */
export const rest = ({ session }: Harness) =>
  Effect.gen(function* () {
    while ((yield* session.status).pauses.length > 0) yield* session.resume()
    yield* Effect.timeoutOrElse(session.awaitIdle, {
      duration: "10 seconds",
      orElse: () =>
        Effect.flatMap(session.status, (status) =>
          Effect.die(new Error(`it does not come to rest: ${JSON.stringify(status)}`))
        )
    })
  })
