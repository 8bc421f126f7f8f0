/**
 * What a commit costs over what SQLite itself takes for it: `node test/store/bench.ts`. Blocks of the two alternate, so that a busy
 * machine slows both.
 */
import { Effect, Layer } from "effect"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import type * as Ids from "../../src/domain/Ids.ts"
import { SessionStore, type StoredEntry } from "../../src/ledger/SessionStore.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import { byHand, folder, micros, stored, type Synchronous, timed } from "../bench/byHand.ts"
import { median } from "../bench/measure.ts"
import * as Postgres from "../support/postgres.ts"

const body = {
  type: "steering.accepted",
  session_id: "ses_0123456789abcdef",
  sequence: 12345,
  time: 1700000000000,
  input_id: "inp_0123456789",
  text: "x".repeat(120)
}

const entry = (position: number): StoredEntry => ({
  position,
  sequence: position,
  kind: "steering.accepted",
  inputId: null,
  body
})

const sessions = Array.from({ length: 100 }, (_, n) => `ses_${String(n).padStart(16, "0")}` as Ids.SessionId)

const appending = (store: SessionStore["Service"]) => {
  const positions = new Map<Ids.SessionId, number>()
  return (sessionId: Ids.SessionId) =>
    Effect.suspend(() => {
      const expected = positions.get(sessionId) ?? 0
      positions.set(sessionId, expected + 1)
      return store.append({ sessionId, epoch: 1, expected, entries: [entry(expected + 1)], snapshot: undefined })
    })
}

const single = (path: string, synchronous: Synchronous) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    yield* store.claim(sessions[0] ?? ("" as Ids.SessionId), "bench")
    const append = appending(store)
    const hand = byHand(join(path, "raw.db"), synchronous, 1, [entry(1)])
    const raw: Array<number> = []
    const byStore: Array<number> = []
    for (let block = 0; block < 20; block++) {
      for (let n = 0; n < 200; n++) raw.push(timed(() => hand.write()))
      for (let n = 0; n < 200; n++) {
        const before = performance.now()
        yield* append(sessions[0] ?? ("" as Ids.SessionId))
        byStore.push(performance.now() - before)
      }
    }
    hand.close()
    const [by, over] = [median(byStore), median(raw)]
    console.log(`${synchronous} one append: store ${micros(by)}, raw ${micros(over)}, ${(by / over).toFixed(2)} times`)
  }).pipe(Effect.provide(stored(join(path, "store.db"), synchronous)))

const group = (path: string, synchronous: Synchronous) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    yield* Effect.forEach(sessions, (id) => store.claim(id, "bench"))
    const append = appending(store)
    const hand = byHand(join(path, "raw.db"), synchronous, sessions.length, [entry(1)])
    let raw = 0
    let byStore = 0
    const rounds = 25
    for (let block = 0; block < 20; block++) {
      for (let n = 0; n < rounds; n++) raw += timed(() => hand.write())
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
      `${synchronous} ${sessions.length} sessions at once, one append: store ${each(byStore)}, raw ${each(raw)}, ` +
        `${(raw / byStore).toFixed(2)} of the raw rate`
    )
  }).pipe(Effect.provide(stored(join(path, "store.db"), synchronous)))

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
  Effect.gen(function* () {
    const path = yield* folder
    yield* Effect.scoped(Layer.build(stored(join(path, "raw.db"), synchronous)))
    yield* measure(path, synchronous)
  }).pipe(Effect.scoped)

await Effect.runPromise(
  Effect.forEach([single, group], (measure) =>
    Effect.forEach(["FULL", "NORMAL"] as const, (synchronous) => run(measure, synchronous))
  )
)

if (Postgres.programs !== undefined) await Effect.runPromise(Effect.scoped(inCluster))
