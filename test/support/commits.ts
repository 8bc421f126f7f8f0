/** Clients with something between them and the statements that a store writes by. */
import { Cause, Effect, Exit, Layer } from "effect"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"
import * as RunNow from "../../src/store/RunNow.ts"

type Run = ReturnType<SqlConnection.Connection["execute"]>

/** The client, with its reserved connections changed, and what runs a statement by itself: without `changeNow` it has none. */
export const changed = (
  client: Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>,
  change: (connection: SqlConnection.Connection) => SqlConnection.Connection,
  changeNow?: (runNow: RunNow.RunNow) => RunNow.RunNow
) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const reserve = Effect.map(sql.reserve, change)
      const own = new Proxy(sql, {
        get: (target, key): unknown => (key === "reserve" ? reserve : Reflect.get(target, key))
      })
      const runNow = RunNow.of(sql)
      return runNow === undefined || changeNow === undefined ? own : RunNow.offer(own, changeNow(runNow))
    })
  ).pipe(Layer.provide(client))

/**
 * The client, with `meet` in place of each statement on a reserved connection or by itself; `run` is the statement's own run, and `commits`
 * whether what was written is there for good when it has run: by a COMMIT, or by a statement outside a transaction. Of a statement by itself
 * it is run in the calling step.
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
      if (runNow("SELECT 1", []) === "not now") return "not now"
      const run = Effect.suspend(() => {
        const done = runNow(statement, params)
        return typeof done === "string" ? Effect.succeed([]) : Effect.fail(done)
      })
      const exit = Effect.runSyncExit(meet(statement, run, true))
      if (Exit.isSuccess(exit)) return "done"
      const error = Cause.findErrorOption(exit.cause)
      if (error._tag === "None") throw Cause.squash(exit.cause)
      return error.value
    }
  )
