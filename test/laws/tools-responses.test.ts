/** T12 and T14: what a response counts for before its finish part, when it is cut, and when the provider ran a call itself. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Latch } from "effect"
import type { Response } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime } from "../../src/index.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"
import { type Harness, open, toolResults, types } from "../support/harness.ts"
import { notices, ofType, overloaded, pairs, said, seenType, statuses, scripted } from "../support/providers.ts"

const edit = ScriptedModel.call("edit", { path: "p" }, "a")
const parts = (...list: ReadonlyArray<Response.StreamPartEncoded>) => ScriptedModel.parts(list)

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** Starts, waits until the scripted response has given what it has, cancels, and asks again. */
const cutBy = (step: ScriptedModel.Step, model: ScriptedModel.Options = {}) =>
  Effect.gen(function* () {
    const given = yield* Deferred.make<void>()
    const stuck = ScriptedModel.wait(Effect.andThen(Deferred.succeed(given, undefined), Effect.never), parts())
    const harness = yield* open({ script: scripted(ScriptedModel.steps([step, stuck])), model })
    const id = yield* harness.prompt("go")
    yield* Deferred.await(given)
    yield* harness.session.cancel(id)
    const report = yield* harness.session.await(id)
    yield* harness.session.await(yield* harness.prompt("and now"))
    return { harness, report, next: harness.model.requests[1] }
  })

