/** Faults that a review found in what runs: what a lost, parked or closing owner may do, and what it leaves. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { Prompt } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime, ContextPreparation, Input, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"
import { fork, type Harness, open, opening, toolResults, types } from "../support/harness.ts"
import { ofType, overloaded, unauthorised } from "../support/providers.ts"
import { receipts, report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"
import * as Truth from "../support/truth.ts"

const law = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))
const asks = (...names: ReadonlyArray<string>) =>
  ScriptedModel.calls(names.map((name, i) => ({ name, params: { path: name }, id: `c${i + 1}` })))
const done = [ScriptedModel.text("done"), ScriptedModel.text("done again")]
const detach = { onClose: "detach" } as const

/** Lets the time pass that closing gives to what runs. */
const closed = <A, E>(closing: Fiber.Fiber<A, E>) =>
  Effect.gen(function* () {
    yield* Stores.settle
    yield* TestClock.adjust("1 minute")
    yield* Stores.settle
    assert.isDefined(closing.pollUnsafe(), "closing did not return")
    yield* Fiber.join(closing)
  })

const lies = (h: Pick<Harness, "session">, ...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const given = yield* Effect.forEach(ids, (id) => h.session.receipt(id as Parameters<typeof h.session.receipt>[0]))
    const story = yield* Truth.told(
      h.session,
      given.flatMap((receipt) => (receipt._tag === "Some" ? [receipt.value] : []))
    )
    return [...Truth.lies(story), ...Truth.requestLies(story), ...Truth.controlLies(story, [])]
  })

describe("L-T10 an owner that is no longer one", () => {
  law("L-T10 a call whose start cannot be written has not begun", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      Stores.once(store, "tool.started", () => Stores.fails({ _tag: "Fenced" }))
      const h = yield* Stores.boot(store.service, { script: [asks("edit"), ...done] })
      const id = yield* h.prompt("do it", "p")
      yield* Effect.flip(h.session.await(id))
      yield* Stores.settle
      assert.deepStrictEqual(h.began, [])
    })
  )

  law("L-T10 a call whose start waits behind a write that is fenced has not begun", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const gate = yield* Deferred.make<void>()
      const edit = () => Effect.as(Deferred.await(gate), "did")
      const h = yield* Stores.boot(store.service, { script: [asks("edit", "send"), ...done], edit })
      yield* h.prompt("do it", "p")
      yield* seen(h, "tool.started")
      // What fences the write ends the call too: the next one comes to a journal that has just been lost.
      const fenced = Effect.andThen(Deferred.await(gate), Stores.fails({ _tag: "Fenced" }))
      Stores.once(store, "input.accepted", () => fenced)
      const submitted = yield* fork(h.session.submit(Input.followUp("then", { id: "f" })))
      yield* Stores.settle
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(words(yield* Fiber.join(submitted)), "refused storage-unavailable")
      yield* Stores.settle
      assert.deepStrictEqual(h.began, ["edit"])
      assert.strictEqual((yield* Stores.stored(disk)).filter((line) => line.includes(`"tool.started"`)).length, 1)
    })
  )

  law("L-T10 a call that comes after another process has claimed the session does not begin", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const gate = yield* Deferred.make<void>()
      const edit = () => Effect.as(Deferred.await(gate), "did")
      const h = yield* Stores.boot(store.service, { script: [asks("edit", "send"), ...done], edit })
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "tool.started")
      yield* Stores.boot(disk, { script: done })
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.flip(h.session.await(id))
      yield* Stores.settle
      assert.deepStrictEqual(h.began, ["edit"])
    })
  )
})

/** The process writes nothing any more once it has written this. */
const diesAfter = (store: Stores.Watched, kind: "request.completed" | "request.failed") =>
  Effect.map(Deferred.make<void>(), (died) => {
    let dead = false
    store.fate = (land, commit) => {
      if (dead) return Effect.never
      if (!Stores.carries(commit, kind)) return land
      dead = true
      return Effect.andThen(land, Effect.andThen(Deferred.succeed(died, undefined), Effect.never))
    }
    return Deferred.await(died)
  })

