/** Clients with something between them and the statements of their transactions. */
import { Effect, Layer } from "effect"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"

type Run = ReturnType<SqlConnection.Connection["execute"]>

/** The client, with `meet` in place of each statement on a reserved connection; `run` is the statement's own run. */
export const intercepted = (
  client: Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>,
  meet: (statement: string, run: Run) => Run
) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const reserve = Effect.map(sql.reserve, (connection): SqlConnection.Connection => ({
        ...connection,
        execute: (statement, params, transform) =>
          Effect.suspend(() =>
            meet(
              statement,
              Effect.suspend(() => connection.execute(statement, params, transform))
            )
          )
      }))
      return new Proxy(sql, {
        get: (target, key): unknown => (key === "reserve" ? reserve : Reflect.get(target, key))
      })
    })
  ).pipe(Layer.provide(client))
