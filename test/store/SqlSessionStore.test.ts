import { assert, describe, it, layer } from "@effect/vitest"
import { Cause, Clock, Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { truncateSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import {
  layerMemory,
  SessionStore,
  type StoredEntry,
  type StoreError,
  type StoreErrorReason
} from "../../src/ledger/SessionStore.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import { SessionStoreSuite } from "../../src/testing/index.ts"
import { changed, intercepted } from "../support/commits.ts"
import {
  commit,
  event,
  failureOf,
  lost,
  sessionId,
  sqlite,
  temporary,
  unnamed,
  using,
  type Watch,
  watched
} from "./fixtures.ts"
import { owner } from "./processes.ts"

const inFile = Layer.unwrap(Effect.map(temporary, sqlite))

describe("the contract of a SessionStore", () => {
  const stores = { memory: layerMemory, "SQLite in memory": sqlite(":memory:"), "SQLite in a file": inFile }
  for (const [name, store] of Object.entries<Layer.Layer<SessionStore, unknown>>(stores)) {
    layer(store, { excludeTestServices: true })(name, (it) => {
      for (const { name, run } of SessionStoreSuite.cases) it.effect(name, () => run)
    })
  }
})

const id = sessionId("ses_1")
const other = sessionId("ses_2")

/** A journal of one event. */
const begun = Effect.gen(function* () {
  const store = yield* SessionStore
  const { epoch } = yield* store.claim(id, "agent")
  yield* store.append(commit(id, epoch, 1))
  return { store, epoch, sql: yield* SqlClient.SqlClient }
})

const reasonOf = <A, R>(effect: Effect.Effect<A, StoreError, R>): Effect.Effect<StoreErrorReason, never, R> =>
  Effect.map(failureOf(effect), ({ reason }) => reason)

const says = (reason: StoreErrorReason, tag: StoreErrorReason["_tag"], words: string) => {
  assert.strictEqual(reason._tag, tag)
  assert.include("detail" in reason ? reason.detail : "", words)
}

/** By hand, past the store. */
const byHand = (filename: string, statements: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new DatabaseSync(filename)),
    (database) => Effect.sync(() => database.exec(statements)),
    (database) => Effect.sync(() => database.close())
  )

describe("a journal in a SQLite file", () => {
  it.live("outlives the process that wrote it (L-I3)", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const first = yield* begun.pipe(using(sqlite(filename)))
      const second = yield* Effect.flatMap(SessionStore, (store) => store.claim(id, "agent")).pipe(
        using(sqlite(filename))
      )
      assert.deepStrictEqual(second.entries, [event(1)])
      assert.isAbove(second.epoch, first.epoch)
    })
  )

  it.live("of two processes only the newer owner writes (L-R4)", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const first = yield* owner("sqlite", filename, "shared")
      assert.strictEqual(yield* first.says, "claimed 1 at 0")
      assert.strictEqual(yield* first.append, "written")
      const second = yield* owner("sqlite", filename, "shared")
      assert.strictEqual(yield* second.says, "claimed 2 at 1")
      assert.strictEqual(yield* first.append, "Fenced")
      assert.strictEqual(yield* second.append, "written")
      assert.strictEqual(yield* first.append, "Fenced")
    })
  )

  it.live("holds what was written when its owner's process is killed (L-I3)", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const killed = yield* owner("sqlite", filename, id)
      yield* killed.says
      assert.strictEqual(yield* killed.append, "written")
      assert.strictEqual(yield* killed.append, "written")
      yield* killed.kill
      const next = yield* Effect.flatMap(SessionStore, (store) => store.claim(id, "agent")).pipe(
        using(sqlite(filename))
      )
      assert.deepStrictEqual([next.epoch, next.position, next.entries.length], [2, 2, 2])
    })
  )

  it.live("two processes that make it at once both get it", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const owners = yield* Effect.all([owner("sqlite", filename, "a"), owner("sqlite", filename, "b")])
      const said = yield* Effect.forEach(owners, ({ says }) => says, { concurrency: "unbounded" })
      assert.deepStrictEqual(said, ["claimed 1 at 0", "claimed 1 at 0"])
      const written = yield* Effect.forEach(owners, ({ append }) => append, { concurrency: "unbounded" })
      assert.deepStrictEqual(written, ["written", "written"])
    })
  )
})

