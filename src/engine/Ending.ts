/**
 * Every way a generation ends (L-E3, L-E4, L-C5): admission closes in the step that decides the end, what nothing will drain
 * is held with its own reason, and the one terminal event follows when every receipt is settled.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import { Prompt } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import type { EventCause } from "../domain/EventCause.ts"
import type { GenerationError, Outcome } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import { SessionError } from "../domain/SessionError.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { Handed } from "../ledger/Journal.ts"
import * as Report from "../ledger/Report.ts"
import { closing, type Engine, type Run } from "./Engine.ts"
import * as Transcript from "./Transcript.ts"

/** @category models @since 0.1.0 */
export type Closing = Admission.Closing

/** @category constructors @since 0.1.0 */
export const finished: Closing = { outcome: "finished", cause: "finish", held: "budget-exhausted" }
/** @category constructors @since 0.1.0 */
export const exhausted: Closing = { outcome: "exhausted", cause: "budget", held: "budget-exhausted" }
/** @category constructors @since 0.1.0 */
export const stopped: Closing = { outcome: "stopped", cause: "stop", held: "generation-stopped" }
/** @category constructors @since 0.1.0 */
export const cancelled: Closing = { outcome: "cancelled", cause: "cancel", held: "generation-cancelled" }
/** @category constructors @since 0.1.0 */
export const sessionClosed: Closing = { outcome: "cancelled", cause: "close", held: "session-closed" }

/** @category constructors @since 0.1.0 */
export const parked: Closing = { outcome: "cancelled", cause: "close", held: "session-closed", parks: true }
/** @category constructors @since 0.1.0 */
export const lost: Closing = {
  outcome: "failed",
  cause: "process-loss",
  held: "process-lost",
  error: { kind: "storage", message: "the process that ran this generation was lost" }
}

/** @category constructors @since 0.1.0 */
export const failed = (error: GenerationError): Closing => ({
  outcome: "failed",
  cause: causes[error.kind],
  held: "generation-failed",
  error
})

const causes: Record<GenerationError["kind"], EventCause> = {
  provider: "provider-failure",
  "invalid-response": "provider-failure",
  "content-filter": "provider-failure",
  preparation: "preparation",
  "invalid-prompt": "preparation",
  context: "storage",
  checkpoint: "storage",
  storage: "storage",
  defect: "provider-failure"
}

/**
 * Closes admission and, in the same commit as `entries`, holds what was pending.
 *
 * @category operations
 * @since 0.1.0
 */
export const close = (
  engine: Engine,
  run: Run,
  end: Closing,
  entries: ReadonlyArray<Entry> = [],
  handed: Handed = {}
): Effect.Effect<void, SessionError> => {
  const already = closing(run)
  // What was accepted first decides the outcome; only a cancel overrides, and only a stop (L-C5).
  const overrides = already === undefined || (already.outcome === "stopped" && end.outcome === "cancelled")
  const pending = Admission.close(run.admission, overrides ? end : already)
  if (pending.length === 0 && entries.length === 0) return Effect.void
  return engine.journal.commit([...entries, ...pending.map((input) => held(run, input.id, end))], handed)
}

/**
 * Ends the generation as failed of this.
 *
 * @category operations
 * @since 0.1.0
 */
export const fail = (
  engine: Engine,
  run: Run,
  kind: GenerationError["kind"],
  message: string
): Effect.Effect<void, SessionError> => close(engine, run, failed({ kind, message }))

/**
 * Holds an input that the generation's end leaves undelivered.
 *
 * @category entries
 * @since 0.1.0
 */
export const held = (run: Run, id: Ids.InputId, end: Closing): Entry =>
  Delivery.held(id, run.id, end.held, heldCause(end))

/** A steer held for the budget is held by the budget, however the generation ends (L-C8). */
const heldCause = (end: Closing): EventCause => (end.held === "budget-exhausted" ? "budget" : end.cause)

