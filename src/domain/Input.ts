/**
 * What a person or a program says to a session. An input is a value with an identity: submitting the same one again is
 * always safe and changes nothing (L-I1).
 *
 * @since 0.1.0
 */
import { Result, Schema } from "effect"
import { Prompt } from "effect/ai"
import * as Ids from "./Ids.ts"
import { isJson } from "./Json.ts"
import type { Limits } from "./Limits.ts"
import * as ToolScope from "./ToolScope.ts"

/**
 * What the caller wants done with an input: start a generation, correct the running one, ask for a later one, or be
 * merged with its neighbours into a later one.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Intent = Schema.Literals(["prompt", "steer", "follow-up", "collect"])
/** @category models @since 0.1.0 */
export type Intent = typeof Intent.Type

/**
 * Whether a value is an intent.
 *
 * @category guards
 * @since 0.1.0
 */
export const isIntent = Schema.is(Intent)

/**
 * Text, or effect/ai's own user parts (text and files). `options` on parts are dropped (L-B4).
 *
 * @category models
 * @since 0.1.0
 */
export type Content = string | ReadonlyArray<Prompt.UserMessagePart>

/**
 * One input. `metadata` is kept with the input and never reaches the model; the author is not rendered into the text.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Input = Schema.Struct({
  id: Ids.InputId,
  intent: Intent,
  content: Schema.Union([Schema.String, Schema.Array(Prompt.UserMessagePart)]),
  author: Schema.String,
  scope: Schema.optionalKey(ToolScope.ToolScope),
  route: Schema.optionalKey(Schema.String),
  derivedFrom: Schema.optionalKey(Ids.InputId),
  metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
})
/** @category models @since 0.1.0 */
export type Input = typeof Input.Type

/**
 * The fields a caller may set. An absent `id` is made at random; an absent author is `"user"`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly id?: string
  readonly author?: string
  readonly scope?: ToolScope.ToolScope
  readonly route?: string
  readonly derivedFrom?: string
  readonly metadata?: { readonly [key: string]: Schema.Json }
}

const make = (intent: Intent, content: Content, options: Options = {}): Input =>
  ({
    ...options,
    // Ids are branded here unchecked: `submit` is where a bad one is refused, with its reason.
    id: (options.id ?? `in_${globalThis.crypto.randomUUID()}`) as Ids.InputId,
    ...(options.derivedFrom === undefined ? undefined : { derivedFrom: options.derivedFrom as Ids.InputId }),
    intent,
    content,
    author: options.author ?? "user"
  }) as Input

/**
 * Starts a generation if the session is idle, else is refused `busy` (L-F1).
 *
 * @category constructors
 * @since 0.1.0
 */
export const prompt = (content: Content, options?: Options): Input => make("prompt", content, options)

/**
 * A correction of the running generation, delivered at its next request boundary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const steer = (content: Content, options?: Options): Input => make("steer", content, options)

/**
 * A request for a later generation of its own (L-F2).
 *
 * @category constructors
 * @since 0.1.0
 */
export const followUp = (content: Content, options?: Options): Input => make("follow-up", content, options)

/**
 * A request to be merged with compatible neighbours into one later generation (L-F3).
 *
 * @category constructors
 * @since 0.1.0
 */
export const collect = (content: Content, options?: Options): Input => make("collect", content, options)

/**
 * A question or remark: steering that withholds nothing and cancels nothing (L-T5).
 *
 * @category constructors
 * @since 0.1.0
 */
export const ask = (content: Content, options?: Omit<Options, "scope">): Input =>
  make("steer", content, { ...options, scope: ToolScope.none })

const fault = (name: string, text: string, maximum: number): string | undefined =>
  text.length > maximum
    ? `${name} is ${text.length} characters long; the limit is ${maximum}`
    : text.includes("\0")
      ? `${name} contains U+0000`
      : text.isWellFormed()
        ? undefined
        : `${name} contains a lone surrogate`

const short = (name: string, u: unknown): string | undefined =>
  u === undefined ? undefined : typeof u === "string" ? fault(name, u, Ids.maxLength) : `${name} must be a string`

/** Whether a value is nested deeper than allowed; it looks no deeper than that itself. */
const isDeeper = (u: unknown, depth: number): boolean =>
  typeof u === "object" && u !== null && (depth === 0 || Object.values(u).some((each) => isDeeper(each, depth - 1)))

const metadataFault = (metadata: unknown, limits: Limits): string | undefined => {
  if (metadata === undefined) return undefined
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) return "metadata must be an object"
  if (isDeeper(metadata, limits.metadataDepth)) return `metadata is nested deeper than ${limits.metadataDepth}`
  let json: string
  try {
    json = JSON.stringify(metadata)
  } catch {
    return "metadata is not JSON"
  }
  const bytes = new TextEncoder().encode(json).length
  if (bytes > limits.metadataBytes) return `metadata is ${bytes} bytes; the limit is ${limits.metadataBytes}`
  return isJson(metadata) ? undefined : "metadata is not JSON"
}

