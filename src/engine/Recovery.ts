/**
 * What a new owner makes of the generation a dead process left (L-R1, L-R2, L-C10). What was committed stands; what had begun and
 * has no end is called interrupted or unknown; nothing is replayed.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import { Prompt } from "effect/ai"
import * as Delivery from "../boundary/Delivery.ts"
import type { EventCause } from "../domain/EventCause.ts"
import type { Entry } from "../ledger/Entry.ts"
import { type CallState, type GenerationState, openCalls } from "../ledger/Projection.ts"
import type { Closing } from "../boundary/Admission.ts"
import * as Ending from "./Ending.ts"
import type { Engine } from "./Engine.ts"
import { about, established } from "./ToolCalls.ts"
import { type NotStarted, notStartedBy } from "./ToolDecision.ts"
import * as ToolResult from "./ToolResult.ts"
import * as Transcript from "./Transcript.ts"

/**
 * `settle` ends what was lost; `resume` goes on with it.
 *
 * @category models
 * @since 0.1.0
 */
export type Mode = "settle" | "resume"

/**
 * Whether the generation goes on here. An accepted stop or cancel is completed under either mode; a parked generation and one at
 * rest under a pause were never lost (L-R2, L-C9, L-C10).
 *
 * @category decisions
 * @since 0.1.0
 */
export const goesOn = (engine: Engine, state: GenerationState, mode: Mode): boolean => {
  if (state.ending !== undefined) return false
  // Without what started it there is nothing to go on with.
  const started = engine.journal.projection.inputs.get(state.initialInputIds[0])?.status._tag
  if (started === undefined || started === "Held" || started === "Unknown") return false
  return mode === "resume" || !isLost(engine, state)
}

/**
 * Whether the generation was running when its process ended; parked, or at rest under a pause in effect, it was not.
 *
 * @category decisions
 * @since 0.1.0
 */
export const isLost = (engine: Engine, state: GenerationState): boolean =>
  !state.parked && !engine.journal.projection.pauses.some((each) => each.scope === undefined && each.effective)

/**
 * The mode that holds for this generation: one that was not lost goes on under either.
 *
 * @category decisions
 * @since 0.1.0
 */
export const modeOf = (engine: Engine, state: GenerationState, mode: Mode): Mode =>
  state.ending === undefined && !isLost(engine, state) ? "resume" : mode

/**
 * Settles what had begun and has no end: context writes of the host's store and started calls. Commits nothing when there is
 * nothing.
 *
 * @category operations
 * @since 0.1.0
 */
export const reconcile = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, mode: Mode) {
  const entries = yield* begun(engine, state, mode)
  entries.push(...(yield* cutCalls(engine, state, "process-loss")))
  if (entries.length > 0) yield* engine.journal.commit(entries)
})

/** Started calls without an outcome: what they did is what can be established, and they are never run again (L-R1). */
const cutCalls = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, cause: EventCause) {
  const entries: Array<Entry> = []
  for (const call of openCalls(state)) {
    if (call.status._tag === "Started" || call.status._tag === "Admitted") {
      entries.push(yield* interrupted(engine, state, call, cause))
    }
  }
  return entries
})

/**
 * Answers the calls of a run that a defect ended, as those of a lost one are answered (L-T1, L-T2). Does nothing when none is open.
 *
 * @category operations
 * @since 0.1.0
 */
export const answerDefect = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, end: Closing) {
  const entries = yield* cutCalls(engine, state, end.cause)
  if (entries.length > 0) yield* engine.journal.commit(entries)
  yield* answer(engine, state, notStartedBy(end), end.cause)
})

/**
 * Writes into a host's context that had begun: the context may still be able to tell (L-R1). What is provably absent is still
 * pending for a generation that goes on, and held for one that does not.
 */
const begun = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, mode: Mode) {
  const { context, grace, journal } = engine
  const { projection } = journal
  const entries: Array<Entry> = []
  for (const item of Delivery.itemsOf(projection.admitted(projection.begun))) {
    const presence = context === undefined ? "cannot-tell" : yield* Delivery.ask(context, item, grace)
    if (presence === "absent" && mode === "resume") continue
    entries.push(...Delivery.settled(projection, state.id, item, presence, doubt))
  }
  return entries
})

const doubt = { held: "process-lost", unknown: "process-lost", cause: "process-loss" } as const

const interrupted = Effect.fnUntraced(function* (
  engine: Engine,
  state: GenerationState,
  call: CallState,
  cause: EventCause
) {
  const { id, name, params, providerId } = call
  const asked = { id, providerId, name, params, request: state.request }
  const found = yield* established(engine, asked, engine.tools.find(name))
  const entry: Entry = { ...about("tool.interrupted", state, state.request, call), cause, ...found }
  return entry
})

/**
 * Why a generation that does not go on ends: an accepted stop or cancel with its own cause, else the loss of its process.
 *
 * @category decisions
 * @since 0.1.0
 */
export const endingOf = (state: GenerationState): Closing => {
  if (state.ending === undefined) return Ending.lost
  if (state.ending.type === "stop") return Ending.stopped
  return state.ending.cause === "close" ? Ending.sessionClosed : Ending.cancelled
}

/**
 * Why the calls of a lost step were never launched: an accepted stop or cancel, as it would have been, else the loss (L-C10).
 *
 * @category decisions
 * @since 0.1.0
 */
export const unlaunchedBy = (state: GenerationState): NotStarted =>
  state.ending === undefined ? { _tag: "NotStarted", reason: "process-lost" } : notStartedBy(endingOf(state))

/**
 * Answers the calls of a step that will not go on, so that the next request is valid (L-T2, L-R3): those never launched are not
 * started, and each call of the response has its result.
 *
 * @category operations
 * @since 0.1.0
 */
export const answer = Effect.fnUntraced(function* (
  engine: Engine,
  state: GenerationState,
  status: NotStarted,
  cause: EventCause
) {
  const calls = openCalls(state)
  if (calls.length === 0) return
  const entries: Array<Entry> = []
  const parts = calls.map((call) => {
    if (call.status._tag !== "Requested") return ToolResult.ofOpen(call)
    const { reason } = status
    entries.push({ ...about("tool.not_started", state, state.request, call), reason, cause })
    return ToolResult.part(call, true, ToolResult.explain(status))
  })
  const message = Prompt.toolMessage({ content: parts })
  if (engine.context === undefined) {
    return yield* engine.journal.commit([...entries, { record: "message", generation_id: state.id, message }])
  }
  yield* engine.journal.commit(entries)
  engine.debt.results = message
  yield* Transcript.settleDebt(engine)
})

/**
 * What a host's context may still owe the newest generation, which has ended: the results of its newest calls (L-T2). Whether they
 * are owed is looked up before they are given.
 *
 * @category operations
 * @since 0.1.0
 */
export const recallDebt = (engine: Engine): void => {
  const newest = [...engine.journal.projection.generations.values()].at(-1)
  const calls = newest === undefined ? [] : openCalls(newest)
  if (engine.context === undefined || newest?.ended === undefined || calls.length === 0) return
  engine.debt.results = Prompt.toolMessage({ content: calls.map(ToolResult.ofOpen) })
}
