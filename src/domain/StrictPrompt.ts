/**
 * Judges a prompt as a strict OpenAI or Anthropic endpoint would before it spends a token on it. Every rule is one
 * that at least one of them refuses a request for; a prompt without violations is taken by both.
 *
 * @since 0.1.0
 */
import { Effect, Schema } from "effect"
import type { Prompt } from "effect/ai"

/**
 * The rules. Each names what is wrong when it is broken.
 *
 * - `no-user`: nothing but system messages.
 * - `system-not-first`: a system message after another role.
 * - `first-not-user`: the first message that is not the system's is not the user's.
 * - `last-is-assistant`: the prompt ends with the assistant's own message.
 * - `blank-message`: a user or assistant message without text, file or call.
 * - `blank-text`: an empty or white text part beside others.
 * - `reasoning-only`: an assistant message with nothing but reasoning.
 * - `duplicate-call`: two calls of one assistant message share an id.
 * - `call-without-result`: a call that the directly following tool message does not answer.
 * - `result-without-call`: a result that answers no call of the directly preceding assistant message.
 * - `duplicate-result`: a call answered twice.
 * - `result-order`: the results are not in the order of the calls.
 * - `result-name`: a result carries another tool's name than its call.
 * - `tool-not-after-call`: a tool message that does not directly follow an assistant message with calls.
 * - `empty-tool-message`: a tool message without a result.
 * - `not-json`: a call's parameters or a result are not JSON.
 *
 * @category models
 * @since 0.1.0
 */
export const Rule = Schema.Literals([
  "no-user",
  "system-not-first",
  "first-not-user",
  "last-is-assistant",
  "blank-message",
  "blank-text",
  "reasoning-only",
  "duplicate-call",
  "call-without-result",
  "result-without-call",
  "duplicate-result",
  "result-order",
  "result-name",
  "tool-not-after-call",
  "empty-tool-message",
  "not-json"
])

/**
 * @category models
 * @since 0.1.0
 */
export type Rule = typeof Rule.Type

/**
 * One broken rule: which, at which message (from 0), and what was seen there.
 *
 * @category models
 * @since 0.1.0
 */
export class Violation extends Schema.Class<Violation>("midcourse/domain/StrictPrompt/Violation")({
  rule: Rule,
  index: Schema.Int,
  detail: Schema.String
}) {
  override toString(): string {
    return `message ${this.index} ${this.rule}: ${this.detail}`
  }
}

/**
 * A prompt that a strict endpoint would refuse.
 *
 * @category errors
 * @since 0.1.0
 */
export class StrictPromptError extends Schema.TaggedError<StrictPromptError>(
  "midcourse/domain/StrictPrompt/StrictPromptError"
)("StrictPromptError", { violations: Schema.Array(Violation) }) {
  override get message(): string {
    return this.violations.join("; ")
  }
}

/**
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Let the prompt end with the assistant's message: a continuation after finish reason `pause`. Default `false`. */
  readonly allowLastAssistant?: boolean | undefined
}

/**
 * Every rule the prompt breaks, in the order of its messages; empty when a strict endpoint would take it.
 *
 * @category validation
 * @since 0.1.0
 */
export const violations = (messages: ReadonlyArray<Prompt.Message>, options?: Options): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  const report: Report = (rule, index, detail) => {
    found.push(new Violation({ rule, index, detail }))
  }
  let first = true
  let providerCalls: Array<string> = []
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]
    if (message === undefined) continue
    if (message.role === "system") {
      if (!first) report("system-not-first", i, "a system message after the conversation began")
      continue
    }
    if (first) {
      first = false
      if (message.role !== "user") report("first-not-user", i, `the conversation begins with role ${message.role}`)
    }
    if (message.role !== "assistant") providerCalls = []
    switch (message.role) {
      case "user": {
        checkUser(message, i, report)
        break
      }
      case "assistant": {
        providerCalls = checkAssistant(message, i, providerCalls, report)
        checkAnswers(message, messages[i + 1], i, report)
        break
      }
      case "tool": {
        checkTool(message, messages[i - 1], i, report)
        break
      }
    }
  }
  if (first) report("no-user", 0, "no message but the system's")
  const last = messages.length - 1
  if (messages[last]?.role === "assistant" && options?.allowLastAssistant !== true) {
    report("last-is-assistant", last, "nothing follows the assistant's message")
  }
  return found
}

/**
 * Whether a strict endpoint would take the prompt.
 *
 * @category validation
 * @since 0.1.0
 */
export const isValid = (messages: ReadonlyArray<Prompt.Message>, options?: Options): boolean =>
  violations(messages, options).length === 0

/**
 * Fails with `StrictPromptError` when a strict endpoint would refuse the prompt.
 *
 * @category validation
 * @since 0.1.0
 */
export const assertValid = (
  messages: ReadonlyArray<Prompt.Message>,
  options?: Options
): Effect.Effect<void, StrictPromptError> =>
  Effect.suspend(() => {
    const found = violations(messages, options)
    return found.length === 0 ? Effect.void : Effect.fail(new StrictPromptError({ violations: found }))
  })

