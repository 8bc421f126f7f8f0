/**
 * An effect/sql `SqlClient` over Node's own SQLite: one connection, held by one fiber at a time, in WAL mode. It is a thin
 * bridge, so that a published client can take its place: nothing in Midcourse needs more than `SqlClient`. That it runs a
 * lone statement in the calling step saves a commit of one row a transaction and a fiber.
 *
 * A call to SQLite blocks the thread, and so does waiting for a lock that another process holds.
 *
 * @since 0.1.0
 */
import { Duration, Effect, Layer, Schedule, type Scope, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError, Statement } from "effect/sql"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import * as RunNow from "./RunNow.ts"

/**
 * Where the database is and how it is written. `synchronous: "FULL"` (the default) waits for the medium at every commit;
 * `"NORMAL"` may lose the newest commits, never their order, when the machine loses power. `busyTimeout` (5 seconds) bounds the
 * wait for another process's lock.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** A path, a `file:` URI, or `:memory:`. */
  readonly filename: string
  readonly synchronous?: "FULL" | "NORMAL" | undefined
  readonly busyTimeout?: Duration.Input | undefined
}

/**
 * Opens the database and closes it with the scope. Fails with the `SqlError` of whatever SQLite said: a locked database is a
 * `LockTimeoutError`, a path that cannot be opened a `ConnectionError`, and the cause carries SQLite's `errno`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const database = yield* open(options)
    const prepare = preparing(database)
    const read = reading(prepare)
    const connection = connect(prepare, read)
    // A closed one says so too, so that what is begun next fails.
    const isTransaction = () => !database.isOpen || database.isTransaction
    const semaphore = yield* Semaphore.make(1)
    const acquirers = SqlClient.makeSqliteAcquirers({
      connection: Effect.succeed(connection),
      semaphore,
      isTransaction
    })
    let isHeld = false
    const setHeld = (held: boolean) =>
      Effect.sync(() => {
        isHeld = held
      })
    const held = Effect.acquireRelease(setHeld(true), () => setHeld(false))
    const client = yield* SqlClient.make({
      ...acquirers,
      transactionAcquirer: Effect.tap(acquirers.transactionAcquirer, () => held),
      compiler: Statement.makeCompilerSqlite(),
      driver: "sqlite-node-builtin",
      // A transaction that began as a reader fails, instead of waiting, when it comes to write after another writer.
      beginTransaction: "BEGIN IMMEDIATE",
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      prepareTransactionControls: true,
      spanAttributes: [
        ["db.system.name", "sqlite"],
        ["db.namespace", options.filename]
      ]
    })
    return RunNow.offer(client, (sql, params) => {
      if (isHeld || isTransaction()) return "not now"
      try {
        read(sql, params, false)
        return "done"
      } catch (cause) {
        return failure("execute", cause)
      }
    })
  })

/** @category layers @since 0.1.0 */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

/**
 * Pages of the log before it is copied into the file, 16 MB. Most commits change pages that the one before changed too: the longer the
 * log, the fewer are copied.
 */
const checkpointPages = 4000

