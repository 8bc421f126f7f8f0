/**
 * A session's events and whoever reads them: an array, a cursor a reader and one wake-up, so that replay and live are the same
 * read and cannot have a seam (L-V2). Appending never runs a reader's code (L-V3).
 *
 * @since 0.1.0
 */
import { Cause, Channel, type Clock, Effect, Scope, Stream } from "effect"
import type { Scheduler } from "effect"
import type * as Event from "../domain/Event.ts"
import type * as Ids from "../domain/Ids.ts"
import { SessionError, type SessionErrorReason } from "../domain/SessionError.ts"
import { tell } from "./Telling.ts"

/** Events handed to a reader at once, and live events kept for the slowest reader before the oldest are dropped. */
const readChunk = 4096
const liveCapacity = 4096
const liveBlock = 256

interface LiveEvent {
  readonly after: number
  readonly event: Event.SessionEvent
}

interface Reader {
  live: number
  /** Set while it waits: one reader has one wait at most. */
  resume: ((effect: Effect.Effect<void>) => void) | undefined
}

type Chunk = readonly [Event.SessionEvent, ...Array<Event.SessionEvent>]

const isFilled = (events: ReadonlyArray<Event.SessionEvent>): events is Chunk => events.length > 0

type Pull = Effect.Effect<Chunk, SessionError | Cause.Done>

/** Reads events from before this log began, from wherever they are kept. */
export type Past = (
  after: number,
  until: number,
  limit: number
) => Effect.Effect<ReadonlyArray<Event.SessionEvent>, SessionError>

/** @category models @since 0.1.0 */
export class EventLog {
  readonly #sessionId: Ids.SessionId
  readonly #clock: Clock.Clock
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #base: number
  readonly #events: Array<Event.SessionEvent> = []
  /** Seldom more than one. */
  #readers: ReadonlyArray<Reader> = nobody
  #flushing = false
  #live: Array<LiveEvent> = []
  #liveBase = 0
  #end: SessionErrorReason | "closed" | undefined

  constructor(options: {
    readonly sessionId: Ids.SessionId
    readonly clock: Clock.Clock
    readonly dispatcher: Scheduler.SchedulerDispatcher
    readonly projection: { readonly sequence: number }
  }) {
    this.#sessionId = options.sessionId
    this.#clock = options.clock
    this.#dispatcher = options.dispatcher
    this.#base = options.projection.sequence
  }

  /** Whether anybody reads: a live event costs nothing when nobody does. */
  get observed(): boolean {
    return this.#readers.length > 0
  }

  /** Adds a journalled event; `ring` tells the readers. */
  append(event: Event.SessionEvent): void {
    this.#events.push(event)
  }

  /** Publishes a live event: no sequence of its own, no replay, dropped when nobody reads (L-V1). */
  publish(body: Event.Body): void {
    if (this.#readers.length === 0) return
    const event = Object.assign(body, {
      session_id: this.#sessionId,
      sequence: this.#last,
      time: this.#clock.currentTimeMillisUnsafe(),
      live: this.#liveEnd
    })
    this.#live.push({ after: this.#last, event })
    // In blocks: to move what is kept for every event dropped would cost more than the event.
    if (this.#live.length > liveCapacity) {
      this.#live = this.#live.slice(liveBlock)
      this.#liveBase += liveBlock
    }
    this.ring()
  }

  /** Ends every reader's stream: after what is journalled, with a typed error unless the session closed. */
  end(reason: SessionErrorReason | "closed"): void {
    this.#end ??= reason
    this.ring()
  }

  /** A turn of its own: the publisher finishes its step before any reader's code runs (L-V3). */
  ring(): void {
    if (this.#flushing || !this.#readers.some(isWaiting)) return
    this.#flushing = true
    this.#dispatcher.scheduleTask(() => {
      this.#flushing = false
      // Those who read now: whoever comes while they go on waits for the next ring.
      for (const reader of this.#readers) {
        const { resume } = reader
        reader.resume = undefined
        if (resume !== undefined) tell(() => resume(Effect.void))
      }
    }, 0)
  }

