/**
 * The fold of a session's journal: identities and their statuses, generations, tool calls, queues and the context. It changes
 * in one place only, `apply`, and every reader sees whole commits.
 *
 * @since 0.1.0
 */
import type { Schema } from "effect"
import type { Prompt } from "effect/ai"
import type * as Event from "../domain/Event.ts"
import type { EventCause } from "../domain/EventCause.ts"
import type { GenerationError, Outcome } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Input } from "../domain/Input.ts"
import * as Receipt from "../domain/Receipt.ts"
import type { ResumeCondition } from "../domain/ResumeCondition.ts"
import type { ToolCallStatus } from "../domain/ToolCall.ts"
import type { ToolScope } from "../domain/ToolScope.ts"
import * as Entry from "./Entry.ts"

/**
 * One accepted identity and how far it has come.
 *
 * @category models
 * @since 0.1.0
 */
export interface AcceptedInput {
  readonly intent: Input["intent"]
  /** Absent for an input that was delivered before the session was last opened: its digest and its message say it all. */
  readonly input: Input | undefined
  /** Of everything that L-I2 compares: made when a snapshot first has to do without the input. */
  digest: string | undefined
  readonly anchor: Ids.GenerationId | null
  readonly delivery: Receipt.Delivery
  readonly acceptedAt: number
  status: Receipt.InputStatus
  /** The steer that a promoted follow-up has become (L-F9). */
  promoted?: Ids.InputId
}

/**
 * A call, with all that answering it again after a loss would need.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallState {
  readonly id: Ids.ToolCallId
  readonly providerId: string
  readonly name: string
  readonly request: number
  readonly params: Schema.Json
  status: ToolCallStatus
  result: Schema.Json | undefined
}

/**
 * How far a generation's newest step has come: what a recovery goes on from (L-R2).
 *
 * @category models
 * @since 0.1.0
 */
export type Step =
  | { readonly _tag: "Starting" }
  | { readonly _tag: "Requested" }
  | { readonly _tag: "Calling"; readonly calls: Map<Ids.ToolCallId, CallState> }
  | { readonly _tag: "Answered" }
  | { readonly _tag: "Final" }

/**
 * One generation, live or ended.
 *
 * @category models
 * @since 0.1.0
 */
export interface GenerationState {
  readonly id: Ids.GenerationId
  /** The sequence of its `generation.started`. */
  readonly startSequence: number
  /** The initial one first. */
  readonly initialInputIds: readonly [Ids.InputId, ...Array<Ids.InputId>]
  readonly startedAt: number
  /** The status of every input that is bound to it and not yet delivered. */
  readonly admitted: Receipt.InputStatus
  readonly inputIds: Array<Ids.InputId>
  readonly calls: Array<CallState>
  /** Delivered and not yet in a request that has completed. */
  readonly uncompleted: Set<Ids.InputId>
  request: number
  inputTokens: number
  outputTokens: number
  text: string
  textBefore: string
  /** The request that `text` came with. */
  textRequest: number
  step: Step
  /** A stop or cancel that was accepted and not yet completed (L-C10). */
  ending: { readonly type: "stop" | "cancel"; readonly cause: EventCause } | undefined
  /** Handed to the next process as it stands (L-C9). */
  parked: boolean
  /** Calls and inputs of its past that are in the store and not here. */
  cold: boolean
  ended: { readonly outcome: Outcome; readonly error: GenerationError | undefined } | undefined
}

/**
 * A pause that has not ended. `requested` is the sequence of its `pause.requested`, which names it.
 *
 * @category models
 * @since 0.1.0
 */
export interface PauseState {
  readonly requested: number
  readonly until: ResumeCondition
  readonly scope: ToolScope | undefined
  readonly signals: Set<string>
  manual: boolean
  inputAccepted: boolean
  effective: boolean
}

/**
 * The calls of the newest response that a message must answer: a repeat of an id within it is answered in no context (L-T1).
 *
 * @category queries
 * @since 0.1.0
 */