/**
 * The generation's fiber was interrupted. Whoever did it has closed admission and said why; if nobody has, it ends as closed.
 *
 * @category operations
 * @since 0.1.0
 */
export const interrupted = (engine: Engine, run: Run): Effect.Effect<void, SessionError> => {
  const { lost, sessionId } = engine.journal
  // Nothing may be said any more, not even that it ends (L-R7).
  if (lost !== undefined) return Effect.fail(new SessionError({ sessionId, reason: lost }))
  return closing(run) === undefined ? close(engine, run, sessionClosed) : Effect.void
}

const eventTypes = {
  finished: "generation.finished",
  failed: "generation.failed",
  stopped: "generation.stopped",
  cancelled: "generation.cancelled",
  exhausted: "generation.exhausted"
} as const satisfies Record<Outcome, string>

/**
 * Settles every receipt bound to the generation and publishes its terminal event, in one commit (L-E4, L-D6). Admissions still
 * being written are waited for, so that none is acknowledged after the end (L-A7). `idle` says whether the session then
 * has nothing to start.
 *
 * @category operations
 * @since 0.1.0
 */
export const settle = Effect.fnUntraced(function* (engine: Engine, run: Run, idle: () => boolean) {
  const { journal } = engine
  const { projection } = journal
  while (Admission.get(run.admission).reserved > 0) yield* run.admission.bell.wait
  // What others have handed to the lane is folded before it is looked at.
  yield* journal.flushed
  const end = closing(run) ?? failed({ kind: "defect", message: "the generation ended without saying why" })
  Admission.close(run.admission, end)
  if (end.parks === true) {
    const { initialInputIds, request } = run.state
    return yield* journal.commit([
      {
        type: "generation.parked",
        generation_id: run.id,
        initial_input_id: initialInputIds[0],
        input_ids: initialInputIds,
        request
      }
    ])
  }
  run.phase = { _tag: "Ending", outcome: end.outcome }
  const entries: Array<Entry> = []
  for (const id of run.state.inputIds) {
    if (projection.inputs.get(id)?.status._tag === "Admitted") entries.push(held(run, id, end))
  }
  const { delivered, undelivered, unknown } = Report.partition(projection, run.state)
  entries.push({
    type: eventTypes[end.outcome],
    generation_id: run.id,
    input_ids: delivered,
    accepted_input_ids: undelivered,
    unknown_input_ids: unknown,
    text: run.state.text,
    cause: end.cause,
    ...(end.error === undefined ? undefined : { error: end.error })
  })
  const notice = delivered.length === 0 ? undefined : noticeOf(run, end)
  if (notice !== undefined) {
    if (engine.context === undefined) entries.push({ record: "message", generation_id: run.id, message: notice })
    else engine.debt.notice = notice
  }
  // What a host's context does not take now goes in before the next input does.
  yield* Transcript.settleDebt(engine)
  if (idle()) entries.push({ type: "session.idle" })
  return yield* journal.commit(entries)
})

const notices: Record<Exclude<Outcome, "finished">, string> = {
  failed: "The previous run failed before it finished",
  stopped: "The previous run was stopped before it finished",
  cancelled: "The previous run was cancelled before it finished",
  exhausted: "The previous run used up its request budget before it finished"
}

/** What the next generation is told of one that did not finish (L-R3). */
const noticeOf = (run: Run, end: Closing): Prompt.UserMessage | undefined => {
  if (end.outcome === "finished") return undefined
  const lines = [`[Notice from the runtime] ${notices[end.outcome]}.`]
  if (end.error !== undefined) lines.push(`Error: ${end.error.message}.`)
  for (const call of run.state.calls) {
    if (call.status._tag === "Interrupted" && call.status.effects === "unknown") {
      lines.push(`The call ${call.name} (${call.providerId}) had started; whether it took effect is unknown.`)
    }
  }
  return Prompt.userMessage({
    content: [Prompt.makePart("text", { text: lines.join("\n") })],
    options: { midcourse: { notice: true, generation_id: run.id, outcome: end.outcome, cause: end.cause } }
  })
}
