/**
 * A streamed `/chat/completions` response as response parts. A response cut before its finish reason ends without a
 * `finish` part and without tool calls.
 *
 * @since 0.1.0
 */
import { Cause, DateTime, Effect, Option, Predicate, Result, Stream } from "effect"
import { AiError, Response, Tool } from "effect/ai"
import { Sse } from "effect/encoding"
import type { HttpClientResponse } from "effect/http"
import { fail, fromHttpClientError, fromProblem } from "./Failure.ts"
import { type CallDelta, type Chunk, decodeChunk, end, type Reason, type TokenUsage } from "./Protocol.ts"

/**
 * The parts a response is reported as.
 *
 * @category models
 * @since 0.1.0
 */
export type Part = Extract<
  Response.StreamPart<{}, "deferred">,
  { readonly type: `${"text" | "reasoning" | "tool-params"}-${string}` | "response-metadata" | "tool-call" | "finish" }
>

interface Call {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  readonly params: string
}

/** What has been received so far. At most one text or reasoning block is open; calls stay open until the end. */
interface Received {
  readonly announced: boolean
  readonly blocks: number
  readonly open: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined
  readonly calls: ReadonlyArray<Call>
  readonly finish: Response.FinishReason | undefined
  readonly usage: typeof TokenUsage.Type | undefined
  readonly ended: boolean
}

const nothing: Received = {
  announced: false,
  blocks: 0,
  open: undefined,
  calls: [],
  finish: undefined,
  usage: undefined,
  ended: false
}

/**
 * Reads the body of a response as it arrives.
 *
 * @category decoding
 * @since 0.1.0
 */
export const read = (
  response: HttpClientResponse.HttpClientResponse,
  responseId: string,
  host: string
): Stream.Stream<Part, Reason> =>
  response.stream.pipe(
    Stream.mapError((error) => fromHttpClientError(error, `the response of ${host} was cut`)),
    Stream.decodeText,
    events,
    settle,
    Stream.mapAccumEffect(
      () => nothing,
      (received, data) => Effect.fromResult(receive(received, data, responseId)),
      { onHalt: complete }
    )
  )

// `Sse.decode` fails on a `retry:` field, which a proxy may add to any event stream and which means nothing here.
const events = <E>(text: Stream.Stream<string, E>): Stream.Stream<string, E | Reason> =>
  Stream.mapAccumArrayEffect(
    text,
    () => {
      const pending: Array<string> = []
      const parser = Sse.makeParser((event) => {
        if (event._tag === "Event") pending.push(event.data)
      })
      return { parser, pending }
    },
    (state, pieces) => {
      for (const piece of pieces) {
        const error = state.parser.feed(piece)
        if (error !== undefined) return Effect.fail(new AiError.InvalidOutputError({ description: error.message }))
      }
      return Effect.succeed([state, state.pending.splice(0)] as const)
    }
  )

// Ending at `[DONE]` would abort a connection that the server is about to give back, and the next step would open a
// new one. So the end of the body is awaited for a moment; the finish part has already been emitted by then.
const settle = <E>(data: Stream.Stream<string, E>): Stream.Stream<string, E> =>
  Stream.transformPull(data, (pull) =>
    Effect.sync(() => {
      let done = false
      const rest = Effect.forever(pull).pipe(
        Effect.timeoutOrElse({ duration: "100 millis", orElse: () => Cause.done() }),
        Effect.catch(() => Cause.done())
      )
      const next = Effect.tap(pull, (events) => Effect.sync(() => (done = events.includes(end))))
      return Effect.suspend(() => (done ? rest : next))
    })
  )

const receive = (
  received: Received,
  data: string,
  responseId: string
): Result.Result<readonly [Received, ReadonlyArray<Part>], Reason> => {
  if (received.ended) return Result.succeed([received, []])
  if (data === end) return Result.succeed([{ ...received, ended: true }, complete(received)])
  const decoded = decodeChunk(data)
  if (Result.isFailure(decoded)) return Result.fail(AiError.InvalidOutputError.fromSchemaError(decoded.failure))
  const chunk = decoded.success
  if (Predicate.isNotNullish(chunk.error)) return Result.fail(fromProblem(chunk.error))
  if (Predicate.isNullish(chunk.choices)) {
    return Result.fail(new AiError.InvalidOutputError({ description: "a chunk without choices" }))
  }
  const parts: Array<Part> = []
  return Result.succeed([absorb(received, chunk, responseId, parts), parts])
}

const absorb = (received: Received, chunk: Chunk, responseId: string, parts: Array<Part>): Received => {
  const usage = chunk.usage ?? received.usage
  const choice = chunk.choices?.[0]
  if (choice === undefined) return { ...received, usage }
  if (!received.announced) parts.push(toMetadata(chunk))
  const { delta } = choice
  let next = received
  next = extend(next, "reasoning", delta?.reasoning_content || delta?.reasoning, parts)
  next = extend(next, "text", delta?.content || delta?.refusal, parts)
  for (const call of delta?.tool_calls ?? []) {
    next = extendCall(next, call, responseId, parts)
  }
  return { ...next, announced: true, usage, finish: toFinishReason(choice.finish_reason) ?? next.finish }
}

