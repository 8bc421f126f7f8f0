import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Prompt } from "effect/ai"
import { StrictPrompt } from "../../src/testing/index.ts"

const text = (value: string) => Prompt.makePart("text", { text: value })
const system = Prompt.systemMessage({ content: "be brief" })
const user = (...parts: ReadonlyArray<string>) => Prompt.userMessage({ content: parts.map(text) })
const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) => Prompt.assistantMessage({ content })
const reasoning = Prompt.makePart("reasoning", { text: "hm" })
const call = (id: string, options: { name?: string; params?: unknown; providerExecuted?: boolean } = {}) =>
  Prompt.makePart("tool-call", { id, name: "t", params: {}, providerExecuted: false, ...options })
const result = (id: string, options: { name?: string; result?: unknown; providerExecuted?: boolean } = {}) =>
  Prompt.makePart("tool-result", {
    id,
    name: "t",
    result: "ok",
    isFailure: false,
    providerExecuted: false,
    ...options
  })
const tool = (...content: ReadonlyArray<Prompt.ToolMessagePart>) => Prompt.toolMessage({ content })
const file = Prompt.userMessage({
  content: [Prompt.makePart("file", { mediaType: "image/png", fileName: undefined, data: new Uint8Array([1]) })]
})

const cyclic: Record<string, unknown> = {}
cyclic["self"] = cyclic

const cases: Record<
  StrictPrompt.Rule,
  { readonly good: ReadonlyArray<Prompt.Message>; readonly bad: ReadonlyArray<Prompt.Message> }
> = {
  "no-user": { good: [system, user("a")], bad: [system] },
  "system-not-first": { good: [system, system, user("a")], bad: [user("a"), system, user("b")] },
  "first-not-user": { good: [user("a")], bad: [assistant(text("hi")), user("a")] },
  "last-is-assistant": { good: [user("a"), assistant(text("b")), user("c")], bad: [user("a"), assistant(text("b"))] },
  "blank-message": { good: [user("a"), assistant(call("1")), tool(result("1"))], bad: [user(" \n")] },
  "blank-text": { good: [user("a", "b")], bad: [user("a", "")] },
  "reasoning-only": {
    good: [user("a"), assistant(reasoning, text("b")), user("c")],
    bad: [user("a"), assistant(reasoning), user("c")]
  },
  "duplicate-call": {
    good: [user("a"), assistant(call("1")), tool(result("1")), assistant(call("1")), tool(result("1"))],
    bad: [user("a"), assistant(call("1"), call("1")), tool(result("1"))]
  },
  "call-without-result": {
    good: [user("a"), assistant(call("1"), call("2")), tool(result("1"), result("2"))],
    bad: [user("a"), assistant(call("1"), call("2")), tool(result("1"))]
  },
  "result-without-call": {
    good: [user("a"), assistant(call("1")), tool(result("1"))],
    bad: [user("a"), assistant(call("1")), tool(result("1"), result("2"))]
  },
  "duplicate-result": {
    good: [user("a"), assistant(call("1")), tool(result("1"))],
    bad: [user("a"), assistant(call("1")), tool(result("1"), result("1"))]
  },
  "result-order": {
    good: [user("a"), assistant(call("1"), call("2")), tool(result("1"), result("2"))],
    bad: [user("a"), assistant(call("1"), call("2")), tool(result("2"), result("1"))]
  },
  "result-name": {
    good: [user("a"), assistant(call("1", { name: "x" })), tool(result("1", { name: "x" }))],
    bad: [user("a"), assistant(call("1", { name: "x" })), tool(result("1", { name: "y" }))]
  },
  "tool-not-after-call": {
    good: [user("a"), assistant(call("1")), tool(result("1")), user("b")],
    bad: [user("a"), assistant(call("1")), user("b"), tool(result("1"))]
  },
  "empty-tool-message": {
    good: [user("a"), assistant(call("1")), tool(result("1"))],
    bad: [user("a"), assistant(call("1")), tool()]
  },
  "not-json": {
    good: [user("a"), assistant(call("1")), tool(result("1", { result: { a: [1, null, "x"], b: undefined } }))],
    bad: [user("a"), assistant(call("1")), tool(result("1", { result: cyclic }))]
  }
}

const rules = (messages: ReadonlyArray<Prompt.Message>, options?: StrictPrompt.Options) =>
  StrictPrompt.violations(messages, options).map((violation) => violation.rule)

describe("StrictPrompt (L-T2, L-B1, L-P3, L-R3)", () => {
  for (const [rule, { bad, good }] of Object.entries(cases)) {
    it(`${rule}: takes what keeps it, names what breaks it`, () => {
      assert.deepStrictEqual(rules(good), [])
      assert.include(rules(bad), rule)
    })
  }

  it("an empty prompt has no user", () => {
    assert.deepStrictEqual(rules([]), ["no-user"])
  })

  it("a file is substance", () => {
    assert.deepStrictEqual(rules([file]), [])
  })

  it("a blank assistant message is refused with and without reasoning", () => {
    assert.deepStrictEqual(rules([user("a"), assistant(), user("b")]), ["blank-message"])
    assert.deepStrictEqual(rules([user("a"), assistant(reasoning, text("")), user("b")]), ["blank-message"])
  })

  it("the last message may be the assistant's in a continuation", () => {
    const messages = [user("a"), assistant(text("b"))]
    assert.deepStrictEqual(rules(messages, { allowLastAssistant: true }), [])
  })

  it("a call the provider executed needs no tool message and may be answered by the next assistant message", () => {
    const executed = call("p", { providerExecuted: true })
    const answer = result("p", { providerExecuted: true })
    assert.deepStrictEqual(rules([user("a"), assistant(executed, answer, text("b")), user("c")]), [])
    assert.deepStrictEqual(rules([user("a"), assistant(executed), assistant(answer, text("b")), user("c")]), [])
    assert.deepStrictEqual(rules([user("a"), assistant(answer, text("b")), user("c")]), ["result-without-call"])
  })

  it("values JSON cannot hold are refused wherever they are", () => {
    for (const value of [undefined, NaN, 1n, () => 1, new Date(0), [undefined], { a: { b: Infinity } }]) {
      assert.deepStrictEqual(rules([user("a"), assistant(call("1")), tool(result("1", { result: value }))]), [
        "not-json"
      ])
    }
    assert.include(rules([user("a"), assistant(call("1", { params: 1n })), tool(result("1"))]), "not-json")
  })

  it.effect("assertValid fails with every violation", () =>
    Effect.gen(function* () {
      yield* StrictPrompt.assertValid([user("a")])
      const error = yield* Effect.flip(StrictPrompt.assertValid([user(""), assistant(text("b"))]))
      assert.strictEqual(error._tag, "StrictPromptError")
      assert.deepStrictEqual(
        error.violations.map((violation) => violation.rule),
        ["blank-message", "last-is-assistant"]
      )
      assert.include(error.message, "message 0 blank-message")
    })
  )
})
