/**
 * One owner for a key, and its doorbell: it asks for work after every ring and every end, runs one piece at a time in a fiber of
 * its own, and is idle, and has no fiber, in between. It knows no model and no database; the races of starting, waking,
 * interrupting and being idle live here.
 *
 * @since 0.1.0
 */
import { Cause, Effect, Fiber } from "effect"
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
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    let current: Fiber.Fiber<unknown, unknown> | undefined
    let owner: "free" | "working" | "gone" = "free"
    let rung = false
    let idle = false
    let idlers: Array<() => void> = []
    const rest = (): void => {
      idle = true
      const waiting = idlers
      idlers = []
      if (waiting.length > 0) dispatcher.scheduleTask(() => waiting.forEach((resume) => resume()), 0)
    }
    const ring = (): void => {
      if (rung) return
      rung = true
      dispatcher.scheduleTask(() => {
        rung = false
        look()
      }, 0)
    }
    /** An owner that cannot even look starts nothing more: thrown in a turn of its own, the defect would end the process. */
    const ask = (): Next | "broken" => {
      try {
        return next()
      } catch (defect) {
        fork(Effect.logError("a session's owner cannot look for work any more", Cause.die(defect)))
        return "broken"
      }
    }
    const look = (): void => {
      // Work that ends in the step that starts it is followed by what is next in this loop, not in its own stack.
      while (owner === "free") {
        const work = ask()
        if (work === "later") return
        if (work === "idle") return rest()
        if (typeof work === "string") {
          owner = "gone"
          return rest()
        }
        owner = "working"
        begin(work)
      }
    }
    const begin = (work: Effect.Effect<void>): void => {
      // The work makes itself known as its first act: an interrupt cannot find it running and unknown.
      const known = Effect.withFiber<void>((fiber) => {
        current = fiber
        return work
      })
      let isBegun = false
      fork(known, { uninterruptible: true }).addObserver(() => {
        current = undefined
        if (owner === "working") owner = "free"
        if (isBegun) look()
      })
      isBegun = true
    }
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        owner = "gone"
        return current === undefined ? Effect.void : Fiber.interrupt(current)
      })
    )
    look()
    return {
      wake: () => {
        idle = false
        ring()
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