describe("commits that are handed in together", () => {
  const grouped = Effect.gen(function* () {
    const watch: Watch = { statements: [], commits: 0, onCommit: undefined }
    const client = watched(watch, SqliteClient.layer({ filename: ":memory:" }))
    const services = yield* Layer.build(SqlSessionStore.layer.pipe(Layer.provideMerge(client)))
    const ids = Array.from({ length: 50 }, (_, n) => sessionId(`ses_${n}`))
    const store = yield* Effect.provide(SessionStore, services)
    yield* Effect.forEach(ids, (id) => store.claim(id, "agent"))
    watch.statements.length = 0
    watch.commits = 0
    return { ids, store, watch, sql: yield* Effect.provide(SqlClient.SqlClient, services) }
  })

  it.live("share one transaction, whichever sessions they are of", () =>
    Effect.gen(function* () {
      const { ids, store, watch } = yield* grouped
      yield* Effect.forEach(ids, (id) => store.append(commit(id, 1, 1)), { concurrency: "unbounded" })
      assert.strictEqual(watch.commits, 1)
      // BEGIN and COMMIT; each commit is checked by its own statement.
      assert.strictEqual(watch.statements.length, ids.length + 2)
    })
  )

  it.live("one by one have a transaction each, of one statement", () =>
    Effect.gen(function* () {
      const { ids, store, watch } = yield* grouped
      yield* Effect.forEach(ids, (id) => store.append(commit(id, 1, 1)))
      assert.strictEqual(watch.commits, ids.length)
      assert.strictEqual(watch.statements.length, ids.length)
    })
  )

  it.live("of more than one statement have a transaction around them", () =>
    Effect.gen(function* () {
      const { ids, store, watch } = yield* grouped
      const [first = id, second = id] = ids
      const input = (position: number): StoredEntry => ({
        ...event(position),
        sequence: null,
        inputId: `in_${position}`
      })
      yield* store.append({ ...commit(first, 1, 1), entries: [input(1), input(2)] })
      assert.strictEqual(watch.commits, 1)
      assert.strictEqual(watch.statements.length, 4)
      yield* store.append({ ...commit(second, 1, 1), snapshot: { position: 0, checksum: "", body: "" } })
      assert.strictEqual(watch.commits, 2)
    })
  )

  it.live("are told apart by a client that names no cause and runs nothing by itself", () =>
    Effect.gen(function* () {
      const dumb = changed(SqliteClient.layer({ filename: ":memory:" }), (connection) => ({
        ...connection,
        execute: (statement, params, transform) =>
          Effect.mapError(connection.execute(statement, params, transform), ({ message }) => unnamed(message))
      }))
      const context = yield* Layer.build(SqlSessionStore.layer.pipe(Layer.provide(dumb)))
      const store = Context.get(context, SessionStore)
      const [first, second, third] = [sessionId("ses_1"), sessionId("ses_2"), sessionId("ses_3")] as const
      for (const each of [first, second, third]) yield* store.claim(each, "agent")
      const exits = yield* Effect.forEach(
        [commit(first, 1, 1), commit(second, 1, 4), commit(third, 1, 1)],
        (each) => Effect.exit(store.append(each)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true])
      assert.strictEqual((yield* reasonOf(store.append(commit(second, 1, 4))))._tag, "Conflict")
    })
  )

  it.live("wait while somebody else holds the connection, alone too", () =>
    Effect.gen(function* () {
      const { ids, sql, store } = yield* grouped
      const [first = id] = ids
      const holder = yield* Scope.make()
      yield* Scope.provide(sql.reserve, holder)
      const waiting = yield* Effect.forkChild(store.append(commit(first, 1, 1)), { startImmediately: true })
      for (let turn = 0; turn < 5; turn++) yield* Effect.sleep(0)
      assert.isUndefined(waiting.pollUnsafe())
      yield* Scope.close(holder, Exit.void)
      yield* Fiber.join(waiting)
      assert.strictEqual((yield* store.position(first)).position, 1)
    })
  )

  it.live("with snapshots of one session leave the last, whichever way they are written", () =>
    Effect.gen(function* () {
      const { ids, store } = yield* grouped
      const [first = id, second = id] = ids
      const snapshot = (position: number) => ({ position, checksum: "", body: `${position}` })
      const two = [
        { ...commit(first, 1, 1), snapshot: snapshot(0) },
        { ...commit(first, 1, 2), snapshot: snapshot(1) }
      ]
      yield* Effect.forEach([...two, commit(second, 1, 9)], (each) => Effect.exit(store.append(each)), {
        concurrency: "unbounded"
      })
      assert.strictEqual((yield* store.claim(first, "agent")).snapshot?.position, 1)
      const more = [
        { ...commit(first, 2, 3), snapshot: snapshot(2) },
        { ...commit(first, 2, 4), snapshot: snapshot(3) }
      ]
      yield* Effect.forEach(more, store.append, { concurrency: "unbounded" })
      assert.strictEqual((yield* store.claim(first, "agent")).snapshot?.position, 3)
    })
  )

  it.live("one after the other leave the thread to others when they had it for some time", () =>
    Effect.gen(function* () {
      let millis = 0
      const clock = Object.create(yield* Clock.Clock, {
        monotonicTimeNanosUnsafe: { value: () => BigInt(millis) * 1_000_000n }
      })
      const context = yield* Effect.provideService(Layer.build(sqlite(":memory:")), Clock.Clock, clock)
      const store = Context.get(context, SessionStore)
      const { epoch } = yield* store.claim(id, "agent")
      const count = 100
      let turns = 0
      let waiting: NodeJS.Immediate | undefined
      const turn = () => {
        turns++
        waiting = setImmediate(turn)
      }
      turn()
      for (let position = 1; position <= count; position++) {
        yield* store.append(commit(id, epoch, position))
        millis++
      }
      clearImmediate(waiting)
      assert.isAtLeast(turns, count / 5)
      assert.isAtMost(turns, count / 2)
    })
  )

  it.live("are written alone when one of them cannot be", () =>
    Effect.gen(function* () {
      const { ids, sql, store, watch } = yield* grouped
      yield* sql`INSERT INTO midcourse_commits (session, position, sequence, checksum, body)
        SELECT number, 1, 1, '0', '' FROM midcourse_sessions WHERE id = 'ses_7'`
      yield* sql`UPDATE midcourse_sessions SET position = 0 WHERE id = 'ses_7'`
      const exits = yield* Effect.forEach(ids, (id) => Effect.exit(store.append(commit(id, 1, 1))), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        ids.filter((_, index) => Exit.isFailure(exits[index] ?? Exit.void)),
        ["ses_7"]
      )
      assert.strictEqual(watch.commits, ids.length - 1)
    })
  )

  it.live("are written when their caller is interrupted (L-A7)", () =>
    Effect.gen(function* () {
      const { ids, store } = yield* grouped
      const [first = id, second = id] = ids
      const caller = yield* Effect.forkChild(store.append(commit(first, 1, 1)), { startImmediately: true })
      yield* Fiber.interrupt(caller)
      yield* store.append(commit(second, 1, 1))
      assert.strictEqual((yield* store.position(first)).position, 1)
    })
  )

  it.live("are answered with the defect of a client that throws", () =>
    Effect.gen(function* () {
      const broken = changed(
        SqliteClient.layer({ filename: ":memory:" }),
        (connection) => connection,
        () => () => {
          throw new Error("broken")
        }
      )
      const context = yield* Layer.build(SqlSessionStore.layer.pipe(Layer.provide(broken)))
      const store = Context.get(context, SessionStore)
      yield* store.claim(id, "agent")
      const exits = [
        yield* Effect.exit(store.append(commit(id, 1, 1))),
        yield* Effect.exit(store.append(commit(id, 1, 1)))
      ]
      for (const exit of exits) assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    })
  )

  it.live("with a gap are a defect, and nothing is written", () =>
    Effect.gen(function* () {
      const { store } = yield* grouped
      const wrong = { ...commit(sessionId("ses_0"), 1, 1), expected: 1 }
      const exit = yield* Effect.exit(store.append(wrong))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      assert.strictEqual((yield* store.position(sessionId("ses_0"))).position, 0)
    })
  )

  it.live("are written before the store closes, and refused after", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const scope = yield* Scope.make()
      const { epoch, store } = yield* Layer.buildWithScope(sqlite(filename), scope).pipe(
        Effect.flatMap((services) => Effect.provide(begun, services))
      )
      const appending = yield* Effect.forkChild(store.append(commit(id, epoch, 2)), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(appending)
      says(yield* reasonOf(store.append(commit(id, epoch, 3))), "Unavailable", "closed")
      const position = yield* Effect.flatMap(SessionStore, (store) => store.position(id)).pipe(using(sqlite(filename)))
      assert.strictEqual(position.position, 2)
    })
  )
})

