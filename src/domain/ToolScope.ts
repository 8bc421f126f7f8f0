/**
 * Which tools a correction or a pause is about: absent means all work, an empty list means none (L-T5).
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/**
 * The tools named, as a set.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolScope = Schema.Struct({ tools: Schema.Array(Schema.String) })
/** @category models @since 0.1.0 */
export type ToolScope = typeof ToolScope.Type

/**
 * A scope of the tools named.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tools = (...names: ReadonlyArray<string>): ToolScope => ({ tools: names })

/**
 * A scope of no tool: the input is delivered like any other and withholds nothing (L-T5).
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: ToolScope = { tools: [] }

/**
 * Whether something of this scope is about the tool named.
 *
 * @category predicates
 * @since 0.1.0
 */
export const affects = (scope: ToolScope | undefined, tool: string): boolean =>
  scope === undefined || scope.tools.includes(tool)

/**
 * Whether two scopes name the same set of tools.
 *
 * @category predicates
 * @since 0.1.0
 */
export const equals = (a: ToolScope | undefined, b: ToolScope | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  const left = new Set(a.tools)
  const right = new Set(b.tools)
  return left.size === right.size && [...left].every((name) => right.has(name))
}
