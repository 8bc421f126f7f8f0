/** A journal in SQLite answers as one in memory does, whatever is asked of both in which order. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Option, Schema } from "effect"
import {
  type Append,
  layerMemory,
  SessionStore,
  type StoredEntry,
  type StoreError
} from "../../src/ledger/SessionStore.ts"
import { inputId } from "../support/harness.ts"
import { sessionId, sqlite } from "./fixtures.ts"

type Store = SessionStore["Service"]
type Kind = StoredEntry["kind"]

/** A number that a caller may give, as a share of where the session ends, or one that is none. */
const numbers = [0, 1, 2, 0.25, 0.5, 0.9, -1, Number.NaN, Number.POSITIVE_INFINITY]
const number = Arbitrary.map(Arbitrary.schema(Schema.Literals([0, 1, 2, 3, 4, 5, 6, 7, 8])), (at) => numbers[at] ?? 0)
const kinds = Arbitrary.schema(Schema.Array(Schema.Literals(["event", "event", "message", "input"])))
const asked = Arbitrary.schema(
  Schema.Literals(["append", "append", "append", "stale", "claim", "events", "kind", "identity", "prune", "forget"])
)
const steps = Arbitrary.array(Arbitrary.all({ asked, kinds, at: number, limit: number }), {
  minLength: 12,
  maxLength: 40
})

/** What a step asks, of either store alike. */
interface Scene {
  epoch: number
  position: number
  sequence: number
  inputs: number
}

const id = sessionId("ses_alike")

const share = (of: number, whole: number): number => (of > 0 && of < 1 ? Math.floor(of * whole) : of)

const entriesOf = (scene: Scene, kinds: ReadonlyArray<Kind>): Append["entries"] => {
  let { inputs, sequence } = scene
  const made = kinds.map((kind, index): StoredEntry => ({
    position: scene.position + 1 + index,
    sequence: kind === "event" ? ++sequence : null,
    kind,
    inputId: kind === "input" ? `in_${++inputs}` : null,
    body: { at: scene.position + index, text: "x".repeat((index % 7) * 9000) }
  }))
  const last: StoredEntry = {
    position: scene.position + 1 + kinds.length,
    sequence: ++sequence,
    kind: "event",
    inputId: null,
    body: 0
  }
  const [first = last, ...rest] = [...made, last]
  return [first, ...rest]
}

type Step = typeof steps extends Arbitrary.Arbitrary<ReadonlyArray<infer S>> ? S : never

const ask = (store: Store, scene: Scene, { asked, at, kinds, limit }: Step): Effect.Effect<unknown, StoreError> => {
  const position = share(at, scene.position)
  const snapshot = at === 0.5 || at === 0.9 ? { position, body: `{"at":${position}}`, checksum: "0" } : undefined
  const commit = { sessionId: id, epoch: scene.epoch, expected: scene.position, snapshot }
  switch (asked) {
    case "append":
      return store.append({ ...commit, entries: entriesOf(scene, kinds) })
    case "stale":
      return store.append({ ...commit, epoch: scene.epoch - 1, entries: entriesOf(scene, kinds) })
    case "claim":
      return store.claim(id, "agent")
    case "events":
      return store.events(id, share(at, scene.sequence), share(limit, scene.sequence))
    case "kind":
      return store.kind(id, "message", position)
    case "identity":
      return Effect.map(store.identity(id, inputId(`in_${share(at, scene.inputs)}`)), Option.getOrUndefined)
    case "prune":
      return store.prune(id, share(at, scene.sequence))
    case "forget":
      return limit === 0 ? store.forget(id) : store.position(id)
  }
}

/** What is known of the session afterwards, as its owner would know it. */
const known = (store: Store, scene: Scene) =>
  Effect.gen(function* () {
    const found = (yield* store.list).find((session) => session.id === id)
    if (found === undefined) return Object.assign(scene, { epoch: 0, position: 0, sequence: 0, inputs: 0 })
    const { epoch, position } = yield* store.position(id)
    const inputs = (yield* store.kind(id, "input", position)).length
    return Object.assign(scene, { epoch, position, sequence: found.sequence, inputs })
  })

const stores = Layer.build(layerMemory).pipe(
  Effect.zip(Layer.build(sqlite(":memory:"))),
  Effect.map(([memory, database]) => [Context.get(memory, SessionStore), Context.get(database, SessionStore)] as const)
)

describe("a journal in SQLite", () => {
  it.effect.prop(
    "answers as one in memory does",
    [steps],
    ([steps]) =>
      Effect.gen(function* () {
        const [memory, database] = yield* stores
        const scene: Scene = { epoch: 0, position: 0, sequence: 0, inputs: 0 }
        for (const store of [memory, database]) yield* store.claim(id, "agent")
        yield* known(memory, scene)
        for (const step of steps) {
          const told = (store: Store) =>
            Effect.match(ask(store, scene, step), {
              onFailure: ({ reason }): unknown => reason,
              onSuccess: (value) => value
            })
          const answer = yield* told(memory)
          assert.deepStrictEqual(yield* told(database), answer)
          yield* known(memory, scene)
        }
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 300 } }
  )
})
