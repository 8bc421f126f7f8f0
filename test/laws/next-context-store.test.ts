/** R3 and T2 where the conversation is kept by the host: cut or failed writes leave nothing that no provider would take. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Prompt } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime, ContextStore } from "../../src/index.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"
import { open as openBatch, told } from "../support/batches.ts"
import * as Contexts from "../support/contexts.ts"
import { type Harness, open, toolResults, userTexts } from "../support/harness.ts"
import { gate, notices } from "../support/providers.ts"
import { duringTool, receipts, report, seen } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const user = Prompt.userMessage({ content: [Prompt.makePart("text", { text: "next" })] })
const then = [ScriptedModel.text("later"), ScriptedModel.text("later still"), ScriptedModel.text("at last")]
const look = ScriptedModel.call("look", { path: "a" }, "a")

/** Prompts a session whose generation has ended, and gives the request that this makes. */
const next = (h: Pick<Harness, "session" | "model" | "prompt">) =>
  Effect.gen(function* () {
    const { content } = yield* Effect.orDie(h.session.context)
    assert.deepStrictEqual(StrictPrompt.format(StrictPrompt.violations([...content, user])), "")
    const before = h.model.requests.length
    const { outcome } = yield* Effect.orDie(h.session.await(yield* h.prompt("next", "next")))
    assert.deepStrictEqual([outcome, h.model.violations], ["finished", []])
    return h.model.requests[before]
  })

/** A context whose first write of a message of this role fails, and which works otherwise. */
const failing = (role: Prompt.Message["role"], landed: boolean) => {
  const { service } = Contexts.make()
  let failed = false
  return Effect.provideService(ContextStore.ContextStore, {
    ...service,
    append: (messages) => {
      if (failed || messages[0].role !== role) return service.append(messages)
      failed = true
      return Effect.andThen(landed ? service.append(messages) : Effect.void, Effect.fail("the disk was busy"))
    }
  })
}

describe("L-R3 a write that is under way", () => {
  /** A session in a context of the host's, whose write of the input `id` waits. */
  const writing = (id: string, script: ReadonlyArray<ScriptedModel.Step>, lands: boolean) =>
    Effect.gen(function* () {
      const write = yield* gate
      const context = Contexts.make({
        append: (land, input) => {
          if (input !== id) return land
          return lands ? Effect.andThen(land, write.pass(undefined)) : Effect.andThen(write.pass(undefined), land)
        }
      })
      return { write, h: yield* Contexts.keptIn(context)(open({ script })) }
    })

  for (const lands of [true, false]) {
    const which = lands ? "has landed" : "has not landed"
    on(`L-R3 of the prompt, which ${which} when it is cancelled, leaves a valid context that tells the truth`, () =>
      Effect.gen(function* () {
        const { h, write } = yield* writing("p", then, lands)
        const id = yield* h.prompt("do it", "p")
        yield* write.entered
        yield* h.session.cancel(id)
        yield* report(h, id)
        assert.deepStrictEqual(yield* receipts(h, "p"), [lands ? "applied" : "held generation-cancelled"])
        const request = yield* next(h)
        assert.strictEqual(userTexts(request).includes("do it"), lands)
        if (lands) assert.include(notices(request).join(), "cancelled")
      }).pipe(Effect.scoped, runtime)
    )

    on(`L-R3 of a steer, which ${which} when it is cancelled, leaves a valid context with the notice`, () =>
      Effect.gen(function* () {
        const tool = yield* Deferred.make<void>()
        const write = yield* gate
        const context = Contexts.make({
          append: (land, input) => {
            if (input !== "s") return land
            return lands ? Effect.andThen(land, write.pass(undefined)) : Effect.andThen(write.pass(undefined), land)
          }
        })
        const h = yield* Contexts.keptIn(context)(
          open({ script: [look, ...then], look: () => Effect.as(Deferred.await(tool), "seen") })
        )
        const id = yield* h.prompt("do it", "p")
        yield* seen(h, "tool.started")
        yield* h.steer(id, "and so", { id: "s" })
        yield* Deferred.succeed(tool, undefined)
        yield* write.entered
        yield* h.session.cancel(id)
        yield* report(h, id)
        const request = yield* next(h)
        assert.strictEqual(userTexts(request).includes("and so"), lands)
        assert.strictEqual(notices(request).length, 1)
        assert.deepStrictEqual(
          toolResults(request).map(({ result }) => result),
          ["seen"]
        )
      }).pipe(Effect.scoped, runtime)
    )
  }
})

