/** T10, I3 and R8 with a store: what is done was written first, and what was written is there when the session is opened again. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { Prompt } from "effect/ai"
import { TestClock } from "effect/testing"
import { Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Contexts from "../support/contexts.ts"
import { fork, inputId, type Options, toolResults } from "../support/harness.ts"
import { receipts, report, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const answers = ["one", "two", "three", "four"].map((text) => ScriptedModel.text(text))
const editing = [ScriptedModel.call("edit", { path: "a" }, "a"), ...answers]
const editingTwice = [
  ScriptedModel.calls(["a", "b"].map((path) => ({ name: "edit", params: { path }, id: path }))),
  ...answers
]
const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))

/** A prompt that has come to the first append that carries this, which is held. */
const duringWrite = (options: Options, kind: Parameters<typeof Stores.hold>[1], values?: Record<string, unknown>) =>
  Effect.gen(function* () {
    const { store } = yield* fresh
    const h = yield* Stores.boot(store.service, options)
    const held = yield* Stores.hold(store, kind, Stores.lands, values)
    const id = yield* h.prompt("do it", "p")
    yield* held.reached
    return { h, held, id, store }
  })

describe("L-T10 a tool", () => {
  law("L-T10 its start is written before its handler begins", () =>
    Effect.gen(function* () {
      const { h, held, id } = yield* duringWrite({ script: editing }, "tool.started")
      yield* Stores.settle
      assert.deepStrictEqual(h.began, [])
      yield* held.release
      yield* report(h, id)
      assert.deepStrictEqual(h.began, ["edit"])
    })
  )

  law("L-T10 every start of a wave is written before any of its handlers begins", () =>
    Effect.gen(function* () {
      const options = { script: editingTwice, agent: { tools: { concurrency: 2 } } }
      const { h, held, id } = yield* duringWrite(options, "tool.started", { provider_call_id: "b" })
      yield* Stores.settle
      assert.deepStrictEqual(h.began, [])
      yield* held.release
      yield* report(h, id)
      assert.deepStrictEqual(h.began, ["edit", "edit"])
    })
  )

  law("L-T10 when its start is not written, its handler never begins", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const h = yield* Stores.boot(store.service, { script: editing })
      Stores.once(store, "tool.started", Stores.unavailable)
      const id = yield* h.prompt("do it", "p")
      yield* Effect.flip(h.session.await(id))
      yield* Stores.settle
      assert.deepStrictEqual(h.began, [])
    })
  )

  law("L-T10 its outcome is written before the next call begins and before the next request", () =>
    Effect.gen(function* () {
      const values = { provider_call_id: "a" }
      const { h, held: first, id, store } = yield* duringWrite({ script: editingTwice }, "tool.completed", values)
      yield* Stores.settle
      assert.deepStrictEqual(h.began, ["edit"])
      const second = yield* Stores.hold(store, "tool.completed", Stores.lands, { provider_call_id: "b" })
      yield* first.release
      yield* second.reached
      yield* Stores.settle
      assert.strictEqual(h.model.requests.length, 1)
      yield* second.release
      assert.strictEqual((yield* report(h, id)).requests, 2)
    })
  )

  law("L-T10 a cancel accepted while its start is being written: the call is interrupted and did not begin", () =>
    Effect.gen(function* () {
      const { h, held, id } = yield* duringWrite({ script: editing }, "tool.started")
      const cancelled = yield* fork(h.session.cancel(id))
      yield* Stores.settle
      yield* held.release
      assert.deepStrictEqual(yield* Fiber.join(cancelled), { accepted: true })
      const { tools } = yield* report(h, id)
      assert.deepStrictEqual(tools[0]?.status, { _tag: "Interrupted", effects: "none", cause: "cancel" })
      assert.deepStrictEqual(h.began, [])
    })
  )
})

