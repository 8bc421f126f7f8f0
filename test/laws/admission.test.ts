import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Input, type Limits, type Receipt } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, inputId, open, types, userTexts } from "../support/harness.ts"
import {
  duringRequest,
  duringTool,
  type Gated,
  receipts,
  report,
  run,
  seen,
  trace,
  withLimits,
  words
} from "../support/scenes.ts"

describe("L-A1 the capability", () => {
  it.effect("L-A1 is exactly version, mode, cancellable and submit", () =>
    run(
      Effect.gen(function* () {
        const { session } = yield* open({ script: [] })
        const { submit, ...rest } = session.capability("live.steering")
        assert.deepStrictEqual(rest, { version: 1, mode: "request_boundary", cancellable: false })
        assert.isFunction(submit)
      })
    )
  )

  it.effect("L-A1 an ordinary steer to an idle session still starts a generation", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("hello")] })
        h.session.capability("live.steering")
        const receipt = yield* h.session.submit(Input.steer("hello"))
        assert.strictEqual(receipt.accepted && receipt.delivery, "new_turn")
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )

  it.effect("L-A1 an ordinary steer to a running generation still joins its next request", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const receipt = yield* h.session.submit(Input.steer("also this", { id: "s" }))
        assert.deepStrictEqual(receipt, {
          accepted: true,
          inputId: inputId("s"),
          generationId: h.id,
          disposition: "queued",
          delivery: "request_boundary"
        })
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "also this"])
      })
    )
  )

  it.effect("L-A1 case 7: an anchored steer after the end starts nothing: no generation, no request", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        const id = yield* h.prompt("do it")
        yield* report(h, id)
        assert.strictEqual(words(yield* h.steer(id, "too late")), "refused no-active-generation")
        yield* h.session.awaitIdle
        assert.isTrue(Option.isNone(yield* h.session.generation))
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )
})

describe("L-A2 the order of the checks", () => {
  it.effect("L-A2 shape comes before identity: a known id with blank text is invalid-input", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "first", { id: "s" })
        assert.strictEqual(words(yield* h.steer(h.id, "  ", { id: "s" })), "refused invalid-input")
      })
    )
  )

  it.effect("L-A2 identity comes before the anchor: another text to a wrong generation is identity-conflict", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "first", { id: "s" })
        const receipt = yield* h.steer(generationId("gen_none"), "second", { id: "s" })
        assert.strictEqual(words(receipt), "refused identity-conflict")
      })
    )
  )

  it.effect("L-A2 identity comes before closure: a known id after the close gets its receipt", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "first", { id: "s" })
        yield* h.session.stop(h.id)
        assert.strictEqual(words(yield* h.steer(h.id, "first", { id: "s" })), "held generation-stopped")
      })
    )
  )

  it.effect("L-A2 identity comes before capacity: a full ledger still answers for what it holds", () =>
    run(
      Effect.gen(function* () {
        const h = yield* withLimits({ identities: 2, pendingSteering: 1 }, duringRequest())
        yield* h.steer(h.id, "first", { id: "s" })
        assert.strictEqual(words(yield* h.steer(h.id, "first", { id: "s" })), "queued")
        assert.strictEqual(words(yield* h.steer(h.id, "other", { id: "s" })), "refused identity-conflict")
      })
    )
  )

  for (const [name, limits] of [
    ["ledger", { identities: 1 }],
    ["queue", { pendingSteering: 0 }]
  ] as const) {
    it.effect(`L-A2 the anchor comes before capacity: with a full ${name} a wrong generation is a mismatch`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* withLimits(limits, duringRequest())
          assert.strictEqual(words(yield* h.steer(generationId("gen_none"), "x")), "refused generation-mismatch")
        })
      )
    )

    it.effect(`L-A2 closure comes before capacity: with a full ${name} a closing generation says so`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* withLimits(limits, duringRequest())
          yield* h.session.stop(h.id)
          assert.strictEqual(words(yield* h.steer(h.id, "x")), "refused admission-closed")
        })
      )
    )

    it.effect(`L-A2 mode comes before capacity: with a full ${name} an unavailable session says so`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* withLimits(limits, duringRequest({ agent: { steering: "unavailable" } }))
          assert.strictEqual(words(yield* h.steer(h.id, "x")), "refused unavailable")
        })
      )
    )
  }

  it.effect("L-A2 identity comes before mode: an id known to an unavailable session is a conflict", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { steering: "unavailable" } })
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "p" })), "refused identity-conflict")
      })
    )
  )

  const refusals: ReadonlyArray<
    readonly [
      reason: Receipt.RefusalReason,
      limits: Partial<Limits.Limits>,
      cause: (h: Gated) => Effect.Effect<Receipt.Receipt>
    ]
  > = [
    ["invalid-input", {}, (h) => h.steer(h.id, "\0", { id: "s" })],
    ["generation-mismatch", {}, (h) => h.steer(generationId("gen_none"), "first", { id: "s" })],
    ["identities-exhausted", { identities: 1 }, (h) => h.steer(h.id, "first", { id: "s" })],
    ["queue-full", { pendingSteering: 0 }, (h) => h.steer(h.id, "first", { id: "s" })],
    ["busy", {}, (h) => h.session.submit(Input.prompt("first", { id: "s" }))]
  ]
  for (const [reason, limits, cause] of refusals) {
    it.effect(`L-A2 a submission refused ${reason} (${JSON.stringify(limits)}) leaves no trace`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* withLimits(limits, duringRequest())
          const before = yield* trace(h, "s")
          assert.strictEqual(words(yield* cause(h)), `refused ${reason}`)
          assert.deepStrictEqual(yield* trace(h, "s"), before)
        })
      )
    )
  }

  it.effect("L-A2 case 21: a refused id is not burned: the same id is accepted later, with any content", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "", { id: "s" })
        yield* h.steer(generationId("gen_none"), "one", { id: "s" })
        yield* h.session.submit(Input.prompt("two", { id: "s" }))
        assert.strictEqual(words(yield* h.steer(h.id, "three", { id: "s" })), "queued")
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "three"])
      })
    )
  )
})

