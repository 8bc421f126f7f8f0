/** R3: whatever ended a generation, and in whichever phase, the next one's context is valid and says what was interrupted. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option, Scope } from "effect"
import { Prompt } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime, ContextPreparation, type Ids, Input, ToolPolicy, ToolReconciler } from "../../src/index.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"
import { type Batch, open as openBatch } from "../support/batches.ts"
import { type Harness, open, toolResults, types, userTexts } from "../support/harness.ts"
import { gate, notices, seenType, start } from "../support/providers.ts"
import { duringRequest, duringTool, lasting, passing, report, seen } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const user = Prompt.userMessage({ content: [Prompt.makePart("text", { text: "next" })] })

/** A session, its running generation, and what its model was sent. */
type Running = Pick<Harness, "session" | "model"> & { readonly id: Ids.GenerationId }

/** Prompts once the generation has ended, and gives the request that this makes. */
const next = ({ id, model, session }: Running) =>
  Effect.gen(function* () {
    yield* Effect.orDie(session.await(id))
    yield* session.awaitIdle.pipe(Effect.orDie)
    const { content } = yield* Effect.orDie(session.context)
    assert.deepStrictEqual(StrictPrompt.format(StrictPrompt.violations([...content, user])), "")
    const before = model.requests.length
    yield* Effect.orDie(session.await(yield* start(session, "next", "next")))
    assert.deepStrictEqual(model.violations, [])
    return model.requests[before]
  })

const look = ScriptedModel.call("look", { path: "a" }, "a")
const then = [ScriptedModel.text("later"), ScriptedModel.text("later still"), ScriptedModel.text("at last")]

/** A generation whose `nth` request is being prepared. */
const preparing = (nth: number) =>
  Effect.gen(function* () {
    const asked = yield* gate
    const service: ContextPreparation.Service = (prompt, { request }) =>
      request === nth ? asked.pass(prompt) : Effect.succeed(prompt)
    let held = true
    const h = yield* open({ script: nth === 1 ? then : [look, ...then] }).pipe(
      Effect.provideService(ContextPreparation.ContextPreparation, (prompt, info) =>
        held ? service(prompt, info) : Effect.succeed(prompt)
      )
    )
    const id = yield* h.prompt("do it", "p")
    yield* asked.entered
    held = false
    return { ...h, id }
  })

/** A generation whose first request has streamed this much of its response, and gives no more. */
const streaming = (step: ScriptedModel.Step) =>
  Effect.gen(function* () {
    const h = yield* open({ script: [ScriptedModel.hangAfter(step), ...then] })
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, "request.started")
    yield* TestClock.adjust(0)
    return { ...h, id }
  })

const backingOff = Effect.gen(function* () {
  const failing = ScriptedModel.failAfter(ScriptedModel.steps([ScriptedModel.text("half"), look]), passing())
  const h = yield* open({ script: [failing, ...then] })
  const id = yield* h.prompt("do it", "p")
  yield* seen(h, "request.failed")
  return { ...h, id }
})

const batch = (calls: ReadonlyArray<string>, concurrency?: number) =>
  Effect.gen(function* () {
    const opened = yield* openBatch({ calls, ...(concurrency === undefined ? {} : { concurrency }) })
    yield* opened.entered(calls[0]?.split(":")[1] ?? "")
    return opened
  })

const pausedAtBoundary = Effect.gen(function* () {
  const h = yield* duringTool()
  yield* h.session.pause()
  yield* h.go
  yield* seen(h, "pause.effective")
  yield* h.session.cancel(h.id)
  yield* h.session.resume()
  return h
})

type Scene = Effect.Effect<Running, never, Scope.Scope | AgentRuntime.AgentRuntime>
const text = ScriptedModel.text("so far")
const phases: ReadonlyArray<readonly [string, Scene]> = [
  ["preparing its first request", preparing(1)],
  ["preparing a later request", preparing(2)],
  ["waiting for the first part of a response", duringRequest()],
  ["amid the text of a response", streaming(text)],
  ["amid the reasoning of a response", streaming(ScriptedModel.reasoning("hm"))],
  ["after the calls of a response, before its finish", streaming(ScriptedModel.steps([text, look]))],
  ["backing off from a failed request", backingOff],
  ["running the first of two calls", batch(["write:a", "write:b"])],
  ["running a wave of calls", batch(["write:a", "read:b", "write:c"], 2)]
]

