/**
 * The journal port over any effect/sql `SqlClient` that speaks SQLite or PostgreSQL. Commits that wait together are written in one
 * transaction (L-A7); a session's row holds its epoch and where its journal ends, and every commit is checked against it under
 * the database's own lock, so that of two owners in two processes only the newer one writes (L-R4).
 *
 * Its operations have transactions of their own: do not call them inside a transaction of the same client.
 *
 * @since 0.1.0
 */
import { Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type * as Ids from "../domain/Ids.ts"
import * as Asked from "../ledger/Asked.ts"
import {
  format,
  SessionStore,
  StoreError,
  type StoredSession,
  type StoredSnapshot,
  type StoreErrorReason
} from "../ledger/SessionStore.ts"
import { type Head, tooNew } from "./CommitGroup.ts"
import * as CommitRow from "./CommitRow.ts"
import * as CommitWriter from "./CommitWriter.ts"
import * as Database from "./Database.ts"
import * as migrations from "./migrations.ts"
import * as SqlFailure from "./SqlFailure.ts"
import * as Statements from "./Statements.ts"

/**
 * Sessions kept in a database, in tables named `midcourse_…` that are made and migrated when the layer is built. A failure that
 * the client itself reports when it opens the database is the client's: `fromSqlError` says what it means here.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<SessionStore, StoreError, SqlClient.SqlClient> = Layer.effect(
  SessionStore,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const dialect = yield* sql.onDialectOrElse({
      sqlite: () => Effect.succeed("sqlite" as const),
      pg: () => Effect.succeed("pg" as const),
      orElse: () => Effect.die(new Error("a journal is kept in SQLite or PostgreSQL"))
    })
    yield* Effect.provideService(migrations.run, SqlClient.BeginTransaction, Database.beginOf(dialect))
    return yield* make(Database.make(sql, dialect))
  })
)

/**
 * What a client's failure means for a journal, in words: `Corrupt` for a file that is damaged or no database, else `Unavailable`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSqlError: (error: SqlError.SqlError) => StoreError = SqlFailure.certain

const make = Effect.fnUntraced(function* (database: Database.Database) {
  const append = yield* CommitWriter.make(database)
  const statements = Statements.make(database.dialect)

  const find = Effect.fnUntraced(function* (query: Database.Query, id: Ids.SessionId) {
    const [head] = yield* statements.lock(query, [id])
    return head !== undefined && head.format > format ? yield* failure(tooNew(head)) : head
  })
  const findOrCreate = Effect.fnUntraced(function* (query: Database.Query, id: Ids.SessionId, agent: string) {
    const share = database.dialect === "pg" ? "FOR SHARE" : ""
    while (true) {
      const found = yield* find(query, id)
      if (found !== undefined) return { head: found, created: false }
      const made = yield* query<Head>(
        `INSERT INTO midcourse_sessions (id, agent, epoch, position, sequence, format)
        SELECT ?, ?, epoch, 0, 0, CAST(? AS INTEGER) FROM midcourse_forgotten WHERE TRUE ${share}
        ON CONFLICT (id) DO NOTHING
        RETURNING number, id, epoch, position, sequence, format`,
        [id, agent, format]
      )
      if (made[0] !== undefined) return { head: made[0], created: true }
    }
  })

  const claim = Effect.fn("SqlSessionStore.claim")((id: Ids.SessionId, agent: string) =>
    database.transact((query) =>
      Effect.gen(function* () {
        const { created, head } = yield* findOrCreate(query, id, agent)
        const epoch = head.epoch + 1
        yield* query("UPDATE midcourse_sessions SET epoch = ? WHERE number = ?", [epoch, head.number])
        const snapshot = yield* snapshotOf(query, head)
        const from = snapshot?.position ?? 0
        const rows = yield* query<CommitRow.CommitRow>(
          `SELECT ${columns} FROM midcourse_commits c WHERE c.session = ? AND c.position > ? ORDER BY c.position`,
          [head.number, from]
        )
        const found = yield* Effect.forEach(rows, CommitRow.open)
        let end = from
        for (const [index, { after, position }] of found.entries()) {
          // A snapshot may end inside a commit.
          if (index === 0 ? after > end : after !== end) return yield* corrupt(`entry ${end + 1} is missing`)
          end = position
        }
        if (end !== head.position) return yield* corrupt(`it ends at entry ${end}, not at ${head.position}`)
        const entries = found.flatMap(({ entries }) => entries).filter(({ position }) => position > from)
        const event = entries.findLast(({ sequence }) => sequence !== null)?.sequence ?? head.sequence
        if (event !== head.sequence) return yield* corrupt(`it ends at event ${event}, not at ${head.sequence}`)
        return { epoch, created, position: head.position, sequence: head.sequence, snapshot, entries }
      })
    )
  )

  /** One statement reads the session's row and, beside it, the commits asked for: both as of one moment. */
  const read = Effect.fnUntraced(function* (id: Ids.SessionId, text: string, params: ReadonlyArray<string | number>) {
    const rows = yield* database.read<ReadRow>(text, params)
    const [first] = rows
    if (first === undefined) return yield* missing(id)
    if (first.format > format) return yield* failure(tooNew(first))
    const opened = yield* Effect.forEach(rows.filter(isCommit), CommitRow.open)
    return { last: first.last, entries: opened.flatMap(({ entries }) => entries) }
  })

  const events = Effect.fn("SqlSessionStore.events")(function* (id: Ids.SessionId, after: number, limit: number) {
    const [from, count] = [Asked.whole(after), Asked.whole(limit)]
    const until = Asked.whole(from + count)
    const { entries, last } = yield* read(id, eventsAfter, [from, until, id, from, from])
    if (count === 0) return []
    const events = entries.filter(({ sequence }) => sequence !== null && sequence > from)
    const first = events[0]?.sequence ?? last + 1
    if (first !== from + 1 && from < last) return yield* failure({ _tag: "Pruned", first })
    const found = events.slice(0, count)
    const gap = found.findIndex(({ sequence }, index) => sequence !== from + 1 + index)
    if (gap >= 0) {
      return yield* corrupt(`event ${from + 1 + gap} is missing; the next one kept is ${found[gap]?.sequence}`)
    }
    const end = from + found.length
    return found.length < count && end < last ? yield* corrupt(`events ${end + 1} to ${last} are missing`) : found
  })

  return SessionStore.of({
    durable: true,
    claim,
    append,
    position: Effect.fn("SqlSessionStore.position")(function* (id) {
      // Not beside a commit that is still being made: who asks has lost its answer, and must have the one it comes to.
      const share = database.dialect === "pg" ? "FOR SHARE" : ""
      const text = `SELECT format, epoch, position FROM midcourse_sessions WHERE id = ? ${share}`
      const [row] = yield* database.read<Pick<Head, "format" | "epoch" | "position">>(text, [id])
      if (row === undefined) return yield* missing(id)
      if (row.format > format) return yield* failure(tooNew(row))
      return { epoch: row.epoch, position: row.position }
    }),
    events,
    kind: Effect.fn("SqlSessionStore.kind")((id, kind, until) =>
      Effect.map(read(id, commitsUntil, [Asked.whole(until), id]), ({ entries }) =>
        entries.filter((entry) => entry.kind === kind && entry.position <= until)
      )
    ),
    identity: Effect.fn("SqlSessionStore.identity")((id, inputId) =>
      Effect.map(read(id, commitOf, [inputId, id]), ({ entries }) =>
        Option.fromUndefinedOr(entries.find((entry) => entry.kind === "input" && entry.inputId === inputId))
      )
    ),
    list: Effect.map(
      database.read<StoredSession>("SELECT id, agent, position, sequence FROM midcourse_sessions ORDER BY number", []),
      (rows) => rows.map(({ agent, id, position, sequence }) => ({ id, agent, position, sequence }))
    ),
    forget: Effect.fn("SqlSessionStore.forget")((id) =>
      database.transact((query) =>
        Effect.gen(function* () {
          // Before the session's row, as a claim that creates one does: whoever comes next begins after its epoch.
          const lock = database.dialect === "pg" ? "FOR UPDATE" : ""
          yield* query(`SELECT epoch FROM midcourse_forgotten ${lock}`, [])
          const head = yield* find(query, id)
          if (head === undefined) return
          yield* query("UPDATE midcourse_forgotten SET epoch = ? WHERE epoch < ?", [head.epoch, head.epoch])
          yield* query("DELETE FROM midcourse_commits WHERE session = ?", [head.number])
          yield* query("DELETE FROM midcourse_snapshots WHERE session = ?", [head.number])
          yield* query("DELETE FROM midcourse_sessions WHERE number = ?", [head.number])
        })
      )
    ),
    prune: Effect.fn("SqlSessionStore.prune")((id, before) =>
      database.transact((query) =>
        Effect.gen(function* () {
          const head = (yield* find(query, id)) ?? (yield* missing(id))
          const snapshot = yield* snapshotOf(query, head)
          // Never what a new owner would have to fold.
          const until = snapshot?.position ?? 0
          let after = 0
          while (true) {
            const rows = yield* query<CommitRow.CommitRow>(withEvents, [head.number, after])
            const pruned = yield* Effect.forEach(rows, (row) => CommitRow.prune(row, Asked.whole(before), until))
            const stop = pruned.findIndex(({ first }) => first !== undefined)
            const left = stop < 0 ? rows.length : stop
            const done = pruned.slice(0, pruned[left]?.row === rows[left] ? left : left + 1)
            const end = rows[done.length - 1]?.position ?? after
            if (end > after) {
              yield* query(deleteWithEvents, [head.number, after, end])
              const kept = done.flatMap(({ row }) => (row === undefined ? [] : [{ session: head.number, row }]))
              yield* statements.insert(query, kept)
            }
            const first = pruned[stop]?.first
            if (first !== undefined || rows.length === 0) return first ?? head.sequence + 1
            after = end
          }
        })
      )
    )
  })
})

