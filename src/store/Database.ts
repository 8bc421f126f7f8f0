/**
 * The two dialects as one: statements with `?` for their parameters, and a transaction that knows how far it came when it failed,
 * so that "certainly not written" and "cannot be told" are never confused (L-A7).
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { SqlClient, SqlConnection, SqlError } from "effect/sql"
import type { StoreError } from "../ledger/SessionStore.ts"
import * as RunNow from "./RunNow.ts"
import * as SqlFailure from "./SqlFailure.ts"

/** @category models @since 0.1.0 */
export type Dialect = "sqlite" | "pg"

/**
 * Runs one prepared statement on the connection at hand. The rows are as the driver gives them, untransformed.
 *
 * @category models
 * @since 0.1.0
 */
export type Query = <Row extends object>(
  text: string,
  params: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>

/**
 * What is done inside a transaction; when it fails, nothing was done.
 *
 * @category models
 * @since 0.1.0
 */
export type Body<A> = (query: Query) => Effect.Effect<A, StoreError | SqlError.SqlError>

/** @category models @since 0.1.0 */
export interface Database {
  readonly dialect: Dialect
  /** One statement that reads. */
  readonly read: <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, StoreError>
  readonly transact: <A>(body: Body<A>) => Effect.Effect<A, StoreError>
  readonly runNow: RunNow.RunNow | undefined
}

/**
 * Transactions are begun and ended here, on a reserved connection, and not by `withTransaction`: a journal must know whether it was
 * COMMIT that failed, and a commit must cost little more than the database takes for it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (sql: SqlClient.SqlClient, dialect: Dialect): Database => {
  const place = dialect === "sqlite" ? (text: string) => text : numbering()
  const begin = beginOf(dialect)
  // A transaction that could not be ended is ended first by whoever comes next: what it holds is not in the database.
  let stuck = false
  const end = (connection: SqlConnection.Connection) =>
    Effect.matchEffect(control(connection, "ROLLBACK"), {
      onSuccess: () => {
        stuck = false
        return Effect.void
      },
      onFailure: (error) => {
        // SQLite has ended by itself what it could not commit.
        stuck = !SqlFailure.isOfNone(error)
        return stuck ? Effect.fail(error) : Effect.void
      }
    })
  const freed = Effect.suspend(() => (stuck ? Effect.scoped(Effect.flatMap(sql.reserve, end)) : Effect.void))
  const queryOn =
    (connection: SqlConnection.Connection): Query =>
    (text, params) =>
      connection.execute(place(text), params, undefined)
  const attempt = <A>(body: Body<A>): Effect.Effect<A, StoreError | NotBegun> =>
    Effect.uninterruptibleMask((restore) => {
      const begun = Effect.flatMap(restore(sql.reserve), (connection) => {
        const first = control(connection, begin)
        return Effect.as(stuck ? Effect.andThen(end(connection), first) : first, connection)
      })
      return Effect.scoped(
        Effect.flatMap(Effect.mapError(begun, notBegun), (connection) =>
          Effect.mapError(restore(body(queryOn(connection))), asStoreError).pipe(
            Effect.tap(() => Effect.mapError(control(connection, "COMMIT"), SqlFailure.uncertain)),
            Effect.onError(() => Effect.ignoreCause(end(connection)))
          )
        )
      )
    })
  const transact: Database["transact"] = (body) =>
    Effect.catch(attempt(body), (stopped) => {
      if (stopped._tag !== "NotBegun") return Effect.fail(stopped)
      return isStale(stopped.error) ? Effect.mapError(attempt(body), told) : Effect.fail(told(stopped))
    })
  return {
    dialect,
    read: (text, params) => {
      const rows = Effect.andThen(freed, sql.unsafe<never>(place(text), params).withoutTransform)
      return Effect.mapError(
        Effect.catchIf(rows, isStale, () => rows),
        SqlFailure.certain
      )
    },
    transact,
    runNow: RunNow.of(sql)
  }
}

interface NotBegun {
  readonly _tag: "NotBegun"
  readonly error: SqlError.SqlError
}

const notBegun = (error: SqlError.SqlError): NotBegun => ({ _tag: "NotBegun", error })

const told = (stopped: StoreError | NotBegun): StoreError =>
  stopped._tag === "NotBegun" ? SqlFailure.certain(stopped.error) : stopped

const asStoreError = (error: StoreError | SqlError.SqlError): StoreError =>
  error._tag === "SqlError" ? SqlFailure.certain(error) : error

const control = (connection: SqlConnection.Connection, statement: string) =>
  connection.execute(statement, [], undefined)

/**
 * SQLite's transaction must be a writer from the start; PostgreSQL's must see, after a lock, what the one before it wrote.
 *
 * @category getters
 * @since 0.1.0
 */
export const beginOf = (dialect: Dialect): string => {
  switch (dialect) {
    case "sqlite":
      return "BEGIN IMMEDIATE"
    case "pg":
      return "BEGIN ISOLATION LEVEL READ COMMITTED"
  }
}

/** A pooled connection that was lost while nobody used it: a new one is to be had. */
const isStale = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" && reason.operation !== "connect"

const numbering = () => {
  const numbered = new Map<string, string>()
  return (text: string): string => {
    const found = numbered.get(text)
    if (found !== undefined) return found
    let count = 0
    const made = text.replaceAll("?", () => `$${++count}`)
    numbered.set(text, made)
    return made
  }
}
