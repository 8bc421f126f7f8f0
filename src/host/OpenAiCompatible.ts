/**
 * A `LanguageModel` layer for servers that speak the OpenAI-compatible streaming `/chat/completions` protocol, over
 * any `effect/http` `HttpClient`.
 *
 * A response is reported as it was received: tool calls keep the name and the parameters the model wrote. A response
 * cut before its finish reason ends without a `finish` part and without tool calls, so a truncated call is never
 * mistaken for a whole one.
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming
 * @since 0.1.0
 */
import { Cause, Clock, DateTime, Effect, Layer, Option, Predicate, Result, Schema, Stream } from "effect"
import type { Duration, Redacted } from "effect"
import { AiError, IdGenerator, LanguageModel, OpenAiStructuredOutput, Prompt, Response, Tool } from "effect/ai"
import { Base64, Sse } from "effect/encoding"
import { Headers, HttpClient, HttpClientRequest, UrlParams } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"

/**
 * Where the model is served and how it is asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The model's name as the server knows it. */
  readonly model: string
  /** The address that `/chat/completions` is appended to, such as `https://api.openai.com/v1`; without a query. */
  readonly baseUrl: string
  /** Sent as a bearer token. Leave it out for a local server that wants none. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Further fields of every request body, such as `temperature`. The fields this module writes itself win. */
  readonly body?: { readonly [field: string]: Schema.Json } | undefined
}

