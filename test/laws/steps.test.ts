/** One commit for one transition: what a step writes together, and that nothing builds on what is not yet folded. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Scheduler } from "effect"
import { AgentRuntime, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { fork, open, type Options, types } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"
import { report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const edit = (id: string) => ScriptedModel.call("edit", { path: id }, id)
const done = ScriptedModel.text("done")
const stored = Effect.map(Stores.disk, Stores.watch)
const booted = (options: Options) => Effect.flatMap(stored, (store) => Stores.boot(store.service, options))
const inMemory = (options: Options) => Effect.provide(open(options), AgentRuntime.layerMemory)

/** A prompt whose one call runs until it is let go. */
const working = Effect.gen(function* () {
  const store = yield* stored
  const gate = yield* Deferred.make<void>()
  const h = yield* Stores.boot(store.service, {
    script: [edit("a"), done],
    edit: () => Effect.as(Deferred.await(gate), "did")
  })
  const id = yield* h.prompt("do it", "p")
  yield* seen(h, "tool.started")
  return { h, id, store, go: Deferred.succeed(gate, undefined) }
})

/** What each append carried of the events and records named. */
const told = (store: Stores.Watched, ...kinds: ReadonlyArray<string>) =>
  store.appends
    .map((commit) =>
      Stores.bodies(commit).flatMap((body) => {
        const kind = String(body["type"] ?? body["record"])
        return kinds.includes(kind) ? [kind] : []
      })
    )
    .filter((each) => each.length > 0)

describe("L-T10 what a step writes", () => {
  law(
    "L-T3 L-T10 the response and its first starts are one commit, the last outcome and the next request another",
    () =>
      Effect.gen(function* () {
        const store = yield* stored
        const h = yield* Stores.boot(store.service, { script: [edit("a"), edit("b"), done] })
        yield* report(h, yield* h.prompt("do it", "p"))
        const kinds = [
          "input.delivered",
          "request.started",
          "request.completed",
          "tool.started",
          "tool.completed",
          "message"
        ]
        assert.deepStrictEqual(told(store, ...kinds), [
          ["message", "input.delivered", "request.started"],
          ["request.completed", "message", "tool.started"],
          ["tool.completed", "message", "request.started"],
          ["request.completed", "message", "tool.started"],
          ["tool.completed", "message", "request.started"],
          ["request.completed", "message"]
        ])
      })
  )

  law("L-B1 L-B5 a correction is delivered in the commit of the request that carries it, after the results", () =>
    Effect.gen(function* () {
      const { go, h, id, store } = yield* working
      yield* h.steer(id, "not so", { id: "s" })
      yield* go
      yield* report(h, id)
      assert.deepStrictEqual(told(store, "tool.completed", "message", "steering.applied", "request.started")[2], [
        "tool.completed",
        "message",
        "message",
        "steering.applied",
        "request.started"
      ])
      assert.strictEqual(words(yield* h.receipt("s")), "applied in 2")
    })
  )
})

describe("L-D2 what a request has completed is folded before the next is made", () => {
  const unlaunched = [
    ["of an unknown tool", ScriptedModel.call("nothing", { path: "a" }, "a")],
    ["with invalid parameters", ScriptedModel.call("edit", { path: 1 }, "a")]
  ] as const
  for (const [what, call] of unlaunched) {
    for (const [where, begin] of [
      ["in memory", inMemory],
      ["on a store", booted]
    ] as const) {
      law(`L-D2 L-F7 ${where}: the input of a response whose only call is ${what} is completed once`, () =>
        Effect.gen(function* () {
          const h = yield* begin({ script: [call, done] })
          yield* report(h, yield* h.prompt("do it", "p"))
          assert.deepStrictEqual(
            ofType(yield* h.events, "input.completed").map(({ input_id, request }) => [String(input_id), request]),
            [["p", 1]]
          )
          assert.strictEqual(words(yield* h.receipt("p")), "applied in 1")
        })
      )
    }
  }
})

describe("L-C2 a pause that is being written when a call ends", () => {
  for (const scope of [ToolScope.tools("edit"), undefined]) {
    law(`L-C2 takes effect before the next request, ${scope === undefined ? "of all work" : "of that tool"}`, () =>
      Effect.gen(function* () {
        const { go, h, id, store } = yield* working
        const held = yield* Stores.hold(store, "pause.requested")
        yield* fork(h.session.pause(scope === undefined ? {} : { scope }))
        yield* held.reached
        yield* go
        yield* Stores.settle
        yield* held.release
        yield* seen(h, "pause.effective")
        const told = types(yield* h.events)
        const before = told.slice(0, told.indexOf("pause.effective"))
        assert.strictEqual(before.filter((type) => type === "request.started").length, 1)
        yield* h.session.resume()
        yield* report(h, id)
      })
    )
  }
})

describe("L-C4 however many calls end at once", () => {
  law("L-C4 L-T7 a cancel is heard between them, and no later one is launched", () =>
    Effect.gen(function* () {
      const calls = Array.from({ length: 200 }, (_, index) => ({ name: "look", params: { path: `${index}` } }))
      const asked = yield* Deferred.make<void>()
      const h = yield* inMemory({
        script: [ScriptedModel.calls(calls)],
        look: (path) => Effect.as(path === "9" ? Deferred.succeed(asked, undefined) : Effect.void, "seen")
      })
      const id = yield* h.prompt("look everywhere", "p")
      yield* Deferred.await(asked)
      // In a turn of its own, as a host's would come.
      yield* Effect.yieldNow
      yield* h.session.cancel(id)
      const { tools } = yield* report(h, id)
      assert.isBelow(h.began.length, calls.length)
      assert.strictEqual(tools.filter(({ status }) => status._tag === "Completed").length, h.began.length)
    }).pipe(Effect.provideService(Scheduler.MaxOpsBeforeYield, 16))
  )
})
