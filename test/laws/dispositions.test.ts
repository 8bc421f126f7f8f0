import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Event, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { inputId, journalled, open, types, userTexts } from "../support/harness.ts"
import * as contexts from "../support/contexts.ts"
import { cancelledInDoubt } from "../support/contexts-doubt.ts"
import { listen } from "../support/listeners.ts"
import { duringRequest, duringTool, lasting, passing, receipts, report, run, seen, words } from "../support/scenes.ts"

const carrying = (requests: ReadonlyArray<ScriptedModel.Request>, text: string): ReadonlyArray<number> =>
  requests.flatMap((request) => userTexts(request).flatMap((found) => (found === text ? [request.index] : [])))

/** A generation with a steer `s` whose second read of its context is under way, and lasts as long as `wait`. */
const duringSecondRead = (wait: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const reading = yield* Deferred.make<void>()
    const context = contexts.make({
      messages: (all, count) =>
        count < 2 ? Effect.succeed(all) : Effect.as(Effect.andThen(Deferred.succeed(reading, undefined), wait), all)
    })
    const h = yield* contexts.keptIn(context)(duringRequest())
    yield* h.steer(h.id, "x", { id: "s" })
    yield* h.go
    yield* Deferred.await(reading)
    return h
  })

describe("L-D1 the only ways", () => {
  it.effect("L-D1 case 42: at every event a receipt is queued or has ended as applied, held or unknown, for good", () =>
    run(
      Effect.gen(function* () {
        const h = yield* contexts.keptIn(contexts.doubtful("s2"))(duringTool())
        const ids = ["s1", "s2", "s3"]
        const lives = new Map<string, Array<string>>(ids.map((id) => [id, []]))
        yield* Effect.forkScoped(
          Stream.runForEach(journalled(h.session.events()), () =>
            Effect.forEach(ids, (id) =>
              Effect.map(h.receipt(id), (receipt) => {
                const life = lives.get(id) ?? []
                const now = receipt?.accepted === true ? receipt.disposition : "none"
                if (life.at(-1) !== now) life.push(now)
              })
            )
          ),
          { startImmediately: true }
        )
        for (const id of ids) yield* h.steer(h.id, id, { id })
        yield* h.go
        yield* seen(h, "steering.applied")
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        yield* h.session.awaitIdle
        assert.deepStrictEqual(
          ids.map((id) => lives.get(id)?.filter((now) => now !== "none")),
          [
            ["queued", "applied"],
            ["queued", "unknown"],
            ["queued", "held"]
          ]
        )
      })
    )
  )

  it.effect("L-D1 applied stays applied when the generation is cancelled afterwards", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ after: [ScriptedModel.hang] })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        yield* seen(h, "request.started", 2)
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      })
    )
  )

  it.effect("L-D1 held keeps its first reason when a cancel overrides the stop", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.stop(h.id)
        yield* h.session.cancel(h.id)
        assert.strictEqual((yield* report(h, h.id)).outcome, "cancelled")
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-stopped"])
      })
    )
  )
})

