/** P2: the compaction that comes with the runtime keeps what people said, what no request has carried, and whole steps. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Prompt } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime, Compaction, ContextPreparation, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, open, userTexts } from "../support/harness.ts"
import { gate, pairs } from "../support/providers.ts"
import { duringRequest, lasting, receipts, report, seen } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const options: Compaction.Options = { maxLength: 4000, keepLength: 1000, summaryLength: 300 }
const summariser = ScriptedModel.make((request) => ScriptedModel.text(`summary ${request.index}`))

interface Long {
  /** How many calls are made, one a request, before the answer. */
  readonly calls: number
  /** What the call of this path does before it ends. */
  readonly during?: (path: string) => Effect.Effect<unknown>
  readonly model?: ScriptedModel.ScriptedModel["Service"]
  readonly options?: Compaction.Options
}

/** A session of one long generation after another: each call's result is 500 characters long. */
const long = ({ calls, during = () => Effect.void, model, options: given = options }: Long) =>
  Effect.gen(function* () {
    const summaries = model ?? (yield* summariser)
    const service = yield* Effect.provide(Compaction.make(given), summaries.layer)
    const h = yield* open({
      script: ({ index }) =>
        index % (calls + 1) === 0
          ? ScriptedModel.text(`answer ${index}`)
          : ScriptedModel.call("look", { path: String(index) }, String(index)),
      look: (path) => Effect.as(Effect.orDie(during(path)), `result ${path} ${"x".repeat(500)}`)
    }).pipe(Effect.provideService(ContextPreparation.ContextPreparation, service))
    return { ...h, summaries }
  })

/** Runs one prompt to its report. */
const ask = (h: Harness, content: string, id: string) =>
  Effect.flatMap(h.prompt(content, id), (generation) => report(h, generation))

const textOf = (message: Prompt.Message | undefined): string => {
  if (message === undefined) return ""
  if (typeof message.content === "string") return message.content
  return message.content.map((part) => ("text" in part ? part.text : "")).join("\n")
}

const isSummary = (message: Prompt.Message): boolean => {
  const own: unknown = message.options["midcourse"]
  return typeof own === "object" && own !== null && "summarises" in own
}
const summaryIn = (request: ScriptedModel.Request | undefined) => request?.prompt.find(isSummary)
const summarised = (h: Harness) => h.model.requests.filter((request) => request.prompt.some(isSummary))
/** All the words of a request. */
const wordsOf = (request: ScriptedModel.Request | undefined) => request?.prompt.map(textOf).join("\n") ?? ""

