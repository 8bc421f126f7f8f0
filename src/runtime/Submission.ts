/**
 * What becomes of a submitted input, decided purely and in the order of the contract. Its shape was judged when it was read; then
 * come identity, anchor, capacity, and only then admission (L-A2). A refusal leaves no trace.
 *
 * @since 0.1.0
 */
import * as Admission from "../boundary/Admission.ts"
import * as Ids from "../domain/Ids.ts"
import * as Input from "../domain/Input.ts"
import type { Limits } from "../domain/Limits.ts"
import type * as Receipt from "../domain/Receipt.ts"
import type { SessionErrorReason } from "../domain/SessionError.ts"
import type { Run } from "../engine/Engine.ts"
import * as Digest from "../ledger/Digest.ts"
import type { AcceptedInput, Projection } from "../ledger/Projection.ts"

/**
 * What a decision looks at. `live` is the generation whose terminal event has not been published.
 *
 * @category models
 * @since 0.1.0
 */
export interface View {
  readonly limits: Limits
  readonly projection: Projection
  readonly live: Run | undefined
  readonly closed: boolean
  /** The journal can no longer be written: what this session says of its inputs may no longer be so (L-R4, L-R7). */
  readonly lost: SessionErrorReason | undefined
  /** Handed to the journal and not yet written (L-A7): each counts as accepted for capacity and for being idle. */
  readonly reserved: { readonly identities: number; readonly queued: number; readonly starting: boolean }
  readonly paused: boolean
  readonly steering: "request_boundary" | "unavailable"
}

/**
 * `Join` binds the input to the live generation's next boundary, `Start` starts a generation with it, `Enqueue` lets it wait.
 *
 * @category models
 * @since 0.1.0
 */
export type Decision =
  | { readonly _tag: "Refuse"; readonly receipt: Receipt.Refusal }
  | { readonly _tag: "Known"; readonly receipt: Receipt.Accepted }
  | { readonly _tag: "Join"; readonly run: Run }
  | { readonly _tag: "Start" }
  | { readonly _tag: "Enqueue" }

const refuse = (
  inputId: string,
  generationId: string | null,
  reason: Receipt.RefusalReason,
  more: { readonly actual?: Ids.GenerationId | null; readonly detail?: string } = {}
): Decision => ({
  _tag: "Refuse",
  receipt: { accepted: false, inputId, generationId, disposition: "refused", reason, ...more }
})

/** The id a caller gave, or `""` where it gave none that could be said back. */
const idOf = (input: unknown): string => {
  try {
    return typeof input === "object" && input !== null && "id" in input && typeof input.id === "string" ? input.id : ""
  } catch {
    return ""
  }
}

/** Identity: what every submission meets first (L-I1). Its shape was judged when it was read. */
const known = (view: View, input: Input.Input, anchor: Ids.GenerationId | null): Decision | undefined => {
  if (view.lost !== undefined) return unwritten(input.id, anchor, view.lost)
  const found = view.projection.inputs.get(input.id)
  if (found === undefined) return undefined
  const receipt = view.projection.receipt(input.id)
  if (receipt !== undefined && found.anchor === anchor && isSame(found, input)) {
    return { _tag: "Known", receipt }
  }
  const conflict =
    found.anchor === anchor
      ? "this id was accepted before with other content"
      : `this id was accepted before with the anchor ${found.anchor ?? "none"}`
  return refuse(input.id, anchor, "identity-conflict", { detail: conflict })
}

const isSame = (found: AcceptedInput, input: Input.Input): boolean =>
  found.input === undefined ? found.digest === Digest.ofInput(input) : Input.same(found.input, input)

/** Capacity: the last check. A refusal says what is full and what to do. */
const full = (view: View, input: Input.Input, anchor: Ids.GenerationId | null, run?: Run): Decision | undefined => {
  const { limits, projection } = view
  if (projection.inputs.size + view.reserved.identities >= limits.identities) {
    const detail = `this session has accepted ${limits.identities} inputs, which is its limit; open another`
    return refuse(input.id, anchor, "identities-exhausted", { detail })
  }
  if (
    run !== undefined &&
    Admission.pending(run.admission).length + Admission.get(run.admission).reserved >= limits.pendingSteering
  ) {
    const detail = `${limits.pendingSteering} corrections are pending; wait for the next request`
    return refuse(input.id, anchor, "queue-full", { detail })
  }
  if (run === undefined && projection.queue.length + projection.turns.length + view.reserved.queued >= limits.queued) {
    const detail = `${limits.queued} inputs are queued; wait for the next generation`
    return refuse(input.id, anchor, "queue-full", { detail })
  }
  return undefined
}

/**
 * Steering anchored to one generation: it joins that generation or is refused, and never starts one (L-A3, L-A4).
 *
 * @category decisions
 * @since 0.1.0
 */
