import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Layer, Redacted, Schema, Stream } from "effect"
import { LanguageModel, Prompt, Tool, Toolkit } from "effect/ai"
import type { AiError, Response as AiResponse } from "effect/ai"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import * as Http from "node:http"
import * as OpenAiCompatible from "../../src/host/OpenAiCompatible.ts"

// -----------------------------------------------------------------------------
// A server that speaks the protocol
// -----------------------------------------------------------------------------

interface Received {
  readonly url: string | undefined
  readonly authorization: string | undefined
  readonly body: { readonly [field: string]: unknown }
}

const isBody = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

const serve = (answer: (response: Http.ServerResponse, attempt: number) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly baseUrl: string; readonly received: Array<Received>; readonly server: Http.Server }>(
      (resume) => {
        const received: Array<Received> = []
        const server = Http.createServer((request, response) => {
          const pieces: Array<Uint8Array> = []
          request.on("data", (piece: Uint8Array) => pieces.push(piece))
          request.on("end", () => {
            const body: unknown = JSON.parse(Buffer.concat(pieces).toString())
            received.push({
              url: request.url,
              authorization: request.headers.authorization,
              body: isBody(body) ? body : {}
            })
            answer(response, received.length)
          })
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          resume(Effect.succeed({ baseUrl: `http://127.0.0.1:${port}/v1`, received, server }))
        })
      }
    ),
    ({ server }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

const begin = (response: Http.ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" })
const event = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  model: "small-2026",
  created: 1_700_000_000,
  choices: [{ index: 0, delta, finish_reason: finish }]
})
const text = (content: string) => chunk({ content })
const call = (index: number, fields: object) => chunk({ tool_calls: [{ index, ...fields }] })
const usage = (fields: object) => ({ id: "chatcmpl-1", model: "small-2026", choices: [], usage: fields })

const events =
  (...values: ReadonlyArray<unknown>) =>
  (response: Http.ServerResponse) => {
    begin(response).end([...values, "[DONE]"].map(event).join(""))
  }

const oneByOne = (bytes: Uint8Array) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
      controller.close()
    }
  })

const refuse =
  (status: number, error: object, headers: Http.OutgoingHttpHeaders = {}) =>
  (response: Http.ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify({ error }))
  }

// -----------------------------------------------------------------------------
// The caller
// -----------------------------------------------------------------------------

const deferred = { disableToolCallResolution: true, toolCallValidation: "deferred" } as const

const modelAt = (baseUrl: string, options?: Partial<OpenAiCompatible.Options>) =>
  OpenAiCompatible.layer({ model: "small", baseUrl, apiKey: Redacted.make("secret"), ...options }).pipe(
    Layer.provide(FetchHttpClient.layer)
  )

const ask = (baseUrl: string, prompt: Prompt.RawInput = "hi") =>
  LanguageModel.streamText({ prompt, ...deferred }).pipe(Stream.runCollect, Effect.provide(modelAt(baseUrl)))

const collect = (...values: ReadonlyArray<unknown>) =>
  Effect.flatMap(serve(events(...values)), ({ baseUrl }) => ask(baseUrl))

const failure = (answer: (response: Http.ServerResponse) => void) =>
  Effect.flatMap(serve(answer), ({ baseUrl }) => Effect.flip(ask(baseUrl)))

type Part = AiResponse.StreamPart<{}, "deferred">

const outline = (parts: ReadonlyArray<Part>) =>
  parts.map((part) =>
    "delta" in part
      ? `${part.type} ${part.delta}`
      : "id" in part && "name" in part
        ? `${part.type} ${part.name}`
        : part.type
  )

const calls = (parts: ReadonlyArray<Part>) =>
  parts.flatMap((part) => (part.type === "tool-call" ? [{ id: part.id, name: part.name, params: part.params }] : []))

const finish = (parts: ReadonlyArray<Part>) => parts.find((part) => part.type === "finish")

const reasonIs = <Tag extends AiError.AiErrorReason["_tag"]>(error: AiError.AiError, tag: Tag) => {
  const { reason } = error
  const is = (reason: AiError.AiErrorReason): reason is Extract<AiError.AiErrorReason, { readonly _tag: Tag }> =>
    reason._tag === tag
  if (!is(reason)) return assert.fail(`expected ${tag}, got ${reason._tag}: ${error.message}`)
  return reason
}

