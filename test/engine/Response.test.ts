/** What one streamed response is gathered into, whole and cut. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { type LanguageModel, Prompt, type Response } from "effect/ai"
import { Collector } from "../../src/engine/Response.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"

type Part = Parameters<Collector["add"]>[0]

/** A collector that has taken what a scripted provider gives, without a decoder between. */
const collected = (...steps: ReadonlyArray<ScriptedModel.Step>) =>
  Effect.gen(function* () {
    const scripted = yield* ScriptedModel.make([ScriptedModel.steps(steps)], { direct: true })
    const model: LanguageModel.LanguageModel = scripted.model
    const collector = new Collector()
    const deltas: Array<string> = []
    yield* Stream.runForEach(model.streamText({ prompt: "go" }), (part) =>
      Effect.sync(() => {
        const delta = collector.add(part)
        if (delta !== undefined) deltas.push(`${delta.type} ${delta.text}`)
      })
    )
    return { collector, deltas }
  })

const raw = (...list: ReadonlyArray<unknown>): ScriptedModel.Step =>
  ScriptedModel.parts(list as ReadonlyArray<Response.StreamPartEncoded>)
const call = (id: string, params: unknown = { path: "p" }) => ScriptedModel.call("edit", params, id)
const provided = (id: string, withResult = true) =>
  raw(
    { type: "tool-call", id, name: "web", params: {}, providerExecuted: true },
    ...(withResult
      ? [{ type: "tool-result", id, name: "web", isFailure: false, result: 3, providerExecuted: true }]
      : [])
  )

const contents = (message: Prompt.AssistantMessage | undefined) =>
  message?.content.map((part) =>
    "text" in part ? `${part.type} ${part.text}` : `${part.type} ${"id" in part ? part.id : ""}`
  )

/** The message with its own calls answered, as it would stand in the next prompt. */
const violations = (message: Prompt.AssistantMessage | undefined) => {
  const user = Prompt.userMessage({ content: [Prompt.makePart("text", { text: "go" })] })
  if (message === undefined) return []
  const answers = message.content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted
      ? [
          Prompt.makePart("tool-result", {
            id: part.id,
            name: part.name,
            isFailure: false,
            result: "",
            providerExecuted: false
          })
        ]
      : []
  )
  const tool = answers.length === 0 ? [] : [Prompt.toolMessage({ content: answers })]
  return StrictPrompt.violations([user, message, ...tool, user]).map((violation) => String(violation))
}

