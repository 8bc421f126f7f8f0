/**
 * The body of a `/chat/completions` request: messages, tools and the response format, encoded before anything is sent.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import { AiError, OpenAiStructuredOutput, Prompt, Tool } from "effect/ai"
import type { LanguageModel } from "effect/ai"
import { Base64 } from "effect/encoding"
import { rootMessage } from "./Failure.ts"
import type { Reason } from "./Protocol.ts"

/**
 * What the body is made of.
 *
 * @category models
 * @since 0.1.0
 */
export type Request = Pick<LanguageModel.ProviderOptions, "prompt" | "tools" | "toolChoice" | "responseFormat">

/**
 * A tool as the server is told of it.
 *
 * @category encoding
 * @since 0.1.0
 */
export const declare = (tool: Tool.Any): Effect.Effect<object, Reason> => {
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

/**
 * The response format that asks for an object.
 *
 * @category encoding
 * @since 0.1.0
 */
export const jsonFormat = (format: Extract<Request["responseFormat"], { readonly type: "json" }>) =>
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

/** @category encoding @since 0.1.0 */
export const toToolChoice = (choice: Request["toolChoice"]) =>
  typeof choice === "string"
    ? choice
    : "tool" in choice
      ? { type: "function", function: { name: choice.tool } }
      : (choice.mode ?? "auto")

/**
 * The first file that is no image, which the protocol cannot carry.
 *
 * @category predicates
 * @since 0.1.0
 */
export const findForeignFile = (prompt: Prompt.Prompt): Prompt.FilePart | undefined => {
  for (const message of prompt.content) {
    if (message.role !== "user") continue
    for (const part of message.content) {
      if (part.type === "file" && !part.mediaType.startsWith("image/")) return part
    }
  }
  return undefined
}

/** @category encoding @since 0.1.0 */
export const toMessages = (message: Prompt.Message): ReadonlyArray<object> => {
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
