/** The commit lane and its readers: numbering, folding, live events, trimming and ends. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { type Event, type Ids, Input, SessionStore } from "../../src/index.ts"
import { EventLog } from "../../src/ledger/EventLog.ts"
import { Journal, type Stored } from "../../src/ledger/Journal.ts"
import { Projection } from "../../src/ledger/Projection.ts"
import { TestClock } from "effect/testing"

const id = "ses_journal" as Ids.SessionId
const generation = "gen_1" as Ids.GenerationId

const over = Effect.fnUntraced(function* (stored: Stored | undefined) {
  const clock = yield* Clock.Clock
  const dispatcher = yield* Effect.withFiber((fiber) => Effect.succeed(fiber.currentDispatcher))
  const services = yield* Effect.context<never>()
  const projection = new Projection([])
  return new Journal({ sessionId: id, clock, dispatcher, services, projection, stored })
})
const make = over(undefined)

const idle = { type: "session.idle" } as const
const delta = (text: string): Event.Body => ({ type: "text.delta", generation_id: generation, request: 1, text })
const many = (count: number): ReadonlyArray<Event.Body> => Array.from({ length: count }, () => ({ ...idle }))

/** `4`, or `4.17` for the live event 17 after the fourth. */
const mark = (event: Event.SessionEvent) =>
  event.live === undefined ? `${event.sequence}` : `${event.sequence}.${event.live}`

/** Lets every fiber that has been rung take its turn. */
const settle = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })

/** Collects in a fiber until the scope closes; answers what came so far. */
const follow = (journal: Journal, after = 0) =>
  Effect.gen(function* () {
    const got: Array<string> = []
    const fiber = yield* Effect.forkScoped(
      Stream.runForEach(journal.stream(after), (event) => Effect.sync(() => void got.push(mark(event)))),
      { startImmediately: true }
    )
    return { got, fiber }
  })

describe("L-R7 a commit whose fold goes wrong", () => {
  it.effect("L-A7 L-R7 loses the session, answers whoever waits, and gives back what was reserved for them", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const store = yield* Effect.provide(SessionStore.SessionStore, SessionStore.layerMemory)
      const { epoch, position } = yield* store.claim(id, "fixture")
      const waiting = {
        ...store,
        append: (commit: SessionStore.Append) => Effect.andThen(Deferred.await(gate), store.append(commit))
      }
      const journal = yield* over({ store: waiting, epoch, position, snapshot: 0 })
      const given: Array<string> = []
      const first = yield* Effect.forkChild(journal.commit([{ ...idle }]), { startImmediately: true })
      const broken = journal.commit([{ ...idle }], {
        applied: () => {
          throw new Error("no")
        }
      })
      const after = journal.commit([{ ...idle }], { failed: () => void given.push("back") })
      const answers = yield* Effect.forkChild(Effect.all([Effect.exit(broken), Effect.exit(after)]), {
        startImmediately: true
      })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      assert.isTrue((yield* Fiber.join(answers)).every(Exit.isFailure))
      assert.deepStrictEqual(given, ["back"])
      assert.strictEqual(journal.lost?._tag, "StorageUnavailable")
    })
  )
})

describe("L-R2 a snapshot that cannot be had", () => {
  const written = Effect.gen(function* () {
    const store = yield* Effect.provide(SessionStore.SessionStore, SessionStore.layerMemory)
    const { epoch, position } = yield* store.claim(id, "fixture")
    const appends: Array<SessionStore.Append> = []
    const watched = {
      ...store,
      append: (commit: SessionStore.Append) =>
        Effect.andThen(
          Effect.sync(() => appends.push(commit)),
          store.append(commit)
        )
    }
    return { appends, journal: yield* over({ store: watched, epoch, position, snapshot: 0 }) }
  })
  const taken = (appends: ReadonlyArray<SessionStore.Append>) =>
    appends.flatMap(({ snapshot }) => snapshot?.position ?? [])

  it.effect("L-R2 L-R7 costs no commit, and is tried again later", () =>
    Effect.gen(function* () {
      const { appends, journal } = yield* written
      const fold = Object.defineProperty(journal.projection, "turns", {
        configurable: true,
        get: () => {
          throw new RangeError("Invalid string length")
        }
      })
      for (let n = 0; n < 3; n++) yield* journal.commit(many(1000))
      assert.deepStrictEqual([journal.lost, journal.sequence, taken(appends)], [undefined, 3000, []])
      Object.defineProperty(fold, "turns", { value: [] })
      for (let n = 0; n < 2; n++) yield* journal.commit(many(1000))
      assert.deepStrictEqual(taken(appends), [3000, 4000])
    })
  )

  it.effect("L-R2 one too long to be worth reading is none", () =>
    Effect.gen(function* () {
      const { appends, journal } = yield* written
      const input = Input.followUp("x".repeat(65 * 2 ** 20), { id: "large" })
      yield* journal.commit([journal.accepted(input, null, null, "new_turn")])
      for (let n = 0; n < 2; n++) yield* journal.commit(many(1000))
      assert.deepStrictEqual([journal.lost, taken(appends)], [undefined, []])
    })
  )
})

