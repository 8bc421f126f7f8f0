/**
 * What happens next to the calls of one response, decided purely from what each has come to, what is pending, what is paused
 * and how the run stands (L-T3 to L-T5, L-T13, L-C2).
 *
 * @since 0.1.0
 */
import type { Closing } from "../boundary/Admission.ts"
import type { OnCorrection } from "../domain/Agent.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Decision, ToolCallStatus } from "../domain/ToolCall.ts"

/**
 * Where one call stands. `verdict` is the policy's, once it has been asked.
 *
 * @category models
 * @since 0.1.0
 */
export type State =
  | { readonly _tag: "Waiting"; readonly verdict: "unasked" | "allowed" }
  | { readonly _tag: "Asking"; readonly decision: Decision | undefined }
  | { readonly _tag: "Running" }
  | { readonly _tag: "Ended" }

/** @category models @since 0.1.0 */
export interface View {
  readonly calls: ReadonlyArray<{ readonly name: string; readonly state: State }>
  readonly concurrency: number
  readonly onCorrection: OnCorrection
  readonly closing: Closing | undefined
  readonly affecting: (tool: string) => ReadonlyArray<Ids.InputId>
  readonly pause: (tool: string) => "go" | "wait" | "withhold"
}

/**
 * What is to happen to the call at `index`.
 *
 * @category models
 * @since 0.1.0
 */
export type Transition =
  | { readonly _tag: "Withhold"; readonly index: number; readonly status: NotStarted }
  | { readonly _tag: "Consult"; readonly index: number }
  | { readonly _tag: "Deny"; readonly index: number; readonly reason: string }
  | { readonly _tag: "Launch"; readonly index: number }

/** @category models @since 0.1.0 */
export type NotStarted = Extract<ToolCallStatus, { readonly _tag: "NotStarted" }>

/**
 * Why a run that is ending launches nothing more.
 *
 * @category decisions
 * @since 0.1.0
 */
export const notStartedBy = (end: Closing): NotStarted => {
  switch (end.outcome) {
    case "cancelled":
      return { _tag: "NotStarted", reason: end.cause === "close" ? "closed" : "cancelled" }
    case "exhausted":
      return { _tag: "NotStarted", reason: "budget" }
    case "failed":
      return { _tag: "NotStarted", reason: "failed" }
    case "stopped":
    case "finished":
      return { _tag: "NotStarted", reason: "stopped" }
  }
}

/**
 * What happens next. A run that is ending and a correction that affects a call withhold it; a pause withholds it or makes it
 * wait; what is left is launched in the order requested as slots are free, each call once it has been allowed. A call that
 * waits for an answer holds up no other (L-T3, L-T4, L-T5, L-T13, L-C2).
 *
 * @category decisions
 * @since 0.1.0
 */
export const decide = (view: View): ReadonlyArray<Transition> => {
  const transitions: Array<Transition> = []
  let free = view.concurrency
  for (const call of view.calls) if (call.state._tag === "Running") free--
  view.calls.forEach(({ name, state }, index) => {
    if (state._tag !== "Waiting" && state._tag !== "Asking") return
    if (view.closing?.parks === true) return
    if (view.closing !== undefined) {
      transitions.push({ _tag: "Withhold", index, status: notStartedBy(view.closing) })
      return
    }
    // A batch may be let finish; a call that still waits for an answer is withdrawn in any case (L-T13).
    const withholds = view.onCorrection === "withhold" || state._tag === "Asking"
    const inputIds = withholds ? view.affecting(name) : []
    if (inputIds.length > 0) {
      transitions.push({ _tag: "Withhold", index, status: { _tag: "NotStarted", reason: "steering", inputIds } })
      return
    }
    if (state._tag === "Asking") {
      if (state.decision === undefined) return
      if (state.decision._tag === "Deny") {
        transitions.push({ _tag: "Deny", index, reason: state.decision.reason })
        return
      }
    }
    const pause = view.pause(name)
    if (pause === "withhold")
      transitions.push({ _tag: "Withhold", index, status: { _tag: "NotStarted", reason: "paused" } })
    if (pause !== "go" || free <= 0) return
    free--
    const allowed = state._tag === "Asking" || state.verdict === "allowed"
    transitions.push({ _tag: allowed ? "Launch" : "Consult", index })
  })
  return transitions
}