describe("a COMMIT that fails is unconfirmed (L-A7)", () => {
  const watch: Watch = { statements: [], commits: 0, onCommit: undefined }
  const client = watched(watch, SqliteClient.layer({ filename: ":memory:" }))
  const store = SqlSessionStore.layer.pipe(Layer.provideMerge(client))
  const failing = (onCommit: Watch["onCommit"], position: number) =>
    Effect.gen(function* () {
      const { epoch, store } = yield* begun
      watch.onCommit = onCommit
      says(yield* reasonOf(store.append(commit(id, epoch, 2))), "Unconfirmed", "connection to the database was lost")
      watch.onCommit = undefined
      assert.strictEqual((yield* store.position(id)).position, position)
      yield* store.append(commit(id, epoch, position + 1))
    }).pipe(using(store))

  const other = sessionId("ses_other")
  const failingTogether = (onCommit: Watch["onCommit"]) =>
    Effect.gen(function* () {
      const { epoch, store } = yield* begun
      const claimed = yield* store.claim(other, "agent")
      watch.onCommit = onCommit
      const reasons = yield* Effect.forEach(
        [commit(id, epoch, 2), commit(other, claimed.epoch, 1)],
        (each) => reasonOf(store.append(each)),
        { concurrency: "unbounded" }
      )
      watch.onCommit = undefined
      for (const reason of reasons) says(reason, "Unconfirmed", "connection to the database was lost")
      return { epoch, store }
    })

  it.live("when it was written", () => failing((run) => Effect.andThen(run, Effect.fail(lost)), 2))

  it.live("when it was written, and no cause is named", () => {
    const told = Effect.fail(unnamed("the connection to the database was lost"))
    let commits = 0
    return failing((run) => (++commits === 1 ? Effect.andThen(run, told) : run), 2)
  })

  it.live("when it was not", () => failing(() => Effect.fail(lost), 1))

  it.live("when it was written with another's", () =>
    Effect.gen(function* () {
      const { store } = yield* failingTogether((run) => Effect.andThen(run, Effect.fail(lost)))
      assert.strictEqual((yield* store.position(id)).position, 2)
      assert.strictEqual((yield* store.position(other)).position, 1)
    }).pipe(using(store))
  )

  it.live("when it is a statement by itself, unless SQLite names what stopped it before", () =>
    Effect.gen(function* () {
      const { epoch, store } = yield* begun
      const failing = (errno: number) => {
        const cause = Object.assign(new Error("SQLite says so"), { errno })
        watch.onCommit = () => Effect.fail(new SqlError.SqlError({ reason: SqlError.classifySqliteError(cause, {}) }))
        return reasonOf(store.append(commit(id, epoch, 2)))
      }
      says(yield* failing(10 | (4 << 8)), "Unconfirmed", "medium")
      says(yield* failing(1), "Unconfirmed", "SQLite says so")
      says(yield* failing(13), "Unavailable", "full")
      says(yield* failing(11), "Corrupt", "damaged")
      watch.onCommit = undefined
      yield* store.append(commit(id, epoch, 2))
    }).pipe(using(store))
  )

  it.live("is not tried on a client that was closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const client = yield* Layer.buildWithScope(SqliteClient.layer({ filename: ":memory:" }), scope)
      const context = yield* Layer.build(SqlSessionStore.layer.pipe(Layer.provide(Layer.succeedContext(client))))
      const { epoch, store } = yield* Effect.provide(begun, Context.merge(client, context))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* reasonOf(store.append(commit(id, epoch, 2))))._tag, "Unavailable")
    })
  )

  it.live("is not answered for inside a transaction that somebody else began", () =>
    Effect.gen(function* () {
      const { epoch, sql, store } = yield* begun
      yield* sql`BEGIN`
      says(yield* reasonOf(store.append(commit(id, epoch, 2))), "Unavailable", "within a transaction")
      yield* sql`ROLLBACK`
      yield* store.append(commit(id, epoch, 2))
    }).pipe(using(store))
  )

  describe("when it was not, and neither was the transaction rolled back", () => {
    const third = sessionId("ses_third")
    const afterwards = (next: (store: SessionStore["Service"], epoch: number) => Effect.Effect<void, StoreError>) => {
      let rollbacks = 0
      const stuck = intercepted(SqliteClient.layer({ filename: ":memory:" }), (statement, run, commits) => {
        if (commits && watch.onCommit !== undefined) return Effect.as(watch.onCommit(run), [])
        return statement === "ROLLBACK" && ++rollbacks === 1 ? Effect.fail(lost) : run
      })
      return Effect.gen(function* () {
        yield* Effect.flatMap(SessionStore, (store) => store.claim(third, "agent"))
        const { epoch, store } = yield* failingTogether(() => Effect.fail(lost))
        yield* next(store, epoch)
        assert.strictEqual(rollbacks, 2)
      }).pipe(using(SqlSessionStore.layer.pipe(Layer.provideMerge(stuck))))
    }

    it.live("what is read is what is in the database", () =>
      afterwards((store, epoch) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* store.position(id)).position, 1)
          yield* store.append(commit(id, epoch, 2))
        })
      )
    )

    it.live("what is written next is not in that transaction", () =>
      afterwards((store) =>
        Effect.gen(function* () {
          yield* store.append(commit(third, 1, 1))
          assert.strictEqual((yield* store.position(third)).position, 1)
          assert.strictEqual((yield* store.position(id)).position, 1)
        })
      )
    )
  })
})