const Weather = Tool.make("weather", {
  description: "The weather of a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String
})
const Clock = Tool.make("clock", { success: Schema.String })
const tools = Toolkit.make(Weather, Clock)
const handlers = tools.toLayer({
  weather: ({ city }) => Effect.succeed(`rain in ${city}`),
  clock: () => Effect.succeed("noon")
})

describe("OpenAiCompatible", () => {
  describe("response", () => {
    it.live("text arrives between its start and its end, then the finish", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          chunk({ role: "assistant", content: "" }),
          text("Hel"),
          text("lo"),
          chunk({}, "stop")
        )
        assert.deepStrictEqual(outline(parts), [
          "response-metadata",
          "text-start",
          "text-delta Hel",
          "text-delta lo",
          "text-end",
          "finish"
        ])
        assert.strictEqual(finish(parts)?.reason, "stop")
      })
    )

    it.live("the metadata name the response, the model that answered and the time", () =>
      Effect.gen(function* () {
        const [metadata] = yield* collect(text("a"), chunk({}, "stop"))
        assert(metadata?.type === "response-metadata")
        assert.strictEqual(metadata.id, "chatcmpl-1")
        assert.strictEqual(metadata.modelId, "small-2026")
        assert.strictEqual(metadata.timestamp?.epochMilliseconds, 1_700_000_000_000)
      })
    )

    it.live("reasoning is closed before the text that follows it", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          chunk({ reasoning_content: "hm" }),
          chunk({ reasoning_content: "m" }),
          text("yes"),
          chunk({}, "stop")
        )
        assert.deepStrictEqual(outline(parts).slice(1, -1), [
          "reasoning-start",
          "reasoning-delta hm",
          "reasoning-delta m",
          "reasoning-end",
          "text-start",
          "text-delta yes",
          "text-end"
        ])
      })
    )

    it.live("arguments split over chunks become one call with parsed parameters", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          call(0, { id: "c1", type: "function", function: { name: "weather", arguments: "" } }),
          call(0, { function: { arguments: '{"ci' } }),
          call(0, { function: { arguments: 'ty":"Bonn"}' } }),
          chunk({}, "tool_calls")
        )
        assert.deepStrictEqual(outline(parts).slice(1), [
          "tool-params-start weather",
          'tool-params-delta {"ci',
          'tool-params-delta ty":"Bonn"}',
          "tool-params-end",
          "tool-call weather",
          "finish"
        ])
        assert.deepStrictEqual(calls(parts), [{ id: "c1", name: "weather", params: { city: "Bonn" } }])
        assert.strictEqual(finish(parts)?.reason, "tool-calls")
      })
    )

    it.live("interleaved parallel calls keep their own arguments and order", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          call(0, { id: "c1", function: { name: "weather", arguments: '{"city":' } }),
          call(1, { id: "c2", function: { name: "clock", arguments: "" } }),
          call(0, { function: { arguments: '"Bonn"}' } }),
          call(1, { function: { arguments: "{}" } }),
          chunk({}, "tool_calls")
        )
        assert.deepStrictEqual(calls(parts), [
          { id: "c1", name: "weather", params: { city: "Bonn" } },
          { id: "c2", name: "clock", params: {} }
        ])
      })
    )

    it.live("calls that share an index or have none are told apart by id and name", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          call(0, { id: "c1", function: { name: "weather", arguments: '{"city":"Bonn"}' } }),
          call(0, { id: "c2", function: { name: "weather", arguments: '{"city":"Ulm"}' } }),
          chunk({ tool_calls: [{ id: "c3", function: { name: "clock" } }] }),
          chunk({}, "tool_calls")
        )
        assert.deepStrictEqual(
          calls(parts).map(({ id, params }) => [id, params]),
          [
            ["c1", { city: "Bonn" }],
            ["c2", { city: "Ulm" }],
            ["c3", {}]
          ]
        )
      })
    )

    it.live("a call the server left without an id gets one that no other response has", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(events(call(0, { function: { name: "clock" } }), chunk({}, "tool_calls")))
        const [first] = calls(yield* ask(baseUrl))
        const [second] = calls(yield* ask(baseUrl))
        assert.isNotEmpty(first?.id)
        assert.notStrictEqual(first?.id, second?.id)
      })
    )

    it.live("arguments that are not JSON come back as the text the model wrote", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          call(0, { id: "c1", function: { name: "weather", arguments: "{city: Bonn" } }),
          call(1, { id: "c2", function: { name: "weather", arguments: '{"__proto__":{}}' } }),
          chunk({}, "tool_calls")
        )
        assert.deepStrictEqual(
          calls(parts).map(({ params }) => params),
          ["{city: Bonn", '{"__proto__":{}}']
        )
      })
    )

    it.live("an undeclared tool and invalid parameters come back as data", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(
            call(0, { id: "c1", function: { name: "unheard", arguments: "{}" } }),
            call(1, { id: "c2", function: { name: "weather", arguments: '{"city":1}' } }),
            chunk({}, "tool_calls")
          )
        )
        const parts = yield* LanguageModel.streamText({ prompt: "hi", toolkit: tools, ...deferred }).pipe(
          Stream.runCollect,
          Effect.provide(modelAt(baseUrl))
        )
        assert.deepStrictEqual(
          parts.flatMap((part) => (part.type === "tool-call" ? [[part.name, part.params]] : [])),
          [
            ["unheard", {}],
            ["weather", { city: 1 }]
          ]
        )
      })
    )

    it.live("usage counts cached and reasoning tokens", () =>
      Effect.gen(function* () {
        const parts = yield* collect(
          text("a"),
          chunk({}, "stop"),
          usage({
            prompt_tokens: 100,
            completion_tokens: 30,
            prompt_tokens_details: { cached_tokens: 64 },
            completion_tokens_details: { reasoning_tokens: 20 }
          })
        )
        assert.deepStrictEqual(
          { ...finish(parts)?.usage },
          {
            inputTokens: { uncached: 36, total: 100, cacheRead: 64, cacheWrite: undefined },
            outputTokens: { total: 30, text: 10, reasoning: 20 }
          }
        )
      })
    )

    it.live("every finish reason has its name here", () =>
      Effect.gen(function* () {
        const names = ["stop", "length", "tool_calls", "function_call", "content_filter", "new_reason"]
        const { baseUrl } = yield* serve((response, attempt) => events(chunk({}, names[attempt - 1] ?? ""))(response))
        const reasons = yield* Effect.forEach(names, () => Effect.map(ask(baseUrl), (parts) => finish(parts)?.reason))
        assert.deepStrictEqual(reasons, ["stop", "length", "tool-calls", "tool-calls", "content-filter", "other"])
      })
    )

    it.live("a response cut before its finish reason has neither a finish nor a call", () =>
      Effect.gen(function* () {
        const parts = yield* collect(text("a"), call(0, { id: "c1", function: { name: "clock", arguments: "{}" } }))
        assert.deepStrictEqual(outline(parts), [
          "response-metadata",
          "text-start",
          "text-delta a",
          "text-end",
          "tool-params-start clock",
          "tool-params-delta {}"
        ])
      })
    )

    it.effect("the bytes may be split anywhere", () =>
      Effect.gen(function* () {
        const whole = [text("né 🌧"), call(0, { id: "c1", function: { name: "weather", arguments: '{"city":"Köln"}' } })]
        const bytes = new TextEncoder().encode(
          `: ping\r\n\r\nretry: 10\n\n${[...whole, chunk({}, "tool_calls"), "[DONE]"].map(event).join("")}`
        )
        const client = HttpClient.make((request) =>
          Effect.succeed(
            HttpClientResponse.fromWeb(
              request,
              new Response(oneByOne(bytes), { headers: { "content-type": "text/event-stream" } })
            )
          )
        )
        const parts = yield* LanguageModel.streamText({ prompt: "hi", ...deferred }).pipe(
          Stream.runCollect,
          Effect.provide(OpenAiCompatible.layer({ model: "small", baseUrl: "http://localhost" })),
          Effect.provideService(HttpClient.HttpClient, client)
        )
        assert.include(outline(parts), "text-delta né 🌧")
        assert.deepStrictEqual(calls(parts), [{ id: "c1", name: "weather", params: { city: "Köln" } }])
      })
    )
  })

  describe("request", () => {
    it.live("the messages of the prompt stay separate and in order", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(chunk({}, "stop")))
        yield* ask(
          baseUrl,
          Prompt.fromMessages([
            Prompt.systemMessage({ content: "Be brief." }),
            Prompt.userMessage({ content: [Prompt.textPart({ text: "one" })] }),
            Prompt.userMessage({
              content: [
                Prompt.textPart({ text: "two" }),
                Prompt.filePart({ mediaType: "image/png", data: Uint8Array.of(1, 2, 3) }),
                Prompt.filePart({ mediaType: "image/png", data: "AQID" }),
                Prompt.filePart({ mediaType: "image/png", data: new URL("https://example.com/a.png") })
              ]
            }),
            Prompt.assistantMessage({ content: [Prompt.reasoningPart({ text: "hm" })] }),
            Prompt.assistantMessage({
              content: [
                Prompt.reasoningPart({ text: "hm" }),
                Prompt.textPart({ text: "Let me see." }),
                Prompt.toolCallPart({ id: "c1", name: "weather", params: { city: "Bonn" }, providerExecuted: false }),
                Prompt.toolCallPart({ id: "c2", name: "weather", params: "{city", providerExecuted: false })
              ]
            }),
            Prompt.toolMessage({
              content: [
                Prompt.toolResultPart({
                  id: "c1",
                  name: "weather",
                  isFailure: false,
                  result: { sky: "rain" },
                  providerExecuted: false
                }),
                Prompt.toolResultPart({
                  id: "c2",
                  name: "weather",
                  isFailure: true,
                  result: "invalid parameters",
                  providerExecuted: false
                })
              ]
            })
          ])
        )
        const [request] = received
        const image = (url: string) => ({ type: "image_url", image_url: { url } })
        assert.strictEqual(request?.url, "/v1/chat/completions")
        assert.strictEqual(request?.authorization, "Bearer secret")
        assert.deepStrictEqual(request?.body, {
          model: "small",
          stream: true,
          stream_options: { include_usage: true },
          messages: [
            { role: "system", content: "Be brief." },
            { role: "user", content: "one" },
            {
              role: "user",
              content: [
                { type: "text", text: "two" },
                image("data:image/png;base64,AQID"),
                image("data:image/png;base64,AQID"),
                image("https://example.com/a.png")
              ]
            },
            {
              role: "assistant",
              content: "Let me see.",
              tool_calls: [
                { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } },
                { id: "c2", type: "function", function: { name: "weather", arguments: '"{city"' } }
              ]
            },
            { role: "tool", tool_call_id: "c1", content: '{"sky":"rain"}' },
            { role: "tool", tool_call_id: "c2", content: "invalid parameters" }
          ]
        })
      })
    )

    it.live("a call another provider executed is sent with its result after it, and without a result not at all", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(chunk({}, "stop")))
        const search = { name: "search", providerExecuted: true }
        yield* ask(
          baseUrl,
          Prompt.fromMessages([
            Prompt.assistantMessage({
              content: [
                Prompt.toolCallPart({ ...search, id: "s1", params: {} }),
                Prompt.toolResultPart({ ...search, id: "s1", isFailure: false, result: "found" }),
                Prompt.toolCallPart({ ...search, id: "s2", params: {} })
              ]
            })
          ])
        )
        const call = { id: "s1", type: "function", function: { name: "search", arguments: "{}" } }
        assert.deepStrictEqual(received[0]?.body["messages"], [
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: "s1", content: "found" }
        ])
      })
    )

    it.live("tools are declared with their JSON schema, and the choice narrows them", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(chunk({}, "stop")))
        yield* Effect.gen(function* () {
          const base = { prompt: "hi", toolkit: tools, ...deferred } as const
          yield* Stream.runDrain(LanguageModel.streamText(base))
          yield* Stream.runDrain(LanguageModel.streamText({ ...base, toolChoice: { tool: "clock" } }))
          yield* Stream.runDrain(
            LanguageModel.streamText({ ...base, toolChoice: { mode: "required", oneOf: ["weather"] } })
          )
        }).pipe(Effect.provide(modelAt(baseUrl)))
        const weather = {
          type: "function",
          function: {
            name: "weather",
            description: "The weather of a city",
            parameters: Tool.getJsonSchema(Weather)
          }
        }
        const clock = { type: "function", function: { name: "clock", parameters: Tool.getJsonSchema(Clock) } }
        assert.deepStrictEqual(
          received.map(({ body }) => [body["tools"], body["tool_choice"]]),
          [
            [[weather, clock], "auto"],
            [[weather, clock], { type: "function", function: { name: "clock" } }],
            [[weather], "required"]
          ]
        )
      })
    )

    it.live("further body fields are sent but cannot replace the module's own", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(chunk({}, "stop")))
        yield* Stream.runDrain(LanguageModel.streamText({ prompt: "hi", ...deferred })).pipe(
          Effect.provide(modelAt(baseUrl, { body: { temperature: 0.5, stream: false } }))
        )
        assert.strictEqual(received[0]?.body["temperature"], 0.5)
        assert.strictEqual(received[0]?.body["stream"], true)
      })
    )

    it.live("a file that is no image is refused before anything is sent", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(chunk({}, "stop")))
        const error = yield* Effect.flip(
          ask(baseUrl, [
            {
              role: "user",
              content: [{ type: "file", mediaType: "application/pdf", data: "AQID" }]
            }
          ])
        )
        assert.include(reasonIs(error, "InvalidUserInputError").description, "application/pdf")
        assert.isEmpty(received)
      })
    )

    it.live("later requests reuse a connection, though the body ends after the finish was seen", () =>
      Effect.gen(function* () {
        const sockets = new Set<unknown>()
        let end = () => {}
        const { baseUrl } = yield* serve((response) => {
          sockets.add(response.socket)
          end = () => response.end()
          begin(response).write([text("a"), chunk({}, "stop"), "[DONE]"].map(event).join(""))
        })
        yield* LanguageModel.streamText({ prompt: "hi", ...deferred }).pipe(
          Stream.runForEach((part) => (part.type === "finish" ? Effect.sync(() => end()) : Effect.void)),
          Effect.repeat({ times: 5 }),
          Effect.provide(modelAt(baseUrl))
        )
        assert.isBelow(sockets.size, 6)
      })
    )

    it.live("a body left open after [DONE] does not keep the response from ending", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve((response) => {
          begin(response).write([text("a"), chunk({}, "stop"), "[DONE]", "not for us"].map(event).join(""))
        })
        assert.strictEqual(finish(yield* Effect.timeout(ask(baseUrl), "5 seconds"))?.reason, "stop")
      })
    )

    it.live("interrupting the stream closes the connection", () =>
      Effect.gen(function* () {
        const started = yield* Deferred.make<void>()
        const closed = yield* Deferred.make<void>()
        const { baseUrl } = yield* serve((response) => {
          response.on("close", () => Deferred.doneUnsafe(closed, Exit.void))
          begin(response).write(event(text("a")))
        })
        const fiber = yield* LanguageModel.streamText({ prompt: "hi", ...deferred }).pipe(
          Stream.runForEach((part) =>
            part.type === "text-delta" ? Deferred.succeed(started, undefined) : Effect.void
          ),
          Effect.provide(modelAt(baseUrl)),
          Effect.forkChild
        )
        yield* Effect.timeout(Deferred.await(started), "5 seconds")
        yield* Fiber.interrupt(fiber)
        yield* Effect.timeout(Deferred.await(closed), "5 seconds")
        const exit = yield* Fiber.await(fiber)
        assert(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      })
    )

    it.live("interrupting before the server answers closes the connection", () =>
      Effect.gen(function* () {
        const asked = yield* Deferred.make<void>()
        const closed = yield* Deferred.make<void>()
        const { baseUrl } = yield* serve((response) => {
          response.on("close", () => Deferred.doneUnsafe(closed, Exit.void))
          Deferred.doneUnsafe(asked, Exit.void)
        })
        const fiber = yield* Effect.forkChild(ask(baseUrl))
        yield* Effect.timeout(Deferred.await(asked), "5 seconds")
        yield* Fiber.interrupt(fiber)
        yield* Effect.timeout(Deferred.await(closed), "5 seconds")
      })
    )
  })

  describe("failure", () => {
    it.live("429 is a RateLimitError that says how many seconds to wait", () =>
      Effect.gen(function* () {
        const error = yield* failure(refuse(429, { message: "slow down" }, { "retry-after": "7" }))
        const reason = reasonIs(error, "RateLimitError")
        assert.deepStrictEqual(reason.retryAfter, Duration.seconds(7))
        assert.strictEqual(reason.http?.response?.status, 429)
        assert.include(reason.http?.body, "slow down")
        assert.isTrue(error.isRetryable)
      })
    )

    it.live("retry-after may be an HTTP date", () =>
      Effect.gen(function* () {
        const header = { "retry-after": "Fri, 01 Jan 2100 00:00:00 GMT" }
        const reason = reasonIs(yield* failure(refuse(429, { message: "slow down" }, header)), "RateLimitError")
        assert.isTrue(reason.retryAfter !== undefined && Duration.isGreaterThan(reason.retryAfter, Duration.days(365)))
      })
    )

    it.live("429 for spent credit is a QuotaExhaustedError, which no retry helps", () =>
      Effect.gen(function* () {
        const error = yield* failure(refuse(429, { message: "no credit", code: "insufficient_quota" }))
        reasonIs(error, "QuotaExhaustedError")
        assert.isFalse(error.isRetryable)
      })
    )

    it.live("401 and 403 are AuthenticationErrors with the server's message", () =>
      Effect.gen(function* () {
        const invalid = reasonIs(yield* failure(refuse(401, { message: "bad key" })), "AuthenticationError")
        assert.strictEqual(invalid.kind, "InvalidKey")
        assert.include(invalid.message, "bad key")
        assert.notInclude(JSON.stringify(invalid), "secret")
        const forbidden = reasonIs(yield* failure(refuse(403, { message: "not yours" })), "AuthenticationError")
        assert.strictEqual(forbidden.kind, "InsufficientPermissions")
      })
    )

    it.live("500 and 503 are retryable InternalProviderErrors", () =>
      Effect.gen(function* () {
        for (const status of [500, 503]) {
          const error = yield* failure(refuse(status, { message: "overloaded" }))
          assert.include(reasonIs(error, "InternalProviderError").description, "overloaded")
          assert.isTrue(error.isRetryable)
        }
      })
    )

    it.live("the server's message is found in a body too long to keep", () =>
      Effect.gen(function* () {
        const error = yield* failure(refuse(400, { message: "too long", input: "x".repeat(10_000) }))
        const reason = reasonIs(error, "InvalidRequestError")
        assert.isTrue(reason.description?.endsWith(": too long"))
        assert.strictEqual(reason.http?.body?.length, 2000)
      })
    )

    it.live("400 and 404 are InvalidRequestErrors, and 404 names the base URL", () =>
      Effect.gen(function* () {
        reasonIs(yield* failure(refuse(400, { message: "too long" })), "InvalidRequestError")
        const { baseUrl } = yield* serve((response) => response.writeHead(404).end("no such page"))
        const error = yield* Effect.flip(ask(baseUrl))
        assert.include(reasonIs(error, "InvalidRequestError").description, baseUrl)
        assert.isFalse(error.isRetryable)
      })
    )

    it.live("a dead port is a retryable NetworkError that names the base URL", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* Effect.scoped(serve(() => {}))
        const error = yield* Effect.flip(ask(baseUrl))
        const reason = reasonIs(error, "NetworkError")
        assert.strictEqual(reason.reason, "TransportError")
        assert.include(reason.description, `${baseUrl} could not be reached: connect ECONNREFUSED`)
        assert.isTrue(error.isRetryable)
      })
    )

    it.live("a base URL that is no URL is an InvalidUrlError", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(ask("not a url"))
        assert.strictEqual(reasonIs(error, "NetworkError").reason, "InvalidUrlError")
        assert.isFalse(error.isRetryable)
      })
    )

    it.live("a page instead of an event stream names the base URL", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve((response) => {
          response.writeHead(200, { "content-type": "text/html" }).end("<html></html>")
        })
        const reason = reasonIs(yield* Effect.flip(ask(baseUrl)), "InvalidResponseError")
        assert.include(reason.description, `${baseUrl} answered text/html`)
      })
    )

    it.live("a connection broken inside the response is a retryable NetworkError", () =>
      Effect.gen(function* () {
        const error = yield* failure((response) => {
          begin(response).write(event(text("a")), () => response.destroy())
        })
        assert.strictEqual(reasonIs(error, "NetworkError").reason, "TransportError")
        assert.isTrue(error.isRetryable)
      })
    )

    it.live("a malformed chunk is an InvalidOutputError", () =>
      Effect.gen(function* () {
        for (const malformed of ["{", { choices: 1 }, chunk({ content: 1 }), {}]) {
          reasonIs(yield* failure(events(malformed)), "InvalidOutputError")
        }
      })
    )

    it.live("an error inside the stream keeps its kind", () =>
      Effect.gen(function* () {
        const inside = (error: unknown) => failure(events(text("a"), { error }))
        assert.include(reasonIs(yield* inside("out of memory"), "InternalProviderError").description, "out of memory")
        reasonIs(yield* inside({ message: "slow down", code: 429 }), "RateLimitError")
        reasonIs(yield* inside({ message: "slow down", type: "rate_limit_error" }), "RateLimitError")
        reasonIs(yield* inside({ message: "no", code: "content_filter" }), "ContentPolicyError")
      })
    )
  })

  describe("the rest of the interface", () => {
    it.live("the direct stream has the parts that a decoded stream has", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(
            chunk({ reasoning_content: "hm" }),
            text("Hel"),
            text("lo"),
            chunk({}, "stop"),
            usage({ prompt_tokens: 3, completion_tokens: 2 })
          )
        )
        const direct = yield* ask(baseUrl)
        const decoded = yield* LanguageModel.streamText({ prompt: "hi" }).pipe(
          Stream.runCollect,
          Effect.provide(modelAt(baseUrl))
        )
        assert.deepStrictEqual<ReadonlyArray<unknown>>(direct, decoded)
      })
    )

    it.live("generateText collects text, reasoning and usage", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(
            chunk({ reasoning_content: "hm" }),
            text("Hel"),
            text("lo"),
            chunk({}, "stop"),
            usage({ prompt_tokens: 3, completion_tokens: 2 })
          )
        )
        const response = yield* LanguageModel.generateText({ prompt: "hi" }).pipe(Effect.provide(modelAt(baseUrl)))
        assert.strictEqual(response.text, "Hello")
        assert.strictEqual(response.reasoningText, "hm")
        assert.strictEqual(response.finishReason, "stop")
        assert.strictEqual(response.usage.outputTokens.total, 2)
      })
    )

    it.live("generateText resolves tool calls with the toolkit", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(
            call(0, { id: "c1", function: { name: "weather", arguments: '{"city":"Bonn"}' } }),
            chunk({}, "tool_calls")
          )
        )
        const response = yield* LanguageModel.generateText({ prompt: "hi", toolkit: tools }).pipe(
          Effect.provide([modelAt(baseUrl), handlers])
        )
        assert.deepStrictEqual(
          response.toolResults.map(({ result }) => result),
          ["rain in Bonn"]
        )
      })
    )

    it.live("generateText fails on a response that was cut", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(events(text("Hel")))
        const error = yield* LanguageModel.generateText({ prompt: "hi" }).pipe(
          Effect.provide(modelAt(baseUrl)),
          Effect.flip
        )
        reasonIs(error, "InvalidOutputError")
      })
    )

    it.live("generateObject asks for the schema and decodes the answer", () =>
      Effect.gen(function* () {
        const { baseUrl, received } = yield* serve(events(text('{"city":"Bonn"}'), chunk({}, "stop")))
        const response = yield* LanguageModel.generateObject({
          prompt: "hi",
          objectName: "the place",
          schema: Schema.Struct({ city: Schema.String })
        }).pipe(Effect.provide(modelAt(baseUrl)))
        assert.deepStrictEqual(response.value, { city: "Bonn" })
        const format = received[0]?.body["response_format"]
        assert.deepNestedInclude(format, { type: "json_schema", "json_schema.name": "the_place" })
      })
    )

    it.live("streamText with resolution runs the tools", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(call(0, { id: "c1", function: { name: "clock", arguments: "" } }), chunk({}, "tool_calls"))
        )
        const parts = yield* LanguageModel.streamText({ prompt: "hi", toolkit: tools }).pipe(
          Stream.runCollect,
          Effect.provide([modelAt(baseUrl), handlers])
        )
        assert.deepStrictEqual(
          parts.flatMap((part) => (part.type === "tool-result" ? [part.result] : [])),
          ["noon"]
        )
      })
    )

    it.live("streamText with strict validation refuses an undeclared tool", () =>
      Effect.gen(function* () {
        const { baseUrl } = yield* serve(
          events(call(0, { id: "c1", function: { name: "unheard", arguments: "{}" } }), chunk({}, "tool_calls"))
        )
        const error = yield* LanguageModel.streamText({
          prompt: "hi",
          toolkit: tools,
          disableToolCallResolution: true
        }).pipe(Stream.runDrain, Effect.provide(modelAt(baseUrl)), Effect.flip)
        reasonIs(error, "InvalidOutputError")
      })
    )
  })
})
