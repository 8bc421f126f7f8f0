/**
 * What became of a requested tool call (L-T1): `requested → admitted → started → completed | failed | interrupted`, or it
 * ended unstarted. A running call is never called cancelled and a skipped one never called started.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { EventCause } from "./EventCause.ts"
import * as Ids from "./Ids.ts"

/**
 * Why a call was never launched.
 *
 * @category schemas
 * @since 0.1.0
 */
export const NotStartedReason = Schema.Literals([
  "steering",
  "paused",
  "cancelled",
  "stopped",
  "budget",
  "invalid",
  "failed",
  "closed",
  "process-lost"
])
/** @category models @since 0.1.0 */
export type NotStartedReason = typeof NotStartedReason.Type

/**
 * What an interrupted call may have done: nothing (it only reads), anything, or what a reconciler established (L-T7).
 *
 * @category schemas
 * @since 0.1.0
 */
export const Effects = Schema.Literals(["none", "unknown", "verified"])
/** @category models @since 0.1.0 */
export type Effects = typeof Effects.Type

/**
 * A host's answer to a question about a call (L-T13).
 *
 * @category models
 * @since 0.1.0
 */
export type Decision = { readonly _tag: "Allow" } | { readonly _tag: "Deny"; readonly reason: string }

/** @category constructors @since 0.1.0 */
export const allow: Decision = { _tag: "Allow" }

/** @category constructors @since 0.1.0 */
export const deny = (reason: string): Decision => ({ _tag: "Deny", reason })

/** @category schemas @since 0.1.0 */
export const ToolCallStatus = Schema.Union([
  Schema.TaggedStruct("Requested", {}),
  Schema.TaggedStruct("Admitted", {}),
  Schema.TaggedStruct("Started", {}),
  Schema.TaggedStruct("Completed", { isFailure: Schema.Boolean }),
  Schema.TaggedStruct("Failed", { error: Schema.String }),
  Schema.TaggedStruct("Denied", { reason: Schema.String }),
  Schema.TaggedStruct("NotStarted", {
    reason: NotStartedReason,
    inputIds: Schema.optionalKey(Schema.Array(Ids.InputId)),
    detail: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("Interrupted", {
    effects: Effects,
    cause: EventCause,
    outcome: Schema.optionalKey(Schema.Json)
  })
])
/** @category models @since 0.1.0 */
export type ToolCallStatus = typeof ToolCallStatus.Type

/**
 * One call of a generation's report: the runtime's id, the provider's, and where it ended.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolCallReport = Schema.Struct({
  id: Ids.ToolCallId,
  providerId: Schema.String,
  name: Schema.String,
  request: Schema.Int,
  status: ToolCallStatus
})
/** @category models @since 0.1.0 */
export type ToolCallReport = typeof ToolCallReport.Type
