/** Providers that are slow, fail, die or break the protocol: attempts and budget (E3), causes (C8) and cuts (T12). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule, Stream } from "effect"
import { AiError, type Response } from "effect/ai"
import { TestClock } from "effect/testing"
import { type Agent, AgentRuntime, type Session } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, open, type Tools } from "../support/harness.ts"
import {
  answer,
  ask,
  eventsOf,
  ofType,
  openOver,
  overloaded,
  pairs,
  provider,
  rateLimited,
  said,
  seenType,
  start,
  statuses,
  unauthorised,
  scripted
} from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const isIdle = (session: Session.Session) => Effect.map(session.generation, Option.isNone)

/** A generation whose first request has failed and which waits to try again. */
const backingOff = (agent: Partial<Agent.Options<Tools>>, ...steps: ReadonlyArray<ScriptedModel.Step>) =>
  Effect.gen(function* () {
    const harness = yield* open({ script: scripted(...steps), agent })
    const id = yield* harness.prompt("go")
    yield* seenType(harness.session, "request.failed")
    return { harness, id }
  })

const requests = (harness: Harness) => harness.model.requests.length
const failing = ScriptedModel.fail(overloaded)

describe("L-E3 attempts", () => {
  on("L-E3 a retryable error is tried again as the agent's schedule says, and not sooner", () =>
    Effect.gen(function* () {
      const retry = Schedule.spaced("3 seconds").pipe(Schedule.upTo({ times: 2 }))
      const { harness, id } = yield* backingOff({ retry }, failing, failing)
      yield* TestClock.adjust("2999 millis")
      assert.strictEqual(requests(harness), 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(requests(harness), 2)
      yield* TestClock.adjust("3 seconds")
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual([report.outcome, report.requests, report.text], ["finished", 3, "answer 3"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 every attempt is a request with its own number and events; only the last says that none follows", () =>
    Effect.gen(function* () {
      const { harness, id } = yield* backingOff({}, failing, failing, failing)
      yield* TestClock.adjust("500 millis")
      yield* TestClock.adjust("1 second")
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual([report.outcome, report.requests, report.error?.kind], ["failed", 3, "provider"])
      const events = yield* harness.events
      assert.deepStrictEqual(
        ofType(events, "request.started").map((event) => event.request),
        [1, 2, 3]
      )
      assert.deepStrictEqual(
        ofType(events, "request.failed").map(({ cause, request, retry }) => [request, retry, cause]),
        [
          [1, true, "provider-failure"],
          [2, true, "provider-failure"],
          [3, false, "provider-failure"]
        ]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 every attempt is one of the budget: the last permitted one that fails ends the generation as failed", () =>
    Effect.gen(function* () {
      const { harness, id } = yield* backingOff({ maxRequests: 2 }, failing, failing)
      yield* TestClock.adjust("1 second")
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual([report.outcome, report.requests], ["failed", 2])
      assert.strictEqual(requests(harness), 2)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 a rate limit's own delay is not undercut by a shorter schedule", () =>
    Effect.gen(function* () {
      const { harness, id } = yield* backingOff({}, ScriptedModel.fail(rateLimited("10 seconds")))
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(requests(harness), 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* harness.session.await(id)).text, "answer 2")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 a rate limit's own delay does not shorten a longer schedule", () =>
    Effect.gen(function* () {
      const retry = Schedule.spaced("20 seconds").pipe(Schedule.upTo({ times: 1 }))
      const { harness, id } = yield* backingOff({ retry }, ScriptedModel.fail(rateLimited("1 second")))
      yield* TestClock.adjust("19999 millis")
      assert.strictEqual(requests(harness), 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* harness.session.await(id)).text, "answer 2")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 an error that no retry mends fails the generation at once", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(ScriptedModel.fail(unauthorised)) })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual([report.outcome, report.requests], ["failed", 1])
      assert.strictEqual(report.error?.message, unauthorised.message)
      assert.deepStrictEqual(
        ofType(yield* harness.events, "request.failed").map((event) => event.retry),
        [false]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 a retryable error streamed as a part is tried again as one thrown is", () =>
    Effect.gen(function* () {
      const error = AiError.make({ module: "Test", method: "streamText", reason: overloaded })
      const session = yield* openOver(
        provider((request) => Stream.fromIterable(request === 1 ? [{ type: "error", error } as const] : answer("fine")))
      )
      const id = yield* start(session, "go")
      yield* seenType(session, "request.failed")
      yield* TestClock.adjust("1 second")
      const report = yield* session.await(id)
      assert.deepStrictEqual([report.outcome, report.requests, report.text], ["finished", 2, "fine"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E3 any other error streamed as a part fails the generation at once", () =>
    Effect.gen(function* () {
      const error = new Error("the socket is closed")
      const session = yield* openOver(provider(() => Stream.fromIterable([{ type: "error", error } as const])))
      const report = yield* ask(session, "go")
      assert.deepStrictEqual([report.outcome, report.requests, report.error?.kind], ["failed", 1, "provider"])
      assert.include(report.error?.message, "the socket is closed")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E4 usage is the sum over the completed requests", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [
          ScriptedModel.steps([
            ScriptedModel.call("edit", { path: "p" }, "a"),
            ScriptedModel.finish("tool-calls", ScriptedModel.usage(100, 7))
          ]),
          ScriptedModel.steps([ScriptedModel.text("done"), ScriptedModel.finish("stop", ScriptedModel.usage(30, 2))])
        ]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(report.usage, { inputTokens: 130, outputTokens: 9 })
      assert.deepStrictEqual(
        ofType(yield* harness.events, "request.completed").map((event) => event.usage),
        [
          { inputTokens: 100, outputTokens: 7 },
          { inputTokens: 30, outputTokens: 2 }
        ]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-E4 usage that the provider does not count is 0", () =>
    Effect.gen(function* () {
      const none = {
        inputTokens: { uncached: undefined, total: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: undefined, text: undefined, reasoning: undefined }
      }
      const parts = ScriptedModel.steps([ScriptedModel.text("done"), ScriptedModel.finish("stop", none)])
      const harness = yield* open({ script: [parts] })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(report.usage, { inputTokens: 0, outputTokens: 0 })
    }).pipe(Effect.scoped, runtime)
  )
})

/** A session whose provider breaks at the first request and answers the others. */
const breaking = (stream: () => Stream.Stream<never>) =>
  openOver(provider((request) => (request === 1 ? stream() : Stream.fromIterable(answer("fine")))))

/** The failure is told as the provider's, and the next prompt is answered. */
const goesOn = (session: Session.Session) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(
      ofType(yield* eventsOf(session), "generation.failed").map(({ cause }) => cause),
      ["provider-failure"]
    )
    assert.strictEqual((yield* ask(session, "again")).text, "fine")
  })

describe("L-C8 providers that break", () => {
  for (const [name, stream] of [
    ["dies", () => Stream.die(new Error("segmentation fault"))],
    [
      "throws",
      () => {
        throw new Error("segmentation fault")
      }
    ]
  ] as const) {
    on(`L-C8 a provider layer that ${name} fails the generation as the provider's failure; the session goes on`, () =>
      Effect.gen(function* () {
        const session = yield* breaking(stream)
        const report = yield* ask(session, "go")
        assert.deepStrictEqual([report.outcome, report.error?.kind], ["failed", "defect"])
        assert.include(report.error?.message, "segmentation fault")
        yield* goesOn(session)
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-C8 a provider layer that interrupts itself has failed: nobody cancelled it", () =>
    Effect.gen(function* () {
      const session = yield* breaking(() => Stream.fromEffect(Effect.interrupt))
      const report = yield* ask(session, "go")
      assert.deepStrictEqual([report.outcome, report.error?.kind], ["failed", "provider"])
      yield* goesOn(session)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 a provider that never answers is ended by a cancel, and its stream is really closed", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(ScriptedModel.hang) })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "request.started")
      yield* harness.session.cancel(id)
      const report = yield* harness.session.await(id)
      assert.strictEqual(report.outcome, "cancelled")
      assert.deepStrictEqual(harness.model.stats(), { started: 1, open: 0, completed: 0, failed: 0, interrupted: 1 })
      assert.isTrue(yield* isIdle(harness.session))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C7 a provider that never answers is ended by the close of the scope, and its stream is really closed", () =>
    Effect.gen(function* () {
      const model = yield* Effect.scoped(
        Effect.gen(function* () {
          const harness = yield* open({ script: scripted(ScriptedModel.hang) })
          yield* harness.prompt("go")
          yield* seenType(harness.session, "request.started")
          return harness.model
        })
      )
      assert.strictEqual(model.stats().open, 0)
      assert.strictEqual(model.stats().interrupted, 1)
    }).pipe(runtime)
  )
})

/** A session whose first response is these parts, as a layer without a decoder may hand them over, whatever their types say. */
const openRaw = (...list: ReadonlyArray<unknown>) => {
  const step = ScriptedModel.parts(list as ReadonlyArray<Response.StreamPartEncoded>)
  return open({ script: scripted(step), model: { direct: true } })
}

describe("L-T12 parts that break the protocol", () => {
  const broken: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
    ["a part without a type", [{ delta: "x" }]],
    [
      "text without text",
      [
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t" }
      ]
    ],
    ["a call without an id", [{ type: "tool-call", name: "edit", params: { path: "p" } }]],
    ["a call without a name", [{ type: "tool-call", id: "a", params: { path: "p" } }]]
  ]
  for (const [name, parts] of broken) {
    on(`L-T12 ${name} fails the generation, which leaves a valid context`, () =>
      Effect.gen(function* () {
        const harness = yield* openRaw(...parts)
        const report = yield* harness.session.await(yield* harness.prompt("go"))
        assert.deepStrictEqual([report.outcome, report.error?.kind], ["failed", "invalid-response"])
        const next = yield* harness.session.await(yield* harness.prompt("and now"))
        assert.strictEqual(next.text, "answer 2")
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-T12 text after the finish part is no part of the response", () =>
    Effect.gen(function* () {
      const late = [
        ...answer("whole"),
        { type: "text-start", id: "u" },
        { type: "text-delta", id: "u", delta: "late" },
        { type: "text-end", id: "u" }
      ]
      const harness = yield* openRaw(...late)
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.text, "whole")
      yield* harness.session.await(yield* harness.prompt("and now"))
      assert.deepStrictEqual(said(harness.model.requests[1]), [{ interrupted: false, parts: ["text whole"] }])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T6 a call whose parameters are absent is not-started(invalid), and the next prompt is valid JSON", () =>
    Effect.gen(function* () {
      const harness = yield* openRaw({ type: "tool-call", id: "a", name: "edit" })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(harness.model.violations, [])
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(
        statuses(report).map(([id, status]) => [id, status._tag]),
        [["a", "NotStarted"]]
      )
      assert.deepStrictEqual(pairs(harness.model.requests[1]), [{ calls: ["a"], results: ["a"] }])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T1 the id of a call the provider ran, used again for a call of ours, leaves the next prompt valid", () =>
    Effect.gen(function* () {
      const harness = yield* openRaw(
        { type: "tool-call", id: "a", name: "web", params: {}, providerExecuted: true },
        { type: "tool-result", id: "a", name: "web", isFailure: false, result: 1, providerExecuted: true },
        { type: "tool-call", id: "a", name: "edit", params: { path: "p" } }
      )
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(harness.model.violations, [])
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(
        statuses(report).map(([id, status]) => [id, status._tag === "NotStarted" ? status.reason : status._tag]),
        [["a", "invalid"]]
      )
    }).pipe(Effect.scoped, runtime)
  )
})
