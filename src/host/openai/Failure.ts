/**
 * What a server or the way to it did wrong, as the reason of an `AiError`: by the HTTP status, by the problem the server
 * names, or by how the connection broke.
 *
 * @since 0.1.0
 */
import { Clock, Effect, Predicate, Result } from "effect"
import type { Duration } from "effect"
import { AiError } from "effect/ai"
import { Headers, UrlParams } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { decodeChunk, type Problem, type Reason } from "./Protocol.ts"

type HttpContext = typeof AiError.HttpContext.Type

/**
 * The error every call of the module fails with.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: Reason) => AiError.make({ module: "OpenAiCompatible", method: "chatCompletions", reason })

/**
 * Lets an event stream through; anything else the server answered is an error, whatever its status.
 *
 * @category decoding
 * @since 0.1.0
 */
export const accept = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse, host: string) {
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

/**
 * A problem inside a response that had already begun: its kind stands in for the status it can no longer have.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromProblem = (problem: Problem): Reason => {
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

/**
 * A request that could not be made, or a response that was cut.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromHttpClientError = ({ reason }: HttpClientError.HttpClientError, what: string): Reason => {
  const cause = "cause" in reason ? reason.cause : undefined
  const kind = reason._tag === "EncodeError" || reason._tag === "InvalidUrlError" ? reason._tag : "TransportError"
  return networkError(kind, reason.request.url, `${what}: ${rootMessage(cause ?? reason)}`, cause)
}

/**
 * Never shows the credentials of an address.
 *
 * @category constructors
 * @since 0.1.0
 */
export const networkError = (
  reason: AiError.NetworkError["reason"],
  url: string,
  description: string,
  cause: unknown
): AiError.NetworkError =>
  new AiError.NetworkError({ reason, method: "POST", url: UrlParams.redactUrl(url), description, cause })

/**
 * The message of what an error was caused by in the end.
 *
 * @category conversions
 * @since 0.1.0
 */
export const rootMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.cause !== undefined) return rootMessage(error.cause)
  if (error.message !== "") return error.message
  return "code" in error ? String(error.code) : error.name
}