describe("L-C10 intent before effect", () => {
  for (const request of [1, 2]) {
    law(`L-R2 request ${request} is written as started before the provider is asked`, () =>
      Effect.gen(function* () {
        const { h, held, id } = yield* duringWrite({ script: editing }, "request.started", { request })
        yield* Stores.settle
        assert.strictEqual(h.model.requests.length, request - 1)
        yield* held.release
        assert.strictEqual((yield* report(h, id)).requests, 2)
      })
    )
  }

  law("L-B3 a write into a host's context is written as begun before it begins", () => {
    const context = Contexts.make()
    return Effect.gen(function* () {
      const { h, held, id } = yield* duringWrite({ script: answers }, "write-begun")
      yield* Stores.settle
      assert.deepStrictEqual(context.begun, [])
      yield* held.release
      yield* report(h, id)
      assert.deepStrictEqual(context.landed(), ["p"])
    }).pipe(Contexts.keptIn(context))
  })

  law("L-V1 nothing is published, and nothing can be read, before it is written", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const h = yield* Stores.boot(store.service, { script: answers })
      const held = yield* Stores.hold(store, "generation.started")
      const submitted = yield* fork(h.prompt("do it", "p"))
      yield* held.reached
      yield* Stores.settle
      assert.deepStrictEqual([(yield* h.session.status).sequence, yield* h.events], [0, []])
      assert.isTrue(Option.isNone(yield* h.session.generation))
      yield* held.release
      yield* report(h, yield* Fiber.join(submitted))
    })
  )
})

/** The part of a host's context that a lost process may leave in doubt. */
const hosted = (behaviour: Contexts.Behaviour, recovery: "settle" | "resume", at: "begun" | "landed") =>
  Effect.gen(function* () {
    const { disk, store } = yield* fresh
    const context = Contexts.make({
      append: (land, id) => (id !== "p" ? land : at === "landed" ? Effect.andThen(land, Effect.never) : Effect.never)
    })
    const first = yield* Stores.boot(store.service, { script: answers }).pipe(Contexts.keptIn(context))
    const id = yield* first.prompt("do it", "p")
    yield* Stores.settle
    store.fate = () => Effect.never
    // The next process finds what has landed, and a context that works.
    const next = Contexts.make(behaviour)
    if (context.landed().length > 0) {
      yield* Effect.orDie(
        Effect.flatMap(Effect.orDie(context.service.messages), ([message]) =>
          message === undefined ? Effect.void : next.service.append([message])
        )
      )
    }
    const h = yield* Stores.boot(disk, { script: answers, open: { recovery } }).pipe(Contexts.keptIn(next))
    return { ...h, id, context: next }
  })

describe("L-R1 a write into a host's context that had begun", () => {
  for (const [at, behaviour, settled] of [
    ["landed", {}, "applied"],
    ["begun", {}, "held process-lost"],
    ["begun", { has: () => Effect.succeed("cannot-tell" as const) }, "unknown process-lost"],
    ["begun", { has: () => Effect.fail("down") }, "unknown process-lost"]
  ] as const) {
    law(`L-R1 ${at}, and the context ${"has" in behaviour ? "cannot tell" : "can tell"}: ${settled}`, () =>
      Effect.gen(function* () {
        const h = yield* hosted(behaviour, "settle", at)
        assert.deepStrictEqual(yield* receipts(h, "p"), [settled])
        assert.strictEqual((yield* report(h, yield* h.prompt("next", "n"))).outcome, "finished")
        assert.deepStrictEqual(h.model.violations, [])
      })
    )
  }

  law("L-P3 a generation that goes on makes no request without its prompt", () =>
    Effect.gen(function* () {
      const h = yield* hosted({}, "resume", "begun")
      yield* report(h, h.id)
      for (const request of h.model.requests) {
        assert.isTrue(request.prompt.some((message) => Input.idOfMessage(message) === "p"))
      }
    })
  )

  law("L-B3 interrupted, answered absent and landing late: it is never held", () =>
    Effect.gen(function* () {
      const late = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      const context = Contexts.make({
        append: (land, id) =>
          id === "s1"
            ? Effect.uninterruptible(
                Deferred.succeed(begun, undefined).pipe(Effect.andThen(Deferred.await(late)), Effect.andThen(land))
              )
            : land
      })
      const { h, held, id } = yield* duringWrite({ script: editing }, "tool.completed").pipe(Contexts.keptIn(context))
      const steered = yield* fork(h.steer(id, "s1", { id: "s1" }))
      yield* held.release
      yield* Fiber.join(steered)
      yield* Deferred.await(begun)
      yield* h.session.cancel(id)
      yield* TestClock.adjust("1 minute")
      yield* report(h, id)
      yield* Deferred.succeed(late, undefined)
      yield* Stores.settle
      assert.deepStrictEqual(yield* receipts(h, "s1"), ["unknown write-interrupted"])
      assert.include(context.landed(), "s1")
    })
  )
})

