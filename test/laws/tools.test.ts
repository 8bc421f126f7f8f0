/** T1 to T3 for sequential tools: the chain of a call, its one result on every path, and the check before each launch. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentRuntime, Input, ToolPolicy, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, type Harness, inputId, open, toolResults, types, userTexts } from "../support/harness.ts"
import { gate, ofType, overloaded, pairs, seenType, statuses } from "../support/providers.ts"

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
        [[requested?.call_id]]
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
const scripted =
  (...steps: ReadonlyArray<ScriptedModel.Step>) =>
  (request: ScriptedModel.Request): ScriptedModel.Step =>
    steps[request.index - 1] ?? ScriptedModel.text(`answer ${request.index}`)

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
        ["edit a", "Denied by policy: not today. It has had no effect.", "look c"]
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

describe("L-T3 the check before each launch", () => {
  on(
    "L-T3 a correction pending at a launch withholds that call and the affected ones after it, naming the inputs",
    () =>
      Effect.gen(function* () {
        const first = yield* gate
        const harness = yield* open({ script: scripted(three), edit: () => first.pass("edited") })
        const id = yield* harness.prompt("go")
        yield* first.entered
        yield* harness.steer(id, "one", { id: "s1" })
        yield* harness.steer(id, "two", { id: "s2" })
        yield* first.open
        const report = yield* harness.session.await(id)
        const withheld = { _tag: "NotStarted", reason: "steering", inputIds: ["s1", "s2"] } as const
        assert.deepStrictEqual(
          statuses(report).map(([, status]) => ({ ...status })),
          [
            { _tag: "Completed", isFailure: false },
            { ...withheld, inputIds: [inputId("s1"), inputId("s2")] },
            { ...withheld, inputIds: [inputId("s1"), inputId("s2")] }
          ]
        )
        assert.deepStrictEqual(harness.began, ["edit"])
        assert.deepStrictEqual(userTexts(harness.model.requests[1]), ["go", "one", "two"])
      }).pipe(Effect.scoped, layer)
  )

  on("L-T3 a correction that a handler itself submits withholds the very next call", () =>
    Effect.gen(function* () {
      const harness: Harness = yield* open({
        script: scripted(three),
        edit: () =>
          Effect.gen(function* () {
            const live = yield* harness.session.generation
            yield* harness.steer(live._tag === "Some" ? live.value.id : generationId("none"), "stop there", {
              id: "s1"
            })
            return "edited"
          })
      })
      yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(harness.began, ["edit"])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 a correction pending before the first launch withholds the first call too", () =>
    Effect.gen(function* () {
      const asked = yield* gate
      const harness = yield* open({
        script: scripted(ScriptedModel.wait(asked.pass(undefined), three))
      })
      const id = yield* harness.prompt("go")
      yield* asked.entered
      yield* harness.steer(id, "first read the note", { id: "s1" })
      yield* asked.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(
        report.tools.map((tool) => (tool.status._tag === "NotStarted" ? tool.status.reason : tool.status._tag)),
        ["steering", "steering", "steering"]
      )
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 steering accepted after the launch does not withhold that call", () =>
    Effect.gen(function* () {
      const last = yield* gate
      const harness = yield* open({
        script: scripted(calls(call("look", "a"), call("edit", "b"))),
        edit: () => last.pass("edited")
      })
      const id = yield* harness.prompt("go")
      yield* last.entered
      yield* harness.steer(id, "too late for b", { id: "s1" })
      yield* last.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Completed", "Completed"]
      )
      assert.strictEqual(toolResults(harness.model.requests[1])[1]?.result, "edited")
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 a listener that steers when it reads the start of a call does not withhold that call", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const harness = yield* open({
        script: scripted(calls(call("edit", "a"), call("send", "b"))),
        edit: () => running.pass("edited")
      })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "tool.started")
      yield* harness.steer(id, "now", { id: "s1" })
      yield* running.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Completed", "NotStarted"]
      )
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 a correction about other tools withholds only the affected calls after it", () =>
    Effect.gen(function* () {
      const first = yield* gate
      const harness = yield* open({ script: scripted(three), edit: () => first.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* first.entered
      yield* harness.steer(id, "do not send", { id: "s1", scope: ToolScope.tools("send") })
      yield* first.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit", "look"])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 an ordinary steer withholds as an anchored one does", () =>
    Effect.gen(function* () {
      const first = yield* gate
      const harness = yield* open({ script: scripted(three), edit: () => first.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* first.entered
      yield* harness.session.submit(Input.steer("not so", { id: "s1" }))
      yield* first.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit"])
      const withheld = ofType(yield* harness.events, "tool.not_started")
      assert.deepStrictEqual(
        withheld.map((event) => [event.reason, event.cause, event.input_ids]),
        [
          ["steering", "user", [inputId("s1")]],
          ["steering", "user", [inputId("s1")]]
        ]
      )
    }).pipe(Effect.scoped, layer)
  )
})

describe("cases of tool calls", () => {
  on("case 26: a cancelled batch of three has three results in order: completed, interrupted, not started", () =>
    Effect.gen(function* () {
      const second = yield* gate
      const harness = yield* open({ script: scripted(three), send: () => second.pass("sent") })
      const id = yield* harness.prompt("go")
      yield* second.entered
      yield* harness.session.cancel(id)
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Completed", "Interrupted", "NotStarted"]
      )
      const request = yield* after(harness)
      assert.deepStrictEqual(pairs(request), [{ calls: ["a", "b", "c"], results: ["a", "b", "c"] }])
    }).pipe(Effect.scoped, layer)
  )

  on("case 28: denying one of two calls answers it and keeps the other's real result", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted(calls(call("send", "a"), call("edit", "b"))) })
      yield* harness.session.await(yield* harness.prompt("go"))
      const results = toolResults(harness.model.requests[1])
      assert.deepStrictEqual(
        results.map(({ id, isFailure }) => [id, isFailure]),
        [
          ["a", true],
          ["b", false]
        ]
      )
      assert.strictEqual(results[1]?.result, "edit b")
    }).pipe(
      Effect.scoped,
      Effect.provideService(ToolPolicy.ToolPolicy, (asked) =>
        Effect.succeed(asked.name === "send" ? ToolPolicy.deny("no") : ToolPolicy.allow)
      ),
      layer
    )
  )

  on("case 30: every result that stands in for a missing one names its own cause", () =>
    Effect.gen(function* () {
      const running = yield* gate
      const harness = yield* open({ script: scripted(three, three), edit: () => running.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* running.entered
      yield* harness.session.cancel(id)
      yield* harness.session.await(id)
      const texts = toolResults(yield* after(harness)).map((result) => result.result)
      assert.include(texts[0], "because the run was cancelled")
      assert.include(texts[1], "the run was cancelled before")
      for (const text of texts) assert.notInclude(text, "correction")
    }).pipe(Effect.scoped, layer)
  )
})
