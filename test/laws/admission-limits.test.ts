import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Prompt } from "effect/ai"
import { Input, type Limits, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, type Harness, inputId, open } from "../support/harness.ts"
import { duringRequest, report, run, trace, withLimits, words } from "../support/scenes.ts"

const text = (value: string) => Prompt.makePart("text", { text: value })
const file = (data: string | Uint8Array | URL) =>
  Prompt.makePart("file", { mediaType: "text/plain", fileName: undefined, data })

const range = (n: number): ReadonlyArray<number> => Array.from({ length: n }, (_, i) => i)

/** Objects inside each other, the outermost counted. */
const nested = (depth: number): { readonly [key: string]: {} } => (depth === 1 ? {} : { in: nested(depth - 1) })

/** What a caller without types may hand over. */
const untyped = (u: unknown): Input.Input => u as Input.Input

describe("L-A6 how much a session holds", () => {
  it.effect("L-A6 accepts 2,000 identities, refuses the 2,001st, and evicts none", () =>
    run(
      Effect.gen(function* () {
        const total = 2000
        let next = 1
        let last = "queued"
        const fill = (h: Harness, id: string) =>
          Effect.gen(function* () {
            while (next < total && last === "queued") {
              last = words(yield* h.steer(generationId(id), "more", { id: `s${next}` }))
              if (last === "queued") next++
            }
            last = "queued"
          })
        let act: Effect.Effect<unknown> = Effect.void
        const script = () =>
          ScriptedModel.wait(
            Effect.suspend(() => act),
            ScriptedModel.text("ok")
          )
        const h = yield* open({ script })
        const id = yield* h.prompt("go", "s0")
        act = fill(h, id)
        yield* report(h, id)
        assert.deepStrictEqual((yield* h.session.status).identities, { used: total, limit: total })
        const refused = yield* h.session.submit(Input.prompt("one more", { id: "over" }))
        assert.strictEqual(words(refused), "refused identities-exhausted")
        assert.deepStrictEqual(yield* Effect.map(h.receipt("s1"), words), "applied in 2")
        assert.strictEqual(yield* Effect.map(h.receipt("over"), words), "none")
      })
    )
  )

  it.effect("L-A6 holds 128 pending steers and refuses the 129th", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        for (const i of range(128)) assert.strictEqual(words(yield* h.steer(h.id, "x", { id: `s${i}` })), "queued")
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "over" })), "refused queue-full")
        assert.strictEqual((yield* h.session.status).generation?.pendingInputIds.length, 128)
      })
    )
  )

  it.effect("L-A6 an ordinary steer that joins counts as pending too", () =>
    run(
      Effect.gen(function* () {
        const h = yield* withLimits({ pendingSteering: 1 }, duringRequest())
        assert.strictEqual(words(yield* h.session.submit(Input.steer("x"))), "queued")
        assert.strictEqual(words(yield* h.steer(h.id, "x")), "refused queue-full")
        assert.strictEqual(words(yield* h.session.submit(Input.steer("x"))), "refused queue-full")
      })
    )
  )

  it.effect("L-A6 what is delivered is pending no longer", () =>
    run(
      Effect.gen(function* () {
        let next: Effect.Effect<unknown> = Effect.void
        const wait = ScriptedModel.wait(
          Effect.suspend(() => next),
          ScriptedModel.text("second")
        )
        const h = yield* withLimits(
          { pendingSteering: 1 },
          duringRequest({ after: [wait, ScriptedModel.text("third")] })
        )
        next = h.steer(h.id, "two", { id: "s2" })
        yield* h.steer(h.id, "one", { id: "s1" })
        yield* h.go
        assert.deepStrictEqual((yield* report(h, h.id)).deliveredInputIds, ["p", "s1", "s2"].map(inputId))
      })
    )
  )

  it.effect("L-A6 holds 128 queued others apart from the steering, and refuses the 129th without a trace", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        for (const i of range(128)) yield* h.steer(h.id, "x", { id: `s${i}` })
        for (const i of range(128)) {
          const input = i % 2 === 0 ? Input.followUp("x", { id: `f${i}` }) : Input.collect("x", { id: `f${i}` })
          assert.strictEqual(words(yield* h.session.submit(input)), "queued")
        }
        const before = yield* trace(h, "over")
        assert.strictEqual(words(yield* h.session.submit(Input.followUp("x", { id: "over" }))), "refused queue-full")
        assert.deepStrictEqual(yield* trace(h, "over"), before)
      })
    )
  )

  it.effect("L-A6 a full queue of others does not refuse a steer", () =>
    run(
      Effect.gen(function* () {
        const h = yield* withLimits({ queued: 1 }, duringRequest())
        yield* h.session.submit(Input.followUp("x"))
        assert.strictEqual(words(yield* h.session.submit(Input.followUp("x"))), "refused queue-full")
        assert.strictEqual(words(yield* h.steer(h.id, "x")), "queued")
      })
    )
  )

  for (const control of ["stop", "cancel"] as const) {
    it.effect(`L-A6 a full queue and a full ledger do not block ${control}`, () =>
      run(
        Effect.gen(function* () {
          const limits = { identities: 3, pendingSteering: 1, queued: 1 }
          const h = yield* withLimits(limits, duringRequest())
          yield* h.steer(h.id, "x", { id: "s" })
          yield* h.session.submit(Input.followUp("x", { id: "f" }))
          assert.deepStrictEqual(yield* h.session[control](h.id, { followUps: "hold" }), { accepted: true })
          yield* h.go
          const { outcome } = yield* report(h, h.id)
          assert.strictEqual(outcome, control === "stop" ? "stopped" : "cancelled")
        })
      )
    )
  }

  it.effect("L-A6 a flood of 10,000 refusals grows neither the journal nor the ledger", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const before = yield* trace(h, "x9999")
        for (const i of range(5000)) {
          const wrong = yield* h.steer(generationId("gen_none"), "x", { id: `x${i}` })
          const blank = yield* h.session.submit(Input.followUp(" ", { id: `x${i + 5000}` }))
          if (wrong.accepted || blank.accepted) assert.fail("a refusal was accepted")
        }
        assert.deepStrictEqual(yield* trace(h, "x9999"), before)
      })
    )
  )

  it.effect("L-A6 a flood of refusals past a subscriber that reads nothing keeps it from no journalled event", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const pull = yield* Stream.toPull(h.session.events())
        yield* pull
        for (const i of range(10_000)) yield* h.steer(generationId("gen_none"), "x", { id: `x${i}` })
        const unread = yield* pull
        assert.isAtMost(unread.filter((event) => event.live !== undefined).length, 4096)
        yield* h.steer(h.id, "x", { id: "s" })
        const rest = yield* pull
        assert.deepStrictEqual(
          rest.flatMap((event) => (event.type === "steering.accepted" ? [event.input_id] : [])),
          [inputId("s")]
        )
      })
    )
  )
})

