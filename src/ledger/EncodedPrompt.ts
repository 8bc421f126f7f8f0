/**
 * Messages and inputs in the form that their schemas encode them to (L-R8). What a schema would only copy is copied here, in the
 * order of its fields, so that the text is the same; whatever else there is, the schema encodes or refuses.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { Prompt } from "effect/ai"
import { Input } from "../domain/Input.ts"

const inputBySchema = Schema.encodeSync(Input)
const messageBySchema = Schema.encodeSync(Prompt.Message)
const isOptions = Schema.is(Prompt.ProviderOptions)
const isText = (value: unknown): value is string => typeof value === "string"
const isFlag = (value: unknown): value is boolean => typeof value === "boolean"

/**
 * An input that `Input.read` has judged, as its schema encodes it.
 *
 * @category encoding
 * @since 0.1.0
 */
export const ofInput = (input: Input): typeof Input.Encoded => {
  const { author, content, derivedFrom, id, intent, metadata, route, scope } = input
  if (!isText(content)) return inputBySchema(input)
  // As text the two are the same: what is undefined is not written.
  return { id, intent, content, author, scope, route, derivedFrom, metadata } as typeof Input.Encoded
}

/**
 * A message as its schema encodes it.
 *
 * @category encoding
 * @since 0.1.0
 */
export const ofMessage = (message: Prompt.Message): unknown => copyOf(message) ?? messageBySchema(message)

/** The parts that are copied, by the role of their message. */
const copied: Readonly<Record<Exclude<Prompt.Message["role"], "system">, ReadonlySet<Prompt.Part["type"]>>> = {
  user: new Set(["text"]),
  assistant: new Set(["text", "reasoning", "tool-call", "tool-result"]),
  tool: new Set(["tool-result"])
}

const copyOf = (message: Prompt.Message): object | undefined => {
  const { content, options, role } = message
  if (!isOptions(options)) return undefined
  if (role === "system") return isText(content) ? { options, role, content } : undefined
  const copies = Array.isArray(content) ? copiesOf(content, copied[role]) : undefined
  return copies === undefined ? undefined : { options, role, content: copies }
}

const copiesOf = (
  parts: ReadonlyArray<Prompt.Part>,
  kinds: ReadonlySet<Prompt.Part["type"]>
): ReadonlyArray<object> | string | undefined => {
  const copies: Array<object> = []
  for (const part of parts) {
    const copy = kinds.has(part.type) ? copyOfPart(part) : undefined
    if (copy === undefined) return undefined
    copies.push(copy)
  }
  const [first] = parts
  // A text that is alone, and says nothing to providers, is encoded as the text itself.
  const alone = parts.length === 1 && first?.type === "text" && Object.keys(first.options).length === 0
  return alone ? first.text : copies
}

const copyOfPart = (part: Prompt.Part): object | undefined => {
  const { options, type } = part
  if (!isOptions(options)) return undefined
  switch (part.type) {
    case "text":
    case "reasoning":
      return isText(part.text) ? { options, type, text: part.text } : undefined
    case "tool-call": {
      const { id, name, params, providerExecuted } = part
      const known = isText(id) && isText(name) && isFlag(providerExecuted) && "params" in part
      return known ? { options, type, id, name, params, providerExecuted } : undefined
    }
    case "tool-result": {
      const { id, isFailure, modelOutput, name, providerExecuted, result } = part
      const known = isText(id) && isText(name) && isFlag(isFailure) && isFlag(providerExecuted) && "result" in part
      return known && modelOutput === undefined
        ? { options, type, id, name, isFailure, result, providerExecuted }
        : undefined
    }
    case "file":
    case "tool-approval-request":
    case "tool-approval-response":
      return undefined
  }
}
