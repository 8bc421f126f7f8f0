/** T6: what becomes of a call that is invalid, denied or fails. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { AgentRuntime, type Generation, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { open, toolResults, ToolProblem, types } from "../support/harness.ts"
import { eventsOf, openTools, type OutcomeTool, type ToolBody, start } from "../support/providers.ts"

const parameters = Schema.Struct({ path: Schema.String })
const tags = (report: Generation.GenerationReport) => report.tools.map((tool) => tool.status._tag)
const only = (report: Generation.GenerationReport) => report.tools[0]?.status
const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** Runs one call of one tool to the report. */
const run = (name: OutcomeTool, body: ToolBody) =>
  Effect.gen(function* () {
    const { model, session } = yield* openTools([name], { [name]: body })
    const report = yield* session.await(yield* start(session, "go"))
    return { report, result: toolResults(model.requests[1])[0], events: yield* eventsOf(session) }
  })

describe("L-T6 calls that are invalid or fail", () => {
  on("L-T6 an unknown tool is not-started(invalid) and the generation goes on", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [ScriptedModel.call("fly", { path: "p" }, "a"), ScriptedModel.text("done")]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      const status = only(report)
      assert.strictEqual(status?._tag === "NotStarted" ? status.reason : status?._tag, "invalid")
      assert.include(toolResults(harness.model.requests[1])[0]?.result, "fly")
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 invalid parameters are not-started(invalid) with the schema's own message", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [ScriptedModel.call("edit", { path: 7 }, "a"), ScriptedModel.text("done")]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      const expected = yield* Effect.flip(Schema.decodeUnknownEffect(parameters)({ path: 7 }))
      const status = only(report)
      assert.strictEqual(status?._tag === "NotStarted" ? status.detail : status?._tag, expected.message)
      assert.include(toolResults(harness.model.requests[1])[0]?.result, expected.message)
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a typed failure in failure mode `return` is a completed call that says it is a failure", () =>
    Effect.gen(function* () {
      const { report, result } = yield* run("lenient", () => Effect.fail(new ToolProblem({ why: "no such file" })))
      assert.deepStrictEqual(only(report), { _tag: "Completed", isFailure: true })
      assert.isTrue(result?.isFailure)
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a typed failure in failure mode `error` is a failed call and the generation goes on", () =>
    Effect.gen(function* () {
      const { report, result } = yield* run("strict", () => Effect.fail(new ToolProblem({ why: "no such file" })))
      assert.deepStrictEqual(tags(report), ["Failed"])
      assert.isTrue(result?.isFailure)
      assert.include(result?.result, "no such file")
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a handler's defect is a failed call with the defect's message", () =>
    Effect.gen(function* () {
      const { report, result } = yield* run("soft", () => Effect.die(new Error("the disk is gone")))
      assert.deepStrictEqual(only(report), { _tag: "Failed", error: "the disk is gone" })
      assert.include(result?.result, "the disk is gone")
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a handler that throws before it makes its effect is a failed call", () =>
    Effect.gen(function* () {
      const { report } = yield* run("lenient", () => {
        throw new Error("thrown")
      })
      assert.deepStrictEqual(only(report), { _tag: "Failed", error: "thrown" })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a result that the tool's schema forbids is a failed call", () =>
    Effect.gen(function* () {
      const { report, result } = yield* run("fussy", () => Effect.succeed("no"))
      assert.deepStrictEqual(tags(report), ["Failed"])
      assert.isTrue(result?.isFailure)
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T8 a `toModelOutput` that throws leaves its call completed: the model is given the result itself", () =>
    Effect.gen(function* () {
      const { events, report, result } = yield* run("shown", () => Effect.succeed("a picture"))
      assert.deepStrictEqual(tags(report), ["Completed"])
      assert.strictEqual(result?.result, "a picture")
      assert.strictEqual(report.outcome, "finished")
      assert.strictEqual(types(events).filter((type) => type === "tool.completed").length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a handler that interrupts itself has failed: nobody cancelled it", () =>
    Effect.gen(function* () {
      const { report } = yield* run("soft", () => Effect.interrupt)
      assert.deepStrictEqual(tags(report), ["Failed"])
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a handler that never returns is ended by a cancel", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      let released = false
      const { session } = yield* openTools(["soft"], {
        soft: () =>
          Deferred.succeed(entered, undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => void (released = true)))
          )
      })
      const id = yield* start(session, "go")
      yield* Deferred.await(entered)
      yield* session.cancel(id)
      const report = yield* session.await(id)
      assert.strictEqual(report.outcome, "cancelled")
      assert.deepStrictEqual(tags(report), ["Interrupted"])
      assert.isTrue(released)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T6 policies that break", () => {
  for (const [name, policy] of [
    ["dies", () => Effect.die(new Error("no policy"))],
    [
      "throws",
      () => {
        throw new Error("no policy")
      }
    ]
  ] as const) {
    on(`L-T6 a policy that ${name} denies its call, and the generation goes on`, () =>
      Effect.gen(function* () {
        const { model, session } = yield* openTools(["soft"], {})
        const report = yield* session.await(yield* start(session, "go"))
        assert.deepStrictEqual([report.outcome, tags(report)], ["finished", ["Denied"]])
        assert.include(toolResults(model.requests[1])[0]?.result, "Denied")
      }).pipe(Effect.scoped, Effect.provideService(ToolPolicy.ToolPolicy, policy), runtime)
    )
  }
})
