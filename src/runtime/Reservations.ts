/**
 * What has been handed to the journal and is not yet written (L-A7): it counts for capacity and for being idle, and a submit of
 * the same id waits for it. Without a store nothing is ever in between.
 *
 * @since 0.1.0
 */
import { Deferred, Effect } from "effect"
import type { Scheduler } from "effect"
import * as Admission from "../boundary/Admission.ts"
import type * as Ids from "../domain/Ids.ts"

/**
 * How an admission waits: for the live generation, in the queue, or to start a generation.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = "joining" | "queued" | "starting"

interface Reserved {
  readonly kind: Kind
  /** Made by whoever waits for it first. */
  written: Deferred.Deferred<void> | undefined
}

/**
 * The session whose reservations these are: it looks for work when the fate of what waits is decided.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reserving {
  readonly wake: () => void
}

/** @category models @since 0.1.0 */
export class Reservations {
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #inputs: Map<Ids.InputId, Reserved> | undefined
  readonly #claimed: Map<Ids.InputId, Deferred.Deferred<void>> | undefined
  readonly #core: Reserving
  #starting = 0

  /** `written` says whether anything is ever between being handed in and being folded: with a store it is. */
  constructor(core: Reserving, dispatcher: Scheduler.SchedulerDispatcher, written: boolean) {
    this.#core = core
    this.#dispatcher = dispatcher
    this.#inputs = written ? new Map() : undefined
    this.#claimed = written ? new Map() : undefined
  }

  get identities(): number {
    return this.#inputs?.size ?? 0
  }

  get queued(): number {
    if (this.#inputs === undefined) return 0
    let count = 0
    for (const { kind } of this.#inputs.values()) if (kind === "queued") count++
    return count
  }

  get starting(): boolean {
    return this.#starting > 0
  }

  /** Waits until the admission of this id is decided, if one is under way. */
  settled(id: Ids.InputId | undefined): Effect.Effect<void> | undefined {
    const found = id === undefined ? undefined : this.#inputs?.get(id)
    if (found === undefined) return undefined
    found.written ??= Deferred.makeUnsafe<void>()
    return Deferred.await(found.written)
  }

  /** Reserves an admission; the function returned takes the reservation back. */
  reserve(id: Ids.InputId, kind: Kind): () => void {
    const inputs = this.#inputs
    if (inputs === undefined) return nothing
    const reserved: Reserved = { kind, written: undefined }
    inputs.set(id, reserved)
    const started = kind === "starting" ? this.start([]) : undefined
    return () => {
      inputs.delete(id)
      started?.()
      const { written } = reserved
      if (written !== undefined) this.#dispatcher.scheduleTask(() => Deferred.doneUnsafe(written, Effect.void), 0)
    }
  }

  /** Reserves a place in a live generation's admission, and the promotion it comes from, if any, until it is written (L-A7). */
  join(admission: Admission.Admission, id: Ids.InputId, promoted: Ids.InputId | undefined): () => void {
    if (this.#inputs === undefined) return nothing
    const release = this.reserve(id, "joining")
    const unclaim = this.claim(promoted === undefined ? [] : [promoted])
    Admission.reserve(admission, 1)
    return () => {
      Admission.reserve(admission, -1)
      unclaim()
      release()
    }
  }

  /** A generation is being started with these waiting inputs; the function returned says that it is written. */
  start(ids: ReadonlyArray<Ids.InputId>): () => void {
    const release = this.claim(ids)
    this.#starting++
    return () => {
      this.#starting--
      release()
    }
  }

  /** The fate of these waiting inputs is in the lane: nobody else may decide it. */
  claim(ids: ReadonlyArray<Ids.InputId>): () => void {
    const claimed = this.#claimed
    if (claimed === undefined || ids.length === 0) return nothing
    const decided = Deferred.makeUnsafe<void>()
    for (const id of ids) claimed.set(id, decided)
    return () => {
      for (const id of ids) claimed.delete(id)
      this.#core.wake()
      this.#dispatcher.scheduleTask(() => Deferred.doneUnsafe(decided, Effect.void), 0)
    }
  }

  isClaimed(id: Ids.InputId): boolean {
    return this.#claimed?.has(id) === true
  }

  /** Waits until the fate of a waiting input is decided, if it is in the lane. */
  decided(id: Ids.InputId): Effect.Effect<void> | undefined {
    const found = this.#claimed?.get(id)
    return found && Deferred.await(found)
  }
}

const nothing = () => {}
