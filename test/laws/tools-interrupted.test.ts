/** T7 to T9: what becomes of a running call that is interrupted or outlasts its interruption. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, type Generation, ToolReconciler, Uncancellable } from "../../src/index.ts"
import { toolResults, types } from "../support/harness.ts"
import {
  eventsOf,
  openTools,
  type OutcomeTool,
  gate,
  notices,
  ofType,
  pairs,
  seenType,
  start
} from "../support/providers.ts"

const tags = (report: Generation.GenerationReport) => report.tools.map((tool) => tool.status._tag)
const only = (report: Generation.GenerationReport) => report.tools[0]?.status
const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** Cancels while the one call runs; answers the report. */
const cancelRunning = (name: OutcomeTool) =>
  Effect.gen(function* () {
    const running = yield* gate
    const { model, session } = yield* openTools([name], { [name]: () => running.pass("done") })
    const id = yield* start(session, "go")
    yield* running.entered
    yield* session.cancel(id)
    const report = yield* session.await(id)
    return { model, session, report }
  })

describe("L-T7 a running call that is interrupted", () => {
  on("L-T7 of a read-only tool it has no effects", () =>
    Effect.gen(function* () {
      const { report } = yield* cancelRunning("reader")
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "none", cause: "cancel" })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T7 of any other tool its effects are unknown, and the model is told so", () =>
    Effect.gen(function* () {
      const { model, report, session } = yield* cancelRunning("soft")
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "unknown", cause: "cancel" })
      yield* session.await(yield* start(session, "and now"))
      const [result] = toolResults(model.requests[1])
      assert.include(result?.result, "effects are unknown")
      assert.notInclude(result?.result, "Not started")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T7 its effects are verified where a reconciler established the outcome", () =>
    Effect.gen(function* () {
      const { model, report, session } = yield* cancelRunning("soft")
      assert.deepStrictEqual(only(report), {
        _tag: "Interrupted",
        effects: "verified",
        cause: "cancel",
        outcome: { written: "soft" }
      })
      yield* session.await(yield* start(session, "and now"))
      assert.include(toolResults(model.requests[1])[0]?.result, `{"written":"soft"}`)
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, (call) => Effect.succeedSome({ written: call.providerId })),
      runtime
    )
  )

  on("L-T7 a reconciler that cannot tell leaves the effects unknown", () =>
    Effect.gen(function* () {
      const { report } = yield* cancelRunning("soft")
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "unknown", cause: "cancel" })
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, () => Effect.succeedNone),
      runtime
    )
  )

  on("L-T7 a reconciler that dies leaves the effects unknown", () =>
    Effect.gen(function* () {
      const { report } = yield* cancelRunning("soft")
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "unknown", cause: "cancel" })
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, () => Effect.die(new Error("no connection"))),
      runtime
    )
  )

  on("L-T7 a reconciler that throws leaves the effects unknown, and every call paired", () =>
    Effect.gen(function* () {
      const { model, report, session } = yield* cancelRunning("soft")
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "unknown", cause: "cancel" })
      assert.strictEqual(report.outcome, "cancelled")
      yield* session.await(yield* start(session, "and now"))
      assert.deepStrictEqual(pairs(model.requests[1]), [{ calls: ["soft"], results: ["soft"] }])
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, () => {
        throw new Error("no connection")
      }),
      runtime
    )
  )

  on("L-T7 a reconciler that never answers is waited for no longer than the grace time", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(cancelRunning("soft"), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      const { report } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(only(report), { _tag: "Interrupted", effects: "unknown", cause: "cancel" })
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, () => Effect.never),
      runtime
    )
  )

  on("L-T7 the reconciler is asked only about calls that had started", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const asked: Array<string> = []
      const { session } = yield* openTools(["reader", "soft", "strict"], { soft: () => running.pass("done") }).pipe(
        Effect.provideService(ToolReconciler.ToolReconciler, (call) =>
          Effect.sync(() => {
            asked.push(call.name)
            return Option.none()
          })
        )
      )
      const id = yield* start(session, "go")
      yield* running.entered
      yield* session.cancel(id)
      const report = yield* session.await(id)
      assert.deepStrictEqual(tags(report), ["Completed", "Interrupted", "NotStarted"])
      assert.deepStrictEqual(asked, ["soft"])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 25: an interrupted running call is interrupted with unknown effects, never not started", () =>
    Effect.gen(function* () {
      const { report, session } = yield* cancelRunning("soft")
      assert.deepStrictEqual(tags(report), ["Interrupted"])
      const events = yield* eventsOf(session)
      assert.deepStrictEqual(
        ofType(events, "tool.interrupted").map(({ cause, effects }) => [cause, effects]),
        [["cancel", "unknown"]]
      )
      assert.deepStrictEqual(ofType(events, "tool.not_started"), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 31: the next generation's context says what was interrupted, by call", () =>
    Effect.gen(function* () {
      const { model, session } = yield* cancelRunning("soft")
      yield* session.await(yield* start(session, "and now"))
      const [notice] = notices(model.requests[1])
      assert.include(notice, "was cancelled")
      assert.include(notice, "soft")
      assert.deepStrictEqual(model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T8 results that stand", () => {
  on("L-T8 a call that completed keeps its real result when the next one is cancelled", () =>
    Effect.gen(function* () {
      const second = yield* gate
      const { model, session } = yield* openTools(["reader", "soft"], { soft: () => second.pass("done") })
      const id = yield* start(session, "go")
      yield* second.entered
      yield* session.cancel(id)
      const report = yield* session.await(id)
      assert.deepStrictEqual(report.tools[0]?.status, { _tag: "Completed", isFailure: false })
      yield* session.await(yield* start(session, "and now"))
      assert.strictEqual(toolResults(model.requests[1])[0]?.result, "reader ok")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T8 a call that ends well while it is being interrupted keeps its real result", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const { session } = yield* openTools(["soft"], { soft: () => Effect.uninterruptible(running.pass("done")) })
      const id = yield* start(session, "go")
      yield* running.entered
      yield* session.cancel(id)
      yield* running.open
      const report = yield* session.await(id)
      assert.deepStrictEqual(only(report), { _tag: "Completed", isFailure: false })
      assert.strictEqual(report.outcome, "cancelled")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T8 a late outcome of an interrupted call changes no status and adds no event", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const ended = yield* Deferred.make<void>()
      const { session } = yield* openTools(["soft"], {
        soft: () => Effect.ensuring(Effect.uninterruptible(running.pass("late")), Deferred.succeed(ended, undefined))
      })
      const id = yield* start(session, "go")
      yield* running.entered
      yield* session.cancel(id)
      yield* TestClock.adjust("5 seconds")
      const report = yield* session.await(id)
      assert.deepStrictEqual(tags(report), ["Interrupted"])
      const before = yield* eventsOf(session)
      yield* running.open
      yield* Deferred.await(ended)
      assert.deepStrictEqual(yield* session.await(id), report)
      assert.deepStrictEqual(yield* eventsOf(session), before)
    }).pipe(Effect.scoped, runtime)
  )
})
/** Cancels while a call that does not yield to interruption runs, and moves the clock. */
const outlast = (name: OutcomeTool, millis: number) =>
  Effect.gen(function* () {
    const running = yield* gate
    const { session } = yield* openTools([name], { [name]: () => Effect.uninterruptible(running.pass("done")) })
    const id = yield* start(session, "go")
    yield* running.entered
    yield* session.cancel(id)
    yield* TestClock.adjust(Duration.millis(millis))
    const live = yield* session.generation
    return { session, id, running, ended: Option.isNone(live) }
  })

describe("L-T9 grace times", () => {
  on("L-T9 a cancel waits for an interrupted call as long as the grace time and no longer", () =>
    Effect.gen(function* () {
      assert.isFalse((yield* outlast("soft", 4_999)).ended)
      const { ended, id, session } = yield* outlast("soft", 5_000)
      assert.isTrue(ended)
      assert.deepStrictEqual(only(yield* session.await(id)), {
        _tag: "Interrupted",
        effects: "unknown",
        cause: "cancel"
      })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 the grace time is the host's to set", () =>
    Effect.gen(function* () {
      assert.isFalse((yield* outlast("soft", 99)).ended)
      assert.isTrue((yield* outlast("soft", 100)).ended)
    }).pipe(Effect.scoped, Effect.provideService(Uncancellable.GraceTime, Duration.millis(100)), runtime)
  )

  on("L-T9 an uncancellable call has a grace time of its own", () =>
    Effect.gen(function* () {
      assert.isFalse((yield* outlast("firm", 29_999)).ended)
      const { ended, id, session } = yield* outlast("firm", 30_000)
      assert.isTrue(ended)
      assert.deepStrictEqual(tags(yield* session.await(id)), ["Interrupted"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 an uncancellable call is not interrupted: it ends and keeps its real result", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const { model, session } = yield* openTools(["firm"], { firm: () => running.pass("signed") })
      const id = yield* start(session, "go")
      yield* running.entered
      yield* session.cancel(id)
      yield* TestClock.adjust("10 seconds")
      yield* running.open
      const report = yield* session.await(id)
      assert.deepStrictEqual(only(report), { _tag: "Completed", isFailure: false })
      assert.strictEqual(report.outcome, "cancelled")
      yield* session.await(yield* start(session, "and now"))
      assert.deepStrictEqual(pairs(model.requests[1]), [{ calls: ["firm"], results: ["firm"] }])
      assert.strictEqual(toolResults(model.requests[1])[0]?.result, "signed")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 the terminal event comes after every call is settled", () =>
    Effect.gen(function* () {
      const { id, running, session } = yield* outlast("firm", 10)
      yield* running.open
      yield* session.await(id)
      const found = types(yield* eventsOf(session))
      assert.isBelow(found.indexOf("tool.completed"), found.indexOf("generation.cancelled"))
      yield* seenType(session, "generation.cancelled")
    }).pipe(Effect.scoped, runtime)
  )
})
