/**
 * What the caller of `submit` holds: plain JSON that says what is known of one input, and no more (L-D1, L-D2). A refusal
 * leaves no trace, so its id may be used again (L-A2).
 *
 * @since 0.1.0
 */
import { Effect, Schema } from "effect"
import * as Ids from "./Ids.ts"
import { ResumeCondition } from "./ResumeCondition.ts"

/**
 * Why an input is held: it is in no context and will never start or join a generation by itself (L-D3).
 *
 * @category schemas
 * @since 0.1.0
 */
export const HeldReason = Schema.Literals([
  "generation-stopped",
  "generation-cancelled",
  "generation-failed",
  "budget-exhausted",
  "write-failed",
  "session-closed",
  "process-lost",
  "withdrawn",
  "promoted"
])
/** @category models @since 0.1.0 */
export type HeldReason = typeof HeldReason.Type

/**
 * Why the effect of an input's context write cannot be established (L-D4).
 *
 * @category schemas
 * @since 0.1.0
 */
export const UnknownReason = Schema.Literals(["write-interrupted", "write-failed", "process-lost"])
/** @category models @since 0.1.0 */
export type UnknownReason = typeof UnknownReason.Type

/**
 * Why an input was not accepted.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RefusalReason = Schema.Literals([
  "unavailable",
  "no-active-generation",
  "generation-mismatch",
  "admission-closed",
  "identity-conflict",
  "identities-exhausted",
  "queue-full",
  "invalid-input",
  "busy",
  "paused",
  "session-closed",
  "storage-unavailable",
  "not-queued",
  "unknown-id"
])
/** @category models @since 0.1.0 */
export type RefusalReason = typeof RefusalReason.Type

/**
 * How an input reaches its generation.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Delivery = Schema.Literals(["request_boundary", "new_turn"])
/** @category models @since 0.1.0 */
export type Delivery = typeof Delivery.Type

/**
 * `queued` proves admission; `applied` proves insertion into the generation's context and nothing about the model;
 * `request` is the first request that carried it, absent until that request starts (L-D2).
 *
 * @category schemas
 * @since 0.1.0
 */
export const Accepted = Schema.Struct({
  accepted: Schema.Literal(true),
  inputId: Ids.InputId,
  generationId: Schema.NullOr(Ids.GenerationId),
  disposition: Schema.Literals(["queued", "applied", "held", "unknown"]),
  request: Schema.optionalKey(Schema.Int),
  delivery: Schema.optionalKey(Delivery),
  reason: Schema.optionalKey(Schema.Union([HeldReason, UnknownReason]))
})
/** @category models @since 0.1.0 */
export type Accepted = typeof Accepted.Type

/**
 * `inputId` and `generationId` are what the caller gave; `actual` is the generation that is active, where that matters.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Refusal = Schema.Struct({
  accepted: Schema.Literal(false),
  inputId: Schema.String,
  generationId: Schema.NullOr(Schema.String),
  disposition: Schema.Literal("refused"),
  reason: RefusalReason,
  actual: Schema.optionalKey(Schema.NullOr(Ids.GenerationId)),
  detail: Schema.optionalKey(Schema.String)
})
/** @category models @since 0.1.0 */
export type Refusal = typeof Refusal.Type

/** @category schemas @since 0.1.0 */
export const Receipt = Schema.Union([Accepted, Refusal])
/** @category models @since 0.1.0 */
export type Receipt = typeof Receipt.Type

/**
 * A refusal as a typed error, for callers who want one.
 *
 * @category errors
 * @since 0.1.0
 */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { receipt: Refusal }) {
  override get message(): string {
    const { actual, detail, inputId, reason } = this.receipt
    return (
      `Input ${inputId} was refused: ${reason}` +
      (actual === undefined ? "" : `; the active generation is ${actual ?? "none"}`) +
      (detail === undefined ? "" : `; ${detail}`)
    )
  }
}

/**
 * Succeeds with an accepted receipt, fails with `Refused` otherwise.
 *
 * @category combinators
 * @since 0.1.0
 */
export const orFail = (receipt: Receipt): Effect.Effect<Accepted, Refused> =>
  receipt.accepted ? Effect.succeed(receipt) : Effect.fail(new Refused({ receipt }))

/**
 * The answer to a control: accepted, or why not. `unmet` are the conditions a pause still waits for (L-C3).
 *
 * @category schemas
 * @since 0.1.0
 */
export const ControlReceipt = Schema.Union([
  Schema.Struct({ accepted: Schema.Literal(true) }),
  Schema.Struct({
    accepted: Schema.Literal(false),
    reason: Schema.Literals([
      "no-active-generation",
      "generation-mismatch",
      "admission-closed",
      "unknown-id",
      "not-queued",
      "already-decided",
      "condition-unmet",
      "session-closed",
      "storage-unavailable"
    ]),
    actual: Schema.optionalKey(Schema.NullOr(Ids.GenerationId)),
    unmet: Schema.optionalKey(Schema.Array(ResumeCondition))
  })
])
/** @category models @since 0.1.0 */
export type ControlReceipt = typeof ControlReceipt.Type

/**
 * How far one accepted input has come (L-F7): accepted and bound to no generation; bound to one and not in its context; in
 * the context; carried by a request that completed; or ended as held or unknown.
 *
 * @category schemas
 * @since 0.1.0
 */
export const InputStatus = Schema.Union([
  Schema.TaggedStruct("Queued", {}),
  Schema.TaggedStruct("Admitted", { generationId: Ids.GenerationId }),
  Schema.TaggedStruct("Delivered", { generationId: Ids.GenerationId, request: Schema.optionalKey(Schema.Int) }),
  Schema.TaggedStruct("Completed", { generationId: Ids.GenerationId, request: Schema.Int }),
  Schema.TaggedStruct("Held", { generationId: Schema.NullOr(Ids.GenerationId), reason: HeldReason }),
  Schema.TaggedStruct("Unknown", { generationId: Ids.GenerationId, reason: UnknownReason })
])
/** @category models @since 0.1.0 */
export type InputStatus = typeof InputStatus.Type

/**
 * The receipt of an accepted input, as its status stands (L-I1).
 *
 * @category conversions
 * @since 0.1.0
 */
export const ofStatus = (inputId: Ids.InputId, status: InputStatus, delivery: Delivery | undefined): Accepted => {
  const base: { readonly accepted: true; readonly inputId: Ids.InputId; readonly delivery?: Delivery } =
    delivery === undefined ? { accepted: true, inputId } : { accepted: true, inputId, delivery }
  switch (status._tag) {
    case "Queued":
      return { ...base, generationId: null, disposition: "queued" }
    case "Admitted":
      return { ...base, generationId: status.generationId, disposition: "queued" }
    case "Delivered":
    case "Completed":
      return {
        ...base,
        generationId: status.generationId,
        disposition: "applied",
        ...(status.request === undefined ? undefined : { request: status.request })
      }
    case "Held":
      return { ...base, generationId: status.generationId, disposition: "held", reason: status.reason }
    case "Unknown":
      return { ...base, generationId: status.generationId, disposition: "unknown", reason: status.reason }
  }
}
