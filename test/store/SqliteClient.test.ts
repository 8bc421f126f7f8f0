import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlError } from "effect/sql"
import { writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as RunNow from "../../src/store/RunNow.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import { failureOf, temporary } from "./fixtures.ts"

const within = <A, E>(
  effect: Effect.Effect<A, E, SqlClient.SqlClient>,
  options: Partial<SqliteClient.Options> = {}
): Effect.Effect<A, E | SqlError.SqlError> =>
  Effect.provide(effect, SqliteClient.layer({ filename: ":memory:", busyTimeout: 0, ...options }), { local: true })

const table = Effect.tap(SqlClient.SqlClient, (sql) => sql`CREATE TABLE words (word TEXT UNIQUE)`)

const words = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly word: string }>`SELECT word FROM words ORDER BY word`
  return rows.map(({ word }) => word)
})

const add = (word: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql`INSERT INTO words VALUES (${word})`)

/** The reason's tag and what it says. */
const told = ({ message, reason }: SqlError.SqlError) => `${reason._tag}: ${message}`

describe("SqliteClient", () => {
  it.live("gives values back as they were", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE held (a, b, c, d, e, f, g)`
        const bytes = new Uint8Array([0, 1, 255])
        const date = new Date(0)
        yield* sql`INSERT INTO held VALUES (${1.5}, ${"é\u0000'"}, ${null}, ${undefined}, ${true}, ${bytes}, ${date})`
        const expected = [1.5, "é\u0000'", null, null, 1, bytes, "1970-01-01T00:00:00.000Z"]
        assert.deepStrictEqual(yield* sql`SELECT * FROM held`.values, [expected])
        const streamed = yield* Stream.runCollect(sql<{ readonly a: number }>`SELECT a FROM held`.stream)
        assert.deepStrictEqual(
          Array.from(streamed, ({ a }) => a),
          [1.5]
        )
      })
    )
  )

  it.live("reads integers beyond 2^53 when asked to, and survives a rowid beyond it", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE large (id INTEGER PRIMARY KEY)`
        const id = 2n ** 60n
        yield* sql.withTransaction(sql`INSERT INTO large VALUES (${id})`)
        assert.deepStrictEqual(yield* sql`INSERT INTO large VALUES (${id + 1n})`.raw, {
          changes: 1,
          lastInsertRowid: id + 1n
        })
        const read = sql`SELECT id FROM large`.values
        assert.deepStrictEqual(yield* Effect.provideService(read, SqlClient.SafeIntegers, true), [[id], [id + 1n]])
        assert.strictEqual((yield* failureOf(read)).reason._tag, "UnknownError")
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`.values, [[1]])
      })
    )
  )

  it.live("writes ahead, waits for the medium, and closes with its scope", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const settings = Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [mode = []] = yield* sql`PRAGMA journal_mode`.values
        const [synchronous = []] = yield* sql`PRAGMA synchronous`.values
        return { sql, settings: [mode[0], synchronous[0]] }
      })
      const full = yield* within(settings, { filename })
      assert.deepStrictEqual(full.settings, ["wal", 2])
      const normal = yield* within(settings, { filename, synchronous: "NORMAL" })
      assert.deepStrictEqual(normal.settings, ["wal", 1])
      assert.include((yield* failureOf(full.sql`SELECT 1`)).message, "not open")
    })
  )
})

describe("a transaction of SqliteClient", () => {
  it.live("is rolled back when it fails", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        yield* Effect.exit(sql.withTransaction(Effect.andThen(add("lost"), Effect.fail("no"))))
        yield* sql.withTransaction(add("kept"))
        assert.deepStrictEqual(yield* words, ["kept"])
      })
    )
  )

  it.live("keeps what a savepoint inside it does not", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        const inner = sql.withTransaction(Effect.andThen(add("lost"), Effect.fail("no")))
        const kept = sql.withTransaction(add("inner"))
        yield* sql.withTransaction(Effect.all([add("outer"), Effect.exit(inner), kept]))
        assert.deepStrictEqual(yield* words, ["inner", "outer"])
      })
    )
  )

  it.live("holds the connection: nobody else reads or writes in it", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        const begun = yield* Deferred.make<void>()
        const failed = yield* Deferred.make<void>()
        const transaction = yield* Effect.forkChild(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* add("lost")
              yield* Deferred.succeed(begun, undefined)
              yield* Deferred.await(failed)
              return yield* Effect.fail("no")
            })
          )
        )
        yield* Deferred.await(begun)
        const other = yield* Effect.forkChild(Effect.andThen(add("kept"), words), { startImmediately: true })
        yield* Deferred.succeed(failed, undefined)
        assert.isTrue(Exit.isFailure(yield* Fiber.await(transaction)))
        assert.deepStrictEqual(yield* Fiber.join(other), ["kept"])
      })
    )
  )

  it.live("whose COMMIT fails leaves the connection usable", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        yield* sql`PRAGMA foreign_keys = ON`
        yield* sql`CREATE TABLE wholes (id INTEGER PRIMARY KEY)`
        yield* sql`CREATE TABLE bound (id INTEGER REFERENCES wholes DEFERRABLE INITIALLY DEFERRED)`
        const error = yield* failureOf(sql.withTransaction(sql`INSERT INTO bound VALUES (7)`))
        assert.strictEqual(error.reason._tag, "ConstraintError")
        yield* sql.withTransaction(add("kept"))
        assert.deepStrictEqual(yield* sql`SELECT * FROM bound`, [])
      })
    )
  )
})

describe("a statement of SqliteClient by itself", () => {
  const opened = Effect.gen(function* () {
    const sql = yield* SqliteClient.make({ filename: ":memory:", busyTimeout: 0 })
    yield* sql`CREATE TABLE words (word TEXT UNIQUE)`
    const add = (word: string) => RunNow.of(sql)?.("INSERT INTO words VALUES (?)", [word])
    const words = Effect.map(sql`SELECT word FROM words`.values, (rows) => rows.flat())
    return { sql, add, words }
  })
  const client = Effect.provide(opened, Reactivity.layer)

  it.live("is run in the calling step, and its failure is typed", () =>
    Effect.gen(function* () {
      const { add, words } = yield* client
      const [first, again] = [add("kept"), add("kept")]
      assert.strictEqual(first, "done")
      assert.deepStrictEqual(yield* words, ["kept"])
      assert.strictEqual(typeof again === "object" && again.reason._tag, "UniqueViolation")
    })
  )

  it.live("is not run while somebody holds the connection, however that ends", () =>
    Effect.gen(function* () {
      const { add, sql, words } = yield* client
      const held = (holding: (use: Effect.Effect<void>) => Effect.Effect<unknown, unknown>) =>
        Effect.gen(function* () {
          const inside = yield* Deferred.make<unknown>()
          const use = Effect.andThen(
            Effect.suspend(() => Deferred.succeed(inside, add("lost"))),
            Effect.never
          )
          const holder = yield* Effect.forkChild(holding(use))
          assert.strictEqual(yield* Deferred.await(inside), "not now")
          const waiting = yield* Effect.forkChild(sql`SELECT 1`, { startImmediately: true })
          assert.strictEqual(add("lost"), "not now")
          yield* Fiber.interrupt(holder)
          yield* Fiber.join(waiting)
        })
      yield* held((use) => Effect.scoped(Effect.andThen(sql.reserve, use)))
      yield* held((use) => sql.withTransaction(use))
      assert.strictEqual(add("kept"), "done")
      assert.deepStrictEqual(yield* words, ["kept"])
    })
  )

  it.live("is not run inside a transaction that was begun by hand, nor once the client is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { add, sql, words } = yield* Scope.provide(client, scope)
      yield* sql`BEGIN`
      assert.strictEqual(add("lost"), "not now")
      yield* sql`COMMIT`
      assert.strictEqual(add("kept"), "done")
      assert.deepStrictEqual(yield* words, ["kept"])
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(add("lost"), "not now")
    })
  )
})

describe("a failure of SqliteClient is typed", () => {
  it.live("a lock that another connection holds", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* within(
        Effect.gen(function* () {
          yield* table
          const holder = new DatabaseSync(filename)
          holder.exec("BEGIN IMMEDIATE")
          const error = yield* failureOf(add("a"))
          holder.close()
          assert.strictEqual(told(error), "LockTimeoutError: database is locked")
          yield* add("a")
        }),
        { filename }
      )
    })
  )

  it.live("a read-only file", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* within(table, { filename })
      const error = yield* failureOf(within(add("a"), { filename: `file:${filename}?mode=ro` }))
      assert.strictEqual(told(error), "UnknownError: attempt to write a readonly database")
    })
  )

  it.live("a full disk", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        yield* sql`PRAGMA max_page_count = 5`
        const error = yield* failureOf(add("x".repeat(100_000)))
        assert.strictEqual(told(error), "UnknownError: database or disk is full")
      })
    )
  )

  it.live("a file that is no database", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      writeFileSync(filename, "no database ".repeat(1000))
      assert.strictEqual(told(yield* failureOf(within(words, { filename }))), "UnknownError: file is not a database")
    })
  )

  it.live("a path that cannot be opened", () =>
    Effect.gen(function* () {
      const filename = `${yield* temporary}/missing/journal.db`
      assert.strictEqual((yield* failureOf(within(words, { filename }))).reason._tag, "ConnectionError")
    })
  )

  it.live("a word that is there, a statement that is none, a value that it cannot hold", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* table
        yield* add("a")
        assert.strictEqual((yield* failureOf(add("a"))).reason._tag, "UniqueViolation")
        assert.include((yield* failureOf(sql`SELEKT 1`)).message, "syntax error")
        assert.include((yield* failureOf(sql`SELECT ${{ a: 1 }}`)).message, "cannot hold")
      })
    )
  )
})
