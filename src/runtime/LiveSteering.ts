/**
 * The `live.steering` capability, exactly as the contract names it: for hosts that must never turn late steering into a new
 * request (L-A1).
 *
 * @since 0.1.0
 */
import type { Effect } from "effect"
import type * as Ids from "../domain/Ids.ts"
import type * as Input from "../domain/Input.ts"
import type * as Receipt from "../domain/Receipt.ts"

/**
 * `submit` anchors a steer to one running generation. It is admitted for that generation's next request boundary, or refused;
 * it never starts or joins another. Interrupting the caller changes nothing of that.
 *
 * @category models
 * @since 0.1.0
 */
export interface LiveSteering {
  readonly version: 1
  readonly mode: "request_boundary" | "unavailable"
  readonly cancellable: false
  readonly submit: (input: Input.Input, generationId: Ids.GenerationId) => Effect.Effect<Receipt.Receipt>
}
