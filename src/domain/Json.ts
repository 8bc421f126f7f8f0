/**
 * Whether a value is JSON as it stands, for what hosts and providers hand over.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

const isLeaf = (u: unknown): boolean =>
  typeof u === "string" || typeof u === "boolean" || u === null || (typeof u === "number" && Number.isFinite(u))

/** A plain object of leaves, which is what most parameters and metadata are. */
const isFlat = (u: unknown): boolean => {
  if (typeof u !== "object" || u === null || Object.getPrototypeOf(u) !== Object.prototype || "toJSON" in u)
    return false
  // Read as a record: any plain object is one.
  for (const key of Object.keys(u)) if (!isLeaf((u as { readonly [key: string]: unknown })[key])) return false
  return true
}

const isTree = Schema.is(Schema.Json)

/** Whether it would be written as something else than it is. */
const isDisguised = (u: unknown): boolean =>
  typeof u === "object" && u !== null && ("toJSON" in u || Object.values(u).some(isDisguised))

/**
 * Whether a value is JSON as it stands. What is seen to be so at a glance is not walked: it is asked of every call, and of whatever a
 * provider adds to a part.
 *
 * @category guards
 * @since 0.1.0
 */
export const isJson = (u: unknown): u is Schema.Json => isLeaf(u) || isFlat(u) || (isTree(u) && !isDisguised(u))
