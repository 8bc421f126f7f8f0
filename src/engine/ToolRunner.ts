/**
 * Runs one tool's handler directly: its context entry is keyed by the tool's id, so the handler begins only after
 * `tool.started` is committed (L-T10), and no queue or stream stands between.
 *
 * @since 0.1.0
 */
import { Cause, Context, Effect, Exit, Option, Result, type Schema } from "effect"
import { AiError, type Tool } from "effect/ai"
import type { Prompt } from "effect/ai"
import { isJson } from "../domain/Json.ts"
import { isDone } from "./Immediate.ts"
import { type Coder, type Resolved, serviceOf } from "./Toolkits.ts"

/**
 * A launched call's end, as the context and the report will say it.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome =
  | {
      readonly _tag: "Completed"
      readonly isFailure: boolean
      readonly result: Schema.Json
      readonly modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart>
    }
  | { readonly _tag: "Failed"; readonly error: string }
  | { readonly _tag: "Interrupted" }

/** @category models @since 0.1.0 */
export class ToolRunner {
  readonly #resolved: Resolved
  readonly #services: Context.Context<never>
  #contexts: Map<string, Context.Context<never>> | undefined

  constructor(resolved: Resolved, services: Context.Context<never>) {
    this.#resolved = resolved
    this.#services = services
  }

  /** The tool a call names, if this agent has it. */
  find(name: string): Tool.Any | undefined {
    const { tools } = this.#resolved.toolkit
    return Object.hasOwn(tools, name) ? tools[name] : undefined
  }

  /** What the handler is to be given, or why the parameters are invalid for its tool; an `Exit` if no schema waits. */
  decode(tool: Tool.Any, params: unknown): Effect.Effect<unknown, Schema.SchemaError> {
    return attempt(() => {
      // Looked for here: what has no handler is answered, like what is called wrongly, before anything is launched.
      this.#handler(tool)
      return this.#coded(tool, this.#resolved.coders(tool).decode, params)
    })
  }

  /** What a handler runs with: what its own layer was given, under what `open` was given. */
  contextOf(tool: Tool.Any): Context.Context<never> {
    const known = this.#contexts?.get(tool.name)
    if (known !== undefined) return known
    const own = this.#handler(tool).context
    const context = covers(this.#services, own) ? this.#services : Context.merge(own, this.#services)
    this.#contexts ??= new Map()
    this.#contexts.set(tool.name, context)
    return context
  }

  /** Runs the handler to its end. A failure, a defect and a forbidden result are outcomes, not errors (L-T6). */
  run(
    tool: Tool.Any,
    params: unknown,
    providerId: string,
    progress: (result: Schema.Json) => void
  ): Effect.Effect<Outcome> {
    const { encodeSuccess } = this.#resolved.coders(tool)
    const { handler } = this.#handler(tool)
    const preliminary = (result: unknown) =>
      Effect.map(Effect.exit(this.#coded(tool, encodeSuccess, result)), (exit) => {
        if (Exit.isSuccess(exit)) progress(toJson(exit.value))
      })
    // The handler's type says that it needs nothing: what it needs is in `contextOf`.
    const handled: Effect.Effect<unknown, unknown> = Effect.suspend(() =>
      handler(params, { toolCallId: providerId, preliminary })
    )
    return Effect.catchCause(
      Effect.matchCauseEffect(handled, {
        onSuccess: (value) => this.#success(tool, value),
        onFailure: (cause) => this.#failure(tool, cause)
      }),
      (cause) => Effect.succeed(outcomeOf(cause))
    )
  }

  /** Whether the tool itself asks for approval of these parameters (L-T11). */
  needsApproval(
    tool: Tool.Any,
    params: unknown,
    toolCallId: string,
    messages: ReadonlyArray<Prompt.Message>
  ): Effect.Effect<boolean> {
    const { needsApproval } = tool
    if (typeof needsApproval !== "function") return Effect.succeed(needsApproval === true)
    return Effect.suspend(() => {
      const answer = needsApproval(params, { toolCallId, messages: [...messages] })
      return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
    })
  }

  #success(tool: Tool.Any, value: unknown): Effect.Effect<Outcome> {
    const outcome = (exit: Exit.Exit<unknown, Schema.SchemaError>): Outcome => {
      if (Exit.isFailure(exit)) {
        return { _tag: "Failed", error: `${tool.name} returned what its schema forbids: ${describe(exit.cause)}` }
      }
      const output = { _tag: "Completed", isFailure: false, result: kept(exit.value) } as const
      if (tool.toModelOutput === undefined) return output
      try {
        return { ...output, modelOutput: tool.toModelOutput(value) }
      } catch {
        // The call has completed, whatever becomes of its rendering: the model is given the result itself (L-T8).
        return output
      }
    }
    const encoded = this.#coded(tool, this.#resolved.coders(tool).encodeSuccess, value)
    return isDone(encoded) ? Exit.succeed(outcome(encoded)) : Effect.map(Effect.exit(encoded), outcome)
  }

