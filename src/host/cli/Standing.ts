/**
 * Whether a session goes on by itself, and if not, what it waits for, in words. Pure.
 *
 * @since 0.1.0
 */
import { Data } from "effect"
import type { SessionStatus } from "../../domain/Generation.ts"
import * as Pauses from "./Pauses.ts"
import { asking, type View } from "./View.ts"

/**
 * `Working`: something happens without anybody's doing. `Waiting`: only a person's line lets it go on; `what` names it.
 * `Idle`: there is nothing to go on with.
 *
 * @category models
 * @since 0.1.0
 */
export type Standing = Data.TaggedEnum<{
  Working: {}
  Waiting: { readonly what: string }
  Idle: {}
}>

/**
 * Constructors and matcher of `Standing`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Standing = Data.taggedEnum<Standing>()

/**
 * How a session stands. `view` has seen every event up to the status; `now` is in milliseconds since the Unix epoch.
 *
 * @category decisions
 * @since 0.1.0
 */
export const of = (status: SessionStatus, view: View, now: number): Standing => {
  const { generation, pauses, queuedInputIds } = status
  if (generation === null && queuedInputIds.length === 0) return Standing.Idle()
  const held = pauses.filter((pause) => pause.scope === undefined && pause.effective && !Pauses.endsByItself(pause))
  const open = asking(view)
  // A call that is asked about holds up no other: while one of those is left, something goes on.
  const asked = open.length > 0 && open.length === view.calls.size
  if (held.length === 0 && !asked) return Standing.Working()
  const what = [
    ...(asked ? [`an answer to question ${open.map(({ number }) => number).join(" and ")} (/approve or /deny)`] : []),
    ...held.map((pause) => Pauses.unmet(pause, now))
  ]
  return Standing.Waiting({ what: what.join(" and ") })
}
