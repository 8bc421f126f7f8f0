/**
 * The one commit lane of a session (L-V1, L-A7): submitters and the owner hand it entries; it gives events their sequence,
 * writes, folds, and only then publishes. Without a store a commit is one synchronous step; with one, what is handed in
 * while a write is under way shares the next.
 *
 * @since 0.1.0
 */
import { Cause, type Clock, type Context, Effect, Exit, Schema } from "effect"
import type { Scheduler, Stream, Types } from "effect"
import { isTerminal, type SessionEvent } from "../domain/Event.ts"
import type * as Ids from "../domain/Ids.ts"
import type * as Input from "../domain/Input.ts"
import type { Delivery } from "../domain/Receipt.ts"
import { SessionError, type SessionErrorReason } from "../domain/SessionError.ts"
import * as Codec from "./Codec.ts"
import * as Entry from "./Entry.ts"
import { EventLog } from "./EventLog.ts"
import { type GenerationState, Projection } from "./Projection.ts"
import {
  type Append,
  type SessionStore,
  type StoredEntry,
  type StoredSnapshot,
  StoreError,
  type StoreErrorReason
} from "./SessionStore.ts"
import * as Snapshot from "./Snapshot.ts"
import { tell } from "./Telling.ts"

/** Entries after which the next write carries a snapshot, so that opening folds no more than about this many. */
const snapshotEvery = 1000

/** Characters of a snapshot, at most: to read a longer one back would cost more than the fold that it saves. */
const snapshotLimit = 64 * 1024 * 1024

/** @category models @since 0.1.0 */
export interface Stored {
  readonly store: SessionStore["Service"]
  readonly epoch: number
  /** Where the journal ended when it was claimed. */
  readonly position: number
  /** The position of the snapshot the fold began with; messages up to it are still in the store. */
  readonly snapshot: number
}

/** @category models @since 0.1.0 */
export interface Options {
  readonly sessionId: Ids.SessionId
  readonly clock: Clock.Clock
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** What the lane's own writes run with. */
  readonly services: Context.Context<never>
  /** The fold of what is stored. */
  readonly projection: Projection
  /** Absent: the journal lives and goes with the session. */
  readonly stored: Stored | undefined
}

/**
 * `applied` runs in the step that folds the entries, `failed` in the step that knows they will never be. `refusable` entries are
 * an admission or control that nothing has acted on yet: if only they fail, they are refused and the session goes on.
 *
 * @category models
 * @since 0.1.0
 */
export interface Handed {
  readonly applied?: () => void
  readonly failed?: () => void
  readonly refusable?: boolean
}

interface Waiting {
  readonly entries: ReadonlyArray<Entry.Entry>
  readonly handed: Handed
  placed: ReadonlyArray<Entry.Committed>
  resume: ((effect: Effect.Effect<void, SessionError>) => void) | undefined
  done: Exit.Exit<void, SessionError> | undefined
}

type Failure = { readonly reason: SessionErrorReason; readonly certain: boolean }

/** @category models @since 0.1.0 */
export class Journal {
  readonly sessionId: Ids.SessionId
  readonly projection: Projection
  readonly log: EventLog
  readonly stored: Stored | undefined
  /** Called once, when a write that cannot be taken back has failed: the owner stops (L-R7). */
  onLost: (reason: SessionErrorReason) => void = () => {}
  readonly #clock: Clock.Clock
  readonly #services: Context.Context<never>
  #queue: Array<Waiting> = []
  #batch: ReadonlyArray<Waiting> | undefined
  #position: number
  #snapshot: number
  #cold: number
  #lost: SessionErrorReason | undefined

  constructor(options: Options) {
    this.sessionId = options.sessionId
    this.projection = options.projection
    this.stored = options.stored
    this.#clock = options.clock
    this.#services = options.services
    this.#position = options.stored?.position ?? 0
    this.#snapshot = options.stored?.snapshot ?? 0
    this.#cold = this.#snapshot
    this.log = new EventLog(options)
  }

  /** The last journalled sequence, 0 before the first. */
  get sequence(): number {
    return this.projection.sequence
  }

  /** Milliseconds since the Unix epoch. */
  get now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  /** Why nothing can be written any more, if so (L-R4, L-R7). */
  get lost(): SessionErrorReason | undefined {
    return this.#lost
  }

