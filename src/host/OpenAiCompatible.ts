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
import { Effect, Layer, Option, Stream } from "effect"
import type { Redacted, Schema } from "effect"
import { AiError, IdGenerator, LanguageModel, OpenAiStructuredOutput, Prompt } from "effect/ai"
import type { Tool } from "effect/ai"
import { HttpClient, HttpClientRequest, UrlParams } from "effect/http"
import { accept, fail, fromHttpClientError, networkError, rootMessage } from "./openai/Failure.ts"
import { declare, findForeignFile, jsonFormat, type Request, toMessages, toToolChoice } from "./openai/Request.ts"
import { collect, encodePart, type Part, read } from "./openai/Response.ts"

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
type StreamTextOptions = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>

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
