/** Judges a session that has come to rest: its receipts, its events and its context must tell one and the same story. */
import { Effect, Option, Stream } from "effect"
import type { Prompt } from "effect/ai"
import { Event, type Ids, Input, type Receipt, type Session } from "../../src/index.ts"
import { StrictPrompt } from "../../src/testing/index.ts"
import { journalled } from "./harness.ts"

export interface Told {
  readonly receipts: ReadonlyArray<Receipt.Accepted>
  readonly events: ReadonlyArray<Event.SessionEvent>
  readonly context: ReadonlyArray<Prompt.Message>
}

/** Everything a session can say of itself. `given` are the receipts callers were given. */
export const told = (session: Session.Session, given: ReadonlyArray<Receipt.Receipt>): Effect.Effect<Told> =>
  toldOf(
    session,
    given.flatMap((receipt) => (receipt.accepted ? [receipt.inputId] : []))
  )

/** The same, with the receipts of these inputs. */
export const toldOf = (session: Session.Session, ids: ReadonlyArray<Ids.InputId>): Effect.Effect<Told> =>
  Effect.gen(function* () {
    const { sequence } = yield* session.status
    const events = yield* Stream.runCollect(Stream.take(journalled(session.events()), sequence)).pipe(Effect.orDie)
    const context = yield* Effect.orDie(session.context)
    const receipts: Array<Receipt.Accepted> = []
    for (const id of ids) {
      const now = yield* session.receipt(id)
      if (Option.isSome(now) && now.value.accepted) receipts.push(now.value)
    }
    return { receipts, events, context: context.content }
  })

/** The terminal event of a generation. */
export const endOf = (events: ReadonlyArray<Event.SessionEvent>, id: string | null | undefined) =>
  events.find((event) => Event.isTerminal(event) && event.generation_id === id)

const settled = (event: Event.SessionEvent): boolean =>
  event.type === "steering.held" || event.type === "steering.unknown" || event.type === "input.delivered"

/**
 * What is untrue, each named by the law it breaks. Empty when all is well. With the agent's `maxRequests` it also tells whether a budget
 * that is said to be exhausted was.
 */
export const lies = ({ context, events, receipts }: Told, maxRequests?: number): Array<string> => {
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
    if (times > 1) bad.push(`L-B1 ${inputId} is ${times} times in the context`)
    const endings = events.filter((event) => settled(event) && "input_id" in event && event.input_id === inputId)
    if (endings.length !== 1) bad.push(`L-D1 ${inputId} was settled ${endings.length} times`)
    const bound = receipts.find((receipt) => receipt.inputId === inputId)?.generationId
    const end = endOf(events, bound)
    const requests = events.filter((event) => event.type === "request.started" && event.generation_id === bound).length
    const spent = reason === "budget-exhausted" && (maxRequests === undefined || requests >= maxRequests)
    if (disposition === "held" && end?.type === "generation.finished" && !spent) {
      bad.push(`L-E2 ${inputId} was accepted and stranded by a normal finish`)
    }
  }
  // Where nothing was written there is nothing to send.
  const sendable = context.length === 0 ? [] : StrictPrompt.violations(context, { allowLastAssistant: true })
  for (const violation of sendable) bad.push(`L-T2 ${violation.toString()}`)
  return bad
}

/**
 * What began, by the provider's call id, is what `tool.started` says, in order where no two calls ran at once (L-T1). Only a call
 * interrupted between its start and its handler's first own step may be missing.
 */
