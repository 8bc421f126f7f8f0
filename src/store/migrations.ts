/**
 * The tables of a journal, and the steps that lead to them, run by effect/sql's own `Migrator`. A database that is ahead of this
 * version is refused and left untouched (L-R5); one that is up to date is only read, so that it may be read-only or busy.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { StoreError } from "../ledger/SessionStore.ts"
import * as SqlFailure from "./SqlFailure.ts"

/** Where the migrator keeps which steps were taken. */
const table = "midcourse_migrations"

/** The newest step this version knows. */
const supported = 1

/**
 * Brings the tables up to this version. Fails `TooNew` if they are ahead of it.
 *
 * @category migrations
 * @since 0.1.0
 */
export const run: Effect.Effect<void, StoreError, SqlClient.SqlClient> = Effect.gen(function* () {
  const installed = yield* step
  if (installed > supported) {
    return yield* new StoreError({ reason: { _tag: "TooNew", format: installed, supported } })
  }
  if (installed < supported) yield* migrate
}).pipe(
  Effect.catchTags({
    SqlError: (error) => Effect.fail(SqlFailure.certain(error)),
    MigrationError: ({ cause, message }) =>
      Effect.fail(
        SqlError.isSqlError(cause)
          ? SqlFailure.certain(cause)
          : new StoreError({ reason: { _tag: "Unavailable", detail: message } })
      )
  })
)

const step = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql.onDialectOrElse({
    pg: () => sql`SELECT 1 AS found WHERE to_regclass(${table}) IS NOT NULL`.withoutTransform,
    orElse: () => sql`SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ${table}`.withoutTransform
  })
  if (found.length === 0) return 0
  const [newest] = yield* sql<{ readonly step: number | null }>`
    SELECT MAX(migration_id) AS step FROM ${sql(table)}`.withoutTransform
  return newest?.step ?? 0
})

/** A row that is added moves the end of its session's journal, and never back. */
const createMove = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const steps = sql.onDialectOrElse({
    // One statement for all rows of one: a trigger for each costs a plan's run for each.
    pg: () => [
      `CREATE FUNCTION midcourse_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE midcourse_sessions s SET position = a.position, sequence = COALESCE(a.sequence, s.sequence)
          FROM (SELECT session, MAX(position) AS position, MAX(sequence) AS sequence FROM added GROUP BY session) a
          WHERE s.number = a.session AND s.position < a.position;
        RETURN NULL;
      END $$`,
      `CREATE TRIGGER midcourse_move AFTER INSERT ON midcourse_commits REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION midcourse_move()`
    ],
    orElse: () => [
      `CREATE TRIGGER midcourse_move AFTER INSERT ON midcourse_commits BEGIN
        UPDATE midcourse_sessions SET position = NEW.position, sequence = COALESCE(NEW.sequence, sequence)
          WHERE number = NEW.session AND position < NEW.position;
      END`
    ]
  })
  for (const step of steps) yield* sql.unsafe(step)
})

const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const key = sql.onDialectOrElse({
    pg: () => "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    orElse: () => "INTEGER PRIMARY KEY"
  })
  yield* sql.unsafe(`CREATE TABLE midcourse_sessions (
    number ${key},
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    position INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    format INTEGER NOT NULL
  )`)
  // No index by sequence: on SQLite it costs every commit a page, and the one by position finds it nearly as fast.
  yield* sql.unsafe(`CREATE TABLE midcourse_commits (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    sequence INTEGER,
    input_id TEXT,
    checksum TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, position)
  )`)
  yield* sql.unsafe(`CREATE INDEX midcourse_commits_input
    ON midcourse_commits (session, input_id) WHERE input_id IS NOT NULL`)
  yield* createMove
  yield* sql.unsafe(`CREATE TABLE midcourse_snapshots (
    session INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    body TEXT NOT NULL
  )`)
  // The highest epoch of a session that was forgotten: one that is made again begins after it.
  yield* sql.unsafe("CREATE TABLE midcourse_forgotten (epoch INTEGER NOT NULL)")
  yield* sql.unsafe("INSERT INTO midcourse_forgotten (epoch) VALUES (0)")
})

const migrate = Migrator.make({})({ table, loader: Migrator.fromRecord({ "1_create_tables": createTables }) })
