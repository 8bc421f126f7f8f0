/**
 * The doorbell of one fiber: a ring that nobody waits for is kept for who comes next, and one is as good as many. Ringing never
 * runs the waiter in the caller's stack, so it may be rung from inside any state change (L-V3).
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { Scheduler } from "effect"

/** @category models @since 0.1.0 */
export class Bell {
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  #rung = false
  #waiter: ((heard: Effect.Effect<void>) => void) | undefined

  constructor(dispatcher: Scheduler.SchedulerDispatcher) {
    this.#dispatcher = dispatcher
  }

  /** Whether it has rung and nobody has heard it. */
  get isRung(): boolean {
    return this.#rung
  }

  /** Wakes who waits, in a turn of its own. */
  ring(): void {
    if (this.#rung) return
    this.#rung = true
    if (this.#waiter === undefined) return
    this.#dispatcher.scheduleTask(() => {
      const waiter = this.#waiter
      if (!this.#rung || waiter === undefined) return
      this.#waiter = undefined
      waiter(this.hear)
    }, 0)
  }

  /** Takes the ring, if there is one. */
  get hear(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#rung = false
    })
  }

  /** Waits for a ring and takes it; one at a time. A waiter that was interrupted takes none: the next one hears it. */
  get wait(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.#rung) return resume(this.hear)
      this.#waiter = resume
    })
  }
}
