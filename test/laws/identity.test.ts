import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Prompt } from "effect/ai"
import { type Ids, Input, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, open, types, userTexts } from "../support/harness.ts"
import { duringRequest, duringTool, receipts, report, run, seen, words } from "../support/scenes.ts"

const text = (value: string) => Prompt.makePart("text", { text: value })
const file = (bytes: ReadonlyArray<number>, mediaType = "text/plain", fileName?: string) =>
  Prompt.makePart("file", { mediaType, fileName, data: new Uint8Array(bytes) })

const anchor = (h: Harness, input: Input.Input, id: Ids.GenerationId) =>
  h.session.capability("live.steering").submit(input, id)

describe("L-I1 the same input again", () => {
  it.effect("L-I1 while queued gets the same receipt and changes nothing", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const first = yield* h.steer(h.id, "this", { id: "s" })
        const { sequence } = yield* h.session.status
        assert.deepStrictEqual(yield* h.steer(h.id, "this", { id: "s" }), first)
        const status = yield* h.session.status
        assert.strictEqual(status.sequence, sequence)
        assert.strictEqual(status.identities.used, 2)
        assert.deepStrictEqual(status.generation?.pendingInputIds, [inputId("s")])
      })
    )
  )

  it.effect("L-I1 case 20: twice at once is one insertion, and both receipts are equal", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const all = yield* Effect.all(
          Array.from({ length: 20 }, () => h.steer(h.id, "this", { id: "s" })),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(new Set(all.map((receipt) => JSON.stringify(receipt))).size, 1)
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "this"])
        assert.strictEqual(h.model.requests.length, 2)
      })
    )
  )

  it.effect("L-I1 after it was applied says so, and does not insert it again", () =>
    run(
      Effect.gen(function* () {
        let again: Effect.Effect<unknown> = Effect.void
        const second = ScriptedModel.wait(
          Effect.suspend(() => again),
          ScriptedModel.text("second")
        )
        const h = yield* duringRequest({ after: [second] })
        let receipt = "none"
        again = Effect.tap(h.steer(h.id, "this", { id: "s" }), (found) =>
          Effect.sync(() => {
            receipt = words(found)
          })
        )
        yield* h.steer(h.id, "this", { id: "s" })
        yield* h.go
        yield* report(h, h.id)
        assert.strictEqual(receipt, "applied in 2")
        assert.strictEqual(h.model.requests.length, 2)
      })
    )
  )

  it.effect("L-I1 case 20: after the generation ended tells what became of it, though the anchor is gone", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "this", { id: "s" })
        yield* h.go
        yield* report(h, h.id)
        const { sequence } = yield* h.session.status
        assert.strictEqual(words(yield* h.steer(h.id, "this", { id: "s" })), "applied in 2")
        yield* h.session.awaitIdle
        assert.strictEqual((yield* h.session.status).sequence, sequence)
      })
    )
  )

  it.effect("L-I1 case 21: after it was held says held, and starts nothing", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "this", { id: "s" })
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        assert.strictEqual(words(yield* h.steer(h.id, "this", { id: "s" })), "held generation-cancelled")
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 1)
        assert.strictEqual(types(yield* h.events).filter((type) => type === "generation.started").length, 1)
      })
    )
  )

  it.effect("L-I1 case 22: a prompt delivered twice starts one generation", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        const id = yield* h.prompt("do it", "p")
        assert.strictEqual(yield* h.prompt("do it", "p"), id)
        yield* report(h, id)
        assert.strictEqual(yield* h.prompt("do it", "p"), id)
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )

  it.effect("L-I1 a follow-up delivered twice runs once", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.session.submit(Input.followUp("next", { id: "f" }))
        yield* h.session.submit(Input.followUp("next", { id: "f" }))
        yield* h.go
        yield* h.session.awaitIdle
        yield* h.session.submit(Input.followUp("next", { id: "f" }))
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 2)
      })
    )
  )
})