/** In bytes as they are given; a URL that is elsewhere has none, and is refused when it is longer than any in use. */
const fileSize = (data: unknown): number | undefined => {
  if (typeof data === "string" || data instanceof Uint8Array) return data.length
  if (data instanceof URL) {
    if (data.protocol === "data:") return data.href.length
    return data.href.length <= longestUrl ? 0 : undefined
  }
  return undefined
}

const longestUrl = 8192

const contentFault = (content: unknown, limits: Limits): string | undefined => {
  if (typeof content === "string") {
    return fault("content", content, limits.textLength) ?? (content.trim() === "" ? "content is blank" : undefined)
  }
  if (!Array.isArray(content)) return "content must be text or a list of text and file parts"
  if (content.length === 0) return "content is blank"
  if (content.length > limits.parts) return `content has ${content.length} parts; the limit is ${limits.parts}`
  let length = 0
  let bytes = 0
  for (const part of content as ReadonlyArray<unknown>) {
    if (!Prompt.isPart(part) || (part.type !== "text" && part.type !== "file")) {
      return "content may hold only text and file parts"
    }
    if (part.type === "text") {
      if (typeof part.text !== "string") return "a text part must hold a string"
      const wrong = fault("a text part", part.text, limits.textLength)
      if (wrong !== undefined) return wrong
      if (part.text.trim() === "") return "a text part is blank"
      length += part.text.length
      continue
    }
    const size = fileSize(part.data)
    if (size === undefined || typeof part.mediaType !== "string") return "a file part must hold data and a media type"
    const wrong = short("a media type", part.mediaType) ?? short("a file name", part.fileName)
    if (wrong !== undefined) return wrong
    bytes += size
  }
  if (bytes > limits.fileBytes) return `files are ${bytes} bytes; the limit is ${limits.fileBytes}`
  return length > limits.textLength
    ? `content is ${length} characters long; the limit is ${limits.textLength}`
    : undefined
}

const scopeFault = (scope: unknown, limits: Limits): string | undefined => {
  if (scope === undefined) return undefined
  const names = typeof scope === "object" && scope !== null && "tools" in scope ? scope.tools : undefined
  if (!Array.isArray(names)) return "scope must be { tools: [...] }"
  if (names.length > limits.scopeNames) return `scope names ${names.length} tools; the limit is ${limits.scopeNames}`
  return names.every((name) => typeof name === "string" && name.length <= Ids.maxLength)
    ? undefined
    : `scope names must be strings of at most ${Ids.maxLength} characters`
}

/**
 * What is wrong with an input's shape, or `undefined` (L-A2, L-A6). Takes `unknown`, for callers without types.
 *
 * @category validation
 * @since 0.1.0
 */
export const invalid = (u: unknown, limits: Limits): string | undefined => {
  try {
    return shapeFault(u, limits)
  } catch {
    return unreadable
  }
}

const unreadable = "the input cannot be read: a property of it throws, or its data was moved elsewhere"

/**
 * The runtime's own copy of a submitted input, or what is wrong with it: read once, so that what was checked is what is kept
 * (L-A2, L-I2).
 *
 * @category conversions
 * @since 0.1.0
 */
export const read = (u: Input, limits: Limits): Result.Result<Input, string> => {
  try {
    if (typeof u !== "object" || u === null) return Result.fail(noObject)
    const { author, content, derivedFrom, id, intent, metadata, route, scope } = u
    const seen = { id, intent, content, author, scope, route, derivedFrom, metadata }
    const wrong = shapeFault(seen, limits)
    if (wrong !== undefined) return Result.fail(wrong)
    const copy = own(seen)
    // What is nested is read once more by copying it: what a getter says the second time is what is kept, so it is looked at too.
    const isFlat = typeof content === "string" && scope === undefined && metadata === undefined
    const changed = isFlat ? undefined : shapeFault(copy, limits)
    return changed === undefined ? Result.succeed(copy) : Result.fail(changed)
  } catch {
    return Result.fail(unreadable)
  }
}

const noObject = "an input must be an object"

const shapeFault = (u: unknown, limits: Limits): string | undefined => {
  if (typeof u !== "object" || u === null) return noObject
  const input = u as { readonly [key in keyof Input]?: unknown }
  if (!Ids.isId(input.id)) return "id must be 1 to 128 printable ASCII characters"
  if (!isIntent(input.intent)) return "intent must be prompt, steer, follow-up or collect"
  if (input.derivedFrom !== undefined && !Ids.isId(input.derivedFrom)) {
    return "derivedFrom must be 1 to 128 printable ASCII characters"
  }
  return (
    contentFault(input.content, limits) ??
    (typeof input.author === "string" ? short("author", input.author) : "author must be a string") ??
    short("route", input.route) ??
    scopeFault(input.scope, limits) ??
    metadataFault(input.metadata, limits)
  )
}

