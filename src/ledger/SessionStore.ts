/**
 * The journal port: where a session's entries are kept beyond the process. A store appends whole commits, in order, for the one
 * owner that holds the session's newest epoch, and says honestly when it does not know whether a commit landed (L-A7, L-R4).
 * It never looks into an entry.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import type * as Ids from "../domain/Ids.ts"
import * as Asked from "./Asked.ts"

/**
 * One entry as it is kept. `position` counts every entry of the session from 1, gapless; `sequence` counts its events from 1 and
 * is `null` for a record. `inputId` is set on the record of an accepted identity. `body` is a JSON value: a store gives back its equal,
 * or fails `Corrupt` when what it kept was changed since (L-R5).
 *
 * @category models
 * @since 0.1.0
 */
export interface StoredEntry {
  readonly position: number
  readonly sequence: number | null
  readonly kind: string
  readonly inputId: string | null
  readonly body: unknown
}

/**
 * A fold of all entries up to and with `position`, as text the store does not look into; `checksum` is of that text.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoredSnapshot {
  readonly position: number
  readonly body: string
  readonly checksum: string
}

/**
 * What a new owner finds: its epoch, where the journal ends, and what it needs to fold: the newest snapshot and the entries after
 * it. `created` says that the session did not exist before.
 *
 * @category models
 * @since 0.1.0
 */
export interface Claim {
  readonly epoch: number
  readonly created: boolean
  readonly position: number
  readonly sequence: number
  readonly snapshot: StoredSnapshot | undefined
  readonly entries: ReadonlyArray<StoredEntry>
}

/**
 * One commit. `expected` is the position of the last entry before it; the first entry's position is one more.
 *
 * @category models
 * @since 0.1.0
 */
export interface Append {
  readonly sessionId: Ids.SessionId
  readonly epoch: number
  readonly expected: number
  readonly entries: readonly [StoredEntry, ...Array<StoredEntry>]
  readonly snapshot: StoredSnapshot | undefined
}

/** @category models @since 0.1.0 */
export interface StoredSession {
  readonly id: Ids.SessionId
  readonly agent: string
  readonly position: number
  readonly sequence: number
}

/**
 * `Unavailable`: it certainly did not happen. `Unconfirmed`: it cannot be told whether it did. `Fenced`: another owner has a newer
 * epoch. `Conflict`: the journal does not end where the caller expects. `Pruned`: what was asked for is gone; `first` is what is left. `Corrupt` and `TooNew`: it was not read and not touched.
 *
 * @category errors
 * @since 0.1.0
 */
export const StoreErrorReason = Schema.Union([
  Schema.TaggedStruct("Unavailable", { detail: Schema.String }),
  Schema.TaggedStruct("Unconfirmed", { detail: Schema.String }),
  Schema.TaggedStruct("Fenced", {}),
  Schema.TaggedStruct("Conflict", { position: Schema.Int }),
  Schema.TaggedStruct("Pruned", { first: Schema.Int }),
  Schema.TaggedStruct("Corrupt", { detail: Schema.String }),
  Schema.TaggedStruct("TooNew", { format: Schema.Int, supported: Schema.Int })
])
/** @category models @since 0.1.0 */
export type StoreErrorReason = typeof StoreErrorReason.Type

/** @category errors @since 0.1.0 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", { reason: StoreErrorReason }) {
  override get message(): string {
    const { reason } = this
    switch (reason._tag) {
      case "Unavailable":
        return `the store is not available: ${reason.detail}`
      case "Unconfirmed":
        return `the store did not say whether it has written: ${reason.detail}`
      case "Fenced":
        return "another owner has claimed this session"
      case "Conflict":
        return `the journal ends at ${reason.position}, not where its owner expects`
      case "Pruned":
        return `events before ${reason.first} were pruned`
      case "Corrupt":
        return `the journal cannot be read: ${reason.detail}`
      case "TooNew":
        return `the journal has format ${reason.format}; this version reads up to ${reason.supported}`
    }
  }
}

/**
 * The format of the entries this version writes and reads.
 *
 * @category constants
 * @since 0.1.0
 */
export const format = 1

/** @category services @since 0.1.0 */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /** Whether what it holds outlives the process. */
    readonly durable: boolean
    /** Raises the session's epoch, which fences every older owner, and reads what the new one needs. Creates what is not there. */
    readonly claim: (id: Ids.SessionId, agent: string) => Effect.Effect<Claim, StoreError>
    /** Writes one commit whole, or fails. Commits handed in together may share one write of the medium. */
    readonly append: (commit: Append) => Effect.Effect<void, StoreError>
    /** The epoch and position as they are now: how a commit whose outcome was not told is read back. */
    readonly position: (
      id: Ids.SessionId
    ) => Effect.Effect<{ readonly epoch: number; readonly position: number }, StoreError>
    /** Events after a sequence, in order, at most `limit`; fails `Pruned` if it starts before what is left. */
    readonly events: (
      id: Ids.SessionId,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<StoredEntry>, StoreError>
    /** Entries of one kind up to and with a position, in order. */
    readonly kind: (
      id: Ids.SessionId,
      kind: string,
      until: number
    ) => Effect.Effect<ReadonlyArray<StoredEntry>, StoreError>
    /** The record of an accepted identity. */
    readonly identity: (
      id: Ids.SessionId,
      inputId: Ids.InputId
    ) => Effect.Effect<Option.Option<StoredEntry>, StoreError>
    readonly list: Effect.Effect<ReadonlyArray<StoredSession>, StoreError>
    /** Deletes a session whole. It is the host's call, and there is no way back. */
    readonly forget: (id: Ids.SessionId) => Effect.Effect<void, StoreError>
    /** Deletes events before a sequence; records, and with them identities and the context, stay. Answers the first event left. */
    readonly prune: (id: Ids.SessionId, before: number) => Effect.Effect<number, StoreError>
  }
