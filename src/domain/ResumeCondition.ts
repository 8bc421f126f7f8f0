/**
 * What ends a pause (L-C3): by hand, at an instant, on a named signal, on a further input, or all or any of several.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/**
 * One condition. `At.instant` is in milliseconds since the Unix epoch.
 *
 * @category models
 * @since 0.1.0
 */
export type ResumeCondition =
  | { readonly _tag: "Manual" }
  | { readonly _tag: "At"; readonly instant: number }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Input" }
  | { readonly _tag: "All"; readonly of: ReadonlyArray<ResumeCondition> }
  | { readonly _tag: "Any"; readonly of: ReadonlyArray<ResumeCondition> }

const nested = Schema.Array(Schema.suspend((): Schema.Codec<ResumeCondition> => ResumeCondition))

/** @category schemas @since 0.1.0 */
export const ResumeCondition: Schema.Codec<ResumeCondition> = Schema.Union([
  Schema.TaggedStruct("Manual", {}),
  Schema.TaggedStruct("At", { instant: Schema.Finite }),
  Schema.TaggedStruct("Signal", { name: Schema.String }),
  Schema.TaggedStruct("Input", {}),
  Schema.TaggedStruct("All", { of: nested }),
  Schema.TaggedStruct("Any", { of: nested })
])

/** @category constructors @since 0.1.0 */
export const manual: ResumeCondition = { _tag: "Manual" }
/** @category constructors @since 0.1.0 */
export const at = (instant: number): ResumeCondition => ({ _tag: "At", instant })
/** @category constructors @since 0.1.0 */
export const signal = (name: string): ResumeCondition => ({ _tag: "Signal", name })
/** @category constructors @since 0.1.0 */
export const input: ResumeCondition = { _tag: "Input" }
/** @category constructors @since 0.1.0 */
export const all = (...of: ReadonlyArray<ResumeCondition>): ResumeCondition => ({ _tag: "All", of })
/** @category constructors @since 0.1.0 */
export const any = (...of: ReadonlyArray<ResumeCondition>): ResumeCondition => ({ _tag: "Any", of })

/**
 * What has happened since a pause was asked for, as far as conditions look at it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Facts {
  readonly manual: boolean
  readonly signals: ReadonlySet<string>
  readonly inputAccepted: boolean
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/**
 * Whether the condition holds.
 *
 * @category predicates
 * @since 0.1.0
 */
export const holds = (condition: ResumeCondition, facts: Facts): boolean => {
  switch (condition._tag) {
    case "Manual":
      return facts.manual
    case "At":
      return facts.now >= condition.instant
    case "Signal":
      return facts.signals.has(condition.name)
    case "Input":
      return facts.inputAccepted
    case "All":
      return condition.of.every((each) => holds(each, facts))
    case "Any":
      return condition.of.some((each) => holds(each, facts))
  }
}

/**
 * The simple conditions that are still to be met, in the order they were written; none once the whole holds.
 *
 * @category queries
 * @since 0.1.0
 */
export const unmet = (condition: ResumeCondition, facts: Facts): ReadonlyArray<ResumeCondition> => {
  if (holds(condition, facts)) return []
  return condition._tag === "All" || condition._tag === "Any"
    ? condition.of.flatMap((each) => unmet(each, facts))
    : [condition]
}

/**
 * The instants a condition looks at, in milliseconds since the Unix epoch.
 *
 * @category queries
 * @since 0.1.0
 */
export const instants = (condition: ResumeCondition): ReadonlyArray<number> => {
  switch (condition._tag) {
    case "At":
      return [condition.instant]
    case "All":
    case "Any":
      return condition.of.flatMap(instants)
    case "Manual":
    case "Signal":
    case "Input":
      return []
  }
}

/**
 * Whether the condition can ever hold: an empty `Any` cannot, and an instant must be a number.
 *
 * @category predicates
 * @since 0.1.0
 */
export const canHold = (condition: ResumeCondition): boolean => {
  switch (condition._tag) {
    case "At":
      return Number.isFinite(condition.instant)
    case "All":
      return condition.of.every(canHold)
    case "Any":
      return condition.of.some(canHold)
    case "Manual":
    case "Signal":
    case "Input":
      return true
  }
}
