/**
 * Work of the host's that the runtime must be able to give up on: it runs in a fiber of its own, an interruption is passed on
 * to it, and it is then waited for no longer than a grace time.
 *
 * @since 0.1.0
 */
import { type Duration, Effect, Exit, Fiber, Option } from "effect"

/**
 * `Ended` by itself; ended after it was told to (`Interrupted`), perhaps with a value after all; or still running when the
 * grace time was over (`Abandoned`): what it does from then on cannot be known.
 *
 * @category models
 * @since 0.1.0
 */
export type Supervised<A, E> =
  | { readonly _tag: "Ended"; readonly exit: Exit.Exit<A, E> }
  | { readonly _tag: "Interrupted"; readonly exit: Exit.Exit<A, E> }
  | { readonly _tag: "Abandoned" }

/**
 * Runs the work; call it under a mask and give it the mask's `restore`, which opens the only window for an interrupt.
 *
 * @category combinators
 * @since 0.1.0
 */
export const run = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  restore: Restore,
  grace: Duration.Duration
): Effect.Effect<Supervised<A, E>, never, R> =>
  Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) => {
    const ended = fiber.pollUnsafe()
    if (ended !== undefined) return Effect.succeed<Supervised<A, E>>({ _tag: "Ended", exit: ended })
    return Effect.flatMap(Effect.exit(restore(Fiber.await(fiber))), (waited): Effect.Effect<Supervised<A, E>> => {
      if (Exit.isSuccess(waited)) return Effect.succeed({ _tag: "Ended", exit: waited.value })
      fiber.interruptUnsafe()
      return Effect.map(
        ending(fiber, grace),
        Option.match({
          onNone: (): Supervised<A, E> => ({ _tag: "Abandoned" }),
          onSome: (exit) => ({ _tag: "Interrupted", exit })
        })
      )
    })
  })

/** The end of a fiber, within the grace time; no clock is started for one that has ended. */
const ending = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  grace: Duration.Duration
): Effect.Effect<Option.Option<Exit.Exit<A, E>>> => {
  const ended = fiber.pollUnsafe()
  return ended === undefined ? Effect.timeoutOption(Fiber.await(fiber), grace) : Effect.succeedSome(ended)
}

/**
 * What `Effect.uninterruptibleMask` hands its body.
 *
 * @category models
 * @since 0.1.0
 */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * The same, for a question that nobody interrupts but that may not answer: `None` when it does not within the grace time.
 *
 * @category combinators
 * @since 0.1.0
 */
export const within = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  grace: Duration.Duration
): Effect.Effect<Option.Option<Exit.Exit<A, E>>, never, R> =>
  Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) =>
    Effect.tap(ending(fiber, grace), (answer) =>
      Effect.sync(() => {
        if (Option.isNone(answer)) fiber.interruptUnsafe()
      })
    )
  )

/**
 * Work that must be let finish: an interrupt only starts the clock, and when the grace time is over the work is left to
 * itself and its effect called unknown (`Abandoned`).
 *
 * @category combinators
 * @since 0.1.0
 */
export const finish = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  restore: Restore,
  grace: Duration.Duration
): Effect.Effect<Option.Option<Exit.Exit<A, E>>, never, R> =>
  Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) =>
    Effect.flatMap(Effect.exit(restore(Fiber.await(fiber))), (waited) =>
      Exit.isSuccess(waited) ? Effect.succeedSome(waited.value) : ending(fiber, grace)
    )
  )
