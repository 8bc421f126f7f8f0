/** A7: what was not written was not promised, and what cannot be told is said to be untold. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { reserved, writing } from "../support/admissions.ts"
import { fork, open } from "../support/harness.ts"
import { duringRequest, receipts, report, seen, trace, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const id = Stores.sessionId

describe("L-A7 the write does not succeed", () => {
  law("L-A7 a certain failure refuses storage-unavailable, leaves no trace, and the session goes on", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        const before = yield* trace(h, "s1")
        Stores.once(store, "steering.accepted", Stores.unavailable)
        assert.strictEqual(words(yield* h.steer(h.id, "s1", { id: "s1" })), "refused storage-unavailable")
        assert.deepStrictEqual(yield* trace(h, "s1"), before)
        assert.strictEqual(words(yield* h.steer(h.id, "now with other words", { id: "s1" })), "queued")
        yield* h.go
        assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
      })
    )
  )

  for (const make of [Input.prompt, Input.followUp, Input.collect, Input.steer]) {
    law(`L-A7 a certain failure refuses an ordinary ${make("x").intent} and burns no id`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* open({ id, script: [ScriptedModel.text("one")] })
          Stores.once(store, "input.accepted", Stores.unavailable)
          const input = make("x", { id: "x" })
          assert.strictEqual(words(yield* h.session.submit(input)), "refused storage-unavailable")
          assert.strictEqual(words(yield* h.receipt("x")), "none")
          assert.isTrue((yield* h.session.submit(input)).accepted)
        })
      )
    )
  }

  law("L-A7 not told, but landed: it is accepted", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        Stores.once(store, "steering.accepted", Stores.landsUnconfirmed)
        assert.strictEqual(words(yield* h.steer(h.id, "s1", { id: "s1" })), "queued")
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "s1"), ["applied in 2"])
      })
    )
  )

  law("L-A7 not told, and not landed: it is refused, and the session goes on", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        Stores.once(store, "steering.accepted", Stores.vanishes)
        assert.strictEqual(words(yield* h.steer(h.id, "s1", { id: "s1" })), "refused storage-unavailable")
        yield* h.go
        assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
      })
    )
  )

  law("L-A7 it is read back before anything else is written", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* duringRequest({ id })
        const order: Array<string> = []
        store.position = (read) =>
          Effect.andThen(
            Effect.sync(() => void order.push("position")),
            read
          )
        const hold = Stores.hold(store, "steering.accepted", Stores.landsUnconfirmed)
        const first = yield* writing(hold, h.steer(h.id, "s1", { id: "s1" }))
        const second = yield* fork(h.steer(h.id, "s2", { id: "s2" }))
        store.fate = (land) =>
          Effect.andThen(
            Effect.sync(() => void order.push("append")),
            land
          )
        yield* first.release
        yield* Fiber.join(first.caller)
        yield* Fiber.join(second)
        assert.deepStrictEqual(order, ["position", "append"])
      })
    )
  )

  for (const [how, fate, after] of [
    ["landed", Stores.landsUnconfirmed, "held process-lost"],
    ["not landed", Stores.vanishes, "none"]
  ] as const) {
    law(
      `L-A7 not told and not readable: the detail is unconfirmed, and after reopening (${how}) the truth is told`,
      () =>
        Effect.gen(function* () {
          const disk = yield* Stores.disk
          const store = Stores.watch(disk)
          const generation = yield* Stores.over(
            store.service,
            Effect.gen(function* () {
              const h = yield* duringRequest({ id })
              Stores.once(store, "steering.accepted", fate)
              store.position = () => Stores.fails({ _tag: "Unavailable", detail: "still down" })
              const receipt = yield* h.steer(h.id, "s1", { id: "s1" })
              assert.strictEqual(words(receipt), "refused storage-unavailable")
              assert.include(receipt.accepted ? "" : (receipt.detail ?? ""), "unconfirmed")
              assert.strictEqual((yield* Effect.flip(h.session.await(h.id)))._tag, "SessionError")
              return h.id
            })
          )
          const again = yield* Stores.boot(disk, { script: [ScriptedModel.text("later")] })
          assert.strictEqual(words(yield* again.receipt("s1")), after)
          const repeated = yield* again.steer(generation, "s1", { id: "s1" })
          assert.strictEqual(words(repeated), how === "landed" ? after : "refused no-active-generation")
        })
    )
  }

  law("L-A7 interrupting the caller changes nothing: it is admitted and delivered", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* reserved(store)
        yield* Fiber.interrupt(h.caller)
        yield* h.go
        yield* h.release
        assert.strictEqual((yield* report(h, h.id)).requests, 2)
        assert.deepStrictEqual(yield* receipts(h, "s1"), ["applied in 2"])
      })
    )
  )

  law("L-A7 interrupting the caller of a prompt changes nothing: its generation runs", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* open({ id, script: [ScriptedModel.text("one")] })
        const prompt = h.session.submit(Input.prompt("one", { id: "p" }))
        const submitted = yield* writing(Stores.hold(store, "input.accepted"), prompt)
        yield* Fiber.interrupt(submitted.caller)
        yield* submitted.release
        yield* seen(h, "generation.finished")
        assert.deepStrictEqual(yield* receipts(h, "p"), ["applied in 1"])
      })
    )
  )
})
