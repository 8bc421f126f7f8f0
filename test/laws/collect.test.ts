/** F3 and F4: which collects become one generation, when it starts, and that none of them delays a steer. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Input, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Contexts from "../support/contexts.ts"
import { type Harness, inputId, open, userTexts } from "../support/harness.ts"
import { gate, ofType } from "../support/providers.ts"
import { duringRequest, receipts, report, seen, withLimits, words } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

const idle = open({ script: (request) => ScriptedModel.text(`answer ${request.index}`) })
const collect = (h: Harness, id: string, options?: Input.Options) =>
  h.session.submit(Input.collect(`collect ${id}`, { id, ...options }))

/** The inputs each generation so far was started with. */
const started = (h: Harness) =>
  Effect.map(h.events, (events) => ofType(events, "generation.started").map((event) => event.input_ids.map(String)))

/** What came of a few collects when nothing more is to be started. */
const grouped = (h: Harness) => Effect.andThen(TestClock.adjust("1 minute"), started(h))

describe("L-F3 which collects are merged", () => {
  on("L-F3 neighbours of one author, scope and route start one generation together", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* collect(h, "b")
      yield* collect(h, "c")
      assert.deepStrictEqual(yield* grouped(h), [["a", "b", "c"]])
      assert.strictEqual(h.model.requests.length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  for (const [key, options] of [
    ["author", { author: "other" }],
    ["scope", { scope: ToolScope.tools("edit") }],
    ["scope none", { scope: ToolScope.none }],
    ["route", { route: "mail" }]
  ] as const) {
    on(`L-F3 another ${key} is another generation, in the order accepted`, () =>
      Effect.gen(function* () {
        const h = yield* idle
        yield* collect(h, "a")
        yield* collect(h, "b", options)
        assert.deepStrictEqual(yield* grouped(h), [["a"], ["b"]])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-F3 a scope is a set: the order and repeats of its names are no difference", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a", { scope: ToolScope.tools("edit", "send") })
      yield* collect(h, "b", { scope: ToolScope.tools("send", "edit", "send") })
      assert.deepStrictEqual(yield* grouped(h), [["a", "b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 metadata is no difference", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a", { metadata: { from: "phone" } })
      yield* collect(h, "b", { metadata: { from: "desk" } })
      assert.deepStrictEqual(yield* grouped(h), [["a", "b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 only neighbours: one of another author between them keeps them apart", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* collect(h, "b", { author: "other" })
      yield* collect(h, "c")
      assert.deepStrictEqual(yield* grouped(h), [["a"], ["b"], ["c"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 only neighbours: a follow-up between them keeps them apart", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* collect(h, "b")
      assert.deepStrictEqual(yield* grouped(h), [["a"], ["f"], ["b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 those queued while a generation runs are merged when it has ended, and never into it", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* collect(h, "a")
      yield* collect(h, "b")
      yield* TestClock.adjust("1 minute")
      yield* h.go
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* grouped(h), [["p"], ["a", "b"]])
      assert.deepStrictEqual(userTexts(h.model.requests[0]), ["do it"])
      assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "collect a", "collect b"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 one withdrawn is not in the group, and its neighbours on both sides are", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* collect(h, "b", { author: "other" })
      yield* collect(h, "c")
      yield* h.session.withdraw(inputId("b"))
      assert.deepStrictEqual(yield* grouped(h), [["a", "c"]])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F3 what a group becomes", () => {
  on("L-F3 each stays its own message with its own id and author, in order, in the first request", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a", { author: "ann" })
      yield* collect(h, "b", { author: "ann" })
      yield* TestClock.adjust("1 second")
      const users = h.model.requests[0]?.prompt.filter((message) => message.role === "user") ?? []
      const [generation] = ofType(yield* h.events, "generation.started")
      const rest = { intent: "collect", author: "ann", target_generation_id: String(generation?.generation_id) }
      assert.deepInclude(users[0]?.options["midcourse"], { input_id: "a", ...rest })
      assert.deepInclude(users[1]?.options["midcourse"], { input_id: "b", ...rest })
      assert.deepStrictEqual(userTexts(h.model.requests[0]), ["collect a", "collect b"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 all of them are applied in the one generation, each with its own events", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* collect(h, "b")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["applied in 1", "applied in 1"])
      const events = yield* h.events
      assert.deepStrictEqual(
        ofType(events, "input.delivered").map((event) => String(event.input_id)),
        ["a", "b"]
      )
      assert.deepStrictEqual(
        ofType(events, "request.started").map((event) => event.input_ids.map(String)),
        [["a", "b"]]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 each keeps the time at which it was accepted", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* TestClock.adjust(200)
      yield* collect(h, "b")
      yield* TestClock.adjust("1 second")
      const [first, second] = ofType(yield* h.events, "input.accepted")
      assert.strictEqual((second?.time ?? 0) - (first?.time ?? 0), 200)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F3 a group is written together or not at all", () => {
  /** Two collects whose write goes as told; the session is idle again afterwards. */
  const written = (behaviour: Contexts.Behaviour) =>
    Effect.gen(function* () {
      const context = Contexts.make(behaviour)
      const h = yield* Contexts.keptIn(context)(idle)
      yield* collect(h, "a")
      yield* collect(h, "b")
      yield* TestClock.adjust("1 second")
      return { context, h }
    })

  on("L-F3 a host's context gets the group in one write", () =>
    Effect.gen(function* () {
      const writes: Array<number> = []
      const { context, h } = yield* written({
        append: (land, id) =>
          Effect.andThen(
            Effect.sync(() => void (id !== undefined && writes.push(1))),
            land
          )
      })
      assert.strictEqual(writes.length, 1)
      assert.deepStrictEqual(context.landed(), ["a", "b"])
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["applied in 1", "applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 a write that failed and left nothing holds the whole group", () =>
    Effect.gen(function* () {
      const { h } = yield* written({ append: () => Effect.fail("disk full") })
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["held write-failed", "held write-failed"])
      assert.strictEqual(h.model.requests.length, 0)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 a write that failed and landed applies the whole group", () =>
    Effect.gen(function* () {
      const { h } = yield* written({
        append: (land, id) => (id === undefined ? land : Effect.andThen(land, Effect.fail("no answer")))
      })
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["applied in 1", "applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 a write of which nothing can be told leaves the whole group unknown", () =>
    Effect.gen(function* () {
      const { h } = yield* written({
        append: () => Effect.fail("no answer"),
        has: () => Effect.succeed("cannot-tell")
      })
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["unknown write-failed", "unknown write-failed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 a write that a cancel interrupts settles the whole group alike", () =>
    Effect.gen(function* () {
      const writing = yield* gate
      const { h } = yield* written({ append: (land) => Effect.andThen(writing.pass(undefined), land) })
      yield* writing.entered
      const [generation] = ofType(yield* h.events, "generation.started")
      if (generation !== undefined) yield* h.session.cancel(generation.generation_id)
      yield* seen(h, "generation.cancelled")
      assert.deepStrictEqual(yield* receipts(h, "a", "b"), ["held generation-cancelled", "held generation-cancelled"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F3 debounce and cap", () => {
  on("L-F3 a group starts 500 ms after the last of it was accepted, and not sooner", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* TestClock.adjust(400)
      yield* collect(h, "b")
      yield* TestClock.adjust(499)
      assert.deepStrictEqual(yield* started(h), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* started(h), [["a", "b"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 the debounce is a setting", () =>
    Effect.gen(function* () {
      const h = yield* withLimits({ collectDebounce: Duration.seconds(10) }, idle)
      yield* collect(h, "a")
      yield* TestClock.adjust(9999)
      assert.deepStrictEqual(yield* started(h), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* started(h), [["a"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 no more than 20 are merged; what does not fit waits for its own generation", () =>
    Effect.gen(function* () {
      const h = yield* idle
      const ids = Array.from({ length: 23 }, (_, index) => `c${index}`)
      yield* Effect.forEach(ids, (id) => collect(h, id))
      assert.deepStrictEqual(yield* grouped(h), [ids.slice(0, 20), ids.slice(20)])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 the cap is a setting", () =>
    Effect.gen(function* () {
      const h = yield* withLimits({ collectCap: 2 }, idle)
      yield* Effect.forEach(["a", "b", "c", "d", "e"], (id) => collect(h, id))
      assert.deepStrictEqual(yield* grouped(h), [["a", "b"], ["c", "d"], ["e"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 while a collect waits for neighbours the session is not idle: a prompt is refused busy", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("go"))), "refused busy")
      assert.deepStrictEqual(yield* grouped(h), [["a"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F3 the same collect again is the same one, and does not extend the wait", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "a")
      yield* TestClock.adjust(400)
      yield* collect(h, "a")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(yield* started(h), [["a"]])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-F4 queued work and steering", () => {
  on("L-F4 a steer goes into the next request although follow-ups and collects were queued before it", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* collect(h, "c")
      yield* h.steer(h.id, "now", { id: "s" })
      yield* h.go
      yield* report(h, h.id)
      assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "now"])
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F4 an ordinary steer of an idle session does not wait for a collect's debounce", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* collect(h, "c")
      yield* h.session.submit(Input.steer("now", { id: "s" }))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(yield* started(h), [["s"]])
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 1"])
      assert.deepStrictEqual(yield* grouped(h), [["s"], ["c"]])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-F4 a full queue of follow-ups refuses no steer", () =>
    Effect.gen(function* () {
      const h = yield* withLimits({ queued: 2 }, duringRequest())
      yield* collect(h, "c")
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      assert.strictEqual(words(yield* h.session.submit(Input.followUp("g"))), "refused queue-full")
      assert.strictEqual(words(yield* h.steer(h.id, "now", { id: "s" })), "queued")
    }).pipe(Effect.scoped, runtime)
  )
})
