import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Latch, Scope } from "effect"
import { TestClock } from "effect/testing"
import { type ContextStore, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { inputId, open, userTexts } from "../support/harness.ts"
import * as contexts from "../support/contexts.ts"
import { duringTool, type Gated, receipts, report, run, seen, words } from "../support/scenes.ts"

type Append = NonNullable<contexts.Behaviour["append"]>
type Has = NonNullable<contexts.Behaviour["has"]>

const three = ["s1", "s2", "s3"] as const

/** Three steers are being written, of which `s2` is written and asked for as told; all others land at once. */
const writingSecond = (append: (land: Effect.Effect<void>) => ReturnType<Append>, has?: Has) =>
  Effect.gen(function* () {
    const entered = yield* Deferred.make<void>()
    const context = contexts.make({
      append: (land, id) => (id === "s2" ? Effect.andThen(Deferred.succeed(entered, undefined), append(land)) : land),
      ...(has === undefined ? undefined : { has })
    })
    const h = yield* contexts.keptIn(context)(duringTool())
    for (const id of three) yield* h.steer(h.id, `text of ${id}`, { id })
    yield* h.go
    yield* Deferred.await(entered)
    return { h, context }
  })

const cancelled = (h: Gated) => Effect.andThen(h.session.cancel(h.id), report(h, h.id))

const answers =
  (presence: ContextStore.Presence): Has =>
  () =>
    Effect.succeed(presence)

describe("L-B2 one item at a time", () => {
  it.effect(
    "L-B2 interrupted in the second of three: the first is applied, the third held, each on its own account",
    () =>
      run(
        Effect.gen(function* () {
          const { h } = yield* writingSecond(() => Effect.never)
          const { deliveredInputIds, undeliveredInputIds } = yield* cancelled(h)
          assert.deepStrictEqual(yield* receipts(h, ...three), [
            "applied",
            "held generation-cancelled",
            "held generation-cancelled"
          ])
          assert.deepStrictEqual(deliveredInputIds, [inputId("p"), inputId("s1")])
          assert.deepStrictEqual(undeliveredInputIds, [inputId("s2"), inputId("s3")])
        })
      )
  )

  it.effect("L-B2 an item leaves the queue only when its write begins", () =>
    run(
      Effect.gen(function* () {
        const writing = yield* Latch.make(false)
        const { context, h } = yield* writingSecond((land) => Effect.andThen(writing.await, land))
        assert.deepStrictEqual((yield* h.session.status).generation?.pendingInputIds, [inputId("s3")])
        assert.deepStrictEqual(context.begun, ["p", "s1", "s2"])
        assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", "queued", "queued"])
        yield* writing.open
        yield* report(h, h.id)
        assert.deepStrictEqual(
          yield* receipts(h, ...three),
          three.map(() => "applied in 2")
        )
      })
    )
  )

  it.effect("L-B2 the third is never written or asked for", () =>
    run(
      Effect.gen(function* () {
        const { context, h } = yield* writingSecond(() => Effect.never)
        yield* cancelled(h)
        assert.notInclude(context.begun, "s3")
        assert.deepStrictEqual(context.asked, ["s2"])
      })
    )
  )

  it.effect("L-B2 a stop lets the write under way end and holds what has not begun", () =>
    run(
      Effect.gen(function* () {
        const writing = yield* Latch.make(false)
        const { h } = yield* writingSecond((land) => Effect.andThen(writing.await, land))
        yield* h.session.stop(h.id)
        yield* writing.open
        assert.strictEqual((yield* report(h, h.id)).outcome, "stopped")
        assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", "applied", "held generation-stopped"])
      })
    )
  )

  it.effect("L-B2 what is accepted while a write is under way is drained at the same boundary", () =>
    run(
      Effect.gen(function* () {
        const writing = yield* Latch.make(false)
        const { h } = yield* writingSecond((land) => Effect.andThen(writing.await, land))
        yield* h.steer(h.id, "text of s4", { id: "s4" })
        yield* writing.open
        yield* report(h, h.id)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", ...[1, 2, 3, 4].map((n) => `text of s${n}`)])
      })
    )
  )
})

describe("L-B3 an interrupted write is settled by what the context says", () => {
  const cases: ReadonlyArray<
    readonly [
      name: string,
      append: (land: Effect.Effect<void>) => Effect.Effect<void, unknown>,
      has: Has,
      receipt: string
    ]
  > = [
    ["present is applied", (land) => Effect.andThen(land, Effect.never), answers("present"), "applied"],
    ["absent is held", () => Effect.never, answers("absent"), "held generation-cancelled"],
    ["cannot-tell is unknown", () => Effect.never, answers("cannot-tell"), "unknown write-interrupted"],
    ["a question that fails is unknown", () => Effect.never, () => Effect.fail("down"), "unknown write-interrupted"],
    ["a question that dies is unknown", () => Effect.never, () => Effect.die("bug"), "unknown write-interrupted"],
    [
      "a question that is interrupted is unknown",
      () => Effect.never,
      () => Effect.interrupt,
      "unknown write-interrupted"
    ],
    [
      "a question that throws is unknown",
      () => Effect.never,
      () => {
        throw new Error("bug")
      },
      "unknown write-interrupted"
    ],
    [
      "an answer that is none of the three is unknown",
      () => Effect.never,
      () => Effect.succeed("maybe" as ContextStore.Presence),
      "unknown write-interrupted"
    ],
    [
      "a write that fails while it is interrupted is asked for too",
      (land) => Effect.onInterrupt(Effect.never, () => Effect.andThen(land, Effect.die("bug"))),
      answers("present"),
      "applied"
    ]
  ]
  for (const [name, append, has, receipt] of cases) {
    it.effect(`L-B3 ${name}, and its neighbours are not touched by it`, () =>
      run(
        Effect.gen(function* () {
          const { h } = yield* writingSecond(append, has)
          const { outcome } = yield* cancelled(h)
          assert.strictEqual(outcome, "cancelled")
          assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", receipt, "held generation-cancelled"])
        })
      )
    )
  }

  it.effect("L-B3 a write that ends within the grace time, although it was interrupted, is applied", () =>
    run(
      Effect.gen(function* () {
        const { h } = yield* writingSecond((land) =>
          Effect.uninterruptible(Effect.andThen(Effect.sleep("4 seconds"), land))
        )
        yield* h.session.cancel(h.id)
        yield* TestClock.adjust("4 seconds")
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", "applied", "held generation-cancelled"])
      })
    )
  )

  it.effect("L-B3 a question that is never answered is unknown when the grace time is over, and not before", () =>
    run(
      Effect.gen(function* () {
        const asked = yield* Deferred.make<void>()
        const { h } = yield* writingSecond(
          () => Effect.never,
          () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        )
        yield* h.session.cancel(h.id)
        yield* Deferred.await(asked)
        yield* TestClock.adjust("4999 millis")
        assert.deepStrictEqual(yield* receipts(h, "s2"), ["queued"])
        yield* TestClock.adjust("1 millis")
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "s2"), ["unknown write-interrupted"])
      })
    )
  )

  it.effect("L-B3 absent is not believed of a write that could not be ended: it may still land", () =>
    run(
      Effect.gen(function* () {
        const landing = yield* Latch.make(false)
        const { h } = yield* writingSecond(
          (land) => Effect.uninterruptible(Effect.andThen(landing.await, land)),
          answers("absent")
        )
        yield* h.session.cancel(h.id)
        yield* TestClock.adjust("5 seconds")
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* receipts(h, "s2"), ["unknown write-interrupted"])
        yield* landing.open
      })
    )
  )

  it.effect("L-B3 a late landing changes no receipt", () =>
    run(
      Effect.gen(function* () {
        const landing = yield* Latch.make(false)
        const landed = yield* Deferred.make<void>()
        const { h } = yield* writingSecond(
          (land) =>
            Effect.uninterruptible(
              landing.await.pipe(
                Effect.andThen(land),
                Effect.andThen(Deferred.succeed(landed, undefined)),
                Effect.asVoid
              )
            ),
          answers("absent")
        )
        yield* h.session.cancel(h.id)
        yield* TestClock.adjust("5 seconds")
        yield* report(h, h.id)
        yield* landing.open
        yield* Deferred.await(landed)
        assert.deepStrictEqual(yield* receipts(h, "s2"), ["unknown write-interrupted"])
      })
    )
  )

  it.effect("L-B3 closing the session settles the write under way the same way", () =>
    run(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { h } = yield* Scope.provide(
          writingSecond(() => Effect.never),
          scope
        )
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", "held session-closed", "held session-closed"])
      })
    )
  )
})

