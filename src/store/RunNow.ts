/**
 * What a client of SQLite in this process can do beyond effect/sql: run a statement without a fiber and without a transaction around it.
 *
 * @since 0.1.0
 */
import type { SqlClient, SqlError } from "effect/sql"

/**
 * Runs one statement by itself, in the calling step. "not now", and nothing was done, if the connection is held, closed, or has a transaction
 * open on it, whoever began one.
 *
 * @category models
 * @since 0.1.0
 */
export type RunNow = (text: string, params: ReadonlyArray<unknown>) => "done" | "not now" | SqlError.SqlError

const known = new WeakMap<SqlClient.SqlClient, RunNow>()

/**
 * Says how this client does it. A client that wraps it does not: its statements are its own.
 *
 * @category registry
 * @since 0.1.0
 */
export const offer = (client: SqlClient.SqlClient, runNow: RunNow): SqlClient.SqlClient => {
  known.set(client, runNow)
  return client
}

/**
 * Absent of a client that did not say.
 *
 * @category registry
 * @since 0.1.0
 */
export const of = (client: SqlClient.SqlClient): RunNow | undefined => known.get(client)
