/**
 * The one commit lane of a session (L-V1, L-A7): submitters and the owner hand it entries; it gives events their sequence,
 * writes, folds, and only then publishes. Events are a view of it: an array, a cursor a reader and one wake-up, so that
 * replay and live are the same read and cannot have a seam.
 *
 * @since 0.1.0
 */
import { Cause, Clock, Effect, Stream } from "effect"
import type { Scheduler } from "effect"
import type { Prompt } from "effect/ai"
import type * as Event from "../domain/Event.ts"
import type * as Ids from "../domain/Ids.ts"
import { SessionError } from "../domain/SessionError.ts"
import type { SessionErrorReason } from "../domain/SessionError.ts"
import * as Entry from "./Entry.ts"
import { Projection } from "./Projection.ts"

/** Events handed to a reader at once, and live events kept for the slowest reader before the oldest are dropped. */
const readChunk = 4096
const liveCapacity = 4096

interface LiveEvent {
  readonly after: number
  readonly event: Event.SessionEvent
}

interface Reader {
  live: number
}

/** @category models @since 0.1.0 */
export interface Options {
  readonly sessionId: Ids.SessionId
  readonly clock: Clock.Clock
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** What precedes the conversation in every request. */
  readonly instructions: ReadonlyArray<Prompt.Message>
}

/** @category models @since 0.1.0 */
export class Journal {
  readonly sessionId: Ids.SessionId
  readonly projection: Projection
  readonly #clock: Clock.Clock
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #events: Array<Event.SessionEvent> = []
  readonly #readers = new Set<Reader>()
  #waiters: Array<(effect: Effect.Effect<void>) => void> = []
  #flushing = false
  #live: Array<LiveEvent> = []
  #liveBase = 0
  #end: SessionErrorReason | "closed" | undefined

  constructor(options: Options) {
    this.sessionId = options.sessionId
    this.projection = new Projection(options.instructions)
    this.#clock = options.clock
    this.#dispatcher = options.dispatcher
  }

  /** The last journalled sequence, 0 before the first. */
  get sequence(): number {
    return this.#events.length
  }

  /** Milliseconds since the Unix epoch. */
  get now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  /**
   * Hands the entries to the lane in the calling step, so that what the caller looked at and what it commits are one
   * transition; the effect returned waits until they are written. One call is one commit.
   */
  commit(entries: ReadonlyArray<Entry.Entry>): Effect.Effect<void> {
    this.#apply(entries)
    return Effect.void
  }

