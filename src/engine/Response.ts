/**
 * Gathers one streamed response. Nothing of it counts before its finish part has come: until then it is `Cut`, and what is
 * kept of a cut response is its text and the calls it had finished asking for (L-T12).
 *
 * @since 0.1.0
 */
import type { Schema } from "effect"
import { Prompt, Response } from "effect/ai"
import type { Usage } from "../domain/Generation.ts"
import type { Tools } from "../domain/Agent.ts"
import { isJson } from "../domain/Json.ts"
import { toJson } from "./ToolRunner.ts"

/**
 * A call the provider asked for, to be run here. `params` are as the provider sent them; what has no JSON form is given as text.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestedCall {
  readonly id: string
  readonly name: string
  readonly params: Schema.Json
}

/**
 * What a response came to. `message` is what enters the context, absent when nothing in it may be sent again; `repeats` are
 * calls whose id the response had used already, which no provider accepts twice.
 *
 * @category models
 * @since 0.1.0
 */
export interface Gathered {
  readonly text: string
  readonly calls: ReadonlyArray<RequestedCall>
  readonly repeats: ReadonlyArray<RequestedCall>
  readonly message: Prompt.AssistantMessage | undefined
  readonly usage: Usage
  /** Whether every part of the response is in `message`: a response-id tracker may go on from it only then (L-P4). */
  readonly whole: boolean
}

type Part = Response.StreamPart<Tools, "deferred">

const none: ReadonlyArray<RequestedCall> = []

/** @category models @since 0.1.0 */
export class Collector {
  readonly #parts: Array<Response.AnyPart> = []
  #calls: Array<RequestedCall> | undefined
  #ids: Set<string> | undefined
  #texts: Set<string> | undefined
  #reasonings: Set<string> | undefined
  #repeats: Array<RequestedCall> | undefined
  #text = ""
  #finish: Response.FinishPart | undefined
  #error: { readonly error: unknown } | undefined
  #malformed: string | undefined

  /** The finish reason, once it has come. */
  get reason(): Response.FinishReason | undefined {
    return this.#finish?.reason
  }

  /** What the provider streamed that no protocol allows, if anything. */
  get malformed(): string | undefined {
    return this.#malformed
  }

  /** The error the provider streamed as a part, if any. */
  get error(): { readonly error: unknown } | undefined {
    return this.#error
  }

