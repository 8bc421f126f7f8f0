/**
 * A session's journalled events as lines to read, one an event that has something to say: who did what, in the order in
 * which the session says it happened.
 */
import { Console, Effect, Stream } from "effect"
import type { Event, Input, Receipt, Session } from "../../src/index.ts"

/** `inputs` are those the host submitted: an event names an input by its id and does not repeat what it says. */
export const lines = (
  events: ReadonlyArray<Event.SessionEvent>,
  inputs: ReadonlyArray<Input.Input>
): ReadonlyArray<string> => {
  const inputOf = new Map<string, Input.Input>(inputs.map((input) => [input.id, input]))
  const callOf = new Map<string, string>()
  for (const event of events) {
    if (event.type === "tool.requested") callOf.set(event.call_id, `${event.tool}(${argumentsOf(event.params)})`)
  }
  const call = (id: string): string => callOf.get(id) ?? id
  const line = (event: Event.SessionEvent): readonly [who: string, what: string] | undefined => {
    switch (event.type) {
      case "input.accepted": {
        const input = inputOf.get(event.input_id)
        return [input?.author ?? "input", `${event.intent} [${event.input_id}] ${JSON.stringify(input?.content)}`]
      }
      case "generation.started":
        return ["runtime", `generation started by ${list(event.input_ids)}`]
      case "request.started":
        return ["runtime", `request ${event.request} → ${carries(event.input_ids)}`]
      case "request.failed":
        return ["model", `request ${event.request} failed: ${event.error.message}`]
      case "assistant.message":
        return ["model", `says ${JSON.stringify(event.text)}`]
      case "tool.requested":
        return ["model", `asks for ${call(event.call_id)}`]
      case "tools.admitted":
        return ["runtime", `launches ${event.call_ids.map(call).join(", ")}`]
      case "tool.completed":
        return ["tool", `${call(event.call_id)} completed: ${JSON.stringify(event.result)}`]
      case "tool.failed":
        return ["tool", `${call(event.call_id)} failed: ${event.reason}`]
      case "tool.denied":
        return ["runtime", `does not start ${call(event.call_id)}: denied, ${event.reason}`]
      case "tool.approval_requested":
        return ["policy", `asks about ${call(event.call_id)}: ${event.reason}`]
      case "tool.not_started":
        return ["runtime", `does not start ${call(event.call_id)}: ${event.reason}${because(event.input_ids)}`]
      case "tool.interrupted":
        return ["runtime", `interrupted ${call(event.call_id)}: effects ${event.effects}${found(event.result)}`]
      case "input.delivered":
        return ["runtime", `writes [${event.input_id}] into the context`]
      case "steering.held":
        return ["runtime", `holds [${event.input_id}]: ${event.reason}`]
      case "steering.unknown":
        return ["runtime", `cannot tell what became of [${event.input_id}]: ${event.reason}`]
      case "steering.not_carried":
        return ["runtime", `request ${event.request} does not carry [${event.input_id}]: ${event.reason}`]
      case "checkpoint.saved":
        return ["runtime", `checkpoint saved after request ${event.request}`]
      case "pause.effective":
        return ["runtime", `paused until ${JSON.stringify(event.until)}`]
      case "pause.ended":
        return ["runtime", "pause ended"]
      case "stop.requested":
      case "cancel.requested":
      case "pause.requested":
        return ["host", event.type.replace(".", " ")]
      case "generation.resumed":
      case "generation.parked":
      case "generation.finished":
      case "generation.failed":
      case "generation.stopped":
      case "generation.cancelled":
      case "generation.exhausted":
        return ["runtime", event.type.replace(".", " ")]
      // What another line says already, what is live only, and what a session says about itself.
      case "steering.accepted":
      case "steering.applied":
      case "input.completed":
      case "input.refused":
      case "request.completed":
      case "text.delta":
      case "reasoning.delta":
      case "tool.started":
      case "tool.progress":
      case "session.idle":
      case "session.closed":
      case "session.recovered":
        return undefined
    }
  }
  return events.flatMap((event) => {
    const said = line(event)
    return said === undefined ? [] : [`${said[0].padEnd(8)} ${said[1]}`]
  })
}

/** A receipt as a line. */
export const receipt = (self: Receipt.Receipt): string => {
  const reason = self.reason === undefined ? "" : ` (${self.reason})`
  const request = self.accepted && self.request !== undefined ? `, first carried by request ${self.request}` : ""
  return `receipt  [${self.inputId}] ${self.disposition}${reason}${request}`
}

/** Prints what the session has journalled so far. */
export const print = Effect.fn("timeline.print")(function* (
  session: Session.Session,
  inputs: ReadonlyArray<Input.Input>
) {
  const { sequence } = yield* session.status
  const events = yield* session.events().pipe(
    Stream.filter((event) => event.live === undefined),
    Stream.take(sequence),
    Stream.runCollect
  )
  yield* Effect.forEach(lines(events, inputs), (line) => Console.log(line), { discard: true })
})

const list = (ids: ReadonlyArray<string>): string => ids.map((id) => `[${id}]`).join(", ")

const carries = (ids: ReadonlyArray<string>): string =>
  ids.length === 0 ? "carries nothing new" : `carries ${list(ids)}`

const because = (ids: ReadonlyArray<string> | undefined): string => (ids === undefined ? "" : ` ${list(ids)}`)

const found = (result: unknown): string => (result === undefined ? "" : `, ${JSON.stringify(result)}`)

const argumentsOf = (params: unknown): string =>
  typeof params === "object" && params !== null ? Object.values(params).map(String).join(", ") : String(params)
