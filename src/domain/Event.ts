/**
 * What happened in a session, as plain JSON with the contract's keys. Journalled events have a gapless `sequence` from 1;
 * live ones (deltas, progress, refusals) carry the last journalled sequence and a `live` index, and are never replayed (L-V1).
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { Response } from "effect/ai"
import { EventCause } from "./EventCause.ts"
import { GenerationError, Usage } from "./Generation.ts"
import * as Ids from "./Ids.ts"
import { Intent } from "./Input.ts"
import { Delivery, HeldReason, RefusalReason, UnknownReason } from "./Receipt.ts"
import { ResumeCondition } from "./ResumeCondition.ts"
import { Effects, NotStartedReason } from "./ToolCall.ts"
import { ToolScope } from "./ToolScope.ts"

const envelope = {
  session_id: Ids.SessionId,
  sequence: Schema.Int,
  time: Schema.Finite,
  live: Schema.optionalKey(Schema.Int)
}

const inSession = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  types: ReadonlyArray<Type>,
  fields: Fields
) =>
  Schema.Struct({
    type: Schema.Literals(types),
    ...envelope,
    generation_id: Schema.optionalKey(Ids.GenerationId),
    ...fields
  })

const inGeneration = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  types: ReadonlyArray<Type>,
  fields: Fields
) => Schema.Struct({ type: Schema.Literals(types), ...envelope, generation_id: Ids.GenerationId, ...fields })

const inputIds = Schema.Array(Ids.InputId)
const request = Schema.Int
const call = { call_id: Ids.ToolCallId, provider_call_id: Schema.String, tool: Schema.String, request }
const steering = { input_id: Ids.InputId, target_generation_id: Schema.NullOr(Ids.GenerationId) }

/**
 * Every event, by `type`. `time` is in milliseconds since the Unix epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SessionEvent = Schema.Union([
  inGeneration(["generation.started", "generation.resumed", "generation.parked"], {
    initial_input_id: Ids.InputId,
    input_ids: inputIds,
    request: Schema.optionalKey(request)
  }),
  inGeneration(["stop.requested", "cancel.requested"], { cause: EventCause }),
  inGeneration(
    ["generation.finished", "generation.failed", "generation.stopped", "generation.cancelled", "generation.exhausted"],
    {
      input_ids: inputIds,
      accepted_input_ids: inputIds,
      unknown_input_ids: inputIds,
      text: Schema.String,
      cause: EventCause,
      error: Schema.optionalKey(GenerationError)
    }
  ),
  inGeneration(["request.started"], { request, input_ids: inputIds }),
  inGeneration(["request.completed"], { request, input_ids: inputIds, usage: Usage, reason: Response.FinishReason }),
  inGeneration(["request.failed"], {
    request,
    input_ids: inputIds,
    cause: EventCause,
    error: GenerationError,
    retry: Schema.Boolean
  }),
  inGeneration(["text.delta", "reasoning.delta"], { request, text: Schema.String }),
  inGeneration(["assistant.message"], { request, text: Schema.String }),
  inSession(["input.accepted"], {
    input_id: Ids.InputId,
    intent: Intent,
    delivery: Schema.optionalKey(Delivery),
    target_generation_id: Schema.optionalKey(Ids.GenerationId)
  }),
  inSession(["input.refused"], {
    input_id: Schema.String,
    intent: Schema.optionalKey(Intent),
    target_generation_id: Schema.optionalKey(Schema.String),
    reason: RefusalReason
  }),
  inGeneration(["input.delivered"], {
    input_id: Ids.InputId,
    intent: Intent,
    delivery: Delivery,
    target_generation_id: Ids.GenerationId
  }),
  inGeneration(["input.completed"], { input_id: Ids.InputId, intent: Intent, request }),
  inGeneration(["steering.accepted", "steering.applied"], {
    input_id: Ids.InputId,
    target_generation_id: Ids.GenerationId,
    delivery: Schema.Literal("request_boundary")
  }),
  inSession(["steering.held"], { ...steering, reason: HeldReason, cause: EventCause }),
  inSession(["steering.unknown"], { ...steering, reason: UnknownReason, cause: EventCause }),
  inGeneration(["steering.not_carried"], {
    ...steering,
    reason: Schema.Literal("dropped-by-preparation"),
    cause: EventCause,
    request
  }),
  inGeneration(["tools.admitted"], { request, call_ids: Schema.Array(Ids.ToolCallId) }),
  inGeneration(["tool.requested"], { ...call, params: Schema.Json }),
  inGeneration(["tool.approval_requested"], { ...call, reason: Schema.String, params: Schema.Json }),
  inGeneration(["tool.started"], call),
  inGeneration(["tool.progress"], { ...call, result: Schema.Json }),
  inGeneration(["tool.completed"], { ...call, result: Schema.Json, is_failure: Schema.Boolean }),
  inGeneration(["tool.failed"], { ...call, reason: Schema.String }),
  inGeneration(["tool.denied"], { ...call, reason: Schema.String }),
  inGeneration(["tool.not_started"], {
    ...call,
    reason: NotStartedReason,
    cause: EventCause,
    input_ids: Schema.optionalKey(inputIds),
    detail: Schema.optionalKey(Schema.String)
  }),
  inGeneration(["tool.interrupted"], {
    ...call,
    cause: EventCause,
    effects: Effects,
    result: Schema.optionalKey(Schema.Json)
  }),
  inGeneration(["checkpoint.saved"], { request }),
  inSession(["pause.requested"], {
    until: ResumeCondition,
    scope: Schema.optionalKey(ToolScope),
    unmet: Schema.Array(ResumeCondition)
  }),
  // `requested` is the sequence of the pause's own `pause.requested`.
  inSession(["pause.effective", "pause.ended"], {
    requested: Schema.Int,
    until: ResumeCondition,
    scope: Schema.optionalKey(ToolScope)
  }),
  inSession(["session.idle", "session.closed"], {}),
  inSession(["session.recovered"], { lost_generation_id: Schema.optionalKey(Ids.GenerationId) })
])
/** @category models @since 0.1.0 */
export type SessionEvent = typeof SessionEvent.Type

type OmitEach<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never

/**
 * An event before the journal has given it its place: no session, sequence or time yet.
 *
 * @category models
 * @since 0.1.0
 */
export type Body = OmitEach<SessionEvent, "session_id" | "sequence" | "time" | "live">

/**
 * Whether an event is of one of the types given; narrows it.
 *
 * @category guards
 * @since 0.1.0
 */
export const is =
  <const Type extends SessionEvent["type"]>(...types: ReadonlyArray<Type>) =>
  (event: SessionEvent): event is SessionEvent & { readonly type: Type } =>
    types.some((type) => type === event.type)

/**
 * The terminal event types: exactly one of them ends a generation (L-E4).
 *
 * @category predicates
 * @since 0.1.0
 */
export const isTerminal = (
  event: SessionEvent
): event is Extract<
  SessionEvent,
  {
    readonly type:
      | "generation.finished"
      | "generation.failed"
      | "generation.stopped"
      | "generation.cancelled"
      | "generation.exhausted"
  }
> =>
  event.type === "generation.finished" ||
  event.type === "generation.failed" ||
  event.type === "generation.stopped" ||
  event.type === "generation.cancelled" ||
  event.type === "generation.exhausted"
