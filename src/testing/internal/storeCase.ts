/**
 * What the cases of `SessionStoreSuite` are made of: sessions of their own, entries to write, and what must be the same.
 *
 * @since 0.1.0
 */
import { Effect, Random, Result, Schema } from "effect"
import type * as Ids from "../../domain/Ids.ts"
import {
  type Append,
  type Claim,
  SessionStore,
  type StoredEntry,
  type StoredSnapshot,
  type StoreError,
  type StoreErrorReason
} from "../../ledger/SessionStore.ts"

/**
 * What the store did that it may not.
 *
 * @category errors
 * @since 0.1.0
 */
export class Violation extends Schema.TaggedError<Violation>()("SessionStoreViolation", { message: Schema.String }) {}

/** @category models @since 0.1.0 */
export interface Case {
  readonly name: string
  readonly run: Effect.Effect<void, StoreError | Violation, SessionStore>
}

type Store = SessionStore["Service"]

/** The agent of the cases' sessions. */
export const agent = "suite"

/** What a case works with: the store, and as many sessions as it asks for. */
interface Bench {
  readonly store: Store
  readonly id: Ids.SessionId
  readonly another: Effect.Effect<Ids.SessionId>
}

/** A case, named by what it shows. */
export const define = (name: string, body: (bench: Bench) => Effect.Effect<void, StoreError | Violation>): Case => ({
  name,
  run: Effect.gen(function* () {
    const store = yield* SessionStore
    const made: Array<Ids.SessionId> = []
    const another = Effect.map(nonce, (nonce) => {
      const id = `suite_${nonce}` as Ids.SessionId
      made.push(id)
      return id
    })
    const id = yield* another
    yield* Effect.ensuring(
      Effect.suspend(() => body({ store, id, another })),
      Effect.forEach(made, (id) => Effect.ignore(store.forget(id)), { discard: true })
    )
  })
})

/** Makes ids that no other run uses. */
export const nonce: Effect.Effect<string> = Random.Random.useSync((random) =>
  Array.from({ length: 4 }, () => Math.floor(random.nextDoubleUnsafe() * 2 ** 30).toString(36)).join("")
)

/** Fails a case. */
export const violated = (message: string) => Effect.fail(new Violation({ message }))

/** By value, whatever the order of an object's keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner
  ) ?? "undefined"

const brief = (text: string): string =>
  text.length > 400 ? `${text.slice(0, 400)}… (${text.length} characters)` : text

export const same = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, Violation> => {
  const [is, should] = [canonical(actual), canonical(expected)]
  return is === should ? Effect.void : violated(`${what} is ${brief(is)}, not ${brief(should)}`)
}

/** That an effect fails as it must. */
export const refusal = <A>(
  what: string,
  effect: Effect.Effect<A, StoreError>,
  expected: StoreErrorReason["_tag"]
): Effect.Effect<StoreErrorReason, Violation> =>
  Effect.flatMap(Effect.result(effect), (result) =>
    Result.isSuccess(result)
      ? violated(`${what} succeeded, where it must fail ${expected}`)
      : result.failure.reason._tag === expected
        ? Effect.succeed(result.failure.reason)
        : violated(`${what} failed ${result.failure.reason._tag}, not ${expected}: ${result.failure.message}`)
  )

/** An event at a position. */
export const event = (position: number, sequence = position): StoredEntry => ({
  position,
  sequence,
  kind: "input.accepted",
  inputId: null,
  body: { at: position }
})

/** A record at a position. */
export const record = (position: number, kind = "message", inputId: string | null = null): StoredEntry => ({
  position,
  sequence: null,
  kind,
  inputId,
  body: { at: position }
})

/** A snapshot of everything up to a position. */
export const snapshotAt = (position: number): StoredSnapshot => ({
  position,
  body: `{"until":${position}}`,
  checksum: `snap-${position}`
})

/** The commit that puts entries where their positions say. */
export const commit = (
  sessionId: Ids.SessionId,
  { epoch }: Pick<Claim, "epoch">,
  entries: Append["entries"],
  snapshot?: StoredSnapshot
): Append => ({ sessionId, epoch, expected: entries[0].position - 1, entries, snapshot })

/** An input's id. */
export const input = (id: string) => id as Ids.InputId

/** Events from a position on. */
export const events = (from: number, count: number): Append["entries"] => [
  event(from),
  ...Array.from({ length: count - 1 }, (_, index) => event(from + 1 + index))
]

/** Six entries: event, record, event, event, record of an identity, event. */
export const mixed: Append["entries"] = [
  event(1),
  record(2),
  event(3, 2),
  event(4, 3),
  record(5, "input", "inp_1"),
  event(6, 4)
]
