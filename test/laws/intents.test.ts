/** F1, F2 and F5: what each intent starts, joins or waits for. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { AgentRuntime, Checkpointer, Input, type Receipt } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { editing, requesting, stage, started } from "../support/generations.ts"
import { type Harness, inputId, open, types, userTexts } from "../support/harness.ts"
import { gate, ofType, seenType, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const edit = ScriptedModel.call("edit", { path: "p" }, "a")
const working = editing(edit)

const brief = (receipt: Receipt.Receipt) =>
  receipt.accepted ? [receipt.disposition, receipt.delivery, receipt.generationId] : ["refused", receipt.reason]

/** The last user text of each request. */
const lastTexts = (harness: Harness) => harness.model.requests.map((request) => userTexts(request).at(-1))

describe("L-F1 prompts", () => {
  on("L-F1 of two prompts at once one starts and the other is refused busy, naming the one that runs", () =>
    Effect.gen(function* () {
      const { model, session } = yield* open({ script: scripted() })
      const [one, two] = yield* Effect.all(
        [session.submit(Input.prompt("one", { id: "p1" })), session.submit(Input.prompt("two", { id: "p2" }))],
        { concurrency: 2 }
      )
      const accepted = [one, two].flatMap((receipt) => (receipt.accepted ? [receipt] : []))
      const refused = [one, two].flatMap((receipt) => (receipt.accepted ? [] : [receipt]))
      assert.strictEqual(accepted.length, 1)
      assert.deepStrictEqual(
        refused.map(({ actual, reason }) => [reason, actual]),
        [["busy", accepted[0]?.generationId]]
      )
      yield* session.awaitIdle
      assert.strictEqual(model.requests.length, 1)
      assert.isTrue(Option.isNone(yield* session.receipt(inputId("p2"))))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F1 an accepted prompt's receipt names the generation it starts", () =>
    Effect.gen(function* () {
      const { session } = yield* open({ script: scripted() })
      const receipt = yield* session.submit(Input.prompt("go"))
      const live = Option.getOrUndefined(yield* session.generation)
      assert.deepStrictEqual(brief(receipt), ["queued", "new_turn", live?.id])
      assert.isNotNull(receipt.generationId)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F1 a prompt is refused busy while a follow-up waits, and as the one generation gives way to the next", () =>
    Effect.gen(function* () {
      const [tool, asking] = [yield* gate, yield* gate]
      const second = ScriptedModel.wait(asking.pass(undefined), ScriptedModel.text("done"))
      const harness = yield* open({
        script: scripted(edit, ScriptedModel.text("done"), second),
        edit: () => tool.pass("edited")
      })
      const { session } = harness
      yield* harness.prompt("go", "p1")
      yield* tool.entered
      yield* session.submit(Input.followUp("later", { id: "f1" }))
      assert.deepStrictEqual(brief(yield* session.submit(Input.prompt("now"))), ["refused", "busy"])
      const atEnd = yield* Effect.forkChild(
        Effect.andThen(seenType(session, "generation.finished"), session.submit(Input.prompt("now"))),
        { startImmediately: true }
      )
      yield* tool.open
      assert.deepStrictEqual(brief(yield* Fiber.join(atEnd)), ["refused", "busy"])
      yield* asking.open
      yield* session.awaitIdle
      assert.deepStrictEqual(yield* started(harness), [[inputId("p1")], [inputId("f1")]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F1 a prompt that was refused busy may be sent again under its id when the session is idle", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      const input = Input.prompt("two", { id: "p2" })
      assert.deepStrictEqual(brief(yield* session.submit(input)), ["refused", "busy"])
      yield* tool.open
      yield* session.await(id)
      yield* session.awaitIdle
      assert.strictEqual((yield* session.submit(input)).accepted, true)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F2 follow-ups", () => {
  on("L-F2 first in, first out, one a generation", () =>
    Effect.gen(function* () {
      const { harness, session, tool } = yield* working
      for (const id of ["f1", "f2", "f3"]) {
        assert.deepStrictEqual(brief(yield* session.submit(Input.followUp(id, { id }))), ["queued", "new_turn", null])
      }
      yield* tool.open
      yield* session.awaitIdle
      assert.deepStrictEqual(yield* started(harness), [
        [inputId("p1")],
        [inputId("f1")],
        [inputId("f2")],
        [inputId("f3")]
      ])
      assert.deepStrictEqual(lastTexts(harness), ["go", "go", "f1", "f2", "f3"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F2 each follow-up's generation has a terminal event before the next starts", () =>
    Effect.gen(function* () {
      const { harness, session, tool } = yield* working
      for (const id of ["f1", "f2"]) yield* session.submit(Input.followUp(id, { id }))
      yield* tool.open
      yield* session.awaitIdle
      assert.deepStrictEqual(
        types(yield* harness.events).filter((type) => type.startsWith("generation.")),
        Array.from({ length: 3 }, () => ["generation.started", "generation.finished"]).flat()
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F2 a follow-up submitted to an idle session starts at once", () =>
    Effect.gen(function* () {
      const { session } = yield* open({ script: scripted() })
      yield* session.submit(Input.followUp("now", { id: "f1" }))
      yield* session.awaitIdle
      assert.strictEqual((yield* stage(session, "f1"))?._tag, "Completed")
    }).pipe(Effect.scoped, runtime)
  )

  on("case 33: no request of the running generation contains the follow-up, and none withholds a call for it", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      yield* session.submit(Input.followUp("later", { id: "f1" }))
      yield* tool.open
      const report = yield* session.await(id)
      yield* session.awaitIdle
      assert.deepStrictEqual(
        report.tools.map((call) => call.status._tag),
        ["Completed"]
      )
      for (const request of harness.model.requests.slice(0, report.requests)) {
        assert.notInclude(userTexts(request), "later")
      }
      assert.strictEqual(lastTexts(harness).at(-1), "later")
    }).pipe(Effect.scoped, runtime)
  )

  on("case 39: a queued input keeps its kind, id and author to the message it becomes", () =>
    Effect.gen(function* () {
      const { harness, session, tool } = yield* working
      yield* session.submit(Input.followUp("later", { id: "f1", author: "ops" }))
      yield* tool.open
      yield* session.awaitIdle
      const own: unknown = harness.model.requests.at(-1)?.prompt.at(-1)?.options["midcourse"]
      const [, started] = ofType(yield* harness.events, "generation.started")
      assert.deepInclude(own, {
        input_id: "f1",
        intent: "follow-up",
        author: "ops",
        target_generation_id: started?.generation_id
      })
      assert.deepStrictEqual(
        ofType(yield* harness.events, "input.delivered").map(({ input_id, intent }) => [input_id, intent]),
        [
          [inputId("p1"), "prompt"],
          [inputId("f1"), "follow-up"]
        ]
      )
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F5 ordinary steering", () => {
  on("L-F5 joins the next boundary of the live generation", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      const receipt = yield* session.submit(Input.steer("so", { id: "s1" }))
      assert.deepStrictEqual(brief(receipt), ["queued", "request_boundary", id])
      yield* tool.open
      const report = yield* session.await(id)
      assert.deepStrictEqual(report.deliveredInputIds, [inputId("p1"), inputId("s1")])
      assert.deepStrictEqual(userTexts(harness.model.requests[1]), ["go", "so"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F5 counts as pending at the second look: it continues the same generation", () =>
    Effect.gen(function* () {
      const saving = yield* gate
      const harness = yield* open({ script: scripted() }).pipe(
        Effect.provideService(Checkpointer.Checkpointer, ({ request }) =>
          request === 1 ? saving.pass(undefined) : Effect.void
        )
      )
      const id = yield* harness.prompt("go", "p1")
      yield* saving.entered
      yield* harness.session.submit(Input.steer("so", { id: "s1" }))
      yield* saving.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual([report.requests, report.text], [2, "answer 2"])
      assert.deepStrictEqual(yield* started(harness), [[inputId("p1")]])
      assert.deepStrictEqual(userTexts(harness.model.requests[1]), ["go", "so"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F5 does not raise the budget: the answer stands and it is held", () =>
    Effect.gen(function* () {
      const { harness, id, request, session } = yield* requesting(ScriptedModel.text("done"), { maxRequests: 1 })
      yield* session.submit(Input.steer("so", { id: "s1" }))
      yield* request.open
      const report = yield* session.await(id)
      yield* session.awaitIdle
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(yield* stage(session, "s1"), {
        _tag: "Held",
        generationId: id,
        reason: "budget-exhausted"
      })
      assert.strictEqual(harness.model.requests.length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  for (const [way, reason] of [
    ["stop", "generation-stopped"],
    ["cancel", "generation-cancelled"]
  ] as const) {
    on(`L-F5 is held by a ${way} and starts nothing afterwards`, () =>
      Effect.gen(function* () {
        const { harness, id, session, tool } = yield* working
        yield* session.submit(Input.steer("so", { id: "s1" }))
        yield* session[way](id)
        yield* tool.open
        yield* session.awaitIdle
        assert.deepStrictEqual(yield* stage(session, "s1"), { _tag: "Held", generationId: id, reason })
        assert.deepStrictEqual(yield* started(harness), [[inputId("p1")]])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-F5 while idle it starts a generation", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted() })
      const receipt = yield* harness.session.submit(Input.steer("so", { id: "s1" }))
      const [, delivery, id] = brief(receipt)
      assert.strictEqual(delivery, "new_turn")
      assert.isNotNull(id)
      yield* harness.session.awaitIdle
      assert.deepStrictEqual(lastTexts(harness), ["so"])
      const [delivered] = ofType(yield* harness.events, "input.delivered")
      assert.deepStrictEqual([delivered?.intent, delivered?.delivery], ["steer", "new_turn"])
      assert.deepStrictEqual(ofType(yield* harness.events, "steering.applied"), [])
    }).pipe(Effect.scoped, runtime)
  )

  on(
    "L-F5 after admission has closed it starts one before queued follow-ups; others waiting join its first boundary",
    () =>
      Effect.gen(function* () {
        const { harness, id, session, tool } = yield* editing(edit, true)
        yield* session.submit(Input.followUp("later", { id: "f1" }))
        yield* session.cancel(id)
        for (const one of ["s1", "s2"]) {
          assert.deepStrictEqual(brief(yield* session.submit(Input.steer(one, { id: one }))), [
            "queued",
            "new_turn",
            null
          ])
        }
        yield* tool.open
        yield* session.awaitIdle
        const initial = ofType(yield* harness.events, "generation.started").map((event) => event.initial_input_id)
        assert.deepStrictEqual(initial, [inputId("p1"), inputId("s1"), inputId("f1")])
        assert.deepStrictEqual(userTexts(harness.model.requests[1]).slice(-2), ["s1", "s2"])
        assert.notInclude(userTexts(harness.model.requests[1]), "later")
      }).pipe(Effect.scoped, runtime)
  )

  on("L-F5 anchored steering never starts a generation", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      yield* tool.open
      yield* session.await(id)
      yield* session.awaitIdle
      assert.deepStrictEqual(brief(yield* harness.steer(id, "late")), ["refused", "no-active-generation"])
      yield* session.awaitIdle
      assert.deepStrictEqual(yield* started(harness), [[inputId("p1")]])
    }).pipe(Effect.scoped, runtime)
  )
})
