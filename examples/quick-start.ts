/**
 * A host program: one agent, one prompt, one correction while it works, and the receipt that says what became of it.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const forecast = Tool.make("forecast", { parameters: Schema.Struct({ city: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(forecast)

// A real LanguageModel layer goes here. This one follows a script, so that the program needs no network.
const model = ScriptedModel.layer([
  ScriptedModel.call("forecast", { city: "Oslo" }),
  ScriptedModel.text("For Bergen: a raincoat.")
])

export const program = Effect.gen(function* () {
  const working = yield* Latch.make()
  const corrected = yield* Latch.make()
  const handlers = toolkit.toLayer({
    // It takes as long as it takes the user to change their mind.
    forecast: ({ city }) => working.open.pipe(Effect.andThen(corrected.await), Effect.as(`${city}: dry, 9 degrees`))
  })

  // #region host
  const agent = Agent.make({ name: "packer", instructions: "Say what to pack. Be brief.", toolkit })
  const prompt = Input.prompt("What do I pack for Oslo?", { id: "trip" })
  const correction = Input.steer("Sorry: Bergen, not Oslo.", { id: "bergen" })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* working.await // the model has asked for a forecast of Oslo, and the tool is running
    const steer = session.capability("live.steering").submit(correction, generation)
    const queued = yield* Receipt.orFail(yield* steer)
    yield* corrected.open

    const report = yield* session.await(generation)
    const settled = yield* Receipt.orFail(yield* steer) // the same input again: its receipt as it stands now
    yield* Console.log(`${report.outcome}: ${report.text}`)
    yield* Console.log(`${correction.id}: ${queued.disposition}, then ${settled.disposition}`)
    // #endregion
    yield* Timeline.print(session, [prompt, correction])
    yield* Console.log(Timeline.receipt(settled))
    assert.equal(queued.disposition, "queued", "an accepted correction is queued, and no more is claimed")
    assert.deepEqual([settled.disposition, settled.request], ["applied", 2], "the next request carries the correction")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