describe("L-D2 what applied says", () => {
  it.effect("L-D2 case 41: queued proves admission only: the steer is in no context yet", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const receipt = yield* h.steer(h.id, "x", { id: "s" })
        const inContext = (yield* Effect.orDie(h.session.context)).content.flatMap(
          (message) => Input.idOfMessage(message) ?? []
        )
        assert.deepStrictEqual([words(receipt), inContext], ["queued", [inputId("p")]])
      })
    )
  )

  it.effect("L-D2 the request is absent until one that carries it starts, then it is that one's number", () =>
    run(
      Effect.gen(function* () {
        const read = yield* Deferred.make<void>()
        const h = yield* duringSecondRead(Deferred.await(read))
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied"])
        yield* Deferred.succeed(read, undefined)
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      })
    )
  )

  it.effect(
    "L-D2 the request is one whose prompt really contains it, not one that a lagging context left it out of",
    () =>
      run(
        Effect.gen(function* () {
          const context = contexts.make({
            messages: (all, read) =>
              Effect.succeed(read === 2 ? all.filter((message) => Input.idOfMessage(message) !== "s") : all)
          })
          const h = yield* contexts.keptIn(context)(
            duringTool({ after: [ScriptedModel.call("look", { path: "a" }), ScriptedModel.text("done")] })
          )
          yield* h.steer(h.id, "x", { id: "s" })
          yield* h.go
          yield* report(h, h.id)
          assert.deepStrictEqual(carrying(h.model.requests, "x"), [3])
          assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 3"])
        })
      )
  )

  it.effect("L-D2 the request is set once: it is not rewritten when that request fails and is made again", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ after: [ScriptedModel.fail(passing()), ScriptedModel.text("done")] })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        yield* seen(h, "request.failed")
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* report(h, h.id)).requests, 3)
        assert.deepStrictEqual(carrying(h.model.requests, "x"), [2, 3])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      })
    )
  )

  it.effect("L-D2 a steer that arrives in a backoff is carried once, by the retry, and its receipt says which", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringTool({
          after: [ScriptedModel.failAfter(ScriptedModel.metadata("response-2"), passing()), ScriptedModel.text("done")]
        })
        yield* h.go
        yield* seen(h, "request.failed")
        assert.strictEqual((yield* h.session.status).generation?.phase._tag, "BackingOff")
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "s" })), "queued")
        yield* TestClock.adjust("10 seconds")
        yield* report(h, h.id)
        assert.deepStrictEqual(carrying(h.model.requests, "x"), [3])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 3"])
      })
    )
  )

  it.effect("L-D2 a steer does not cut a backoff short", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ first: ScriptedModel.fail(passing()) })
        yield* h.go
        yield* seen(h, "request.failed")
        yield* h.steer(h.id, "x", { id: "s" })
        yield* TestClock.adjust("499 millis")
        assert.strictEqual(h.model.requests.length, 1)
        yield* TestClock.adjust("1 millis")
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "p", "s"), ["applied in 1", "applied in 2"])
      })
    )
  )

  it.effect("L-D2 a generation that ends before any further request leaves applied without one", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringSecondRead(Effect.never)
        yield* h.session.cancel(h.id)
        const { deliveredInputIds, outcome } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, deliveredInputIds], ["cancelled", [inputId("p"), inputId("s")]])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied"])
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )
})

describe("L-D3 what held says", () => {
  it.effect("L-D3 a held steer is in no context, and starts and joins nothing by itself", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ after: [ScriptedModel.text("next"), ScriptedModel.text("more")] })
        yield* h.steer(h.id, "kept back", { id: "s" })
        yield* h.session.stop(h.id)
        yield* h.go
        yield* report(h, h.id)
        yield* h.session.awaitIdle
        assert.strictEqual(h.model.requests.length, 1)
        yield* report(h, yield* h.prompt("next"))
        yield* h.session.awaitIdle
        assert.deepStrictEqual(carrying(h.model.requests, "kept back"), [])
        const { content } = yield* Effect.orDie(h.session.context)
        assert.notInclude(content.map(Input.idOfMessage), inputId("s"))
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-stopped"])
      })
    )
  )

  it.effect("L-D3 what is held is kept with its content", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const steer = Input.steer("kept back", { id: "s", author: "ann", metadata: { a: 1 } })
        yield* h.session.capability("live.steering").submit(steer, h.id)
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* h.session.held, [
          { input: steer, status: { _tag: "Held", generationId: h.id, reason: "generation-cancelled" } }
        ])
      })
    )
  )
})

describe("L-D4 what unknown says", () => {
  it.effect("L-D4 only the input whose own write had begun is unknown", () =>
    run(
      Effect.gen(function* () {
        const h = yield* cancelledInDoubt
        assert.notInclude(h.context.begun, "s3")
        assert.deepStrictEqual(yield* receipts(h, "s1", "s2", "s3"), [
          "applied",
          "unknown write-interrupted",
          "held generation-cancelled"
        ])
      })
    )
  )

  it.effect("L-D4 where no write had begun nothing is unknown, even in a context that can tell nothing", () =>
    run(
      Effect.gen(function* () {
        const context = contexts.make({ has: () => Effect.succeed("cannot-tell") })
        const h = yield* contexts.keptIn(context)(duringTool())
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.cancel(h.id)
        const { unknownInputIds } = yield* report(h, h.id)
        assert.deepStrictEqual([unknownInputIds, yield* receipts(h, "s")], [[], ["held generation-cancelled"]])
      })
    )
  )
})

