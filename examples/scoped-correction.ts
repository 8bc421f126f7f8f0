/**
 * A correction may say which tools it is about: it withholds their calls and no other. A question withholds nothing.
 * Both reach the model at the same boundary, in the order in which they were accepted.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt, ToolScope } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const parameters = Schema.Struct({ about: Schema.String })
const search = Tool.make("search", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
const mail = Tool.make("mail", { parameters, success: Schema.String })
const toolkit = Toolkit.make(search, mail)
const agent = Agent.make({ name: "assistant", instructions: "Help.", toolkit })
const prompt = Input.prompt("Find a venue and tell the guests.", { id: "party" })
const question = Input.ask("How far are you?", { id: "how-far" })
const correction = Input.steer("Send no mail yet.", { id: "no-mail", scope: ToolScope.tools("mail") })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([
  ScriptedModel.calls([
    { name: "search", params: { about: "venues" } },
    { name: "mail", params: { about: "the venue" } },
    { name: "search", params: { about: "caterers" } }
  ]),
  ScriptedModel.text("I have venues and caterers; no mail has been sent.")
])

export const program = Effect.gen(function* () {
  const searching = yield* Latch.make()
  const said = yield* Latch.make()
  const handlers = toolkit.toLayer({
    search: ({ about }) => searching.open.pipe(Effect.andThen(said.await), Effect.as(`3 ${about} found`)),
    mail: ({ about }) => Effect.succeed(`mail about ${about} sent`)
  })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const steering = session.capability("live.steering")
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* searching.await
    yield* steering.submit(question, generation)
    yield* steering.submit(correction, generation)
    yield* said.open
    const report = yield* session.await(generation)
    yield* Timeline.print(session, [prompt, question, correction])
    for (const { id } of [question, correction]) {
      yield* Console.log(Timeline.receipt(Option.getOrThrow(yield* session.receipt(id))))
    }

    assert.deepEqual(
      report.tools.map(({ name, status }) => [name, status._tag]),
      [
        ["search", "Completed"],
        ["mail", "NotStarted"],
        ["search", "Completed"]
      ],
      "only the tool that the correction names is withheld"
    )
    assert.deepEqual(report.tools[1]?.status, { _tag: "NotStarted", reason: "steering", inputIds: [correction.id] })
    assert.deepEqual(report.deliveredInputIds, [prompt.id, question.id, correction.id], "and both were delivered")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
