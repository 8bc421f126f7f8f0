import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Event, type Generation, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { inputId, types, userTexts } from "../support/harness.ts"
import { cancelledInDoubt } from "../support/contexts-doubt.ts"
import { duringRequest, lasting, receipts, report, run, seen } from "../support/scenes.ts"

describe("L-E4 the terminal event", () => {
  const ways: ReadonlyArray<readonly [outcome: Generation.Outcome, options: Parameters<typeof duringRequest>[0]]> = [
    ["finished", { agent: { maxRequests: 2 } }],
    ["failed", { after: [ScriptedModel.fail(lasting())] }],
    ["stopped", {}],
    ["cancelled", { after: [ScriptedModel.hang] }],
    ["exhausted", { after: [ScriptedModel.call("look", { path: "a" })], agent: { maxRequests: 2 } }]
  ]
  for (const [outcome, { after = [ScriptedModel.text("second")], ...options } = {}] of ways) {
    it.effect(`L-E4 ${outcome} is told once, after every receipt is settled, with the ids apart`, () =>
      run(
        Effect.gen(function* () {
          const gate = yield* Deferred.make<void>()
          const steps = after.map((step) => ScriptedModel.wait(Deferred.await(gate), step))
          const h = yield* duringRequest({ ...options, after: steps })
          yield* h.steer(h.id, "delivered", { id: "s1" })
          yield* h.go
          yield* seen(h, "request.started", 2)
          yield* h.steer(h.id, "undelivered", { id: "s2" })
          if (outcome === "stopped") yield* h.session.stop(h.id)
          if (outcome === "cancelled") yield* h.session.cancel(h.id)
          yield* Deferred.succeed(gate, undefined)
          yield* report(h, h.id)
          const events = yield* h.events
          const ends = events.filter(Event.isTerminal)
          assert.deepStrictEqual(
            ends.map((end) => [end.type, end.input_ids, end.accepted_input_ids, end.unknown_input_ids]),
            [[`generation.${outcome}`, [inputId("p"), inputId("s1")], [inputId("s2")], []]]
          )
          const rest = events.slice(events.findIndex(Event.isTerminal) + 1)
          assert.deepStrictEqual(
            types(rest).filter((type) => type !== "session.idle"),
            []
          )
        })
      )
    )
  }

  it.effect("L-E4 what is unknown is in a list of its own", () =>
    run(
      Effect.gen(function* () {
        const h = yield* cancelledInDoubt
        const { deliveredInputIds, undeliveredInputIds, unknownInputIds } = h.report
        const lists = [["p", "s1"], ["s3"], ["s2"]].map((ids) => ids.map(inputId))
        assert.deepStrictEqual([deliveredInputIds, undeliveredInputIds, unknownInputIds], lists)
        assert.deepStrictEqual(
          (yield* h.events)
            .filter(Event.isTerminal)
            .map((end) => [end.input_ids, end.accepted_input_ids, end.unknown_input_ids]),
          [lists]
        )
      })
    )
  )

  it.effect("L-E4 it tells the same as the report and the receipts", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { maxRequests: 1 } })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        const { deliveredInputIds, outcome, text, undeliveredInputIds } = yield* report(h, h.id)
        const [end] = (yield* h.events).filter(Event.isTerminal)
        assert.deepStrictEqual(
          [end?.type, end?.generation_id, end?.input_ids, end?.accepted_input_ids, end?.text],
          [`generation.${outcome}`, h.id, deliveredInputIds, undeliveredInputIds, text]
        )
        assert.deepStrictEqual(yield* receipts(h, "p", "s"), ["applied in 1", "held budget-exhausted"])
      })
    )
  )
})

describe("L-E5 no input moves", () => {
  it.effect("L-E5 what is held in one generation is in no request of the next, and keeps its own", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "for the first only", { id: "s" })
        yield* h.session.submit(Input.followUp("the second"))
        yield* h.session.cancel(h.id)
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 2)
        assert.notInclude(userTexts(h.model.requests[1]), "for the first only")
        assert.strictEqual((yield* h.receipt("s"))?.generationId, h.id)
      })
    )
  )

  it.effect("L-E5 every input a generation delivered is bound to it", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.submit(Input.followUp("later", { id: "f" }))
        yield* h.go
        yield* h.session.awaitIdle
        const owners = new Map<string, string>()
        for (const event of yield* h.events) {
          if (event.type === "input.delivered") owners.set(event.input_id, event.generation_id)
        }
        const bound = yield* Effect.forEach(["p", "s", "f"], (id) => h.receipt(id))
        assert.deepStrictEqual(
          bound.map((receipt) => receipt?.generationId),
          ["p", "s", "f"].map((id) => owners.get(id))
        )
        assert.deepStrictEqual([owners.get("p"), owners.get("s")], [h.id, h.id])
        assert.notStrictEqual(owners.get("f"), h.id)
      })
    )
  )
})
