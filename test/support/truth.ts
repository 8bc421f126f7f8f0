/** Judges a session that has come to rest: its receipts, its events and its context must tell one and the same story. */
import { Effect, Option, Stream } from "effect"
import type { Prompt } from "effect/ai"
import { Event, Input, type Receipt, type Session } from "../../src/index.ts"
import { StrictPrompt } from "../../src/testing/index.ts"
import { journalled } from "./harness.ts"

export interface Told {
  readonly receipts: ReadonlyArray<Receipt.Accepted>
  readonly events: ReadonlyArray<Event.SessionEvent>
  readonly context: ReadonlyArray<Prompt.Message>
}

/** Everything a session can say of itself. `accepted` are the receipts callers were given. */
export const told = (session: Session.Session, given: ReadonlyArray<Receipt.Receipt>): Effect.Effect<Told> =>
  Effect.gen(function* () {
    const { sequence } = yield* session.status
    const events = yield* Stream.runCollect(Stream.take(journalled(session.events()), sequence)).pipe(Effect.orDie)
    const context = yield* Effect.orDie(session.context)
    const receipts: Array<Receipt.Accepted> = []
    for (const receipt of given) {
      if (!receipt.accepted) continue
      const now = yield* session.receipt(receipt.inputId)
      if (Option.isSome(now) && now.value.accepted) receipts.push(now.value)
    }
    return { receipts, events, context: context.content }
  })

const settled = (event: Event.SessionEvent): boolean =>
  event.type === "steering.held" || event.type === "steering.unknown" || event.type === "input.delivered"

/** What is untrue, each named by the law it breaks. Empty when all is well. */
export const lies = ({ context, events, receipts }: Told): Array<string> => {
  const bad: Array<string> = []
  events.forEach((event, index) => {
    if (event.sequence !== index + 1) bad.push(`L-V1 sequence ${event.sequence} at ${index + 1}`)
  })
  const started = events.flatMap((event) => (event.type === "generation.started" ? [event.generation_id] : []))
  for (const id of started) {
    const terminals = events.filter((event) => Event.isTerminal(event) && event.generation_id === id)
    if (terminals.length !== 1) bad.push(`L-E4 ${terminals.length} terminal events for ${id}`)
    const end = terminals[0]?.sequence ?? Number.POSITIVE_INFINITY
    for (const event of events) {
      if (event.sequence > end && settled(event) && "generation_id" in event && event.generation_id === id) {
        bad.push(`L-E4 ${event.type} after the terminal event`)
      }
    }
  }
  const inContext = context.flatMap((message) => Input.idOfMessage(message) ?? [])
  for (const { disposition, inputId, reason } of receipts) {
    const times = inContext.filter((id) => id === inputId).length
    if (disposition === "queued") bad.push(`L-D6 ${inputId} is still queued`)
    if (disposition === "applied" && times !== 1)
      bad.push(`L-D2 ${inputId} is applied and ${times} times in the context`)
    if (disposition === "held" && times !== 0) bad.push(`L-D3 ${inputId} is held (${reason}) and in the context`)
    if (times > 1) bad.push(`L-C20 ${inputId} is ${times} times in the context`)
    const endings = events.filter((event) => settled(event) && "input_id" in event && event.input_id === inputId)
    if (endings.length !== 1) bad.push(`L-D1 ${inputId} was settled ${endings.length} times`)
    const bound = receipts.find((receipt) => receipt.inputId === inputId)?.generationId
    const end = events.find((event) => Event.isTerminal(event) && event.generation_id === bound)
    if (disposition === "held" && end?.type === "generation.finished" && reason !== "budget-exhausted") {
      bad.push(`L-E2 ${inputId} was accepted and stranded by a normal finish`)
    }
  }
  // Where nothing was written there is nothing to send.
  const sendable = context.length === 0 ? [] : StrictPrompt.violations(context, { allowLastAssistant: true })
  for (const violation of sendable) bad.push(`L-T2 ${violation.toString()}`)
  return bad
}

/**
 * What began, by the provider's call id, is what `tool.started` says, in order (L-T1). Only a call interrupted between its start and its handler's first
 * own step may be missing.
 */
export const toolLies = ({ events }: Told, began: ReadonlyArray<string>): Array<string> => {
  const bad: Array<string> = []
  const interrupted = new Set(events.flatMap((event) => (event.type === "tool.interrupted" ? [event.call_id] : [])))
  let index = 0
  for (const event of events) {
    if (event.type !== "tool.started") continue
    if (began[index] === event.provider_call_id) index++
    else if (!interrupted.has(event.call_id)) bad.push(`L-T1 ${event.tool} is started and did not begin`)
  }
  if (index < began.length) bad.push(`L-T1 ${began.slice(index).join()} began and is not started`)
  const requested = events.flatMap((event) => (event.type === "tool.requested" ? [event.call_id] : []))
  for (const id of requested) {
    const ends = events.filter(
      (event) =>
        (event.type === "tool.completed" ||
          event.type === "tool.failed" ||
          event.type === "tool.denied" ||
          event.type === "tool.not_started" ||
          event.type === "tool.interrupted") &&
        event.call_id === id
    )
    if (ends.length !== 1) bad.push(`L-T1 call ${id} ended ${ends.length} times`)
  }
  return bad
}