const files = Input.followUp(
  [
    Prompt.makePart("text", { text: "see" }),
    Prompt.makePart("file", { mediaType: "a/b", fileName: "f", data: new Uint8Array([0, 255, 1]) }),
    Prompt.makePart("file", { mediaType: "a/b", fileName: "u", data: new URL("https://example.org/x") })
  ],
  { id: "files" }
)

describe("L-I3 identities outlive the process", () => {
  for (const [name, wait] of [
    ["while it waits", true],
    ["once it was delivered", false]
  ] as const) {
    law(`L-I3 an input with files is the same input after reopening, ${name}`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const first = yield* Stores.boot(store.service, { script: answers })
        if (wait) yield* first.session.pause()
        assert.isTrue((yield* first.session.submit(files)).accepted)
        if (!wait) yield* Effect.orDie(first.session.awaitIdle)
        const before = yield* first.receipt("files")
        yield* first.close
        const h = yield* Stores.boot(disk, { script: answers })
        assert.deepStrictEqual(yield* h.session.submit(files), before)
        const other = Input.followUp([Prompt.makePart("text", { text: "see" })], { id: "files" })
        assert.strictEqual(words(yield* h.session.submit(other)), "refused identity-conflict")
      })
    )
  }

  law("L-R8 tool results and metadata hold whatever a string can hold, and the reloaded context is equal", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const strange = 'nul \0, lone \uD800 and \uDC00, line \u2028, quote " and \\u0000'
      const first = yield* Stores.boot(store.service, { script: editing, edit: () => Effect.succeed(strange) })
      const id = yield* first.prompt("do it", "p")
      yield* report(first, id)
      yield* first.session.submit(Input.followUp("f", { id: "f", metadata: { strange, deep: [{ strange }] } }))
      yield* Effect.orDie(first.session.awaitIdle)
      yield* first.session.pause()
      yield* first.session.submit(Input.followUp("g", { id: "g", metadata: { strange, deep: [{ strange }] } }))
      const before = yield* Effect.orDie(first.session.context)
      yield* first.close
      for (const entry of yield* Stores.stored(disk)) {
        assert.isTrue(entry.isWellFormed())
        assert.isFalse([...entry].some((char) => char < " "))
      }
      const h = yield* Stores.boot(disk, { script: answers })
      assert.deepStrictEqual(yield* Effect.orDie(h.session.context), before)
      yield* h.session.withdraw(inputId("g"))
      const [held] = yield* h.session.held
      assert.deepStrictEqual(held?.input.metadata, { strange, deep: [{ strange }] })
      yield* h.session.resume()
      yield* report(h, yield* h.prompt("next", "n"))
      assert.strictEqual(toolResults(h.model.requests[0])[0]?.result, strange)
    })
  )

  law("L-R8 a reasoning's signature is sent again as it came, after reopening", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const signed = ScriptedModel.parts([
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "hm" },
        { type: "reasoning-end", id: "r", metadata: { anthropic: { info: { type: "thinking", signature: "c2ln" } } } }
      ])
      const script = [ScriptedModel.steps([signed, ScriptedModel.call("edit", { path: "a" }, "a")]), ...answers]
      const first = yield* Stores.boot(store.service, { script })
      yield* report(first, yield* first.prompt("do it", "p"))
      const before = yield* Effect.orDie(first.session.context)
      yield* first.close
      const h = yield* Stores.boot(disk, { script: answers })
      yield* report(h, yield* h.prompt("next", "n"))
      const reasoning = (messages: ReadonlyArray<Prompt.Message>) =>
        messages.flatMap((message) =>
          message.role === "assistant" ? message.content.filter((part) => part.type === "reasoning") : []
        )
      const sent = reasoning(h.model.requests[0]?.prompt ?? [])
      assert.deepStrictEqual(sent, reasoning(before.content))
      assert.include(JSON.stringify(sent), "c2ln")
    })
  )
})
