/**
 * Two calls of one response, run one after the other. A correction that arrives during the first is seen before the
 * second is launched: that one is not started, and says which correction withheld it.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const publish = Tool.make("publish", { parameters: Schema.Struct({ to: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(publish)
const agent = Agent.make({ name: "press", instructions: "Publish.", toolkit, tools: "sequential" })
const prompt = Input.prompt("Publish the release notes.", { id: "publish" })
const steer = Input.steer("Not to the mailing list!", { id: "no-mail" })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([
  ScriptedModel.calls([
    { name: "publish", params: { to: "website" } },
    { name: "publish", params: { to: "mailing list" } }
  ]),
  ScriptedModel.text("Published on the website only.")
])

export const program = Effect.gen(function* () {
  const publishing = yield* Latch.make()
  const steered = yield* Latch.make()
  const published: Array<string> = []
  const handlers = toolkit.toLayer({
    publish: ({ to }) =>
      Effect.gen(function* () {
        published.push(to)
        yield* publishing.open
        yield* steered.await
        return `published to the ${to}`
      })
  })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* publishing.await
    yield* session.capability("live.steering").submit(steer, generation)
    yield* steered.open
    const report = yield* session.await(generation)
    yield* Timeline.print(session, [prompt, steer])
    yield* Console.log(Timeline.receipt(Option.getOrThrow(yield* session.receipt(steer.id))))

    const [first, second] = report.tools.map((call) => call.status)
    assert.deepEqual(published, ["website"], "the handler of the second call never began")
    assert.deepEqual(first, { _tag: "Completed", isFailure: false }, "the running call was left alone")
    assert.deepEqual(second, { _tag: "NotStarted", reason: "steering", inputIds: [steer.id] })
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