const open = (options: Options): Effect.Effect<DatabaseSync, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const busyTimeout = options.busyTimeout ?? Duration.seconds(5)
    const database = yield* Effect.acquireRelease(
      attempt(
        "connect",
        () =>
          new DatabaseSync(options.filename, {
            timeout: Duration.toMillis(busyTimeout),
            enableForeignKeyConstraints: false
          })
      ),
      (database) => Effect.sync(() => database.close())
    )
    yield* attempt("connect", () => database.exec(`PRAGMA synchronous = ${options.synchronous ?? "FULL"}`))
    yield* attempt("connect", () => database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`))
    // SQLite does not wait for the lock that a change of the journal mode needs.
    yield* Effect.retry(
      attempt("connect", () => writeAhead(database)),
      {
        while: ({ reason }) => reason._tag === "LockTimeoutError",
        schedule: Schedule.max([Schedule.spaced("20 millis"), Schedule.during(busyTimeout)])
      }
    )
    return database
  })

const writeAhead = (database: DatabaseSync): void => {
  const mode = database.prepare("PRAGMA journal_mode").get()
  if (mode?.["journal_mode"] !== "wal") database.exec("PRAGMA journal_mode = WAL")
}

type Prepare = (sql: string) => StatementSync

/** Runs one statement to its end, or throws. */
type Read = (sql: string, params: ReadonlyArray<unknown>, asBigInts: boolean) => Array<Record<string, unknown>>

const reading =
  (prepare: Prepare): Read =>
  (sql, params, asBigInts) => {
    const statement = prepare(sql)
    const values = params.map(encode)
    return asBigInts ? readingBigInts(statement, values) : statement.all(...values)
  }

const connect = (prepare: Prepare, read: Read): SqlConnection.Connection => {
  const rows = (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.withFiber<Array<Record<string, unknown>>, SqlError.SqlError>((fiber) => {
      try {
        return Effect.succeed(read(sql, params, fiber.getRef(SqlClient.SafeIntegers)))
      } catch (cause) {
        return Effect.fail(failure("execute", cause))
      }
    })
  const execute: SqlConnection.Connection["execute"] = (sql, params, transformRows) =>
    transformRows === undefined ? rows(sql, params) : Effect.map(rows(sql, params), transformRows)
  const values: SqlConnection.Connection["executeValues"] = (sql, params) =>
    Effect.map(rows(sql, params), (rows) => rows.map(Object.values))
  return {
    execute,
    executeUnprepared: execute,
    executeValues: values,
    executeValuesUnprepared: values,
    executeStream: (sql, params, transformRows) => Stream.fromIterableEffect(execute(sql, params, transformRows)),
    executeRaw: (sql, params) =>
      attempt("execute", () => {
        const statement = prepare(sql)
        // Reading as numbers, Node throws after the write if the last rowid does not fit one.
        statement.setReadBigInts(true)
        try {
          const { changes, lastInsertRowid } = statement.run(...params.map(encode))
          return { changes: narrow(changes), lastInsertRowid: narrow(lastInsertRowid) }
        } finally {
          statement.setReadBigInts(false)
        }
      })
  }
}

const readingBigInts = (statement: StatementSync, values: ReadonlyArray<SQLInputValue>) => {
  statement.setReadBigInts(true)
  try {
    return statement.all(...values)
  } finally {
    statement.setReadBigInts(false)
  }
}

/** How many statements stay prepared. */
const capacity = 200

const preparing = (database: DatabaseSync): Prepare => {
  const prepared = new Map<string, StatementSync>()
  return (sql) => {
    const found = prepared.get(sql)
    if (found !== undefined) return found
    const statement = database.prepare(sql)
    for (const oldest of prepared.keys()) {
      if (prepared.size < capacity) break
      prepared.delete(oldest)
    }
    prepared.set(sql, statement)
    return statement
  }
}

const encode = (value: unknown): SQLInputValue => {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return value
    case "boolean":
      return value ? 1 : 0
    case "undefined":
      return null
    default:
      if (value === null || value instanceof Uint8Array) return value
      if (value instanceof Date) return value.toISOString()
      throw new TypeError(`SQLite cannot hold ${String(value)}`)
  }
}

const narrow = (value: number | bigint): number | bigint =>
  typeof value === "bigint" && value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER
    ? Number(value)
    : value

const attempt = <A>(operation: string, run: () => A): Effect.Effect<A, SqlError.SqlError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (cause) {
      return Effect.fail(failure(operation, cause))
    }
  })

/** Node names SQLite's code `errcode`; effect/sql, like the published clients, looks for `errno`. */
const failure = (operation: string, cause: unknown): SqlError.SqlError => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const known =
    cause instanceof Error && "errcode" in cause ? Object.assign(cause, { errno: cause.errcode }) : { cause, message }
  return new SqlError.SqlError({ reason: SqlError.classifySqliteError(known, { message, operation }) })
}