describe("L-I2 what makes an input another one", () => {
  const base = { id: "s", author: "ann", route: "r", derivedFrom: "d", scope: ToolScope.tools("look", "edit") }
  const content = [text("one"), file([1, 2, 3], "text/plain", "a.txt")]
  const original = Input.steer(content, base)

  const others: ReadonlyArray<readonly [field: string, input: Input.Input]> = [
    ["the intent", Input.followUp(content, base)],
    ["the text", Input.steer([text("two"), file([1, 2, 3], "text/plain", "a.txt")], base)],
    ["the case of the text", Input.steer([text("One"), file([1, 2, 3], "text/plain", "a.txt")], base)],
    ["one byte of a file", Input.steer([text("one"), file([1, 2, 4], "text/plain", "a.txt")], base)],
    ["the length of a file", Input.steer([text("one"), file([1, 2], "text/plain", "a.txt")], base)],
    ["the media type of a file", Input.steer([text("one"), file([1, 2, 3], "text/html", "a.txt")], base)],
    ["the name of a file", Input.steer([text("one"), file([1, 2, 3], "text/plain", "b.txt")], base)],
    ["the order of the parts", Input.steer([...content].reverse(), base)],
    ["a part less", Input.steer("one", base)],
    ["a part more", Input.steer([...content, text("more")], base)],
    ["the author", Input.steer(content, { ...base, author: "bob" })],
    ["the route", Input.steer(content, { ...base, route: "q" })],
    ["no route", Input.steer(content, { id: "s", author: "ann", derivedFrom: "d", scope: base.scope })],
    ["derivedFrom", Input.steer(content, { ...base, derivedFrom: "e" })],
    ["no derivedFrom", Input.steer(content, { id: "s", author: "ann", route: "r", scope: base.scope })],
    ["a name of the scope", Input.steer(content, { ...base, scope: ToolScope.tools("look", "send") })],
    ["a name less in the scope", Input.steer(content, { ...base, scope: ToolScope.tools("look") })],
    ["no scope", Input.steer(content, { id: "s", author: "ann", route: "r", derivedFrom: "d" })],
    ["the scope of nothing", Input.steer(content, { ...base, scope: ToolScope.none })]
  ]
  for (const [field, input] of others) {
    it.effect(`L-I2 ${field} is compared: another is an identity-conflict, and the first stands`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const first = yield* h.session.submit(original)
          assert.strictEqual(words(yield* h.session.submit(input)), "refused identity-conflict")
          assert.deepStrictEqual(yield* h.receipt("s"), first)
          yield* h.session.cancel(h.id)
          yield* report(h, h.id)
          assert.deepStrictEqual(
            (yield* h.session.held).map((held) => held.input),
            [original]
          )
        })
      )
    )
  }

  const sames: ReadonlyArray<readonly [name: string, first: Input.Input, again: Input.Input]> = [
    ["an equal copy", original, Input.steer([text("one"), file([1, 2, 3], "text/plain", "a.txt")], { ...base })],
    ["the scope in another order", original, Input.steer(content, { ...base, scope: ToolScope.tools("edit", "look") })],
    ["a scope name twice", original, Input.steer(content, { ...base, scope: ToolScope.tools("edit", "look", "edit") })],
    ["a string as its one text part", Input.steer("one", base), Input.steer([text("one")], base)],
    ["one text part as its string", Input.steer([text("one")], base), Input.steer("one", base)],
    [
      "options on a part, which are dropped",
      Input.steer([text("one")], base),
      Input.steer([Prompt.makePart("text", { text: "one", options: { openai: { detail: "high" } } })], base)
    ],
    [
      "other metadata",
      Input.steer("one", { ...base, metadata: { a: 1 } }),
      Input.steer("one", { ...base, metadata: { b: 2 } })
    ]
  ]
  for (const [name, first, again] of sames) {
    it.effect(`L-I2 ${name} is the same input`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const receipt = yield* h.session.submit(first)
          assert.strictEqual(words(receipt), "queued")
          assert.deepStrictEqual(yield* h.session.submit(again), receipt)
        })
      )
    )
  }

  it.effect("L-I2 a string is not its halves: two text parts are another content", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.session.submit(Input.steer("one two", { id: "s" }))
        const receipt = yield* h.session.submit(Input.steer([text("one "), text("two")], { id: "s" }))
        assert.strictEqual(words(receipt), "refused identity-conflict")
      })
    )
  )

  it.effect("L-I2 of metadata that differs, the first stands", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "x", { id: "s", metadata: { ticket: 1 } })
        yield* h.steer(h.id, "x", { id: "s", metadata: { ticket: 2 } })
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        assert.deepStrictEqual(
          (yield* h.session.held).map(({ input }) => input.metadata),
          [{ ticket: 1 }]
        )
      })
    )
  )

  it.effect("L-I2 the anchor is compared: the same steer for another generation is a conflict", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("one"), ScriptedModel.hang] })
        const first = yield* h.prompt("one")
        const steer = Input.steer("x", { id: "s" })
        yield* anchor(h, steer, first)
        yield* report(h, first)
        const second = yield* h.prompt("two")
        yield* seen(h, "request.started", 2)
        assert.strictEqual(words(yield* anchor(h, steer, second)), "refused identity-conflict")
        assert.strictEqual(words(yield* anchor(h, steer, first)), "applied in 1")
      })
    )
  )

  it.effect("L-I2 the anchor is compared: anchored first, ordinary is a conflict", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const steer = Input.steer("x", { id: "s" })
        yield* anchor(h, steer, h.id)
        assert.strictEqual(words(yield* h.session.submit(steer)), "refused identity-conflict")
      })
    )
  )

  it.effect("L-I2 ordinary delivery has no anchor, whatever it joined", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const steer = Input.steer("x", { id: "s" })
        const receipt = yield* h.session.submit(steer)
        assert.strictEqual(receipt.generationId, h.id)
        assert.strictEqual(words(yield* anchor(h, steer, h.id)), "refused identity-conflict")
        assert.deepStrictEqual(yield* h.session.submit(steer), receipt)
        yield* h.go
        yield* report(h, h.id)
        assert.strictEqual(words(yield* h.session.submit(steer)), "applied in 2")
      })
    )
  )

  it.effect("L-I2 a prompt's id is an identity like any other", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        assert.strictEqual(words(yield* h.steer(h.id, "do it", { id: "p" })), "refused identity-conflict")
        assert.strictEqual(
          words(yield* h.session.submit(Input.prompt("else", { id: "p" }))),
          "refused identity-conflict"
        )
      })
    )
  )

  it.effect("L-I2 what was accepted does not change with the caller's copy of it", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const parts = [text("as accepted")]
        const steer = Input.steer(parts, { id: "s" })
        yield* anchor(h, steer, h.id)
        parts[0] = text("as changed")
        assert.strictEqual(words(yield* anchor(h, steer, h.id)), "refused identity-conflict")
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "as accepted"])
      })
    )
  )
})