describe("L-A6 what an input may be", () => {
  const longest = "x".repeat(16_000)
  const accepted: ReadonlyArray<readonly [name: string, input: Input.Input]> = [
    ["16,000 characters of text", Input.steer(longest)],
    ["16,000 characters over two parts", Input.steer([text(longest.slice(1)), text("y")])],
    ["an id of 1 character", Input.steer("x", { id: "i" })],
    ["an id of 128 characters", Input.steer("x", { id: "i".repeat(128) })],
    [
      "an id of every printable ASCII character",
      Input.steer("x", { id: String.fromCharCode(...range(95).map((i) => i + 32)) })
    ],
    ["an author of 128 characters", Input.steer("x", { author: "a".repeat(128) })],
    ["a route of 128 characters", Input.steer("x", { route: "r".repeat(128) })],
    ["a derivedFrom of 128 characters", Input.steer("x", { derivedFrom: "d".repeat(128) })],
    ["a scope of 64 names", Input.steer("x", { scope: ToolScope.tools(...range(64).map(String)) })],
    ["8 KiB of metadata", Input.steer("x", { metadata: { k: "m".repeat(8 * 1024 - 8) } })],
    ["metadata of depth 8", Input.steer("x", { metadata: nested(8) })],
    ["text beyond the first plane", Input.steer("\u{1F600}")],
    ["a file and no text", Input.steer([file(new Uint8Array([1]))])]
  ]
  for (const [name, input] of accepted) {
    it.effect(`L-A6 accepts ${name}`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const receipt = yield* h.session.capability("live.steering").submit(input, h.id)
          assert.strictEqual(words(receipt), "queued", JSON.stringify(receipt))
        })
      )
    )
  }

  const refused: ReadonlyArray<readonly [name: string, input: Input.Input]> = [
    ["16,001 characters of text", Input.steer(`${longest}x`)],
    ["16,001 characters over two parts", Input.steer([text(longest), text("y")])],
    ["an empty id", Input.steer("x", { id: "" })],
    ["an id of 129 characters", Input.steer("x", { id: "i".repeat(129) })],
    ["an id that is not ASCII", Input.steer("x", { id: "ï" })],
    ["an id with a control character", Input.steer("x", { id: "a\nb" })],
    ["an id that ends in a line feed", Input.steer("x", { id: "a\n" })],
    ["an author of 129 characters", Input.steer("x", { author: "a".repeat(129) })],
    ["a route of 129 characters", Input.steer("x", { route: "r".repeat(129) })],
    ["a derivedFrom of 129 characters", Input.steer("x", { derivedFrom: "d".repeat(129) })],
    ["an empty derivedFrom", Input.steer("x", { derivedFrom: "" })],
    ["a scope of 65 names", Input.steer("x", { scope: ToolScope.tools(...range(65).map(String)) })],
    ["a scope with a name of 129 characters", Input.steer("x", { scope: ToolScope.tools("n".repeat(129)) })],
    ["more than 8 KiB of metadata", Input.steer("x", { metadata: { k: "m".repeat(8 * 1024 - 7) } })],
    ["metadata of more bytes than characters", Input.steer("x", { metadata: { k: "é".repeat(4 * 1024 - 3) } })],
    ["metadata of depth 9", Input.steer("x", { metadata: nested(9) })],
    [
      "metadata nested 4,000 deep",
      Input.steer("x", { metadata: { k: JSON.parse("[".repeat(4000) + "]".repeat(4000)) } })
    ],
    ["empty text", Input.steer("")],
    ["blank text", Input.steer(" \n\t\u00A0")],
    ["blank text over two parts", Input.steer([text(" "), text("\n")])],
    ["a blank part beside a text", Input.steer([text("do it"), text(" ")])],
    ["a blank part beside a file", Input.steer([text(""), file(new Uint8Array([1]))])],
    ["no parts", Input.steer([])],
    ["U+0000 in the text", Input.steer("a\0b")],
    ["U+0000 in a part", Input.steer([text("a\0b")])],
    ["U+0000 in the author", Input.steer("x", { author: "\0" })],
    ["U+0000 in the route", Input.steer("x", { route: "\0" })],
    ["a lone high surrogate", Input.steer("a\uD83D")],
    ["a lone low surrogate", Input.steer("\uDE00a")],
    ["a lone surrogate in the author", Input.steer("x", { author: "\uD83D" })],
    ["a surrogate pair torn over two parts", Input.steer([text("a\uD83D"), text("\uDE00b")])],
    ["an intent other than steer", Input.followUp("x")]
  ]
  for (const [name, input] of refused) {
    it.effect(`L-A6 refuses ${name} as invalid-input`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const receipt = yield* h.session.capability("live.steering").submit(input, h.id)
          assert.strictEqual(words(receipt), "refused invalid-input")
          assert.isString(!receipt.accepted && receipt.detail)
        })
      )
    )
  }

  const tenBytes: Partial<Limits.Limits> = { fileBytes: 10 }
  const ten = new Uint8Array(10)
  const files: ReadonlyArray<readonly [name: string, content: Input.Content, receipt: string]> = [
    ["as many bytes as allowed", [file(ten)], "queued"],
    ["one byte too many", [file(new Uint8Array(11))], "refused invalid-input"],
    ["too many bytes over two files", [file(ten), file(new Uint8Array(1))], "refused invalid-input"],
    ["too much encoded data", [file("A".repeat(1000))], "refused invalid-input"],
    ["too much data in a data URL", [file(new URL(`data:text/plain,${"A".repeat(1000)}`))], "refused invalid-input"],
    ["a reference to elsewhere", [file(new URL("https://example.com/a-name-of-more-than-ten-bytes"))], "queued"]
  ]
  for (const [name, content, expected] of files) {
    it.effect(`L-A6 bounds the files of an input: ${name}`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* withLimits(tenBytes, duringRequest())
          assert.strictEqual(words(yield* h.session.submit(Input.steer(content))), expected)
        })
      )
    )
  }

  it.effect("L-A6 the limits are a host's to set", () =>
    run(
      Effect.gen(function* () {
        const limits = { textLength: 3, metadataBytes: 2, metadataDepth: 1, scopeNames: 1, identities: 5 }
        const h = yield* withLimits(limits, open({ script: [] }))
        const inputs = [
          Input.prompt("four"),
          Input.prompt("x", { metadata: { a: 1 } }),
          Input.prompt("x", { scope: ToolScope.tools("a", "b") })
        ]
        const got = yield* Effect.forEach(inputs, (input) => Effect.map(h.session.submit(input), words))
        assert.deepStrictEqual(
          got,
          inputs.map(() => "refused invalid-input")
        )
        assert.strictEqual((yield* h.session.status).identities.limit, 5)
      })
    )
  )
})

