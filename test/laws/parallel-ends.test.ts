/** What ends the calls of a wave: a policy, a cancel, a stop, a close; and what a call says while it runs and when it ends. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Limits, ToolPolicy } from "../../src/index.ts"
import { answers, open, told, waves } from "../support/batches.ts"
import { record, toolResults } from "../support/harness.ts"
import { eventsOf, gate, ofType, pairs, seenType, start } from "../support/providers.ts"
import { withLimits } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const many = (count: number) => Array.from({ length: count }, (_, index) => `write:${index}`)

/** Refuses the calls of these paths. */
const refusing =
  (...paths: ReadonlyArray<string>): ToolPolicy.Service =>
  (call) =>
    Effect.succeed(paths.includes(call.providerId) ? ToolPolicy.deny("not on a Sunday") : ToolPolicy.allow)

describe("L-T6 the policy and a wave", () => {
  on("L-T6 a refused call is denied with the policy's reason, and its neighbours run", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "read:c"], concurrency: 2, policy: refusing("b") })
      yield* batch.entered("a", "c")
      yield* batch.release("c", "a")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Denied not on a Sunday", "c Completed"])
      assert.deepStrictEqual(batch.began, ["a", "c"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 case 28: denying one of two parallel calls answers it and keeps the other's real result", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b"], concurrency: 2, policy: refusing("a") })
      yield* batch.entered("b")
      yield* batch.release("b")
      yield* batch.report
      const [denied, real] = toolResults(batch.model.requests[1])
      assert.include(denied?.result, "not on a Sunday")
      assert.isTrue(denied?.isFailure)
      assert.deepStrictEqual(real, { id: "b", isFailure: false, result: "did b" })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a refusal is never told as a correction: the event, the report and the words name the policy", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a"], policy: refusing("a") })
      yield* batch.report
      const events = yield* batch.events
      assert.deepStrictEqual(
        ofType(events, "tool.denied").map((event) => event.reason),
        ["not on a Sunday"]
      )
      assert.deepStrictEqual(ofType(events, "tool.not_started"), [])
      assert.notInclude(toolResults(batch.model.requests[1])[0]?.result, "correction")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a policy that refuses while a correction arrives has denied the call", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        concurrency: 2,
        policy: (call) =>
          call.providerId === "a" ? asked.pass(ToolPolicy.deny("no")) : Effect.succeed(ToolPolicy.allow)
      })
      yield* asked.entered
      yield* batch.steer("wait", { id: "s" })
      yield* asked.open
      assert.deepStrictEqual(told(yield* batch.report), ["a Denied no", "b NotStarted steering s"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a policy that dies denies the call, and the generation goes on", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        concurrency: 2,
        policy: (call) =>
          call.providerId === "a" ? Effect.die(new Error("no rules")) : Effect.succeed(ToolPolicy.allow)
      })
      yield* batch.entered("b")
      yield* batch.release("b")
      const report = yield* batch.report
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Denied", "Completed"]
      )
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(batch.began, ["b"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a policy that throws denies the call, and the generation goes on", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a"],
        policy: () => {
          throw new Error("no rules")
        }
      })
      const report = yield* batch.report
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Denied"]
      )
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T3 a correction that arrives while a slow policy is asked withholds the call it then allows", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const batch = yield* open({ calls: ["write:a"], policy: () => asked.pass(ToolPolicy.allow) })
      yield* asked.entered
      yield* batch.steer("no", { id: "s" })
      yield* asked.open
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted steering s"])
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a policy that never answers is ended by a cancel", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const batch = yield* open({ calls: ["write:a", "write:b"], policy: () => asked.pass(ToolPolicy.allow) })
      yield* asked.entered
      yield* batch.session.cancel(batch.id)
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted cancelled", "b NotStarted cancelled"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T8 a call that ends while a slow policy is asked about another keeps its real result", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const batch = yield* open({
        calls: ["write:a", "write:b", "write:c"],
        concurrency: 2,
        policy: (call) =>
          call.providerId === "c" ? asked.pass(ToolPolicy.deny("no")) : Effect.succeed(ToolPolicy.allow)
      })
      yield* batch.entered("a", "b")
      yield* batch.release("a")
      yield* asked.entered
      yield* batch.let("b")
      yield* asked.open
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c Denied no"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T7 a cancel in a wave", () => {
  on("case 26: three calls, one done, one running, one waiting: completed, interrupted, not started, in order", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c", "write:d"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.release("a")
      yield* batch.entered("c")
      yield* batch.session.cancel(batch.id)
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Completed",
        "b Interrupted unknown cancel",
        "c Interrupted unknown cancel",
        "d NotStarted cancelled"
      ])
      yield* batch.session.await(yield* start(batch.session, "and now"))
      assert.deepStrictEqual(pairs(batch.model.requests[1]), [
        { calls: ["a", "b", "c", "d"], results: ["a", "b", "c", "d"] }
      ])
      assert.strictEqual(answers(batch.model.requests[1])[0], "a did a")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T7 a read-only call of the wave has no effects, any other unknown ones", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["read:a", "write:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.cancel(batch.id)
      assert.deepStrictEqual(told(yield* batch.report), ["a Interrupted none cancel", "b Interrupted unknown cancel"])
      assert.deepStrictEqual(batch.ended.toSorted(), ["a", "b"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 an uncancellable call of the wave is let end, while its neighbour is interrupted at once", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["keep:a", "write:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.cancel(batch.id)
      yield* seenType(batch.session, "tool.interrupted")
      assert.deepStrictEqual(batch.ended, ["b"])
      yield* batch.release("a")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Interrupted unknown cancel"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 an uncancellable call that outlasts its own grace time is interrupted and no longer waited for", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["keep:a", "write:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.cancel(batch.id)
      yield* TestClock.adjust("29 seconds")
      assert.isNotNull((yield* batch.session.status).generation)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Interrupted unknown cancel",
        "b Interrupted unknown cancel"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T7 a reconciler is asked about each interrupted call of the wave, and about no other", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const batch = yield* open({
        calls: ["write:a", "write:b", "write:c", "write:d"],
        concurrency: 3,
        reconciler: (call) =>
          Effect.sync(() => {
            asked.push(call.providerId)
            return call.providerId === "b" ? Option.some({ written: 3 }) : Option.none()
          })
      })
      yield* batch.entered("a", "b", "c")
      yield* batch.session.cancel(batch.id)
      const report = yield* batch.report
      assert.deepStrictEqual(told(report), [
        "a Interrupted unknown cancel",
        "b Interrupted verified cancel",
        "c Interrupted unknown cancel",
        "d NotStarted cancelled"
      ])
      assert.deepStrictEqual(asked.toSorted(), ["a", "b", "c"])
      const status = report.tools[1]?.status
      assert.deepStrictEqual(status?._tag === "Interrupted" ? status.outcome : undefined, { written: 3 })
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T7 a reconciler that breaks", () => {
  on("L-T7 one that throws leaves the effects unknown, and every call is settled", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        reconciler: () => {
          throw new Error("no ledger")
        }
      })
      yield* batch.entered("a")
      yield* batch.session.cancel(batch.id)
      assert.deepStrictEqual(told(yield* batch.report), ["a Interrupted unknown cancel", "b NotStarted cancelled"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C5 a stop in a wave", () => {
  on("L-C5 a stop lets the calls of the wave end with their results and launches no more", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.stop(batch.id)
      yield* batch.release("b", "a")
      const report = yield* batch.report
      assert.deepStrictEqual(told(report), ["a Completed", "b Completed", "c NotStarted stopped"])
      assert.strictEqual(report.outcome, "stopped")
      assert.strictEqual(batch.model.requests.length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a cancel after a stop in a wave interrupts what still runs", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.stop(batch.id)
      yield* batch.release("a")
      yield* batch.session.cancel(batch.id)
      const report = yield* batch.report
      assert.strictEqual(report.outcome, "cancelled")
      assert.deepStrictEqual(told(report).slice(0, 2), ["a Completed", "b Interrupted unknown cancel"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T1 what a call says", () => {
  on("L-V1 the preliminary results of calls that run at once are live progress, each under its own call", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        concurrency: 2,
        body: (path, progress) =>
          progress(`${path} half`).pipe(Effect.andThen(progress(`${path} most`)), Effect.as(`${path} whole`))
      })
      const watched = yield* record(batch.session.events())
      yield* batch.entered("a", "b")
      yield* batch.release("a")
      yield* batch.release("b")
      yield* batch.report
      const progress = ofType(watched.got, "tool.progress")
      assert.deepStrictEqual(
        progress.map((event) => [event.provider_call_id, event.result]),
        [
          ["a", "a half"],
          ["a", "a most"],
          ["b", "b half"],
          ["b", "b most"]
        ]
      )
      for (const event of progress) assert.isNumber(event.live)
      assert.deepStrictEqual(ofType(yield* batch.events, "tool.progress"), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T2 preliminary results are in no request: the model gets the last one", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a"],
        free: "all",
        body: (path, progress) => Effect.as(progress(`${path} half`), `${path} whole`)
      })
      yield* batch.report
      assert.deepStrictEqual(answers(batch.model.requests[1]), ["a a whole"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T2 a result longer than the limit keeps its head, its tail and its size", () =>
    Effect.gen(function* () {
      const long = `HEAD${"x".repeat(1992)}TAIL`
      const batch = yield* withLimits(
        { toolResultLength: 100 },
        open({
          calls: ["write:a", "read:b"],
          concurrency: 2,
          free: "all",
          body: (p) => Effect.succeed(p === "a" ? long : p)
        })
      )
      yield* batch.report
      const [bounded, short] = toolResults(batch.model.requests[1])
      assert.isTrue(bounded?.result.startsWith("HEADxxx"))
      assert.isTrue(bounded?.result.endsWith("xxxTAIL"))
      assert.include(bounded?.result, "2000")
      assert.isBelow(bounded?.result.length ?? 0, 300)
      assert.isFalse(bounded?.isFailure)
      assert.strictEqual(short?.result, "b")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T2 a result as long as the limit is sent as it is", () =>
    Effect.gen(function* () {
      const { toolResultLength } = yield* Limits.Limits
      const whole = "y".repeat(toolResultLength)
      const batch = yield* open({ calls: ["write:a"], free: "all", body: () => Effect.succeed(whole) })
      yield* batch.report
      assert.strictEqual(toolResults(batch.model.requests[1])[0]?.result, whole)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T4 a great many calls", () => {
  on("L-T4 500 calls, 8 at once, all begin, end and are answered, and none is left running", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const batch = yield* Scope.provide(open({ calls: many(500), concurrency: 8, free: "all" }), scope)
      const report = yield* batch.report
      assert.strictEqual(report.tools.filter((tool) => tool.status._tag === "Completed").length, 500)
      assert.strictEqual(batch.began.length, 500)
      assert.strictEqual(batch.ended.length, 500)
      assert.strictEqual(batch.most(), 8)
      assert.strictEqual(waves(yield* batch.events).flat().length, 500)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue((yield* batch.session.status).closed)
      assert.strictEqual(batch.model.stats().open, 0)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 cancelled amid 500 calls, every handler that began has ended and no other begins", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: many(500), concurrency: 8 })
      yield* batch.entered("0", "1", "2", "3", "4", "5", "6", "7")
      yield* batch.release("3")
      yield* batch.entered("8")
      yield* batch.session.cancel(batch.id)
      const report = yield* batch.report
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(batch.began.length, 9)
      assert.deepStrictEqual(batch.ended.toSorted(), batch.began.toSorted())
      assert.strictEqual(report.tools.filter((tool) => tool.status._tag === "NotStarted").length, 491)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C7 closing the session in a wave interrupts what runs and returns when all of it has ended", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const batch = yield* Scope.provide(open({ calls: many(20), concurrency: 8 }), scope)
      yield* batch.entered("0", "7")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(batch.began.length, 8)
      assert.deepStrictEqual(batch.ended.toSorted(), batch.began.toSorted())
      const report = yield* batch.report
      assert.deepStrictEqual(told(report).slice(7, 9), ["7 Interrupted unknown close", "8 NotStarted closed"])
      assert.strictEqual(ofType(yield* eventsOf(batch.session), "session.closed").length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T9 a call that ignores its interruption is left after the grace time, and the report says so", () =>
    Effect.gen(function* () {
      const never = yield* Deferred.make<string>()
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        concurrency: 2,
        free: ["a"],
        grace: Duration.seconds(3),
        body: (path) => (path === "a" ? Effect.uninterruptible(Deferred.await(never)) : Effect.succeed(path))
      })
      yield* batch.entered("a", "b")
      yield* batch.session.cancel(batch.id)
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Interrupted unknown cancel",
        "b Interrupted unknown cancel"
      ])
      yield* Deferred.succeed(never, "late")
    }).pipe(Effect.scoped, runtime)
  )
})