describe("L-A3 the anchor", () => {
  it.effect("L-A3 a wrong generation is refused with the expected and the actual id", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        assert.deepStrictEqual(yield* h.steer(generationId("gen_none"), "x", { id: "s" }), {
          accepted: false,
          inputId: "s",
          generationId: "gen_none",
          disposition: "refused",
          reason: "generation-mismatch",
          actual: h.id
        })
      })
    )
  )

  it.effect("L-A3 an ended generation is refused: none is active", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        const id = yield* h.prompt("do it")
        yield* report(h, id)
        assert.deepStrictEqual(yield* h.steer(id, "x", { id: "s" }), {
          accepted: false,
          inputId: "s",
          generationId: id,
          disposition: "refused",
          reason: "no-active-generation",
          actual: null
        })
      })
    )
  )

  it.effect(
    "L-A3 case 8: an ended generation is refused while the next one runs, and the next one does not see it",
    () =>
      run(
        Effect.gen(function* () {
          const h = yield* open({ script: [ScriptedModel.text("one"), ScriptedModel.hang] })
          const first = yield* h.prompt("one")
          yield* report(h, first)
          const second = yield* h.prompt("two")
          yield* seen(h, "request.started", 2)
          const receipt = yield* h.steer(first, "for the first")
          assert.strictEqual(words(receipt), "refused generation-mismatch")
          assert.strictEqual(!receipt.accepted && receipt.actual, second)
          assert.deepStrictEqual((yield* h.session.status).generation?.pendingInputIds, [])
        })
      )
  )

  it.effect("L-A3 a generation that never existed is refused by an idle session", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [] })
        const receipt = yield* h.steer(generationId("gen_never"), "x")
        assert.strictEqual(words(receipt), "refused no-active-generation")
        assert.strictEqual(receipt.generationId, "gen_never")
      })
    )
  )

  it.effect("L-A3 another session's generation is refused", () =>
    run(
      Effect.gen(function* () {
        const one = yield* duringRequest()
        const two = yield* duringRequest()
        assert.notStrictEqual(one.id, two.id)
        const receipt = yield* two.steer(one.id, "x")
        assert.strictEqual(words(receipt), "refused generation-mismatch")
        assert.strictEqual(!receipt.accepted && receipt.actual, two.id)
      })
    )
  )

  it.effect("L-A3 a closing generation is refused admission-closed", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.session.stop(h.id)
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "s" })), "refused admission-closed")
        yield* h.go
        assert.deepStrictEqual((yield* report(h, h.id)).undeliveredInputIds, [])
        assert.strictEqual(yield* Effect.map(h.receipt("s"), words), "none")
      })
    )
  )
})

describe("L-A4 a session without a boundary", () => {
  it.effect("L-A4 case 40: says so in its mode, and refuses", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { steering: "unavailable" } })
        assert.strictEqual(h.session.capability("live.steering").mode, "unavailable")
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "s" })), "refused unavailable")
        yield* h.go
        yield* report(h, h.id)
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )

  it.effect("L-A4 refuses an anchored steer when idle too", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [], agent: { steering: "unavailable" } })
        assert.strictEqual(words(yield* h.steer(generationId("gen_none"), "x")), "refused unavailable")
      })
    )
  )

  it.effect("L-A4 acknowledges nothing that no boundary will drain: an ordinary steer is not left queued", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { steering: "unavailable" } })
        yield* h.session.submit(Input.steer("x", { id: "s" }))
        yield* h.go
        yield* h.session.awaitIdle
        assert.notStrictEqual(yield* Effect.map(h.receipt("s"), words), "queued")
      })
    )
  )
})

describe("L-A5 admission is one step", () => {
  it.effect("L-A5 a steer is queued and visible before the owner has run at all", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        const id = yield* h.prompt("do it", "p")
        const receipt = yield* h.steer(id, "at once", { id: "s" })
        const { generation } = yield* h.session.status
        assert.deepStrictEqual(
          [h.model.requests.length, words(receipt), generation?.pendingInputIds],
          [0, "queued", [inputId("s")]]
        )
        yield* report(h, id)
        assert.deepStrictEqual(userTexts(h.model.requests[0]), ["do it", "at once"])
      })
    )
  )

  it.effect("L-A5 the receipt names the generation, and the journal has the admission when it is returned", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        assert.deepStrictEqual(yield* h.steer(h.id, "x", { id: "s" }), {
          accepted: true,
          inputId: inputId("s"),
          generationId: h.id,
          disposition: "queued",
          delivery: "request_boundary"
        })
        assert.deepStrictEqual(types(yield* h.events).slice(-2), ["input.accepted", "steering.accepted"])
      })
    )
  )

  it.effect("L-A5 admission wakes an engine that waits for a running tool", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringTool({ calls: ["edit", "send"] })
        yield* h.steer(h.id, "not the second", { id: "s" })
        yield* seen(h, "tool.not_started")
        assert.deepStrictEqual(h.began, ["edit"])
        assert.notInclude(types(yield* h.events), "tool.completed")
        yield* h.go
        yield* report(h, h.id)
      })
    )
  )

  it.effect("L-A5 case 2: a steer during the last response is read: one more request carries it", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "one more thing", { id: "s" })
        yield* h.go
        const { outcome, requests, text } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, requests, text], ["finished", 2, "second"])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      })
    )
  )
})
