/**
 * A projection as JSON and back, so that opening a long session folds only what came after (L-R2). It leaves out what a new
 * owner can ask the store for when it is needed: the messages, the content of delivered inputs, and the calls of steps that
 * are over.
 *
 * @since 0.1.0
 */
import { Effect, Schema } from "effect"
import type { Prompt } from "effect/ai"
import { EventCause } from "../domain/EventCause.ts"
import { GenerationError, Outcome } from "../domain/Generation.ts"
import * as Ids from "../domain/Ids.ts"
import { Input, Intent } from "../domain/Input.ts"
import { Delivery, InputStatus } from "../domain/Receipt.ts"
import { ResumeCondition } from "../domain/ResumeCondition.ts"
import { ToolCallStatus } from "../domain/ToolCall.ts"
import { ToolScope } from "../domain/ToolScope.ts"
import * as Digest from "./Digest.ts"
import * as EncodedPrompt from "./EncodedPrompt.ts"
import { type AcceptedInput, type CallState, Projection } from "./Projection.ts"

const OpenCall = Schema.Struct({
  id: Ids.ToolCallId,
  providerId: Schema.String,
  name: Schema.String,
  params: Schema.Json,
  status: ToolCallStatus,
  result: Schema.optionalKey(Schema.Json)
})

const GenerationSnapshot = Schema.Struct({
  id: Ids.GenerationId,
  startSequence: Schema.Int,
  initialInputIds: Schema.NonEmptyArray(Ids.InputId),
  inputIds: Schema.Array(Ids.InputId),
  startedAt: Schema.Finite,
  uncompleted: Schema.Array(Ids.InputId),
  request: Schema.Int,
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  text: Schema.String,
  textBefore: Schema.String,
  textRequest: Schema.Int,
  step: Schema.Union([
    Schema.TaggedStruct("Starting", {}),
    Schema.TaggedStruct("Requested", {}),
    Schema.TaggedStruct("Calling", { calls: Schema.Array(OpenCall) }),
    Schema.TaggedStruct("Answered", {}),
    Schema.TaggedStruct("Final", {})
  ]),
  parked: Schema.Boolean,
  ending: Schema.NullOr(Schema.Struct({ type: Schema.Literals(["stop", "cancel"]), cause: EventCause })),
  ended: Schema.NullOr(Schema.Struct({ outcome: Outcome, error: Schema.NullOr(GenerationError) }))
})

const SessionSnapshot = Schema.Struct({
  sequence: Schema.Int,
  inputs: Schema.Array(
    Schema.Struct({
      id: Ids.InputId,
      intent: Intent,
      input: Schema.NullOr(Input),
      digest: Schema.NullOr(Schema.String),
      anchor: Schema.NullOr(Ids.GenerationId),
      delivery: Delivery,
      acceptedAt: Schema.Finite,
      status: InputStatus,
      promoted: Schema.NullOr(Ids.InputId)
    })
  ),
  generations: Schema.Array(GenerationSnapshot),
  turns: Schema.Array(Ids.InputId),
  queue: Schema.Array(Ids.InputId),
  begun: Schema.Array(Ids.InputId),
  pauses: Schema.Array(
    Schema.Struct({
      requested: Schema.Int,
      until: ResumeCondition,
      scope: Schema.NullOr(ToolScope),
      signals: Schema.Array(Schema.String),
      manual: Schema.Boolean,
      inputAccepted: Schema.Boolean,
      effective: Schema.Boolean
    })
  )
})

const decode = Schema.decodeUnknownEffect(SessionSnapshot)

/**
 * The fold as it stands, for `JSON.stringify`.
 *
 * @category encoding
 * @since 0.1.0
 */
export const take = (projection: Projection): typeof SessionSnapshot.Encoded => ({
  sequence: projection.sequence,
  inputs: Array.from(projection.inputs, ([id, each]) => ({
    id,
    intent: each.intent,
    ...contentOf(each),
    anchor: each.anchor,
    delivery: each.delivery,
    acceptedAt: each.acceptedAt,
    status: each.status,
    promoted: each.promoted ?? null
  })),
  generations: Array.from(projection.generations.values(), (each) => ({
    id: each.id,
    startSequence: each.startSequence,
    initialInputIds: each.initialInputIds,
    inputIds: each.inputIds,
    startedAt: each.startedAt,
    uncompleted: [...each.uncompleted],
    request: each.request,
    inputTokens: each.inputTokens,
    outputTokens: each.outputTokens,
    text: each.text,
    textBefore: each.textBefore,
    textRequest: each.textRequest,
    step:
      each.step._tag === "Calling"
        ? {
            _tag: "Calling" as const,
            calls: Array.from(each.step.calls.values(), ({ id, name, params, providerId, result, status }) => ({
              id,
              providerId,
              name,
              params,
              status,
              ...(result === undefined ? undefined : { result })
            }))
          }
        : each.step,
    parked: each.parked,
    ending: each.ending ?? null,
    ended: each.ended === undefined ? null : { outcome: each.ended.outcome, error: each.ended.error ?? null }
  })),
  turns: projection.turns,
  queue: projection.queue,
  begun: projection.begun,
  pauses: projection.pauses.map((each) => ({
    requested: each.requested,
    until: each.until,
    scope: each.scope ?? null,
    signals: [...each.signals],
    manual: each.manual,
    inputAccepted: each.inputAccepted,
    effective: each.effective
  }))
})

/** The input, or what is enough of it once it is in the conversation. */
const contentOf = (each: AcceptedInput) => {
  const { input, status } = each
  if (input === undefined) return { input: null, digest: each.digest ?? null }
  if (!isOver(status)) return { input: EncodedPrompt.ofInput(input), digest: null }
  each.digest ??= Digest.ofInput(input)
  return { input: null, digest: each.digest }
}

const isOver = ({ _tag }: InputStatus): boolean => _tag === "Delivered" || _tag === "Completed"

/**
 * The fold that a snapshot was taken of, or what is wrong with it.
 *
 * @category decoding
 * @since 0.1.0
 */
export const restore = (snapshot: unknown, instructions: ReadonlyArray<Prompt.Message>) =>
  Effect.map(decode(snapshot), (found) => {
    const projection = new Projection(instructions)
    projection.sequence = found.sequence
    for (const { digest, id, input, promoted, ...each } of found.inputs) {
      projection.inputs.set(id, {
        ...each,
        input: input ?? undefined,
        digest: digest ?? undefined,
        ...(promoted === null ? undefined : { promoted })
      })
    }
    for (const each of found.generations) {
      const open = each.step._tag === "Calling" ? each.step.calls : []
      const calls = open.map((call): CallState => ({ ...call, request: each.request, result: call.result }))
      projection.generations.set(each.id, {
        ...each,
        admitted: { _tag: "Admitted", generationId: each.id },
        inputIds: [...each.inputIds],
        uncompleted: new Set(each.uncompleted),
        calls,
        step:
          each.step._tag === "Calling"
            ? { _tag: "Calling", calls: new Map(calls.map((call) => [call.id, call])) }
            : each.step,
        ending: each.ending ?? undefined,
        cold: true,
        ended: each.ended === null ? undefined : { ...each.ended, error: each.ended.error ?? undefined }
      })
    }
    projection.turns.push(...found.turns)
    projection.queue.push(...found.queue)
    projection.begun = found.begun
    for (const each of found.pauses) {
      projection.pauses.push({ ...each, scope: each.scope ?? undefined, signals: new Set(each.signals) })
    }
    projection.active = [...projection.generations.values()].find((each) => each.ended === undefined)
    return projection
  })