describe("L-I2 L-B4 the data of a file is the runtime's own", () => {
  const bytes = (made: Uint8Array) => ({ data: made, change: () => void made.fill(88), as: Uint8Array.from(made) })
  const address = new URL("https://good.example/a.png")
  const kinds = {
    "an array of bytes": bytes(new Uint8Array([1, 2])),
    "a Node buffer": bytes(Buffer.from("original")),
    "a URL": { data: address, change: () => void (address.hostname = "evil.example"), as: new URL(address.href) }
  }
  for (const [name, { as, change, data }] of Object.entries(kinds)) {
    it.effect(`L-I2 L-B4 ${name} that is changed afterwards is neither compared nor sent`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          const steer = (data: Uint8Array | URL) =>
            Input.steer([Prompt.makePart("file", { mediaType: "a/b", fileName: undefined, data })], { id: "s" })
          yield* anchor(h, steer(data), h.id)
          change()
          assert.strictEqual(words(yield* anchor(h, steer(data), h.id)), "refused identity-conflict")
          assert.strictEqual(words(yield* anchor(h, steer(as), h.id)), "queued")
          yield* h.go
          yield* report(h, h.id)
          const sent = h.model.requests[1]?.prompt.flatMap(({ content }) =>
            typeof content === "string" ? [] : [...content]
          )
          const file = sent?.find(({ type }) => type === "file")
          assert.strictEqual(String(file?.type === "file" ? file.data : undefined), String(as))
        })
      )
    )
  }
})

describe("L-I3 how long an identity lives", () => {
  it.effect("L-I3 it outlives its drain, its generation and the next ones", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        yield* report(h, h.id)
        for (const text of ["again", "and again"]) yield* report(h, yield* h.prompt(text))
        const again = yield* h.steer(h.id, "x", { id: "s" })
        assert.strictEqual(words(again), "applied in 2")
        assert.strictEqual(again.generationId, h.id)
        assert.strictEqual(words(yield* h.steer(h.id, "y", { id: "s" })), "refused identity-conflict")
      })
    )
  )

  it.effect("L-I3 a held identity outlives its generation", () =>
    run(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const h = yield* duringRequest({
          after: [ScriptedModel.wait(Deferred.await(gate), ScriptedModel.text("next"))]
        })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        const next = yield* h.prompt("next")
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "s" })), "held generation-cancelled")
        assert.strictEqual(words(yield* h.steer(next, "x", { id: "s" })), "refused identity-conflict")
        yield* Deferred.succeed(gate, undefined)
        yield* report(h, next)
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-cancelled"])
      })
    )
  )
})
