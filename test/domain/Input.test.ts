import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { Prompt } from "effect/ai"
import { Ids, Input, Limits, ToolScope } from "../../src/index.ts"

const generation = Ids.GenerationId.make("gen_1")

/** Few values for each field, so that equal inputs are common. */
const some = <const A extends Schema.Literal<never>["literal"] | string | number>(...values: ReadonlyArray<A>) =>
  Arbitrary.schema(Schema.Literals(values))

const part = Arbitrary.map(
  Arbitrary.all({
    kind: some("text", "file"),
    text: some("a", "b", "ab"),
    byte: some(0, 1),
    media: some("a/a", "b/b")
  }),
  ({ byte, kind, media, text }): Prompt.UserMessagePart =>
    kind === "text"
      ? Prompt.makePart("text", { text })
      : Prompt.makePart("file", { mediaType: media, fileName: undefined, data: new Uint8Array([byte]) })
)

const content = Arbitrary.map(
  Arbitrary.all({
    text: some("a", "b", "ab"),
    parts: Arbitrary.array(part, { minLength: 1, maxLength: 2 }),
    whole: some(0, 1)
  }),
  ({ parts, text, whole }): Input.Content => (whole === 1 ? text : parts)
)

const scopes: ReadonlyArray<ToolScope.ToolScope | undefined> = [
  undefined,
  ToolScope.none,
  ToolScope.tools("a", "b"),
  ToolScope.tools("b", "a"),
  ToolScope.tools("b", "a", "b")
]

const input = Arbitrary.map(
  Arbitrary.all({
    intent: Arbitrary.schema(Input.Intent),
    content,
    author: some("ann", "bob"),
    scope: some(0, 1, 2, 3, 4),
    route: some("", "r"),
    derivedFrom: some("", "d"),
    metadata: Arbitrary.schema(Schema.Record(Schema.String, Schema.Json))
  }),
  ({ derivedFrom, intent, route, scope, ...rest }): Input.Input => {
    const named = scopes[scope]
    return {
      ...rest,
      id: Ids.InputId.make("i"),
      intent,
      ...(named === undefined ? undefined : { scope: named }),
      ...(route === "" ? undefined : { route }),
      ...(derivedFrom === "" ? undefined : { derivedFrom: Ids.InputId.make(derivedFrom) })
    }
  }
)

/** What L-I2 compares, as one string. */
const canon = (value: Input.Input): string => {
  const parts = typeof value.content === "string" ? [Prompt.makePart("text", { text: value.content })] : value.content
  return JSON.stringify([
    value.intent,
    value.author,
    value.route ?? null,
    value.derivedFrom ?? null,
    value.scope === undefined ? null : [...new Set(value.scope.tools)].sort(),
    parts.map((part) => (part.type === "text" ? part.text : [part.mediaType, String(part.data)]))
  ])
}

const runs = { arbitrary: { runs: 2_000 } }

describe("Input.same (L-I2)", () => {
  it.prop(
    "L-I2 is equality of what the law compares",
    [input, input],
    ([a, b]) => {
      assert.strictEqual(Input.same(a, b), canon(a) === canon(b))
    },
    runs
  )

  it.prop("L-I2 is reflexive, for equal copies too", [input], ([a]) => {
    assert.isTrue(Input.same(a, a))
    assert.isTrue(Input.same(a, structuredCloneOf(a)))
  })

  it.prop(
    "L-I2 is symmetric",
    [input, input],
    ([a, b]) => {
      assert.strictEqual(Input.same(a, b), Input.same(b, a))
    },
    runs
  )

  it.prop(
    "L-I2 is transitive",
    [input, input, input],
    ([a, b, c]) => {
      if (Input.same(a, b) && Input.same(b, c)) assert.isTrue(Input.same(a, c))
    },
    runs
  )

  it.prop("L-I2 does not look at metadata", [input, Schema.Record(Schema.String, Schema.Json)], ([a, metadata]) => {
    assert.isTrue(Input.same(a, { ...a, metadata }))
  })
})

/** Equal in every part and shared in none. Parts are made anew: their type mark is no own data. */
const structuredCloneOf = (a: Input.Input): Input.Input => ({
  ...a,
  ...(a.scope === undefined ? undefined : { scope: { tools: [...a.scope.tools] } }),
  content:
    typeof a.content === "string"
      ? a.content
      : a.content.map((part) =>
          part.type === "text"
            ? Prompt.makePart("text", { text: part.text })
            : Prompt.makePart("file", {
                mediaType: part.mediaType,
                fileName: part.fileName,
                data: part.data instanceof Uint8Array ? new Uint8Array(part.data) : part.data
              })
        )
})

