/**
 * Establishes what an interrupted call really did, where that can be established at all (L-T7).
 *
 * @since 0.1.0
 */
import { Context, Effect } from "effect"
import type { Schema, Option } from "effect"
import type { ToolCall } from "./ToolPolicy.ts"

/**
 * What was found: the call's outcome as JSON, for the report and for the model.
 *
 * @category models
 * @since 0.1.0
 */
export type Service = (call: ToolCall) => Effect.Effect<Option.Option<Schema.Json>>

/**
 * Establishes nothing unless a host gives one; it is waited for no longer than the grace time.
 *
 * @category references
 * @since 0.1.0
 */
export const ToolReconciler = Context.Reference<Service>("midcourse/engine/ToolReconciler", {
  defaultValue: () => establishNothing
})

/** @category defaults @since 0.1.0 */
export const establishNothing: Service = () => Effect.succeedNone
