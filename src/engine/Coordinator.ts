/**
 * One owner fiber for a key, and its doorbell: it asks for work after every ring and every end, runs one piece at a time, and
 * is idle in between. It knows no model and no database; the races of starting, waking, interrupting and being idle live here.
 *
 * @since 0.1.0
 */
import { Effect, Fiber, Queue } from "effect"
import type { Scheduler, Scope } from "effect"

/**
 * `wake` and `interrupt` never run the owner or its work in the caller's stack, so both may be called from inside any
 * handler or state change (L-V3).
 *
 * @category models
 * @since 0.1.0
 */
export interface Coordinator {
  readonly wake: () => void
  readonly interrupt: () => void
  /** Waits until there is no work and none to be had. */
  readonly awaitIdle: Effect.Effect<void>
}

/**
 * A piece of work; `later` when there will be some without a further ring of the host's; `idle` when there is none.
 *
 * @category models
 * @since 0.1.0
 */
export type Next = Effect.Effect<void> | "later" | "idle"

/**
 * Starts the owner in the scope. `next` answers in one synchronous step. Work is forked
 * uninterruptible and started in the step that took it: what ends it must be inside it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  next: () => Next,
  dispatcher: Scheduler.SchedulerDispatcher
): Effect.Effect<Coordinator, never, Scope.Scope> =>
  Effect.gen(function* () {
    const bell = yield* Queue.sliding<void>(1)
    let current: Fiber.Fiber<unknown, unknown> | undefined
    let idle = false
    let idlers: Array<() => void> = []
    const rest = (): void => {
      idle = true
      const waiting = idlers
      idlers = []
      if (waiting.length > 0) dispatcher.scheduleTask(() => waiting.forEach((resume) => resume()), 0)
    }
    const owner = Effect.gen(function* () {
      while (true) {
        const work = next()
        if (work === "idle" || work === "later") {
          // In the step that found nothing: a ring between the two would be taken for idleness.
          if (work === "idle") rest()
          yield* Queue.take(bell)
          continue
        }
        // The work makes itself known as its first act: an interrupt cannot find it running and unknown.
        const known = Effect.withFiber<void>((fiber) => {
          current = fiber
          return work
        })
        yield* Fiber.await(yield* Effect.forkChild(known, { startImmediately: true, uninterruptible: true }))
        current = undefined
      }
    })
    yield* Effect.forkScoped(owner, { startImmediately: true })
    return {
      wake: () => {
        idle = false
        Queue.offerUnsafe(bell, undefined)
      },
      interrupt: () => {
        const fiber = current
        if (fiber !== undefined) dispatcher.scheduleTask(() => fiber.interruptUnsafe(), 0)
      },
      awaitIdle: Effect.callback<void>((resume) => {
        if (idle) return resume(Effect.void)
        const waiter = () => resume(Effect.void)
        idlers.push(waiter)
        return Effect.sync(() => {
          idlers = idlers.filter((other) => other !== waiter)
        })
      })
    }
  })
