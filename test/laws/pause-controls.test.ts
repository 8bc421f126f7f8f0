/** C2: several pauses, what outlives a generation, and the controls that work during a pause. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Event, Input, ResumeCondition, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Batch, open as openBatch, told } from "../support/batches.ts"
import { open } from "../support/harness.ts"
import { seenType } from "../support/providers.ts"
import { duringRequest, duringTool, receipts, report, seen } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const accepted = { accepted: true } as const

/** Lets everything that can go on go on. */
const settle = TestClock.adjust("1 minute")

const idle = () => open({ script: ["one", "two", "three"].map((text) => ScriptedModel.text(text)) })

describe("L-C2 pauses add up", () => {
  on("L-C2 work goes on when none is left that affects it", () =>
    Effect.gen(function* () {
      const h = yield* idle()
      yield* h.session.pause({ until: ResumeCondition.signal("a") })
      yield* h.session.pause({ until: ResumeCondition.signal("b") })
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* h.session.resume("a")
      yield* settle
      assert.strictEqual(h.model.requests.length, 0)
      yield* h.session.resume("b")
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a call affected by a pause about its tool is not started although all work is paused too", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["read:a", "write:b", "read:c"] })
      yield* batch.entered("a")
      yield* batch.session.pause({ until: ResumeCondition.signal("all") })
      yield* batch.session.pause({ until: ResumeCondition.signal("write"), scope: ToolScope.tools("write") })
      yield* batch.release("a")
      yield* settle
      assert.deepStrictEqual(batch.began, ["a"])
      yield* batch.session.resume("all")
      yield* batch.entered("c")
      yield* batch.release("c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b NotStarted paused", "c Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a pause outlives its generation: queued work starts only after it", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* h.go
      yield* report(h, h.id)
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f"), ["queued"])
      assert.isNull((yield* h.session.status).generation)
      yield* h.session.resume()
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C2 controls during a pause", () => {
  /** A generation paused between two calls of a batch, with a steer pending. */
  const paused = Effect.gen(function* () {
    const batch = yield* openBatch({ calls: ["write:a", "write:b"] })
    yield* batch.entered("a")
    yield* batch.session.pause()
    yield* batch.release("a")
    yield* seenType(batch.session, "pause.effective")
    yield* batch.session.submit(Input.ask("how far?", { id: "s" }))
    return batch
  })
  const held = (batch: Batch) =>
    Effect.map(batch.session.held, (all) => all.map(({ input, status }) => `${input.id} ${status.reason}`))

  for (const way of ["stop", "cancel"] as const) {
    const past = way === "stop" ? "stopped" : "cancelled"
    on(`L-C2 a ${way} ends the generation, and the pause stays`, () =>
      Effect.gen(function* () {
        const batch = yield* paused
        assert.deepStrictEqual(yield* batch.session[way](batch.id), accepted)
        const report = yield* batch.report
        assert.deepStrictEqual([report.outcome, ...told(report)], [past, "a Completed", `b NotStarted ${past}`])
        assert.deepStrictEqual(yield* held(batch), [`s generation-${past}`])
        assert.strictEqual((yield* batch.session.status).pauses.length, 1)
      }).pipe(Effect.scoped, runtime)
    )

    on(`L-C2 a ${way} at a paused boundary ends the generation, and what was queued waits for the resume`, () =>
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* h.session.pause()
        yield* h.go
        yield* seen(h, "pause.effective")
        yield* h.session.submit(Input.followUp("f", { id: "f" }))
        yield* h.session[way](h.id)
        assert.strictEqual((yield* report(h, h.id)).outcome, past)
        yield* settle
        assert.deepStrictEqual(yield* receipts(h, "f"), ["queued"])
        yield* h.session.resume()
        yield* settle
        assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-C2 a close ends the generation and settles everything", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const batch = yield* Scope.provide(paused, scope)
      yield* batch.session.submit(Input.followUp("f", { id: "f" }))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b NotStarted closed"])
      assert.deepStrictEqual(yield* held(batch), ["s session-closed", "f session-closed"])
      assert.strictEqual((yield* batch.events).filter(Event.isTerminal).length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a close of an idle paused session returns, and nothing of its queue has started", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const h = yield* Scope.provide(idle(), scope)
      yield* h.session.pause()
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* receipts(h, "f"), ["held session-closed"])
      assert.strictEqual(h.model.requests.length, 0)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C1 status answers during a pause, and says what is still unmet", () =>
    Effect.gen(function* () {
      const batch = yield* paused
      const before = yield* batch.session.status
      assert.deepStrictEqual(before, yield* batch.session.status)
      assert.strictEqual(before.generation?.phase._tag, "Paused")
      assert.deepStrictEqual(before.generation?.pendingInputIds.map(String), ["s"])
      assert.deepStrictEqual(before.pauses, [
        { until: ResumeCondition.manual, unmet: [ResumeCondition.manual], effective: true }
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a pause asked for during the checkpoint of an answer holds back the request that steering needs", () =>
    Effect.gen(function* () {
      const saving = yield* Deferred.make<void>()
      const entered = yield* Deferred.make<void>()
      const batch = yield* openBatch({
        calls: ["write:a"],
        free: "all",
        checkpointer: () => Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(saving))
      })
      yield* Deferred.await(entered)
      yield* batch.steer("more", { id: "s" })
      yield* batch.session.pause()
      yield* Deferred.succeed(saving, undefined)
      yield* settle
      assert.strictEqual(batch.model.requests.length, 2)
      yield* batch.session.resume()
      yield* batch.report
      assert.strictEqual(batch.model.requests.length, 3)
    }).pipe(Effect.scoped, runtime)
  )
})