export const toolLies = ({ events }: Told, began: ReadonlyArray<string>): Array<string> => {
  const bad: Array<string> = []
  const interrupted = new Set(events.flatMap((event) => (event.type === "tool.interrupted" ? [event.call_id] : [])))
  const left = [...began]
  const overlap = overlaps(events)
  for (const event of events) {
    if (event.type !== "tool.started") continue
    const at = left.indexOf(event.provider_call_id)
    if (at === 0 || (at > 0 && overlap)) left.splice(at, 1)
    else if (!interrupted.has(event.call_id)) bad.push(`L-T1 ${event.tool} is started and did not begin`)
  }
  if (left.length > 0) bad.push(`L-T1 ${left.join()} began and is not started`)
  for (const [id, story] of stories(events)) {
    if (!wellTold.has(story.replace("?", ""))) bad.push(`L-T1 call ${id} went ${story}`)
  }
  return bad
}

/** Whether two calls ever ran at once. */
const overlaps = (events: ReadonlyArray<Event.SessionEvent>): boolean => {
  const ended = new Set<string>()
  const started = new Set<string>()
  return events.some((event) => {
    if (event.type === "tool.started") started.add(event.call_id)
    else if (isToolEnd(event) && started.has(event.call_id)) ended.add(event.call_id)
    return started.size - ended.size > 1
  })
}

type ToolEnd = Extract<
  Event.SessionEvent,
  { readonly type: "tool.completed" | "tool.failed" | "tool.denied" | "tool.not_started" | "tool.interrupted" }
>

/** Whether an event says how a call ended. */
export const isToolEnd = (event: Event.SessionEvent): event is ToolEnd =>
  event.type === "tool.completed" ||
  event.type === "tool.failed" ||
  event.type === "tool.denied" ||
  event.type === "tool.not_started" ||
  event.type === "tool.interrupted"

/** How a call ended. */
export const toolEndOf = (events: ReadonlyArray<Event.SessionEvent>, id: Ids.ToolCallId) =>
  events.find((event) => isToolEnd(event) && event.call_id === id)

/** Asked again, an approval is still one question to the story of its call (L-T13). */
export const askedOnce = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyArray<Event.SessionEvent> => {
  const asked = new Set<string>()
  return events.filter((event) => {
    if (event.type !== "tool.approval_requested") return true
    const first = !asked.has(event.call_id)
    asked.add(event.call_id)
    return first
  })
}

/** No input is in the context twice (L-R1). */
export const contextLies = ({ context }: Told): Array<string> => {
  const ids = context.flatMap((message) => Input.idOfMessage(message) ?? [])
  return new Set(ids).size === ids.length ? [] : [`L-R1 the context holds ${ids.join()}`]
}

const letters: { readonly [type: string]: string } = {
  "tool.requested": "r",
  "tool.approval_requested": "?",
  "tool.started": "s",
  "tool.completed": "c",
  "tool.failed": "f",
  "tool.interrupted": "i",
  "tool.denied": "d",
  "tool.not_started": "n"
}

/** What a call may go through: requested, admitted, started and ended; or requested and ended (L-T1). */
const wellTold = new Set(["rasc", "rasf", "rasi", "rd", "rn"])

/** Each call's events, a letter each, in order. */
const stories = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyMap<string, string> => {
  const told = new Map<string, string>()
  const add = (id: string, letter: string) => void told.set(id, (told.get(id) ?? "") + letter)
  for (const event of events) {
    if (event.type === "tools.admitted") for (const id of event.call_ids) add(id, "a")
    else if ("call_id" in event) add(event.call_id, letters[event.type] ?? "")
  }
  return told
}

/** An accepted stop or cancel. */
export interface Control {
  readonly how: "cancel" | "stop"
  readonly generationId: string
}