  /**
   * Hands the entries to the lane in the calling step, so that what the caller looked at and what it commits are one
   * transition; the effect returned waits until they are written and folded. One call is one commit. Without a store it is an
   * `Exit`: nothing is waited for.
   */
  commit(entries: ReadonlyArray<Entry.Entry>, handed: Handed = {}): Effect.Effect<void, SessionError> {
    if (this.#lost !== undefined) {
      handed.failed?.()
      return Effect.fail(this.#error(this.#lost))
    }
    if (this.stored === undefined) {
      this.#apply(this.#place(entries, this.sequence, this.now))
      handed.applied?.()
      return Effect.void
    }
    const waiting: Waiting = { entries, handed, placed: nothing, resume: undefined, done: undefined }
    this.#queue.push(waiting)
    this.#drain(this.stored)
    return Effect.callback((resume) => {
      if (waiting.done !== undefined) resume(waiting.done)
      else waiting.resume = resume
    })
  }

  /** The record of an identity that is being accepted (L-I2, L-I3). */
  accepted(
    input: Input.Input,
    anchor: Ids.GenerationId | null,
    generationId: Ids.GenerationId | null,
    delivery: Delivery
  ): Entry.InputRecord {
    return { record: "input", input, anchor, generation_id: generationId, delivery, time: this.now }
  }

  /** Whether everything handed in so far is written and folded. */
  get isQuiet(): boolean {
    return this.#batch === undefined && this.#queue.length === 0
  }

  /** Waits until everything handed in so far is written. */
  get flushed(): Effect.Effect<void, SessionError> {
    return this.stored === undefined || (this.isQuiet && this.#lost === undefined) ? Effect.void : this.commit([])
  }

  /** Whether the whole conversation is in the fold. */
  get isWarm(): boolean {
    return this.#cold === 0
  }

  /** Brings the messages that are still in the store before those in the fold. */
  get warm(): Effect.Effect<void, SessionError> {
    return Effect.suspend(() => {
      const { stored } = this
      if (stored === undefined || this.#cold === 0) return Effect.void
      return Effect.flatMap(this.#read(stored.store.kind(this.sessionId, "message", this.#cold)), (entries) =>
        Effect.sync(() => {
          // Two readers may have asked; the first answer is put in.
          if (this.#cold === 0) return
          this.#cold = 0
          const messages = entries.flatMap((entry) =>
            Entry.isRecord(entry) && entry.record === "message" ? [entry.message] : []
          )
          this.projection.prepend(messages)
        })
      )
    })
  }

  /** Stored events after a sequence, up to and with another, in order. */
  events(after: number, until: number, limit: number): Effect.Effect<ReadonlyArray<SessionEvent>, SessionError> {
    const { stored } = this
    if (stored === undefined) return Effect.succeed([])
    return Effect.map(
      this.#read(stored.store.events(this.sessionId, after, Math.min(limit, until - after))),
      (entries) => entries.flatMap((entry) => (Entry.isRecord(entry) || entry.sequence > until ? [] : [entry]))
    )
  }

  /** Every event after a sequence, stored or here, then the live ones (L-V2). */
  stream(after: number): Stream.Stream<SessionEvent, SessionError> {
    return this.log.stream(after, (from, until, limit) => this.events(from, until, limit))
  }

  /** The calls of a generation whose past is in the store, by folding its events again. */
  calls(generation: GenerationState): Effect.Effect<GenerationState["calls"], SessionError> {
    return Effect.gen({ self: this }, function* () {
      const past = new Projection([])
      let cursor = generation.startSequence - 1
      while (cursor < this.sequence) {
        const events = yield* this.events(cursor, this.sequence, 4096)
        const [first] = events
        if (first?.sequence !== cursor + 1) {
          return yield* Effect.fail(this.#error({ _tag: "EventsPruned", first: first?.sequence ?? this.sequence + 1 }))
        }
        for (const event of events) {
          cursor = event.sequence
          if (!("generation_id" in event) || event.generation_id !== generation.id) continue
          past.apply(event)
          if (isTerminal(event)) return past.generations.get(generation.id)?.calls ?? generation.calls
        }
      }
      return past.generations.get(generation.id)?.calls ?? generation.calls
    })
  }

  /** Ends every reader's stream after what is journalled. */
  end(reason: SessionErrorReason | "closed"): void {
    this.log.end(reason)
  }

  #read(
    stored: Effect.Effect<ReadonlyArray<StoredEntry>, StoreError>
  ): Effect.Effect<ReadonlyArray<Entry.Committed>, SessionError> {
    return Effect.mapError(
      Effect.flatMap(stored, (entries) => Effect.forEach(entries, Codec.decode)),
      (error) => this.#error(toSessionReason(error.reason))
    )
  }

  /** Writes what is waiting, whole commits in order, one write at a time; what is handed in meanwhile shares the next. */
  #drain(stored: Stored): void {
    while (this.#batch === undefined && this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      this.#batch = batch
      this.#write(stored, batch)
    }
  }

  #write(stored: Stored, batch: ReadonlyArray<Waiting>): void {
    if (this.#lost !== undefined) return this.#conclude(stored, batch, { reason: this.#lost, certain: true })
    const expected = this.#position
    const entries: Array<StoredEntry> = []
    try {
      const time = this.now
      let sequence = this.sequence
      for (const waiting of batch) {
        waiting.placed = this.#place(waiting.entries, sequence, time)
        for (const entry of waiting.placed) {
          if (!Entry.isRecord(entry)) sequence = entry.sequence
          entries.push(Codec.encode(entry, expected + entries.length + 1))
        }
      }
    } catch (error) {
      // Nothing that the engine journals should fail here; if it does, no part of the commit may be taken for written.
      const reason = { _tag: "StorageUnavailable", detail: `an entry has no stored form: ${String(error)}` } as const
      return this.#conclude(stored, batch, { reason, certain: true })
    }
    if (!isFilled(entries)) return this.#conclude(stored, batch, undefined)
    const position = expected + entries.length
    const { epoch, store } = stored
    const commit = { sessionId: this.sessionId, epoch, expected, entries, snapshot: this.#snapshotIfDue() } as const
    const done = (failure: Failure | undefined): void => {
      if (failure === undefined) this.#position = position
      this.#conclude(stored, batch, failure)
    }
    const fork = Effect.runForkWith(this.#services)
    fork(Effect.suspend(() => asEffect(store.append(commit)))).addObserver((exit) => {
      if (Exit.isSuccess(exit)) return done(undefined)
      fork(this.#settleDoubt(stored, exit.cause, expected, position)).addObserver((settled) =>
        done(Exit.isSuccess(settled) ? settled.value : unexpected(settled.cause))
      )
    })
  }

  /** A snapshot saves a fold and says nothing new: one that cannot be had costs no commit, and is tried again after as many entries. */
  #snapshotIfDue(): StoredSnapshot | undefined {
    const position = this.#position
    if (position - this.#snapshot < snapshotEvery) return undefined
    this.#snapshot = position
    try {
      const snapshot = Codec.encodeSnapshot(position, Snapshot.take(this.projection))
      return snapshot.body.length > snapshotLimit ? undefined : snapshot
    } catch {
      return undefined
    }
  }

  /** Folds what was written, or refuses what was not; whoever waits goes on when the whole batch is done. */
  #conclude(stored: Stored, batch: ReadonlyArray<Waiting>, failure: Failure | undefined): void {
    try {
      if (failure !== undefined && !(failure.certain && batch.every(isRefusable))) this.#lose(failure.reason)
      const refused = failure === undefined ? undefined : Exit.fail(this.#error(failure.reason))
      for (const waiting of batch) {
        // Whoever only waited for the others has nothing that could be refused.
        if (refused === undefined || (waiting.entries.length === 0 && this.#lost === undefined)) {
          this.#apply(waiting.placed)
          waiting.handed.applied?.()
          waiting.done = Exit.void
        } else {
          waiting.handed.failed?.()
          waiting.done = refused
        }
      }
    } catch (error) {
      // Nothing is left waiting, whatever went wrong here.
      const { reason } = unexpected(error)
      this.#lose(reason)
      for (const waiting of batch) {
        if (waiting.done !== undefined) continue
        waiting.done = Exit.fail(this.#error(reason))
        // What was reserved for it is given back, unless that is what went wrong.
        if (failure === undefined) waiting.handed.failed?.()
      }
    }
    this.#batch = undefined
    // Before anything else is written: what a store answers at once must not overtake them.
    for (const { done, resume } of batch) if (done !== undefined && resume !== undefined) tell(() => resume(done))
    this.#drain(stored)
  }

  /** What a failed write came to. One whose outcome was not told is read back before anything else is written (L-A7). */
  #settleDoubt(
    stored: Stored,
    cause: Cause.Cause<StoreError>,
    expected: number,
    position: number
  ): Effect.Effect<Failure | undefined> {
    const error = Cause.findErrorOption(cause)
    // A store without types may fail with anything: then nothing is known.
    const reason: StoreErrorReason =
      error._tag === "Some" && isStoreError(error.value)
        ? error.value.reason
        : { _tag: "Unconfirmed", detail: String(cause) }
    if (reason._tag !== "Unconfirmed") {
      return Effect.succeed({ reason: toSessionReason(reason), certain: reason._tag === "Unavailable" })
    }
    return Effect.map(
      Effect.exit(Effect.suspend(() => asEffect(stored.store.position(this.sessionId)))),
      (read): Failure | undefined => {
        if (Exit.isFailure(read)) return { reason: toSessionReason(reason), certain: false }
        if (read.value.epoch !== stored.epoch) return { reason: { _tag: "OwnerLost" }, certain: false }
        if (read.value.position === position) return undefined
        const detail = `not written: ${reason.detail}`
        return { reason: { _tag: "StorageUnavailable", detail }, certain: read.value.position === expected }
      }
    )
  }

  #lose(reason: SessionErrorReason): void {
    if (this.#lost !== undefined) return
    this.#lost = reason
    this.log.end(reason)
    this.onLost(reason)
  }

  #place(entries: ReadonlyArray<Entry.Entry>, after: number, time: number): ReadonlyArray<Entry.Committed> {
    let sequence = after
    // Completed in place: the caller made the bodies for this call and keeps no hold of them.
    const placed = entries as ReadonlyArray<Types.Mutable<Entry.Committed>>
    for (const entry of placed) {
      if (Entry.isRecord(entry)) continue
      entry.session_id = this.sessionId
      entry.sequence = ++sequence
      entry.time = time
    }
    return placed
  }

  #apply(entries: ReadonlyArray<Entry.Committed>): void {
    for (const entry of entries) {
      this.projection.apply(entry)
      if (!Entry.isRecord(entry)) this.log.append(entry)
    }
    this.log.ring()
  }

  #error(reason: SessionErrorReason): SessionError {
    return new SessionError({ sessionId: this.sessionId, reason })
  }
}

/**
 * A store's error as a session tells of it.
 *
 * @category conversions
 * @since 0.1.0
 */
export const toSessionReason = (reason: StoreErrorReason): SessionErrorReason => {
  switch (reason._tag) {
    case "Unavailable":
      return { _tag: "StorageUnavailable", detail: reason.detail }
    case "Unconfirmed":
      return { _tag: "StorageUnavailable", detail: `unconfirmed: ${reason.detail}` }
    case "Fenced":
    case "Conflict":
      return { _tag: "OwnerLost" }
    case "Pruned":
      return { _tag: "EventsPruned", first: reason.first }
    case "Corrupt":
      return { _tag: "JournalCorrupt", detail: reason.detail }
    case "TooNew":
      return { _tag: "JournalTooNew", format: reason.format, supported: reason.supported }
  }
}

const nothing: ReadonlyArray<Entry.Committed> = []

/** Nothing has acted on it yet; what is empty asks for nothing. */
const isRefusable = ({ entries, handed }: Waiting): boolean => handed.refusable === true || entries.length === 0

const isFilled = (entries: ReadonlyArray<StoredEntry>): entries is Append["entries"] => entries.length > 0

const isStoreError = Schema.is(StoreError)

const unexpected = (error: unknown): Failure => ({
  reason: toSessionReason({ _tag: "Unconfirmed", detail: String(error) }),
  certain: false
})

/** A store without types may answer anything; what is no effect would end the fiber that runs it. */
const asEffect = <A, E>(answer: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.isEffect(answer) ? answer : Effect.die(new TypeError("the store answered with no effect"))
