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
  Schema.TaggedStruct("At", { instant: Schema.Number }),
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
