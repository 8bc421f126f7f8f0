/** P4: a provider that remembers its responses gets no input twice. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Prompt, ResponseIdTracker } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { open, userTexts } from "../support/harness.ts"
import { gate, overloaded, seenType, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
/** What a provider that keeps conversations by response id would hold at each request. */
const held = (model: ScriptedModel.ScriptedModel["Service"], ids: ReadonlyArray<string | undefined>) => {
  const kept = new Map<string, ReadonlyArray<string>>()
  return model.requests.map((request, index) => {
    const sent = request.previousResponseId === undefined ? request.prompt : (request.incrementalPrompt ?? [])
    const whole = [...(kept.get(request.previousResponseId ?? "") ?? []), ...inputsOf(sent)]
    const id = ids[index]
    if (id !== undefined) kept.set(id, whole)
    return whole
  })
}
const inputsOf = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
  )

const edit = (id: string) => ScriptedModel.call("edit", { path: "p" }, id)
const from = (id: string, step: ScriptedModel.Step) => ScriptedModel.steps([ScriptedModel.metadata(id), step])
const withTracker = Effect.provideServiceEffect(ResponseIdTracker.ResponseIdTracker, ResponseIdTracker.make)

describe("L-P4 a provider that remembers responses", () => {
  on("L-P4 is sent only what is new, and holds every input once", () =>
    Effect.gen(function* () {
      const tool = yield* gate
      const harness = yield* open({
        script: scripted(from("r1", edit("a")), from("r2", ScriptedModel.text("one")), from("r3", edit("b"))),
        edit: () => tool.pass("edited")
      })
      const id = yield* harness.prompt("go")
      yield* tool.entered
      yield* harness.steer(id, "so")
      yield* tool.open
      yield* harness.session.await(id)
      yield* harness.session.await(yield* harness.prompt("again"))
      const { requests } = harness.model
      assert.deepStrictEqual(
        requests.map((request) => request.previousResponseId),
        [undefined, "r1", "r2", "r3"]
      )
      assert.deepStrictEqual(held(harness.model, ["r1", "r2", "r3"]), [
        ["go"],
        ["go", "so"],
        ["go", "so", "again"],
        ["go", "so", "again"]
      ])
    }).pipe(Effect.scoped, withTracker, runtime)
  )

  on("L-P4 is sent everything again in a retry, on the response of no failed attempt", () =>
    Effect.gen(function* () {
      const half = ScriptedModel.failAfter(from("r2", ScriptedModel.text("half")), overloaded)
      const harness = yield* open({ script: scripted(from("r1", edit("a")), half) })
      const id = yield* harness.prompt("go")
      yield* seenType(harness.session, "request.failed")
      yield* TestClock.adjust("1 second")
      yield* harness.session.await(id)
      const { requests } = harness.model
      assert.deepStrictEqual(
        requests.map((request) => request.previousResponseId),
        [undefined, "r1", undefined]
      )
      assert.isUndefined(requests[2]?.incrementalPrompt)
      assert.deepStrictEqual(userTexts(requests[2]), ["go"])
    }).pipe(Effect.scoped, withTracker, runtime)
  )

  on("L-P4 is sent everything again after a response that was cut", () =>
    Effect.gen(function* () {
      const cut = yield* gate
      const stuck = ScriptedModel.steps([
        from("r2", ScriptedModel.text("half")),
        ScriptedModel.wait(cut.pass(undefined), ScriptedModel.text("never"))
      ])
      const harness = yield* open({ script: scripted(from("r1", edit("a")), stuck) })
      const id = yield* harness.prompt("go")
      yield* cut.entered
      yield* harness.session.cancel(id)
      yield* harness.session.await(id)
      yield* harness.session.await(yield* harness.prompt("again"))
      const last = harness.model.requests.at(-1)
      assert.isUndefined(last?.previousResponseId)
      const inputs = userTexts(last).filter((text) => !text.startsWith("[Notice"))
      assert.deepStrictEqual(inputs, ["go", "again"])
    }).pipe(Effect.scoped, withTracker, runtime)
  )

  for (const [name, step] of [
    ["of which blank text was dropped", ScriptedModel.steps([ScriptedModel.text(" "), edit("b")])],
    ["that used a call id twice", ScriptedModel.steps([edit("b"), edit("b")])],
    ["that the content filter ended", ScriptedModel.finish("content-filter")],
    ["that had no finish part", ScriptedModel.steps([ScriptedModel.text("half"), ScriptedModel.noFinish])]
  ] as const) {
    on(`L-P4 is sent everything again after a response ${name}`, () =>
      Effect.gen(function* () {
        const harness = yield* open({ script: scripted(from("r1", edit("a")), from("r2", step)) })
        yield* harness.session.await(yield* harness.prompt("go"))
        yield* harness.session.await(yield* harness.prompt("again"))
        assert.strictEqual(harness.model.requests[1]?.previousResponseId, "r1")
        assert.isUndefined(harness.model.requests[2]?.previousResponseId)
      }).pipe(Effect.scoped, withTracker, runtime)
    )
  }
})