export const openCalls = ({ step }: GenerationState): ReadonlyArray<CallState> => {
  if (step._tag !== "Calling") return []
  const seen = new Set<string>()
  return Array.from(step.calls.values()).filter(({ providerId }) => seen.size < seen.add(providerId).size)
}

const queued: Receipt.InputStatus = { _tag: "Queued" }

const starting: Step = { _tag: "Starting" }
const requested: Step = { _tag: "Requested" }
const answered: Step = { _tag: "Answered" }
const final: Step = { _tag: "Final" }

const isRequested: ToolCallStatus = { _tag: "Requested" }
const isAdmitted: ToolCallStatus = { _tag: "Admitted" }
const isStarted: ToolCallStatus = { _tag: "Started" }
const hasCompleted: ToolCallStatus = { _tag: "Completed", isFailure: false }
const hasFailed: ToolCallStatus = { _tag: "Completed", isFailure: true }

const outcomes = {
  "generation.finished": "finished",
  "generation.failed": "failed",
  "generation.stopped": "stopped",
  "generation.cancelled": "cancelled",
  "generation.exhausted": "exhausted"
} as const satisfies { readonly [type: string]: Outcome }

/** @category models @since 0.1.0 */
export class Projection {
  readonly inputs = new Map<Ids.InputId, AcceptedInput>()
  readonly generations = new Map<Ids.GenerationId, GenerationState>()
  /** Ordinary steers waiting to start a generation or join its first boundary, in admission order (L-F5). */
  readonly turns: Array<Ids.InputId> = []
  /** Follow-ups and collects, in admission order (L-F2). */
  readonly queue: Array<Ids.InputId> = []
  /** The agent's instructions, then the conversation where the journal is the context. Append-only: nothing rewrites it. */
  readonly messages: Array<Prompt.Message>
  /** In the order asked for; they add up (L-C2). */
  readonly pauses: Array<PauseState> = []
  /** Inputs whose write into a host's context has begun and not ended (L-R1). */
  begun: ReadonlyArray<Ids.InputId> = []
  active: GenerationState | undefined
  /** The session's last journalled sequence that this fold has seen. */
  sequence = 0

  readonly #instructions: number

  constructor(instructions: ReadonlyArray<Prompt.Message>) {
    this.messages = [...instructions]
    this.#instructions = instructions.length
  }

  /** Puts older messages between the instructions and what is here. */
  prepend(messages: ReadonlyArray<Prompt.Message>): void {
    const rest = this.messages.splice(this.#instructions)
    for (const message of messages) this.messages.push(message)
    for (const message of rest) this.messages.push(message)
  }

  apply(entry: Entry.Committed): void {
    if (Entry.isRecord(entry)) this.#record(entry)
    else this.#event(entry)
  }

  /** An input with its content, if it is kept here: everything that is not yet delivered is. */
  input(id: Ids.InputId): Input | undefined {
    return this.inputs.get(id)?.input
  }

  /** Those of the inputs that are bound to a generation and not in its context, with their content. */
  admitted(ids: Iterable<Ids.InputId>): ReadonlyArray<Input> {
    return Array.from(ids).flatMap((id) => {
      const found = this.inputs.get(id)
      return found?.input !== undefined && found.status._tag === "Admitted" ? [found.input] : []
    })
  }

  /** The receipt of an accepted identity as it stands now (L-I1). */
  receipt(id: Ids.InputId): Receipt.Accepted | undefined {
    const found = this.inputs.get(id)
    return found && Receipt.ofStatus(id, found.status, found.delivery)
  }

  #record(entry: Entry.Record): void {
    switch (entry.record) {
      case "input": {
        const { anchor, delivery, generation_id, input, time } = entry
        const bound = generation_id === null ? undefined : this.generations.get(generation_id)
        this.inputs.set(input.id, {
          intent: input.intent,
          input,
          digest: undefined,
          anchor,
          delivery,
          acceptedAt: time,
          status: bound === undefined ? queued : bound.admitted
        })
        // In one commit with the hold: whoever names the follow-up later did not come from its promotion.
        const from = input.derivedFrom
        const origin = from === undefined ? undefined : this.inputs.get(from)
        if (origin?.status._tag === "Held" && origin.status.reason === "promoted") origin.promoted ??= input.id
        if (bound !== undefined) bound.inputIds.push(input.id)
        else if (input.intent === "steer") this.turns.push(input.id)
        else if (input.intent !== "prompt") this.queue.push(input.id)
        for (const pause of this.pauses) pause.inputAccepted = true
        return
      }
      case "message":
        this.messages.push(entry.message)
        if (entry.message.role === "tool" && this.active?.step._tag === "Calling") this.active.step = answered
        return
      case "resumed":
        for (const pause of this.pauses) {
          if (entry.signal === null) pause.manual = true
          else pause.signals.add(entry.signal)
        }
        return
      case "write-begun":
        this.begun = [...this.begun, ...entry.input_ids]
        return
      case "decision":
        return
    }
  }