describe("L-V1 committing", () => {
  it.effect("L-V1 a commit is numbered and folded before it returns", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* TestClock.setTime(1234)
      yield* journal.commit([{ type: "generation.started", generation_id: generation, ...starts }, { ...idle }])
      assert.strictEqual(journal.sequence, 2)
      assert.strictEqual(journal.projection.active?.id, generation)
      const events = yield* Stream.runCollect(Stream.take(journal.stream(0), 2))
      assert.deepStrictEqual(
        events.map(({ sequence, session_id, time }) => [session_id, sequence, time]),
        [
          [id, 1, 1234],
          [id, 2, 1234]
        ]
      )
    })
  )

  it.effect("L-V1 records take no sequence and are in no reader's stream", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* journal.commit([
        { type: "generation.started", generation_id: generation, ...starts },
        { record: "write-begun", generation_id: generation, input_ids: [] },
        { ...idle }
      ])
      assert.strictEqual(journal.sequence, 2)
      const events = yield* Stream.runCollect(Stream.take(journal.stream(0), 2))
      assert.deepStrictEqual(events.map(mark), ["1", "2"])
    })
  )

  it.effect("L-V3 a commit runs no reader in its own step", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const { got } = yield* follow(journal)
      yield* settle
      yield* journal.commit([{ ...idle }])
      assert.deepStrictEqual(got, [])
      yield* settle
      assert.deepStrictEqual(got, ["1"])
    }).pipe(Effect.scoped)
  )
})

const starts = { initial_input_id: "p1" as Ids.InputId, input_ids: ["p1" as Ids.InputId] }

describe("L-V2 reading", () => {
  it.effect("L-V2 more events than are handed over at once come all, once and in order", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* journal.commit(many(10_000))
      const events = yield* Stream.runCollect(Stream.take(journal.stream(1), 9_999))
      assert.isTrue(events.every((event, index) => event.sequence === index + 2))
    })
  )

  it.effect("L-V2 replaying and following are one read: commits between any two pulls come once", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* journal.commit(many(3))
      const read: Array<number> = []
      yield* Stream.runForEach(Stream.take(journal.stream(0), 30), (event) => {
        read.push(event.sequence)
        return event.sequence % 3 === 0 ? journal.commit(many(3)) : Effect.void
      })
      assert.deepStrictEqual(
        read,
        Array.from({ length: 30 }, (_, index) => index + 1)
      )
    })
  )

  it.effect("L-V2 a start beyond the end waits for what is later than it", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const { got } = yield* follow(journal, 3)
      yield* journal.commit(many(2))
      yield* settle
      journal.log.publish(delta("x"))
      yield* settle
      yield* journal.commit(many(3))
      yield* settle
      assert.deepStrictEqual(
        got.filter((one) => !one.includes(".")),
        ["4", "5"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("L-V2 a negative start is the start", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* journal.commit(many(2))
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(journal.stream(-5), 2))).map(mark), ["1", "2"])
    })
  )
})