/**
 * The violations as one line each; empty text when there are none.
 *
 * @category formatting
 * @since 0.1.0
 */
export const format = (found: ReadonlyArray<Violation>): string => found.join("\n")

type Report = (rule: Rule, index: number, detail: string) => void

const isBlank = (text: string): boolean => text.trim() === ""

const ownCalls = (message: Prompt.AssistantMessage): Array<Prompt.ToolCallPart> => {
  const calls: Array<Prompt.ToolCallPart> = []
  for (const part of message.content) {
    if (part.type === "tool-call" && !part.providerExecuted) calls.push(part)
  }
  return calls
}

const checkUser = (message: Prompt.UserMessage, index: number, report: Report): void => {
  let substance = false
  let blank = false
  for (const part of message.content) {
    if (part.type === "text" && isBlank(part.text)) blank = true
    else substance = true
  }
  if (!substance) report("blank-message", index, "a user message without text or file")
  else if (blank) report("blank-text", index, "a blank text part in a user message")
}

/** Answers the ids of the calls the provider executed and has not answered yet: a directly following assistant message may. */
const checkAssistant = (
  message: Prompt.AssistantMessage,
  index: number,
  carried: Array<string>,
  report: Report
): Array<string> => {
  const seen = new Set<string>()
  const provider = [...carried]
  let substance = false
  let reasoning = false
  let blank = false
  for (const part of message.content) {
    switch (part.type) {
      case "text": {
        if (isBlank(part.text)) blank = true
        else substance = true
        break
      }
      case "reasoning": {
        reasoning = true
        break
      }
      case "tool-call": {
        substance = true
        if (seen.has(part.id)) report("duplicate-call", index, `call id ${part.id} twice in one message`)
        seen.add(part.id)
        if (part.providerExecuted) provider.push(part.id)
        if (!isJson(part.params)) report("not-json", index, `the parameters of call ${part.id}`)
        break
      }
      case "tool-result": {
        substance = true
        const at = provider.indexOf(part.id)
        if (at < 0) report("result-without-call", index, `result ${part.id} in an assistant message answers no call`)
        else provider.splice(at, 1)
        if (!isJson(part.result)) report("not-json", index, `the result of call ${part.id}`)
        break
      }
      case "file": {
        substance = true
        break
      }
      case "tool-approval-request":
        break
    }
  }
  if (!substance && reasoning && !blank) report("reasoning-only", index, "an assistant message with only reasoning")
  else if (!substance) report("blank-message", index, "an assistant message without text, file or call")
  else if (blank) report("blank-text", index, "a blank text part in an assistant message")
  return provider
}

const checkAnswers = (
  message: Prompt.AssistantMessage,
  next: Prompt.Message | undefined,
  index: number,
  report: Report
): void => {
  for (const call of ownCalls(message)) {
    const answered =
      next?.role === "tool" && next.content.some((part) => part.type === "tool-result" && part.id === call.id)
    if (!answered) {
      report("call-without-result", index, `call ${call.id} (${call.name}) has no result in the message that follows`)
    }
  }
}

const checkTool = (
  message: Prompt.ToolMessage,
  before: Prompt.Message | undefined,
  index: number,
  report: Report
): void => {
  const calls = before?.role === "assistant" ? ownCalls(before) : []
  if (calls.length === 0) {
    report("tool-not-after-call", index, "the message before is not an assistant message with calls")
  }
  const results: Array<string> = []
  for (const part of message.content) {
    if (part.type !== "tool-result") continue
    const call = calls.find((c) => c.id === part.id)
    if (call === undefined) report("result-without-call", index, `result ${part.id} (${part.name}) answers no call`)
    else if (results.includes(part.id)) report("duplicate-result", index, `call ${part.id} is answered twice`)
    else if (call.name !== part.name) {
      report("result-name", index, `result ${part.id} says ${part.name}, its call ${call.name}`)
    }
    if (call !== undefined && !results.includes(part.id)) results.push(part.id)
    if (!isJson(part.result)) report("not-json", index, `the result of call ${part.id}`)
  }
  if (!message.content.some((part) => part.type === "tool-result")) {
    report("empty-tool-message", index, "a tool message without a result")
  }
  const expected = calls.flatMap((call) => (results.includes(call.id) ? [call.id] : []))
  if (expected.length === results.length && expected.some((id, i) => results[i] !== id)) {
    report("result-order", index, `results ${results.join(", ")} for calls ${expected.join(", ")}`)
  }
}

const isJson = (value: unknown, above: ReadonlyArray<object> = []): boolean => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value)
    case "object": {
      if (value === null) return true
      if (above.includes(value)) return false
      const inside = [...above, value]
      if (Array.isArray(value)) return value.every((item) => isJson(item, inside))
      const prototype: unknown = Object.getPrototypeOf(value)
      if (prototype !== Object.prototype && prototype !== null) return false
      return Object.values(value).every((item) => item === undefined || isJson(item, inside))
    }
    case "bigint":
    case "function":
    case "symbol":
    case "undefined":
      return false
  }
}
