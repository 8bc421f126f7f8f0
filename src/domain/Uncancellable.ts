/**
 * A tool annotation for work that must not be cut short: once started, the call is left alone by a cancel for as long as
 * `grace`, and only then reported as interrupted (L-T9).
 *
 * @since 0.1.0
 */
import { Context, Duration } from "effect"
import type { Tool } from "effect/ai"

/**
 * `tool.annotate(Uncancellable.Uncancellable, { grace: "30 seconds" })`.
 *
 * @category annotations
 * @since 0.1.0
 */
export class Uncancellable extends Context.Service<Uncancellable, { readonly grace: Duration.Input }>()(
  "midcourse/domain/Uncancellable"
) {}

/**
 * How long an interrupted call, a context write in doubt or a reconciler is waited for before the runtime says that it
 * does not know (L-T9, L-B3).
 *
 * @category references
 * @since 0.1.0
 */
export const GraceTime = Context.Reference<Duration.Duration>("midcourse/domain/Uncancellable/GraceTime", {
  defaultValue: () => Duration.seconds(5)
})

/**
 * The tool's own grace time, or `undefined` for a tool that may be interrupted.
 *
 * @category accessors
 * @since 0.1.0
 */
export const graceOf = (tool: Tool.Any): Duration.Duration | undefined => {
  const found = Context.getOrUndefined(tool.annotations, Uncancellable)
  return found === undefined ? undefined : Duration.fromInputUnsafe(found.grace)
}