describe("L-R3 after a cancel", () => {
  for (const [phase, scene] of phases) {
    on(`L-R3 ${phase}, the next context is valid and says once that the run was cancelled`, () =>
      Effect.gen(function* () {
        const running = yield* scene
        yield* running.session.cancel(running.id)
        const request = yield* next(running)
        assert.strictEqual(notices(request).length, 1)
        assert.include(notices(request).join(), "cancelled")
        assert.isTrue(request?.prompt.some((message) => Input.idOfMessage(message) === "p"))
        assert.strictEqual(userTexts(request).at(-1), "next")
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-R3 while paused at a boundary, the next context is valid and says that the run was cancelled", () =>
    Effect.gen(function* () {
      const request = yield* next(yield* pausedAtBoundary)
      assert.include(notices(request).join(), "cancelled")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 before anything of the run was written, the next context holds nothing of it", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: then })
      const id = yield* h.prompt("do it", "p")
      yield* h.session.cancel(id)
      const request = yield* next({ ...h, id })
      const receipt = yield* h.receipt("p")
      const isHeld = receipt?.accepted === true && receipt.disposition === "held"
      assert.strictEqual(userTexts(request).includes("do it"), !isHeld)
      assert.strictEqual(userTexts(request).at(-1), "next")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-R3 after a stop", () => {
  for (const [phase, scene] of [
    ["in the first of two calls", batch(["write:a", "write:b"])],
    ["in a wave", batch(["write:a", "write:b", "write:c"], 2)]
  ] as const) {
    on(`L-R3 ${phase}, the next context is valid and says once that the run was stopped`, () =>
      Effect.gen(function* () {
        const running = yield* scene
        yield* running.session.stop(running.id)
        yield* running.let("a", "b", "c")
        const request = yield* next(running)
        assert.strictEqual(notices(request).length, 1)
        assert.include(notices(request).join(), "stopped")
        assert.include(toolResults(request).at(-1)?.result, "stopped")
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-R3 backing off, the next context is valid and says that the run was stopped", () =>
    Effect.gen(function* () {
      const running = yield* backingOff
      yield* running.session.stop(running.id)
      assert.include(notices(yield* next(running)).join(), "stopped")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-R3 after a failure", () => {
  for (const [phase, step] of [
    ["before any output", ScriptedModel.fail(lasting())],
    ["amid text", ScriptedModel.failAfter(text, lasting())],
    ["after calls", ScriptedModel.failAfter(ScriptedModel.steps([text, look]), lasting())],
    ["amid reasoning", ScriptedModel.failAfter(ScriptedModel.reasoning("hm"), lasting())],
    ["without a finish part", ScriptedModel.steps([text, ScriptedModel.noFinish])]
  ] as const) {
    on(`L-R3 of the provider's, ${phase}, the next context is valid and says once that the run failed, and why`, () =>
      Effect.gen(function* () {
        const h = yield* open({ script: [step, ...then] })
        const id = yield* h.prompt("do it", "p")
        const { error } = yield* report(h, id)
        const request = yield* next({ ...h, id })
        assert.strictEqual(notices(request).length, 1)
        assert.include(notices(request).join(), "failed")
        assert.include(notices(request).join(), error?.message ?? "an error")
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-R3 of the preparation's, after a tool, the next context is valid and keeps the real result", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [look, ...then] }).pipe(
        Effect.provideService(ContextPreparation.ContextPreparation, (prompt, { request }) =>
          request === 2 ? Effect.fail("no room") : Effect.succeed(prompt)
        )
      )
      const id = yield* h.prompt("do it", "p")
      const request = yield* next({ ...h, id })
      assert.include(notices(request).join(), "failed")
      assert.deepStrictEqual(
        toolResults(request).map(({ result }) => result),
        ["look a"]
      )
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-R3 after an exhausted budget", () => {
  on("L-R3 the calls of the last response are told as not started for the budget, and the notice says so", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [look, ...then], agent: { maxRequests: 1 } })
      const id = yield* h.prompt("do it", "p")
      const request = yield* next({ ...h, id })
      assert.strictEqual(notices(request).length, 1)
      assert.include(notices(request).join(), "budget")
      assert.include(toolResults(request)[0]?.result, "budget")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-R3 what the next context says", () => {
  on("L-R3 a run that finished leaves no notice", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [look, ...then] })
      const id = yield* h.prompt("do it", "p")
      assert.deepStrictEqual(notices(yield* next({ ...h, id })), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 the notice is a user message marked as such and is nobody's input", () =>
    Effect.gen(function* () {
      const running = yield* batch(["write:a"])
      yield* running.session.cancel(running.id)
      const request = yield* next(running)
      const marked = request?.prompt.filter((message) => {
        const own: unknown = message.options["midcourse"]
        return typeof own === "object" && own !== null && "notice" in own
      })
      assert.deepStrictEqual(
        marked?.map((message) => message.role),
        ["user"]
      )
      assert.isUndefined(marked?.map(Input.idOfMessage)[0])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 the notice stands after everything of the run and before what comes next", () =>
    Effect.gen(function* () {
      const running = yield* batch(["write:a"])
      yield* running.session.cancel(running.id)
      const request = yield* next(running)
      assert.deepStrictEqual(
        request?.prompt.slice(-4).map((message) => message.role),
        ["assistant", "tool", "user", "user"]
      )
      assert.strictEqual(userTexts(request).at(-2), notices(request)[0])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 two runs that were interrupted leave a notice each, and the third context is valid", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [ScriptedModel.hang, ScriptedModel.fail(lasting()), ...then] })
      const first = yield* h.prompt("one")
      yield* seen(h, "request.started")
      yield* h.session.cancel(first)
      yield* report(h, first)
      const id = yield* h.prompt("two")
      const request = yield* next({ ...h, id })
      assert.strictEqual(notices(request).length, 2)
      assert.include(notices(request).join(), "cancelled")
      assert.include(notices(request)[1], "failed")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 a follow-up that starts after the cancel has the notice in its context too", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      yield* h.session.submit(Input.followUp("then this", { id: "f" }))
      yield* h.session.cancel(h.id)
      yield* h.session.awaitIdle.pipe(Effect.orDie)
      assert.include(notices(h.model.requests[1]).join(), "cancelled")
      assert.strictEqual(userTexts(h.model.requests[1]).at(-1), "then this")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 after a close the context is valid for whoever goes on with it", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const running = yield* Scope.provide(batch(["write:a", "write:b"]), scope)
      yield* Scope.close(scope, Exit.void)
      const { content } = yield* Effect.orDie(running.session.context)
      assert.deepStrictEqual(StrictPrompt.violations([...content, user]), [])
    }).pipe(Effect.scoped, runtime)
  )
})

/** A wave of which one call is done, one only reads, one writes and one waits, when it is cancelled. */
const cancelledWave = Effect.gen(function* () {
  const running = yield* batch(["write:a", "read:b", "write:c", "write:d"], 3)
  yield* running.entered("b", "c")
  return running
})
const ended = (running: Batch) =>
  Effect.gen(function* () {
    yield* running.session.cancel(running.id)
    return yield* next(running)
  })

describe("cases of the next context", () => {
  on("case 31: the next context says of each call whether it ran, did not, or may have", () =>
    Effect.gen(function* () {
      const running = yield* cancelledWave
      yield* running.let("a")
      yield* seenType(running.session, "tool.completed")
      yield* running.entered("d")
      const request = yield* ended(running)
      const [done, read, written, late] = toolResults(request).map(({ result }) => result)
      assert.strictEqual(done, "did a")
      assert.match(read ?? "", /interrupted.*changed nothing/i)
      assert.match(written ?? "", /interrupted.*unknown/i)
      assert.match(late ?? "", /interrupted.*unknown/i)
    }).pipe(Effect.scoped, runtime)
  )

  on("case 31: a call that was not launched is said to have had no effect, and is in no list of doubts", () =>
    Effect.gen(function* () {
      const request = yield* ended(yield* cancelledWave)
      assert.match(toolResults(request)[3]?.result ?? "", /not started.*no effect/i)
      assert.notMatch(notices(request)[0] ?? "", /\(d\)/)
      assert.match(notices(request)[0] ?? "", /\(a\).*unknown/)
      assert.match(notices(request)[0] ?? "", /\(c\).*unknown/)
    }).pipe(Effect.scoped, runtime)
  )

  on("case 31: what a reconciler established is told, and is no doubt", () =>
    Effect.gen(function* () {
      const running = yield* cancelledWave
      const request = yield* ended(running)
      assert.include(toolResults(request)[2]?.result, "7 lines")
      assert.notMatch(notices(request)[0] ?? "", /\(c\)/)
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolReconciler.ToolReconciler, (call) =>
        Effect.succeed(call.providerId === "c" ? Option.some("7 lines") : Option.none())
      ),
      runtime
    )
  )

  /** How a batch of two can come to an end before its second call, and the words that only this end may use. */
  const ends: ReadonlyArray<readonly [string, (running: Batch) => Effect.Effect<unknown>, RegExp]> = [
    ["a cancel", (running) => running.session.cancel(running.id), /cancelled/],
    ["a stop", (running) => running.session.stop(running.id), /stopped/],
    ["a correction", (running) => running.steer("other way", { id: "s" }), /correction/],
    ["a pause about the tool", (running) => running.session.pause({ scope: { tools: ["write"] } }), /paused/]
  ]
  for (const [name, end, own] of ends) {
    on(`case 30: the result of a call not launched for ${name} says that cause and no other`, () =>
      Effect.gen(function* () {
        const running = yield* batch(["write:a", "write:b"])
        yield* end(running)
        yield* running.let("a")
        const result = toolResults(yield* next(running))[1]?.result ?? ""
        assert.match(result, own)
        for (const [, , other] of ends) if (other !== own) assert.notMatch(result, other)
        assert.notMatch(result, /polic|budget/)
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("case 30: the result of a refused call says that it was denied and why, and no other cause", () =>
    Effect.gen(function* () {
      const running = yield* openBatch({ calls: ["write:a"] })
      const result = toolResults(yield* next(running))[0]?.result ?? ""
      assert.match(result, /denied.*not on a Sunday/i)
      for (const [, , other] of ends) assert.notMatch(result, other)
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolPolicy.ToolPolicy, () => Effect.succeed(ToolPolicy.deny("not on a Sunday"))),
      runtime
    )
  )

  const interruptions: ReadonlyArray<readonly [string, Scene, RegExp]> = [
    ["a cancel", Effect.tap(duringRequest(), (running) => running.session.cancel(running.id)), /cancelled/],
    ["a stop", Effect.tap(backingOff, (running) => running.session.stop(running.id)), /stopped/],
    [
      "a failure",
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.fail(lasting()), ...then] })
        return { ...h, id: yield* h.prompt("do it") }
      }),
      /failed/
    ],
    [
      "an exhausted budget",
      Effect.gen(function* () {
        const h = yield* open({ script: [look, ...then], agent: { maxRequests: 1 } })
        return { ...h, id: yield* h.prompt("do it") }
      }),
      /budget/
    ]
  ]
  for (const [name, scene, own] of interruptions) {
    on(`case 32: the notice after ${name} says that cause, and never a new message of the user's`, () =>
      Effect.gen(function* () {
        const [notice = ""] = notices(yield* next(yield* scene))
        assert.match(notice, own)
        for (const [, , other] of interruptions) if (other !== own) assert.notMatch(notice, other)
        assert.notMatch(notice, /message|user/i)
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("case 15: after a provider that hung was given up by a cancel, the follow-up starts with a valid context", () =>
    Effect.gen(function* () {
      const running = yield* streaming(ScriptedModel.steps([text, look]))
      yield* running.session.submit(Input.followUp("then this", { id: "f" }))
      yield* running.session.cancel(running.id)
      yield* running.session.awaitIdle.pipe(Effect.orDie)
      assert.deepStrictEqual(running.model.violations, [])
      assert.include(types(yield* running.events), "generation.finished")
    }).pipe(Effect.scoped, runtime)
  )
})