describe("L-B3 a write that fails is settled by what the context says", () => {
  const failure = Effect.fail("disk full")

  it.effect("L-B3 present is applied, and the generation goes on", () =>
    run(
      Effect.gen(function* () {
        const { h } = yield* writingSecond((land) => Effect.andThen(land, failure))
        const { outcome } = yield* report(h, h.id)
        assert.strictEqual(outcome, "finished")
        assert.deepStrictEqual(
          yield* receipts(h, ...three),
          three.map(() => "applied in 2")
        )
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", ...three.map((id) => `text of ${id}`)])
      })
    )
  )

  const fates: ReadonlyArray<readonly [presence: ContextStore.Presence, receipt: string]> = [
    ["absent", "held write-failed"],
    ["cannot-tell", "unknown write-failed"]
  ]
  for (const [presence, receipt] of fates) {
    it.effect(`L-B3 ${presence} is ${receipt}, and the generation fails of its context`, () =>
      run(
        Effect.gen(function* () {
          const { h } = yield* writingSecond(() => failure, answers(presence))
          const { error, outcome } = yield* report(h, h.id)
          assert.deepStrictEqual([outcome, error?.kind], ["failed", "context"])
          assert.deepStrictEqual(yield* receipts(h, ...three), ["applied", receipt, "held generation-failed"])
          assert.strictEqual(h.model.requests.length, 1)
        })
      )
    )
  }

  it.effect("L-B3 a store that throws instead of failing is asked like one that fails", () =>
    run(
      Effect.gen(function* () {
        const context = contexts.make()
        const throwing: ContextStore.Service = {
          ...context.service,
          append: (messages) => {
            const landing = context.service.append(messages)
            if (messages.every((message) => Input.idOfMessage(message) !== "s2")) return landing
            Effect.runSync(Effect.orDie(landing))
            throw new Error("thrown after it landed")
          }
        }
        const h = yield* contexts.keptIn({ ...context, service: throwing })(duringTool())
        for (const id of three) yield* h.steer(h.id, `text of ${id}`, { id })
        yield* h.go
        yield* report(h, h.id)
        assert.include(context.landed(), "s2")
        assert.match((yield* receipts(h, "s2"))[0] ?? "", /^applied/)
      })
    )
  )

  it.effect("L-B3 a prompt whose write fails is held, and nothing is sent", () =>
    run(
      Effect.gen(function* () {
        const context = contexts.make({ append: () => failure })
        const h = yield* contexts.keptIn(context)(open({ script: [] }))
        const { outcome } = yield* report(h, yield* h.prompt("do it", "p"))
        assert.deepStrictEqual([outcome, yield* receipts(h, "p")], ["failed", ["held write-failed"]])
        assert.strictEqual(h.model.requests.length, 0)
      })
    )
  )

  it.effect("L-B3 a context that cannot be read fails the generation, and what was written stays applied", () =>
    run(
      Effect.gen(function* () {
        const context = contexts.make({ messages: (all, read) => (read < 2 ? Effect.succeed(all) : failure) })
        const h = yield* contexts.keptIn(context)(duringTool())
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        const { error, outcome } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "context"])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["applied"])
      })
    )
  )
})