export const anchored = (view: View, input: Input.Input, generationId: Ids.GenerationId): Decision => {
  if (generationId !== view.live?.id && !Ids.isId(generationId)) {
    const detail = "a generation id is 1 to 128 printable ASCII characters"
    return refuse(input.id, null, "invalid-input", { detail })
  }
  const early = known(view, input, generationId)
  if (early !== undefined) return early
  if (input.intent !== "steer") {
    return refuse(input.id, generationId, "invalid-input", { detail: "only a steer can be anchored to a generation" })
  }
  if (view.steering === "unavailable") return refuse(input.id, generationId, "unavailable")
  const { live } = view
  const actual = live?.id ?? null
  if (live === undefined) {
    return refuse(input.id, generationId, view.closed ? "session-closed" : "no-active-generation", { actual })
  }
  if (live.id !== generationId) return refuse(input.id, generationId, "generation-mismatch", { actual })
  if (Admission.get(live.admission)._tag === "Closed") {
    return refuse(input.id, generationId, view.closed ? "session-closed" : "admission-closed", { actual })
  }
  return full(view, input, generationId, live) ?? { _tag: "Join", run: live }
}

/**
 * Ordinary delivery, by intent (L-F1, L-F2, L-F5).
 *
 * @category decisions
 * @since 0.1.0
 */
export const ordinary = (view: View, input: Input.Input): Decision => {
  const early = known(view, input, null)
  if (early !== undefined) return early
  if (view.closed) return refuse(input.id, null, "session-closed")
  const { live, projection } = view
  const waits = projection.turns.length > 0 || projection.queue.length > 0 || view.reserved.queued > 0
  const idle = live === undefined && !waits && !view.reserved.starting
  switch (input.intent) {
    case "prompt":
      if (view.paused) return refuse(input.id, null, "paused", { actual: live?.id ?? null })
      if (!idle) return refuse(input.id, null, "busy", { actual: live?.id ?? null })
      return full(view, input, null) ?? { _tag: "Start" }
    case "steer": {
      if (live !== undefined && Admission.get(live.admission)._tag === "Open") {
        if (view.steering === "unavailable") return refuse(input.id, null, "unavailable", { actual: live.id })
        return full(view, input, null, live) ?? { _tag: "Join", run: live }
      }
      return full(view, input, null) ?? { _tag: idle && !view.paused ? "Start" : "Enqueue" }
    }
    case "follow-up":
      return full(view, input, null) ?? { _tag: idle && !view.paused ? "Start" : "Enqueue" }
    case "collect":
      // A collect always waits: a neighbour it can be merged with may follow (L-F3).
      return full(view, input, null) ?? { _tag: "Enqueue" }
  }
}

/**
 * The refusal of what is no input, with what is wrong.
 *
 * @category decisions
 * @since 0.1.0
 */
export const unread = (given: unknown, anchor: Ids.GenerationId | null, detail: string): Decision =>
  refuse(idOf(given), Ids.isId(anchor) ? anchor : null, "invalid-input", { detail })

/**
 * The refusal of an admission that was not written. `unconfirmed` means that it may have been: submitting the same input again
 * after the session is opened again tells the truth (L-A7).
 *
 * @category decisions
 * @since 0.1.0
 */
export const unwritten = (
  inputId: Ids.InputId,
  anchor: Ids.GenerationId | null,
  reason: SessionErrorReason
): Decision => {
  if (reason._tag === "Closed") return refuse(inputId, anchor, "session-closed")
  const detail = reason._tag === "StorageUnavailable" ? reason.detail : reason._tag
  return refuse(inputId, anchor, "storage-unavailable", { detail })
}

/**
 * What becomes of a queued follow-up that is to be steering of the running generation instead (L-F9). `Promote` carries the new
 * input; a refusal leaves everything as it was, and the same promotion again is answered with its receipt.
 *
 * @category decisions
 * @since 0.1.0
 */
export const promotion = (
  view: View,
  id: Ids.InputId,
  generationId: Ids.GenerationId,
  as: Ids.InputId
): Decision | { readonly _tag: "Promote"; readonly input: Input.Input; readonly run: Run } => {
  const found = view.projection.inputs.get(id)
  if (found === undefined) return refuse(String(id), generationId, "unknown-id")
  if (found.status._tag === "Held" && found.status.reason === "promoted") {
    const receipt = found.promoted === undefined ? undefined : view.projection.receipt(found.promoted)
    if (receipt !== undefined && receipt.generationId === generationId) return { _tag: "Known", receipt }
  }
  if (found.status._tag !== "Queued" || found.input?.intent !== "follow-up") {
    return refuse(id, generationId, "not-queued")
  }
  const input: Input.Input = { ...found.input, id: as, intent: "steer", derivedFrom: id }
  // Nobody has read the id that the caller chose, nor the content under the limits of this opening.
  const detail = Ids.isId(generationId) ? Input.invalid(input, view.limits) : undefined
  if (detail !== undefined) return refuse(idOf(input), generationId, "invalid-input", { detail })
  const decision = anchored(view, input, generationId)
  switch (decision._tag) {
    case "Join":
      return { _tag: "Promote", input, run: decision.run }
    case "Known":
      // An input of that id and content was steered before; it did not come from this queue.
      return refuse(as, generationId, "identity-conflict", { detail: "this id was accepted before" })
    case "Refuse":
    case "Start":
    case "Enqueue":
      return decision
  }
}
