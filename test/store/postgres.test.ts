import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { SessionStore, type StoreError } from "../../src/ledger/SessionStore.ts"
import * as CommitRow from "../../src/store/CommitRow.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import { SessionStoreSuite } from "../../src/testing/index.ts"
import * as Postgres from "../support/postgres.ts"
import { commit, event, sessionId } from "./fixtures.ts"
import { owner } from "./processes.ts"

class Cluster extends Context.Service<Cluster, Postgres.Cluster>()("test/Cluster") {}

const started = Layer.effect(Cluster, Postgres.start)

/** A store over one connection, so that a lost one must be replaced. */
const stored = SqlSessionStore.layer.pipe(
  Layer.provide(Layer.unwrap(Effect.map(Cluster, (cluster) => Postgres.client(cluster, { maxConnections: 1 }))))
)
/** And a client beside it, for what the tests do by hand. */
const beside = Layer.unwrap(Effect.map(Cluster, (cluster) => Postgres.client(cluster)))

const everything = Layer.merge(stored, beside).pipe(Layer.provideMerge(started))

const claimed = (name: string) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const id = sessionId(name)
    const { epoch } = yield* store.claim(id, "agent")
    yield* store.append(commit(id, epoch, 1))
    return { store, id, epoch, sql: yield* SqlClient.SqlClient }
  })

/** Ends connections of others, and waits until the server has. */
const terminate = (sql: SqlClient.SqlClient, where = "TRUE") =>
  sql.unsafe(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND ${where}`)

/** Until a statement of another connection waits for a lock. A transaction sees one moment of the activity unless told to look again. */
const someoneWaits = (sql: SqlClient.SqlClient, statement: string) =>
  Effect.andThen(
    sql`SELECT pg_stat_clear_snapshot()`,
    sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE ${`${statement}%`}`
  ).pipe(Effect.repeat({ until: (rows) => rows.length > 0 }))

const reasonOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

/** A trigger that makes the COMMIT of entries of one kind wait for a lock that the test holds. */
const waitAtCommit = `
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
`
const trigger = `CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON midcourse_commits
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.body LIKE '%wait%') EXECUTE FUNCTION wait_at_commit()`

