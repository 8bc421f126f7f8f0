/**
 * The zero-latency provider and the no-op tool of everything that runs on Effect. Which generation asks is in the fiber's
 * context, so that one provider, one toolkit and one runtime serve all of them, as in a real host.
 */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { LanguageModel, Prompt, Response, Tool, Toolkit } from "effect/ai"
import type { Answer, Waiting, Work } from "../adapter.ts"

/** The generation a fiber belongs to; `steer` is set once it can be steered. */
export interface Driven {
  readonly work: Work
  calls: number
  steer: (text: string) => Effect.Effect<void>
}

export const drive = (work: Work): Driven => ({ work, calls: 0, steer: () => Effect.die("not steerable yet") })

const nobody = drive({ provider: () => "done", tool: () => undefined })

export const Current = Context.Reference<Driven>("test/bench/Current", { defaultValue: () => nobody })

const Noop = Tool.make("noop", { parameters: Schema.Struct({ x: Schema.Finite }), success: Schema.String })

export const toolkit = Toolkit.make(Noop)

const ok = Effect.succeed("ok")

export const handlers = toolkit.toLayer({
  noop: () =>
    Effect.flatMap(Current, (driven) => {
      const text = driven.work.tool()
      return text === undefined ? ok : Effect.andThen(driven.steer(text), ok)
    })
})

/** Interrupting it aborts the signal that it gives, as a request by `fetch` is aborted. */
export const waited = (waiting: Waiting): Effect.Effect<Answer> => Effect.promise((signal) => waiting(signal))

/** What the generation's provider says to these messages, and the number of its next call. */
export const asked = (messages: ReadonlyArray<unknown>): Effect.Effect<readonly [Answer, number]> =>
  Effect.flatMap(Current, (driven) => {
    const answer = driven.work.provider(messages)
    const call = ++driven.calls
    return typeof answer === "function"
      ? Effect.map(waited(answer), (answer) => [answer, call] as const)
      : Effect.succeed([answer, call] as const)
  })

/** The parts of an answer, one array a chunk of the wire. */
const chunked = <Part>(
  answer: Answer,
  parts: (answer: "tool" | "done") => ReadonlyArray<Part>,
  text: TextParts<Part>
) =>
  typeof answer === "string"
    ? Stream.fromArray(parts(answer))
    : Stream.fromIterable([text.start, ...Array.from({ length: answer.deltas }, () => text.delta), ...text.end], {
        chunkSize: 1
      })

interface TextParts<Part> {
  readonly start: Part
  readonly delta: Part
  readonly end: ReadonlyArray<Part>
}

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

const encodedFinish = (reason: "tool-calls" | "stop") => ({ type: "finish", reason, usage }) as const

const encodedText: TextParts<Response.StreamPartEncoded> = {
  start: { type: "text-start", id: "t" },
  delta: { type: "text-delta", id: "t", delta: "ok" },
  end: [{ type: "text-end", id: "t" }, encodedFinish("stop")]
}

const encodedParts =
  (call: number) =>
  (answer: "tool" | "done"): ReadonlyArray<Response.StreamPartEncoded> =>
    answer === "tool"
      ? [{ type: "tool-call", id: `c${call}`, name: "noop", params: { x: 1 } }, encodedFinish("tool-calls")]
      : [encodedText.start, encodedText.delta, ...encodedText.end]

/** Built by `LanguageModel.make`, as most providers are: the prompt is scanned, and every part decoded. */
export const made: Effect.Effect<LanguageModel.LanguageModel> = LanguageModel.make({
  generateText: ({ prompt }) =>
    Effect.map(asked(prompt.content), ([answer, call]) =>
      answer === "tool"
        ? [{ type: "tool-call", id: `c${call}`, name: "noop", params: { x: 1 } }, encodedFinish("tool-calls")]
        : [{ type: "text", text: "ok" }, encodedFinish("stop")]
    ),
  streamText: ({ prompt }) =>
    Stream.unwrap(
      Effect.map(asked(prompt.content), ([answer, call]) => chunked(answer, encodedParts(call), encodedText))
    )
})

const decodedUsage = new Response.Usage(usage)

const finish = (reason: "tool-calls" | "stop") =>
  Response.makePart("finish", { reason, usage: decodedUsage, response: undefined })

const decodedText: TextParts<Response.AnyPart> = {
  start: Response.makePart("text-start", { id: "t" }),
  delta: Response.makePart("text-delta", { id: "t", delta: "ok" }),
  end: [Response.makePart("text-end", { id: "t" }), finish("stop")]
}

const decodedParts =
  (call: number) =>
  (answer: "tool" | "done"): ReadonlyArray<Response.AnyPart> =>
    answer === "tool"
      ? [
          Response.makePart("tool-call", { id: `c${call}`, name: "noop", params: { x: 1 }, providerExecuted: false }),
          finish("tool-calls")
        ]
      : [decodedText.start, decodedText.delta, ...decodedText.end]

/**
 * Implements the interface itself, as `OpenAiCompatible` does for a caller that runs the tools: the parts it builds are
 * already decoded, and nothing scans the prompt.
 */
export const direct: Effect.Effect<LanguageModel.LanguageModel> = Effect.map(made, (checked) => {
  const streamText = (options: { readonly prompt: Prompt.RawInput }) =>
    Stream.unwrap(
      Effect.map(asked(Prompt.make(options.prompt).content), ([answer, call]) =>
        chunked(answer, decodedParts(call), decodedText)
      )
    )
  return LanguageModel.LanguageModel.of({
    ...checked,
    // The interface computes its part types from the caller's options; no single body has them.
    streamText: streamText as unknown as LanguageModel.LanguageModel["streamText"]
  })
})

export type Provider = "made" | "direct"

/** A provider of one of the two kinds and the tool's handler. */
export const layer = (provider: Provider) =>
  Layer.merge(Layer.effect(LanguageModel.LanguageModel, provider === "made" ? made : direct), handlers)