>()("midcourse/ledger/SessionStore") {}

interface Kept {
  readonly agent: string
  epoch: number
  position: number
  sequence: number
  snapshot: StoredSnapshot | undefined
  /** With their bodies as text: what is kept is nobody's to change. */
  entries: Array<EntryText>
}

type EntryText = StoredEntry & { readonly body: string }

const textOf = (entry: StoredEntry): EntryText => ({ ...entry, body: JSON.stringify(entry.body) ?? "null" })

const revived = (entry: EntryText): StoredEntry => ({ ...entry, body: JSON.parse(entry.body) })

/**
 * Keeps sessions as long as the layer lives: they survive being closed, not the process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<SessionStore> = Layer.sync(SessionStore, () => {
  const sessions = new Map<Ids.SessionId, Kept>()
  // The highest epoch of a session that was forgotten: its owner stays fenced when the id is used again.
  let forgotten = 0
  const fail = (reason: StoreErrorReason) => Effect.fail(new StoreError({ reason }))
  const find = (id: Ids.SessionId): Effect.Effect<Kept, StoreError> => {
    const kept = sessions.get(id)
    return kept === undefined
      ? fail({ _tag: "Unavailable", detail: `there is no session ${id}` })
      : Effect.succeed(kept)
  }
  return SessionStore.of({
    durable: false,
    claim: (id, agent) =>
      Effect.sync(() => {
        const found = sessions.get(id)
        const kept: Kept = found ?? {
          agent,
          epoch: forgotten,
          position: 0,
          sequence: 0,
          snapshot: undefined,
          entries: []
        }
        sessions.set(id, kept)
        kept.epoch++
        const from = kept.snapshot?.position ?? 0
        return {
          epoch: kept.epoch,
          created: found === undefined,
          position: kept.position,
          sequence: kept.sequence,
          snapshot: kept.snapshot,
          entries: kept.entries.filter((entry) => entry.position > from).map(revived)
        }
      }),
    append: (commit) =>
      Effect.suspend(() => {
        const defect = Asked.defectOf(commit)
        if (defect !== undefined) return Effect.die(defect)
        const kept = sessions.get(commit.sessionId)
        if (kept === undefined || kept.epoch !== commit.epoch) return fail({ _tag: "Fenced" })
        if (kept.position !== commit.expected) return fail({ _tag: "Conflict", position: kept.position })
        // All of them have a text before one of them is kept.
        for (const entry of commit.entries.map(textOf)) {
          kept.entries.push(entry)
          kept.position = entry.position
          if (entry.sequence !== null) kept.sequence = entry.sequence
        }
        if (commit.snapshot !== undefined) kept.snapshot = commit.snapshot
        return Effect.void
      }),
    position: (id) => Effect.map(find(id), ({ epoch, position }) => ({ epoch, position })),
    events: (id, after, limit) =>
      Effect.flatMap(find(id), ({ entries, sequence: last }) => {
        const [from, count] = [Asked.whole(after), Asked.whole(limit)]
        const found = entries.filter(({ sequence }) => sequence !== null && sequence > from)
        const first = found[0]?.sequence ?? last + 1
        return count === 0 || first === from + 1 || from >= last
          ? Effect.succeed(found.slice(0, count).map(revived))
          : fail({ _tag: "Pruned", first })
      }),
    kind: (id, kind, until) =>
      Effect.map(find(id), ({ entries }) =>
        entries.filter((entry) => entry.kind === kind && entry.position <= until).map(revived)
      ),
    identity: (id, inputId) =>
      Effect.map(find(id), ({ entries }) =>
        Option.map(
          Option.fromUndefinedOr(entries.find((entry) => entry.kind === "input" && entry.inputId === inputId)),
          revived
        )
      ),
    list: Effect.sync(() =>
      Array.from(sessions, ([id, { agent, position, sequence }]) => ({ id, agent, position, sequence }))
    ),
    forget: (id) =>
      Effect.sync(() => {
        forgotten = Math.max(forgotten, sessions.get(id)?.epoch ?? 0)
        sessions.delete(id)
      }),
    prune: (id, before) =>
      Effect.map(find(id), (kept) => {
        // Never what a new owner would have to fold.
        const limit = kept.snapshot?.position ?? 0
        const from = Asked.whole(before)
        kept.entries = kept.entries.filter(
          ({ position, sequence }) => sequence === null || sequence >= from || position > limit
        )
        return kept.entries.find(({ sequence }) => sequence !== null)?.sequence ?? kept.sequence + 1
      })
  })
})