describe.skipIf(Postgres.programs === undefined)("a journal in PostgreSQL", () => {
  layer(everything, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    for (const { name, run } of SessionStoreSuite.cases) it.effect(name, () => run)

    it.effect("of two processes only the newer owner writes (L-R4)", () =>
      Effect.gen(function* () {
        const { port } = yield* Cluster
        const first = yield* owner("pg", String(port), "shared")
        assert.match(yield* first.says, /^claimed \d+ at 0$/)
        assert.strictEqual(yield* first.append, "written")
        const second = yield* owner("pg", String(port), "shared")
        assert.match(yield* second.says, /^claimed \d+ at 1$/)
        assert.strictEqual(yield* first.append, "Fenced")
        assert.strictEqual(yield* second.append, "written")
        assert.strictEqual(yield* first.append, "Fenced")
      })
    )

    it.effect("a claim waits for the transaction that holds the session, and reads what it wrote", () =>
      Effect.gen(function* () {
        const { id, sql, store } = yield* claimed("held")
        const claiming = yield* sql.withTransaction(
          Effect.gen(function* () {
            const [row] = CommitRow.fromEntries([event(2)])
            yield* sql`UPDATE midcourse_sessions SET position = 2, sequence = 2 WHERE id = ${id}`
            yield* sql`INSERT INTO midcourse_commits (session, position, sequence, checksum, body)
              SELECT number, 2, 2, ${row?.checksum}, ${row?.body} FROM midcourse_sessions WHERE id = ${id}`
            const claiming = yield* Effect.forkDetach(store.claim(id, "agent"))
            yield* someoneWaits(sql, "SELECT number")
            return claiming
          })
        )
        assert.deepStrictEqual((yield* Fiber.join(claiming)).entries, [event(1), event(2)])
      })
    )

    it.effect("a position is read after the commit that is being made, not beside it (L-A7)", () =>
      Effect.gen(function* () {
        const { epoch, id, sql, store } = yield* claimed("in doubt")
        const reading = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`UPDATE midcourse_sessions SET position = 2 WHERE id = ${id}`
            const reading = yield* Effect.forkChild(store.position(id))
            yield* someoneWaits(sql, "SELECT format")
            return reading
          })
        )
        assert.deepStrictEqual(yield* Fiber.join(reading), { epoch, position: 2 })
      })
    )

    it.effect("the next call works after the connection was dropped", () =>
      Effect.gen(function* () {
        const { epoch, id, sql, store } = yield* claimed("dropped")
        yield* terminate(sql)
        yield* store.append(commit(id, epoch, 2))
        yield* terminate(sql)
        assert.deepStrictEqual(yield* store.position(id), { epoch, position: 2 })
        yield* terminate(sql)
        assert.strictEqual((yield* store.claim(id, "agent")).position, 2)
      })
    )

    it.effect("a connection lost before the commit: unavailable, and nothing was written (L-A7)", () =>
      Effect.gen(function* () {
        const { epoch, id, sql, store } = yield* claimed("lost before")
        const reason = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM midcourse_sessions WHERE id = ${id} FOR UPDATE`
            const appending = yield* Effect.forkChild(reasonOf(store.append(commit(id, epoch, 2))))
            yield* someoneWaits(sql, "WITH owned")
            yield* terminate(sql, "wait_event_type = 'Lock'")
            return yield* Fiber.join(appending)
          })
        )
        assert.strictEqual(reason._tag, "Unavailable")
        assert.deepStrictEqual(yield* store.position(id), { epoch, position: 1 })
        yield* store.append(commit(id, epoch, 2))
      })
    )

    it.effect("a connection lost during the commit: unconfirmed, and read back (L-A7)", () =>
      Effect.gen(function* () {
        const { epoch, id, sql, store } = yield* claimed("lost during")
        yield* sql.unsafe(waitAtCommit)
        yield* sql.unsafe(trigger)
        const reason = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT pg_advisory_xact_lock(42)`
            const appending = yield* Effect.forkChild(reasonOf(store.append(commit(id, epoch, 2, "wait"))))
            yield* someoneWaits(sql, "COMMIT")
            yield* terminate(sql, "query = 'COMMIT' AND wait_event_type = 'Lock'")
            return yield* Fiber.join(appending)
          })
        )
        yield* sql`DROP TRIGGER wait_at_commit ON midcourse_commits`
        assert.strictEqual(reason._tag, "Unconfirmed")
        assert.deepStrictEqual(yield* store.position(id), { epoch, position: 1 })
        yield* store.append(commit(id, epoch, 2))
      })
    )

    it.effect("commits that come while one is written share the next transaction", () =>
      Effect.gen(function* () {
        const { epoch, id, sql, store } = yield* claimed("busy")
        const ids = Array.from({ length: 20 }, (_, n) => sessionId(`busy ${n}`))
        const owners = yield* Effect.forEach(ids, (id) => store.claim(id, "agent"))
        const appending = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM midcourse_sessions WHERE id = ${id} FOR UPDATE`
            const first = yield* Effect.forkChild(store.append(commit(id, epoch, 2)))
            yield* someoneWaits(sql, "WITH owned")
            const rest = yield* Effect.forEach(ids, (id, index) =>
              Effect.forkChild(store.append(commit(id, owners[index]?.epoch ?? 0, 1)), { startImmediately: true })
            )
            return [first, ...rest]
          })
        )
        yield* Effect.forEach(appending, Fiber.join)
        const shared = yield* sql<{ readonly transaction: string }>`
          SELECT DISTINCT c.xmin::text AS transaction FROM midcourse_commits c
          JOIN midcourse_sessions s ON s.number = c.session WHERE s.id LIKE 'busy %'`
        assert.strictEqual(shared.length, 1)
      })
    )

    it.effect("a plan that was made when there was little reads a long journal no more than a few times over", () =>
      Effect.gen(function* () {
        const cluster = yield* Cluster
        const count = 400
        const rows = Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [found] = yield* sql<{ readonly read: number }>`
            SELECT (seq_tup_read + COALESCE(idx_tup_fetch, 0))::integer AS read
            FROM pg_stat_xact_user_tables WHERE relname = 'midcourse_commits'`
          return found?.read ?? 0
        })
        const read = Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { epoch, id, store } = yield* claimed("planned")
          yield* sql`ALTER TABLE midcourse_commits SET (autovacuum_enabled = false)`
          yield* sql`ANALYZE midcourse_commits`
          // The fifth of a statement's uses is the last with a plan of its own.
          yield* Effect.replicateEffect(store.events(id, 0, 10), 10, { discard: true })
          for (let position = 2; position <= count; position++) yield* store.append(commit(id, epoch, position))
          return yield* sql.withTransaction(
            Effect.gen(function* () {
              const before = yield* rows
              assert.strictEqual((yield* store.events(id, 0, count)).length, count)
              return (yield* rows) - before
            })
          )
        })
        const alone = SqlSessionStore.layer.pipe(Layer.provideMerge(Postgres.client(cluster, { maxConnections: 1 })))
        assert.isBelow(yield* Effect.provide(read, alone, { local: true }), 10 * count)
      })
    )

    it.effect("two stores that are made at once both are", () =>
      Effect.gen(function* () {
        const cluster = yield* Cluster
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE SCHEMA fresh`
        const path = Effect.andThen(SqlClient.SqlClient, (sql) => sql`SET search_path TO fresh`)
        const fresh = SqlSessionStore.layer.pipe(
          Layer.provide(Layer.effectDiscard(path)),
          Layer.provide(Postgres.client(cluster, { maxConnections: 1 }))
        )
        const list = Effect.flatMap(SessionStore, (store) => store.list)
        const made = Effect.provide(list, fresh, { local: true })
        assert.deepStrictEqual(yield* Effect.all([made, made], { concurrency: 2 }), [[], []])
      })
    )
  })
})
