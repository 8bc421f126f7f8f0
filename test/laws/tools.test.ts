/** T1 and T2 for sequential tools: the chain of a call, and its one result on every path. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentRuntime, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, open, toolResults, types } from "../support/harness.ts"
import { gate, ofType, overloaded, pairs, scripted } from "../support/providers.ts"

const call = (name: string, id: string, path = id) => ({ name, id, params: { path } })
const calls = (...list: ReadonlyArray<{ readonly name: string; readonly id: string; readonly params: unknown }>) =>
  ScriptedModel.calls(list)

const isTool = (type: string) => type.startsWith("tool")

/** The tool events of one call by the provider's id, without the waves that name it. */
const chain = (harness: Harness, providerId: string) =>
  Effect.map(harness.events, (events) =>
    events.flatMap((event) =>
      "provider_call_id" in event && event.provider_call_id === providerId ? [event.type] : []
    )
  )

const on = it.effect
const layer = Effect.provide(AgentRuntime.layerMemory)

describe("L-T1 the chain of a call", () => {
  on("L-T1 requested, admitted, started and completed are one event each, in this order", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: [calls(call("edit", "a")), ScriptedModel.text("done")] })
      const id = yield* harness.prompt("go")
      yield* harness.session.await(id)
      const events = yield* harness.events
      assert.deepStrictEqual(types(events).filter(isTool), [
        "tool.requested",
        "tools.admitted",
        "tool.started",
        "tool.completed"
      ])
      const [requested] = ofType(events, "tool.requested")
      assert.deepStrictEqual(requested?.params, { path: "a" })
      assert.deepStrictEqual(
        ofType(events, "tools.admitted").map((event) => event.call_ids),
        requested === undefined ? [] : [[requested.call_id]]
      )
    }).pipe(Effect.scoped, layer)
  )

  on("L-T1 a call is started only when its handler begins", () =>
    Effect.gen(function* () {
      const first = yield* gate
      const harness = yield* open({
        script: [calls(call("edit", "a"), call("send", "b")), ScriptedModel.text("done")],
        edit: () => first.pass("edited")
      })
      const id = yield* harness.prompt("go")
      yield* first.entered
      assert.deepStrictEqual(harness.began, ["edit"])
      assert.deepStrictEqual(yield* chain(harness, "a"), ["tool.requested", "tool.started"])
      assert.deepStrictEqual(yield* chain(harness, "b"), ["tool.requested"])
      yield* first.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit", "send"])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T1 a handler that begins finds its start in the journal already", () =>
    Effect.gen(function* () {
      let atBegin: ReadonlyArray<string> = []
      const harness: Harness = yield* open({
        script: [calls(call("edit", "a")), ScriptedModel.text("done")],
        edit: () =>
          Effect.as(
            Effect.map(chain(harness, "a"), (found) => void (atBegin = found)),
            "edited"
          )
      })
      yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(atBegin, ["tool.requested", "tool.started"])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T1 the provider's id comes back verbatim and the runtime's own is unique in the session", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [
          calls(call("edit", "same/id")),
          calls(call("edit", "same/id")),
          ScriptedModel.text("one"),
          calls(call("edit", "same/id")),
          ScriptedModel.text("two")
        ]
      })
      const first = yield* harness.session.await(yield* harness.prompt("go"))
      const second = yield* harness.session.await(yield* harness.prompt("again"))
      const made = [...first.tools, ...second.tools]
      assert.deepStrictEqual(
        made.map((tool) => [tool.providerId, tool.status._tag]),
        Array.from({ length: 3 }, () => ["same/id", "Completed"])
      )
      assert.strictEqual(new Set(made.map((tool) => tool.id)).size, 3)
      assert.deepStrictEqual(
        pairs(harness.model.requests[4]).map((pair) => pair.results),
        [["same/id"], ["same/id"], ["same/id"]]
      )
    }).pipe(Effect.scoped, layer)
  )

  on("L-T1 a call id repeated in one response is not started and the next prompt stays strictly valid", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [calls(call("edit", "a", "1"), call("edit", "a", "2"), call("send", "b")), ScriptedModel.text("done")]
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.outcome, "finished")
      assert.deepStrictEqual(harness.began, ["edit", "send"])
      const repeats = report.tools.filter((tool) => tool.status._tag === "NotStarted")
      assert.deepStrictEqual(
        repeats.map(({ providerId, status }) => [providerId, status._tag === "NotStarted" ? status.reason : ""]),
        [["a", "invalid"]]
      )
      assert.deepStrictEqual(pairs(harness.model.requests[1]), [{ calls: ["a", "b"], results: ["a", "b"] }])
      assert.deepStrictEqual(harness.model.violations, [])
    }).pipe(Effect.scoped, layer)
  )
})
/** Each path gives one call per fate and answers what the following generation's first request carries of it. */
const after = (harness: Harness) =>
  Effect.gen(function* () {
    yield* harness.session.await(yield* harness.prompt("and now"))
    return harness.model.requests.at(-1)
  })

