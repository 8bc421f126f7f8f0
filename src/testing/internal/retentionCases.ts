/**
 * The cases of `SessionStoreSuite` about what a host has deleted: a session forgotten, events pruned.
 *
 * @since 0.1.0
 */
import { Effect, Option } from "effect"
import {
  agent,
  type Case,
  commit,
  define,
  event,
  events,
  input,
  mixed,
  record,
  refusal,
  same,
  snapshotAt
} from "./storeCase.ts"

export const retention: ReadonlyArray<Case> = [
  define("a forgotten session is gone, and its owner stays fenced when the id is used again", ({ id, store }) =>
    Effect.gen(function* () {
      const old = yield* store.claim(id, agent)
      yield* store.append(commit(id, old, mixed, snapshotAt(3)))
      yield* store.forget(id)
      yield* refusal("its owner's append", store.append(commit(id, old, [event(7)])), "Fenced")
      yield* refusal("its position", store.position(id), "Unavailable")
      yield* same(
        "the list",
        (yield* store.list).filter((session) => session.id === id),
        []
      )
      const { epoch, ...rest } = yield* store.claim(id, agent)
      yield* same("the claim", rest, { created: true, position: 0, sequence: 0, snapshot: undefined, entries: [] })
      yield* refusal("its first owner's append", store.append(commit(id, old, [event(1)])), "Fenced")
      yield* same("its identity", Option.isNone(yield* store.identity(id, input("inp_1"))), true)
      yield* store.append(commit(id, { epoch }, [event(1)]))
    })
  ),
  define("forgetting what is not there does nothing", ({ id, store }) => store.forget(id)),
  define("a prune deletes events before a sequence, and no record", ({ id, store }) =>
    Effect.gen(function* () {
      const owner = yield* store.claim(id, agent)
      yield* store.append(commit(id, owner, mixed, snapshotAt(6)))
      yield* same("the first event left", yield* store.prune(id, 3), 3)
      yield* same("the events left", yield* store.events(id, 2, 100), [event(4, 3), event(6, 4)])
      yield* same("the messages", yield* store.kind(id, "message", 6), [record(2)])
      yield* same("the identity", Option.isSome(yield* store.identity(id, input("inp_1"))), true)
    })
  ),
  define("a read that starts before a prune fails, and says so", ({ id, store }) =>
    Effect.gen(function* () {
      yield* store.append(commit(id, yield* store.claim(id, agent), mixed, snapshotAt(6)))
      yield* store.prune(id, 3)
      yield* refusal("the read", store.events(id, 0, 100), "Pruned")
      yield* refusal("a read of one", store.events(id, 1, 1), "Pruned")
      yield* same("the first event left after all", yield* store.prune(id, 100), 5)
      yield* refusal("a read of nothing that is left", store.events(id, 3, 100), "Pruned")
      yield* same("a read from the end", yield* store.events(id, 4, 100), [])
    })
  ),
  define("a read that starts before a prune is told where what is left begins, whatever its limit", ({ id, store }) =>
    Effect.gen(function* () {
      yield* store.append(commit(id, yield* store.claim(id, agent), events(1, 10), snapshotAt(10)))
      yield* store.prune(id, 5)
      for (const limit of [1, 3, 4, 5, 100]) {
        const reason = yield* refusal(`a read of ${limit}`, store.events(id, 0, limit), "Pruned")
        yield* same(`what a read of ${limit} is told`, reason, { _tag: "Pruned", first: 5 })
      }
      yield* same("a read from there", yield* store.events(id, 4, 2), events(5, 2))
    })
  ),
  define("a prune never deletes what a new owner has to fold", ({ id, store }) =>
    Effect.gen(function* () {
      const first = yield* store.claim(id, agent)
      yield* store.append(commit(id, first, events(1, 3)))
      yield* same("the first event left without a snapshot", yield* store.prune(id, 100), 1)
      yield* store.append(commit(id, first, events(4, 2), snapshotAt(2)))
      yield* same("the first event left", yield* store.prune(id, 100), 3)
      const owner = yield* store.claim(id, agent)
      yield* same("the entries", owner.entries, events(3, 3))
      yield* store.append(commit(id, owner, [event(6)]))
    })
  ),
  define("a session goes on after all its events were pruned", ({ id, store }) =>
    Effect.gen(function* () {
      const first = yield* store.claim(id, agent)
      yield* store.append(commit(id, first, events(1, 3), snapshotAt(3)))
      yield* same("the first event left", yield* store.prune(id, 100), 4)
      const owner = yield* store.claim(id, agent)
      yield* same("the end", [owner.position, owner.sequence, owner.entries.length], [3, 3, 0])
      yield* store.append(commit(id, owner, [event(4)]))
      yield* same("the events", yield* store.events(id, 3, 10), [event(4)])
    })
  )
]
