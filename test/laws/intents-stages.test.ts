/** F6 and F7: what an idle session starts, and how far an input has come. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, ContextStore, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { editing, requesting, stage, started } from "../support/generations.ts"
import { inputId, open, record, types } from "../support/harness.ts"
import { gate, ofType, overloaded, seen, seenType, unauthorised, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const edit = ScriptedModel.call("edit", { path: "p" }, "a")
const working = editing(edit)

describe("L-F6 what an idle session starts", () => {
  for (const [name, first] of [
    ["finished", ScriptedModel.text("done")],
    ["failed", ScriptedModel.fail(unauthorised)],
    ["exhausted", edit]
  ] as const) {
    on(`L-F6 after a generation that ${name} the queued follow-up starts`, () =>
      Effect.gen(function* () {
        const { id, request, session } = yield* requesting(first, { maxRequests: 1 })
        yield* session.submit(Input.followUp("later", { id: "f1" }))
        yield* request.open
        assert.strictEqual((yield* session.await(id)).outcome, name)
        yield* session.awaitIdle
        assert.strictEqual((yield* stage(session, "f1"))?._tag, "Completed")
      }).pipe(Effect.scoped, runtime)
    )
  }

  for (const way of ["stop", "cancel"] as const) {
    on(`L-F6 a ${way} does not hold back the next queued follow-up`, () =>
      Effect.gen(function* () {
        const { harness, id, session, tool } = yield* working
        yield* session.submit(Input.followUp("later", { id: "f1" }))
        yield* session[way](id)
        yield* tool.open
        yield* session.awaitIdle
        assert.deepStrictEqual(yield* started(harness), [[inputId("p1")], [inputId("f1")]])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-F6 the session says that it is idle once, when nothing is left to start", () =>
    Effect.gen(function* () {
      const { harness, session, tool } = yield* working
      for (const id of ["f1", "f2"]) yield* session.submit(Input.followUp(id, { id }))
      yield* tool.open
      yield* session.awaitIdle
      const found = types(yield* harness.events)
      assert.strictEqual(found.filter((type) => type === "session.idle").length, 1)
      assert.strictEqual(found.at(-1), "session.idle")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F7 stages", () => {
  on("L-F7 an input that was never accepted has no stage", () =>
    Effect.gen(function* () {
      const { harness, session } = yield* working
      yield* session.submit(Input.prompt("now", { id: "p2" }))
      assert.isUndefined(yield* stage(harness.session, "p2"))
      assert.isUndefined(yield* stage(harness.session, "nobody"))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 a follow-up is queued while it is bound to no generation", () =>
    Effect.gen(function* () {
      const { session } = yield* working
      yield* session.submit(Input.followUp("later", { id: "f1" }))
      assert.deepStrictEqual(yield* stage(session, "f1"), { _tag: "Queued" })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 steering starts as admitted: bound to its generation and not in its context", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working
      yield* harness.steer(id, "so", { id: "s1" })
      yield* session.submit(Input.steer("and so", { id: "s2" }))
      for (const one of ["s1", "s2"]) {
        assert.deepStrictEqual(yield* stage(session, one), { _tag: "Admitted", generationId: id })
      }
      assert.notInclude(JSON.stringify(yield* session.context), "and so")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 an input is delivered while the request that carries it runs, and completed when it has completed", () =>
    Effect.gen(function* () {
      const { id, request, session } = yield* requesting(ScriptedModel.text("done"))
      assert.deepStrictEqual(yield* stage(session, "p1"), { _tag: "Delivered", generationId: id, request: 1 })
      yield* request.open
      yield* session.await(id)
      assert.deepStrictEqual(yield* stage(session, "p1"), { _tag: "Completed", generationId: id, request: 1 })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 an input whose request failed is completed by the next one, and keeps the number of the first", () =>
    Effect.gen(function* () {
      const { prompt, session } = yield* open({ script: scripted(ScriptedModel.fail(overloaded)) })
      const { got } = yield* record(session.events())
      const id = yield* prompt("go", "p1")
      yield* seenType(session, "request.failed")
      assert.deepStrictEqual(yield* stage(session, "p1"), { _tag: "Delivered", generationId: id, request: 1 })
      yield* TestClock.adjust("1 second")
      yield* session.await(id)
      assert.deepStrictEqual(yield* stage(session, "p1"), { _tag: "Completed", generationId: id, request: 1 })
      assert.deepStrictEqual(
        ofType(got, "input.completed").map(({ input_id, request }) => [input_id, request]),
        [[inputId("p1"), 2]]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 an input of a request that never completed stays delivered", () =>
    Effect.gen(function* () {
      const { prompt, session } = yield* open({ script: scripted(ScriptedModel.hang) })
      const id = yield* prompt("go", "p1")
      yield* seenType(session, "request.started")
      yield* session.cancel(id)
      yield* session.await(id)
      assert.strictEqual((yield* stage(session, "p1"))?._tag, "Delivered")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F7 held and unknown are stages of their own, with the reason", () =>
    Effect.gen(function* () {
      const writing = yield* gate
      const store: ContextStore.Service = {
        append: () => writing.pass(undefined),
        messages: Effect.succeed([]),
        has: () => Effect.succeed("cannot-tell")
      }
      const scope = yield* Scope.make()
      const { prompt, session, steer } = yield* Scope.provide(open({ script: scripted() }), scope).pipe(
        Effect.provideService(ContextStore.ContextStore, store)
      )
      const id = yield* prompt("go", "p1")
      yield* writing.entered
      yield* steer(id, "so", { id: "s1" })
      yield* session.cancel(id)
      yield* session.await(id)
      yield* seen(session, (event) => event.type === "generation.cancelled")
      assert.deepStrictEqual(yield* stage(session, "p1"), {
        _tag: "Unknown",
        generationId: id,
        reason: "write-interrupted"
      })
      assert.deepStrictEqual(yield* stage(session, "s1"), {
        _tag: "Held",
        generationId: id,
        reason: "generation-cancelled"
      })
      yield* Scope.close(scope, Exit.void)
    }).pipe(runtime)
  )
})