const snapshotOf = (query: Database.Query, { number }: Head) =>
  Effect.map(
    query<StoredSnapshot>("SELECT position, checksum, body FROM midcourse_snapshots WHERE session = ?", [number]),
    ([row]): StoredSnapshot | undefined => row && { position: row.position, checksum: row.checksum, body: row.body }
  )

const columns = "c.position, c.sequence, c.input_id, c.checksum, c.body"

/**
 * Commits after a position, up to and with the first that meets a condition. That one is looked for once, before the join: a plan
 * that looks for it at every row takes as long as the journal is, squared.
 */
const through = (until: string, more: string): string =>
  `WITH s AS MATERIALIZED (
    SELECT s.number, s.format, s.sequence AS last, COALESCE((
      SELECT n.position FROM midcourse_commits n WHERE n.session = s.number AND ${until} ORDER BY n.position LIMIT 1
    ), ${Asked.largest}) AS until
    FROM midcourse_sessions s WHERE s.id = ?)
  SELECT s.format, s.last, ${columns} FROM s
  LEFT JOIN midcourse_commits c ON c.session = s.number AND c.position <= s.until ${more} ORDER BY c.position`

/** A sequence is never above its position: the bound on the latter is what the index can use. */
const eventsAfter = through("n.position > ? AND n.sequence >= ?", "AND c.position > ? AND c.sequence > ?")

const commitsUntil = through("n.position >= ?", "")

/** Unordered, or SQLite would take the index by position. */
const commitOf = `SELECT s.format, s.sequence AS last, ${columns} FROM midcourse_sessions s
  LEFT JOIN midcourse_commits c ON c.session = s.number AND c.input_id = ? WHERE s.id = ?`

const withEvents = `SELECT ${columns} FROM midcourse_commits c
  WHERE c.session = ? AND c.position > ? AND c.sequence IS NOT NULL ORDER BY c.position LIMIT 256`

const deleteWithEvents = `DELETE FROM midcourse_commits
  WHERE session = ? AND position > ? AND position <= ? AND sequence IS NOT NULL`

/** A session's row beside one of its commits, or beside none. */
type ReadRow = { readonly format: number; readonly last: number } & (CommitRow.CommitRow | { readonly position: null })

const isCommit = (row: ReadRow): row is ReadRow & CommitRow.CommitRow => row.position !== null

const failure = (reason: StoreErrorReason) => Effect.fail(new StoreError({ reason }))

const corrupt = (detail: string) => failure({ _tag: "Corrupt", detail })

const missing = (id: Ids.SessionId) => failure({ _tag: "Unavailable", detail: `there is no session ${id}` })
