/**
 * The statements that many rows share. Their texts come in few sizes, so that each is prepared once.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { format, type StoredSnapshot } from "../ledger/SessionStore.ts"
import type { Head, Packed, Plan } from "./CommitGroup.ts"
import type * as CommitRow from "./CommitRow.ts"
import type { Dialect, Query } from "./Database.ts"

/**
 * Rows of one statement, at most; powers of two. A round trip to PostgreSQL costs more than any row; in SQLite, which is in the
 * process, a long statement costs more than several short ones.
 */
const limits = { pg: 256, sqlite: 1 } as const satisfies Record<Dialect, number>

type Run<A> = (text: string, params: ReadonlyArray<unknown>) => A

/** @category models @since 0.1.0 */
export interface Statements {
  /** The rows of these sessions, held until the transaction ends, in an order that is the same for everyone. */
  readonly lock: (query: Query, ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Head>, SqlError.SqlError>
  /**
   * Writes one commit if the journal is where it expects it and its owner's. If not, it fails: there is no session then for its rows to
   * be of.
   */
  readonly commit: (query: Query, commit: Packed) => Effect.Effect<unknown, SqlError.SqlError>
  /** The same for a commit of one row and no snapshot, by what runs its one statement. */
  readonly lone: <A>(commit: Packed, run: Run<A>) => A
  readonly insert: (query: Query, rows: Plan["rows"]) => Effect.Effect<unknown, SqlError.SqlError>
  readonly snapshot: (query: Query, id: string, snapshot: StoredSnapshot) => Effect.Effect<unknown, SqlError.SqlError>
}

/** @category constructors @since 0.1.0 */
export const make = (dialect: Dialect): Statements => {
  const limit = limits[dialect]
  const lock = sized((size) => {
    const select = `SELECT number, id, epoch, position, sequence, format FROM midcourse_sessions
      WHERE id IN (${repeat("?", size)})`
    return dialect === "pg" ? `${select} ORDER BY number FOR UPDATE` : select
  })
  const columns = "session, position, sequence, input_id, checksum, body"
  const insert = sized(
    (size) => `INSERT INTO midcourse_commits (${columns}) VALUES ${repeat("(?, ?, ?, ?, ?, ?)", size)}`
  )
  const insertIf = sized(
    (size) => `WITH owned AS (
        SELECT number FROM midcourse_sessions WHERE id = ? AND epoch = ? AND position = ? AND format <= ?
        ${dialect === "pg" ? "FOR UPDATE" : ""})
      INSERT INTO midcourse_commits (${columns})
      VALUES ${repeat("((SELECT number FROM owned), ?, ?, ?, ?, ?)", size)}`
  )
  const checked = <A>(
    { epoch, sessionId }: Packed,
    expected: number,
    rows: ReadonlyArray<CommitRow.CommitRow>,
    run: Run<A>
  ): A => {
    const params: Array<unknown> = [sessionId, epoch, expected, format]
    for (const row of rows) pushRow(params, row)
    return run(insertIf(rows.length), params)
  }
  const insertSnapshot = `INSERT INTO midcourse_snapshots (session, position, checksum, body)
    VALUES ((SELECT number FROM midcourse_sessions WHERE id = ?), ?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET
      position = excluded.position, checksum = excluded.checksum, body = excluded.body`
  const snapshot: Statements["snapshot"] = (query, id, { body, checksum, position }) =>
    query(insertSnapshot, [id, position, checksum, body])
  return {
    lock: (query, ids) => {
      const size = 2 ** Math.ceil(Math.log2(ids.length))
      const params = size === ids.length ? ids : Array.from({ length: size }, (_, index) => ids[index % ids.length])
      return query<Head>(lock(size), params)
    },
    commit: (query, commit) => {
      let end = commit.expected
      const written = inParts(commit.rows, limit, (part) => {
        const start = end
        end = part.at(-1)?.position ?? end
        return checked(commit, start, part, query)
      })
      return commit.snapshot === undefined
        ? written
        : Effect.andThen(written, snapshot(query, commit.sessionId, commit.snapshot))
    },
    lone: (commit, run) => checked(commit, commit.expected, commit.rows, run),
    insert: (query, rows) =>
      inParts(rows, limit, (part) => {
        const params: Array<unknown> = []
        for (const { row, session } of part) {
          params.push(session)
          pushRow(params, row)
        }
        return query(insert(part.length), params)
      }),
    snapshot
  }
}

const pushRow = (params: Array<unknown>, row: CommitRow.CommitRow): void => {
  const { body, checksum, input_id, position, sequence } = row
  params.push(position, sequence, input_id, checksum, body)
}

const sized = (build: (size: number) => string) => {
  const texts = new Map<number, string>()
  return (size: number): string => {
    const found = texts.get(size)
    if (found !== undefined) return found
    const text = build(size)
    texts.set(size, text)
    return text
  }
}

const repeat = (text: string, size: number): string => Array.from({ length: size }, () => text).join(", ")

const small = 8

/** Parts of at most so many, of lengths that are few: a power of two, or small. */
const inParts = <A, E>(
  items: ReadonlyArray<A>,
  limit: number,
  run: (part: ReadonlyArray<A>) => Effect.Effect<unknown, E>
): Effect.Effect<unknown, E> => {
  if (items.length === 0) return Effect.void
  if (items.length <= Math.min(limit, small)) return run(items)
  return Effect.suspend(() => {
    let start = 0
    return Effect.whileLoop({
      while: () => start < items.length,
      body: () => {
        const left = items.length - start
        const size = left >= limit ? limit : left <= small ? left : 2 ** Math.floor(Math.log2(left))
        const part = items.slice(start, start + size)
        start += size
        return run(part)
      },
      step: () => {}
    })
  })
}
