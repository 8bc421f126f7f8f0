import { AiError, Response } from "effect/ai"
import { Array as Arr, DateTime, type Effect, Result } from "effect"
import { Base64 } from "effect/encoding"

/** One piece of a scripted response. `Emit` numbers its own parts, so that ids are unique in a conversation. */
export type Segment =
  | { readonly _tag: "Emit"; readonly parts: (fresh: (kind: string) => string) => ReadonlyArray<Encoded> }
  | { readonly _tag: "Finish"; readonly reason: Response.FinishReason; readonly usage: EncodedUsage | undefined }
  | { readonly _tag: "NoFinish" }
  | { readonly _tag: "Wait"; readonly effect: Effect.Effect<unknown> }
  | { readonly _tag: "Fail"; readonly error: AiError.AiError | AiError.AiErrorReason }
  | { readonly _tag: "Hang" }

export type Encoded = Response.StreamPartEncoded
export type EncodedUsage = typeof Response.Usage.Encoded

/** What a provider stream does at one pull. */
export type Move =
  | { readonly _tag: "Emit"; readonly parts: Arr.NonEmptyReadonlyArray<Encoded> }
  | { readonly _tag: "Wait"; readonly effect: Effect.Effect<unknown> }
  | { readonly _tag: "Fail"; readonly error: AiError.AiError }
  | { readonly _tag: "Hang" }

export interface Plan {
  readonly moves: ReadonlyArray<Move>
  readonly finish: Response.FinishReason | undefined
}

export interface PlanOptions {
  readonly index: number
  readonly usage: EncodedUsage
  readonly chunks: "step" | "part"
  readonly method: string
}

const isAiError = (error: AiError.AiError | AiError.AiErrorReason): error is AiError.AiError => AiError.isAiError(error)

/** Lays a step out as pulls. The finish part that the script left out is added, unless the response fails or hangs. */
export const plan = (segments: ReadonlyArray<Segment>, options: PlanOptions): Plan => {
  const moves: Array<Move> = []
  let numbered = 0
  let reason: Response.FinishReason | undefined
  let usage = options.usage
  let finishes = true
  let finish: Response.FinishReason | undefined
  let calls = false
  let chunk: Array<Encoded> = []
  const fresh = (kind: string) => `${kind}_${options.index}_${++numbered}`
  const flush = () => {
    if (Arr.isReadonlyArrayNonEmpty(chunk)) moves.push({ _tag: "Emit", parts: chunk })
    chunk = []
  }
  const emit = (part: Encoded) => {
    if (part.type === "finish") {
      finish = part.reason
      finishes = false
    }
    if (part.type === "tool-call" && part.providerExecuted !== true) calls = true
    chunk.push(part)
    if (options.chunks === "part") flush()
  }
  for (const segment of segments) {
    switch (segment._tag) {
      case "Emit": {
        flush()
        segment.parts(fresh).forEach(emit)
        break
      }
      case "Finish": {
        reason = segment.reason
        usage = segment.usage ?? usage
        break
      }
      case "NoFinish": {
        finishes = false
        break
      }
      case "Wait": {
        flush()
        moves.push(segment)
        break
      }
      case "Fail": {
        flush()
        const error = isAiError(segment.error)
          ? segment.error
          : AiError.make({ module: "ScriptedModel", method: options.method, reason: segment.error })
        moves.push({ _tag: "Fail", error })
        return { moves, finish }
      }
      case "Hang": {
        flush()
        moves.push(segment)
        return { moves, finish }
      }
    }
  }
  if (finishes) emit({ type: "finish", reason: reason ?? (calls ? "tool-calls" : "stop"), usage })
  flush()
  return { moves, finish }
}

/** The decoded form of a part the script made itself, without a decoder. */
export const decode = (part: Encoded): Response.AnyPart => {
  switch (part.type) {
    case "finish":
      return Response.makePart("finish", { ...part, usage: new Response.Usage(part.usage), response: undefined })
    case "response-metadata": {
      const timestamp = part.timestamp === undefined ? undefined : DateTime.toUtc(DateTime.makeUnsafe(part.timestamp))
      return Response.makePart("response-metadata", { ...part, timestamp })
    }
    case "file": {
      const data = Result.getOrElse(Base64.decode(part.data), () => new Uint8Array())
      return Response.makePart("file", { ...part, data })
    }
    case "tool-result": {
      const { providerExecuted = false, preliminary = false } = part
      // `makePart` cannot type a result whose tool it does not know; the fields are the ones a decoder would give
      return Response.makePart("tool-result", {
        ...part,
        encodedResult: part.result,
        providerExecuted,
        preliminary
      } as unknown as Parameters<typeof Response.makePart<"tool-result">>[1])
    }
    case "tool-call":
      return Response.makePart("tool-call", { ...part, providerExecuted: part.providerExecuted ?? false })
    case "tool-params-start":
      return Response.makePart("tool-params-start", { ...part, providerExecuted: part.providerExecuted ?? false })
    default:
      // these parts are encoded as they are: only the brand and the metadata are added
      return Response.makePart(part.type, part as never)
  }
}

/** Folds a streamed response into the parts a single answer has. */
export const fold = (parts: Iterable<Encoded>): Array<Response.PartEncoded> => {
  const out: Array<Response.PartEncoded> = []
  const open = new Map<string, string>()
  for (const part of parts) {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        open.set(part.id, "")
        break
      }
      case "text-delta":
      case "reasoning-delta": {
        open.set(part.id, (open.get(part.id) ?? "") + part.delta)
        break
      }
      case "text-end": {
        out.push({ type: "text", text: open.get(part.id) ?? "" })
        break
      }
      case "reasoning-end": {
        out.push({ type: "reasoning", text: open.get(part.id) ?? "" })
        break
      }
      case "tool-params-start":
      case "tool-params-delta":
      case "tool-params-end":
      case "error":
        break
      default:
        out.push(part)
    }
  }
  return out
}
