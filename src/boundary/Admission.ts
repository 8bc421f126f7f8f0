/**
 * Admission of one generation: a `Ref` that says what is pending or why admission is closed, and a `Bell` that rings the
 * engine. Every operation is one synchronous step, so that no fiber can come between a look and the act on it: either a
 * steer is in and the generation goes on, or admission is closed and the steer is refused (L-A5, L-E2).
 *
 * @since 0.1.0
 */
import { Ref } from "effect"
import type { Scheduler } from "effect"
import type { EventCause } from "../domain/EventCause.ts"
import type { GenerationError, Outcome } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Input } from "../domain/Input.ts"
import type { HeldReason } from "../domain/Receipt.ts"
import { affects } from "../domain/ToolScope.ts"
import { Bell } from "./Bell.ts"

/**
 * Why admission closed, which is also how the generation ends unless a cancel overrides a stop (L-C5).
 *
 * @category models
 * @since 0.1.0
 */
export interface Closing {
  readonly outcome: Outcome
  readonly cause: EventCause
  readonly held: HeldReason
  readonly error?: GenerationError
  /** The generation is handed to the next process as it stands: nothing is held and no terminal event follows (L-C9). */
  readonly parks?: boolean
}

/**
 * `reserved` counts admissions handed to the journal and not yet written (L-A7). `pending` is grown and drained in place: it
 * belongs to the open state alone, and copying it would make ten thousand admissions quadratic.
 *
 * @category models
 * @since 0.1.0
 */
export type State =
  | { readonly _tag: "Open"; readonly pending: Array<Input>; readonly reserved: number }
  | { readonly _tag: "Closed"; readonly closing: Closing; readonly reserved: number }

/** @category models @since 0.1.0 */
export interface Admission {
  readonly state: Ref.Ref<State>
  readonly bell: Bell
}

/** @category constructors @since 0.1.0 */
export const make = (dispatcher: Scheduler.SchedulerDispatcher): Admission => ({
  state: Ref.makeUnsafe<State>({ _tag: "Open", pending: [], reserved: 0 }),
  bell: new Bell(dispatcher)
})

/** @category accessors @since 0.1.0 */
export const get = (self: Admission): State => Ref.getUnsafe(self.state)

const set = (self: Admission, state: State): void => {
  self.state.ref.current = state
}

/**
 * Wakes whoever waits for this generation to change. Never runs the waiter in the caller's stack.
 *
 * @category operations
 * @since 0.1.0
 */
export const ring = (self: Admission): void => self.bell.ring()

/**
 * What is accepted and not yet being written, in admission order.
 *
 * @category accessors
 * @since 0.1.0
 */
export const pending = (self: Admission): ReadonlyArray<Input> => {
  const state = get(self)
  return state._tag === "Open" ? state.pending : none
}
const none: ReadonlyArray<Input> = []

/**
 * The pending corrections that affect a tool (L-T3, L-T5).
 *
 * @category accessors
 * @since 0.1.0
 */
export const affecting = (self: Admission, tool: string): ReadonlyArray<Ids.InputId> => {
  const found = pending(self)
  return found.length === 0 ? noIds : found.filter((input) => affects(input.scope, tool)).map((input) => input.id)
}
const noIds: ReadonlyArray<Ids.InputId> = []

/**
 * Queues an admitted input and wakes the engine. `false` if admission has closed.
 *
 * @category operations
 * @since 0.1.0
 */
export const admit = (self: Admission, input: Input): boolean => {
  const state = get(self)
  if (state._tag === "Closed") return false
  state.pending.push(input)
  ring(self)
  return true
}

/**
 * Takes at most `count` inputs, because their writes begin now (L-B2).
 *
 * @category operations
 * @since 0.1.0
 */
export const take = (self: Admission, count: number): ReadonlyArray<Input> => {
  const state = get(self)
  return state._tag === "Closed" || state.pending.length === 0 ? none : state.pending.splice(0, count)
}

/**
 * Counts an admission handed to the journal and not yet written, or takes it back (L-A7).
 *
 * @category operations
 * @since 0.1.0
 */
export const reserve = (self: Admission, change: 1 | -1): void => {
  const state = get(self)
  set(self, { ...state, reserved: state.reserved + change })
  if (change < 0) ring(self)
}

/**
 * "Nothing pending" seen and admission closed, in one step: the only normal end (L-E2).
 *
 * @category operations
 * @since 0.1.0
 */
export const closeIfEmpty = (self: Admission, closing: Closing): boolean => {
  const state = get(self)
  if (state._tag === "Closed" || state.pending.length > 0 || state.reserved > 0) return false
  set(self, { _tag: "Closed", closing, reserved: 0 })
  return true
}

/**
 * Every other end: closes, wakes the engine, and returns what nothing will drain. Closing again changes the reason (a cancel
 * overrides a stop) and returns nothing.
 *
 * @category operations
 * @since 0.1.0
 */
export const close = (self: Admission, closing: Closing): ReadonlyArray<Input> => {
  const state = get(self)
  set(self, { _tag: "Closed", closing, reserved: state.reserved })
  ring(self)
  return state._tag === "Open" ? state.pending : none
}