  /** Gives entries their place, folds and publishes them in one synchronous step. */
  #apply(entries: ReadonlyArray<Entry.Entry>): void {
    const time = this.now
    for (const entry of entries) {
      if (Entry.isRecord(entry)) {
        this.projection.apply(entry)
        continue
      }
      const event = this.#place(entry, this.#events.length + 1, time)
      this.#events.push(event)
      this.projection.apply(event)
    }
    this.#ring()
  }

  /** Publishes a live event: no sequence, no replay, dropped when nobody reads (L-V1). */
  publish(body: Event.Body): void {
    if (this.#readers.size === 0) return
    const index = this.#liveBase + this.#live.length
    const event = Object.assign(this.#place(body, this.#events.length, this.now), { live: index })
    this.#live.push({ after: this.#events.length, event })
    if (this.#live.length > liveCapacity) {
      this.#live.shift()
      this.#liveBase++
    }
    this.#ring()
  }

  /** Whether anybody reads: a live event costs nothing when nobody does. */
  get observed(): boolean {
    return this.#readers.size > 0
  }

  /** Ends every reader's stream: after what is journalled, with a typed error unless the session closed. */
  end(reason: SessionErrorReason | "closed"): void {
    this.#end ??= reason
    this.#ring()
  }

  /** Every later event once, in order, then the live ones (L-V2). A lost or slow reader changes nothing. */
  stream(after: number): Stream.Stream<Event.SessionEvent, SessionError> {
    return Stream.suspend(() => {
      const reader: Reader = { live: this.#liveBase + this.#live.length }
      let cursor = Math.max(0, after)
      this.#readers.add(reader)
      const leave = Effect.sync(() => {
        this.#readers.delete(reader)
        this.#trim()
      })
      const pull: Effect.Effect<
        readonly [Event.SessionEvent, ...Array<Event.SessionEvent>],
        SessionError | Cause.Done
      > = Effect.suspend(() => {
        const chunk = this.#read(reader, cursor)
        cursor = Math.max(cursor, chunk.cursor)
        const [first, ...rest] = chunk.events
        if (first !== undefined) return Effect.succeed([first, ...rest] as const)
        if (this.#end === undefined) return Effect.flatMap(this.#wait(reader, cursor), () => pull)
        return this.#end === "closed"
          ? Effect.fail(Cause.Done())
          : Effect.fail(new SessionError({ sessionId: this.sessionId, reason: this.#end }))
      })
      return Stream.ensuring(Stream.fromPull(Effect.succeed(pull)), leave)
    })
  }

  /** Journalled events after the cursor, with the live ones that fall between them in their places (L-V4). */
  #read(reader: Reader, cursor: number): { readonly events: Array<Event.SessionEvent>; readonly cursor: number } {
    const journalled = this.#events
    const until = Math.min(journalled.length, cursor + readChunk)
    if (reader.live < this.#liveBase) reader.live = this.#liveBase
    if (reader.live === this.#liveBase + this.#live.length) {
      return { events: journalled.slice(cursor, until), cursor: until }
    }
    const events: Array<Event.SessionEvent> = []
    let at = cursor
    for (; reader.live < this.#liveBase + this.#live.length; reader.live++) {
      const next = this.#live[reader.live - this.#liveBase]
      if (next === undefined || next.after > until) break
      for (; at < next.after; at++) pushDefined(events, journalled[at])
      events.push(next.event)
    }
    for (; at < until; at++) pushDefined(events, journalled[at])
    this.#trim()
    return { events, cursor: at }
  }

  /** Drops the live events that every reader has passed. */
  #trim(): void {
    if (this.#live.length === 0) return
    let least = this.#liveBase + this.#live.length
    for (const reader of this.#readers) least = Math.min(least, Math.max(reader.live, this.#liveBase))
    if (least === this.#liveBase + this.#live.length) this.#live = []
    else if (least - this.#liveBase >= 256) this.#live = this.#live.slice(least - this.#liveBase)
    else return
    this.#liveBase = least
  }

  /** Looks again in the step that registers: an append between the look and the registration would wake nobody. */
  #wait(reader: Reader, cursor: number): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (cursor < this.#events.length || reader.live < this.#liveBase + this.#live.length || this.#end !== undefined) {
        return resume(Effect.void)
      }
      this.#waiters.push(resume)
      return Effect.sync(() => {
        const at = this.#waiters.indexOf(resume)
        if (at >= 0) this.#waiters.splice(at, 1)
      })
    })
  }

  /** A turn of its own: the publisher finishes its step before any reader's code runs (L-V3). */
  #ring(): void {
    if (this.#waiters.length === 0 || this.#flushing) return
    this.#flushing = true
    this.#dispatcher.scheduleTask(() => {
      this.#flushing = false
      const waiters = this.#waiters
      this.#waiters = []
      for (const resume of waiters) resume(Effect.void)
    }, 0)
  }

  #place(body: Event.Body, sequence: number, time: number): Event.SessionEvent {
    // Completed in place: the caller made the body for this call and keeps no hold of it.
    return Object.assign(body, { session_id: this.sessionId, sequence, time })
  }
}

const pushDefined = (events: Array<Event.SessionEvent>, event: Event.SessionEvent | undefined): void => {
  if (event !== undefined) events.push(event)
}