describe("a database that cannot be written is unavailable, in words, and loses nothing", () => {
  it.live("locked by another process", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* Effect.gen(function* () {
        const { epoch, store } = yield* begun
        const holder = yield* Effect.acquireRelease(
          Effect.sync(() => new DatabaseSync(filename)),
          (database) => Effect.sync(() => database.close())
        )
        holder.exec("BEGIN IMMEDIATE")
        says(yield* reasonOf(store.append(commit(id, epoch, 2))), "Unavailable", "locked")
        says(yield* reasonOf(store.claim(id, "agent")), "Unavailable", "locked")
        assert.deepStrictEqual(yield* store.position(id), { epoch, position: 1 })
        holder.exec("ROLLBACK")
        yield* store.append(commit(id, epoch, 2))
      }).pipe(Effect.scoped, using(sqlite(filename)))
    })
  )

  it.live("read-only; it can still be read", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const { epoch } = yield* begun.pipe(using(sqlite(filename)))
      yield* Effect.gen(function* () {
        const store = yield* SessionStore
        says(yield* reasonOf(store.append(commit(id, epoch, 2))), "Unavailable", "read-only")
        says(yield* reasonOf(store.claim(id, "agent")), "Unavailable", "read-only")
        assert.deepStrictEqual(yield* store.events(id, 0, 10), [event(1)])
      }).pipe(using(sqlite(`file:${filename}?mode=ro`)))
    })
  )

  it.live("full", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* Effect.gen(function* () {
        const { epoch, sql, store } = yield* begun
        yield* sql`PRAGMA max_page_count = 20`
        const large = commit(id, epoch, 2, `"${"x".repeat(100_000)}"`)
        says(yield* reasonOf(store.append(large)), "Unavailable", "full")
        assert.deepStrictEqual(yield* store.position(id), { epoch, position: 1 })
        assert.deepStrictEqual(yield* store.events(id, 0, 10), [event(1)])
        yield* sql`PRAGMA max_page_count = 2000`
        yield* store.append(large)
      }).pipe(using(sqlite(filename)))
    })
  )
})

