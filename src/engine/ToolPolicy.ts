/**
 * The host's say on every call before it is launched. A refusal is `denied` and never looks like a correction (L-T6).
 *
 * @since 0.1.0
 */
import { Context, Effect, Schema } from "effect"
import type * as Ids from "../domain/Ids.ts"

/**
 * A call as the host's ports see it. `params` are the provider's, already found valid for the tool.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCall {
  readonly id: Ids.ToolCallId
  readonly providerId: string
  readonly name: string
  readonly params: unknown
  readonly request: number
}

/** @category models @since 0.1.0 */
export interface SessionInfo {
  readonly sessionId: Ids.SessionId
  readonly generationId: Ids.GenerationId
}

/** @category schemas @since 0.1.0 */
export const Verdict = Schema.Union([
  Schema.TaggedStruct("Allow", {}),
  Schema.TaggedStruct("Deny", { reason: Schema.String }),
  Schema.TaggedStruct("Ask", { question: Schema.String })
])
/** @category models @since 0.1.0 */
export type Verdict = typeof Verdict.Type

/** @category constructors @since 0.1.0 */
export const allow: Verdict = { _tag: "Allow" }
/** @category constructors @since 0.1.0 */
export const deny = (reason: string): Verdict => ({ _tag: "Deny", reason })
/** @category constructors @since 0.1.0 */
export const ask = (question: string): Verdict => ({ _tag: "Ask", question })

/** @category models @since 0.1.0 */
export type Service = (call: ToolCall, session: SessionInfo) => Effect.Effect<Verdict>

/**
 * Allows everything unless a host says otherwise. A policy that dies denies the call.
 *
 * @category references
 * @since 0.1.0
 */
export const ToolPolicy = Context.Reference<Service>("midcourse/engine/ToolPolicy", {
  defaultValue: () => allowAll
})

/** @category defaults @since 0.1.0 */
export const allowAll: Service = () => Effect.succeed(allow)
