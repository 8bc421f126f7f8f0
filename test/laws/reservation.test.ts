/** A7 and C10: what is promised is written first, and what was not written was not promised. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Event, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { followUp, isAnswered, reserved, writing } from "../support/admissions.ts"
import { fork, inputId, open, toolResults, types, userTexts } from "../support/harness.ts"
import { duringRequest, type Gated, lasting, receipts, report, seen, withLimits, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const id = Stores.sessionId

describe("L-A7 what is being written", () => {
  law("L-A7 queued is answered only when the admission is written", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store)
        assert.isFalse(yield* isAnswered(h.caller))
        assert.strictEqual(words(yield* h.receipt("s1")), "none")
        yield* h.release
        assert.strictEqual(words(yield* Fiber.join(h.caller)), "queued")
      })
    )
  )

  law("L-A7 it counts for the capacity of steering", () =>
    withLimits(
      { pendingSteering: 1 },
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* reserved(store)
          assert.strictEqual(words(yield* h.steer(h.id, "s2", { id: "s2" })), "refused queue-full")
          yield* h.release
          assert.strictEqual(words(yield* Fiber.join(h.caller)), "queued")
        })
      )
    )
  )

  law("L-A7 it counts for the capacity of identities", () =>
    withLimits(
      { identities: 2 },
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* reserved(store)
          assert.strictEqual(words(yield* followUp(h, "f1")), "refused identities-exhausted")
          yield* h.release
        })
      )
    )
  )

  law("L-A7 a follow-up counts for the capacity of the queue", () =>
    withLimits(
      { queued: 1 },
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* duringRequest({ id })
          const first = yield* writing(Stores.hold(store, "input.accepted"), followUp(h, "f1"))
          assert.strictEqual(words(yield* followUp(h, "f2")), "refused queue-full")
          yield* first.release
          assert.strictEqual(words(yield* Fiber.join(first.caller)), "queued")
        })
      )
    )
  )

  law("L-A7 a prompt makes the session busy", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* open({ id, script: [ScriptedModel.text("one"), ScriptedModel.text("two")] })
        const one = h.session.submit(Input.prompt("one", { id: "p1" }))
        const first = yield* writing(Stores.hold(store, "input.accepted"), one)
        const second = yield* h.session.submit(Input.prompt("two", { id: "p2" }))
        assert.strictEqual(words(second), "refused busy")
        yield* first.release
        assert.isTrue((yield* Fiber.join(first.caller)).accepted)
      })
    )
  )

  law("L-A7 the finish waits for it and makes no request for it until it is written", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store)
        yield* h.go
        yield* Stores.settle
        assert.notInclude(types(yield* h.events), "generation.finished")
        assert.strictEqual(h.model.requests.length, 1)
        yield* h.release
        const { outcome, requests } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, requests], ["finished", 2])
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "s1"])
        assert.strictEqual(words(yield* Fiber.join(h.caller)).split(" ")[0], "queued")
        assert.deepStrictEqual(yield* receipts(h, "s1"), ["applied in 2"])
      })
    )
  )

  law("L-A7 L-R7 refused together with somebody's wait for it: the admissions alone are, and the session goes on", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        yield* h.session.stop(h.id)
        const first = yield* writing(Stores.holdNext(store), followUp(h, "f1"))
        // Asked again, a stop waits until the first is written, with what is written next.
        const again = yield* fork(h.session.stop(h.id))
        const second = yield* fork(followUp(h, "f2"))
        store.fate = (land, commit, nth) => {
          store.fate = Stores.lands
          return Stores.unavailable(land, commit, nth)
        }
        yield* first.release
        assert.strictEqual(words(yield* Fiber.join(second)), "refused storage-unavailable")
        assert.isTrue((yield* Fiber.join(again)).accepted)
        assert.strictEqual(words(yield* followUp(h, "f3")), "queued")
        yield* h.go
        assert.strictEqual((yield* report(h, h.id)).outcome, "stopped")
      })
    )
  )

  law("L-A7 handed in while the finish is saved, and still being written when it looks: it is waited for", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        const saving = yield* Stores.hold(store, "checkpoint.saved")
        yield* h.go
        yield* saving.reached
        const submitted = yield* fork(h.steer(h.id, "s1", { id: "s1" }))
        yield* Stores.settle
        const held = yield* Stores.hold(store, "steering.accepted")
        yield* saving.release
        yield* held.reached
        yield* Stores.settle
        assert.strictEqual(h.model.requests.length, 1)
        yield* held.release
        assert.strictEqual((yield* report(h, h.id)).requests, 2)
        assert.deepStrictEqual(yield* receipts(h, "s1"), ["applied in 2"])
        assert.isTrue((yield* Fiber.join(submitted)).accepted)
      })
    )
  )

  law("L-A7 once its write has failed, the finish goes on without it", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store, Stores.unavailable)
        yield* h.go
        yield* Stores.settle
        yield* h.release
        assert.strictEqual((yield* report(h, h.id)).requests, 1)
        assert.strictEqual(words(yield* Fiber.join(h.caller)), "refused storage-unavailable")
      })
    )
  )

  law("L-A7 it withholds no tool until it is written", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const first = yield* Deferred.make<void>()
        const second = yield* Deferred.make<void>()
        const script = [
          ScriptedModel.calls(["a", "b", "c"].map((path) => ({ name: "edit", params: { path }, id: path }))),
          ScriptedModel.text("done")
        ]
        const edit = (path: string) =>
          Effect.as(path === "a" ? Deferred.await(first) : path === "b" ? Deferred.await(second) : Effect.void, path)
        const h = yield* open({ id, script, edit })
        const generation = yield* h.prompt("do it", "p")
        yield* seen(h, "tool.started")
        // The lane is one: what the calls journal waits behind the admission, so only a write of its own may be slow.
        const steer = h.steer(generation, "s1", { id: "s1" })
        const steered = yield* writing(Stores.hold(store, "steering.accepted"), steer)
        yield* Deferred.succeed(first, undefined)
        yield* Stores.settle
        assert.notInclude(types(yield* h.events), "tool.not_started")
        yield* steered.release
        assert.strictEqual(words(yield* Fiber.join(steered.caller)), "queued")
        yield* Deferred.succeed(second, undefined)
        yield* report(h, generation)
        const results = toolResults(h.model.requests[1])
        assert.deepStrictEqual(
          results.map((result) => result.isFailure),
          [false, false, true]
        )
      })
    )
  )

  law("L-A7 the same input waits for it and gets the same receipt", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store)
        const again = yield* fork(h.steer(h.id, "s1", { id: "s1" }))
        assert.isFalse(yield* isAnswered(again))
        yield* h.release
        assert.deepStrictEqual(yield* Fiber.join(again), yield* Fiber.join(h.caller))
        assert.strictEqual(store.appends.filter((each) => Stores.carries(each, "steering.accepted")).length, 1)
      })
    )
  )

  law("L-A7 the same id with other content waits for it and conflicts", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store)
        const other = yield* fork(h.steer(h.id, "something else", { id: "s1" }))
        const ordinary = yield* fork(h.session.submit(Input.steer("s1", { id: "s1" })))
        assert.isFalse(yield* isAnswered(other))
        yield* h.release
        assert.strictEqual(words(yield* Fiber.join(other)), "refused identity-conflict")
        assert.strictEqual(words(yield* Fiber.join(ordinary)), "refused identity-conflict")
      })
    )
  )

  law("L-A7 when its write fails, a submit that waited for it is admitted itself", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store, Stores.unavailable)
        const other = yield* fork(h.steer(h.id, "something else", { id: "s1" }))
        yield* h.release
        assert.strictEqual(words(yield* Fiber.join(h.caller)), "refused storage-unavailable")
        assert.strictEqual(words(yield* Fiber.join(other)), "queued")
      })
    )
  )

  law("L-A7 many submits at once share few writes", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        // As any real medium: what is handed in meanwhile shares the next write.
        store.fate = (land) => Effect.andThen(Effect.yieldNow, land)
        const before = store.appends.length
        const ids = Array.from({ length: 100 }, (_, index) => `s${index}`)
        const got = yield* Effect.forEach(ids, (name) => h.steer(h.id, name, { id: name }), {
          concurrency: "unbounded"
        })
        assert.isTrue(got.every((receipt) => receipt.accepted))
        assert.isAtMost(store.appends.length - before, 5)
        const pending = (yield* h.session.status).generation?.pendingInputIds
        assert.deepStrictEqual(pending, ids.map(inputId))
      })
    )
  )
})

const ends: ReadonlyArray<readonly [name: string, end: (h: Gated) => Effect.Effect<unknown>, held: string]> = [
  ["a stop", (h) => Effect.andThen(fork(h.session.stop(h.id)), h.go), "held generation-stopped"],
  ["a cancel", (h) => fork(h.session.cancel(h.id)), "held generation-cancelled"],
  ["a failure", (h) => h.go, "held generation-failed"]
]

describe("L-A7 admission closes while it is being written", () => {
  for (const [name, end, outcome] of ends) {
    law(`L-A7 by ${name}: it is held with that reason, and no terminal event precedes it`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const first = name === "a failure" ? ScriptedModel.fail(lasting()) : ScriptedModel.text("first")
          const h = yield* reserved(store, Stores.lands, { first })
          yield* end(h)
          assert.isFalse(yield* isAnswered(h.caller))
          yield* h.release
          assert.strictEqual(words(yield* Fiber.join(h.caller)), outcome)
          yield* report(h, h.id)
          const events = yield* h.events
          const told = types(events)
          const terminal = events.findIndex(Event.isTerminal)
          assert.isAbove(terminal, told.indexOf("steering.held"))
          assert.isAbove(told.indexOf("steering.held"), told.indexOf("steering.accepted"))
          assert.strictEqual(told.filter((type) => type === "steering.held").length, 1)
        })
      )
    )
  }

  law("L-A7 by a finish at the end of the budget: it is held for the budget", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store, Stores.lands, { agent: { maxRequests: 1 } })
        yield* h.go
        yield* Stores.settle
        yield* h.release
        assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
        assert.deepStrictEqual(yield* receipts(h, "s1"), ["held budget-exhausted"])
      })
    )
  )

  law("L-A7 and its write fails: it is refused, and the generation ends without it", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store, Stores.unavailable)
        // Handed to the lane behind the write that fails.
        const cancelled = yield* fork(h.session.cancel(h.id))
        yield* h.release
        assert.strictEqual(words(yield* Fiber.join(h.caller)), "refused storage-unavailable")
        assert.deepStrictEqual(yield* Fiber.join(cancelled), { accepted: true })
        const { outcome, undeliveredInputIds } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, undeliveredInputIds], ["cancelled", []])
      })
    )
  )
})
