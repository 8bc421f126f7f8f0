/**
 * The statements that many rows share. Their texts come in few sizes, so that each is prepared once.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { StoredSnapshot } from "../ledger/SessionStore.ts"
import type { Head, Plan } from "./CommitGroup.ts"
import type { Dialect, Query } from "./Database.ts"

/** Rows of one statement, at most; a power of two. */
const rowLimit = 256

/** @category models @since 0.1.0 */
export interface Statements {
  /** The rows of these sessions, held until the transaction ends, in an order that is the same for everyone. */
  readonly lock: (query: Query, ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Head>, SqlError.SqlError>
  readonly insert: (query: Query, entries: Plan["entries"]) => Effect.Effect<void, SqlError.SqlError>
  /** Writes where the journals end now. */
  readonly move: (query: Query, heads: Plan["heads"]) => Effect.Effect<void, SqlError.SqlError>
  readonly snapshot: (query: Query, session: number, snapshot: StoredSnapshot) => Effect.Effect<void, SqlError.SqlError>
}

/** @category constructors @since 0.1.0 */
export const make = (dialect: Dialect): Statements => {
  const lock = sized((size) => {
    const select = `SELECT number, id, epoch, position, sequence, format FROM midcourse_sessions
      WHERE id IN (${repeat("?", size)})`
    return dialect === "pg" ? `${select} ORDER BY number FOR UPDATE` : select
  })
  const insert = sized(
    (size) => `INSERT INTO midcourse_entries (session, position, sequence, kind, input_id, checksum, body)
      VALUES ${repeat("(?, ?, ?, ?, ?, ?, ?)", size)}`
  )
  const move = sized((size) =>
    size === 1
      ? "UPDATE midcourse_sessions SET position = ?, sequence = ? WHERE number = ?"
      : `UPDATE midcourse_sessions SET position = v.column1, sequence = v.column2
      FROM (VALUES ${repeat("(CAST(? AS INTEGER), CAST(? AS INTEGER), CAST(? AS INTEGER))", size)}) AS v
      WHERE number = v.column3`
  )
  const snapshot = `INSERT INTO midcourse_snapshots (session, position, checksum, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET
      position = excluded.position, checksum = excluded.checksum, body = excluded.body`
  return {
    lock: (query, ids) => {
      const size = 2 ** Math.ceil(Math.log2(ids.length))
      const params = size === ids.length ? ids : Array.from({ length: size }, (_, index) => ids[index % ids.length])
      return query<Head>(lock(size), params)
    },
    insert: (query, entries) =>
      inParts(entries, (part) => {
        const params: Array<unknown> = []
        for (const { entry, session } of part) {
          const { body, checksum, inputId, kind, position, sequence } = entry
          params.push(session, position, sequence, kind, inputId, checksum, body)
        }
        return query(insert(part.length), params)
      }),
    move: (query, heads) =>
      inParts(heads, (part) => {
        const params: Array<unknown> = []
        for (const { number, position, sequence } of part) params.push(position, sequence, number)
        return query(move(part.length), params)
      }),
    snapshot: (query, session, { body, checksum, position }) =>
      Effect.asVoid(query(snapshot, [session, position, checksum, body]))
  }
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

/** Parts whose lengths are powers of two. */
const inParts = <A, E>(
  items: ReadonlyArray<A>,
  run: (part: ReadonlyArray<A>) => Effect.Effect<unknown, E>
): Effect.Effect<void, E> => {
  if (items.length === 0) return Effect.void
  const size = items.length >= rowLimit ? rowLimit : 2 ** Math.floor(Math.log2(items.length))
  if (size === items.length) return Effect.asVoid(run(items))
  return Effect.flatMap(run(items.slice(0, size)), () => inParts(items.slice(size), run))
}