  /** Every later event once, in order, then the live ones (L-V2). A lost or slow reader changes nothing. */
  stream(after: number, past: Past): Stream.Stream<Event.SessionEvent, SessionError> {
    return Stream.fromChannel(
      Channel.fromTransform((_upstream, scope) => {
        const reader: Reader = { live: this.#liveEnd, resume: undefined }
        this.#readers = this.#readers.concat(reader)
        const from = Number.isFinite(after) ? Math.max(0, Math.floor(after)) : 0
        const left = Scope.addFinalizerExit(scope, () => {
          this.#leave(reader)
          return Effect.void
        })
        return Effect.as(left, this.#pull(reader, from, past))
      })
    )
  }

  #leave(reader: Reader): void {
    this.#readers = this.#readers.filter((each) => each !== reader)
    this.#trim()
  }

  #pull(reader: Reader, after: number, past: Past): Pull {
    let cursor = after
    const pull: Pull = Effect.suspend(() => {
      if (cursor < this.#base) {
        const read = Effect.map(this.#history(cursor, past), (events) => {
          cursor += events.length
          return events
        })
        return Effect.onError(read, () => Effect.sync(() => this.#leave(reader)))
      }
      const chunk = this.#read(reader, cursor)
      cursor = Math.max(cursor, chunk.cursor)
      if (isFilled(chunk.events)) return Effect.succeed(chunk.events)
      if (this.#end === undefined) return Effect.flatMap(this.#wait(reader, cursor), () => pull)
      // What is read after this stream, in the same scope, has nothing to do with it.
      this.#leave(reader)
      return this.#end === "closed" ? Cause.done() : Effect.fail(this.#error(this.#end))
    })
    return pull
  }

  #history(cursor: number, past: Past): Effect.Effect<Chunk, SessionError> {
    return Effect.flatMap(past(cursor, this.#base, readChunk), (events) =>
      isFilled(events) && events[0].sequence === cursor + 1
        ? Effect.succeed(events)
        : Effect.fail(this.#error({ _tag: "EventsPruned", first: events[0]?.sequence ?? this.#base + 1 }))
    )
  }

  get #last(): number {
    return this.#base + this.#events.length
  }

  get #liveEnd(): number {
    return this.#liveBase + this.#live.length
  }

  /** Journalled events after the cursor, with the live ones that fall between them in their places (L-V4). */
  #read(reader: Reader, cursor: number): { readonly events: Array<Event.SessionEvent>; readonly cursor: number } {
    const base = this.#base
    const until = Math.min(this.#last, cursor + readChunk)
    if (reader.live < this.#liveBase) reader.live = this.#liveBase
    if (reader.live === this.#liveEnd) return { events: this.#events.slice(cursor - base, until - base), cursor: until }
    const events: Array<Event.SessionEvent> = []
    let at = cursor
    for (; reader.live < this.#liveEnd; reader.live++) {
      const next = this.#live[reader.live - this.#liveBase]
      if (next === undefined || next.after > until) break
      if (at < next.after) {
        events.push(...this.#events.slice(at - base, next.after - base))
        at = next.after
      }
      events.push(next.event)
    }
    events.push(...this.#events.slice(at - base, until - base))
    this.#trim()
    return { events, cursor: Math.max(at, until) }
  }

  /** Drops the live events that every reader has passed. */
  #trim(): void {
    if (this.#live.length === 0) return
    let least = this.#liveEnd
    for (const reader of this.#readers) least = Math.min(least, Math.max(reader.live, this.#liveBase))
    if (least === this.#liveEnd) this.#live = []
    else if (least - this.#liveBase >= liveBlock) this.#live = this.#live.slice(least - this.#liveBase)
    else return
    this.#liveBase = least
  }

  /** Looks again in the step that registers: an append between the look and the registration would wake nobody. */
  #wait(reader: Reader, cursor: number): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (cursor < this.#last || reader.live < this.#liveEnd || this.#end !== undefined) return resume(Effect.void)
      // To resume one that was interrupted does nothing.
      reader.resume = resume
    })
  }

  #error(reason: SessionErrorReason): SessionError {
    return new SessionError({ sessionId: this.#sessionId, reason })
  }
}

const nobody: ReadonlyArray<Reader> = []

const isWaiting = ({ resume }: Reader): boolean => resume !== undefined
