/**
 * Pauses (L-C2, L-C3). What a pause holds back is decided purely from the pauses that have not ended; it takes effect when no
 * affected work runs any more and a recovery checkpoint is saved, and ends when its conditions hold and not before.
 *
 * @since 0.1.0
 */
import type * as ResumeCondition from "../domain/ResumeCondition.ts"
import { holds, unmet } from "../domain/ResumeCondition.ts"
import { affects } from "../domain/ToolScope.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { PauseState, Projection } from "../ledger/Projection.ts"

/**
 * What the pauses do to a call of the tool named: let it `go`, make it `wait` (an unscoped pause), or `withhold` it so that
 * other work can go on (a scoped one).
 *
 * @category decisions
 * @since 0.1.0
 */
export const onTool = (projection: Projection, tool: string): "go" | "wait" | "withhold" => {
  const { pauses } = projection
  if (pauses.length === 0) return "go"
  if (pauses.some((pause) => pause.scope !== undefined && affects(pause.scope, tool))) return "withhold"
  return isPaused(projection) ? "wait" : "go"
}

/**
 * Whether all work is paused: no request is made and no generation started.
 *
 * @category decisions
 * @since 0.1.0
 */
export const isPaused = (projection: Projection): boolean =>
  projection.pauses.some((pause) => pause.scope === undefined)

/**
 * What a pause's conditions look at.
 *
 * @category queries
 * @since 0.1.0
 */
export const facts = (pause: PauseState, now: number): ResumeCondition.Facts => ({
  manual: pause.manual,
  signals: pause.signals,
  inputAccepted: pause.inputAccepted,
  now
})

/**
 * What a pause still waits for.
 *
 * @category queries
 * @since 0.1.0
 */
export const waitsFor = (pause: PauseState, now: number): ReadonlyArray<ResumeCondition.ResumeCondition> =>
  unmet(pause.until, facts(pause, now))

/**
 * Whether a resume by hand, or this signal, is among what a pause still waits for.
 *
 * @category queries
 * @since 0.1.0
 */
export const waitsForSignal = (pause: PauseState, signal: string | undefined, now: number): boolean =>
  waitsFor(pause, now).some((each) =>
    signal === undefined ? each._tag === "Manual" : each._tag === "Signal" && each.name === signal
  )

const about = (pause: PauseState) => ({
  requested: pause.requested,
  until: pause.until,
  ...(pause.scope === undefined ? undefined : { scope: pause.scope })
})

/**
 * The pauses whose conditions hold.
 *
 * @category queries
 * @since 0.1.0
 */
export const ending = (projection: Projection, now: number): ReadonlyArray<PauseState> =>
  projection.pauses.filter((pause) => holds(pause.until, facts(pause, now)))

/**
 * Ends a pause.
 *
 * @category entries
 * @since 0.1.0
 */
export const ended = (pause: PauseState): Entry => ({ type: "pause.ended", ...about(pause) })

/**
 * Lets a pause take effect.
 *
 * @category entries
 * @since 0.1.0
 */
export const effective = (pause: PauseState): Entry => ({ type: "pause.effective", ...about(pause) })

/**
 * The pauses not yet in effect that nothing affected runs against any more. `running` are the tools whose calls run;
 * `requesting` says whether the generation does anything else than wait.
 *
 * @category decisions
 * @since 0.1.0
 */
export const ready = (
  projection: Projection,
  running: Iterable<string>,
  requesting: boolean
): ReadonlyArray<PauseState> => {
  const names = [...running]
  return projection.pauses.filter(
    ({ effective: already, scope }) =>
      !already && !names.some((name) => affects(scope, name)) && (scope !== undefined || !requesting)
  )
}
