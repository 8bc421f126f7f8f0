/**
 * What a commit costs over what SQLite itself takes for it: `node test/store/bench.ts`. The raw side inserts the same rows into
 * the same table by prepared statements; blocks of the two alternate, so that a busy machine slows both.
 */
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { DatabaseSync } from "node:sqlite"
import type * as Ids from "../../src/domain/Ids.ts"
import { SessionStore, type StoredEntry } from "../../src/ledger/SessionStore.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import * as Postgres from "../support/postgres.ts"

type Synchronous = "FULL" | "NORMAL"

const body = JSON.stringify({
  type: "steering.accepted",
  session_id: "ses_0123456789abcdef",
  sequence: 12345,
  time: 1700000000000,
  input_id: "inp_0123456789",
  text: "x".repeat(120)
})

const entry = (position: number): StoredEntry => ({
  position,
  sequence: position,
  kind: "steering.accepted",
  inputId: null,
  body,
  checksum: "0123456789abcdef"
})

const sessions = Array.from({ length: 100 }, (_, n) => `ses_${String(n).padStart(16, "0")}` as Ids.SessionId)

const median = (times: Array<number>): number => times.sort((a, b) => a - b)[times.length >> 1] ?? 0

const micros = (millis: number): string => `${(millis * 1000).toFixed(1)} µs`

const timed = (run: () => void): number => {
  const before = performance.now()
  run()
  return performance.now() - before
}

/** The same rows by hand, in a database of its own that the layer made. */
const raw = (filename: string, synchronous: Synchronous) => {
  const database = new DatabaseSync(filename)
  database.exec(`PRAGMA synchronous = ${synchronous}`)
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")
  const insert = database.prepare(
    `INSERT INTO midcourse_entries (session, position, sequence, kind, input_id, checksum, body)
    VALUES (?, ?, ?, ?, ?, ?, ?)`
  )
  let position = 0
  return {
    close: () => database.close(),
    write: (count: number) => {
      position++
      begin.run()
      for (let session = 1; session <= count; session++) {
        const { body, checksum, kind } = entry(position)
        insert.run(session, position, position, kind, null, checksum, body)
      }
      commit.run()
    }
  }
}

const open = (folder: string, name: string, synchronous: Synchronous) =>
  SqlSessionStore.layer.pipe(Layer.provide(SqliteClient.layer({ filename: join(folder, name), synchronous })))

const appending = (store: SessionStore["Service"]) => {
  const positions = new Map<Ids.SessionId, number>()
  return (sessionId: Ids.SessionId) =>
    Effect.suspend(() => {
      const expected = positions.get(sessionId) ?? 0
      positions.set(sessionId, expected + 1)
      return store.append({ sessionId, epoch: 1, expected, entries: [entry(expected + 1)], snapshot: undefined })
    })
}

const single = (folder: string, synchronous: Synchronous) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    yield* store.claim(sessions[0] ?? ("" as Ids.SessionId), "bench")
    const append = appending(store)
    const hand = raw(join(folder, "raw.db"), synchronous)
    const byHand: Array<number> = []
    const byStore: Array<number> = []
    for (let block = 0; block < 20; block++) {
      for (let n = 0; n < 200; n++) byHand.push(timed(() => hand.write(1)))
      for (let n = 0; n < 200; n++) {
        const before = performance.now()
        yield* append(sessions[0] ?? ("" as Ids.SessionId))
        byStore.push(performance.now() - before)
      }
    }
    hand.close()
    const [by, over] = [median(byStore), median(byHand)]
    console.log(`${synchronous} one append: store ${micros(by)}, raw ${micros(over)}, ${(by / over).toFixed(2)} times`)
  }).pipe(Effect.provide(open(folder, "store.db", synchronous)))

const group = (folder: string, synchronous: Synchronous) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    yield* Effect.forEach(sessions, (id) => store.claim(id, "bench"))
    const append = appending(store)
    const hand = raw(join(folder, "raw.db"), synchronous)
    let byHand = 0
    let byStore = 0
    const rounds = 25
    for (let block = 0; block < 20; block++) {
      for (let n = 0; n < rounds; n++) byHand += timed(() => hand.write(sessions.length))
      const before = performance.now()
      yield* Effect.forEach(sessions, (id) => Effect.replicateEffect(append(id), rounds, { discard: true }), {
        concurrency: "unbounded",
        discard: true
      })
      byStore += performance.now() - before
    }
    hand.close()
    const each = (millis: number) => micros(millis / (20 * rounds * sessions.length))
    console.log(
      `${synchronous} ${sessions.length} sessions at once, one append: store ${each(byStore)}, raw ${each(byHand)}, ` +
        `${(byHand / byStore).toFixed(2)} of the raw rate`
    )
  }).pipe(Effect.provide(open(folder, "store.db", synchronous)))

const postgres = Effect.gen(function* () {
  const store = yield* SessionStore
  yield* Effect.forEach(sessions, (id) => store.claim(id, "bench"))
  const append = appending(store)
  const [first] = sessions
  if (first === undefined) return
  const alone: Array<number> = []
  for (let n = 0; n < 1000; n++) {
    const before = performance.now()
    yield* append(first)
    alone.push(performance.now() - before)
  }
  const rounds = 50
  const before = performance.now()
  yield* Effect.forEach(sessions, (id) => Effect.replicateEffect(append(id), rounds, { discard: true }), {
    concurrency: "unbounded",
    discard: true
  })
  const each = micros((performance.now() - before) / (rounds * sessions.length))
  console.log(`PostgreSQL one append: ${micros(median(alone))}; ${sessions.length} sessions at once: ${each}`)
})

const inCluster = Effect.flatMap(Postgres.start, (cluster) =>
  Effect.provide(postgres, SqlSessionStore.layer.pipe(Layer.provide(Postgres.client(cluster))))
)

const run = (measure: typeof single, synchronous: Synchronous) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "midcourse-bench-"))),
    (folder) =>
      Effect.andThen(Effect.scoped(Layer.build(open(folder, "raw.db", synchronous))), measure(folder, synchronous)),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

await Effect.runPromise(
  Effect.forEach([single, group], (measure) =>
    Effect.forEach(["FULL", "NORMAL"] as const, (synchronous) => run(measure, synchronous))
  )
)

if (Postgres.programs !== undefined) await Effect.runPromise(Effect.scoped(inCluster))
