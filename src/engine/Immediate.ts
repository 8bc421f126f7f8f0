/**
 * Effects that are already an `Exit`: nothing is waited for, and no fiber need look at them. Without a store a commit is one, and so
 * is what most schemas answer; a step takes them in the run of the code it is in.
 *
 * @since 0.1.0
 */
import { Effect, Exit } from "effect"

/**
 * Whether the effect has come to its end before it was run.
 *
 * @category guards
 * @since 0.1.0
 */
export const isDone = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Exit.Exit<A, E> => Exit.isExit(effect)

/**
 * Whether there is anything to run for: a wait, or a failure to pass on.
 *
 * @category guards
 * @since 0.1.0
 */
export const isOpen = <A, E, R>(effect: Effect.Effect<A, E, R>): boolean => !isDone(effect) || Exit.isFailure(effect)

/**
 * `Effect.flatMap` that goes on at once from what is done. Call it where the effect is to be run, not where one is made for later.
 *
 * @category combinators
 * @since 0.1.0
 */
export const after = <A, E, R, B, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  next: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> =>
  isDone(effect) && Exit.isSuccess(effect) ? next(effect.value) : Effect.flatMap(effect, next)