describe("L-T12 before the finish part", () => {
  on("L-T12 no call is launched and no message enters the context before the finish part", () =>
    Effect.gen(function* () {
      const given = yield* Deferred.make<void>()
      const finish = yield* Latch.make(false)
      const held = ScriptedModel.wait(Effect.andThen(Deferred.succeed(given, undefined), finish.await), parts())
      const harness = yield* open({ script: scripted(ScriptedModel.steps([edit, held])) })
      const id = yield* harness.prompt("go")
      yield* Deferred.await(given)
      assert.deepStrictEqual(harness.began, [])
      assert.notInclude(types(yield* harness.events), "tool.requested")
      assert.strictEqual((yield* harness.session.context).content.at(-1)?.role, "user")
      yield* finish.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 a call streamed before an error that is retried runs its handler once", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(ScriptedModel.failAfter(edit, overloaded), edit) })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "request.failed")
      yield* TestClock.adjust("1 second")
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit"])
      assert.deepStrictEqual(
        statuses(report).map(([id, status]) => [id, status._tag]),
        [["a", "Completed"]]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 a failed attempt that is retried leaves nothing in the context", () =>
    Effect.gen(function* () {
      const half = ScriptedModel.steps([ScriptedModel.text("I will edit it"), edit])
      const harness = yield* open({ script: scripted(ScriptedModel.failAfter(half, overloaded)) })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "request.failed")
      yield* TestClock.adjust("1 second")
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(harness.model.requests[1]?.prompt, harness.model.requests[0]?.prompt)
      assert.deepStrictEqual(report.tools, [])
      assert.deepStrictEqual(ofType(yield* harness.events, "assistant.message").length, 1)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T12 a response that is cut", () => {
  on("L-T12 keeps its text, marked interrupted, also where the text had not ended", () =>
    Effect.gen(function* () {
      const { next, report } = yield* cutBy(
        parts({ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: "I have read" })
      )
      assert.deepStrictEqual(said(next), [{ interrupted: true, parts: ["text I have read"] }])
      assert.strictEqual(report.outcome, "cancelled")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 a whole response is not marked interrupted", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted() })
      yield* harness.session.await(yield* harness.prompt("go"))
      yield* harness.session.await(yield* harness.prompt("and now"))
      assert.deepStrictEqual(said(harness.model.requests[1]), [{ interrupted: false, parts: ["text answer 1"] }])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 drops blank text: nothing of the assistant's is left", () =>
    Effect.gen(function* () {
      const { harness, next } = yield* cutBy(ScriptedModel.text(" \n"))
      assert.deepStrictEqual(said(next), [])
      assert.deepStrictEqual(
        ofType(yield* harness.events, "assistant.message").map((event) => event.text),
        ["answer 2"]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 drops reasoning that had not ended", () =>
    Effect.gen(function* () {
      const { next } = yield* cutBy(
        ScriptedModel.steps([
          ScriptedModel.text("So"),
          parts({ type: "reasoning-start", id: "r" }, { type: "reasoning-delta", id: "r", delta: "hm" })
        ])
      )
      assert.deepStrictEqual(said(next), [{ interrupted: true, parts: ["text So"] }])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 drops ended reasoning that nothing follows: alone it is no message", () =>
    Effect.gen(function* () {
      const { harness, next } = yield* cutBy(ScriptedModel.reasoning("hm"))
      assert.deepStrictEqual(said(next), [])
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 drops a call it had not finished asking for", () =>
    Effect.gen(function* () {
      const { next, report } = yield* cutBy(
        ScriptedModel.steps([
          ScriptedModel.text("Editing"),
          parts(
            { type: "tool-params-start", id: "a", name: "edit" },
            { type: "tool-params-delta", id: "a", delta: `{"pa` }
          )
        ])
      )
      assert.deepStrictEqual(report.tools, [])
      assert.deepStrictEqual(said(next), [{ interrupted: true, parts: ["text Editing"] }])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 pairs the calls it had finished asking for as not started, with the reason of the cut", () =>
    Effect.gen(function* () {
      const { harness, next, report } = yield* cutBy(edit)
      assert.deepStrictEqual(statuses(report), [["a", { _tag: "NotStarted", reason: "cancelled" }]])
      assert.deepStrictEqual(pairs(next), [{ calls: ["a"], results: ["a"] }])
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 cut amid reasoning, text and half a call, it leaves a prompt that a strict endpoint accepts", () =>
    Effect.gen(function* () {
      const { harness, next } = yield* cutBy(
        ScriptedModel.steps([
          ScriptedModel.reasoning("first"),
          ScriptedModel.text("I edit"),
          edit,
          parts(
            { type: "reasoning-start", id: "r2" },
            { type: "reasoning-delta", id: "r2", delta: "then" },
            { type: "text-start", id: "t2" },
            { type: "text-delta", id: "t2", delta: "and" },
            { type: "tool-params-start", id: "b", name: "edit" },
            { type: "tool-params-delta", id: "b", delta: "{" }
          )
        ])
      )
      assert.deepStrictEqual(said(next), [
        { interrupted: true, parts: ["reasoning first", "text I edit", "tool-call a", "text and"] }
      ])
      assert.deepStrictEqual(StrictPrompt.violations(next?.prompt ?? []), [])
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 cut after its finish part, it is whole: its calls are answered as not started", () =>
    Effect.gen(function* () {
      const { next, report } = yield* cutBy(
        ScriptedModel.steps([
          ScriptedModel.text("Editing"),
          edit,
          parts({ type: "finish", reason: "tool-calls", usage: ScriptedModel.usage(4, 2) })
        ])
      )
      assert.deepStrictEqual(said(next), [{ interrupted: false, parts: ["text Editing", "tool-call a"] }])
      assert.deepStrictEqual(statuses(report), [["a", { _tag: "NotStarted", reason: "cancelled" }]])
      assert.deepStrictEqual(report.usage, { inputTokens: 4, outputTokens: 2 })
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 cut before the result of a call the provider runs, it leaves a prompt that a strict endpoint accepts", () =>
    Effect.gen(function* () {
      const { harness, next } = yield* cutBy(
        ScriptedModel.steps([
          ScriptedModel.reasoning("search first"),
          parts({ type: "tool-call", id: "w", name: "web", params: { q: "x" }, providerExecuted: true })
        ]),
        { direct: true }
      )
      assert.deepStrictEqual(said(next), [])
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T12 finish reasons", () => {
  on("L-T12 `length` makes the calls not-started(invalid) and the generation goes on", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(ScriptedModel.steps([edit, ScriptedModel.finish("length")]))
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(
        statuses(report).map(([id, status]) => [id, status._tag === "NotStarted" ? status.reason : status._tag]),
        [["a", "invalid"]]
      )
      assert.include(toolResults(harness.model.requests[1])[0]?.result, "length")
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 `length` without calls is an answer", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [ScriptedModel.steps([ScriptedModel.text("as far as I"), ScriptedModel.finish("length")])]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.text, "as far as I")
      assert.strictEqual(report.outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 `pause` asks again with the content as it is", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [
          ScriptedModel.steps([ScriptedModel.text("half"), ScriptedModel.finish("pause")]),
          ScriptedModel.text("whole")
        ]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(
        harness.model.requests[1]?.prompt.map((message) => message.role),
        ["system", "user", "assistant"]
      )
      assert.deepStrictEqual(said(harness.model.requests[1]), [{ interrupted: false, parts: ["text half"] }])
      assert.strictEqual(report.text, "whole")
      assert.strictEqual(report.requests, 2)
      assert.strictEqual(ofType(yield* harness.events, "checkpoint.saved").length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 `content-filter` fails the generation, keeps the text as interrupted and is not tried again", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(
          ScriptedModel.steps([ScriptedModel.text("here is how"), edit, ScriptedModel.finish("content-filter")])
        )
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.outcome, "failed")
      assert.strictEqual(report.error?.kind, "content-filter")
      assert.strictEqual(report.requests, 1)
      assert.deepStrictEqual(statuses(report), [["a", { _tag: "NotStarted", reason: "failed" }]])
      yield* harness.session.await(yield* harness.prompt("and now"))
      assert.deepStrictEqual(said(harness.model.requests[1]), [
        { interrupted: true, parts: ["text here is how", "tool-call a"] }
      ])
      assert.strictEqual(notices(harness.model.requests[1]).length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T12 a missing finish part fails the generation and launches nothing", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(ScriptedModel.steps([edit, ScriptedModel.noFinish])) })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.outcome, "failed")
      assert.strictEqual(report.error?.kind, "invalid-response")
      assert.deepStrictEqual(statuses(report), [["a", { _tag: "NotStarted", reason: "failed" }]])
      assert.deepStrictEqual(harness.began, [])
      yield* harness.session.await(yield* harness.prompt("and now"))
      assert.deepStrictEqual(pairs(harness.model.requests[1]), [{ calls: ["a"], results: ["a"] }])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("cases of pairing", () => {
  on("case 29: the judge of prompts catches a call without a result and a result without a call", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(edit) })
      yield* harness.session.await(yield* harness.prompt("go"))
      const prompt = harness.model.requests[1]?.prompt ?? []
      const rules = (kept: ReadonlyArray<(typeof prompt)[number]>) =>
        StrictPrompt.violations(kept).map((violation) => violation.rule)
      assert.deepStrictEqual(rules(prompt), [])
      assert.include(rules(prompt.filter((message) => message.role !== "tool")), "call-without-result")
      assert.include(rules(prompt.filter((message) => message.role !== "assistant")), "result-without-call")
    }).pipe(Effect.scoped, runtime)
  )
})

const web: ReadonlyArray<Response.StreamPartEncoded> = [
  { type: "tool-call", id: "w", name: "web", params: { q: "x" }, providerExecuted: true },
  { type: "tool-result", id: "w", name: "web", isFailure: false, result: { hits: 3 }, providerExecuted: true }
]

describe("L-T14 calls the provider executed", () => {
  on("L-T14 call and result are recorded inside the assistant message", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(ScriptedModel.steps([parts(...web), ScriptedModel.text("three hits")])),
        model: { direct: true }
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.text, "three hits")
      yield* harness.session.await(yield* harness.prompt("and now"))
      const request = harness.model.requests[1]
      assert.deepStrictEqual(said(request), [
        { interrupted: false, parts: ["tool-call w", "tool-result w", "text three hits"] }
      ])
      assert.deepStrictEqual(
        request?.prompt.map((message) => message.role),
        ["system", "user", "assistant", "user"]
      )
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T14 they have no tool events, no report and no handler", () =>
    Effect.gen(function* () {
      const harness: Harness = yield* open({
        script: scripted(ScriptedModel.steps([parts(...web), ScriptedModel.text("three hits")])),
        model: { direct: true }
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(report.tools, [])
      assert.deepStrictEqual(
        types(yield* harness.events).filter((type) => type.startsWith("tool")),
        []
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T14 beside a call of the agent's own, only that one is answered in the tool message", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(ScriptedModel.steps([parts(...web), edit])),
        model: { direct: true }
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.providerId),
        ["a"]
      )
      assert.deepStrictEqual(pairs(harness.model.requests[1]), [{ calls: ["a"], results: ["a"] }])
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, runtime)
  )
})
