/** T2, T4 and T5 for calls that run at once: waves, their one transition, and what a correction withholds of a batch. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { AgentRuntime, Input, ToolScope } from "../../src/index.ts"
import { answers, endings, open, told, waves } from "../support/batches.ts"
import { types, userTexts } from "../support/harness.ts"
import { ofType, pairs, seenType } from "../support/providers.ts"
import * as Truth from "../support/truth.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

const writes = (count: number) => Array.from({ length: count }, (_, index) => `write:${index}`)
const paths = (count: number) => Array.from({ length: count }, (_, index) => String(index))

describe("L-T4 waves", () => {
  on("L-T4 the first wave is as many calls as may run at once, admitted and started in one transition", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      const events = yield* batch.events
      const wave = events.slice(types(events).indexOf("tools.admitted"))
      assert.deepStrictEqual(types(wave), ["tools.admitted", "tool.started", "tool.started"])
      assert.deepStrictEqual(waves(events), [["a", "b"]])
      assert.deepStrictEqual(
        ofType(wave, "tool.started").map((event) => event.provider_call_id),
        ["a", "b"]
      )
      assert.deepStrictEqual(batch.began, ["a", "b"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 each slot that frees is one more call, and `tools.admitted` lists just that one", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c", "write:d"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.release("b")
      yield* batch.entered("c")
      assert.deepStrictEqual(batch.began, ["a", "b", "c"])
      yield* batch.release("a")
      yield* batch.entered("d")
      yield* batch.release("c", "d")
      yield* batch.report
      assert.deepStrictEqual(waves(yield* batch.events), [["a", "b"], ["c"], ["d"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 when two slots free at the same time, no wave is larger than the two", () =>
    Effect.gen(function* () {
      const both = yield* Deferred.make<void>()
      const batch = yield* open({
        calls: writes(4),
        concurrency: 2,
        free: "all",
        body: (path) => (Number(path) < 2 ? Effect.as(Deferred.await(both), path) : Effect.succeed(path))
      })
      yield* batch.entered("0", "1")
      yield* Deferred.succeed(both, undefined)
      yield* batch.report
      const events = yield* batch.events
      const listed = waves(events).flat()
      assert.deepStrictEqual(listed, paths(4))
      for (const wave of waves(events)) assert.isAtMost(wave.length, 2)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 no more calls run at the same time than the agent says", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: writes(12), concurrency: 3, free: "all" })
      const report = yield* batch.report
      assert.strictEqual(batch.most(), 3)
      assert.deepStrictEqual(batch.began, paths(12))
      assert.deepStrictEqual(
        told(report),
        paths(12).map((path) => `${path} Completed`)
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 a concurrency greater than the batch launches it in one wave", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: writes(3), concurrency: 64 })
      yield* batch.entered("0", "1", "2")
      yield* batch.release("2", "1", "0")
      yield* batch.report
      assert.deepStrictEqual(waves(yield* batch.events), [["0", "1", "2"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 an invalid call takes no slot and is in no wave", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["fly:x", "write:a", "write:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.release("a", "b")
      assert.deepStrictEqual(told(yield* batch.report), ["x NotStarted invalid", "a Completed", "b Completed"])
      assert.deepStrictEqual(waves(yield* batch.events), [["a", "b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T2 results go in the order requested although the calls end in another", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "read:b", "write:c"], concurrency: 3 })
      yield* batch.entered("a", "b", "c")
      yield* batch.release("c")
      yield* batch.release("b")
      yield* batch.release("a")
      yield* batch.report
      assert.deepStrictEqual(endings(yield* batch.events), ["c", "b", "a"])
      assert.deepStrictEqual(answers(batch.model.requests[1]), ["a did a", "b did b", "c did c"])
      assert.deepStrictEqual(batch.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T2 no request is made before the last call of the batch has ended", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.release("b")
      assert.strictEqual(batch.model.requests.length, 1)
      yield* batch.release("a")
      yield* batch.report
      assert.strictEqual(batch.model.requests.length, 2)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T1 what began is what the events say, each with one end", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "fly:x", "read:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.release("b")
      yield* batch.entered("c")
      const steered = yield* batch.steer("look again", { id: "s" })
      yield* batch.release("c", "a")
      yield* batch.report
      const story = yield* Truth.told(batch.session, [steered])
      assert.deepStrictEqual([...Truth.lies(story), ...Truth.toolLies(story, batch.began)], [])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T4 corrections and waves", () => {
  on("L-T4 a correction after the transition withholds the calls not yet launched and none that was", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c", "write:d"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.steer("not those", { id: "s" })
      yield* batch.release("a", "b")
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Completed",
        "b Completed",
        "c NotStarted steering s",
        "d NotStarted steering s"
      ])
      assert.deepStrictEqual(batch.began, ["a", "b"])
      assert.deepStrictEqual(waves(yield* batch.events), [["a", "b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 case 27: after a correction in a wave every call is answered before it is delivered", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.steer("not those", { id: "s" })
      yield* batch.release("b", "a")
      yield* batch.report
      const [, second] = batch.model.requests
      assert.deepStrictEqual(pairs(second), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
      assert.strictEqual(second?.prompt.at(-1)?.role, "user")
      assert.deepStrictEqual(userTexts(second), ["go", "not those"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 a correction by the first handler of a wave does not withhold the second of it", () =>
    Effect.gen(function* () {
      const steer = yield* Deferred.make<Effect.Effect<unknown>>()
      const ready = yield* Deferred.make<void>()
      const batch = yield* open({
        calls: ["write:a", "write:b", "write:c"],
        concurrency: 2,
        free: "all",
        after: Deferred.await(ready),
        body: (path) => (path === "a" ? Effect.as(Effect.flatten(Deferred.await(steer)), path) : Effect.succeed(path))
      })
      yield* Deferred.succeed(steer, batch.steer("stop there", { id: "s" }))
      yield* Deferred.succeed(ready, undefined)
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c NotStarted steering s"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 a listener that steers when it reads of a wave withholds none of that wave", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* Effect.forkScoped(
        Stream.runForEach(batch.session.events(), (event) =>
          event.type === "tools.admitted" ? Effect.asVoid(batch.steer("late", { id: "s" })) : Effect.void
        ),
        { startImmediately: true }
      )
      yield* seenType(batch.session, "steering.accepted")
      yield* batch.release("a", "b")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c NotStarted steering s"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 a correction pending before the first wave withholds the whole batch, and no wave is told of", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      const batch = yield* open({ calls: writes(3), concurrency: 2, after: Deferred.await(answer) })
      yield* seenType(batch.session, "request.started")
      yield* batch.steer("none of it", { id: "s" })
      yield* Deferred.succeed(answer, undefined)
      assert.deepStrictEqual(
        told(yield* batch.report),
        paths(3).map((path) => `${path} NotStarted steering s`)
      )
      assert.deepStrictEqual(waves(yield* batch.events), [])
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 an ordinary steer withholds what is not yet launched as an anchored one does", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.submit(Input.steer("other way", { id: "s" }))
      yield* batch.release("a", "b")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c NotStarted steering s"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T4 a follow-up withholds nothing", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.submit(Input.followUp("later", { id: "f" }))
      yield* batch.release("a")
      yield* batch.entered("c")
      yield* batch.release("b", "c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c Completed"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T5 corrections with a scope", () => {
  on("L-T5 a correction withholds only the tools it names, and unrelated calls of the batch run", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "read:b", "write:c", "read:d"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.steer("write nothing more", { id: "s", scope: ToolScope.tools("write") })
      yield* batch.release("b")
      yield* batch.entered("d")
      yield* batch.release("a", "d")
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Completed",
        "b Completed",
        "c NotStarted steering s",
        "d Completed"
      ])
      assert.deepStrictEqual(userTexts(batch.model.requests[1]), ["go", "write nothing more"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T5 each withheld call names only the corrections that affect it", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["keep:a", "read:b", "write:c"], concurrency: 1 })
      yield* batch.entered("a")
      yield* batch.steer("no reading", { id: "r", scope: ToolScope.tools("read") })
      yield* batch.steer("no writing", { id: "w", scope: ToolScope.tools("write", "send") })
      yield* batch.release("a")
      assert.deepStrictEqual(told(yield* batch.report), [
        "a Completed",
        "b NotStarted steering r",
        "c NotStarted steering w"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T5 a scope that names no tool of the batch withholds nothing", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b"], concurrency: 1 })
      yield* batch.entered("a")
      yield* batch.steer("about mail", { id: "s", scope: ToolScope.tools("send") })
      yield* batch.release("a")
      yield* batch.entered("b")
      yield* batch.release("b")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T5 scope none withholds and cancels nothing, and is delivered at the boundary", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.submit(Input.ask("how far are you?", { id: "s" }))
      yield* batch.release("a")
      yield* batch.entered("c")
      yield* batch.release("b", "c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c Completed"])
      assert.deepStrictEqual(userTexts(batch.model.requests[1]), ["go", "how far are you?"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T5 an agent that finishes its batches withholds nothing and is corrected at the boundary", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a", "write:b", "write:c"],
        concurrency: 2,
        agent: { onCorrection: "finish-batch" }
      })
      yield* batch.entered("a", "b")
      yield* batch.steer("afterwards", { id: "s" })
      yield* batch.release("a")
      yield* batch.entered("c")
      yield* batch.release("b", "c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c Completed"])
      assert.deepStrictEqual(answers(batch.model.requests[1]), ["a did a", "b did b", "c did c"])
      assert.deepStrictEqual(userTexts(batch.model.requests[1]), ["go", "afterwards"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T5 an agent that finishes its batches still lets a stop end them", () =>
    Effect.gen(function* () {
      const batch = yield* open({
        calls: ["write:a", "write:b"],
        concurrency: 1,
        agent: { onCorrection: "finish-batch" }
      })
      yield* batch.entered("a")
      yield* batch.session.stop(batch.id)
      yield* batch.release("a")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b NotStarted stopped"])
    }).pipe(Effect.scoped, runtime)
  )
})