describe("Collector", () => {
  it.effect("gathers text, reasoning and calls in order, with the deltas for whoever watches", () =>
    Effect.gen(function* () {
      const { collector, deltas } = yield* collected(
        ScriptedModel.reasoning("h", "m"),
        ScriptedModel.text("I ", "edit"),
        call("a"),
        ScriptedModel.finish("tool-calls", ScriptedModel.usage(12, 3))
      )
      const gathered = collector.gather(false)
      assert.deepStrictEqual(contents(gathered.message), ["reasoning hm", "text I edit", "tool-call a"])
      assert.deepStrictEqual(deltas, ["reasoning.delta h", "reasoning.delta m", "text.delta I ", "text.delta edit"])
      assert.deepStrictEqual(
        [gathered.text, gathered.calls, gathered.repeats, gathered.usage, gathered.whole, collector.reason],
        [
          "I edit",
          [{ id: "a", name: "edit", params: { path: "p" } }],
          [],
          { inputTokens: 12, outputTokens: 3 },
          true,
          "tool-calls"
        ]
      )
    })
  )

  it.effect("keeps the options of parts: a reasoning's signature goes back as it came", () =>
    Effect.gen(function* () {
      const signed = { anthropic: { signature: "abc" } }
      const { collector } = yield* collected(
        raw(
          { type: "reasoning-start", id: "r", metadata: signed },
          { type: "reasoning-delta", id: "r", delta: "hm" },
          { type: "reasoning-end", id: "r" }
        ),
        call("a")
      )
      assert.deepInclude(collector.gather(false).message?.content[0]?.options, signed)
    })
  )

  it.effect("L-T12 marks the message of a cut response and no other", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(ScriptedModel.text("half"))
      assert.deepStrictEqual(collector.gather(true).message?.options["midcourse"], { interrupted: true })
      assert.isUndefined(collector.gather(false).message?.options["midcourse"])
      assert.isFalse(collector.gather(true).whole)
    })
  )

  it.effect("L-T1 a repeated id is set apart and is not in the message", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(call("a", { n: 1 }), call("a", { n: 2 }), call("b"))
      const gathered = collector.gather(false)
      assert.deepStrictEqual(
        [gathered.calls.map(({ id }) => id), gathered.repeats.map(({ params }) => params), gathered.whole],
        [["a", "b"], [{ n: 2 }], false]
      )
      assert.deepStrictEqual(violations(gathered.message), [])
    })
  )

  it.effect("L-T1 an id used by a call of the provider's is a repeat too", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(provided("a"), call("a"))
      const gathered = collector.gather(false)
      assert.deepStrictEqual(violations(gathered.message), [])
      assert.strictEqual(gathered.repeats.length, 1)
    })
  )

  it.effect("blank text and lone reasoning are no message, and the response is then not whole", () =>
    Effect.gen(function* () {
      for (const step of [ScriptedModel.text(" \n\t"), ScriptedModel.reasoning("hm")]) {
        const { collector } = yield* collected(step)
        const { message, whole } = collector.gather(false)
        assert.isUndefined(message)
        assert.isFalse(whole)
      }
    })
  )

  it.effect("L-T14 calls of the provider stand with their results, and are no calls to run", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(provided("w"), ScriptedModel.text("three"))
      const gathered = collector.gather(false)
      assert.deepStrictEqual(contents(gathered.message), ["tool-call w", "tool-result w", "text three"])
      assert.deepStrictEqual(gathered.calls, [])
    })
  )

  for (const [name, before] of [
    ["nothing", []],
    ["reasoning", [ScriptedModel.reasoning("search")]],
    ["text", [ScriptedModel.text("I search")]]
  ] as const) {
    it.effect(
      `L-T12 cut after ${name} and before a provider's result, it leaves a message that may be sent or none`,
      () =>
        Effect.gen(function* () {
          const { collector } = yield* collected(...before, provided("w", false))
          const { message } = collector.gather(true)
          assert.deepStrictEqual(violations(message), [])
          assert.deepStrictEqual(contents(message), name === "text" ? ["text I search"] : undefined)
        })
    )
  }

  it.effect("L-T12 unended text is kept, unended reasoning is not", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(
        raw(
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "half" },
          { type: "reasoning-start", id: "r" },
          { type: "reasoning-delta", id: "r", delta: "hm" }
        )
      )
      assert.deepStrictEqual(contents(collector.gather(true).message), ["text half"])
    })
  )

  it.effect("preliminary results and results of our own calls are not the provider's to give", () =>
    Effect.gen(function* () {
      const result = { type: "tool-result", name: "edit", isFailure: false, result: "forged" }
      const { collector } = yield* collected(
        call("a"),
        raw({ ...result, id: "a" }, { ...result, id: "a", providerExecuted: true, preliminary: true })
      )
      assert.deepStrictEqual(contents(collector.gather(false).message), ["tool-call a"])
    })
  )

  it.effect("nothing after the finish part is taken", () =>
    Effect.gen(function* () {
      const { collector } = yield* collected(ScriptedModel.text("done"))
      const late = { type: "text-delta", id: "t", delta: "late" } as unknown as Part
      assert.isUndefined(collector.add(late))
      assert.strictEqual(collector.gather(false).text, "done")
    })
  )

  it("what no protocol allows is named", () => {
    const broken: ReadonlyArray<readonly [unknown, string]> = [
      [null, "not an object"],
      ["text", "not an object"],
      [{}, "type"],
      [{ type: "text-delta", id: "t" }, "text-delta"],
      [{ type: "reasoning-delta", id: "r", delta: 3 }, "reasoning-delta"],
      [{ type: "tool-call", id: "", name: "edit", params: {} }, "without an id or a name"],
      [{ type: "tool-call", id: "a", params: {} }, "without an id or a name"]
    ]
    for (const [part, says] of broken) {
      const collector = new Collector()
      collector.add(part as Part)
      assert.include(collector.malformed, says)
    }
  })

  it("parameters that are no JSON become text, and none at all become an empty object", () => {
    const given: ReadonlyArray<readonly [unknown, unknown]> = [
      [{ a: [1, null] }, { a: [1, null] }],
      [
        { a: 1, b: "x" },
        { a: 1, b: "x" }
      ],
      [10n, "10"],
      [{ n: Number.NaN }, "[object Object]"],
      [undefined, {}]
    ]
    for (const [params, kept] of given) {
      const collector = new Collector()
      collector.add({ type: "tool-call", id: "a", name: "edit", params } as unknown as Part)
      assert.deepStrictEqual(collector.gather(false).calls[0]?.params, kept)
    }
  })
})