const toMetadata = ({ created, id, model }: Chunk) =>
  Response.makePart("response-metadata", {
    id: id || undefined,
    modelId: model || undefined,
    timestamp: created ? Option.getOrUndefined(DateTime.make(created * 1000)) : undefined
  })

const extend = (
  received: Received,
  kind: "text" | "reasoning",
  delta: string | null | undefined,
  parts: Array<Part>
): Received => {
  if (!delta) return received
  if (received.open?.kind === kind) {
    parts.push(Response.makePart(`${kind}-delta`, { id: received.open.id, delta }))
    return received
  }
  const open = { kind, id: String(received.blocks) }
  parts.push(
    ...close(received),
    Response.makePart(`${kind}-start`, { id: open.id }),
    Response.makePart(`${kind}-delta`, { id: open.id, delta })
  )
  return { ...received, open, blocks: received.blocks + 1 }
}

const close = ({ open }: Received): ReadonlyArray<Part> =>
  open === undefined ? [] : [Response.makePart(`${open.kind}-end`, { id: open.id })]

// Servers differ: some leave out the index, some give every parallel call index 0. An id that comes with a name and
// differs from the one at its index starts another call; anything else continues the last call at its index.
const extendCall = (
  received: Received,
  { function: fn, id, index }: typeof CallDelta.Type,
  responseId: string,
  parts: Array<Part>
): Received => {
  const delta = fn?.arguments ?? ""
  const at = received.calls.findLastIndex((call) => Predicate.isNullish(index) || call.index === index)
  const known = received.calls[at]
  if (known !== undefined && !(id && id !== known.id && fn?.name)) {
    if (delta === "") return received
    parts.push(Response.makePart("tool-params-delta", { id: known.id, delta }))
    return { ...received, calls: received.calls.with(at, { ...known, params: known.params + delta }) }
  }
  const call: Call = {
    index: index ?? undefined,
    id: id || `${responseId}_${received.calls.length}`,
    name: fn?.name ?? "",
    params: delta
  }
  parts.push(
    ...close(received),
    Response.makePart("tool-params-start", { id: call.id, name: call.name, providerExecuted: false })
  )
  if (delta !== "") parts.push(Response.makePart("tool-params-delta", { id: call.id, delta }))
  return { ...received, open: undefined, calls: [...received.calls, call] }
}

const complete = (received: Received): ReadonlyArray<Part> =>
  received.ended || received.finish === undefined
    ? []
    : [
        ...close(received),
        ...received.calls.flatMap(({ id, name, params }) => [
          Response.makePart("tool-params-end", { id }),
          Response.makePart("tool-call", { id, name, params: parseParams(params), providerExecuted: false })
        ]),
        Response.makePart("finish", { reason: received.finish, usage: toUsage(received.usage), response: undefined })
      ]

const parseParams = (text: string): unknown => {
  if (text.trim() === "") return {}
  try {
    return Tool.unsafeSecureJsonParse(text)
  } catch {
    return text
  }
}

const finishReasons: ReadonlyMap<string, Response.FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["content_filter", "content-filter"],
  ["error", "error"]
])

const toFinishReason = (reason: string | null | undefined): Response.FinishReason | undefined =>
  reason ? (finishReasons.get(reason) ?? "other") : undefined

const toUsage = (usage: Received["usage"]): Response.Usage => {
  const input = usage?.prompt_tokens ?? undefined
  const cacheRead = usage?.prompt_tokens_details?.cached_tokens ?? undefined
  const output = usage?.completion_tokens ?? undefined
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? undefined
  return new Response.Usage({
    inputTokens: { uncached: without(input, cacheRead), total: input, cacheRead, cacheWrite: undefined },
    outputTokens: { total: output, text: without(output, reasoning), reasoning }
  })
}

const without = (total: number | undefined, part: number | undefined): number | undefined =>
  total === undefined || part === undefined ? undefined : Math.max(0, total - part)

/**
 * A part as a provider of `LanguageModel.make` gives it.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodePart = (part: Part): Response.StreamPartEncoded =>
  part.type === "response-metadata"
    ? { ...part, timestamp: part.timestamp === undefined ? undefined : DateTime.formatIso(part.timestamp) }
    : part

/**
 * The parts of a whole response, or the failure of one that was cut.
 *
 * @category encoding
 * @since 0.1.0
 */
export const collect = (parts: ReadonlyArray<Part>): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> => {
  const content: Array<Response.PartEncoded> = []
  let text = ""
  for (const part of parts.map(encodePart)) {
    if (part.type === "text-delta" || part.type === "reasoning-delta") {
      text += part.delta
    } else if (part.type === "text-end" || part.type === "reasoning-end") {
      content.push({ type: part.type === "text-end" ? "text" : "reasoning", text })
      text = ""
    } else if (part.type === "response-metadata" || part.type === "tool-call" || part.type === "finish") {
      content.push(part)
    }
  }
  return parts.at(-1)?.type === "finish"
    ? Effect.succeed(content)
    : Effect.fail(fail(new AiError.InvalidOutputError({ description: "the response has no finish reason" })))
}