/**
 * A `LanguageModel` that asks the server of `options`.
 *
 * `streamText` with `disableToolCallResolution: true` and `toolCallValidation: "deferred"` is implemented directly. It
 * checks the HTTP status, the content type and the shape of every chunk, and it encodes the request before anything is
 * sent; every failure is an `AiError`. It does not decode the parts it has just built from those checked chunks, as
 * decoding them could only repeat the check, and it does not look through the prompt for tool approvals: the caller
 * that defers validation runs the tools itself, and approvals have no place on this wire. Tool names and parameters are
 * the caller's to validate, which is what `"deferred"` asks for. A `Telemetry.CurrentSpanTransformer` is not called.
 *
 * Every other call goes through `LanguageModel.make` over the same requests, with everything it checks. There
 * `generateText` and `generateObject` fail with `InvalidOutputError` when the response has no finish reason.
 *
 * Chat completions have no previous response id, so a `ResponseIdTracker` changes nothing: the whole prompt is sent.
 * Reasoning and files of the assistant have no field in the protocol and are left out of the request.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: (options: Options) => Effect.Effect<LanguageModel.LanguageModel, never, HttpClient.HttpClient> =
  Effect.fnUntraced(function* (options) {
    const ask = yield* makeAsk(options)

    const checked = yield* LanguageModel.make({
      generateText: (request) => Effect.flatMap(Stream.runCollect(ask(request)), collect),
      streamText: (request) => Stream.map(ask(request), encodePart),
      codecTransformer: OpenAiStructuredOutput.toCodecOpenAI
    })

    const direct = (request: StreamTextOptions) =>
      Effect.gen(function* () {
        const { toolkit, toolChoice = "auto" } = request
        const resolved = Effect.isEffect(toolkit) ? yield* toolkit : toolkit
        const tools = Object.values(resolved?.tools ?? {})
        return ask({
          prompt: Prompt.make(request.prompt),
          tools:
            typeof toolChoice === "object" && "oneOf" in toolChoice
              ? tools.filter((tool) => toolChoice.oneOf.includes(tool.name))
              : tools,
          toolChoice,
          responseFormat: { type: "text" }
        })
      }).pipe(
        Stream.unwrap,
        Stream.withSpan("LanguageModel.streamText", {
          kind: "client",
          attributes: { "gen_ai.request.model": options.model, "gen_ai.output.type": "text" }
        })
      )

    // The interface computes its part, error and service types from the caller's options; no single body has them.
    const checkedStream = checked.streamText as (request: StreamTextOptions) => ReturnType<typeof direct>
    const streamText = (request: StreamTextOptions) =>
      request.disableToolCallResolution === true && request.toolCallValidation === "deferred"
        ? direct(request)
        : checkedStream(request)

    return LanguageModel.LanguageModel.of({
      ...checked,
      streamText: streamText as LanguageModel.LanguageModel["streamText"]
    })
  })

/**
 * Provides the `LanguageModel` of {@link make}.
 *
 * Errors are `AiError`s: 401 and 403 `AuthenticationError`, 429 `RateLimitError` with `retryAfter`, spent credit
 * `QuotaExhaustedError`, 5xx `InternalProviderError`, an unreachable host or a broken connection `NetworkError`, a body
 * that is no event stream `InvalidResponseError`, a malformed chunk `InvalidOutputError`. Interrupting the stream
 * aborts the request and closes its connection.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

// -----------------------------------------------------------------------------
// The protocol
// -----------------------------------------------------------------------------

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optional(Schema.NullOr(schema))

const Problem = Schema.Union([
  Schema.String,
  Schema.Struct({
    message: maybe(Schema.String),
    type: maybe(Schema.String),
    code: maybe(Schema.Union([Schema.String, Schema.Finite]))
  })
])
type Problem = typeof Problem.Type

const CallDelta = Schema.Struct({
  index: maybe(Schema.Int),
  id: maybe(Schema.String),
  function: maybe(Schema.Struct({ name: maybe(Schema.String), arguments: maybe(Schema.String) }))
})

const TokenUsage = Schema.Struct({
  prompt_tokens: maybe(Schema.Int),
  completion_tokens: maybe(Schema.Int),
  prompt_tokens_details: maybe(Schema.Struct({ cached_tokens: maybe(Schema.Int) })),
  completion_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) }))
})

const Chunk = Schema.Struct({
  id: maybe(Schema.String),
  model: maybe(Schema.String),
  created: maybe(Schema.Finite),
  error: maybe(Problem),
  choices: maybe(
    Schema.Array(
      Schema.Struct({
        delta: maybe(
          Schema.Struct({
            content: maybe(Schema.String),
            refusal: maybe(Schema.String),
            reasoning_content: maybe(Schema.String),
            reasoning: maybe(Schema.String),
            tool_calls: maybe(Schema.Array(CallDelta))
          })
        ),
        finish_reason: maybe(Schema.String)
      })
    )
  ),
  usage: maybe(TokenUsage)
})
type Chunk = typeof Chunk.Type

const end = "[DONE]"
const decodeChunk = Schema.decodeResult(Schema.fromJsonString(Chunk))

// -----------------------------------------------------------------------------
// The request
// -----------------------------------------------------------------------------

type Request = Pick<LanguageModel.ProviderOptions, "prompt" | "tools" | "toolChoice" | "responseFormat">
type StreamTextOptions = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>
type Reason = AiError.AiErrorReason
type HttpContext = typeof AiError.HttpContext.Type

const makeAsk = Effect.fnUntraced(function* (options: Options) {
  const client = yield* HttpClient.HttpClient
  const ids = Option.getOrElse(
    yield* Effect.serviceOption(IdGenerator.IdGenerator),
    () => IdGenerator.defaultIdGenerator
  )
  const host = UrlParams.redactUrl(options.baseUrl)
  const declarations = new WeakMap<Tool.Any, object>()

  const unsigned = HttpClientRequest.post("/chat/completions").pipe(
    HttpClientRequest.prependUrl(options.baseUrl),
    HttpClientRequest.accept("text/event-stream")
  )
  const post = options.apiKey === undefined ? unsigned : HttpClientRequest.bearerToken(unsigned, options.apiKey)

  // Deriving a tool's JSON schema takes about 100 µs, on every request; a toolkit's tools keep their identity.
  const declareCached = (tool: Tool.Any) => {
    const known = declarations.get(tool)
    return known !== undefined
      ? Effect.succeed(known)
      : Effect.tap(declare(tool), (declaration) => Effect.sync(() => declarations.set(tool, declaration)))
  }

  const encode = Effect.fnUntraced(function* (request: Request) {
    const foreign = findForeignFile(request.prompt)
    if (foreign !== undefined) {
      return yield* new AiError.InvalidUserInputError({
        description: `chat completions take images, not a file of type ${foreign.mediaType}`
      })
    }
    const tools = yield* Effect.forEach(request.tools, declareCached)
    const format = request.responseFormat.type === "json" ? yield* jsonFormat(request.responseFormat) : undefined
    return yield* Effect.try({
      try: () =>
        JSON.stringify({
          ...options.body,
          model: options.model,
          messages: request.prompt.content.flatMap(toMessages),
          ...(tools.length === 0 ? undefined : { tools, tool_choice: toToolChoice(request.toolChoice) }),
          ...(format === undefined ? undefined : { response_format: format }),
          stream: true,
          stream_options: { include_usage: true }
        }),
      catch: (cause) => networkError("EncodeError", post.url, `the request is not JSON: ${rootMessage(cause)}`, cause)
    })
  })

  const send = (body: string) =>
    client.execute(HttpClientRequest.bodyText(post, body, "application/json")).pipe(
      Effect.catch((error) =>
        error.reason._tag === "StatusCodeError"
          ? Effect.succeed(error.reason.response)
          : Effect.fail(fromHttpClientError(error, `${host} could not be reached`))
      ),
      Effect.flatMap((response) => accept(response, host))
    )

  return (request: Request): Stream.Stream<Part, AiError.AiError> =>
    Effect.gen(function* () {
      const response = yield* send(yield* encode(request))
      return read(response, yield* ids.generateId(), host)
    }).pipe(Stream.unwrap, Stream.mapError(fail))
})

const declare = (tool: Tool.Any): Effect.Effect<object, Reason> => {
  if (Tool.isProviderDefined(tool)) {
    return Effect.fail(
      new AiError.ToolConfigurationError({
        toolName: tool.name,
        description: "chat completions have no provider-defined tools"
      })
    )
  }
  const strict = Tool.getStrictMode(tool)
  return Effect.map(
    jsonSchema(() => Tool.getJsonSchema(tool), `tool '${tool.name}'`),
    (parameters) => ({
      type: "function",
      function: {
        name: tool.name,
        description: Tool.getDescription(tool),
        parameters,
        ...(strict === undefined ? undefined : { strict })
      }
    })
  )
}

const jsonFormat = (format: Extract<Request["responseFormat"], { readonly type: "json" }>) =>
  Effect.map(
    jsonSchema(() => OpenAiStructuredOutput.toCodecOpenAI(format.schema).jsonSchema, `object '${format.objectName}'`),
    (schema) => ({
      type: "json_schema",
      json_schema: { name: format.objectName.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64), schema, strict: true }
    })
  )

const jsonSchema = (derive: () => object, subject: string): Effect.Effect<object, Reason> =>
  Effect.try({
    try: derive,
    catch: (cause) => new AiError.UnsupportedSchemaError({ description: `${subject}: ${rootMessage(cause)}` })
  })

const toToolChoice = (choice: Request["toolChoice"]) =>
  typeof choice === "string"
    ? choice
    : "tool" in choice
      ? { type: "function", function: { name: choice.tool } }
      : (choice.mode ?? "auto")

const findForeignFile = (prompt: Prompt.Prompt): Prompt.FilePart | undefined => {
  for (const message of prompt.content) {
    if (message.role !== "user") continue
    for (const part of message.content) {
      if (part.type === "file" && !part.mediaType.startsWith("image/")) return part
    }
  }
  return undefined
}

const toMessages = (message: Prompt.Message): ReadonlyArray<object> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return [{ role: "user", content: toUserContent(message.content) }]
    case "assistant":
      return toAssistantMessages(message.content)
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [toToolMessage(part)] : []))
  }
}

const toUserContent = (parts: ReadonlyArray<Prompt.UserMessagePart>) => {
  const [first] = parts
  if (first === undefined) return ""
  if (parts.length === 1 && first.type === "text") return first.text
  return parts.map((part) =>
    part.type === "text" ? { type: "text", text: part.text } : { type: "image_url", image_url: { url: fileUrl(part) } }
  )
}

const fileUrl = ({ data, mediaType }: Prompt.FilePart): string => {
  if (data instanceof URL) return data.href
  if (typeof data !== "string") return `data:${mediaType};base64,${Base64.encode(data)}`
  return /^(data|https?):/i.test(data) ? data : `data:${mediaType};base64,${data}`
}

// A call another provider executed has its result in the same message; here it must follow as a message of its own.
const toAssistantMessages = (parts: ReadonlyArray<Prompt.AssistantMessagePart>): ReadonlyArray<object> => {
  const results = parts.filter((part) => part.type === "tool-result")
  const calls = parts
    .filter((part) => part.type === "tool-call")
    .filter((call) => !call.providerExecuted || results.some((result) => result.id === call.id))
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("")
  if (text === "" && calls.length === 0) return []
  const assistant = {
    role: "assistant",
    content: text === "" ? null : text,
    ...(calls.length === 0
      ? undefined
      : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: JSON.stringify(call.params) ?? "{}" }
          }))
        })
  }
  const answered = results.filter((result) => calls.some((call) => call.id === result.id))
  return [assistant, ...answered.map(toToolMessage)]
}

const toToolMessage = ({ id, modelOutput, result }: Prompt.ToolResultPart) => ({
  role: "tool",
  tool_call_id: id,
  content:
    modelOutput !== undefined
      ? Prompt.toolModelOutputToText(modelOutput)
      : typeof result === "string"
        ? result
        : (JSON.stringify(result) ?? "null")
})

// -----------------------------------------------------------------------------
// The response
// -----------------------------------------------------------------------------

type Part = Extract<
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

const read = (
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

const encodePart = (part: Part): Response.StreamPartEncoded =>
  part.type === "response-metadata"
    ? { ...part, timestamp: part.timestamp === undefined ? undefined : DateTime.formatIso(part.timestamp) }
    : part

const collect = (parts: ReadonlyArray<Part>): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> => {
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

// -----------------------------------------------------------------------------
// Errors
// -----------------------------------------------------------------------------

const fail = (reason: Reason) => AiError.make({ module: "OpenAiCompatible", method: "chatCompletions", reason })

/** Lets an event stream through; anything else the server answered is an error, whatever its status. */
const accept = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse, host: string) {
  const { headers, status } = response
  const type = headers["content-type"] ?? ""
  const ok = status >= 200 && status < 300
  if (ok && !/^(text\/html|application\/json)/i.test(type)) return response

  const body = yield* Effect.orElseSucceed(response.text, () => "")
  const problem = Result.getOrUndefined(decodeChunk(body))?.error
  if (!ok) {
    const now = yield* Clock.currentTimeMillis
    const redacted = yield* Headers.CurrentRedactedNames
    return yield* toReason(problem ?? body, status, {
      host,
      retryAfter: retryAfter(headers["retry-after"], now),
      http: { response: { status, headers: Headers.redact(headers, redacted) }, body: body.slice(0, 2000) }
    })
  }
  if (Predicate.isNotNullish(problem)) return yield* fromProblem(problem)
  return yield* new AiError.InvalidResponseError({
    description: `${host} answered ${type} and not an event stream; check the base URL`
  })
})

