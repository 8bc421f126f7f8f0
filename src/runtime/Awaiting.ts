/**
 * Who waits for which generation's report. A waiter is resumed in a turn of its own, never in the stack of the fiber that
 * settled what it waits for.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { Scheduler } from "effect"
import type { GenerationReport } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { SessionError } from "../domain/SessionError.ts"
import { tell } from "../ledger/Telling.ts"

type Reported = Effect.Effect<GenerationReport, SessionError>

interface Waiting {
  readonly id: Ids.GenerationId
  readonly resume: (report: Reported) => void
}

const nobody: ReadonlyArray<Waiting> = []

/** @category models @since 0.1.0 */
export class Awaiting {
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  /** Seldom more than one. */
  #waiting: ReadonlyArray<Waiting> = nobody

  constructor(dispatcher: Scheduler.SchedulerDispatcher) {
    this.#dispatcher = dispatcher
  }

  /** Adds who waits for a generation's report; the effect returned is for one who gives up. */
  add(id: Ids.GenerationId, resume: (report: Reported) => void): Effect.Effect<void> {
    const waiting: Waiting = { id, resume }
    this.#waiting = this.#waiting.concat(waiting)
    return Effect.sync(() => {
      this.#waiting = this.#waiting.filter((each) => each !== waiting)
    })
  }

  /** Answers whoever waits for this generation. */
  settle(id: Ids.GenerationId, report: Reported): void {
    const waiting = this.#waiting
    if (waiting.length === 0) return
    this.#waiting = waiting.filter((each) => each.id !== id)
    this.#dispatcher.scheduleTask(() => {
      for (const each of waiting) if (each.id === id) tell(() => each.resume(report))
    }, 0)
  }

  /** Fails everybody who still waits. */
  fail(error: () => SessionError): void {
    for (const { id } of this.#waiting) this.settle(id, Effect.fail(error()))
  }
}
