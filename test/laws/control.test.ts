/** C1, C4 and C5: reading, cancelling and stopping one generation. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Checkpointer, ToolReconciler } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Contexts from "../support/contexts.ts"
import { receiptOf, requesting, stubborn, twoCalls, working } from "../support/generations.ts"
import { generationId, inputId, open, types } from "../support/harness.ts"
import { gate, overloaded, seenType, statuses, unauthorised, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** Keeps the conversation in a context that cannot tell what it has, and whose `nth` write waits first. */
const keptInDoubt = (nth = 0, wait: Effect.Effect<unknown> = Effect.void) => {
  let appends = 0
  return Contexts.keptIn(
    Contexts.make({
      append: (land) => (++appends === nth ? Effect.andThen(wait, land) : land),
      has: () => Effect.succeed("cannot-tell")
    })
  )
}

const refusedWith = (receipt: { readonly accepted: boolean; readonly reason?: unknown; readonly actual?: unknown }) =>
  receipt.accepted ? "accepted" : [receipt.reason, receipt.actual]

describe("L-C1 reading", () => {
  on("L-C1 status changes nothing: no event, no queue, no running work", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working(["f1"])
      yield* harness.steer(id, "so", { id: "s1" })
      const before = yield* harness.events
      const first = yield* session.status
      for (let i = 0; i < 10; i++) assert.deepStrictEqual(yield* session.status, first)
      assert.deepStrictEqual(yield* harness.events, before)
      assert.deepStrictEqual(harness.began, ["edit"])
      yield* tool.open
      const report = yield* session.await(id)
      assert.deepStrictEqual([report.outcome, report.deliveredInputIds], ["finished", [inputId("p1"), inputId("s1")]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C1 status says what runs, what is pending and what is queued", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working(["f1", "f2"])
      yield* harness.steer(id, "so", { id: "s1" })
      const { generation, queuedInputIds } = yield* session.status
      assert.deepStrictEqual(
        [generation?.id, generation?.initialInputId, generation?.request, generation?.phase._tag],
        [id, inputId("p1"), 1, "RunningTools"]
      )
      assert.deepStrictEqual(generation?.pendingInputIds, [inputId("s1")])
      assert.deepStrictEqual(queuedInputIds, [inputId("f1"), inputId("f2")])
      yield* tool.open
      yield* session.awaitIdle
      assert.isNull((yield* session.status).generation)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C1 evidence says what a plain session can establish", () =>
    Effect.gen(function* () {
      const { session } = yield* open({ script: scripted() })
      assert.deepStrictEqual((yield* session.status).evidence, {
        durable: false,
        context: "journal",
        reconciler: false
      })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C1 evidence tells a context of the host's and a reconciler", () =>
    Effect.gen(function* () {
      const { session } = yield* open({ script: scripted() })
      assert.deepStrictEqual((yield* session.status).evidence, {
        durable: false,
        context: "own-store",
        reconciler: true
      })
    }).pipe(
      Effect.scoped,
      keptInDoubt(),
      Effect.provideService(ToolReconciler.ToolReconciler, () => Effect.succeedNone),
      runtime
    )
  )
})

describe("L-C4 cancelling", () => {
  for (const way of ["cancel", "stop"] as const) {
    on(`L-C4 ${way} refuses a generation that is not the active one and leaves the active one alone`, () =>
      Effect.gen(function* () {
        const { id, session, tool } = yield* working()
        assert.deepStrictEqual(refusedWith(yield* session[way](generationId("gen_never"))), ["generation-mismatch", id])
        assert.strictEqual((yield* session.status).generation?.phase._tag, "RunningTools")
        yield* tool.open
        assert.strictEqual((yield* session.await(id)).outcome, "finished")
      }).pipe(Effect.scoped, runtime)
    )

    on(`L-C4 ${way} refuses an ended generation, while idle and while another runs`, () =>
      Effect.gen(function* () {
        const { harness, id, session, tool } = yield* working()
        yield* tool.open
        yield* session.await(id)
        yield* session.awaitIdle
        assert.deepStrictEqual(refusedWith(yield* session[way](id)), ["no-active-generation", null])
        const second = yield* harness.prompt("again")
        assert.deepStrictEqual(refusedWith(yield* session[way](id)), ["generation-mismatch", second])
        assert.strictEqual((yield* session.await(second)).outcome, "finished")
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-C4 cancel answers when accepted; the generation is settled later, and `await` waits for that", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* stubborn
      assert.deepStrictEqual(yield* session.cancel(id), { accepted: true })
      assert.strictEqual((yield* session.status).generation?.id, id)
      assert.notInclude(types(yield* harness.events), "generation.cancelled")
      yield* tool.open
      const report = yield* session.await(id)
      assert.strictEqual(report.outcome, "cancelled")
      assert.include(types(yield* harness.events), "generation.cancelled")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 the report tells each call's status, what was delivered and what is held", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working()
      yield* harness.steer(id, "so", { id: "s1" })
      yield* session.cancel(id)
      const report = yield* session.await(id)
      assert.deepStrictEqual(statuses(report), [
        ["a", { _tag: "Interrupted", effects: "unknown", cause: "cancel" }],
        ["b", { _tag: "NotStarted", reason: "cancelled" }]
      ])
      assert.deepStrictEqual(report.deliveredInputIds, [inputId("p1")])
      assert.deepStrictEqual(report.undeliveredInputIds, [inputId("s1")])
      assert.deepStrictEqual(report.unknownInputIds, [])
      assert.deepStrictEqual(yield* receiptOf(session, "s1"), ["held", "generation-cancelled"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 the report tells what is unknown", () =>
    Effect.gen(function* () {
      const writing = yield* gate
      const { prompt, session } = yield* keptInDoubt(1, writing.pass(undefined))(open({ script: scripted() }))
      const id = yield* prompt("go", "p1")
      yield* writing.entered
      yield* session.cancel(id)
      const report = yield* session.await(id)
      assert.deepStrictEqual(report.unknownInputIds, [inputId("p1")])
      assert.deepStrictEqual([report.deliveredInputIds, report.undeliveredInputIds], [[], []])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 awaiting a generation that never existed fails typed", () =>
    Effect.gen(function* () {
      const { session } = yield* open({ script: scripted() })
      const error = yield* Effect.flip(session.await(generationId("gen_never")))
      assert.strictEqual(error._tag, "UnknownGeneration")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 the same cancel again is accepted and adds nothing", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* stubborn
      yield* session.cancel(id)
      assert.deepStrictEqual(yield* session.cancel(id), { accepted: true })
      yield* tool.open
      yield* session.await(id)
      assert.strictEqual(types(yield* harness.events).filter((type) => type === "cancel.requested").length, 1)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C5 stopping", () => {
  on("L-C5 a stop lets the running request finish and launches none of its calls", () =>
    Effect.gen(function* () {
      const step = ScriptedModel.steps([ScriptedModel.text("I will"), twoCalls])
      const { harness, id, request, session } = yield* requesting(step)
      assert.deepStrictEqual(yield* session.stop(id), { accepted: true })
      yield* TestClock.adjust("1 minute")
      yield* request.open
      const report = yield* session.await(id)
      const stopped = { _tag: "NotStarted", reason: "stopped" } as const
      assert.deepStrictEqual(
        [report.outcome, report.requests, statuses(report)],
        [
          "stopped",
          1,
          [
            ["a", stopped],
            ["b", stopped]
          ]
        ]
      )
      assert.deepStrictEqual(harness.model.stats(), { started: 1, open: 0, completed: 1, failed: 0, interrupted: 0 })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop lets the running tool finish, launches no later call and makes no further request", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working()
      yield* session.stop(id)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* session.status).generation?.id, id)
      yield* tool.open
      const report = yield* session.await(id)
      assert.deepStrictEqual(statuses(report), [
        ["a", { _tag: "Completed", isFailure: false }],
        ["b", { _tag: "NotStarted", reason: "stopped" }]
      ])
      assert.deepStrictEqual([report.outcome, harness.model.requests.length], ["stopped", 1])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 accepting a stop holds what is pending and closes admission in the same step", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working()
      yield* harness.steer(id, "so", { id: "s1" })
      yield* session.stop(id)
      assert.deepStrictEqual(yield* receiptOf(session, "s1"), ["held", "generation-stopped"])
      assert.deepStrictEqual(refusedWith(yield* harness.steer(id, "later", { id: "s2" })), ["admission-closed", id])
      yield* tool.open
      yield* session.await(id)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop that is accepted while the final answer is under way keeps the answer and ends as stopped", () =>
    Effect.gen(function* () {
      const asking = yield* gate
      const harness = yield* open({ script: [ScriptedModel.wait(asking.pass(undefined), ScriptedModel.text("done"))] })
      const id = yield* harness.prompt("go")
      yield* asking.entered
      yield* harness.session.stop(id)
      yield* asking.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual([report.outcome, report.text], ["stopped", "done"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop that is accepted during the checkpoint decides the outcome", () =>
    Effect.gen(function* () {
      const saving = yield* gate
      const harness = yield* open({ script: scripted() }).pipe(
        Effect.provideService(Checkpointer.Checkpointer, () => saving.pass(undefined))
      )
      const id = yield* harness.prompt("go")
      yield* saving.entered
      assert.deepStrictEqual(yield* harness.session.stop(id), { accepted: true })
      yield* saving.open
      assert.strictEqual((yield* harness.session.await(id)).outcome, "stopped")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop ends a backoff at once and makes no further request", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(ScriptedModel.fail(overloaded)) })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "request.failed")
      yield* harness.session.stop(id)
      assert.strictEqual((yield* harness.session.await(id)).outcome, "stopped")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(harness.model.requests.length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop accepted before the running request fails decides the outcome, and nothing is tried again", () =>
    Effect.gen(function* () {
      const { id, request, session } = yield* requesting(ScriptedModel.fail(overloaded))
      yield* session.stop(id)
      yield* request.open
      const report = yield* session.await(id)
      assert.deepStrictEqual([report.outcome, report.requests], ["stopped", 1])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a cancel overrides a stop: the running tool is ended and the outcome is cancelled", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working()
      yield* harness.steer(id, "so", { id: "s1" })
      yield* session.stop(id)
      assert.deepStrictEqual(yield* session.cancel(id), { accepted: true })
      const report = yield* session.await(id)
      assert.deepStrictEqual(
        [report.outcome, report.tools.map((tool) => tool.status._tag)],
        ["cancelled", ["Interrupted", "NotStarted"]]
      )
      assert.deepStrictEqual(yield* receiptOf(session, "s1"), ["held", "generation-stopped"])
      const events = types(yield* harness.events)
      assert.isBelow(events.indexOf("stop.requested"), events.indexOf("cancel.requested"))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop after a cancel is refused: the cancel has decided", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* stubborn
      yield* session.cancel(id)
      assert.deepStrictEqual(refusedWith(yield* session.stop(id))[0], "admission-closed")
      yield* tool.open
      assert.strictEqual((yield* session.await(id)).outcome, "cancelled")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 stop and cancel are refused once the generation has closed by itself", () =>
    Effect.gen(function* () {
      const writing = yield* gate
      const { prompt, session, steer } = yield* open({ script: scripted(ScriptedModel.fail(unauthorised)) }).pipe(
        keptInDoubt(2, writing.pass(undefined))
      )
      const id = yield* prompt("go")
      yield* writing.entered
      assert.strictEqual(refusedWith(yield* session.stop(id))[0], "admission-closed")
      assert.strictEqual(refusedWith(yield* session.cancel(id))[0], "admission-closed")
      assert.strictEqual(refusedWith(yield* steer(id, "so"))[0], "admission-closed")
      yield* writing.open
      assert.strictEqual((yield* session.await(id)).outcome, "failed")
    }).pipe(Effect.scoped, runtime)
  )
})
