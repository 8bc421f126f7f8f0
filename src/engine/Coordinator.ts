/**
 * One owner for a key, and its doorbell: it asks for work after every ring and every end, runs one piece at a time in a fiber of
 * its own, and is idle, and has no fiber, in between. It knows no model and no database; the races of starting, waking,
 * interrupting and being idle live here.
 *
 * @since 0.1.0
 */
import { Cause, Effect, Fiber } from "effect"
import type { Context, Scheduler } from "effect"
import { tell } from "../ledger/Telling.ts"

/**
 * A piece of work; `later` when there will be some without a further ring of the host's; `idle` when there is none.
 *
 * @category models
 * @since 0.1.0
 */
export type Next = Effect.Effect<void> | "later" | "idle"

/**
 * Who has the work: `next` answers in one synchronous step. Work is forked uninterruptible and started in the step that took it:
 * what ends it must be inside it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Host {
  readonly next: () => Next
}

/**
 * `wake` and `interrupt` never run the owner or its work in the caller's stack, so both may be called from inside any
 * handler or state change (L-V3).
 *
 * @category models
 * @since 0.1.0
 */
export class Coordinator {
  readonly #host: Host
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #services: Context.Context<never>
  #current: Fiber.Fiber<unknown, unknown> | undefined
  #owner: "free" | "working" | "gone" = "free"
  #rung = false
  #idle = false
  #idlers: ReadonlyArray<() => void> = nobody

  /** `services` is what the work runs with. Does at once what there is to do. */
  constructor(host: Host, dispatcher: Scheduler.SchedulerDispatcher, services: Context.Context<never>) {
    this.#host = host
    this.#dispatcher = dispatcher
    this.#services = services
    this.#look()
  }

  wake(): void {
    this.#idle = false
    if (this.#rung) return
    this.#rung = true
    this.#dispatcher.scheduleTask(() => {
      this.#rung = false
      this.#look()
    }, 0)
  }

  interrupt(): void {
    const fiber = this.#current
    if (fiber !== undefined) this.#dispatcher.scheduleTask(() => fiber.interruptUnsafe(), 0)
  }

  /** Waits until there is no work and none to be had. */
  get awaitIdle(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.#idle) return resume(Effect.void)
      const waiter = () => resume(Effect.void)
      this.#idlers = [...this.#idlers, waiter]
      return Effect.sync(() => {
        this.#idlers = this.#idlers.filter((other) => other !== waiter)
      })
    })
  }

  /** Nothing more is started, and what runs is interrupted: returns when it has ended. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#owner = "gone"
      return this.#current === undefined ? Effect.void : Fiber.interrupt(this.#current)
    })
  }

  #rest(): void {
    this.#idle = true
    const waiting = this.#idlers
    if (waiting.length === 0) return
    this.#idlers = nobody
    this.#dispatcher.scheduleTask(() => waiting.forEach(tell), 0)
  }

  /** An owner that cannot even look starts nothing more: thrown in a turn of its own, the defect would end the process. */
  #ask(): Next | "broken" {
    try {
      return this.#host.next()
    } catch (defect) {
      const logged = Effect.logError("a session's owner cannot look for work any more", Cause.die(defect))
      Effect.runForkWith(this.#services)(logged)
      return "broken"
    }
  }

  #look(): void {
    // Work that ends in the step that starts it is followed by what is next in this loop, not in its own stack.
    while (this.#owner === "free") {
      const work = this.#ask()
      if (work === "later") return
      if (work === "idle") return this.#rest()
      if (typeof work === "string") {
        this.#owner = "gone"
        return this.#rest()
      }
      this.#owner = "working"
      this.#begin(work)
    }
  }

  #begin(work: Effect.Effect<void>): void {
    // The work makes itself known as its first act: an interrupt cannot find it running and unknown.
    const known = Effect.withFiber<void>((fiber) => {
      this.#current = fiber
      return work
    })
    let isBegun = false
    Effect.runForkWith(this.#services)(known, { uninterruptible: true }).addObserver(() => {
      this.#current = undefined
      if (this.#owner === "working") this.#owner = "free"
      if (isBegun) this.#look()
    })
    isBegun = true
  }
}

const nobody: ReadonlyArray<() => void> = []
