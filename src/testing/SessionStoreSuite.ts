/**
 * The contract of a `SessionStore` as cases that any test runner can register: a store that passes them keeps a journal as the
 * runtime relies on it (L-A7, L-R4, L-R7, L-I3, L-V2). Each case makes sessions of its own and forgets them, so that all may run
 * against one store. `failing` is the other half: a store that fails on cue, for tests of what is above it.
 *
 * @since 0.1.0
 */
import { Cause, Effect, Exit, Fiber, Option, Result } from "effect"
import type * as Ids from "../domain/Ids.ts"
import {
  type Append,
  SessionStore,
  type StoredEntry,
  StoreError,
  type StoreErrorReason
} from "../ledger/SessionStore.ts"
import {
  agent,
  type Case,
  commit,
  define,
  event,
  events,
  input,
  mixed,
  nonce,
  record,
  refusal,
  same,
  snapshotAt,
  violated
} from "./internal/storeCase.ts"

import { retention } from "./internal/retentionCases.ts"

export { type Case, Violation } from "./internal/storeCase.ts"

type Store = SessionStore["Service"]

/**
 * How an append fails: certainly not written; its outcome not told, though it was written, or was not; or without ever an answer.
 *
 * @category models
 * @since 0.1.0
 */
export type Fault = "unavailable" | "unconfirmed-written" | "unconfirmed-lost" | "hang"

/**
 * When which operation fails, by how many there were of it, from 1; `undefined` lets it pass.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan {
  readonly append?: ((nth: number, commit: Append) => Fault | undefined) | undefined
  /** The read-back of a commit whose outcome was not told (L-A7). */
  readonly position?: ((nth: number) => "unavailable" | "hang" | undefined) | undefined
  readonly claim?: ((nth: number) => StoreErrorReason | undefined) | undefined
}

/**
 * The store, failing as planned. A hanging append writes nothing until it is interrupted.
 *
 * @category constructors
 * @since 0.1.0
 */
export const failing = (store: Store, plan: Plan): Store => {
  const counted = { append: 0, position: 0, claim: 0 }
  const detail = "failed on cue"
  const unavailable = new StoreError({ reason: { _tag: "Unavailable", detail } })
  const unconfirmed = new StoreError({ reason: { _tag: "Unconfirmed", detail } })
  return SessionStore.of({
    ...store,
    append: (commit) =>
      Effect.suspend(() => {
        const fault = plan.append?.(++counted.append, commit)
        switch (fault) {
          case undefined:
            return store.append(commit)
          case "unavailable":
            return Effect.fail(unavailable)
          case "unconfirmed-written":
            return Effect.andThen(store.append(commit), Effect.fail(unconfirmed))
          case "unconfirmed-lost":
            return Effect.fail(unconfirmed)
          case "hang":
            return Effect.never
        }
      }),
    position: (id) =>
      Effect.suspend(() => {
        const fault = plan.position?.(++counted.position)
        return fault === undefined ? store.position(id) : fault === "hang" ? Effect.never : Effect.fail(unavailable)
      }),
    claim: (id, agent) =>
      Effect.suspend(() => {
        const reason = plan.claim?.(++counted.claim)
        return reason === undefined ? store.claim(id, agent) : Effect.fail(new StoreError({ reason }))
      })
  })
}

/**
 * Every case; the names are the contract's sentences.
 *
 * @category suite
 * @since 0.1.0
 */
