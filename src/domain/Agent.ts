/**
 * An agent: an immutable description of who answers, with which tools, within which bounds. Handlers come from the
 * toolkit's own Layer, the model from a `LanguageModel` layer.
 *
 * @since 0.1.0
 */
import { Schedule } from "effect"
import { Toolkit } from "effect/ai"
import type { AiError, Tool } from "effect/ai"

/**
 * Tools by name.
 *
 * @category models
 * @since 0.1.0
 */
export type Tools = Record<string, Tool.Any>

/**
 * How many calls of one response may run at once.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolExecution = "sequential" | { readonly concurrency: number }

/**
 * What a pending correction does to calls not yet launched: withhold those it affects, or let the batch finish (L-T5).
 *
 * @category models
 * @since 0.1.0
 */
export type OnCorrection = "withhold" | "finish-batch"

/** @category models @since 0.1.0 */
export type Retry = Schedule.Schedule<unknown, AiError.AiError>

/** @category models @since 0.1.0 */
export interface Agent<Tools extends Record<string, Tool.Any>> {
  readonly name: string
  readonly instructions: string
  readonly toolkit: Toolkit.Toolkit<Tools>
  readonly tools: ToolExecution
  readonly onCorrection: OnCorrection
  /** The request budget of one generation; every attempt is one of it (L-E3). */
  readonly maxRequests: number
  /** Applied to errors the provider calls retryable; a rate limit's own delay is never undercut. */
  readonly retry: Retry
  readonly steering: "request_boundary" | "unavailable"
}

/**
 * Two more tries after the first, 500 ms then 1 s apart.
 *
 * @category defaults
 * @since 0.1.0
 */
export const defaultRetry: Retry = Schedule.exponential("500 millis").pipe(Schedule.upTo({ times: 2 }))

/** @category models @since 0.1.0 */
export interface Options<Tools extends Record<string, Tool.Any>> {
  readonly name: string
  readonly instructions: string
  readonly toolkit?: Toolkit.Toolkit<Tools>
  readonly tools?: ToolExecution
  readonly onCorrection?: OnCorrection
  readonly maxRequests?: number
  readonly retry?: Retry
  readonly steering?: "request_boundary" | "unavailable"
}

const positive = (name: string, n: number): number => {
  if (Number.isSafeInteger(n) && n > 0) return n
  throw new RangeError(`Agent.make: ${name} must be a positive integer, not ${n}`)
}

const one = <const A extends string>(
  name: string,
  allowed: ReadonlyArray<A>,
  given: A | undefined,
  otherwise: A
): A => {
  if (given === undefined) return otherwise
  if (allowed.includes(given)) return given
  throw new RangeError(`Agent.make: ${name} must be one of ${allowed.join(", ")}, not ${String(given)}`)
}

/**
 * Describes an agent. Sequential tools, corrections that withhold, 50 requests and request-boundary steering unless said.
 * Throws a `RangeError` for a setting that is none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <Tools extends Record<string, Tool.Any> = {}>(options: Options<Tools>): Agent<Tools> => ({
  name: options.name,
  instructions: options.instructions,
  // An agent without a toolkit has the empty one, which is what the default type argument says.
  toolkit: options.toolkit ?? (Toolkit.empty as unknown as Toolkit.Toolkit<Tools>),
  tools:
    typeof options.tools === "object"
      ? { concurrency: positive("tools.concurrency", options.tools.concurrency) }
      : "sequential",
  onCorrection: one("onCorrection", ["withhold", "finish-batch"], options.onCorrection, "withhold"),
  maxRequests: positive("maxRequests", options.maxRequests ?? 50),
  retry: options.retry ?? defaultRetry,
  steering: one("steering", ["request_boundary", "unavailable"], options.steering, "request_boundary")
})
