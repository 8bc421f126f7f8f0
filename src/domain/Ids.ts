/**
 * The identifiers of a session's things: branded strings of 1 to 128 printable ASCII characters (L-A6).
 * A `GenerationId` and a `ToolCallId` are made by the runtime and never repeat, so an id kept from an ended
 * generation, another session or an earlier opening can never name a live one (L-A3).
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/** The longest identifier, in characters. */
export const maxLength = 128

const pattern = /^[\x20-\x7e]{1,128}$/

/**
 * Whether a value is 1 to 128 printable ASCII characters.
 *
 * @category guards
 * @since 0.1.0
 */
export const isId = (u: unknown): u is string => typeof u === "string" && pattern.test(u)

const Id = Schema.String.check(Schema.isPattern(pattern, { description: "1 to 128 printable ASCII characters" }))

/**
 * One conversation and its one owner.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SessionId = Id.pipe(Schema.brand("SessionId"))
/** @category models @since 0.1.0 */
export type SessionId = typeof SessionId.Type

/**
 * One finite run inside a session.
 *
 * @category schemas
 * @since 0.1.0
 */
export const GenerationId = Id.pipe(Schema.brand("GenerationId"))
/** @category models @since 0.1.0 */
export type GenerationId = typeof GenerationId.Type

/**
 * One input, chosen by the caller; the same id is the same input for the life of the session (L-I1).
 *
 * @category schemas
 * @since 0.1.0
 */
export const InputId = Id.pipe(Schema.brand("InputId"))
/** @category models @since 0.1.0 */
export type InputId = typeof InputId.Type

/**
 * One requested tool call, unique in its session; the provider's own id goes back to the provider verbatim (L-T1).
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolCallId = Id.pipe(Schema.brand("ToolCallId"))
/** @category models @since 0.1.0 */
export type ToolCallId = typeof ToolCallId.Type
