/** Journals in temporary files, and clients that count or fail. */
import { Effect, Exit, Layer, type Scope } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type * as Ids from "../../src/domain/Ids.ts"
import type { Append, SessionStore, StoredEntry, StoreError } from "../../src/ledger/SessionStore.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import { intercepted } from "../support/commits.ts"

export const sessionId = (id: string): Ids.SessionId => id as Ids.SessionId

export const event = (position: number): StoredEntry => ({
  position,
  sequence: position,
  kind: "input.accepted",
  inputId: null,
  body: { at: position }
})

/** One event at a position. */
export const commit = (id: Ids.SessionId, epoch: number, position: number, body?: string): Append => ({
  sessionId: id,
  epoch,
  expected: position - 1,
  entries: [body === undefined ? event(position) : { ...event(position), body }],
  snapshot: undefined
})

/** The path of a database in a folder that is removed with the scope. */
export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "midcourse-store-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "journal.db")
)

/** A store over a SQLite file, and its client; a locked database is not waited for. */
export const sqlite = (
  filename: string
): Layer.Layer<SessionStore | SqlClient.SqlClient, StoreError | SqlError.SqlError> =>
  SqlSessionStore.layer.pipe(Layer.provideMerge(SqliteClient.layer({ filename, busyTimeout: 0 })))

/** Runs what uses the store, and closes it. */
export const using =
  <E2>(layer: Layer.Layer<SessionStore | SqlClient.SqlClient, E2>) =>
  <A, E>(effect: Effect.Effect<A, E, SessionStore | SqlClient.SqlClient>): Effect.Effect<A, E | E2> =>
    Effect.provide(effect, layer, { local: true })

export interface Watch {
  /** Statements on reserved connections, and those that were run by themselves, in order. */
  readonly statements: Array<string>
  /** How many of them committed. */
  commits: number
  /** What happens instead of one that commits. */
  onCommit:
    | ((commit: Effect.Effect<unknown, SqlError.SqlError>) => Effect.Effect<unknown, SqlError.SqlError>)
    | undefined
}

/** The client, watched where transactions are run. */
export const watched = (watch: Watch, client: Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>) =>
  intercepted(client, (statement, run, commits) => {
    watch.statements.push(statement)
    if (commits) watch.commits++
    return commits && watch.onCommit !== undefined ? Effect.as(watch.onCommit(run), []) : run
  })

export const lost = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("reset"), message: "the connection was reset" })
})

/** What a driver says that names no cause. */
export const unnamed = (message: string) =>
  new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: new Error(message), message }) })

/** The failure of an effect that must fail. */
export const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.flatMap(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return Effect.die(new Error("it succeeded"))
    const [reason] = exit.cause.reasons
    return reason?._tag === "Fail" ? Effect.succeed(reason.error) : Effect.die(new Error(String(exit.cause)))
  })
