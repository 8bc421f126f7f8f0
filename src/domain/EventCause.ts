/**
 * Who or what brought something about. An event says its own cause and never one for another (L-C8); `finish` is the
 * model's own final answer.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/** @category schemas @since 0.1.0 */
export const EventCause = Schema.Literals([
  "user",
  "finish",
  "stop",
  "cancel",
  "budget",
  "provider-failure",
  "preparation",
  "storage",
  "process-loss",
  "close"
])
/** @category models @since 0.1.0 */
export type EventCause = typeof EventCause.Type