describe("L-P2 compaction", () => {
  on("L-P2 leaves a conversation no longer than its limit as it is", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 2 })
      yield* ask(h, "do it", "p")
      assert.strictEqual(h.summaries.requests.length, 0)
      assert.deepStrictEqual(summarised(h), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 of a long one sends a summary marked as such, and then the newest part as it is", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 8 })
      assert.strictEqual((yield* ask(h, "do it", "p")).outcome, "finished")
      const whole = (yield* Effect.orDie(h.session.context)).content
      assert.isAbove(summarised(h).length, 0)
      for (const { prompt } of summarised(h)) {
        const kept = prompt.filter((message) => message.role !== "system" && !isSummary(message))
        const [first] = kept
        const at = whole.findIndex((message) => message === first)
        assert.deepStrictEqual(kept, whole.slice(at, at + kept.length))
      }
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 cuts only between whole steps, however much is kept: no call is parted from its result", () =>
    Effect.forEach(
      Array.from({ length: 20 }, (_, index) => 500 + index * 50),
      (keepLength) =>
        Effect.gen(function* () {
          const h = yield* long({ calls: 8, options: { ...options, keepLength } })
          assert.strictEqual((yield* ask(h, "do it", "p")).outcome, "finished")
          assert.deepStrictEqual(h.model.violations, [])
          assert.isAbove(summarised(h).length, 0)
          for (const request of summarised(h)) {
            for (const { calls, results } of pairs(request)) assert.deepStrictEqual(results, calls)
          }
        })
    ).pipe(Effect.scoped, runtime)
  )

  on("L-P2 the generation goes on with its own task: the prompt's words are in every request", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 14 })
      yield* ask(h, "paint it green, not blue", "p")
      assert.isAbove(h.summaries.requests.length, 1)
      for (const request of h.model.requests) assert.include(wordsOf(request), "paint it green, not blue")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 keeps the words of a steer that was carried before it is summarised away", () =>
    Effect.gen(function* () {
      const first = yield* gate
      const h = yield* long({ calls: 14, during: (path) => (path === "1" ? first.pass(undefined) : Effect.void) })
      const id = yield* h.prompt("do it", "p")
      yield* first.entered
      yield* h.steer(id, "and mind the gap", { id: "s" })
      yield* first.open
      yield* report(h, id)
      const last = h.model.requests.at(-1)
      assert.isFalse(last?.prompt.some((message) => Input.idOfMessage(message) === "s"))
      assert.include(textOf(summaryIn(last)), "and mind the gap")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 never summarises steering that no request has carried, however long it is", () =>
    Effect.gen(function* () {
      const late = yield* gate
      const h = yield* long({ calls: 8, during: (path) => (path === "5" ? late.pass(undefined) : Effect.void) })
      const id = yield* h.prompt("do it", "p")
      yield* late.entered
      const ids = ["s1", "s2", "s3"]
      yield* Effect.forEach(ids, (each) => h.steer(id, `${each} ${"y".repeat(900)}`, { id: each }))
      const before = h.summaries.requests.length
      yield* late.open
      yield* report(h, id)
      const next = h.model.requests[5]
      assert.isAbove(h.summaries.requests.length, before)
      assert.deepStrictEqual(
        next?.prompt.flatMap((message) => Input.idOfMessage(message) ?? []).filter((each) => each !== "p"),
        ids.map(inputId)
      )
      assert.deepStrictEqual(yield* receipts(h, ...ids), ["applied in 6", "applied in 6", "applied in 6"])
      const [during] = h.summaries.requests.slice(before)
      assert.notInclude(wordsOf(during), "yyyy")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 never summarises the prompt of a generation that has made no request", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 6 })
      yield* ask(h, "the first task", "p1")
      const before = h.summaries.requests.length
      yield* ask(h, `the second task ${"z".repeat(3000)}`, "p2")
      const first = h.model.requests[7]
      assert.isAbove(h.summaries.requests.length, before)
      assert.include(userTexts(first).join("\n"), "the second task zzz")
      assert.isTrue(first?.prompt.some((message) => Input.idOfMessage(message) === "p2"))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 makes a summary once, and sends it again while the conversation stays short enough", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 8 })
      yield* ask(h, "do it", "p")
      assert.strictEqual(h.summaries.requests.length, 1)
      assert.isAbove(summarised(h).length, 1)
      assert.strictEqual(new Set(summarised(h).map((request) => textOf(summaryIn(request)))).size, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 the conversation itself is kept whole", () =>
    Effect.gen(function* () {
      const h = yield* long({ calls: 12 })
      yield* ask(h, "do it", "p")
      const { content } = yield* Effect.orDie(h.session.context)
      assert.isFalse(content.some(isSummary))
      assert.strictEqual(content.filter((message) => message.role === "tool").length, 12)
      assert.isTrue(content.some((message) => Input.idOfMessage(message) === "p"))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 a summary longer than its limit is bounded", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make(() => ScriptedModel.text("s".repeat(20_000)))
      const h = yield* long({ calls: 8, model })
      assert.strictEqual((yield* ask(h, "do it", "p")).outcome, "finished")
      assert.isAbove(summarised(h).length, 0)
      for (const request of summarised(h)) assert.isBelow(textOf(summaryIn(request)).length, 1000)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 as a layer it compacts every session opened under it", () =>
    Effect.gen(function* () {
      const model = yield* summariser
      const h = yield* open({
        script: ({ index }) =>
          index > 8 ? ScriptedModel.text("done") : ScriptedModel.call("look", { path: "p" }, String(index)),
        look: () => Effect.succeed("x".repeat(500))
      }).pipe(Effect.provide(Layer.provide(Compaction.layer(options), model.layer)))
      yield* ask(h, "do it", "p")
      assert.isAbove(summarised(h).length, 0)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-P3 a summary that cannot be made", () => {
  on("L-P3 fails the generation as preparation, and nothing is sent in its place", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make(() => ScriptedModel.fail(lasting()))
      const h = yield* long({ calls: 12, model })
      const { error, outcome } = yield* ask(h, "do it", "p")
      assert.deepStrictEqual([outcome, error?.kind], ["failed", "preparation"])
      assert.deepStrictEqual(summarised(h), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 that never comes is ended by a cancel", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const model = yield* ScriptedModel.make(() => ScriptedModel.wait(asked.pass(undefined), ScriptedModel.hang))
      const h = yield* long({ calls: 12, model })
      const id = yield* h.prompt("do it", "p")
      yield* asked.entered
      yield* h.session.cancel(id)
      assert.strictEqual((yield* report(h, id)).outcome, "cancelled")
      assert.strictEqual(model.stats().open, 0)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("cases of compaction", () => {
  /** A generation that is being compacted before its eighth request. */
  const compacting = Effect.gen(function* () {
    const asked = yield* gate
    const model = yield* ScriptedModel.make(({ index }) =>
      index === 1
        ? ScriptedModel.wait(asked.pass(undefined), ScriptedModel.text("summary"))
        : ScriptedModel.text("again")
    )
    const h = yield* long({ calls: 9, model })
    const id = yield* h.prompt("the whole task", "p")
    yield* asked.entered
    return { asked, at: h.model.requests.length, h, id, model }
  })

  on(
    "case 35: a steer and a follow-up during compaction: the steer in the next request, the follow-up after the end",
    () =>
      Effect.gen(function* () {
        const { asked, at, h, id } = yield* compacting
        yield* h.steer(id, "the steer", { id: "s" })
        yield* h.session.submit(Input.followUp("the follow-up", { id: "f" }))
        yield* asked.open
        assert.strictEqual((yield* report(h, id)).outcome, "finished")
        yield* TestClock.adjust("1 minute")
        const has = (words: string) => h.model.requests.findIndex((request) => wordsOf(request).includes(words))
        assert.include([at, at + 1], has("the steer"))
        assert.strictEqual(has("the follow-up"), 10)
        assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
      }).pipe(Effect.scoped, runtime)
  )

  on("case 36: a steer during a compaction that fails is held, and the run says why it failed", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const model = yield* ScriptedModel.make(() =>
        ScriptedModel.wait(asked.pass(undefined), ScriptedModel.fail(lasting()))
      )
      const h = yield* long({ calls: 12, model })
      const id = yield* h.prompt("do it", "p")
      yield* asked.entered
      yield* h.steer(id, "the steer", { id: "s" })
      yield* asked.open
      assert.strictEqual((yield* report(h, id)).error?.kind, "preparation")
      assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-failed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 37: a steer during compaction is in no summary, and in the context word for word", () =>
    Effect.gen(function* () {
      const { asked, at, h, id, model } = yield* compacting
      yield* h.steer(id, "the steer", { id: "s" })
      yield* asked.open
      yield* report(h, id)
      assert.notInclude(wordsOf(model.requests[0]), "the steer")
      const first = h.model.requests.findIndex((request) => wordsOf(request).includes("the steer"))
      assert.include([at, at + 1], first)
      const own = h.model.requests[first]?.prompt.find((message) => Input.idOfMessage(message) === "s")
      assert.strictEqual(textOf(own), "the steer")
    }).pipe(Effect.scoped, runtime)
  )

  on("case 38: what is queued during compaction does not replace the unfinished task, which goes on", () =>
    Effect.gen(function* () {
      const { asked, at, h, id } = yield* compacting
      yield* h.session.submit(Input.followUp("another task", { id: "f" }))
      yield* asked.open
      const { outcome, text } = yield* report(h, id)
      assert.deepStrictEqual([outcome, text], ["finished", "answer 10"])
      const own = h.model.requests.slice(at, 10)
      assert.isAbove(own.length, 0)
      for (const request of own) {
        assert.include(wordsOf(request), "the whole task")
        assert.notInclude(wordsOf(request), "another task")
      }
    }).pipe(Effect.scoped, runtime)
  )

  on("case 24: a steer applied by the last step before a compaction is applied exactly once", () =>
    Effect.gen(function* () {
      const { asked, h, id } = yield* compacting
      yield* h.steer(id, "the steer", { id: "s" })
      yield* asked.open
      yield* report(h, id)
      const { content } = yield* Effect.orDie(h.session.context)
      assert.strictEqual(content.filter((message) => Input.idOfMessage(message) === "s").length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-P2 a steer before the request that is compacted, though the answer needs no further request, is carried", () =>
    Effect.gen(function* () {
      const model = yield* summariser
      const service = yield* Effect.provide(Compaction.make({ ...options, maxLength: 10 }), model.layer)
      const h = yield* Effect.provideService(duringRequest(), ContextPreparation.ContextPreparation, service)
      yield* h.steer(h.id, "one more thing", { id: "s" })
      yield* h.go
      yield* report(h, h.id)
      yield* seen(h, "generation.finished")
      assert.include(userTexts(h.model.requests[1]), "one more thing")
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
    }).pipe(Effect.scoped, runtime)
  )
})
