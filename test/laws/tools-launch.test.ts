/** T3 for sequential tools: the check before each launch, and the cases of cut batches. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentRuntime, Input, ToolPolicy, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { editing, requesting } from "../support/generations.ts"
import { generationId, type Harness, inputId, open, toolResults, userTexts } from "../support/harness.ts"
import { gate, ofType, pairs, seenType, statuses, scripted } from "../support/providers.ts"

const call = (name: string, id: string, path = id) => ({ name, id, params: { path } })
const calls = (...list: ReadonlyArray<{ readonly name: string; readonly id: string; readonly params: unknown }>) =>
  ScriptedModel.calls(list)

const on = it.effect
const layer = Effect.provide(AgentRuntime.layerMemory)
/** Each path gives one call per fate and answers what the following generation's first request carries of it. */
const after = (harness: Harness) =>
  Effect.gen(function* () {
    yield* harness.session.await(yield* harness.prompt("and now"))
    return harness.model.requests.at(-1)
  })

const three = calls(call("edit", "a"), call("send", "b"), call("look", "c"))

/** A generation whose policy is being asked about its only call. */
const deciding = Effect.gen(function* () {
  const asked = yield* gate
  const harness = yield* open({ script: scripted(calls(call("edit", "a"))) }).pipe(
    Effect.provideService(ToolPolicy.ToolPolicy, () => asked.pass(ToolPolicy.allow))
  )
  const id = yield* harness.prompt("go")
  yield* asked.entered
  return { asked, harness, id }
})

describe("L-T3 the check before each launch", () => {
  on(
    "L-T3 a correction pending at a launch withholds that call and the affected ones after it, naming the inputs",
    () =>
      Effect.gen(function* () {
        const { harness, id, tool } = yield* editing(three)
        yield* harness.steer(id, "one", { id: "s1" })
        yield* harness.steer(id, "two", { id: "s2" })
        yield* tool.open
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
      const { harness, id, request } = yield* requesting(three)
      yield* harness.steer(id, "first read the note", { id: "s1" })
      yield* request.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(
        report.tools.map((tool) => (tool.status._tag === "NotStarted" ? tool.status.reason : tool.status._tag)),
        ["steering", "steering", "steering"]
      )
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 a correction that arrives while the policy is asked withholds the call it was asked about", () =>
    Effect.gen(function* () {
      const { asked, harness, id } = yield* deciding
      yield* harness.steer(id, "not that", { id: "s1" })
      yield* asked.open
      const report = yield* harness.session.await(id)
      assert.deepStrictEqual(statuses(report), [
        ["a", { _tag: "NotStarted", reason: "steering", inputIds: [inputId("s1")] }]
      ])
      assert.deepStrictEqual(harness.began, [])
    }).pipe(Effect.scoped, layer)
  )

  for (const [way, reason] of [
    ["stop", "stopped"],
    ["cancel", "cancelled"]
  ] as const) {
    on(`L-T3 a ${way} while the policy is asked leaves the call not-started(${reason})`, () =>
      Effect.gen(function* () {
        const { asked, harness, id } = yield* deciding
        yield* harness.session[way](id)
        yield* asked.open
        const report = yield* harness.session.await(id)
        assert.deepStrictEqual(statuses(report), [["a", { _tag: "NotStarted", reason }]])
        assert.deepStrictEqual(harness.began, [])
      }).pipe(Effect.scoped, layer)
    )
  }

  on("L-T3 steering accepted after the launch does not withhold that call", () =>
    Effect.gen(function* () {
      const { harness, id, tool } = yield* editing(calls(call("look", "a"), call("edit", "b")))
      yield* harness.steer(id, "too late for b", { id: "s1" })
      yield* tool.open
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
      const { harness, id, tool } = yield* editing(three)
      yield* harness.steer(id, "do not send", { id: "s1", scope: ToolScope.tools("send") })
      yield* tool.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(harness.began, ["edit", "look"])
    }).pipe(Effect.scoped, layer)
  )

  on("L-T3 an ordinary steer withholds as an anchored one does", () =>
    Effect.gen(function* () {
      const { harness, id, tool } = yield* editing(three)
      yield* harness.session.submit(Input.steer("not so", { id: "s1" }))
      yield* tool.open
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
      const { harness, id } = yield* editing(three)
      yield* harness.session.cancel(id)
      yield* harness.session.await(id)
      const texts = toolResults(yield* after(harness)).map((result) => result.result)
      assert.include(texts[0], "because the run was cancelled")
      assert.include(texts[1], "the run was cancelled before")
      for (const text of texts) assert.notInclude(text, "correction")
    }).pipe(Effect.scoped, layer)
  )
})
