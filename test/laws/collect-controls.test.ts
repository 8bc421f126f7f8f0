/** F8 and F9: taking a queued input back, and turning a queued follow-up into steering of the running generation. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, type Harness, inputId, open, types, userTexts } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"
import { duringRequest, duringTool, receipts, report, seen, trace, withLimits, words } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const accepted = { accepted: true } as const
const refused = (reason: "not-queued" | "unknown-id") => ({ accepted: false, reason }) as const

const idle = open({ script: (request) => ScriptedModel.text(`answer ${request.index}`) })
const settle = TestClock.adjust("1 minute")
const followUp = (h: Harness, id: string, options?: Input.Options) =>
  h.session.submit(Input.followUp(`follow-up ${id}`, { id, ...options }))
const withdraw = (h: Harness, id: string) => h.session.withdraw(inputId(id))

describe("L-F8 withdrawing", () => {
  on("L-F8 a queued follow-up is held(withdrawn), and starts nothing", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* followUp(h, "g")
      assert.deepStrictEqual(yield* withdraw(h, "f"), accepted)
      assert.deepStrictEqual(yield* receipts(h, "f", "g"), ["held withdrawn", "queued"])
      yield* h.go
      yield* settle
      assert.deepStrictEqual(userTexts(h.model.requests.at(-1)), ["do it", "follow-up g"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 a queued collect is held(withdrawn), and the session is idle again", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* h.session.submit(Input.collect("c", { id: "c" }))
      assert.deepStrictEqual(yield* withdraw(h, "c"), accepted)
      yield* h.session.awaitIdle.pipe(Effect.orDie)
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "c"), ["held withdrawn"])
      assert.strictEqual(h.model.requests.length, 0)
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("go"))), "queued")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 the withdrawal is told as held, asked by the user, and the content is kept", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* withdraw(h, "f")
      const [event] = ofType(yield* h.events, "steering.held")
      assert.deepStrictEqual(
        [event?.input_id, event?.target_generation_id, event?.reason, event?.cause],
        [inputId("f"), null, "withdrawn", "user"]
      )
      const [held] = yield* h.session.held
      assert.deepStrictEqual([held?.input.content, held?.status.reason], ["follow-up f", "withdrawn"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 during a pause it is taken back too, and the resume does not start it", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* h.session.pause()
      yield* followUp(h, "f")
      assert.deepStrictEqual(yield* withdraw(h, "f"), accepted)
      yield* h.session.resume()
      yield* settle
      assert.strictEqual(h.model.requests.length, 0)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 a second time it is refused, and the receipt stands", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* withdraw(h, "f")
      const before = yield* trace(h, "f")
      assert.deepStrictEqual(yield* withdraw(h, "f"), refused("not-queued"))
      assert.deepStrictEqual(yield* trace(h, "f"), before)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 steering never may: pending, it is refused and delivered all the same", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.steer(h.id, "anchored", { id: "s" })
      yield* h.session.submit(Input.steer("ordinary", { id: "o" }))
      assert.deepStrictEqual(yield* withdraw(h, "s"), refused("not-queued"))
      assert.deepStrictEqual(yield* withdraw(h, "o"), refused("not-queued"))
      yield* h.go
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* receipts(h, "s", "o"), ["applied in 2", "applied in 2"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 steering never may: one that waits to start a generation is refused too", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* h.session.pause()
      yield* h.session.submit(Input.steer("later", { id: "s" }))
      assert.deepStrictEqual(yield* withdraw(h, "s"), refused("not-queued"))
      yield* h.session.resume()
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 what has started is not undone: a prompt and a follow-up in their generation are refused", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest({ after: [ScriptedModel.hang] })
      assert.deepStrictEqual(yield* withdraw(h, "p"), refused("not-queued"))
      yield* followUp(h, "f")
      yield* h.go
      yield* seen(h, "request.started", 2)
      assert.deepStrictEqual(yield* withdraw(h, "f"), refused("not-queued"))
      assert.deepStrictEqual(yield* receipts(h, "p", "f"), ["applied in 1", "applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F8 an id that was never accepted is refused, and not burned", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      assert.deepStrictEqual(yield* withdraw(h, "f"), refused("unknown-id"))
      assert.strictEqual(words(yield* followUp(h, "f")), "queued")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F9 promoting", () => {
  on("L-F9 the follow-up is held(promoted) and the steer queued, in one commit", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      const receipt = yield* h.session.promote(inputId("f"), h.id, inputId("s"))
      assert.deepStrictEqual([receipt.inputId, words(receipt), receipt.generationId], ["s", "queued", h.id])
      assert.deepStrictEqual(yield* receipts(h, "f", "s"), ["held promoted", "queued"])
      assert.deepStrictEqual((yield* h.session.status).queuedInputIds, [])
      assert.deepStrictEqual(types(yield* h.events).slice(-3), ["steering.held", "input.accepted", "steering.accepted"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 the steer goes into the next request of the running generation, and the follow-up starts none", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* h.session.promote(inputId("f"), h.id, inputId("s"))
      yield* h.go
      yield* report(h, h.id)
      yield* settle
      assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "follow-up f"])
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      assert.strictEqual(h.model.requests.length, 2)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 the new input names the old one, and keeps its content and author", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f", { author: "ann" })
      yield* h.session.promote(inputId("f"), h.id, inputId("s"))
      yield* h.session.cancel(h.id)
      yield* report(h, h.id)
      const found = (yield* h.session.held).find(({ input }) => input.id === "s")?.input
      assert.deepStrictEqual(
        [found?.derivedFrom, found?.intent, found?.content, found?.author],
        [inputId("f"), "steer", "follow-up f", "ann"]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 without a new id one is made", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      const receipt = yield* h.session.promote(inputId("f"), h.id)
      assert.strictEqual(words(receipt), "queued")
      assert.notStrictEqual(receipt.inputId, "f")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 a promoted steer withholds calls not yet launched, as any other", () =>
    Effect.gen(function* () {
      const h = yield* duringTool({ calls: ["edit", "look"] })
      yield* followUp(h, "f")
      yield* h.session.promote(inputId("f"), h.id, inputId("s"))
      yield* h.go
      const status = (yield* report(h, h.id)).tools[1]?.status
      assert.deepStrictEqual(status, { _tag: "NotStarted", reason: "steering", inputIds: [inputId("s")] })
    }).pipe(Effect.scoped, runtime)
  )

  for (const as of [undefined, "s"]) {
    const which = as === undefined ? "without an id" : "under an id"
    on(`L-F9 the same promote again, ${which}, returns its receipt as it stands, and adds nothing`, () =>
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* followUp(h, "f")
        const promote = h.session.promote(inputId("f"), h.id, as === undefined ? undefined : inputId(as))
        const first = yield* promote
        const before = yield* trace(h, "f")
        assert.deepStrictEqual(yield* promote, first)
        assert.deepStrictEqual(yield* trace(h, "f"), before)
        yield* h.go
        yield* report(h, h.id)
        const after = yield* promote
        assert.deepStrictEqual([after.inputId, words(after)], [first.inputId, "applied in 2"])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-F9 the same promote again returns its own receipt, not that of another steer that names the follow-up", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* h.steer(h.id, "about f", { id: "other", derivedFrom: "f" })
      const first = yield* h.session.promote(inputId("f"), h.id, inputId("s"))
      assert.deepStrictEqual(yield* h.session.promote(inputId("f"), h.id, inputId("s")), first)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F9 a promote that is refused", () => {
  /** Promotes `f` of a session in which it is queued, and finds it refused with everything as it was. */
  const refuses = (h: Harness, generation: string, reason: string, as = "s") =>
    Effect.gen(function* () {
      const before = yield* trace(h, "f")
      const other = yield* trace(h, as)
      const receipt = yield* h.session.promote(inputId("f"), generationId(generation), inputId(as))
      assert.strictEqual(words(receipt), `refused ${reason}`)
      assert.deepStrictEqual(yield* trace(h, "f"), before)
      assert.deepStrictEqual(yield* trace(h, as), other)
    })

  on("L-F9 for a generation that never was leaves both as they were", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* refuses(h, "gen_other_1", "generation-mismatch")
      assert.strictEqual(words(yield* h.session.promote(inputId("f"), h.id, inputId("s"))), "queued")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 while nothing runs leaves both as they were", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      yield* h.go
      yield* report(h, h.id)
      yield* followUp(h, "f")
      yield* settle
      yield* refuses(h, h.id, "no-active-generation")
      yield* h.session.resume()
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 after admission has closed leaves both as they were, and the follow-up starts by itself", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* h.session.stop(h.id)
      yield* refuses(h, h.id, "admission-closed")
      yield* h.go
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 with too much steering pending leaves both as they were", () =>
    Effect.gen(function* () {
      const h = yield* withLimits({ pendingSteering: 1 }, duringRequest())
      yield* followUp(h, "f")
      yield* h.steer(h.id, "one", { id: "one" })
      yield* refuses(h, h.id, "queue-full")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 with no identity left leaves both as they were", () =>
    Effect.gen(function* () {
      const h = yield* withLimits({ identities: 2 }, duringRequest())
      yield* followUp(h, "f")
      yield* refuses(h, h.id, "identities-exhausted")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 of an agent without live steering leaves both as they were", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest({ agent: { steering: "unavailable" } })
      yield* followUp(h, "f")
      yield* refuses(h, h.id, "unavailable")
    }).pipe(Effect.scoped, runtime)
  )

  for (const as of ["p", "f", "g"]) {
    on(`L-F9 under an id that was accepted before (${as}) leaves both as they were`, () =>
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* followUp(h, "f")
        yield* followUp(h, "g")
        yield* refuses(h, h.id, "identity-conflict", as)
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-F9 of anything but a queued follow-up changes nothing", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.submit(Input.collect("c", { id: "c" }))
      yield* h.steer(h.id, "s", { id: "s" })
      const before = yield* trace(h, "c")
      for (const id of ["c", "s", "p"]) {
        assert.strictEqual(words(yield* h.session.promote(inputId(id), h.id)), "refused not-queued")
      }
      assert.strictEqual(words(yield* h.session.promote(inputId("never"), h.id)), "refused unknown-id")
      assert.deepStrictEqual(yield* trace(h, "c"), before)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F9 of a follow-up that was withdrawn changes nothing", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* followUp(h, "f")
      yield* withdraw(h, "f")
      yield* refuses(h, h.id, "not-queued")
    }).pipe(Effect.scoped, runtime)
  )
})
