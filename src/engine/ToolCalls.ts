/**
 * The calls of one response as a batch holds them, and what asking for them and not starting them journals (L-T1).
 *
 * @since 0.1.0
 */
import { Context, Effect, Exit, type Fiber, Option, type Schema } from "effect"
import { Prompt, Tool } from "effect/ai"
import * as Supervised from "../boundary/Supervised.ts"
import type { EventCause } from "../domain/EventCause.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Effects, NotStartedReason } from "../domain/ToolCall.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { CallState } from "../ledger/Projection.ts"
import { closing, type Engine, type Run } from "./Engine.ts"
import type { RequestedCall } from "./Response.ts"
import type { NotStarted, State } from "./ToolDecision.ts"
import type * as ToolPolicy from "./ToolPolicy.ts"
import * as ToolResult from "./ToolResult.ts"
import { type Outcome, toJson } from "./ToolRunner.ts"

/**
 * One call as the loop holds it.
 *
 * @category models
 * @since 0.1.0
 */
export class Call {
  readonly id: Ids.ToolCallId
  readonly providerId: string
  readonly name: string
  readonly params: Schema.Json
  state: State = { _tag: "Waiting", verdict: "unasked" }
  tool: Tool.Any | undefined
  decoded: unknown
  fiber: Fiber.Fiber<Outcome> | undefined
  exit: Exit.Exit<Outcome> | undefined
  timer: Fiber.Fiber<void> | undefined
  overdue = false
  answer: Prompt.ToolResultPart | undefined

  constructor(id: Ids.ToolCallId, requested: RequestedCall) {
    this.id = id
    this.providerId = requested.id
    this.name = requested.name
    this.params = requested.params
  }
}

/**
 * The calls of a step that another process began: those that ended keep their answers, those never launched go through the
 * batch as if asked for now (L-R2).
 *
 * @category conversions
 * @since 0.1.0
 */
export const restored = (open: ReadonlyArray<CallState>): ReadonlyArray<Call> => {
  const calls: Array<Call> = []
  for (const each of open) {
    const call = new Call(each.id, { id: each.providerId, name: each.name, params: each.params })
    if (each.status._tag !== "Requested") {
      call.state = { _tag: "Ended" }
      call.answer = ToolResult.ofOpen(each)
    }
    calls.push(call)
  }
  return calls
}

/**
 * What asking for calls journals, and what repeats of an id within one response come to (L-T1).
 *
 * @category entries
 * @since 0.1.0
 */
export const requested = (
  run: Run,
  request: number,
  calls: ReadonlyArray<RequestedCall>,
  repeats: ReadonlyArray<RequestedCall>
): { readonly calls: ReadonlyArray<Call>; readonly entries: ReadonlyArray<Entry> } => {
  const entries: Array<Entry> = []
  let index = 0
  const make = (requestedCall: RequestedCall): Call => {
    // Generation ids never repeat, so neither do ids made from them.
    const id = `${run.id}.${request}.${++index}` as Ids.ToolCallId
    const call = new Call(id, requestedCall)
    entries.push({ ...about("tool.requested", run, request, call), params: call.params })
    return call
  }
  const made = calls.map(make)
  for (const repeat of repeats) {
    entries.push(
      notStarted(run, request, make(repeat), {
        _tag: "NotStarted",
        reason: "invalid",
        detail: `the response used the call id ${repeat.id} before`
      })
    )
  }
  return { calls: made, entries }
}

/**
 * An event of a call, with what each of them carries.
 *
 * @category entries
 * @since 0.1.0
 */
export const about = <const Type extends string>(
  type: Type,
  run: { readonly id: Ids.GenerationId },
  request: number,
  call: { readonly id: Ids.ToolCallId; readonly providerId: string; readonly name: string }
) => ({
  type,
  generation_id: run.id,
  request,
  call_id: call.id,
  provider_call_id: call.providerId,
  tool: call.name
})

const causeOf: Record<NotStartedReason, EventCause> = {
  steering: "user",
  paused: "user",
  cancelled: "cancel",
  stopped: "stop",
  budget: "budget",
  invalid: "provider-failure",
  failed: "provider-failure",
  closed: "close",
  "process-lost": "process-loss"
}

/**
 * A call that is never launched, and why.
 *
 * @category entries
 * @since 0.1.0
 */
export const notStarted = (run: Run, request: number, call: Call, status: NotStarted): Entry => ({
  ...about("tool.not_started", run, request, call),
  reason: status.reason,
  // A run that failed says by what; the other reasons are causes of their own (L-C8).
  cause: status.reason === "failed" ? (closing(run)?.cause ?? causeOf.failed) : causeOf[status.reason],
  ...(status.inputIds === undefined ? undefined : { input_ids: status.inputIds }),
  ...(status.detail === undefined ? undefined : { detail: status.detail })
})

/**
 * What an interrupted call did, as far as it is known; `result` is what was found, if it was verified.
 *
 * @category models
 * @since 0.1.0
 */
export interface Established {
  readonly effects: Effects
  readonly result?: Schema.Json
}

/**
 * Asks the host's reconciler, within the grace time, what an interrupted call did. Unless it can tell, a call of a tool that only
 * reads did nothing, and of any other it is unknown (L-T7).
 *
 * @category operations
 * @since 0.1.0
 */
export const established = (
  engine: Engine,
  call: ToolPolicy.ToolCall,
  tool: Tool.Any | undefined
): Effect.Effect<Established> =>
  Effect.map(
    Supervised.within(
      Effect.suspend(() => engine.reconciler(call)),
      engine.grace
    ),
    (answer): Established => {
      if (Option.isSome(answer) && Exit.isSuccess(answer.value) && Option.isSome(answer.value.value)) {
        return { effects: "verified", result: toJson(answer.value.value.value) }
      }
      return { effects: tool !== undefined && Context.get(tool.annotations, Tool.Readonly) ? "none" : "unknown" }
    }
  )

/**
 * What not launching any of these calls journals, and the message that answers them: it goes with what asked for them in one
 * commit, so that no recovery finds them unanswered and launches them (L-T2, L-T12).
 *
 * @category entries
 * @since 0.1.0
 */
export const refuse = (
  run: Run,
  request: number,
  calls: ReadonlyArray<Call>,
  status: NotStarted
): { readonly entries: ReadonlyArray<Entry>; readonly message: Prompt.ToolMessage } => ({
  entries: calls.map((call) => notStarted(run, request, call, status)),
  message: Prompt.toolMessage({ content: calls.map((call) => ToolResult.part(call, true, ToolResult.explain(status))) })
})