describe("L-D5 sending it again", () => {
  it.effect("L-D5 case 19: what is held is never merged into a later generation", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ after: [ScriptedModel.text("two"), ScriptedModel.text("three")] })
        yield* h.steer(h.id, "held text", { id: "s" })
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        yield* h.session.submit(Input.followUp("later"))
        yield* h.session.awaitIdle
        yield* report(h, yield* h.prompt("unrelated"))
        assert.deepStrictEqual(carrying(h.model.requests, "held text"), [])
      })
    )
  )

  it.effect("L-D5 again under a new id that names the old one, it is a new input, and the old one stays held", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "again", { id: "s" })
        yield* h.session.cancel(h.id)
        yield* report(h, h.id)
        const next = yield* h.prompt("next")
        const again = yield* h.steer(next, "again", { id: "s-again", derivedFrom: "s" })
        assert.strictEqual(words(again), "queued")
        yield* report(h, next)
        assert.deepStrictEqual(yield* receipts(h, "s", "s-again"), ["held generation-cancelled", "applied in 1"])
        assert.deepStrictEqual(carrying(h.model.requests, "again"), [2])
      })
    )
  )
})

describe("L-D6 nothing is left queued", () => {
  const ways: ReadonlyArray<
    readonly [name: string, outcome: string, reason: string, options: Parameters<typeof duringRequest>[0]]
  > = [
    ["a finish", "finished", "budget-exhausted", { agent: { maxRequests: 1 } }],
    [
      "an exhausted budget",
      "exhausted",
      "budget-exhausted",
      { agent: { maxRequests: 1 }, first: ScriptedModel.call("look", { path: "a" }) }
    ],
    ["a failure", "failed", "generation-failed", { first: ScriptedModel.fail(lasting()) }],
    ["a stop", "stopped", "generation-stopped", {}],
    ["a cancel", "cancelled", "generation-cancelled", {}]
  ]
  for (const [name, outcome, reason, options] of ways) {
    it.effect(`L-D6 cases 11, 18: at the terminal event of ${name} every receipt has ended`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest(options)
          const ids = ["s1", "s2", "s3"]
          const atEnd = yield* Deferred.make<ReadonlyArray<string>>()
          yield* listen(h.session, (event) =>
            Event.isTerminal(event)
              ? Effect.flatMap(receipts(h, ...ids), (found) => Deferred.succeed(atEnd, found))
              : Effect.void
          )
          for (const id of ids) yield* h.steer(h.id, "x", { id })
          if (outcome === "stopped") yield* h.session.stop(h.id)
          if (outcome === "cancelled") yield* h.session.cancel(h.id)
          yield* h.go
          assert.deepStrictEqual(
            yield* Deferred.await(atEnd),
            ids.map(() => `held ${reason}`)
          )
          assert.strictEqual((yield* report(h, h.id)).outcome, outcome)
        })
      )
    )
  }

  it.effect("L-D6 closing the session settles every receipt before it returns", () =>
    run(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const h = yield* Scope.provide(duringRequest(), scope)
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.submit(Input.followUp("y", { id: "f" }))
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* receipts(h, "s", "f"), ["held session-closed", "held session-closed"])
        assert.isTrue(Option.isNone(yield* h.session.generation))
      })
    )
  )

  it.effect("L-D6 case 14: follow-ups of a cancelled generation are bound to none, and run", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ after: [ScriptedModel.text("f1"), ScriptedModel.text("f2")] })
        for (const id of ["f1", "f2"]) yield* h.session.submit(Input.followUp(id, { id }))
        yield* h.session.cancel(h.id)
        yield* h.session.awaitIdle
        assert.deepStrictEqual(yield* receipts(h, "f1", "f2"), ["applied in 1", "applied in 1"])
        assert.strictEqual(types(yield* h.events).filter((type) => type === "generation.started").length, 3)
      })
    )
  )

  it.effect("L-D6 a prompt cancelled before its first boundary is held, not lost", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [] })
        const id = yield* h.prompt("do it", "p")
        yield* h.session.cancel(id)
        assert.strictEqual((yield* report(h, id)).outcome, "cancelled")
        assert.deepStrictEqual(yield* receipts(h, "p"), ["held generation-cancelled"])
        assert.strictEqual(h.model.requests.length, 0)
      })
    )
  )
})
