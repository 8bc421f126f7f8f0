/** R8: entries as JSON and back. Whatever a message or an input can hold is re-encoded equal, and what nobody wrote is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { Prompt } from "effect/ai"
import { Event, type Ids, Input } from "../../src/index.ts"
import * as Codec from "../../src/ledger/Codec.ts"
import * as Digest from "../../src/ledger/Digest.ts"
import * as EncodedPrompt from "../../src/ledger/EncodedPrompt.ts"
import type { Committed } from "../../src/ledger/Entry.ts"
import { generationId } from "../support/harness.ts"

const gen = generationId("gen_1")
/** As a store keeps it. */
const kept = (entry: Committed): string => JSON.stringify(Codec.encode(entry, 7))
const round = (entry: Committed) => Effect.runSync(Codec.decode(JSON.parse(kept(entry))))

/** Text with everything in it that stores and JSON have stumbled over. */
const text = Arbitrary.map(
  Arbitrary.all({
    some: Arbitrary.schema(Schema.String),
    odd: Arbitrary.schema(Schema.Literals(["", "\0", "\uD800", "\uDC00x", "\u2028", "\\u0000", '"', "\u007F"]))
  }),
  ({ odd, some }) => `${odd}${some}${odd}`
)
// A negative zero is a number of the language, not of JSON.
const json = Arbitrary.map(Arbitrary.schema(Schema.Json), (value) => JSON.parse(JSON.stringify(value)) as Schema.Json)
const options = Arbitrary.map(Arbitrary.all({ text, json }), ({ json, text }) => ({
  anthropic: { signature: text, json },
  midcourse: { input_id: "i" }
}))
const bytes = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals([0, 1, 127, 128, 255])), { maxLength: 6 }),
  (list) => new Uint8Array(list)
)
const data = Arbitrary.map(
  Arbitrary.all({ bytes, text, which: Arbitrary.schema(Schema.Literals([0, 1, 2])) }),
  ({ bytes, text, which }) => (which === 0 ? bytes : which === 1 ? text : new URL("https://example.org/a?b#c"))
)

const part = Arbitrary.map(
  Arbitrary.all({ text, data, options, which: Arbitrary.schema(Schema.Literals([0, 1])) }),
  ({ data, options, text, which }): Prompt.UserMessagePart =>
    which === 0
      ? Prompt.makePart("text", { text, options })
      : Prompt.makePart("file", { mediaType: "a/b", fileName: text, data, options })
)

const message = Arbitrary.map(
  Arbitrary.all({
    text,
    json,
    options,
    parts: Arbitrary.array(part, { minLength: 1, maxLength: 3 }),
    flag: Arbitrary.schema(Schema.Boolean),
    role: Arbitrary.schema(Schema.Literals(["system", "user", "assistant", "tool"]))
  }),
  ({ flag, json, options, parts, role, text }): Prompt.Message => {
    switch (role) {
      case "system":
        return Prompt.systemMessage({ content: text, options })
      case "user":
        return Prompt.userMessage({ content: parts, options })
      case "assistant":
        return Prompt.assistantMessage({
          options,
          content: [
            Prompt.makePart("reasoning", { text, options }),
            Prompt.makePart("text", { text, options }),
            Prompt.makePart("tool-call", { id: text, name: text, params: json, providerExecuted: flag, options })
          ]
        })
      case "tool":
        return Prompt.toolMessage({
          options,
          content: [
            Prompt.makePart("tool-result", {
              id: text,
              name: text,
              isFailure: flag,
              result: json,
              providerExecuted: false,
              options
            })
          ]
        })
    }
  }
)

const input = Arbitrary.map(
  Arbitrary.all({
    text,
    json,
    parts: Arbitrary.array(part, { minLength: 1, maxLength: 3 }),
    intent: Arbitrary.schema(Input.Intent)
  }),
  ({ intent, json, parts, text }): Input.Input => ({
    id: "i1" as Ids.InputId,
    intent,
    content: parts.length === 1 ? text : parts,
    author: text,
    route: text,
    scope: { tools: [text] },
    derivedFrom: "i0" as Ids.InputId,
    metadata: { [text]: json, text }
  })
)

describe("L-R8 messages", () => {
  it.prop(
    "L-R8 a message is decoded equal and re-encoded equal, options, signatures and files included",
    [message],
    ([message]) => {
      const entry: Committed = { record: "message", generation_id: gen, message }
      const again = round(entry)
      assert.deepStrictEqual(again, entry)
      assert.strictEqual(kept(again), kept(entry))
    }
  )

  it.prop("L-R8 an input is decoded equal, and is the same input", [input], ([input]) => {
    const entry: Committed = {
      record: "input",
      input,
      anchor: gen,
      generation_id: null,
      delivery: "new_turn",
      time: 1
    }
    const again = round(entry)
    assert.deepStrictEqual(again, entry)
    assert.isTrue("record" in again && again.record === "input" && Input.same(again.input, input))
    // Its digest is taken only when its content is given up, which may be after it was read back.
    assert.strictEqual(
      "record" in again && again.record === "input" ? Digest.ofInput(again.input) : undefined,
      Digest.ofInput(input)
    )
  })

  it.prop("L-R8 a tool's result is decoded equal", [json, text], ([result, tool]) => {
    const entry: Committed = {
      type: "tool.completed",
      generation_id: gen,
      session_id: "ses_1" as Ids.SessionId,
      sequence: 3,
      time: 4,
      request: 1,
      call_id: "gen_1.1.1" as Ids.ToolCallId,
      provider_call_id: tool,
      tool,
      result,
      is_failure: false
    }
    assert.deepStrictEqual(round(entry), entry)
  })

  it.prop("L-R8 any event is decoded equal", [Event.SessionEvent], ([event]) => {
    assert.deepStrictEqual(round(event), JSON.parse(JSON.stringify(event)) as Event.SessionEvent)
  })

  it.prop("L-R8 what is stored is JSON", [message], ([message]) => {
    const { body } = Codec.encode({ record: "message", generation_id: gen, message }, 1)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(body)), body)
  })
})

