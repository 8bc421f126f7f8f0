/** Clients with something between them and the statements of their transactions. */
import { Effect, Layer, Predicate } from "effect"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"
import type { InProcessClient, RunNow } from "../../src/store/Database.ts"

type Run = ReturnType<SqlConnection.Connection["execute"]>

const isInProcess = (sql: SqlClient.SqlClient): sql is InProcessClient => Predicate.hasProperty(sql, "runNow")

/** The client, with its reserved connections changed, and what runs a statement by itself: without `changeNow` it has none. */
export const changed = (
  client: Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>,
  change: (connection: SqlConnection.Connection) => SqlConnection.Connection,
  changeNow?: (runNow: RunNow) => RunNow
) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const reserve = Effect.map(sql.reserve, change)
      const runNow = isInProcess(sql) ? changeNow?.(sql.runNow) : undefined
      return new Proxy(sql, {
        get: (target, key): unknown =>
          key === "reserve" ? reserve : key === "runNow" ? runNow : Reflect.get(target, key)
      })
    })
  ).pipe(Layer.provide(client))

/**
 * The client, with `meet` in place of each statement on a reserved connection or by itself; `run` is the statement's own run, and `commits`
 * whether what was written is there for good when it has run: by a COMMIT, or by a statement outside a transaction.
 */
export const intercepted = (
  client: Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>,
  meet: (statement: string, run: Run, commits: boolean) => Run
) =>
  changed(
    client,
    (connection) => {
      let isOpen = false
      return {
        ...connection,
        execute: (statement, params, transform) =>
          Effect.suspend(() => {
            const commits = statement === "COMMIT" || (!isOpen && statement.includes("INSERT INTO"))
            isOpen = statement.startsWith("BEGIN") || (isOpen && statement !== "COMMIT" && statement !== "ROLLBACK")
            return meet(
              statement,
              Effect.suspend(() => connection.execute(statement, params, transform)),
              commits
            )
          })
      }
    },
    (runNow) => (statement, params) => {
      let isFree = true
      const run = Effect.suspend(() => {
        const exit = runNow(statement, params)
        isFree = exit !== undefined
        return exit ?? Effect.succeed([])
      })
      const exit = Effect.runSyncExit(meet(statement, run, true))
      return isFree ? exit : undefined
    }
  )
