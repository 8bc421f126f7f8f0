/** C7: closing a session in every phase, and sharing an open one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Scope, Stream } from "effect"
import type { LanguageModel } from "effect/ai"
import { TestClock } from "effect/testing"
import { Agent, AgentRuntime, Checkpointer, type Ids, Input, type Session } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { stubborn, twoCalls, working } from "../support/generations.ts"
import { type Harness, inputId, open, type Options, record, toolkit, types } from "../support/harness.ts"
import {
  gate,
  handlers,
  ofType,
  overloaded,
  pairsOf,
  seenType,
  start,
  statuses,
  scripted
} from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** A session in a scope of its own. */
const openIn = (scope: Scope.Scope, options: Options) => Scope.provide(open(options), scope)

const dispositionOf = (session: Session.Session, id: string) =>
  Effect.map(session.receipt(inputId(id)), (found) => {
    const receipt = Option.getOrUndefined(found)
    return receipt?.accepted === true ? `${receipt.disposition} ${receipt.reason ?? ""}`.trim() : "none"
  })

interface Phase {
  readonly name: string
  readonly options: Options
  /** Waits until the generation is there. */
  readonly reached: (harness: Harness) => Effect.Effect<unknown>
  readonly checkpointer?: Checkpointer.Service
}

const phases: ReadonlyArray<Phase> = [
  {
    name: "during a request",
    options: { script: scripted(ScriptedModel.hang) },
    reached: ({ session }) => seenType(session, "request.started")
  },
  {
    name: "while a tool runs",
    options: { script: scripted(twoCalls), edit: () => Effect.never },
    reached: ({ session }) => seenType(session, "tool.started")
  },
  {
    name: "during the checkpoint",
    options: { script: scripted() },
    reached: ({ session }) => seenType(session, "assistant.message"),
    checkpointer: () => Effect.never
  },
  {
    name: "during a backoff",
    options: { script: scripted(ScriptedModel.fail(overloaded)) },
    reached: ({ session }) => seenType(session, "request.failed")
  }
]

describe("L-C7 closing", () => {
  for (const { checkpointer, name, options, reached } of phases) {
    on(`L-C7 ${name}: cancels the generation as closed and settles every receipt before it returns`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const harness = yield* openIn(scope, options)
        const { session } = harness
        const { got } = yield* record(session.events())
        const id = yield* harness.prompt("go", "p1")
        yield* reached(harness)
        yield* harness.steer(id, "so", { id: "s1" })
        yield* session.submit(Input.followUp("later", { id: "f1" }))
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(
          [
            yield* dispositionOf(session, "p1"),
            yield* dispositionOf(session, "s1"),
            yield* dispositionOf(session, "f1")
          ],
          ["applied", "held session-closed", "held session-closed"]
        )
        const report = yield* session.await(id)
        assert.deepStrictEqual(
          [report.outcome, report.deliveredInputIds, report.undeliveredInputIds],
          ["cancelled", [inputId("p1")], [inputId("s1")]]
        )
        assert.deepStrictEqual(
          ofType(got, "generation.cancelled").map((event) => event.cause),
          ["close"]
        )
        assert.deepStrictEqual(harness.model.stats().open, 0)
      }).pipe(
        Effect.scoped,
        Effect.provideService(Checkpointer.Checkpointer, checkpointer ?? Checkpointer.saveNothing),
        runtime
      )
    )
  }

  on("L-C7 the calls of a closed session are paired: interrupted and not-started(closed)", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { id, session } = yield* Scope.provide(working(), scope)
      yield* Scope.close(scope, Exit.void)
      const report = yield* session.await(id)
      assert.deepStrictEqual(statuses(report), [
        ["a", { _tag: "Interrupted", effects: "unknown", cause: "close" }],
        ["b", { _tag: "NotStarted", reason: "closed" }]
      ])
      assert.deepStrictEqual(pairsOf((yield* session.context).content), [{ calls: ["a", "b"], results: ["a", "b"] }])
    }).pipe(runtime)
  )

  on("L-C7 the close waits for an interrupted call as long as its grace time", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { id, session } = yield* Scope.provide(stubborn, scope)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      assert.strictEqual((yield* session.await(id)).outcome, "cancelled")
    }).pipe(runtime)
  )

  on("L-C7 with queued follow-ups and nothing running to be let finish, none of them starts", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { harness } = yield* Scope.provide(working(["f1", "f2"]), scope)
      yield* harness.session.submit(Input.collect("c", { id: "c1" }))
      yield* Scope.close(scope, Exit.void)
      for (const id of ["f1", "f2", "c1"]) {
        assert.strictEqual(yield* dispositionOf(harness.session, id), "held session-closed")
      }
      assert.strictEqual(harness.model.requests.length, 1)
    }).pipe(runtime)
  )

  on("L-C7 an idle session closes at once, and its events end", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { session } = yield* openIn(scope, { script: scripted() })
      yield* Scope.close(scope, Exit.void)
      const events = yield* Stream.runCollect(session.events())
      assert.deepStrictEqual(types(events), ["session.closed"])
    }).pipe(runtime)
  )

  on("L-C7 after the close every operation is refused or fails typed, and what was known is still told", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { prompt, session, steer } = yield* openIn(scope, { script: scripted() })
      const id = yield* prompt("go", "p1")
      yield* session.await(id)
      yield* Scope.close(scope, Exit.void)
      const reasonOf = (receipt: { readonly accepted: boolean; readonly reason?: unknown }) => receipt.reason
      assert.strictEqual(reasonOf(yield* session.submit(Input.prompt("more"))), "session-closed")
      assert.strictEqual(reasonOf(yield* session.submit(Input.followUp("more"))), "session-closed")
      assert.strictEqual(reasonOf(yield* session.submit(Input.steer("more"))), "session-closed")
      assert.strictEqual(reasonOf(yield* steer(id, "more")), "session-closed")
      assert.strictEqual(reasonOf(yield* session.cancel(id)), "session-closed")
      assert.strictEqual(reasonOf(yield* session.stop(id)), "session-closed")
      const error = yield* Effect.flip(session.awaitIdle)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual((yield* session.await(id)).outcome, "finished")
      assert.strictEqual(yield* dispositionOf(session, "p1"), "applied")
      assert.isTrue((yield* session.status).closed)
    }).pipe(runtime)
  )

  on("L-C7 a close overrides a stop that is still waiting for its tool", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { id, session } = yield* Scope.provide(working(), scope)
      yield* session.stop(id)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([(yield* session.await(id)).outcome, (yield* session.status).closed], ["cancelled", true])
    }).pipe(runtime)
  )

  on("L-C7 who awaits a generation is answered by the close", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { prompt, session } = yield* openIn(scope, { script: scripted(ScriptedModel.hang) })
      const id = yield* prompt("go")
      const waiting = yield* Effect.forkChild(session.await(id), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Fiber.join(waiting)).outcome, "cancelled")
    }).pipe(runtime)
  )
})
const id = "ses_shared" as Ids.SessionId
const agent = Agent.make({ name: "fixture", instructions: "Be brief.", toolkit })

