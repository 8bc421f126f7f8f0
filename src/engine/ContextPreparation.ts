/**
 * What a host trims or compacts before a request is sent (L-P1 to L-P3). The conversation itself is never changed by it: the
 * journal keeps every message, and what was really sent is checked.
 *
 * @since 0.1.0
 */
import { Context, Effect } from "effect"
import { Prompt } from "effect/ai"
import type * as Ids from "../domain/Ids.ts"
import * as Input from "../domain/Input.ts"
import * as StrictPrompt from "../domain/StrictPrompt.ts"

/**
 * The request about to be made. `uncarried` are the inputs no request has carried yet: keep their messages.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestInfo {
  readonly sessionId: Ids.SessionId
  readonly generationId: Ids.GenerationId
  readonly request: number
  readonly uncarried: ReadonlyArray<Ids.InputId>
}

/** @category models @since 0.1.0 */
export type Service = (prompt: Prompt.Prompt, info: RequestInfo) => Effect.Effect<Prompt.Prompt, unknown>

/**
 * Sends the conversation as it is unless a host says otherwise. A preparation that fails, or gives a prompt no provider would
 * take, fails the generation with an error that says so; nothing is sent.
 *
 * @category references
 * @since 0.1.0
 */
export const ContextPreparation = Context.Reference<Service>("midcourse/engine/ContextPreparation", {
  defaultValue: () => identity
})

/** @category defaults @since 0.1.0 */
export const identity: Service = (prompt) => Effect.succeed(prompt)

/**
 * Marks a message as the summary of others, which is how a prompt may leave out the generation's own (L-P3).
 *
 * @category constructors
 * @since 0.1.0
 */
export const summary = (text: string): Prompt.UserMessage =>
  Prompt.userMessage({
    content: [Prompt.makePart("text", { text })],
    options: { midcourse: { summarises: true } }
  })

const isSummary = (message: Prompt.Message): boolean => {
  const own: unknown = message.options["midcourse"]
  return typeof own === "object" && own !== null && "summarises" in own
}

/**
 * What is wrong with a prepared prompt, or `undefined`: broken call and result pairing, a message no provider takes, or the
 * generation's own prompt lost without a summary (L-P3).
 *
 * @category checks
 * @since 0.1.0
 */
export const fault = (
  messages: ReadonlyArray<Prompt.Message>,
  initial: ReadonlyArray<Ids.InputId>,
  allowLastAssistant: boolean
): string | undefined => {
  const violations = StrictPrompt.violations(messages, { allowLastAssistant })
  if (violations.length > 0) return StrictPrompt.format(violations)
  const present = carried(messages)
  return initial.every((id) => present.has(id)) || messages.some(isSummary)
    ? undefined
    : "the prompt that started this generation is missing, and no message is marked as summarising it"
}

/**
 * The inputs whose messages are in a prompt.
 *
 * @category queries
 * @since 0.1.0
 */
export const carried = (messages: ReadonlyArray<Prompt.Message>): ReadonlySet<Ids.InputId> =>
  new Set(messages.flatMap((message) => Input.idOfMessage(message) ?? []))