  /** Takes one part; returns the text it adds, for whoever watches. */
  add(streamed: Part): { readonly type: "text.delta" | "reasoning.delta"; readonly text: string } | undefined {
    // A provider layer may skip effect/ai's decoding, so the few fields relied on here are looked at.
    if (typeof streamed !== "object" || streamed === null || typeof streamed.type !== "string") {
      this.#malformed ??= "a part that is not an object with a type"
      return undefined
    }
    const part = storable(streamed)
    if (this.#finish !== undefined) return undefined
    switch (part.type) {
      case "text-delta":
      case "reasoning-delta": {
        if (typeof part.delta !== "string") {
          this.#malformed ??= `a ${part.type} part without text`
          return undefined
        }
        this.#begin(part)
        this.#parts.push(part)
        if (part.type === "text-delta") this.#text += part.delta
        return { type: part.type === "text-delta" ? "text.delta" : "reasoning.delta", text: part.delta }
      }
      case "tool-call": {
        this.#call(part)
        return undefined
      }
      case "tool-result":
        // The results of calls made here are the runtime's to write.
        if (part.providerExecuted === true && part.preliminary !== true) {
          this.#parts.push({ ...part, encodedResult: toJson(part.encodedResult) })
        }
        return undefined
      case "finish":
        this.#finish = part
        return undefined
      case "error":
        this.#error = { error: part.error }
        return undefined
      case "text-start":
        ;(this.#texts ??= new Set()).add(part.id)
        this.#parts.push(part)
        return undefined
      case "reasoning-start":
        ;(this.#reasonings ??= new Set()).add(part.id)
        this.#parts.push(part)
        return undefined
      case "text-end":
      case "reasoning-end":
      case "file":
        this.#parts.push(part)
        return undefined
      default:
        return undefined
    }
  }

  /** A block that a provider never opened is opened here: what was streamed is in the context too. */
  #begin({ id, type }: Extract<Part, { readonly type: "text-delta" | "reasoning-delta" }>): void {
    const begun = type === "text-delta" ? (this.#texts ??= new Set()) : (this.#reasonings ??= new Set())
    if (begun.has(id)) return
    begun.add(id)
    this.#parts.push(Response.makePart(type === "text-delta" ? "text-start" : "reasoning-start", { id }))
  }

  #call(part: Extract<Part, { readonly type: "tool-call" }>): void {
    const { id, name }: { readonly id: unknown; readonly name: unknown } = part
    if (typeof id !== "string" || id === "" || typeof name !== "string" || name === "") {
      this.#malformed ??= "a tool call without an id or a name"
      return
    }
    const ids = (this.#ids ??= new Set())
    const known = ids.has(id)
    ids.add(id)
    // What has no JSON form could be sent to no provider again.
    const params = part.params === undefined ? {} : paramsJson(part.params)
    if (part.providerExecuted === true) {
      if (!known) this.#parts.push(params === part.params ? part : { ...part, params })
      return
    }
    const call: RequestedCall = { id, name, params }
    if (known) {
      ;(this.#repeats ??= []).push(call)
      return
    }
    ;(this.#calls ??= []).push(call)
    this.#parts.push(params === part.params ? part : { ...part, params })
  }

  /** What was gathered; `interrupted` marks the message of a response that was cut. */
  gather(interrupted: boolean): Gathered {
    const made = Prompt.fromResponseParts(this.#parts).content[0]
    const assistant = made?.role === "assistant" ? made : undefined
    const paired = assistant === undefined ? [] : assistant.content.filter(isSendable)
    const content = interrupted ? paired.filter(isEnded(paired)) : paired
    // Alone, reasoning is no message: no provider takes it back.
    const kept = content.some((part) => part.type !== "reasoning") ? content : []
    const whole = !interrupted && kept.length === (assistant?.content.length ?? 0)
    const usage = this.#finish?.usage
    return {
      text: this.#text,
      calls: this.#calls ?? none,
      repeats: this.#repeats ?? none,
      message:
        kept.length === 0
          ? undefined
          : whole
            ? assistant
            : Prompt.assistantMessage({
                content: kept,
                ...(interrupted ? { options: { midcourse: { interrupted: true } } } : undefined)
              }),
      usage: { inputTokens: usage?.inputTokens?.total ?? 0, outputTokens: usage?.outputTokens?.total ?? 0 },
      whole: whole && this.#repeats === undefined
    }
  }
}

/** Metadata without a JSON form could be kept in no journal; it goes in as what it would be sent as. */
const storable = (part: Part): Part => {
  const metadata: unknown = part.metadata
  if (metadata === undefined || isJson(metadata)) return part
  const sent = toJson(metadata)
  // A provider's metadata is a record by its type; what is left of it still is, or it is dropped.
  return { ...part, metadata: typeof sent === "object" && sent !== null ? sent : {} } as Part
}

/** Blank text is not; and a result of the provider's stands for one call of its own, made before it: any other would poison the conversation (L-T2). */
const isSendable = (
  part: Prompt.AssistantMessagePart,
  index: number,
  content: ReadonlyArray<Prompt.AssistantMessagePart>
): boolean => {
  if (part.type === "text") return part.text.trim() !== ""
  if (part.type !== "tool-result") return true
  const before = content.slice(0, index)
  return (
    before.some((each) => each.type === "tool-call" && each.providerExecuted && each.id === part.id) &&
    !before.some((each) => each.type === "tool-result" && each.id === part.id)
  )
}

/** In a cut response a call the provider runs itself may lack its result; such a call is dropped with it (L-T12). */
const isEnded =
  (content: ReadonlyArray<Prompt.AssistantMessagePart>) =>
  (part: Prompt.AssistantMessagePart): boolean =>
    part.type !== "tool-call" ||
    !part.providerExecuted ||
    content.some((other) => other.type === "tool-result" && other.id === part.id)

const paramsJson = (params: unknown): Schema.Json => (isJson(params) ? params : String(params))