const three = calls(call("edit", "a"), call("send", "b"), call("look", "c"))

describe("L-T2 one result a call", () => {
  on("L-T2 completed, failed and invalid calls are answered in the order requested, before the next request", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(
          calls(
            call("look", "a"),
            call("edit", "b"),
            call("nothing", "c"),
            { name: "send", id: "d", params: {} },
            call("send", "e")
          )
        ),
        edit: () => Effect.die(new Error("no disk"))
      })
      yield* harness.session.await(yield* harness.prompt("go"))
      const ids = ["a", "b", "c", "d", "e"]
      assert.deepStrictEqual(pairs(harness.model.requests[1]), [{ calls: ids, results: ids }])
      assert.deepStrictEqual(
        toolResults(harness.model.requests[1]).map((result) => result.isFailure),
        [false, true, true, true, false]
      )
    }).pipe(Effect.scoped, layer)
  )

  on("L-T2 withheld calls are answered with the correction's id, in order, before the correction is delivered", () =>
    Effect.gen(function* () {
      const first = yield* gate
      const harness = yield* open({ script: scripted(three), edit: () => first.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* first.entered
      yield* harness.steer(id, "not so", { id: "s1" })
      yield* first.open
      yield* harness.session.await(id)
      const request = harness.model.requests[1]
      assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
      const [, withheld] = toolResults(request)
      assert.include(withheld?.result, "Not started")
      assert.include(withheld?.result, "s1")
      assert.deepStrictEqual(
        request?.prompt.map((message) => message.role),
        ["system", "user", "assistant", "tool", "user"]
      )
    }).pipe(Effect.scoped, layer)
  )

  for (const way of ["stop", "cancel"] as const) {
    on(`L-T2 a ${way} leaves one result for each call: the first its own, the others why they were not started`, () =>
      Effect.gen(function* () {
        const first = yield* gate
        const harness = yield* open({ script: scripted(three), edit: () => first.pass("edited") })
        const id = yield* harness.prompt("go")
        yield* first.entered
        yield* harness.session[way](id)
        yield* first.open
        yield* harness.session.await(id)
        const request = yield* after(harness)
        assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
        const word = way === "stop" ? "stopped" : "cancelled"
        for (const { result } of toolResults(request).slice(1)) assert.include(result, `the run was ${word}`)
        assert.deepStrictEqual(harness.model.violations, [])
      }).pipe(Effect.scoped, layer)
    )
  }

  on("L-T2 calls of the last permitted response are answered too", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(three), agent: { maxRequests: 1 } })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.outcome, "exhausted")
      assert.deepStrictEqual(harness.began, [])
      const request = yield* after(harness)
      assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
      for (const { result } of toolResults(request)) assert.include(result, "budget")
    }).pipe(Effect.scoped, layer)
  )

  on("L-T2 calls of a response that failed are answered and the next generation's prompt is valid", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: scripted(ScriptedModel.failAfter(three, overloaded)),
        agent: { maxRequests: 1 }
      })
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.outcome, "failed")
      const request = yield* after(harness)
      assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
      for (const { result } of toolResults(request)) assert.include(result, "the run failed")
    }).pipe(Effect.scoped, layer)
  )

  on("L-T2 a denied call is answered as denied and its neighbours by themselves", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(three) })
      yield* harness.session.await(yield* harness.prompt("go"))
      const request = harness.model.requests[1]
      assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
      assert.deepStrictEqual(
        toolResults(request).map((result) => result.result),
        ["edit a", "Denied: not today. It has had no effect.", "look c"]
      )
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolPolicy.ToolPolicy, (asked) =>
        Effect.succeed(asked.name === "send" ? ToolPolicy.deny("not today") : ToolPolicy.allow)
      ),
      layer
    )
  )
})
