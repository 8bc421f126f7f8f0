/**
 * One finite run inside a session: from the input that started it to exactly one terminal event (L-E4).
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import * as Ids from "./Ids.ts"
import { ResumeCondition } from "./ResumeCondition.ts"
import { ToolCallReport } from "./ToolCall.ts"
import { ToolScope } from "./ToolScope.ts"

/** @category schemas @since 0.1.0 */
export const Outcome = Schema.Literals(["finished", "failed", "stopped", "cancelled", "exhausted"])
/** @category models @since 0.1.0 */
export type Outcome = typeof Outcome.Type

/**
 * Why a generation failed. `kind` is what a program branches on, `message` what a person reads.
 *
 * @category schemas
 * @since 0.1.0
 */
export const GenerationError = Schema.Struct({
  kind: Schema.Literals([
    "provider",
    "invalid-response",
    "content-filter",
    "preparation",
    "invalid-prompt",
    "context",
    "checkpoint",
    "storage",
    "defect"
  ]),
  message: Schema.String
})
/** @category models @since 0.1.0 */
export type GenerationError = typeof GenerationError.Type

/**
 * Tokens, as the provider counted them, summed over completed requests; 0 where it gave no count.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Usage = Schema.Struct({ inputTokens: Schema.Finite, outputTokens: Schema.Finite })
/** @category models @since 0.1.0 */
export type Usage = typeof Usage.Type

/**
 * What a live generation is doing now. Each phase carries only its own fields.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Phase = Schema.Union([
  Schema.TaggedStruct("Starting", {}),
  Schema.TaggedStruct("Delivering", {}),
  Schema.TaggedStruct("Preparing", { request: Schema.Int }),
  Schema.TaggedStruct("Requesting", { request: Schema.Int }),
  Schema.TaggedStruct("RunningTools", { request: Schema.Int }),
  Schema.TaggedStruct("BackingOff", { request: Schema.Int }),
  Schema.TaggedStruct("Checkpointing", { request: Schema.Int }),
  Schema.TaggedStruct("Paused", {}),
  Schema.TaggedStruct("Ending", { outcome: Outcome })
])
/** @category models @since 0.1.0 */
export type Phase = typeof Phase.Type

/**
 * The live generation. `startedAt` is in milliseconds since the Unix epoch; `request` is the last one made, 0 before.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ActiveGeneration = Schema.Struct({
  id: Ids.GenerationId,
  initialInputId: Ids.InputId,
  startedAt: Schema.Finite,
  request: Schema.Int
})
/** @category models @since 0.1.0 */
export type ActiveGeneration = typeof ActiveGeneration.Type

/**
 * What one generation came to. `text` is the last assistant message without tool calls; `""` is a valid answer.
 *
 * @category schemas
 * @since 0.1.0
 */
export const GenerationReport = Schema.Struct({
  id: Ids.GenerationId,
  outcome: Outcome,
  text: Schema.String,
  deliveredInputIds: Schema.Array(Ids.InputId),
  undeliveredInputIds: Schema.Array(Ids.InputId),
  unknownInputIds: Schema.Array(Ids.InputId),
  tools: Schema.Array(ToolCallReport),
  requests: Schema.Int,
  usage: Usage,
  error: Schema.optionalKey(GenerationError)
})
/** @category models @since 0.1.0 */
export type GenerationReport = typeof GenerationReport.Type

/**
 * The generation asked for never existed in this session.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownGeneration extends Schema.TaggedError<UnknownGeneration>()("UnknownGeneration", {
  generationId: Schema.String
}) {
  override get message(): string {
    return `No generation ${this.generationId} was started in this session`
  }
}

/**
 * A session as it stands; reading it changes nothing (L-C1). `evidence` says what this session can establish: whether
 * receipts outlive the process, whether the context can tell if a message is in it, whether a reconciler is set.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SessionStatus = Schema.Struct({
  sessionId: Ids.SessionId,
  agent: Schema.String,
  closed: Schema.Boolean,
  generation: Schema.NullOr(
    Schema.Struct({ ...ActiveGeneration.fields, phase: Phase, pendingInputIds: Schema.Array(Ids.InputId) })
  ),
  queuedInputIds: Schema.Array(Ids.InputId),
  pauses: Schema.Array(
    Schema.Struct({
      until: ResumeCondition,
      unmet: Schema.Array(ResumeCondition),
      scope: Schema.optionalKey(ToolScope),
      effective: Schema.Boolean
    })
  ),
  identities: Schema.Struct({ used: Schema.Int, limit: Schema.Int }),
  sequence: Schema.Int,
  evidence: Schema.Struct({
    durable: Schema.Boolean,
    context: Schema.Literals(["journal", "own-store"]),
    reconciler: Schema.Boolean
  })
})
/** @category models @since 0.1.0 */
export type SessionStatus = typeof SessionStatus.Type
