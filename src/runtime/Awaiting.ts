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

interface Waiting {
  readonly id: Ids.GenerationId
  readonly report: Deferred.Deferred<GenerationReport, SessionError>
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

  /** Waits for a generation's report. */
  report(id: Ids.GenerationId): Effect.Effect<GenerationReport, SessionError> {
    const found = this.#waiting.find((each) => each.id === id)
    if (found !== undefined) return Deferred.await(found.report)
    const report = Deferred.makeUnsafe<GenerationReport, SessionError>()
    this.#waiting = [...this.#waiting, { id, report }]
    return Deferred.await(report)
  }

  /** Answers whoever waits for this generation. */
  settle(id: Ids.GenerationId, report: Effect.Effect<GenerationReport, SessionError>): void {
    const found = this.#waiting.find((each) => each.id === id)
    if (found === undefined) return
    this.#waiting = this.#waiting.filter((each) => each !== found)
    this.#dispatcher.scheduleTask(() => Deferred.doneUnsafe(found.report, report), 0)
  }

  /** Fails everybody who still waits. */
  fail(error: () => SessionError): void {
    for (const { id } of this.#waiting) this.settle(id, Effect.fail(error()))
  }
}