describe("the encoded form of effect/ai", () => {
  const bySchema = Schema.encodeSync(Prompt.Message)
  const told = (encode: () => unknown) =>
    Result.match(Result.try(encode), { onFailure: () => "refused", onSuccess: (value) => JSON.stringify(value) })

  const anyOptions = Arbitrary.map(
    Arbitrary.all({ options, which: Arbitrary.schema(Schema.Literals([0, 1, 2, 3])) }),
    // The last is none that the schema takes.
    ({ options, which }) =>
      [undefined, {}, options, { provider: undefined } as unknown as Prompt.ProviderOptions][which]
  )
  /** One of every kind, and some that only a host without types could make. */
  const kinds = (text: string, json: Schema.Json, flag: boolean, options: Prompt.ProviderOptions | undefined) => {
    const ran = { id: text, name: text, providerExecuted: flag, isFailure: flag, options }
    const file = { mediaType: "a/b", fileName: flag ? text : undefined, options }
    const parts: ReadonlyArray<unknown> = [
      Prompt.makePart("text", { text, options }),
      Prompt.makePart("reasoning", { text, options }),
      Prompt.makePart("file", { ...file, data: text }),
      Prompt.makePart("file", { ...file, data: new Uint8Array([1, 255]) }),
      Prompt.makePart("tool-call", { ...ran, params: json }),
      Prompt.makePart("tool-result", { ...ran, result: json }),
      Prompt.makePart("tool-result", { ...ran, result: undefined, modelOutput: undefined }),
      Prompt.makePart("tool-result", {
        ...ran,
        result: json,
        modelOutput: [Prompt.makePart("text", { text, options })]
      }),
      Prompt.makePart("tool-approval-request", { approvalId: text, toolCallId: text, options }),
      Prompt.makePart("tool-approval-response", { approvalId: text, approved: flag, reason: undefined, options }),
      { type: "text", options: {}, text: 1 },
      { type: "tool-call", options: {}, id: text, name: text, providerExecuted: flag },
      { type: "tool-result", options: {}, id: text, name: text, isFailure: flag, providerExecuted: flag }
    ]
    return parts as ReadonlyArray<Prompt.Part>
  }

  it.prop(
    "L-R8 any part, in any role, is encoded to the schema's own text, or refused where that refuses",
    { text, json, flag: Arbitrary.schema(Schema.Boolean), options: anyOptions, others: anyOptions },
    ({ flag, json, options, others, text }) => {
      for (const part of kinds(text, json, flag, options)) {
        for (const content of [text, [part], [part, Prompt.makePart("text", { text, options: others })]]) {
          for (const role of ["system", "user", "assistant", "tool"] as const) {
            const message = {
              ...Prompt.systemMessage({ content: "", options: others }),
              role,
              content
            } as Prompt.Message
            assert.strictEqual(
              told(() => EncodedPrompt.ofMessage(message)),
              told(() => bySchema(message))
            )
          }
        }
      }
    }
  )

  it.prop("L-R8 any input is encoded to the schema's own text", [input], ([input]) => {
    const own = Input.own(input)
    assert.strictEqual(
      told(() => EncodedPrompt.ofInput(own)),
      told(() => Schema.encodeSync(Input.Input)(own))
    )
  })
})

describe("L-R5 what nobody wrote", () => {
  const sample: Committed = { record: "message", generation_id: gen, message: Prompt.systemMessage({ content: "abc" }) }

  it("L-R5 an entry of another kind is refused", () => {
    const stored = Codec.encode(sample, 7)
    for (const kind of ["input", "event", "prophecy"]) {
      assert.strictEqual(Effect.runSync(Effect.flip(Codec.decode({ ...stored, kind }))).reason._tag, "Corrupt")
    }
  })

  it("L-R5 an event of an unknown type, or of another's shape, is refused", () => {
    for (const body of [{ type: "nonsense" }, { type: "session.idle" }, {}, 1, null]) {
      const stored = { ...Codec.encode(sample, 7), kind: "event", body }
      assert.strictEqual(Effect.runSync(Effect.flip(Codec.decode(stored))).reason._tag, "Corrupt")
    }
  })

  it("L-R5 a snapshot that was changed is refused", () => {
    const stored = Codec.encodeSnapshot(3, { a: [1, "\0\uD800"] })
    assert.deepStrictEqual(Effect.runSync(Codec.decodeSnapshot(stored)), { a: [1, "\0\uD800"] })
    for (const other of [{ position: 4 }, { body: "{}" }, { checksum: "" }]) {
      const error = Effect.runSync(Effect.flip(Codec.decodeSnapshot({ ...stored, ...other })))
      assert.strictEqual(error.reason._tag, "Corrupt")
    }
  })
})
