/**
 * What a host saves when a generation has given its final answer, before the runtime looks a second time for corrections
 * (L-E1), and when a pause takes effect (L-C2).
 *
 * @since 0.1.0
 */
import { Context, Effect } from "effect"
import type * as Ids from "../domain/Ids.ts"

/** @category models @since 0.1.0 */
export interface Checkpoint {
  readonly sessionId: Ids.SessionId
  readonly generationId: Ids.GenerationId
  readonly request: number
  /** The last journalled sequence: what is at or before it is in the checkpoint. */
  readonly sequence: number
}

/** @category models @since 0.1.0 */
export type Service = (checkpoint: Checkpoint) => Effect.Effect<void>

/**
 * Saves nothing unless a host gives one.
 *
 * @category references
 * @since 0.1.0
 */
export const Checkpointer = Context.Reference<Service>("midcourse/engine/Checkpointer", {
  defaultValue: () => saveNothing
})

/** @category defaults @since 0.1.0 */
export const saveNothing: Service = () => Effect.void
