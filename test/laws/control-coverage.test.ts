/** C6: what a cancel or stop covers, and what waits for the next generation. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { AgentRuntime, Input } from "../../src/index.ts"
import { receiptOf, stubborn, working } from "../support/generations.ts"
import { inputId, userTexts } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

describe("L-C6 what a cancel covers", () => {
  on("L-C6 follow-ups stay queued and the first of them starts", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working(["f1", "f2"])
      yield* session.cancel(id)
      yield* session.await(id)
      yield* session.awaitIdle
      assert.deepStrictEqual(yield* receiptOf(session, "f1"), ["applied", undefined])
      assert.deepStrictEqual(
        ofType(yield* harness.events, "generation.started").map((event) => event.initial_input_id),
        [inputId("p1"), inputId("f1"), inputId("f2")]
      )
    }).pipe(Effect.scoped, runtime)
  )

  for (const [way, reason] of [
    ["cancel", "generation-cancelled"],
    ["stop", "generation-stopped"]
  ] as const) {
    on(`L-C6 a ${way} that asks for it holds the queued follow-ups, and none starts`, () =>
      Effect.gen(function* () {
        const { harness, id, session, tool } = yield* working(["f1", "f2"])
        yield* session[way](id, { followUps: "hold" })
        yield* tool.open
        yield* session.await(id)
        yield* session.awaitIdle
        assert.deepStrictEqual(yield* receiptOf(session, "f1"), ["held", reason])
        assert.deepStrictEqual(yield* receiptOf(session, "f2"), ["held", reason])
        assert.strictEqual(harness.model.requests.length, 1)
      }).pipe(Effect.scoped, runtime)
    )

    on(`L-C6 a ${way} repeated to hold the follow-ups holds them, or is refused`, () =>
      Effect.gen(function* () {
        const { id, session, tool } = yield* stubborn
        yield* session.submit(Input.followUp("later", { id: "f1" }))
        yield* session[way](id)
        const again = yield* session[way](id, { followUps: "hold" })
        yield* tool.open
        yield* session.awaitIdle
        assert.deepStrictEqual(
          yield* receiptOf(session, "f1"),
          again.accepted ? ["held", reason] : ["applied", undefined]
        )
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-C6 a follow-up accepted after a cancel that holds follow-ups is not held", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* stubborn
      yield* session.cancel(id, { followUps: "hold" })
      yield* session.submit(Input.followUp("later", { id: "f1" }))
      yield* tool.open
      yield* session.awaitIdle
      assert.deepStrictEqual(yield* receiptOf(session, "f1"), ["applied", undefined])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C6 an ordinary steer accepted after the cancel waits for the next generation and starts it", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* stubborn
      yield* session.cancel(id)
      const receipt = yield* session.submit(Input.steer("something else", { id: "s1" }))
      assert.deepStrictEqual(
        receipt.accepted ? [receipt.generationId, receipt.delivery, receipt.disposition] : receipt.reason,
        [null, "new_turn", "queued"]
      )
      yield* tool.open
      yield* session.await(id)
      yield* session.awaitIdle
      const [, started] = ofType(yield* harness.events, "generation.started")
      assert.strictEqual(started?.initial_input_id, inputId("s1"))
      assert.notInclude(userTexts(harness.model.requests[0]), "something else")
      assert.include(userTexts(harness.model.requests[1]), "something else")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C6 the generation after a cancelled one is not cancelled with it", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working(["f1"])
      yield* tool.open
      yield* session.cancel(id)
      yield* session.awaitIdle
      const status = Option.getOrUndefined(yield* session.input(inputId("f1")))
      assert.strictEqual(status?._tag, "Completed")
    }).pipe(Effect.scoped, runtime)
  )

  on("case 14: a cancel strands no queued follow-up: each is answered, in order", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working(["f1", "f2"])
      yield* session.cancel(id)
      yield* session.awaitIdle
      const texts = harness.model.requests.slice(1).map((request) => userTexts(request).at(-1))
      assert.deepStrictEqual(texts, ["f1", "f2"])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 19: what a cancel held is never merged into a later prompt", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working(["f1"])
      yield* harness.steer(id, "so", { id: "s1" })
      yield* session.cancel(id, { followUps: "hold" })
      yield* session.await(id)
      yield* session.await(yield* harness.prompt("unrelated"))
      yield* session.awaitIdle
      assert.deepStrictEqual(
        userTexts(harness.model.requests.at(-1)).filter((text) => !text.startsWith("[Notice")),
        ["go", "unrelated"]
      )
      const held = yield* session.held
      assert.deepStrictEqual(
        held.map(({ input }) => input.id),
        [inputId("f1"), inputId("s1")]
      )
    }).pipe(Effect.scoped, runtime)
  )
})