describe("L-T12 resume after the process died with a response", () => {
  const cases = [
    ["that was cut at `length`", ScriptedModel.steps([asks("edit"), ScriptedModel.finish("length")])],
    ["that failed before its finish", ScriptedModel.failAfter(asks("edit"), unauthorised)],
    ["that had no finish", ScriptedModel.steps([asks("edit"), ScriptedModel.noFinish])]
  ] as const
  for (const [what, step] of cases) {
    law(`L-T12 ${what} launches none of its calls`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const h = yield* Stores.boot(store.service, { script: [step, ...done] })
        const died = yield* diesAfter(store, what.includes("length") ? "request.completed" : "request.failed")
        yield* fork(h.prompt("do it", "p"))
        yield* died
        const n = yield* Stores.boot(disk, { script: done, open: { recovery: "resume" } })
        yield* Effect.orDie(n.session.awaitIdle)
        assert.deepStrictEqual([h.began, n.began], [[], []])
        assert.notInclude(types(yield* n.events), "tool.started")
        assert.strictEqual(ofType(yield* n.events, "tool.not_started").length, 1)
        yield* Effect.orDie(n.session.await(yield* n.prompt("next", "q")))
        assert.deepStrictEqual(n.model.violations, [])
        assert.deepStrictEqual(yield* lies(n, "p", "q"), [])
      })
    )
  }
})

describe("L-C9 what comes while a generation is being parked", () => {
  const parking = (step: (gate: Effect.Effect<void>) => ScriptedModel.Step) =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const gate = yield* Deferred.make<void>()
      const h = yield* Stores.boot(disk, { script: [step(Deferred.await(gate)), ...done], open: detach })
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "request.started")
      yield* Stores.settle
      const closing = yield* fork(h.close)
      yield* Stores.settle
      yield* Deferred.succeed(gate, undefined)
      yield* closed(closing)
      return { disk, h, id }
    })

  law("L-C9 the calls of a response stay asked for, and the next process launches them", () =>
    Effect.gen(function* () {
      const { disk, h, id } = yield* parking((gate) => ScriptedModel.wait(gate, asks("edit")))
      assert.deepStrictEqual(h.began, [])
      const n = yield* Stores.boot(disk, { script: done })
      assert.strictEqual((yield* report(n, id)).outcome, "finished")
      assert.deepStrictEqual(n.began, ["edit"])
      assert.deepStrictEqual(toolResults(n.model.requests[0]), [{ id: "c1", isFailure: false, result: "edit edit" }])
      assert.deepStrictEqual(yield* lies(n, "p"), [])
    })
  )

  law("L-C9 a request that fails leaves no half text", () =>
    Effect.gen(function* () {
      const { disk, id } = yield* parking((gate) =>
        ScriptedModel.steps([ScriptedModel.text("half"), ScriptedModel.wait(gate, ScriptedModel.fail(overloaded))])
      )
      const n = yield* Stores.boot(disk, { script: done })
      assert.strictEqual((yield* report(n, id)).text, "done")
      assert.notInclude(JSON.stringify(n.model.requests[0]?.prompt), "half")
      assert.deepStrictEqual(n.model.violations, [])
      assert.deepStrictEqual(yield* lies(n, "p"), [])
    })
  )

  law("L-C9 a stop that was accepted stays a stop", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const h = yield* Stores.boot(disk, { script: [asks("edit"), ...done], edit: () => Effect.never, open: detach })
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "tool.started")
      assert.isTrue((yield* h.session.stop(id)).accepted)
      yield* closed(yield* fork(h.close))
      const n = yield* Stores.boot(disk, { script: done })
      assert.strictEqual((yield* report(n, id)).outcome, "stopped")
      assert.deepStrictEqual(n.began, [])
      assert.deepStrictEqual(yield* lies(n, "p"), [])
    })
  )

  law("L-C9 in a memory session detaching is cancelling: nobody is there to hand over to", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const h = yield* Scope.provide(opening({ script: [ScriptedModel.hang], open: detach }), scope)
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "request.started")
      yield* h.steer(id, "and", { id: "s" })
      yield* closed(yield* fork(Scope.close(scope, Exit.void)))
      assert.strictEqual((yield* report(h, id)).outcome, "cancelled")
      assert.deepStrictEqual(yield* receipts(h, "s"), ["held session-closed"])
      const told = types(yield* Effect.orDie(h.session.history()))
      assert.notInclude(told, "generation.parked")
      assert.deepStrictEqual(told.slice(-1), ["session.closed"])
    }).pipe(runtime)
  )
})