const sameData = (a: string | Uint8Array | URL, b: string | Uint8Array | URL): boolean =>
  a instanceof Uint8Array && b instanceof Uint8Array
    ? a.length === b.length && a.every((byte, i) => byte === b[i])
    : typeof a === typeof b && String(a) === String(b)

const partsOf = (content: Content): ReadonlyArray<Prompt.UserMessagePart> =>
  typeof content === "string" ? [Prompt.makePart("text", { text: content })] : content

const sameContent = (a: Content, b: Content): boolean => {
  if (typeof a === "string" && typeof b === "string") return a === b
  const left = partsOf(a)
  const right = partsOf(b)
  return (
    left.length === right.length &&
    left.every((part, i) => {
      const other = right[i]
      if (part.type === "text") return other?.type === "text" && part.text === other.text
      return (
        other?.type === "file" &&
        part.mediaType === other.mediaType &&
        part.fileName === other.fileName &&
        sameData(part.data, other.data)
      )
    })
  )
}

/**
 * Whether two inputs of one id are the same input (L-I2): everything but the metadata, of which the first stands.
 *
 * @category predicates
 * @since 0.1.0
 */
export const same = (a: Input, b: Input): boolean =>
  a.intent === b.intent &&
  a.author === b.author &&
  a.route === b.route &&
  a.derivedFrom === b.derivedFrom &&
  ToolScope.equals(a.scope, b.scope) &&
  sameContent(a.content, b.content)

/** An input as it is read field by field. */
type Fields = { readonly [Field in keyof Input]: Input[Field] | undefined } & Pick<
  Input,
  "id" | "intent" | "content" | "author"
>

/**
 * An input of the runtime's own: what the caller does with its copy afterwards changes nothing (L-I2).
 *
 * @category conversions
 * @since 0.1.0
 */
export const own = (input: Fields): Input => ({
  id: input.id,
  intent: input.intent,
  content: typeof input.content === "string" ? input.content : input.content.map(ownPart),
  author: input.author,
  ...(input.scope === undefined ? undefined : { scope: { tools: [...input.scope.tools] } }),
  ...(input.route === undefined ? undefined : { route: input.route }),
  ...(input.derivedFrom === undefined ? undefined : { derivedFrom: input.derivedFrom }),
  ...(input.metadata === undefined ? undefined : { metadata: structuredClone(input.metadata) })
})

/** A Node `Buffer`'s own `slice` is another view of the same bytes. */
const ownData = (data: Prompt.FilePart["data"]): Prompt.FilePart["data"] => {
  if (data instanceof Uint8Array) return Uint8Array.from(data)
  return data instanceof URL ? new URL(data.href) : data
}

/** A part with what the caller may say of it: `options` are the runtime's alone to write (L-B4). */
const ownPart = (part: Prompt.UserMessagePart): Prompt.UserMessagePart => {
  if (part.type === "text") return Prompt.makePart("text", { text: part.text })
  return Prompt.makePart("file", {
    mediaType: part.mediaType,
    data: ownData(part.data),
    ...(part.fileName === undefined ? undefined : { fileName: part.fileName })
  })
}

/**
 * A text that is equal for two inputs of one id exactly when they are the same (L-I2): what `same` compares, in one order. Bytes
 * of files are given to `digestBytes`.
 *
 * @category conversions
 * @since 0.1.0
 */
export const canonical = (input: Input, digestBytes: (bytes: Uint8Array) => string): string =>
  JSON.stringify([
    input.intent,
    input.author,
    input.route ?? null,
    input.derivedFrom ?? null,
    input.scope === undefined ? null : [...new Set(input.scope.tools)].sort(),
    partsOf(input.content).map((part) =>
      part.type === "text"
        ? part.text
        : [
            part.mediaType,
            part.fileName ?? null,
            part.data instanceof Uint8Array ? ["bytes", digestBytes(part.data)] : [typeof part.data, String(part.data)]
          ]
    )
  ])

/**
 * The message an input becomes. Everything the runtime adds is under `options.midcourse`; the text goes verbatim (L-B4).
 *
 * @category conversions
 * @since 0.1.0
 */
export const toMessage = (input: Input, target: Ids.GenerationId): Prompt.UserMessage =>
  Prompt.userMessage({
    content: typeof input.content === "string" ? partsOf(input.content) : input.content.map(ownPart),
    options: {
      midcourse: {
        input_id: input.id,
        intent: input.intent,
        author: input.author,
        target_generation_id: target
      }
    }
  })

/**
 * The input a message was made from, if the runtime wrote it (L-B4).
 *
 * @category conversions
 * @since 0.1.0
 */
export const idOfMessage = (message: Prompt.Message): Ids.InputId | undefined => {
  if (message.role !== "user") return undefined
  const own: unknown = message.options["midcourse"]
  return typeof own === "object" && own !== null && "input_id" in own && Ids.isId(own.input_id)
    ? (own.input_id as Ids.InputId)
    : undefined
}