describe("L-V1 live events", () => {
  it.effect("L-V1 stand in their places among the journalled ones", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const { got } = yield* follow(journal)
      yield* journal.commit(many(2))
      journal.log.publish(delta("a"))
      journal.log.publish(delta("b"))
      yield* journal.commit(many(1))
      journal.log.publish(delta("c"))
      yield* settle
      assert.deepStrictEqual(got, ["1", "2", "2.0", "2.1", "3", "3.2"])
    }).pipe(Effect.scoped)
  )

  it.effect("L-V1 cost nothing and are kept nowhere when nobody reads", () =>
    Effect.gen(function* () {
      const journal = yield* make
      assert.isFalse(journal.log.observed)
      journal.log.publish(delta("lost"))
      const { got } = yield* follow(journal)
      yield* settle
      assert.isTrue(journal.log.observed)
      yield* journal.commit(many(1))
      yield* settle
      assert.deepStrictEqual(got, ["1"])
    }).pipe(Effect.scoped)
  )

  it.effect("L-V1 a reader that leaves is no longer waited for", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const scope = yield* Scope.make()
      yield* Scope.provide(follow(journal), scope)
      yield* settle
      assert.isTrue(journal.log.observed)
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(journal.log.observed)
    })
  )

  it.effect("L-V2 are never replayed to a reader that comes later, also from before them", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const first = yield* follow(journal)
      yield* settle
      yield* journal.commit(many(1))
      journal.log.publish(delta("a"))
      const second = yield* follow(journal)
      journal.log.publish(delta("b"))
      yield* settle
      assert.deepStrictEqual(first.got, ["1", "1.0", "1.1"])
      assert.deepStrictEqual(second.got, ["1", "1.1"])
    }).pipe(Effect.scoped)
  )

  it.effect("L-V1 the oldest are dropped for a slow reader, the journalled ones never", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const { got } = yield* follow(journal)
      yield* settle
      for (let i = 0; i < 5_000; i++) {
        journal.log.publish(delta("x"))
        if (i % 1_000 === 0) yield* journal.commit([{ ...idle }])
      }
      yield* settle
      const live = got.filter((one) => one.includes(".")).map((one) => Number(one.split(".")[1]))
      assert.isBelow(live.length, 5_000)
      assert.isAbove(live.length, 0)
      assert.deepStrictEqual(
        live,
        live.map((_, index) => 5_000 - live.length + index)
      )
      assert.deepStrictEqual(
        got.filter((one) => !one.includes(".")),
        ["1", "2", "3", "4", "5"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("L-V1 the index goes on after what every reader has passed was let go", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const { got } = yield* follow(journal)
      yield* settle
      for (let i = 0; i < 1_000; i++) {
        journal.log.publish(delta("x"))
        if (i % 100 === 99) yield* settle
      }
      assert.deepStrictEqual(
        got,
        Array.from({ length: 1_000 }, (_, index) => `0.${index}`)
      )
    }).pipe(Effect.scoped)
  )

  it.effect("L-V1 a fast reader beside a slow one gets every live event", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const stuck = yield* Effect.forkScoped(
        Stream.runForEach(journal.stream(0), () => Effect.never),
        { startImmediately: true }
      )
      const { got } = yield* follow(journal)
      yield* settle
      for (let i = 0; i < 6_000; i++) {
        journal.log.publish(delta("x"))
        if (i % 100 === 99) yield* settle
      }
      yield* settle
      assert.strictEqual(got.length, 6_000)
      yield* Fiber.interrupt(stuck)
    }).pipe(Effect.scoped)
  )
})

describe("L-V2 ends", () => {
  it.effect("L-V2 a closed journal ends its readers after everything in it, those that come later too", () =>
    Effect.gen(function* () {
      const journal = yield* make
      const early = yield* Effect.forkChild(Stream.runCollect(journal.stream(0)), { startImmediately: true })
      yield* settle
      yield* journal.commit(many(2))
      journal.end("closed")
      assert.deepStrictEqual((yield* Fiber.join(early)).map(mark), ["1", "2"])
      assert.deepStrictEqual((yield* Stream.runCollect(journal.stream(1))).map(mark), ["2"])
    })
  )

  it.effect("L-V2 any other end is a typed failure, after everything in it", () =>
    Effect.gen(function* () {
      const journal = yield* make
      yield* journal.commit(many(2))
      journal.end({ _tag: "OwnerLost" })
      const got: Array<string> = []
      const error = yield* Effect.flip(
        Stream.runForEach(journal.stream(0), (event) => Effect.sync(() => void got.push(mark(event))))
      )
      assert.deepStrictEqual([got, error.reason._tag, error.sessionId], [["1", "2"], "OwnerLost", id])
    })
  )
})

/** Events 1 to 5, which were there before the log began. */
const old = Array.from({ length: 5 }, (_, index): Event.SessionEvent => ({
  type: "session.idle",
  session_id: id,
  sequence: index + 1,
  time: 0
}))

/** A log that begins after them; what is before `first` has been pruned. */
const reopened = (first: number) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const dispatcher = yield* Effect.withFiber((fiber) => Effect.succeed(fiber.currentDispatcher))
    const log = new EventLog({ sessionId: id, clock, dispatcher, projection: { sequence: old.length } })
    log.append({ type: "session.closed", session_id: id, sequence: 6, time: 0 })
    const past = (after: number, until: number, limit: number) =>
      Effect.succeed(
        old.filter(({ sequence }) => sequence >= first && sequence > after && sequence <= until).slice(0, limit)
      )
    return (after: number) => log.stream(after, past)
  })

describe("L-V2 the past", () => {
  it.effect("L-V2 what is in the store and what is here are one sequence without a seam", () =>
    Effect.gen(function* () {
      const read = yield* reopened(1)
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(read(0), 6))).map(mark), [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6"
      ])
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(read(3), 3))).map(mark), ["4", "5", "6"])
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(read(5), 1))).map(mark), ["6"])
    })
  )

  it.effect("L-V2 a start before what was pruned fails typed and says where the events begin", () =>
    Effect.gen(function* () {
      const read = yield* reopened(4)
      const error = yield* Effect.flip(Stream.runDrain(read(1)))
      assert.deepStrictEqual(error.reason, { _tag: "EventsPruned", first: 4 })
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(read(3), 3))).map(mark), ["4", "5", "6"])
    })
  )

  it.effect("L-V2 where everything before is gone the same is said", () =>
    Effect.gen(function* () {
      const read = yield* reopened(99)
      const error = yield* Effect.flip(Stream.runDrain(read(0)))
      assert.deepStrictEqual(error.reason, { _tag: "EventsPruned", first: 6 })
    })
  )
})
