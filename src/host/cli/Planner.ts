/**
 * The embedded language model of the terminal program: offline, without a key, and deterministic. It answers each
 * request from the request alone, as `Plan.next` decides, and streams its words at a pace that leaves a person time to
 * type. It calls only tools the request declares.
 *
 * @since 0.1.0
 */
import { Duration, Effect, Layer, Predicate, Stream } from "effect"
import { LanguageModel, type Prompt, type Response } from "effect/ai"
import * as Plan from "./Plan.ts"

/**
 * How the planner behaves.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The wait before each word and each call of a streamed response. 150 milliseconds unless said; zero never waits. */
  readonly pace?: Duration.Input | undefined
  /** How many files one response reads and moves. 2 unless said. */
  readonly filesPerStep?: number | undefined
  /** Whether the calls of a response may run at once, so that none may need another's outcome. Not unless said. */
  readonly together?: boolean | undefined
}

/**
 * The pace of a planner nobody gave one: 150 milliseconds.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultPace: Duration.Duration = Duration.millis(150)

/**
 * Makes the model. `generateText` answers at once, whatever the pace.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<LanguageModel.LanguageModel> => {
  const pace = Duration.fromInputUnsafe(options?.pace ?? defaultPace)
  const waits = Duration.isGreaterThan(pace, Duration.zero)
  const answer = (request: LanguageModel.ProviderOptions): Plan.Next =>
    declared(Plan.next(request.prompt.content, options), request)

  return LanguageModel.make({
    supportsSystemMessagesInHistory: Effect.succeed(true),
    generateText: (request) =>
      Effect.sync(() => {
        const next = answer(request)
        return [{ type: "text", text: next.text }, ...next.calls.map(callPart), finishPart(request.prompt, next)]
      }),
    streamText: (request) => {
      const parts = Stream.suspend(() => Stream.fromIterable(streamParts(request.prompt, answer(request))))
      return waits
        ? Stream.mapEffect(parts, (part) =>
            isPaced(part) ? Effect.as(Effect.sleep(pace), part) : Effect.succeed(part)
          )
        : parts
    }
  })
}

/**
 * The model as the `LanguageModel` of whatever is built on it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

const isPaced = (part: Response.StreamPartEncoded): boolean => part.type === "text-delta" || part.type === "tool-call"

/** A call to a tool that is not offered would only be refused: the planner says what it lacks instead. */
const declared = (next: Plan.Next, request: LanguageModel.ProviderOptions): Plan.Next => {
  const offered = new Set(request.toolChoice === "none" ? [] : request.tools.map((tool) => tool.name))
  const missing = Array.from(new Set(next.calls.map((call) => call.name))).filter((name) => !offered.has(name))
  return missing.length === 0
    ? next
    : { text: `I cannot go on: I may not use ${missing.join(" and ")} here.`, calls: [] }
}

const streamParts = (prompt: Prompt.Prompt, next: Plan.Next): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id: "text_1" },
  ...(next.text.match(/\S+\s*/g) ?? []).map((delta) => ({ type: "text-delta" as const, id: "text_1", delta })),
  { type: "text-end", id: "text_1" },
  ...next.calls.map(callPart),
  finishPart(prompt, next)
]

const callPart = (call: Plan.Call): Response.ToolCallPartEncoded => ({
  type: "tool-call",
  id: call.id,
  name: call.name,
  params: call.params
})

const finishPart = (prompt: Prompt.Prompt, next: Plan.Next): Response.FinishPartEncoded => {
  const input = tokens(prompt.content.reduce((sum, message) => sum + lengthOf(message.content), 0))
  const text = tokens(next.text.length)
  const calls = tokens(next.calls.reduce((sum, call) => sum + lengthOf(call.params), 0))
  return {
    type: "finish",
    reason: next.calls.length > 0 ? "tool-calls" : "stop",
    usage: {
      inputTokens: { uncached: input, total: input, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: text + calls, text, reasoning: 0 }
    }
  }
}

/** Four characters a token, the usual rule of thumb: nothing here has a tokenizer. */
const tokens = (characters: number): number => Math.ceil(characters / 4)

const lengthOf = (content: unknown): number =>
  Predicate.isString(content) ? content.length : JSON.stringify(content).length
