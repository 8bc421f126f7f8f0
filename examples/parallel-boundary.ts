/**
 * Four calls of one response, two at a time. A correction that arrives while the first two run recalls neither: they
 * crossed the boundary when they were launched. The two that had not are not started.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const translate = Tool.make("translate", { parameters: Schema.Struct({ to: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(translate)
const agent = Agent.make({ name: "linguist", instructions: "Translate.", toolkit, tools: { concurrency: 2 } })
const prompt = Input.prompt("Translate the page into four languages.", { id: "translate" })
const steer = Input.steer("The text has changed: stop and read it again.", { id: "changed" })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([
  ScriptedModel.calls(
    ["Danish", "Finnish", "Norwegian", "Swedish"].map((to) => ({ name: "translate", params: { to } }))
  ),
  ScriptedModel.text("Danish and Finnish are of the old text; I have not begun the others.")
])

export const program = Effect.gen(function* () {
  const bothRun = yield* Latch.make()
  const steered = yield* Latch.make()
  const began: Array<string> = []
  const handlers = toolkit.toLayer({
    translate: ({ to }) =>
      Effect.gen(function* () {
        if (began.push(to) === 2) yield* bothRun.open
        yield* steered.await
        return `translated into ${to}`
      })
  })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* bothRun.await
    yield* session.capability("live.steering").submit(steer, generation)
    yield* steered.open
    const { tools } = yield* session.await(generation)
    yield* Timeline.print(session, [prompt, steer])
    yield* Console.log(Timeline.receipt(Option.getOrThrow(yield* session.receipt(steer.id))))

    const completed = { _tag: "Completed", isFailure: false }
    const withheld = { _tag: "NotStarted", reason: "steering", inputIds: [steer.id] }
    assert.deepEqual(began, ["Danish", "Finnish"], "no more than the first wave began")
    assert.deepEqual(
      tools.map((call) => call.status),
      [completed, completed, withheld, withheld],
      "what crossed the boundary keeps its result, and what did not says why"
    )
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