describe("L-B3 where the journal is the context", () => {
  it.effect("L-B3 message and disposition are one commit: a receipt is applied exactly when its message is there", () =>
    run(
      Effect.gen(function* () {
        let look: Effect.Effect<unknown> = Effect.void
        const second = ScriptedModel.wait(
          Effect.suspend(() => look),
          ScriptedModel.text("second")
        )
        const h = yield* duringTool({ after: [second, ScriptedModel.text("third")] })
        const found: Array<readonly [string, boolean]> = []
        look = Effect.gen(function* () {
          for (const id of ["s1", "late"]) {
            const { content } = yield* Effect.orDie(h.session.context)
            found.push([words(yield* h.receipt(id)), content.some((message) => Input.idOfMessage(message) === id)])
          }
        })
        yield* h.steer(h.id, "x", { id: "s1" })
        look = Effect.andThen(h.steer(h.id, "y", { id: "late" }), look)
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(found, [
          ["applied in 2", true],
          ["queued", false]
        ])
      })
    )
  )

  it.effect("L-B3 nothing is ever unknown", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringTool({ after: [ScriptedModel.hang] })
        for (const id of three) yield* h.steer(h.id, id, { id })
        yield* h.go
        yield* seen(h, "request.started", 2)
        yield* h.steer(h.id, "late", { id: "late" })
        const { unknownInputIds } = yield* cancelled(h)
        assert.deepStrictEqual(unknownInputIds, [])
        assert.deepStrictEqual(yield* receipts(h, ...three, "late"), [
          ...three.map(() => "applied in 2"),
          "held generation-cancelled"
        ])
      })
    )
  )
})