describe("a journal that cannot be read is refused and left untouched (L-R5)", () => {
  it.live("a truncated file", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* Effect.gen(function* () {
        const { epoch, store } = yield* begun
        yield* store.append(commit(id, epoch, 2, `"${"x".repeat(100_000)}"`))
      }).pipe(using(sqlite(filename)))
      truncateSync(filename, 3 * 4096)
      const error = yield* failureOf(
        Effect.flatMap(SessionStore, (store) => store.claim(id, "agent")).pipe(using(sqlite(filename)))
      )
      says(error._tag === "SqlError" ? SqlSessionStore.fromSqlError(error).reason : error.reason, "Corrupt", "damaged")
    })
  )

  it.live("a file that is no database", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      writeFileSync(filename, "not a database ".repeat(1000))
      const error = yield* failureOf(Effect.asVoid(SessionStore).pipe(using(sqlite(filename))))
      says(
        error._tag === "SqlError" ? SqlSessionStore.fromSqlError(error).reason : error.reason,
        "Corrupt",
        "not a database"
      )
    })
  )

  it.live("a commit that was changed by hand", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* begun.pipe(using(sqlite(filename)))
      yield* byHand(filename, "UPDATE midcourse_commits SET body = replace(body, '1', '2')")
      const reasons = yield* Effect.flatMap(SessionStore, (store) =>
        Effect.all([
          reasonOf(store.claim(id, "agent")),
          reasonOf(store.events(id, 0, 10)),
          reasonOf(store.kind(id, "message", 10))
        ])
      ).pipe(using(sqlite(filename)))
      for (const reason of reasons) says(reason, "Corrupt", "entry 1 was changed after it was written")
    })
  )

  it.live("an end that was changed by hand", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* begun.pipe(using(sqlite(filename)))
      yield* byHand(filename, "UPDATE midcourse_sessions SET sequence = 7")
      const claim = Effect.flatMap(SessionStore, (store) => reasonOf(store.claim(id, "agent")))
      says(yield* claim.pipe(using(sqlite(filename))), "Corrupt", "it ends at event 1, not at 7")
    })
  )

  it.live("an entry that is missing", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      const { epoch } = yield* Effect.tap(begun, ({ epoch, store }) => store.append(commit(id, epoch, 2))).pipe(
        using(sqlite(filename))
      )
      const claim = Effect.flatMap(SessionStore, (store) =>
        Effect.all([reasonOf(store.claim(id, "agent")), store.position(id)])
      ).pipe(using(sqlite(filename)))
      for (const [position, words] of [
        [2, "ends at entry 1, not at 2"],
        [1, "ends at entry 0"]
      ] as const) {
        yield* byHand(filename, `DELETE FROM midcourse_commits WHERE position = ${position}`)
        const [reason, after] = yield* claim
        says(reason, "Corrupt", words)
        assert.deepStrictEqual(after, { epoch, position: 2 })
      }
    })
  )

  it.live("a session of a newer format, whatever is asked of it; others are well", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* begun.pipe(using(sqlite(filename)))
      yield* byHand(filename, "UPDATE midcourse_sessions SET format = 2")
      yield* Effect.gen(function* () {
        const store = yield* SessionStore
        const tooNew: StoreErrorReason = { _tag: "TooNew", format: 2, supported: 1 }
        assert.deepStrictEqual(yield* reasonOf(store.claim(id, "agent")), tooNew)
        assert.deepStrictEqual(yield* reasonOf(store.append(commit(id, 1, 2))), tooNew)
        assert.deepStrictEqual(yield* reasonOf(store.events(id, 0, 10)), tooNew)
        assert.deepStrictEqual(yield* reasonOf(store.prune(id, 10)), tooNew)
        assert.deepStrictEqual(yield* reasonOf(store.forget(id)), tooNew)
        const [session] = yield* store.list
        assert.deepStrictEqual(session, { id, agent: "agent", position: 1, sequence: 1 })
        yield* store.append(commit(other, (yield* store.claim(other, "agent")).epoch, 1))
      }).pipe(using(sqlite(filename)))
    })
  )

  it.live("tables of a newer version", () =>
    Effect.gen(function* () {
      const filename = yield* temporary
      yield* begun.pipe(using(sqlite(filename)))
      yield* byHand(filename, "INSERT INTO midcourse_migrations (migration_id, name) VALUES (2, 'newer')")
      const error = yield* failureOf(Effect.asVoid(SessionStore).pipe(using(sqlite(filename))))
      assert.deepStrictEqual(error._tag === "StoreError" ? error.reason : error, {
        _tag: "TooNew",
        format: 2,
        supported: 1
      })
    })
  )
})

describe("SessionStoreSuite.failing", () => {
  const of = (fault: SessionStoreSuite.Fault) =>
    Effect.gen(function* () {
      const { epoch, store } = yield* begun
      const failing = SessionStoreSuite.failing(store, { append: (nth) => (nth === 2 ? fault : undefined) })
      yield* failing.append(commit(id, epoch, 2))
      const appending = yield* Effect.forkChild(Effect.flip(failing.append(commit(id, epoch, 3))), {
        startImmediately: true
      })
      if (fault === "hang") yield* Fiber.interrupt(appending)
      const exit = yield* Fiber.await(appending)
      const tag = Exit.isSuccess(exit) ? exit.value.reason._tag : "interrupted"
      return [tag, (yield* store.position(id)).position] as const
    }).pipe(using(sqlite(":memory:")))

  it.live.each([
    ["unavailable", "Unavailable", 2],
    ["unconfirmed-written", "Unconfirmed", 3],
    ["unconfirmed-lost", "Unconfirmed", 2],
    ["hang", "interrupted", 2]
  ] as const)("an append that is %s", ([fault, tag, position]) =>
    Effect.map(of(fault), (outcome) => assert.deepStrictEqual(outcome, [tag, position]))
  )
})
