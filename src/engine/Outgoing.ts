/**
 * What the next request carries: the conversation, or what the host's preparation made of it, checked before it is sent. What is
 * carried is looked up wherever a host has a hand in it, not assumed (L-D2, L-P1 to L-P4).
 *
 * @since 0.1.0
 */
import { Effect, Exit } from "effect"
import { Prompt } from "effect/ai"
import * as Supervised from "../boundary/Supervised.ts"
import type { Body } from "../domain/Event.ts"
import type * as Ids from "../domain/Ids.ts"
import type { SessionError } from "../domain/SessionError.ts"
import * as ContextPreparation from "./ContextPreparation.ts"
import * as Ending from "./Ending.ts"
import { type Engine, isHandsOff, type Run } from "./Engine.ts"
import { describe } from "./ToolRunner.ts"
import * as Transcript from "./Transcript.ts"

type Restore = Supervised.Restore

type NotCarried = Extract<Body, { readonly type: "steering.not_carried" }>

/**
 * `carrying` are the inputs in it that no completed request has carried, `carriedFirst` those no request has; `dropped` says which
 * of them preparation left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Outgoing {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly carrying: ReadonlyArray<Ids.InputId>
  readonly carriedFirst: ReadonlyArray<Ids.InputId>
  readonly dropped: ReadonlyArray<NotCarried>
}

/**
 * Makes the next request's messages; `undefined` when the generation ends instead. `delivering` are the inputs that the commit of
 * the request itself puts into the context.
 *
 * @category operations
 * @since 0.1.0
 */
export const make = (
  engine: Engine,
  live: Run,
  delivering: ReadonlyArray<Ids.InputId>,
  continues: boolean,
  restore: Restore
): Effect.Effect<Outgoing | undefined, SessionError> => {
  if (!isHandsOff(engine)) return prepared(engine, live, continues, restore)
  const { messages } = engine.journal.projection
  if (live.state.uncompleted.size === 0) {
    return Effect.succeed({ messages, carrying: delivering, carriedFirst: delivering, dropped: nothing })
  }
  const carrying = [...live.state.uncompleted, ...delivering]
  const carriedFirst = [...uncarried(engine, live), ...delivering]
  return Effect.succeed({ messages, carrying, carriedFirst, dropped: nothing })
}

const nothing: ReadonlyArray<NotCarried> = []

/** The same where a host has a hand in it. */
const prepared = Effect.fnUntraced(function* (engine: Engine, live: Run, continues: boolean, restore: Restore) {
  const conversation = yield* Transcript.read(engine, restore)
  if (conversation._tag !== "Ended") {
    yield* Ending.interrupted(engine, live)
    return undefined
  }
  if (Exit.isFailure(conversation.exit)) {
    const message = `the context store could not be read: ${describe(conversation.exit.cause)}`
    yield* Ending.fail(engine, live, "context", message)
    return undefined
  }
  const whole = conversation.exit.value
  const fresh = uncarried(engine, live)
  const messages = yield* prepare(engine, live, whole, fresh, continues, restore)
  if (messages === undefined) return undefined
  const carrying = [...live.state.uncompleted]
  const outgoing: Outgoing = { messages, carrying, carriedFirst: fresh, dropped: nothing }
  const altered = messages !== whole
  if (carrying.length === 0 || (!altered && engine.context === undefined)) return outgoing
  const present = ContextPreparation.carried(messages)
  return {
    messages,
    carrying: carrying.filter((id) => present.has(id)),
    carriedFirst: fresh.filter((id) => present.has(id)),
    dropped: altered ? notCarried(live, fresh, present) : nothing
  }
})

/** What this request is the first to carry (L-B5). */
const uncarried = (engine: Engine, live: Run): ReadonlyArray<Ids.InputId> => {
  const ids: Array<Ids.InputId> = []
  for (const id of live.state.uncompleted) {
    const status = engine.journal.projection.inputs.get(id)?.status
    if (status?._tag === "Delivered" && status.request === undefined) ids.push(id)
  }
  return ids
}

/** What preparation dropped is said once, for the first request that lacks it, and never claimed as carried (L-P1). */
const notCarried = (
  live: Run,
  fresh: ReadonlyArray<Ids.InputId>,
  present: ReadonlySet<Ids.InputId>
): ReadonlyArray<NotCarried> =>
  fresh
    .filter((id) => !present.has(id) && live.notCarried?.has(id) !== true)
    .map((id) => ({
      type: "steering.not_carried",
      generation_id: live.id,
      input_id: id,
      target_generation_id: live.id,
      reason: "dropped-by-preparation",
      cause: "preparation",
      request: live.state.request + 1
    }))

/** The messages to send: the conversation, or what the host's preparation made of it, once that is found sendable. */
const prepare = Effect.fnUntraced(function* (
  engine: Engine,
  live: Run,
  messages: ReadonlyArray<Prompt.Message>,
  fresh: ReadonlyArray<Ids.InputId>,
  continues: boolean,
  restore: Restore
) {
  if (engine.preparation === ContextPreparation.identity) return messages
  const before = live.altered
  const number = live.state.request + 1
  live.phase = { _tag: "Preparing", request: number }
  const prompt = Prompt.fromMessages([...messages])
  const info = {
    sessionId: engine.journal.sessionId,
    generationId: live.id,
    request: number,
    uncarried: fresh
  }
  const prepared = yield* Supervised.run(
    Effect.suspend(() => engine.preparation(prompt, info)),
    restore,
    engine.grace
  )
  if (prepared._tag !== "Ended") {
    yield* Ending.interrupted(engine, live)
    return undefined
  }
  if (Exit.isFailure(prepared.exit)) {
    const message = `the context preparation failed: ${describe(prepared.exit.cause)}`
    yield* Ending.fail(engine, live, "preparation", message)
    return undefined
  }
  live.altered = prepared.exit.value !== prompt
  // The provider's memory of a response is of the prefix it was sent, and this is another (L-P4).
  if (live.altered || before) engine.tracker?.clearUnsafe()
  if (prepared.exit.value === prompt) return messages
  const { content } = prepared.exit.value
  const fault = ContextPreparation.fault(content, [live.state.initialInputIds[0]], continues)
  if (fault !== undefined) {
    const message = `the context preparation gave a prompt that cannot be sent: ${fault}`
    yield* Ending.fail(engine, live, "invalid-prompt", message)
    return undefined
  }
  return content
})
