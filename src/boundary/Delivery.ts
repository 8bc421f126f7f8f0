/**
 * The one place where inputs are written into a context. Each write is interruptible work under a mask, with what began and
 * what ended tracked, so that every receipt is settled by what can be established and by nothing else (L-B2, L-B3, L-D4).
 *
 * @since 0.1.0
 */
import { type Duration, Effect, Exit, Option } from "effect"
import type { EventCause } from "../domain/EventCause.ts"
import type * as Ids from "../domain/Ids.ts"
import * as Input from "../domain/Input.ts"
import type { HeldReason, UnknownReason } from "../domain/Receipt.ts"
import type { SessionError } from "../domain/SessionError.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { Journal } from "../ledger/Journal.ts"
import type { Projection } from "../ledger/Projection.ts"
import type * as ContextStore from "./ContextStore.ts"
import * as Supervised from "./Supervised.ts"

/**
 * One item of a drain: an input, or a collect group that is written together or not at all (L-B2, L-F3).
 *
 * @category models
 * @since 0.1.0
 */
export type Item = readonly [Input.Input, ...Array<Input.Input>]

/**
 * Inputs as items: collects are written together or not at all, and before the others, each of which is one of its own (L-F3).
 *
 * @category constructors
 * @since 0.1.0
 */
export const itemsOf = (inputs: ReadonlyArray<Input.Input>): ReadonlyArray<Item> => {
  const [head, ...rest] = inputs.filter(isCollect)
  if (head === undefined) return inputs.map(alone)
  return [[head, ...rest], ...inputs.filter((input) => !isCollect(input)).map(alone)]
}

const isCollect = ({ intent }: Input.Input): boolean => intent === "collect"

/**
 * An input as an item of its own.
 *
 * @category constructors
 * @since 0.1.0
 */
export const alone = (input: Input.Input): Item => [input]

/**
 * What came of a write. `Interrupted` and `Failed` mean that the generation goes no further; the receipts are settled.
 *
 * @category models
 * @since 0.1.0
 */
export type Delivered =
  | { readonly _tag: "Delivered" }
  | { readonly _tag: "Interrupted" }
  | { readonly _tag: "Failed"; readonly message: string }

/** @category models @since 0.1.0 */
export interface Target {
  readonly generationId: Ids.GenerationId
  readonly journal: Journal
  readonly grace: Duration.Duration
  /** Read when an interrupted write is settled: by then whoever interrupted has said why. */
  readonly interruption: () => { readonly cause: EventCause; readonly held: HeldReason }
}

const delivered: Delivered = { _tag: "Delivered" }

/**
 * What an input's successful insertion journals (L-B5).
 *
 * @category entries
 * @since 0.1.0
 */
export const insertion = (
  projection: Projection,
  generationId: Ids.GenerationId,
  inputId: Ids.InputId
): ReadonlyArray<Entry> => inserted([], projection, generationId, inputId)

/** Added to what is there: ten thousand insertions are one list. */
const inserted = (
  entries: Array<Entry>,
  projection: Projection,
  generationId: Ids.GenerationId,
  inputId: Ids.InputId
): Array<Entry> => {
  const found = projection.inputs.get(inputId)
  if (found === undefined) return entries
  const { delivery, intent } = found
  entries.push({
    type: "input.delivered",
    generation_id: generationId,
    input_id: inputId,
    intent,
    delivery,
    target_generation_id: generationId
  })
  if (intent !== "steer" || delivery !== "request_boundary") return entries
  entries.push({
    type: "steering.applied",
    generation_id: generationId,
    input_id: inputId,
    target_generation_id: generationId,
    delivery
  })
  return entries
}

/**
 * Holds an input, saying why (L-D3).
 *
 * @category entries
 * @since 0.1.0
 */
export const held = (
  inputId: Ids.InputId,
  target: Ids.GenerationId | null,
  reason: HeldReason,
  cause: EventCause
): Entry => ({
  type: "steering.held",
  ...(target === null ? undefined : { generation_id: target }),
  input_id: inputId,
  target_generation_id: target,
  reason,
  cause
})

