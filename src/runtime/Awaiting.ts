/**
 * Who waits for which generation's report. A waiter is resumed in a turn of its own, never in the stack of the fiber that
 * settled what it waits for.
 *
 * @since 0.1.0
 */
import { Deferred, Effect } from "effect"
import type { Scheduler } from "effect"
import type { GenerationReport } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { SessionError } from "../domain/SessionError.ts"

type Report = Deferred.Deferred<GenerationReport, SessionError>

/** @category models @since 0.1.0 */
export class Awaiting {
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #waiting = new Map<Ids.GenerationId, Report>()

  constructor(dispatcher: Scheduler.SchedulerDispatcher) {
    this.#dispatcher = dispatcher
  }

  /** Waits for a generation's report. */
  report(id: Ids.GenerationId): Effect.Effect<GenerationReport, SessionError> {
    const waiting = this.#waiting.get(id) ?? Deferred.makeUnsafe<GenerationReport, SessionError>()
    this.#waiting.set(id, waiting)
    return Deferred.await(waiting)
  }

  /** Answers whoever waits for this generation. */
  settle(id: Ids.GenerationId, report: Effect.Effect<GenerationReport, SessionError>): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    this.#dispatcher.scheduleTask(() => Deferred.doneUnsafe(waiting, report), 0)
  }

  /** Fails everybody who still waits. */
  fail(error: SessionError): void {
    for (const id of Array.from(this.#waiting.keys())) this.settle(id, Effect.fail(error))
  }
}
