/**
 * What waits for a later generation, and which of it starts the next one: waiting turns first, then the queue in order, one
 * follow-up or one group of compatible neighbouring collects a generation (L-F2, L-F3, L-F5, L-F6). Pure.
 *
 * @since 0.1.0
 */
import { Duration } from "effect"
import type * as Ids from "../domain/Ids.ts"
import type { Input } from "../domain/Input.ts"
import type { Limits } from "../domain/Limits.ts"
import * as ToolScope from "../domain/ToolScope.ts"
import type { Projection } from "../ledger/Projection.ts"

/**
 * `Start` with these inputs, the initial one first; `Later`, when a group of collects may still grow; `Undecided`, while the fate of
 * the next one is being written; or `Nothing`.
 *
 * @category models
 * @since 0.1.0
 */
export type Next =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Start"; readonly inputIds: ReadonlyArray<Ids.InputId> }
  | { readonly _tag: "Later"; readonly instant: number }
  | { readonly _tag: "Undecided" }

const nothing: Next = { _tag: "Nothing" }

/**
 * Whether two collects may be merged into one generation.
 *
 * @category predicates
 * @since 0.1.0
 */
export const compatible = (a: Input, b: Input): boolean =>
  a.author === b.author && a.route === b.route && ToolScope.equals(a.scope, b.scope)

/**
 * What to start at `now` (milliseconds since the Unix epoch), if nothing is live and nothing is paused.
 *
 * @category decisions
 * @since 0.1.0
 */
export const next = (
  projection: Projection,
  limits: Limits,
  now: number,
  isUndecided: (id: Ids.InputId) => boolean = () => false
): Next => {
  const { inputs, queue, turns } = projection
  if ((turns.length > 0 ? turns : queue).some(isUndecided)) return { _tag: "Undecided" }
  if (turns.length > 0) return { _tag: "Start", inputIds: [...turns] }
  const [head] = queue
  const first = head === undefined ? undefined : inputs.get(head)?.input
  if (head === undefined || first === undefined) return nothing
  if (first.intent !== "collect") return { _tag: "Start", inputIds: [head] }
  // A group has its head whatever the setting says.
  const cap = Math.max(1, limits.collectCap)
  const group: Array<Ids.InputId> = []
  let latest = 0
  for (const id of queue) {
    const found = inputs.get(id)
    if (group.length >= cap || found?.input?.intent !== "collect") break
    if (!compatible(first, found.input)) break
    group.push(id)
    latest = found.acceptedAt
  }
  // A group that something follows, or that is full, has all the neighbours it will ever have.
  const complete = group.length < queue.length || group.length >= cap
  const instant = latest + Duration.toMillis(limits.collectDebounce)
  return complete || now >= instant ? { _tag: "Start", inputIds: group } : { _tag: "Later", instant }
}