describe("L-C7 closing while a start is being written", () => {
  for (const input of [Input.prompt("do it", { id: "p" }), Input.followUp("do it", { id: "p" })]) {
    law(`L-C7 of a ${input.intent} cancels that generation, journals session.closed last, and returns`, () =>
      Effect.gen(function* () {
        const { store } = yield* fresh
        const h = yield* Stores.boot(store.service, { script: [ScriptedModel.hang] })
        const held = yield* Stores.hold(store, "generation.started")
        const submitted = yield* fork(h.session.submit(input))
        yield* held.reached
        const closing = yield* fork(h.close)
        yield* Stores.settle
        yield* held.release
        yield* closed(closing)
        yield* Fiber.join(submitted)
        const told = types(yield* Effect.orDie(h.session.history()))
        assert.include(told, "generation.cancelled")
        assert.deepStrictEqual(told.slice(-1), ["session.closed"])
        assert.strictEqual(told.filter((type) => type === "session.closed").length, 1)
      })
    )
  }
})

describe("L-P1 a pause during the preparation", () => {
  law("L-P1 what the preparation dropped is still told", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const first = yield* Deferred.make<void>()
      const entered = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const preparation: ContextPreparation.Service = (prompt, info) =>
        Effect.gen(function* () {
          if (info.request === 2) {
            yield* Deferred.succeed(entered, undefined)
            yield* Deferred.await(gate)
          }
          return Prompt.fromMessages(prompt.content.filter((message) => Input.idOfMessage(message) !== "s"))
        })
      const script = [ScriptedModel.wait(Deferred.await(first), asks("edit")), ...done]
      const h = yield* Stores.boot(disk, { script }).pipe(
        Effect.provideService(ContextPreparation.ContextPreparation, preparation)
      )
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "request.started")
      yield* h.steer(id, "S", { id: "s", scope: { tools: [] } })
      yield* Deferred.succeed(first, undefined)
      yield* Deferred.await(entered)
      const paused = yield* fork(h.session.pause())
      yield* Stores.settle
      yield* Deferred.succeed(gate, undefined)
      yield* Stores.settle
      yield* Fiber.join(paused)
      yield* h.session.resume()
      yield* report(h, id)
      const told = ofType(yield* h.events, "steering.not_carried").map((event) => String(event.input_id))
      assert.deepStrictEqual(told, ["s"])
    })
  )
})

describe("L-E1 the text of a report", () => {
  law("L-E1 is the earlier answer where a later response has calls and no text", () =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const script = [
        ScriptedModel.wait(Deferred.await(first), ScriptedModel.text("the answer")),
        asks("edit"),
        ...done
      ]
      const h = yield* open({ script, edit: () => Effect.as(Deferred.await(gate), "did") })
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "request.started")
      yield* h.steer(id, "S", { id: "s" })
      yield* Deferred.succeed(first, undefined)
      yield* seen(h, "tool.started")
      yield* h.session.stop(id)
      yield* Deferred.succeed(gate, undefined)
      const { outcome, text } = yield* report(h, id)
      assert.deepStrictEqual([outcome, text], ["stopped", "the answer"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T1 a defect inside a batch", () => {
  law("L-T1 leaves every call ended and paired", () =>
    Effect.gen(function* () {
      const verdict: ToolPolicy.Verdict = {
        _tag: "Ask",
        get question(): string {
          throw new Error("no question")
        }
      }
      const policy: ToolPolicy.Service = () => Effect.succeed(verdict)
      const h = yield* open({ script: [asks("look", "edit"), ...done] }).pipe(
        Effect.provideService(ToolPolicy.ToolPolicy, policy)
      )
      const first = yield* report(h, yield* h.prompt("do it", "p"))
      assert.strictEqual(first.tools.length, 2)
      const events = yield* h.events
      assert.strictEqual(events.filter(Truth.isToolEnd).length, 2)
      assert.deepStrictEqual(h.began, [])
      assert.strictEqual((yield* report(h, yield* h.prompt("next", "q"))).outcome, "finished")
      assert.deepStrictEqual(h.model.violations, [])
      const { content } = yield* Effect.orDie(h.session.context)
      assert.deepStrictEqual(StrictPrompt.violations(content, { allowLastAssistant: true }), [])
      assert.deepStrictEqual(yield* lies(h, "p", "q"), [])
    }).pipe(Effect.scoped, runtime)
  )
})