describe("Input.invalid (L-A6)", () => {
  it.effect.prop("L-A6 accepts every valid input", [input], ([a]) =>
    Effect.gen(function* () {
      const limits = yield* Limits.Limits
      const small = JSON.stringify(a.metadata).length < 4_000
      assert.strictEqual(Input.invalid(small ? a : { ...a, metadata: {} }, limits), undefined)
    })
  )

  it.effect.prop(
    "L-A6 accepts any text that is not blank and holds no forbidden character",
    [Schema.String],
    ([text]) =>
      Effect.gen(function* () {
        const limits = yield* Limits.Limits
        const valid = text.trim() !== "" && !text.includes("\0") && text.isWellFormed()
        assert.strictEqual(Input.invalid(Input.steer(text), limits) === undefined, valid)
      })
  )

  it.effect.prop("L-A6 accepts exactly the ids that the schema accepts", [Schema.String], ([id]) =>
    Effect.gen(function* () {
      const limits = yield* Limits.Limits
      const valid = Schema.is(Ids.InputId)(id)
      assert.strictEqual(Input.invalid(Input.steer("x", { id }), limits) === undefined, valid)
    })
  )

  it.effect.prop("L-A6 answers for any JSON, and throws for none", [Schema.Json], ([json]) =>
    Effect.gen(function* () {
      const limits = yield* Limits.Limits
      assert.isString(Input.invalid(json, limits))
      for (const key of ["id", "intent", "content", "author", "scope", "route", "derivedFrom", "metadata"]) {
        Input.invalid({ ...Input.steer("x"), [key]: json }, limits)
      }
    })
  )

  it.effect.prop(
    "L-A6 what it accepts without files is of the schema",
    [Schema.Json, Schema.Json],
    ([scope, metadata]) =>
      Effect.gen(function* () {
        const limits = yield* Limits.Limits
        const candidate: unknown = { ...Input.steer("x"), scope, metadata }
        if (Input.invalid(candidate, limits) === undefined) assert.isTrue(Schema.is(Input.Input)(candidate))
      })
  )
})

describe("Input.toMessage (L-B4)", () => {
  it.prop("L-B4 the message names its input, and only under options.midcourse", [input], ([a]) => {
    const message = Input.toMessage(a, generation)
    assert.strictEqual(Input.idOfMessage(message), a.id)
    assert.deepStrictEqual(message.options, {
      midcourse: { input_id: a.id, intent: a.intent, author: a.author, target_generation_id: generation }
    })
  })

  it.prop("L-B4 the content survives as it was", [input], ([a]) => {
    const message = Input.toMessage(a, generation)
    assert.isTrue(Input.same(a, { ...a, content: message.content }))
    assert.deepStrictEqual(
      message.content.map((part) => part.options),
      message.content.map(() => ({}))
    )
  })

  it.effect.prop("L-B4 the message survives being encoded, written as JSON and read again", [input], ([a]) =>
    Effect.gen(function* () {
      const json = JSON.stringify(yield* Schema.encodeEffect(Prompt.Message)(Input.toMessage(a, generation)))
      const read = yield* Schema.decodeUnknownEffect(Prompt.Message)(JSON.parse(json))
      assert.strictEqual(Input.idOfMessage(read), a.id)
      assert.deepStrictEqual(read.options, Input.toMessage(a, generation).options)
      assert.strictEqual(JSON.stringify(yield* Schema.encodeEffect(Prompt.Message)(read)), json)
    })
  )

  it("L-B4 a message of another role or without the mark names no input", () => {
    const options = { midcourse: { input_id: "i" } }
    const text = [Prompt.makePart("text", { text: "x" })]
    assert.strictEqual(Input.idOfMessage(Prompt.userMessage({ content: text, options })), "i")
    const others = [
      Prompt.userMessage({ content: text }),
      Prompt.userMessage({ content: text, options: { midcourse: { input_id: 7 } } }),
      Prompt.userMessage({ content: text, options: { midcourse: null } }),
      Prompt.assistantMessage({ content: text, options }),
      Prompt.systemMessage({ content: "x", options })
    ]
    assert.deepStrictEqual(
      others.map(Input.idOfMessage),
      others.map(() => undefined)
    )
  })
})

describe("the constructors", () => {
  it.prop("an intent each, the author `user` and an id of its own unless said", [some("a", "b")], ([text]) => {
    const made = [Input.prompt(text), Input.steer(text), Input.followUp(text), Input.collect(text), Input.ask(text)]
    assert.deepStrictEqual(
      made.map(({ author, content, intent, scope }) => [intent, content, author, scope]),
      [
        ["prompt", text, "user", undefined],
        ["steer", text, "user", undefined],
        ["follow-up", text, "user", undefined],
        ["collect", text, "user", undefined],
        ["steer", text, "user", ToolScope.none]
      ]
    )
    assert.strictEqual(new Set(made.map(({ id }) => id)).size, made.length)
    assert.isTrue(made.every((input) => Schema.is(Input.Input)(input)))
  })
})
