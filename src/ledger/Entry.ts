/**
 * What the journal holds: events, which take a sequence and are published, and records, which do neither (L-V1, L-R8). State is
 * the fold of both; nothing is kept that they do not say.
 *
 * @since 0.1.0
 */
import type { Prompt } from "effect/ai"
import type * as Event from "../domain/Event.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Input } from "../domain/Input.ts"
import type { Delivery } from "../domain/Receipt.ts"
import type { Decision } from "../domain/ToolCall.ts"

/**
 * An accepted identity (L-I3): the whole input, the anchor the caller gave, and the generation it is bound to, if any.
 *
 * @category models
 * @since 0.1.0
 */
export interface InputRecord {
  readonly record: "input"
  readonly input: Input
  readonly anchor: Ids.GenerationId | null
  readonly generation_id: Ids.GenerationId | null
  readonly delivery: Delivery
  readonly time: number
}

/**
 * One message of the context, where the journal is the context.
 *
 * @category models
 * @since 0.1.0
 */
export interface MessageRecord {
  readonly record: "message"
  readonly generation_id: Ids.GenerationId
  readonly message: Prompt.Message
}

/**
 * A write of these inputs into a context that is not the journal is about to begin (L-B3).
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteBegunRecord {
  readonly record: "write-begun"
  readonly generation_id: Ids.GenerationId
  readonly input_ids: ReadonlyArray<Ids.InputId>
}

/**
 * A host resumed by hand, or gave a signal: what pauses' conditions look at (L-C3).
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumedRecord {
  readonly record: "resumed"
  readonly signal: string | null
}

/**
 * A host answered a question about a call (L-T13).
 *
 * @category models
 * @since 0.1.0
 */
export interface DecisionRecord {
  readonly record: "decision"
  readonly call_id: Ids.ToolCallId
  readonly decision: Decision
}

/** @category models @since 0.1.0 */
export type Record = InputRecord | MessageRecord | WriteBegunRecord | ResumedRecord | DecisionRecord

/** @category models @since 0.1.0 */
export type Entry = Event.Body | Record

/** @category models @since 0.1.0 */
export type Committed = Event.SessionEvent | Record

/** @category predicates @since 0.1.0 */
export const isRecord = (entry: Entry | Committed): entry is Record => "record" in entry