export const cases: ReadonlyArray<Case> = [
  define("a first claim creates the session, empty", ({ id, store }) =>
    Effect.gen(function* () {
      const { epoch, ...rest } = yield* store.claim(id, agent)
      yield* same("the claim", rest, { created: true, position: 0, sequence: 0, snapshot: undefined, entries: [] })
      yield* same("the position", yield* store.position(id), { epoch, position: 0 })
    })
  ),
  define("a later claim raises the epoch and reads every entry as it was written", ({ id, store }) =>
    Effect.gen(function* () {
      const first = yield* store.claim(id, agent)
      yield* store.append(commit(id, first, mixed))
      const { epoch, ...rest } = yield* store.claim(id, agent)
      if (epoch <= first.epoch) return yield* violated(`epoch ${epoch} does not follow ${first.epoch}`)
      const expected = { created: false, position: 6, sequence: 4, snapshot: undefined, entries: mixed }
      yield* same("the claim", rest, expected)
    })
  ),
  define("the position follows every append", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, [event(1)]))
      yield* store.append(commit(id, owner, [event(2), record(3)]))
      yield* same("the position", yield* store.position(id), { epoch: owner.epoch, position: 3 })
    })
  ),
  define("an owner whose epoch is not the newest is fenced and writes nothing", ({ id, store }) =>
    Effect.gen(function* () {
      const old = yield* store.claim(id, agent)
      const owner = yield* store.claim(id, agent)
      yield* refusal("the old owner's append", store.append(commit(id, old, [event(1)])), "Fenced")
      yield* refusal("a future append", store.append(commit(id, { epoch: owner.epoch + 1 }, [event(1)])), "Fenced")
      yield* same("the position", yield* store.position(id), { epoch: owner.epoch, position: 0 })
      yield* store.append(commit(id, owner, [event(1)]))
    })
  ),
  define("claims at once get epochs of their own, and only the newest writes", ({ id, store }) =>
    Effect.gen(function* () {
      const claims = yield* Effect.replicateEffect(store.claim(id, agent), 8, { concurrency: "unbounded" })
      yield* same("how many claims created it", claims.filter(({ created }) => created).length, 1)
      const epochs = claims.map(({ epoch }) => epoch).sort((a, b) => a - b)
      yield* same("the number of epochs", new Set(epochs).size, claims.length)
      const appended = yield* Effect.forEach(
        claims,
        (owner) => Effect.map(Effect.result(store.append(commit(id, owner, [event(1)]))), Result.isSuccess),
        { concurrency: "unbounded" }
      )
      const writers = claims.filter((_, index) => appended[index]).map(({ epoch }) => epoch)
      yield* same("the epochs that wrote", writers, epochs.slice(-1))
    })
  ),
  define("an append to a session that nobody claimed is fenced", ({ id, store }) =>
    Effect.asVoid(refusal("the append", store.append(commit(id, { epoch: 1 }, [event(1)])), "Fenced"))
  ),
  define("an append that expects another end is a conflict, says where it ends, and writes nothing", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, events(1, 2)))
      for (const position of [2, 4]) {
        const reason = yield* refusal("the append", store.append(commit(id, owner, [event(position)])), "Conflict")
        yield* same("the reason", reason, { _tag: "Conflict", position: 2 })
      }
      yield* same("the entries", (yield* store.claim(id, agent)).entries, events(1, 2))
    })
  ),
  define("a claim reads the newest snapshot and only the entries after it", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, events(1, 3), snapshotAt(2)))
      const first = yield* store.claim(id, agent)
      yield* same("the snapshot", first.snapshot, snapshotAt(2))
      yield* same("the entries", first.entries, [event(3)])
      yield* store.append(commit(id, first, events(4, 2), snapshotAt(5)))
      const second = yield* store.claim(id, agent)
      yield* same("the newer snapshot", second.snapshot, snapshotAt(5))
      yield* same("the entries after it", second.entries, [])
      yield* same("the end", [second.position, second.sequence], [5, 5])
    })
  ),
  define("commits of many sessions at once all land, each whole", ({ another, store }) =>
    Effect.gen(function* () {
      const ids = yield* Effect.replicateEffect(another, 50)
      const owners = yield* Effect.forEach(ids, (id) => Effect.map(store.claim(id, agent), (owner) => ({ id, owner })))
      yield* Effect.forEach(owners, ({ id, owner }) => store.append(commit(id, owner, mixed, snapshotAt(3))), {
        concurrency: "unbounded"
      })
      for (const { id } of owners) {
        const { entries, position, snapshot } = yield* store.claim(id, agent)
        yield* same("the entries", entries, mixed.slice(3))
        yield* same("the end and the snapshot", [position, snapshot], [6, snapshotAt(3)])
      }
    })
  ),
  define("commits of one session land in the order they were handed in", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      const all = Array.from({ length: 20 }, (_, index) => commit(id, owner, [event(index + 1)]))
      yield* Effect.forEach(all, (one) => store.append(one), { concurrency: "unbounded" })
      yield* same("the entries", (yield* store.claim(id, agent)).entries, events(1, 20))
    })
  ),
  define("a commit that is refused harms none that was handed in with it", ({ another, id, store }) =>
    Effect.gen(function* () {
      const [stale, behind, well] = [yield* another, yield* another, yield* another]
      const owner = yield* store.claim(id, agent)
      const old = yield* store.claim(stale, agent)
      yield* store.claim(stale, agent)
      const late = yield* store.claim(behind, agent)
      const last = yield* store.claim(well, agent)
      const tags = yield* Effect.forEach(
        [
          commit(id, owner, [event(1)]),
          commit(stale, old, [event(1)]),
          commit(behind, late, [event(3)]),
          commit(behind, late, [event(1)]),
          commit(behind, late, [event(1)]),
          commit(id, owner, [event(2)]),
          commit(well, last, [event(1)])
        ],
        (one) =>
          Effect.map(
            Effect.result(store.append(one)),
            Result.match({ onFailure: ({ reason }) => reason._tag, onSuccess: () => "written" })
          ),
        { concurrency: "unbounded" }
      )
      const expected = ["written", "Fenced", "Conflict", "written", "Conflict", "written", "written"]
      yield* same("what became of them", tags, expected)
      yield* same("the entries", (yield* store.claim(id, agent)).entries, events(1, 2))
      yield* same("the fenced session", (yield* store.position(stale)).position, 0)
      yield* same("the other's entries", (yield* store.claim(behind, agent)).entries, [event(1)])
    })
  ),
  define("an append whose caller is interrupted lands whole or not at all", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      const appending = yield* Effect.forkChild(store.append(commit(id, owner, events(1, 3))), {
        startImmediately: true
      })
      yield* Fiber.interrupt(appending)
      const next = yield* store.claim(id, agent)
      if (next.position !== 0 && next.position !== 3) return yield* violated(`it ends at ${next.position}`)
      yield* same("the entries", next.entries, next.position === 0 ? [] : events(1, 3))
      yield* store.append(commit(id, next, [event(next.position + 1)]))
      yield* same("the position", (yield* store.position(id)).position, next.position + 1)
    })
  ),
  define("one commit may be of 2,000 entries", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, events(1, 2000)))
      yield* same("the entries", (yield* store.claim(id, agent)).entries, events(1, 2000))
    })
  ),
  define("a commit of long bodies is read as a whole, and event by event", ({ id, store }) =>
    Effect.gen(function* () {
      const [first, ...rest] = events(1, 40).map((entry) => ({ ...entry, body: "x".repeat(50_000 + entry.position) }))
      if (first === undefined) return
      yield* store.append(commit(id, yield* store.claim(id, agent), [first, ...rest]))
      yield* same("the entries", (yield* store.claim(id, agent)).entries, [first, ...rest])
      yield* same("one event", yield* store.events(id, 20, 1), rest.slice(19, 20))
    })
  ),
  define(
    "a commit with a gap, without entries, or with a body that is no JSON, is a defect and writes nothing",
    ({ id, store }) =>
      Effect.gen(function* () {
        const owner = yield* store.claim(id, agent)
        const none: ReadonlyArray<StoredEntry> = []
        const wrong: ReadonlyArray<Append> = [
          { ...commit(id, owner, [event(1)]), expected: 1 },
          commit(id, owner, [event(1), event(3)]),
          // A caller without types.
          { ...commit(id, owner, [event(1)]), entries: none as Append["entries"] },
          commit(id, owner, [event(1), { ...event(2), body: 1n }, event(3)])
        ]
        for (const one of wrong) {
          const exit = yield* Effect.exit(store.append(one))
          if (Exit.isSuccess(exit) || !Cause.hasDies(exit.cause)) return yield* violated("it is no defect")
        }
        yield* same("the position", yield* store.position(id), { epoch: owner.epoch, position: 0 })
        yield* store.append(commit(id, owner, [event(1)]))
        yield* same("the entries", (yield* store.claim(id, agent)).entries, [event(1)])
      })
  ),
  define("what a caller does with its entries after it has handed them over is not written", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      const body = { at: 1 }
      const entries: Append["entries"] & Array<StoredEntry> = [{ ...event(1), body }]
      const appending = yield* Effect.forkChild(store.append(commit(id, owner, entries)), { startImmediately: true })
      entries.push(event(2))
      body.at = 2
      yield* Fiber.join(appending)
      const { entries: found, position } = yield* store.claim(id, agent)
      yield* same("the entries and the position", [found, position], [[event(1)], 1])
    })
  ),
  define("events are read after a sequence, in order, up to a limit, without records", ({ id, store }) =>
    Effect.gen(function* () {
      yield* store.append(commit(id, yield* store.claim(id, agent), mixed))
      const read = (after: number, limit: number) =>
        Effect.map(store.events(id, after, limit), (entries) => entries.map(({ position }) => position))
      yield* same(
        "all events",
        yield* store.events(id, 0, 100),
        mixed.filter(({ sequence }) => sequence !== null)
      )
      yield* same("events after 2", yield* read(2, 100), [4, 6])
      yield* same("two events after 1", yield* read(1, 2), [3, 4])
      yield* same("events after the last", yield* read(4, 100), [])
    })
  ),
  define("numbers that are no sequence and no count are read as the nearest that are", ({ another, id, store }) =>
    Effect.gen(function* () {
      const { NaN: none, POSITIVE_INFINITY: all } = Number
      yield* store.append(commit(id, yield* store.claim(id, agent), events(1, 3)))
      const read = (after: number, limit: number) =>
        Effect.map(store.events(id, after, limit), (entries) => entries.map(({ position }) => position))
      yield* same("a negative limit", yield* read(0, -1), [])
      yield* same("a limit that is no number", yield* read(0, none), [])
      yield* same("a limit between two", yield* read(0, 2.5), [1, 2])
      yield* same("no limit", yield* read(1, all), [2, 3])
      yield* same("a negative sequence", yield* read(-1, 10), [1, 2, 3])
      yield* same("a sequence that is no number", yield* read(none, 1), [1])
      yield* same("no sequence is above it", yield* read(all, 10), [])
      yield* same(
        "of an empty session",
        yield* Effect.andThen(store.claim(yield* another, agent), store.events(id, 3, 1)),
        []
      )
      yield* refusal("nothing of no session", store.events(yield* another, 0, 0), "Unavailable")
      yield* same("a prune before none", yield* store.prune(id, -1), 1)
    })
  ),
  define("entries of a kind are read up to a position, in order", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, [...mixed, record(7), record(8)], snapshotAt(7)))
      yield* same("messages", yield* store.kind(id, "message", 7), [record(2), record(7)])
      yield* same("events of a kind", yield* store.kind(id, "input.accepted", 3), [event(1), event(3, 2)])
      yield* same("none", yield* store.kind(id, "message", 1), [])
      yield* same("all", (yield* store.kind(id, "message", Number.MAX_SAFE_INTEGER)).length, 3)
    })
  ),
  define("an accepted identity is found, in its own session only", ({ another, id, store }) =>
    Effect.gen(function* () {
      const other = yield* another
      yield* store.claim(other, agent)
      yield* store.append(commit(id, yield* store.claim(id, agent), mixed))
      const found = yield* store.identity(id, input("inp_1"))
      yield* same("the record", Option.getOrUndefined(found), mixed[4])
      yield* same("another", Option.isNone(yield* store.identity(id, input("inp_2"))), true)
      yield* same("another session's", Option.isNone(yield* store.identity(other, input("inp_1"))), true)
    })
  ),
  define("sessions are listed with their agent and where they end", ({ another, id, store }) =>
    Effect.gen(function* () {
      const other = yield* another
      yield* store.append(commit(id, yield* store.claim(id, agent), mixed))
      yield* store.claim(other, "another agent")
      const listed = (yield* store.list).filter((session) => session.id === id || session.id === other)
      const expected = [
        { id, agent, position: 6, sequence: 4 },
        { id: other, agent: "another agent", position: 0, sequence: 0 }
      ]
      const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1)
      yield* same("the list", listed.sort(byId), expected.sort(byId))
    })
  ),
  define("what is asked of a session that is not there fails", ({ id, store }) =>
    Effect.gen(function* () {
      yield* refusal("its position", store.position(id), "Unavailable")
      yield* refusal("its events", store.events(id, 0, 10), "Unavailable")
      yield* refusal("its messages", store.kind(id, "message", 10), "Unavailable")
      yield* refusal("an identity", store.identity(id, input("inp_1")), "Unavailable")
      yield* refusal("a prune", store.prune(id, 10), "Unavailable")
    })
  ),
  define("a body comes back as it was: escapes, quotes, other scripts, a text of 1 MB", ({ id, store }) =>
    Effect.gen(function* () {
      const bodies: ReadonlyArray<unknown> = [
        { zero: "\u0000", lone: "\ud800", low: "\udfff", line: "\u2028", tab: "\t", feed: "\n" },
        String.raw`{"text":"\u0000 \ud83d \u007f ' \" \\ ? $1 % -- ; :x @y"}`,
        { text: "日本語 العربية 🙂 é é ﷺ", list: [1, -0.5, 1e300, true, null, [], {}] },
        { text: "x".repeat(1_000_000) },
        "",
        null
      ]
      const [first, ...rest] = bodies.map((body, index) => ({ ...event(index + 1), body }))
      if (first === undefined) return
      const entries: Append["entries"] = [first, ...rest]
      const snapshot = { position: 1, body: JSON.stringify(bodies), checksum: "'" }
      yield* store.append(commit(id, yield* store.claim(id, agent), entries, snapshot))
      const owner = yield* store.claim(id, agent)
      yield* same("the snapshot", owner.snapshot, snapshot)
      yield* same("the entries", owner.entries, rest)
      yield* same("the events", yield* store.events(id, 0, 10), entries)
    })
  ),
  define("every printable id names a session of its own", ({ store }) =>
    Effect.gen(function* () {
      const unique = yield* nonce
      const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join("")
      const ids = [printable, `${printable} `, printable.toLowerCase(), "%", "_", "'", "x".repeat(100)].map(
        (id) => `${id}${unique}` as Ids.SessionId
      )
      const forgetting = Effect.forEach(ids, (id) => Effect.ignore(store.forget(id)), { discard: true })
      yield* Effect.gen(function* () {
        for (const [index, id] of ids.entries()) {
          yield* store.append(commit(id, yield* store.claim(id, agent), events(1, index + 1)))
        }
        const positions = yield* Effect.forEach(ids, (id) => Effect.map(store.position(id), ({ position }) => position))
        yield* same("the positions", positions, [1, 2, 3, 4, 5, 6, 7])
      }).pipe(Effect.ensuring(forgetting))
    })
  ),
  ...retention
]