  #failure(tool: Tool.Any, cause: Cause.Cause<unknown>): Effect.Effect<Outcome> {
    const failed = outcomeOf(cause)
    if (failed._tag === "Interrupted") return Effect.succeed(failed)
    const failure = Cause.findError(cause)
    if (Result.isFailure(failure) || tool.failureMode === "error") return Effect.succeed(failed)
    const error = AiError.isAiErrorReason(failure.success)
      ? AiError.make({ module: "Midcourse", method: tool.name, reason: failure.success })
      : failure.success
    const encoded = this.#coded(tool, this.#resolved.coders(tool).encodeFailure, error)
    return Effect.map(Effect.exit(encoded), (exit) =>
      Exit.isSuccess(exit) ? { _tag: "Completed", isFailure: true, result: kept(exit.value) } : failed
    )
  }

  #handler(tool: Tool.Any): Tool.Handler<string> {
    const handler = Option.getOrUndefined(serviceOf(this.#services, tool.id))
    if (!isHandler(handler)) throw new Error(`tool ${tool.name} has no handler in the layer that open was given`)
    return handler
  }

  /** Most schemas need nothing and are done at once; the others find what they need in what `open` was given. */
  #coded(tool: Tool.Any, coder: Coder, u: unknown): Effect.Effect<unknown, Schema.SchemaError> {
    const coded = coder(u)
    // What a schema needs is of no type known here: what `open` was given is all there is.
    return isDone(coded) ? coded : Effect.provideContext(coded, this.contextOf(tool) as Context.Context<unknown>)
  }
}

const covers = (services: Context.Context<never>, own: Context.Context<never>): boolean => {
  for (const key of own.mapUnsafe.keys()) if (Option.isNone(serviceOf(services, key))) return false
  return true
}

/** Whether the tool has to be asked at all. */
export const mayNeedApproval = (tool: Tool.Any): boolean =>
  tool.needsApproval !== undefined && tool.needsApproval !== false

/** What a host's function answers; what it throws is a defect. */
const attempt = <A, E>(run: () => Effect.Effect<A, E>): Effect.Effect<A, E> => {
  try {
    return run()
  } catch (error) {
    return Exit.die(error)
  }
}

/** How a handler ended that did not return. */
export const outcomeOf = (cause: Cause.Cause<unknown>): Outcome =>
  Cause.hasInterruptsOnly(cause) ? { _tag: "Interrupted" } : { _tag: "Failed", error: describe(cause) }

const isHandler = (u: unknown): u is Tool.Handler<string> =>
  typeof u === "object" && u !== null && "handler" in u && typeof u.handler === "function" && "context" in u

/** One line a person can read: the message of the first error or defect, never a stack. */
export const describe = (cause: Cause.Cause<unknown>): string => {
  const error: unknown = Cause.squash(cause)
  try {
    if (error instanceof Error && error.message !== "") return error.message
    if (typeof error === "object" && error !== null && "_tag" in error) {
      return `${String(error._tag)}: ${JSON.stringify(error)}`
    }
    return String(error)
  } catch {
    return "an error that cannot be printed"
  }
}

/** A result as it is now: what its handler does with it later changes nothing (L-T8). */
const kept = (u: unknown): Schema.Json => {
  const json = toJson(u)
  return typeof json === "object" && json !== null ? structuredClone(json) : json
}

/** A value as the JSON it would be sent as; what has no JSON form is given as text rather than lost. */
export const toJson = (u: unknown): Schema.Json => {
  if (typeof u === "string" || isJson(u)) return u
  try {
    return JSON.parse(JSON.stringify(u) ?? "null")
  } catch {
    return String(u)
  }
}
