/**
 * One request to the model, streamed. Being interrupted, failing and being cut are outcomes; only a response whose finish part
 * has come is complete (L-T12).
 *
 * @since 0.1.0
 */
import { Cause, Effect, Exit, Result, Stream } from "effect"
import { AiError, Prompt } from "effect/ai"
import type { Response } from "effect/ai"
import * as Supervised from "../boundary/Supervised.ts"
import type { Tools } from "../domain/Agent.ts"
import type { GenerationError } from "../domain/Generation.ts"
import type { Engine, Run } from "./Engine.ts"
import { Collector, type Gathered } from "./Response.ts"
import { describe } from "./ToolRunner.ts"

/**
 * What a request came to. `Failed.retryable` holds the provider's error when it may be tried again.
 *
 * @category models
 * @since 0.1.0
 */
export type Responded =
  | { readonly _tag: "Complete"; readonly gathered: Gathered; readonly reason: Response.FinishReason }
  | { readonly _tag: "Interrupted"; readonly gathered: Gathered }
  | {
      readonly _tag: "Failed"
      readonly gathered: Gathered
      readonly error: GenerationError
      readonly retryable: AiError.AiError | undefined
    }

/**
 * Sends the messages and gathers the answer; the only window for an interrupt is the stream itself.
 *
 * @category operations
 * @since 0.1.0
 */
export const send = (
  engine: Engine,
  run: Run,
  request: number,
  messages: ReadonlyArray<Prompt.Message>,
  restore: Supervised.Restore
): Effect.Effect<Responded> => {
  const { journal, model, toolkit } = engine
  const collector = new Collector()
  let over = false
  const take = (parts: ReadonlyArray<Response.StreamPart<Tools, "deferred">>): Effect.Effect<void> => {
    // What a provider that does not end still streams is no part of the answer.
    if (over) return Effect.void
    for (const part of parts) {
      const delta = collector.add(part)
      if (delta !== undefined && journal.log.observed) {
        journal.log.publish({ type: delta.type, generation_id: run.id, request, text: delta.text })
      }
    }
    return Effect.void
  }
  const consumed = Effect.suspend(() =>
    Stream.runForEachArray(
      model.streamText({
        // A list of its own: what a provider does with it changes nothing here.
        prompt: Prompt.fromMessages(messages.slice()),
        toolkit,
        disableToolCallResolution: true,
        toolCallValidation: "deferred"
      }),
      take
    )
  )
  // What the provider's schemas need is in what `open` was given, with which this fiber runs and of which the engine keeps no types.
  const provided = consumed as Effect.Effect<void, unknown>
  return Effect.map(Supervised.run(provided, restore, engine.grace), (answer): Responded => {
    over = true
    if (answer._tag === "Abandoned") return { _tag: "Interrupted", gathered: collector.gather(true) }
    return settle(collector, answer.exit, answer._tag === "Interrupted")
  })
}

const settle = (collector: Collector, exit: Exit.Exit<void, unknown>, interrupted: boolean): Responded => {
  const fail = (error: GenerationError, retryable?: AiError.AiError): Responded => ({
    _tag: "Failed",
    gathered: collector.gather(true),
    error,
    retryable
  })
  if (collector.malformed !== undefined) {
    return fail({ kind: "invalid-response", message: `the provider streamed ${collector.malformed}` })
  }
  if (collector.error !== undefined) return failure(fail, collector.error.error)
  const reason = collector.reason
  if (reason === "content-filter") {
    return fail({ kind: "content-filter", message: "the provider's content filter ended the response" })
  }
  if (reason === "error") return fail({ kind: "provider", message: "the provider ended the response with an error" })
  if (reason !== undefined) return { _tag: "Complete", gathered: collector.gather(false), reason }
  if (Exit.isSuccess(exit)) {
    return fail({ kind: "invalid-response", message: "the response ended without a finish part" })
  }
  if (interrupted) return { _tag: "Interrupted", gathered: collector.gather(true) }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return fail({ kind: "provider", message: "the provider's layer interrupted the request" })
  }
  const found = Cause.findError(exit.cause)
  return Result.isSuccess(found)
    ? failure(fail, found.success)
    : fail({ kind: "defect", message: `the provider's layer died: ${describe(exit.cause)}` })
}

const failure = (fail: (error: GenerationError, retryable?: AiError.AiError) => Responded, error: unknown): Responded =>
  AiError.isAiError(error)
    ? fail({ kind: "provider", message: error.reason.message }, error.isRetryable ? error : undefined)
    : fail({ kind: "provider", message: describe(Cause.fail(error)) })
