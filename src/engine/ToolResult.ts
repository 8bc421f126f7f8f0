/**
 * What the model is told of each call: its real result, or in words what became of it and why (L-T2). The text never says
 * less than is known and never more.
 *
 * @since 0.1.0
 */
import type { Schema } from "effect"
import { Prompt } from "effect/ai"
import type { EventCause } from "../domain/EventCause.ts"
import type * as ToolCall from "../domain/ToolCall.ts"
import type { CallState } from "../ledger/Projection.ts"

const because: Record<ToolCall.NotStartedReason, string> = {
  steering: "a correction arrived before this call was launched",
  paused: "this work is paused",
  cancelled: "the run was cancelled before this call was launched",
  stopped: "the run was stopped before this call was launched",
  budget: "the run's request budget was used up",
  invalid: "the call is not valid",
  failed: "the run failed before this call was launched",
  closed: "the session was closed before this call was launched",
  "process-lost": "the process was lost before this call was launched"
}

const interruptedBy: Record<EventCause, string> = {
  user: "by the user",
  finish: "by the end of the run",
  stop: "because the run was stopped",
  cancel: "because the run was cancelled",
  budget: "because the request budget was used up",
  "provider-failure": "because the run failed",
  preparation: "because the run failed",
  storage: "because the run's storage failed",
  "process-loss": "because the process was lost",
  close: "because the session was closed"
}

/**
 * The words for a call that has no result of its own.
 *
 * @category conversions
 * @since 0.1.0
 */
export const explain = (status: ToolCall.ToolCallStatus): string => {
  switch (status._tag) {
    case "NotStarted": {
      const inputs = status.inputIds === undefined ? "" : ` (${status.inputIds.join(", ")})`
      const detail = status.detail === undefined ? "" : `: ${status.detail}`
      return `Not started: ${because[status.reason]}${inputs}${detail}. It has had no effect.`
    }
    case "Denied":
      return `Denied: ${status.reason}. It has had no effect.`
    case "Failed":
      return `Failed: ${status.error}`
    case "Interrupted": {
      const why = interruptedBy[status.cause]
      switch (status.effects) {
        case "none":
          return `Interrupted ${why} after it had started. It only reads, so it has changed nothing.`
        case "unknown":
          return `Interrupted ${why} after it had started. Its effects are unknown: it may have happened in whole, in part or not at all.`
        case "verified":
          return `Interrupted ${why} after it had started. What it did was established: ${JSON.stringify(status.outcome)}`
      }
      break
    }
    case "Requested":
    case "Admitted":
    case "Started":
    case "Completed":
      return ""
  }
}

/**
 * A result no longer than the limit; a longer one keeps its head, its tail and its size, and says what was left out.
 *
 * @category conversions
 * @since 0.1.0
 */
export const bound = (result: Schema.Json, limit: number): Schema.Json => {
  const text = typeof result === "string" ? result : JSON.stringify(result)
  if (text.length <= limit) return result
  const half = Math.floor(limit / 2)
  // A cut between the halves of a surrogate pair would leave text that no store takes.
  const head = text.slice(0, half).toWellFormed()
  const tail = text.slice(text.length - half).toWellFormed()
  return `${head}\n[… ${text.length - 2 * half} of ${text.length} characters are left out here …]\n${tail}`
}

/**
 * The answer to a call that ended before its step did.
 *
 * @category conversions
 * @since 0.1.0
 */
export const ofOpen = (call: CallState): Prompt.ToolResultPart =>
  call.status._tag === "Completed"
    ? part(call, call.status.isFailure, call.result ?? null)
    : part(call, true, explain(call.status))

/**
 * One part of the tool message that answers a response.
 *
 * @category conversions
 * @since 0.1.0
 */
export const part = (
  call: { readonly providerId: string; readonly name: string },
  isFailure: boolean,
  result: Schema.Json,
  modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart>
): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", {
    id: call.providerId,
    name: call.name,
    isFailure,
    result,
    providerExecuted: false,
    ...(modelOutput === undefined ? undefined : { modelOutput })
  })
