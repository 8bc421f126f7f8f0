/**
 * What a new owner makes of the generation a dead process left (L-R1, L-R2, L-C10). What was committed stands; what had begun and
 * has no end is called interrupted or unknown; nothing is replayed.
 *
 * @since 0.1.0
 */
import { Context, Effect, Exit, Option, type Schema } from "effect"
import { Prompt, Tool } from "effect/ai"
import * as Delivery from "../boundary/Delivery.ts"
import * as Supervised from "../boundary/Supervised.ts"
import type * as Ids from "../domain/Ids.ts"
import type { ToolCallStatus } from "../domain/ToolCall.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { GenerationState, OpenCall } from "../ledger/Projection.ts"
import type { Closing } from "../boundary/Admission.ts"
import * as Ending from "./Ending.ts"
import type { Engine } from "./Engine.ts"
import * as ToolResult from "./ToolResult.ts"
import * as Transcript from "./Transcript.ts"
import { toJson } from "./ToolRunner.ts"

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
  const [initial] = state.initialInputIds
  const started = initial === undefined ? undefined : engine.journal.projection.inputs.get(initial)?.status._tag
  if (started === undefined || started === "Held" || started === "Unknown") return false
  const { pauses } = engine.journal.projection
  const resting = pauses.some((each) => each.scope === undefined && each.effective)
  return mode === "resume" || state.parked || resting
}

/**
 * Settles what had begun and has no end: context writes of the host's store and started calls. Commits nothing when there is
 * nothing.
 *
 * @category operations
 * @since 0.1.0
 */
export const reconcile = Effect.fnUntraced(function* (engine: Engine, state: GenerationState) {
  const entries: Array<Entry> = []
  for (const id of engine.journal.projection.begun) entries.push(...(yield* begun(engine, state, id)))
  for (const call of openCalls(state)) {
    if (call.status._tag === "Started" || call.status._tag === "Admitted") {
      entries.push(yield* interrupted(engine, state, call))
    }
  }
  if (entries.length > 0) yield* engine.journal.commit(entries)
})

const openCalls = (state: GenerationState): ReadonlyArray<OpenCall> =>
  state.step._tag === "Calling" ? [...state.step.calls.values()].filter((call) => !call.repeat) : []

/** A write into a host's context that had begun: the context may still be able to tell (L-R1). */
const begun = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, id: Ids.InputId) {
  const { context, grace, journal } = engine
  const found = journal.projection.inputs.get(id)
  if (found?.status._tag !== "Admitted") return []
  const answer =
    context === undefined
      ? Option.none()
      : yield* Supervised.within(
          Effect.suspend(() => context.has(id)),
          grace
        )
  const presence = Option.isSome(answer) && Exit.isSuccess(answer.value) ? answer.value.value : "cannot-tell"
  const target = { generation_id: state.id, input_id: id, target_generation_id: state.id }
  switch (presence) {
    case "present":
      return Delivery.insertion(journal.projection, state.id, id)
    case "absent":
      return [Delivery.held(id, state.id, "process-lost", "process-loss")]
    case "cannot-tell": {
      const unknown: Entry = { type: "steering.unknown", ...target, reason: "process-lost", cause: "process-loss" }
      return [unknown]
    }
  }
})

/** A started call without an outcome (L-R1): what it did is what can be established, and it is never run again. */
const interrupted = Effect.fnUntraced(function* (engine: Engine, state: GenerationState, call: OpenCall) {
  const { id, name, params, providerId } = call
  const asked = Effect.suspend(() => engine.reconciler({ id, providerId, name, params, request: state.request }))
  const answer = yield* Supervised.within(asked, engine.grace)
  const verified: Option.Option<Schema.Json> =
    Option.isSome(answer) && Exit.isSuccess(answer.value) ? Option.map(answer.value.value, toJson) : Option.none()
  const tool = engine.tools.find(name)
  const harmless = tool !== undefined && Context.get(tool.annotations, Tool.Readonly)
  const entry: Entry = {
    type: "tool.interrupted",
    ...keys(state, call),
    cause: "process-loss",
    effects: Option.isSome(verified) ? "verified" : harmless ? "none" : "unknown",
    ...(Option.isSome(verified) ? { result: verified.value } : undefined)
  }
  return entry
})

const keys = (state: GenerationState, call: OpenCall) => ({
  generation_id: state.id,
  request: state.request,
  call_id: call.id,
  provider_call_id: call.providerId,
  tool: call.name
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
 * Answers the calls of a step that will not go on, so that the next request is valid (L-T2, L-R3): those never launched are not
 * started, and each call of the response has its result.
 *
 * @category operations
 * @since 0.1.0
 */
export const answer = Effect.fnUntraced(function* (engine: Engine, state: GenerationState) {
  const calls = openCalls(state)
  if (calls.length === 0) return
  const entries: Array<Entry> = []
  const parts = calls.map((call) => {
    if (call.status._tag !== "Requested") return ToolResult.ofOpen(call)
    const status: ToolCallStatus = { _tag: "NotStarted", reason: "process-lost" }
    entries.push({ type: "tool.not_started", ...keys(state, call), reason: "process-lost", cause: "process-loss" })
    return ToolResult.part(call, true, ToolResult.explain(status))
  })
  const message = Prompt.toolMessage({ content: parts })
  if (engine.context === undefined) {
    return yield* engine.journal.commit([...entries, { record: "message", generation_id: state.id, message }])
  }
  yield* engine.journal.commit(entries)
  engine.debt.message = message
  yield* Transcript.settleDebt(engine, (effect) => effect)
})