/** Opens the shared id in a scope. */
const openShared = (scope: Scope.Scope, model: Layer.Layer<LanguageModel.LanguageModel>, by = agent) =>
  Effect.flatMap(AgentRuntime.AgentRuntime, (service) => service.open(by, { id })).pipe(
    Effect.provide(Layer.merge(model, handlers)),
    Scope.provide(scope)
  )

describe("L-C7 sharing an open session", () => {
  on("L-C7 a session opened twice is one session, and closes with the last scope that holds it", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      const model = yield* ScriptedModel.make(scripted())
      const one = yield* openShared(first, model.layer)
      const two = yield* openShared(second, model.layer)
      const generation = yield* start(one, "go")
      assert.strictEqual((yield* two.await(generation)).text, "answer 1")
      yield* Scope.close(first, Exit.void)
      assert.isFalse((yield* two.status).closed)
      assert.strictEqual((yield* two.await(yield* start(two, "again"))).text, "answer 2")
      yield* Scope.close(second, Exit.void)
      assert.isTrue((yield* two.status).closed)
    }).pipe(runtime)
  )

  on("L-C7 opening an open id with another agent is refused and leaves the session alone", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const model = yield* ScriptedModel.make(scripted())
      const session = yield* openShared(scope, model.layer)
      const other = Agent.make({ name: "other", instructions: "Be brief.", toolkit })
      const error = yield* Effect.flip(
        Effect.scoped(Effect.flatMap(Effect.scope, (own) => openShared(own, model.layer, other)))
      )
      assert.strictEqual(error.reason._tag, "InUse")
      assert.isFalse((yield* session.status).closed)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue((yield* session.status).closed)
    }).pipe(runtime)
  )

  on("L-C7 an id that is closing is opened anew when everything there is settled", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      const saving = yield* gate
      const model = yield* ScriptedModel.make(scripted())
      const old = yield* openShared(first, model.layer).pipe(
        Effect.provideService(Checkpointer.Checkpointer, () => Effect.uninterruptible(saving.pass(undefined)))
      )
      yield* start(old, "go")
      yield* saving.entered
      const closing = yield* Effect.forkChild(Scope.close(first, Exit.void), { startImmediately: true })
      const opening = yield* Effect.forkChild(openShared(second, model.layer), { startImmediately: true })
      assert.isUndefined(opening.pollUnsafe())
      yield* saving.open
      yield* Fiber.join(closing)
      const fresh = yield* Fiber.join(opening)
      assert.notStrictEqual(fresh, old)
      assert.strictEqual((yield* fresh.status).sequence, 0)
      yield* Scope.close(second, Exit.void)
    }).pipe(runtime)
  )
})
