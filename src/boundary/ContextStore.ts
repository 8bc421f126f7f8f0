/**
 * Where a session's messages are kept, if not in its journal. A host that keeps the conversation itself gives one; the
 * runtime then journals that a write is about to begin, and asks afterwards what it cannot know (L-B3).
 *
 * @since 0.1.0
 */
import { Context, type Effect } from "effect"
import type { Prompt } from "effect/ai"
import type * as Ids from "../domain/Ids.ts"

/**
 * Whether an input's message is in the context. `absent` may be answered only when a write that was interrupted can no
 * longer land; a store that cannot be sure says `cannot-tell`.
 *
 * @category models
 * @since 0.1.0
 */
export type Presence = "present" | "absent" | "cannot-tell"

/**
 * `append` is atomic: all of the messages or none. `messages` is the whole conversation in order. `has` finds the message
 * whose `options.midcourse.input_id` is the id given.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly append: (messages: readonly [Prompt.Message, ...Array<Prompt.Message>]) => Effect.Effect<void, unknown>
  readonly messages: Effect.Effect<ReadonlyArray<Prompt.Message>, unknown>
  readonly has: (inputId: Ids.InputId) => Effect.Effect<Presence, unknown>
}

/**
 * The store of the sessions opened under it; absent, the journal is the context. One store holds one conversation: give each
 * session its own.
 *
 * @category references
 * @since 0.1.0
 */
export const ContextStore = Context.Reference<Service | undefined>("midcourse/boundary/ContextStore", {
  defaultValue: () => undefined
})