describe("L-T2 a host's context that fails once", () => {
  for (const landed of [false, true]) {
    const which = landed ? "though it landed" : "and did not land"
    on(`L-T2 at the results of the calls, ${which}: the next context has one result for each call`, () =>
      Effect.gen(function* () {
        const h = yield* open({ script: [look, ...then] })
        const id = yield* h.prompt("do it", "p")
        const { error, outcome } = yield* report(h, id)
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "context"])
        const request = yield* next(h)
        assert.strictEqual(toolResults(request).length, 1)
      }).pipe(Effect.scoped, failing("tool", landed), runtime)
    )

    on(`L-T2 at a response with calls, ${which}: no call is left open, and the next context is valid`, () =>
      Effect.gen(function* () {
        const h = yield* open({ script: [look, ...then] })
        const id = yield* h.prompt("do it", "p")
        const { error, outcome, tools } = yield* report(h, id)
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "context"])
        assert.deepStrictEqual(
          tools.map((tool) => tool.status._tag),
          ["NotStarted"]
        )
        yield* next(h)
        assert.deepStrictEqual(h.began, [])
      }).pipe(Effect.scoped, failing("assistant", landed), runtime)
    )
  }

  on("L-R3 the notice of a run that failed is in the host's context too", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [ScriptedModel.text("never kept"), ...then] })
      const id = yield* h.prompt("do it", "p")
      yield* report(h, id)
      assert.include(notices(yield* next(h)).join(), "failed")
    }).pipe(Effect.scoped, failing("assistant", false), runtime)
  )
})

describe("L-R3 the end of the run", () => {
  on("L-R3 a cancel during the checkpoint keeps the answer, and the next context is valid", () =>
    Effect.gen(function* () {
      const saving = yield* gate
      const batch = yield* openBatch({ calls: ["write:a"], free: "all", checkpointer: () => saving.pass(undefined) })
      yield* saving.entered
      yield* batch.session.cancel(batch.id)
      const { outcome, text } = yield* batch.report
      assert.deepStrictEqual([outcome, text], ["cancelled", "second"])
      const { content } = yield* Effect.orDie(batch.session.context)
      assert.deepStrictEqual(StrictPrompt.violations([...content, user]), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 a call that outlasted its grace time is told as unknown, and its late end changes nothing of it", () =>
    Effect.gen(function* () {
      const late = yield* gate
      const batch = yield* openBatch({
        calls: ["write:a"],
        free: "all",
        body: () => Effect.uninterruptible(late.pass("late"))
      })
      yield* late.entered
      yield* batch.session.cancel(batch.id)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(told(yield* batch.report), ["a Interrupted unknown cancel"])
      const before = yield* Effect.orDie(batch.session.context)
      yield* late.open
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Effect.orDie(batch.session.context), before)
      assert.deepStrictEqual(StrictPrompt.violations([...before.content, user]), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-R3 a run cancelled while a host keeps the context has its results there, in one message", () => {
    const context = Contexts.make()
    return Effect.gen(function* () {
      const h = yield* duringTool({ calls: ["edit", "look"] })
      yield* h.session.cancel(h.id)
      yield* report(h, h.id)
      const messages = yield* Effect.orDie(context.service.messages)
      assert.deepStrictEqual(
        messages.map((message) => message.role),
        ["user", "assistant", "tool", "user"]
      )
      assert.strictEqual(toolResults(yield* next(h)).length, 2)
    }).pipe(Effect.scoped, Contexts.keptIn(context), runtime)
  })
})
