/**
 * What can go wrong with a session as a whole. Refusals and outcomes are not errors: they are receipts and reports.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/** @category schemas @since 0.1.0 */
export const SessionErrorReason = Schema.Union([
  Schema.TaggedStruct("Closed", {}),
  Schema.TaggedStruct("InUse", { detail: Schema.String }),
  Schema.TaggedStruct("InvalidId", { detail: Schema.String }),
  Schema.TaggedStruct("EventsPruned", { first: Schema.Int }),
  Schema.TaggedStruct("StorageUnavailable", { detail: Schema.String }),
  Schema.TaggedStruct("OwnerLost", {}),
  Schema.TaggedStruct("JournalCorrupt", { detail: Schema.String }),
  Schema.TaggedStruct("JournalTooNew", { format: Schema.Int, supported: Schema.Int })
])
/** @category models @since 0.1.0 */
export type SessionErrorReason = typeof SessionErrorReason.Type

const explain = (reason: SessionErrorReason): string => {
  switch (reason._tag) {
    case "Closed":
      return "the session is closed; open it again"
    case "InUse":
      return `the session is open already with other settings: ${reason.detail}`
    case "InvalidId":
      return reason.detail
    case "EventsPruned":
      return `events before ${reason.first} were pruned; read from ${reason.first - 1} on`
    case "StorageUnavailable":
      return `the journal could not be written or read: ${reason.detail}; open the session again to recover it`
    case "OwnerLost":
      return "another owner has opened this session; this one has stopped and changed nothing since"
    case "JournalCorrupt":
      return `the journal cannot be read and was left untouched: ${reason.detail}`
    case "JournalTooNew":
      return `the journal has format ${reason.format}; this version reads up to ${reason.supported}`
  }
}

/**
 * One outer error; callers branch on `reason._tag`.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionError extends Schema.TaggedError<SessionError>()("SessionError", {
  sessionId: Schema.String,
  reason: SessionErrorReason
}) {
  override get message(): string {
    return `Session ${this.sessionId}: ${explain(this.reason)}`
  }
}