const retryAfter = (header: string | undefined, now: number): Duration.Duration | undefined =>
  Result.fromNullishOr(header, () => "absent").pipe(
    Result.flatMap(Headers.parseRetryAfter),
    Result.map((value) => Headers.retryAfterDelay(value, now)),
    Result.getOrUndefined
  )

const problemKinds: ReadonlyMap<unknown, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["invalid_api_key", 401],
  ["permission_error", 403],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429]
])

/** A problem inside a response that had already begun: its kind stands in for the status it can no longer have. */
const fromProblem = (problem: Problem): Reason => {
  const { code, type } = typeof problem === "string" ? {} : problem
  const status = problemKinds.get(code) ?? problemKinds.get(type) ?? Number(code)
  return toReason(problem, status >= 400 && status < 600 ? status : 500)
}

const toReason = (
  problem: Problem,
  status: number,
  from?: { readonly host: string; readonly retryAfter: Duration.Duration | undefined; readonly http: HttpContext }
): Reason => {
  const { code, message, type } = typeof problem === "string" ? { message: problem } : problem
  const text = (message ?? "").trim().slice(0, 500) || `HTTP ${status}`
  const description = from === undefined ? text : `${from.host}: ${text}`
  const context = from === undefined ? undefined : { http: from.http }
  if (status === 402 || code === "insufficient_quota" || type === "insufficient_quota") {
    return new AiError.QuotaExhaustedError({ ...context })
  }
  if (code === "content_filter" || code === "content_policy_violation") {
    return new AiError.ContentPolicyError({ description, ...context })
  }
  switch (status) {
    case 404:
      return new AiError.InvalidRequestError({
        description: `${description} (404; check the base URL and the model's name)`,
        ...context
      })
    case 408:
      return new AiError.InternalProviderError({ description, ...context })
    case 413:
    case 422:
      return new AiError.InvalidRequestError({ description, ...context })
    case 429:
      return new AiError.RateLimitError({ retryAfter: from?.retryAfter, ...context })
    default:
      return AiError.reasonFromHttpStatus({ status, description, ...context })
  }
}

const fromHttpClientError = ({ reason }: HttpClientError.HttpClientError, what: string): Reason => {
  const cause = "cause" in reason ? reason.cause : undefined
  const kind = reason._tag === "EncodeError" || reason._tag === "InvalidUrlError" ? reason._tag : "TransportError"
  return networkError(kind, reason.request.url, `${what}: ${rootMessage(cause ?? reason)}`, cause)
}

const networkError = (
  reason: AiError.NetworkError["reason"],
  url: string,
  description: string,
  cause: unknown
): AiError.NetworkError =>
  new AiError.NetworkError({ reason, method: "POST", url: UrlParams.redactUrl(url), description, cause })

const rootMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.cause !== undefined) return rootMessage(error.cause)
  if (error.message !== "") return error.message
  return "code" in error ? String(error.code) : error.name
}
