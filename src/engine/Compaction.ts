/**
 * A context preparation that summarises the older part of a long conversation with the model itself. It cuts only between whole
 * steps, keeps what people said word for word, never summarises an input no request has carried, and leaves the journal as it
 * is: what is summarised is only not sent (L-P2).
 *
 * @since 0.1.0
 */
import { Effect, Layer } from "effect"
import { LanguageModel, Prompt } from "effect/ai"
import * as Input from "../domain/Input.ts"
import * as ContextPreparation from "./ContextPreparation.ts"
import * as ToolResult from "./ToolResult.ts"

/**
 * Lengths are UTF-16 code units of the messages' text and JSON, which a provider's tokens follow at about four to one.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** A conversation no longer than this is sent as it is. Default 200,000. */
  readonly maxLength?: number
  /** How much of the newest part is kept as it is. Default a third of `maxLength`. */
  readonly keepLength?: number
  /** The longest summary. Default 8,000. */
  readonly summaryLength?: number
  /** What the model is told to keep. */
  readonly instructions?: string
}

const defaultInstructions =
  "Summarise the conversation below for the agent that will continue it. Keep the task, decisions, facts found, files and " +
  "names, what was done and what is still to be done. Say nothing that is not in it."

const lengthOf = (message: Prompt.Message): number =>
  typeof message.content === "string" ? message.content.length : JSON.stringify(message.content).length

const total = (messages: ReadonlyArray<Prompt.Message>): number =>
  messages.reduce((sum, message) => sum + lengthOf(message), 0)

/** A message as text, so that no provider needs the tools it names. */
const render = (message: Prompt.Message): string => {
  if (typeof message.content === "string") return `${message.role}: ${message.content}`
  const parts = message.content.map((part) => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return part.text
      case "tool-call":
        return `[calls ${part.name} ${JSON.stringify(part.params)}]`
      case "tool-result":
        return `[${part.name} answered ${JSON.stringify(ToolResult.bound(toJson(part.result), 2000))}]`
      case "file":
        return `[a file of type ${part.mediaType}]`
      case "tool-approval-request":
      case "tool-approval-response":
        return ""
    }
  })
  return `${message.role}: ${parts.join("\n")}`
}

const toJson = (u: unknown) => (typeof u === "string" ? u : (JSON.stringify(u) ?? "null"))

/**
 * Where to cut: the first place between two steps from which the rest is short enough, or the last such place there is; never
 * past an input that no request has carried. 0 when nothing may be cut.
 */
const cutAt = (body: ReadonlyArray<Prompt.Message>, keepLength: number, uncarried: ReadonlyArray<string>): number => {
  const fresh = new Set(uncarried)
  const firstFresh = body.findIndex((message) => fresh.has(Input.idOfMessage(message) ?? ""))
  const last = firstFresh < 0 ? body.length - 1 : firstFresh
  let rest = total(body)
  let at = 0
  for (const [index, message] of body.entries()) {
    // A tool message belongs to the response before it.
    if (index > 0 && index <= last && message.role !== "tool") {
      at = index
      if (rest <= keepLength) return at
    }
    rest -= lengthOf(message)
  }
  return at
}

/**
 * Makes the preparation over a model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options = {}
): Effect.Effect<ContextPreparation.Service, never, LanguageModel.LanguageModel> =>
  Effect.map(LanguageModel.LanguageModel, (model) => {
    const maxLength = options.maxLength ?? 200_000
    const keepLength = options.keepLength ?? Math.floor(maxLength / 3)
    const summaryLength = options.summaryLength ?? 8000
    // Kept under the last message it covers, and gone with that message.
    const summaries = new WeakMap<Prompt.Message, Summary>()

    const summarise = (
      head: ReadonlyArray<Prompt.Message>,
      before: Summary | undefined
    ): Effect.Effect<Summary, unknown> =>
      Effect.map(
        model.generateText({
          prompt: [
            { role: "system", content: options.instructions ?? defaultInstructions },
            { role: "user", content: [Prompt.makePart("text", { text: head.map(render).join("\n\n") })] }
          ]
        }),
        ({ text }): Summary => {
          const asked = head.flatMap((message) => (Input.idOfMessage(message) === undefined ? [] : [render(message)]))
          const words = [...(before?.words ?? []), ...asked]
          const verbatim = words.length === 0 ? "" : `\n\nWhat was asked, word for word:\n${words.join("\n")}`
          const told = String(ToolResult.bound(text, summaryLength))
          return {
            words,
            message: ContextPreparation.summary(`[Summary of the earlier conversation]\n${told}${verbatim}`)
          }
        }
      )

    return (prompt, info) =>
      Effect.gen(function* () {
        const start = prompt.content.findIndex((message) => message.role !== "system")
        if (start < 0 || total(prompt.content) <= maxLength) return prompt
        const system = prompt.content.slice(0, start)
        const whole = prompt.content.slice(start)
        const covered = whole.findLastIndex((message) => summaries.has(message))
        const closing = whole[covered]
        const before = closing && summaries.get(closing)
        const rest = whole.slice(covered + 1)
        const body = before === undefined ? rest : [before.message, ...rest]
        if (total(system) + total(body) <= maxLength) return Prompt.fromMessages([...system, ...body])
        const at = cutAt(body, keepLength, info.uncarried)
        const closes = body[at - 1]
        if (closes === undefined || closes === before?.message) return Prompt.fromMessages([...system, ...body])
        const summary = yield* summarise(body.slice(0, at), before)
        summaries.set(closes, summary)
        return Prompt.fromMessages([...system, summary.message, ...body.slice(at)])
      })
  })

interface Summary {
  readonly message: Prompt.UserMessage
  /** What people said in the part it covers. */
  readonly words: ReadonlyArray<string>
}

/**
 * Compacts what every session opened under it sends.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never, never, LanguageModel.LanguageModel> =>
  Layer.effect(ContextPreparation.ContextPreparation, make(options))
