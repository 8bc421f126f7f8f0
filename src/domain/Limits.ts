/**
 * What one session will hold at most (L-A6). A full ledger or queue refuses; nothing is ever evicted.
 *
 * @since 0.1.0
 */
import { Context, Duration, Effect, Layer } from "effect"

/**
 * Counts are inputs; `textLength` is in UTF-16 code units, `fileBytes` and `metadataBytes` in bytes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  /** Accepted identities a session; 2,000 is the contract's figure. */
  readonly identities: number
  /** Steering accepted and not yet written. */
  readonly pendingSteering: number
  /** Follow-ups, collects and waiting turns, counted apart from steering. */
  readonly queued: number
  readonly textLength: number
  readonly fileBytes: number
  /** Parts of one input's content. */
  readonly parts: number
  readonly metadataBytes: number
  readonly metadataDepth: number
  /** Names in one scope. */
  readonly scopeNames: number
  /** Pauses of one session that have not ended. */
  readonly pauses: number
  /** UTF-16 code units of one tool result; a longer one keeps its head, its tail and its size. */
  readonly toolResultLength: number
  /** How long a collect waits for a compatible neighbour (L-F3). */
  readonly collectDebounce: Duration.Duration
  /** Collects merged into one generation at most (L-F3). */
  readonly collectCap: number
}

/**
 * The limits of every session opened under it.
 *
 * @category references
 * @since 0.1.0
 */
export const Limits = Context.Reference<Limits>("midcourse/domain/Limits", {
  defaultValue: () => ({
    identities: 2000,
    pendingSteering: 128,
    queued: 128,
    textLength: 16_000,
    fileBytes: 8 * 1024 * 1024,
    parts: 256,
    metadataBytes: 8 * 1024,
    metadataDepth: 8,
    scopeNames: 64,
    pauses: 64,
    toolResultLength: 64_000,
    collectDebounce: Duration.millis(500),
    collectCap: 20
  })
})

/**
 * Changes some of the limits of the sessions opened under it; the others stay as they are outside.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (limits: Partial<Limits>): Layer.Layer<never> =>
  Layer.effect(
    Limits,
    Effect.map(Limits, (outer) => ({ ...outer, ...limits }))
  )