describe("L-A6 callers without types", () => {
  const good = { id: "i", intent: "steer", content: "x", author: "user" }
  const cyclic: Record<string, unknown> = {}
  cyclic["self"] = cyclic
  const mistyped: ReadonlyArray<readonly [name: string, input: unknown]> = [
    ...[undefined, null, 0, 1.5, Number.NaN, "text", true, [], [good], {}, () => good, Symbol("s"), 1n].map(
      (u) => [`${typeof u} ${Array.isArray(u) ? "array" : String(u)} for the input`, u] as const
    ),
    ...[undefined, null, 7, ["i"], {}, Object.create(null), Symbol("s"), 1n].map(
      (id, i) => [`${typeof id} (${i}) for the id`, { ...good, id }] as const
    ),
    ...[undefined, null, 7, "Steer", ["steer"], {}].map(
      (intent, i) => [`${typeof intent} (${i}) for the intent`, { ...good, intent }] as const
    ),
    ...[undefined, null, 7, {}, [null], ["x"], [7], [undefined], [{ type: "text", text: "x" }], [[]]].map(
      (content, i) => [`${typeof content} (${i}) for the content`, { ...good, content }] as const
    ),
    ["a text part of a number", { ...good, content: [{ ...text("x"), text: 7 }] }],
    ["a file part of null", { ...good, content: [{ ...file("x"), data: null }] }],
    ["a file part without a media type", { ...good, content: [{ ...file("x"), mediaType: undefined }] }],
    ["a part that only an assistant may say", { ...good, content: [Prompt.makePart("reasoning", { text: "x" })] }],
    ...[undefined, null, 7, [], {}].map(
      (author, i) => [`${typeof author} (${i}) for the author`, { ...good, author }] as const
    ),
    ...[null, 7, [], {}].map((route, i) => [`${typeof route} (${i}) for the route`, { ...good, route }] as const),
    ...[null, 7, [], {}].map(
      (from, i) => [`${typeof from} (${i}) for derivedFrom`, { ...good, derivedFrom: from }] as const
    ),
    ...[null, 7, [], {}, { tools: "a" }, { tools: [7] }, { tools: [null] }, { tools: null }].map(
      (scope, i) => [`${typeof scope} (${i}) for the scope`, { ...good, scope }] as const
    ),
    ...[
      null,
      7,
      "x",
      [],
      { f: () => 1 },
      { n: Number.NaN },
      { u: undefined },
      { b: 1n },
      { d: new Date(0) },
      cyclic
    ].map((metadata, i) => [`${typeof metadata} (${i}) for the metadata`, { ...good, metadata }] as const)
  ]
  for (const [name, input] of mistyped) {
    it.effect(`L-A6 refuses, and never throws for, ${name}`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const anchored = yield* h.session.capability("live.steering").submit(untyped(input), h.id)
          const ordinary = yield* h.session.submit(untyped(input))
          assert.deepStrictEqual([words(anchored), words(ordinary)], ["refused invalid-input", "refused invalid-input"])
        })
      )
    )
  }

  for (const id of [undefined, null, 7, "", "gen_ü", ["gen"], {}, Symbol("gen")]) {
    it.effect(`L-A6 refuses, and never throws for, ${typeof id} ${String(id)} for the generation`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const receipt = yield* h.steer(generationId(id as string), "x")
          assert.isFalse(receipt.accepted)
        })
      )
    )
  }
})