/**
 * What writes items into the journal's own context: message and disposition are one commit, so nothing is left in doubt.
 *
 * @category entries
 * @since 0.1.0
 */
export const written = (
  projection: Projection,
  generationId: Ids.GenerationId,
  items: ReadonlyArray<Item>
): Array<Entry> => {
  const entries: Array<Entry> = []
  for (const item of items) {
    for (const input of item) {
      const message = Input.toMessage(input, generationId)
      entries.push({ record: "message", generation_id: generationId, message })
    }
    for (const { id } of item) inserted(entries, projection, generationId, id)
  }
  return entries
}

/**
 * Writes one item into a context of the host's. That the write begins is journalled first; if it is interrupted or fails, the
 * context is asked, within the grace time, whether the item is there: present is applied, absent is held, anything else is
 * unknown.
 *
 * @category operations
 * @since 0.1.0
 */
export const toStore = (
  target: Target,
  store: ContextStore.Service,
  item: Item,
  restore: Supervised.Restore
): Effect.Effect<Delivered, SessionError> =>
  Effect.gen(function* () {
    const { generationId, journal } = target
    const [first, ...rest] = item
    const message = (input: Input.Input) => Input.toMessage(input, generationId)
    yield* journal.commit([
      { record: "write-begun", generation_id: generationId, input_ids: item.map((input) => input.id) }
    ])
    const append = Effect.suspend(() => store.append([message(first), ...rest.map(message)]))
    const write = yield* Supervised.run(append, restore, target.grace)
    if (write._tag !== "Abandoned" && Exit.isSuccess(write.exit)) {
      yield* journal.commit(item.flatMap(({ id }) => insertion(journal.projection, generationId, id)))
      return write._tag === "Ended" ? delivered : { _tag: "Interrupted" }
    }
    const presence = write._tag === "Abandoned" ? "cannot-tell" : yield* ask(store, item, target.grace)
    const failed = write._tag === "Ended"
    const { cause, held: reason } = failed
      ? ({ cause: "storage", held: "write-failed" } as const)
      : target.interruption()
    const unknown = failed ? "write-failed" : "write-interrupted"
    yield* journal.commit(settled(journal.projection, generationId, item, presence, { held: reason, unknown, cause }))
    if (!failed) return { _tag: "Interrupted" }
    if (presence === "present") return delivered
    return { _tag: "Failed", message: `the context store failed: ${String(write.exit)}` }
  })

/**
 * What a write in doubt journals once the context has been asked: present is applied, absent is held, anything else is unknown.
 *
 * @category entries
 * @since 0.1.0
 */
export const settled = (
  projection: Projection,
  generationId: Ids.GenerationId,
  item: Item,
  presence: ContextStore.Presence,
  why: { readonly held: HeldReason; readonly unknown: UnknownReason; readonly cause: EventCause }
): ReadonlyArray<Entry> =>
  item.flatMap(({ id }): ReadonlyArray<Entry> => {
    switch (presence) {
      case "present":
        return insertion(projection, generationId, id)
      case "absent":
        return [held(id, generationId, why.held, why.cause)]
      case "cannot-tell":
        return [
          {
            type: "steering.unknown",
            generation_id: generationId,
            input_id: id,
            target_generation_id: generationId,
            reason: why.unknown,
            cause: why.cause
          }
        ]
    }
  })

/**
 * Asks a host's context for an item, which is written together or not at all: every input of it must answer alike, within the
 * grace time.
 *
 * @category operations
 * @since 0.1.0
 */
export const ask = (
  store: ContextStore.Service,
  item: Item,
  grace: Duration.Duration
): Effect.Effect<ContextStore.Presence> =>
  Effect.map(
    Supervised.within(
      Effect.forEach(item, (input) => Effect.suspend(() => store.has(input.id))),
      grace
    ),
    (answer) => {
      if (Option.isNone(answer) || Exit.isFailure(answer.value)) return "cannot-tell"
      const [first, ...rest] = answer.value.value
      // Looked at, for stores without types: whatever is no answer tells nothing.
      const told = first === "present" || first === "absent" ? first : "cannot-tell"
      return rest.every((presence) => presence === told) ? told : "cannot-tell"
    }
  )