  #event(event: Event.SessionEvent): void {
    this.sequence = event.sequence
    switch (event.type) {
      case "generation.started":
        return this.#started(event)
      case "stop.requested":
      case "cancel.requested": {
        const type = event.type === "stop.requested" ? "stop" : "cancel"
        this.#generation(event.generation_id).ending = { type, cause: event.cause }
        return
      }
      case "generation.finished":
      case "generation.failed":
      case "generation.stopped":
      case "generation.cancelled":
      case "generation.exhausted": {
        const generation = this.#generation(event.generation_id)
        generation.ended = { outcome: outcomes[event.type], error: event.error }
        if (this.active === generation) this.active = undefined
        return
      }
      case "input.delivered": {
        this.#generation(event.generation_id).uncompleted.add(event.input_id)
        this.#ended(event.input_id)
        return this.#set(event.input_id, { _tag: "Delivered", generationId: event.generation_id })
      }
      case "request.started": {
        const generation = this.#generation(event.generation_id)
        generation.request = event.request
        generation.step = requested
        const status = { _tag: "Delivered", generationId: event.generation_id, request: event.request } as const
        for (const id of event.input_ids) this.#set(id, status)
        return
      }
      case "request.completed": {
        const generation = this.#generation(event.generation_id)
        generation.inputTokens += event.usage.inputTokens
        generation.outputTokens += event.usage.outputTokens
        // Calls, if there are any, follow in the same commit.
        generation.step = event.reason === "pause" ? answered : final
        return
      }
      case "input.completed": {
        this.#generation(event.generation_id).uncompleted.delete(event.input_id)
        const status = this.inputs.get(event.input_id)?.status
        const request = status?._tag === "Delivered" ? (status.request ?? event.request) : event.request
        return this.#set(event.input_id, { _tag: "Completed", generationId: event.generation_id, request })
      }
      case "steering.held": {
        this.#unqueue(event.input_id)
        this.#ended(event.input_id)
        const generationId = event.target_generation_id
        return this.#set(event.input_id, { _tag: "Held", generationId, reason: event.reason })
      }
      case "steering.unknown": {
        const generationId = event.target_generation_id
        this.#ended(event.input_id)
        if (generationId !== null) {
          this.#set(event.input_id, { _tag: "Unknown", generationId, reason: event.reason })
        }
        return
      }
      case "assistant.message": {
        const generation = this.#generation(event.generation_id)
        generation.textBefore = generation.text
        generation.text = event.text
        generation.textRequest = event.request
        return
      }
      case "tool.requested": {
        const generation = this.#generation(event.generation_id)
        // Only a message without calls is an answer: the text that came with these calls was not.
        if (generation.textRequest === event.request) generation.text = generation.textBefore
        const call: CallState = {
          id: event.call_id,
          providerId: event.provider_call_id,
          name: event.tool,
          request: event.request,
          params: event.params,
          status: isRequested,
          result: undefined
        }
        generation.calls.push(call)
        if (generation.step._tag !== "Calling") generation.step = { _tag: "Calling", calls: new Map() }
        generation.step.calls.set(call.id, call)
        return
      }
      case "tools.admitted":
        for (const id of event.call_ids) this.#call(event.generation_id, id, isAdmitted)
        return
      case "tool.started":
        return this.#call(event.generation_id, event.call_id, isStarted)
      case "tool.completed":
        return this.#call(event.generation_id, event.call_id, event.is_failure ? hasFailed : hasCompleted, event.result)
      case "tool.failed":
        return this.#call(event.generation_id, event.call_id, { _tag: "Failed", error: event.reason })
      case "tool.denied":
        return this.#call(event.generation_id, event.call_id, { _tag: "Denied", reason: event.reason })
      case "tool.not_started":
        return this.#call(event.generation_id, event.call_id, {
          _tag: "NotStarted",
          reason: event.reason,
          ...(event.input_ids === undefined ? undefined : { inputIds: event.input_ids }),
          ...(event.detail === undefined ? undefined : { detail: event.detail })
        })
      case "tool.interrupted":
        return this.#call(event.generation_id, event.call_id, {
          _tag: "Interrupted",
          effects: event.effects,
          cause: event.cause,
          ...(event.result === undefined ? undefined : { outcome: event.result })
        })
      case "pause.requested":
        this.pauses.push({
          requested: event.sequence,
          until: event.until,
          scope: event.scope,
          signals: new Set(),
          manual: false,
          inputAccepted: false,
          effective: false
        })
        return
      case "pause.effective":
        for (const pause of this.pauses) if (pause.requested === event.requested) pause.effective = true
        return
      case "pause.ended": {
        const at = this.pauses.findIndex((pause) => pause.requested === event.requested)
        if (at >= 0) this.pauses.splice(at, 1)
        return
      }
      case "generation.resumed":
        this.#generation(event.generation_id).parked = false
        return
      case "generation.parked":
        this.#generation(event.generation_id).parked = true
        return
      case "request.failed":
      case "text.delta":
      case "reasoning.delta":
      case "input.accepted":
      case "input.refused":
      case "steering.accepted":
      case "steering.applied":
      case "steering.not_carried":
      case "tool.approval_requested":
      case "tool.progress":
      case "checkpoint.saved":
      case "session.idle":
      case "session.closed":
      case "session.recovered":
        return
    }
  }

  #started(
    event: Extract<
      Event.SessionEvent,
      { readonly type: "generation.started" | "generation.resumed" | "generation.parked" }
    >
  ): void {
    const generation: GenerationState = {
      id: event.generation_id,
      startSequence: event.sequence,
      initialInputIds: [event.initial_input_id, ...event.input_ids.slice(1)],
      startedAt: event.time,
      admitted: { _tag: "Admitted", generationId: event.generation_id },
      inputIds: [...event.input_ids],
      calls: [],
      uncompleted: new Set(),
      request: 0,
      inputTokens: 0,
      outputTokens: 0,
      text: "",
      textBefore: "",
      textRequest: 0,
      step: starting,
      ending: undefined,
      parked: false,
      cold: false,
      ended: undefined
    }
    this.generations.set(generation.id, generation)
    this.active = generation
    for (const id of event.input_ids) {
      this.#unqueue(id)
      this.#set(id, generation.admitted)
    }
  }

  #generation(id: Ids.GenerationId): GenerationState {
    const { active } = this
    const found = active?.id === id ? active : this.generations.get(id)
    if (found === undefined) throw new Error(`the journal names generation ${id} before it starts`)
    return found
  }

  #set(id: Ids.InputId, status: Receipt.InputStatus): void {
    const found = this.inputs.get(id)
    if (found !== undefined) found.status = status
  }

  #call(generation: Ids.GenerationId, id: Ids.ToolCallId, status: ToolCallStatus, result?: Schema.Json): void {
    // Nothing becomes of a call once its step is over (L-T8).
    const { step } = this.#generation(generation)
    const found = step._tag === "Calling" ? step.calls.get(id) : undefined
    if (found === undefined) return
    found.status = status
    found.result = result
  }

  /** The write of an input that had begun has ended. */
  #ended(id: Ids.InputId): void {
    if (this.begun.length > 0) this.begun = this.begun.filter((each) => each !== id)
  }

  #unqueue(id: Ids.InputId): void {
    for (const list of [this.turns, this.queue]) {
      const at = list.indexOf(id)
      if (at >= 0) list.splice(at, 1)
    }
  }
}
