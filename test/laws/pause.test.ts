/** C2: when a pause is in effect, what it holds back, and what goes on all the same. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, type Checkpointer, Input, ResumeCondition, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { answers, type Batch, open as openBatch, told } from "../support/batches.ts"
import { type Harness, inputId, open, types, userTexts } from "../support/harness.ts"
import { gate, seenType } from "../support/providers.ts"
import { duringRequest, duringTool, passing, receipts, report, seen, words } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const accepted = { accepted: true } as const

/** Lets everything that can go on go on. */
const settle = TestClock.adjust("1 minute")

const typesOf = (h: Harness | Batch) => Effect.map(h.events, types)
const isPause = (type: string) => type.startsWith("pause.") || type === "checkpoint.saved"

const idle = (texts: ReadonlyArray<string> = ["one", "two", "three"]) =>
  open({ script: texts.map((text) => ScriptedModel.text(text)) })

describe("L-C2 a pause takes effect", () => {
  on("L-C2 while idle: requested, then effective, two events", () =>
    Effect.gen(function* () {
      const h = yield* idle()
      assert.deepStrictEqual(yield* h.session.pause(), accepted)
      yield* settle
      assert.deepStrictEqual(yield* typesOf(h), ["pause.requested", "pause.effective"])
      const [pause] = (yield* h.session.status).pauses
      assert.deepStrictEqual(pause, {
        until: ResumeCondition.manual,
        unmet: [ResumeCondition.manual],
        effective: true
      })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 during a request only when it has completed and a checkpoint is saved, and no further one is made", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest({ first: ScriptedModel.call("look", { path: "a" }, "a") })
      yield* h.session.pause()
      yield* settle
      assert.notInclude(yield* typesOf(h), "pause.effective")
      assert.isFalse((yield* h.session.status).pauses[0]?.effective)
      yield* h.go
      yield* settle
      const found = yield* typesOf(h)
      assert.deepStrictEqual(found.slice(found.indexOf("pause.requested")), [
        "pause.requested",
        "request.completed",
        "input.completed",
        "tool.requested",
        "checkpoint.saved",
        "pause.effective"
      ])
      assert.strictEqual(h.model.requests.length, 1)
      assert.deepStrictEqual(h.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 during a tool call only when it has ended, and the request after it waits", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.session.pause()
      yield* settle
      assert.notInclude(yield* typesOf(h), "pause.effective")
      yield* h.go
      yield* settle
      const found = yield* typesOf(h)
      assert.deepStrictEqual(found.slice(found.indexOf("pause.requested")), [
        "pause.requested",
        "tool.completed",
        "checkpoint.saved",
        "pause.effective"
      ])
      assert.strictEqual(h.model.requests.length, 1)
      yield* h.session.resume()
      assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 in a wave only when its last call has ended; those not yet launched wait and are launched after it", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["write:a", "write:b", "write:c"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.pause()
      yield* batch.release("b")
      yield* settle
      assert.notInclude(yield* typesOf(batch), "pause.effective")
      yield* batch.release("a")
      yield* settle
      assert.include(yield* typesOf(batch), "pause.effective")
      assert.deepStrictEqual(batch.began, ["a", "b"])
      yield* batch.session.resume()
      yield* batch.entered("c")
      yield* batch.release("c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b Completed", "c Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 while the final answer is given it takes effect when the generation has ended", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      yield* h.go
      assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
      yield* settle
      const found = yield* typesOf(h)
      assert.isBelow(found.indexOf("checkpoint.saved"), found.indexOf("pause.effective"))
      assert.strictEqual(found.filter((type) => type === "pause.effective").length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 while a failed request waits to be tried again, no further attempt is made", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [ScriptedModel.fail(passing()), ScriptedModel.text("second")] })
      const id = yield* h.prompt("go")
      yield* seen(h, "request.failed")
      yield* h.session.pause()
      yield* settle
      assert.strictEqual(h.model.requests.length, 1)
      assert.include(yield* typesOf(h), "pause.effective")
      yield* h.session.resume()
      assert.strictEqual((yield* report(h, id)).text, "second")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 only when the host's checkpoint is saved, of the generation and the request it rests at", () =>
    Effect.gen(function* () {
      const saving = yield* gate
      const saved: Array<Checkpointer.Checkpoint> = []
      const checkpointer: Checkpointer.Service = (checkpoint) => {
        saved.push(checkpoint)
        return saving.pass(undefined)
      }
      const batch = yield* openBatch({ calls: ["write:a"], checkpointer })
      yield* batch.entered("a")
      yield* batch.session.pause()
      yield* batch.let("a")
      yield* saving.entered
      assert.deepStrictEqual((yield* typesOf(batch)).filter(isPause), ["pause.requested"])
      yield* saving.open
      yield* settle
      assert.deepStrictEqual((yield* typesOf(batch)).filter(isPause), [
        "pause.requested",
        "checkpoint.saved",
        "pause.effective"
      ])
      assert.deepStrictEqual(
        saved.map(({ generationId, request }) => [generationId, request]),
        [[batch.id, 1]]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 it is not in effect while its checkpoint could not be saved, and work waits all the same", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({
        calls: ["write:a", "write:b"],
        checkpointer: () => Effect.die(new Error("disk full"))
      })
      yield* batch.entered("a")
      yield* batch.session.pause()
      yield* batch.release("a")
      yield* settle
      assert.deepStrictEqual((yield* typesOf(batch)).filter(isPause), ["pause.requested"])
      assert.deepStrictEqual(batch.began, ["a"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a pause that ends before it was in effect is requested and ended, never effective", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      assert.deepStrictEqual(yield* h.session.resume(), accepted)
      yield* h.go
      yield* report(h, h.id)
      yield* settle
      assert.deepStrictEqual(
        (yield* typesOf(h)).filter((type) => type.startsWith("pause.")),
        ["pause.requested", "pause.ended"]
      )
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C2 what is accepted during a pause", () => {
  on("L-C2 steering stays queued, and is delivered when the pause has ended", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.session.pause()
      yield* h.go
      yield* seen(h, "pause.effective")
      yield* h.steer(h.id, "and so", { id: "s" })
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "s"), ["queued"])
      yield* h.session.resume()
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 follow-ups, collects and ordinary steers of an idle session stay queued, and start after it", () =>
    Effect.gen(function* () {
      const h = yield* idle()
      yield* h.session.pause()
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* h.session.submit(Input.collect("c", { id: "c" }))
      yield* h.session.submit(Input.steer("s", { id: "s" }))
      yield* settle
      assert.deepStrictEqual(yield* receipts(h, "f", "c", "s"), ["queued", "queued", "queued"])
      const { generation, queuedInputIds } = yield* h.session.status
      assert.deepStrictEqual([generation, queuedInputIds], [null, ["s", "f", "c"].map(inputId)])
      yield* h.session.resume()
      yield* settle
      yield* h.session.awaitIdle.pipe(Effect.orDie)
      assert.deepStrictEqual(userTexts(h.model.requests[2]), ["s", "f", "c"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a prompt is refused `paused`, idle or not", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("x", { id: "x" }))), "refused paused")
      yield* h.go
      yield* report(h, h.id)
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("x", { id: "x" }))), "refused paused")
      yield* h.session.resume()
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("x", { id: "x" }))), "queued")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a steer accepted meanwhile withholds the calls that waited: they are launched past the corrections", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["write:a", "write:b", "read:c"] })
      yield* batch.entered("a")
      yield* batch.session.pause()
      yield* batch.release("a")
      yield* batch.steer("write no more", { id: "s", scope: ToolScope.tools("write") })
      yield* settle
      yield* batch.session.resume()
      yield* batch.entered("c")
      yield* batch.release("c")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed", "b NotStarted steering s", "c Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 a steer pending at the end of an answer goes on only after the pause", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.pause()
      yield* h.steer(h.id, "more", { id: "s" })
      yield* h.go
      yield* seen(h, "pause.effective")
      assert.strictEqual(h.model.requests.length, 1)
      assert.strictEqual((yield* h.session.status).generation?.phase._tag, "Paused")
      yield* h.session.resume()
      assert.strictEqual((yield* report(h, h.id)).text, "second")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C2 a pause about some tools", () => {
  on("L-C2 makes their calls not-started(paused), so that other calls and requests go on", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["read:a", "write:b", "read:c"] })
      yield* batch.entered("a")
      yield* batch.session.pause({ scope: ToolScope.tools("write") })
      yield* batch.release("a")
      yield* batch.entered("c")
      yield* batch.release("c")
      const report = yield* batch.report
      assert.deepStrictEqual(told(report), ["a Completed", "b NotStarted paused", "c Completed"])
      assert.strictEqual(report.outcome, "finished")
      assert.include(answers(batch.model.requests[1])[1], "paused")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 takes effect when their running calls have ended, whatever else runs", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["write:a", "read:b"], concurrency: 2 })
      yield* batch.entered("a", "b")
      yield* batch.session.pause({ scope: ToolScope.tools("write") })
      yield* settle
      assert.notInclude(yield* typesOf(batch), "pause.effective")
      yield* batch.release("a")
      yield* seenType(batch.session, "pause.effective")
      assert.deepStrictEqual(batch.ended, ["a"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 refuses no prompt and starts generations", () =>
    Effect.gen(function* () {
      const h = yield* idle()
      yield* h.session.pause({ scope: ToolScope.tools("edit") })
      const id = yield* h.prompt("go")
      assert.strictEqual((yield* report(h, id)).outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C2 interrupts none of their calls that run", () =>
    Effect.gen(function* () {
      const batch = yield* openBatch({ calls: ["write:a"] })
      yield* batch.entered("a")
      yield* batch.session.pause({ scope: ToolScope.tools("write") })
      yield* settle
      assert.deepStrictEqual(batch.ended, [])
      yield* batch.release("a")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
    }).pipe(Effect.scoped, runtime)
  )
})