/** What was accepted is what comes of it, and nothing starts after it (L-C4, L-C5, L-C10). */
export const controlLies = ({ events }: Told, accepted: ReadonlyArray<Control>): Array<string> => {
  const bad: Array<string> = []
  for (const { generationId, how } of accepted) {
    const asked = events.find((event) => event.type === `${how}.requested` && event.generation_id === generationId)
    if (asked === undefined) bad.push(`L-C10 a ${how} was accepted and is not journalled`)
  }
  for (const asked of events) {
    if (asked.type !== "stop.requested" && asked.type !== "cancel.requested") continue
    const mine = events.filter((event) => event.generation_id === asked.generation_id)
    const cancelled = mine.some((event) => event.type === "cancel.requested")
    const wanted = cancelled ? "generation.cancelled" : "generation.stopped"
    const end = mine.find(Event.isTerminal)
    if (end?.type !== wanted) bad.push(`L-C5 ${asked.type} was accepted and came to ${end?.type}`)
    for (const event of mine) {
      const starts =
        event.type === "request.started" || event.type === "tool.started" || event.type === "tools.admitted"
      if (starts && event.sequence > asked.sequence) bad.push(`L-C5 ${event.type} after ${asked.type}`)
      if (event.type === "steering.accepted" && event.sequence > asked.sequence) {
        bad.push(`L-C5 ${event.input_id} was admitted after ${asked.type}`)
      }
    }
  }
  return bad
}

/** A pause is in effect only when nothing it is about runs, and then nothing of that starts until it ends (L-C2). */
export const pauseLies = ({ events }: Told): Array<string> => {
  const bad: Array<string> = []
  const running = new Map<string, string>()
  const effective = new Map<number, ReadonlyArray<string> | undefined>()
  let requesting = false
  const affected = (scope: ReadonlyArray<string> | undefined, tool: string) =>
    scope === undefined || scope.includes(tool)
  for (const event of events) {
    if (event.type === "pause.effective") {
      const scope = event.scope?.tools
      const busy = [...running.values()].some((tool) => affected(scope, tool)) || (scope === undefined && requesting)
      if (busy) bad.push(`L-C2 a pause took effect while what it is about ran (${event.sequence})`)
      effective.set(event.requested, scope)
    }
    if (event.type === "pause.ended") effective.delete(event.requested)
    if (event.type === "tool.started") {
      running.set(event.call_id, event.tool)
      if ([...effective.values()].some((scope) => affected(scope, event.tool)))
        bad.push("L-C2 a call started in a pause")
    }
    if (isToolEnd(event)) running.delete(event.call_id)
    if (event.type === "request.started" || event.type === "generation.started") {
      if ([...effective.values()].some((scope) => scope === undefined)) bad.push(`L-C2 ${event.type} in a pause`)
    }
    if (event.type === "request.started") requesting = true
    if (event.type === "request.completed" || event.type === "request.failed" || Event.isTerminal(event)) {
      requesting = false
    }
  }
  return bad
}

/** An input is said to be carried first by one request, which is its receipt's and comes after its delivery (L-B5, L-D2, L-E5). */
export const requestLies = ({ events, receipts }: Told): Array<string> => {
  const bad: Array<string> = []
  for (const { disposition, generationId, inputId, request } of receipts) {
    const of = <Type extends Event.SessionEvent["type"]>(type: Type) =>
      events.filter((event) => event.type === type && "input_id" in event && event.input_id === inputId)
    const carried = events.filter((event) => event.type === "request.started" && event.input_ids.includes(inputId))
    const [first] = carried
    if (carried.length > 1) bad.push(`L-B5 ${inputId} was first carried ${carried.length} times`)
    if (first?.type === "request.started" && (first.request !== request || first.generation_id !== generationId)) {
      bad.push(`L-D2 ${inputId} was first carried by ${first.request} and its receipt says ${request}`)
    }
    if (first === undefined && request !== undefined)
      bad.push(`L-D2 ${inputId} was carried by no request, not ${request}`)
    const [delivered] = of("input.delivered")
    if (first !== undefined && (delivered === undefined || delivered.sequence > first.sequence)) {
      bad.push(`L-B5 ${inputId} was carried before it was delivered`)
    }
    const steering = of("steering.accepted").length
    if (of("steering.applied").length !== (disposition === "applied" ? steering : 0)) {
      bad.push(`L-B5 ${inputId} is ${disposition} and was applied ${of("steering.applied").length} times`)
    }
  }
  return bad
}
