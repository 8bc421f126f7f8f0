/**
 * A pause is in effect once no affected work runs and a checkpoint is saved, and it lasts until its own condition
 * holds: here a named signal. Resuming by hand is refused and says what is unmet.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Checkpointer, Input, Receipt, ResumeCondition } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const build = Tool.make("build", { parameters: Schema.Struct({ target: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(build)
const agent = Agent.make({ name: "release", instructions: "Release.", toolkit })
const prompt = Input.prompt("Build the release.", { id: "release" })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([ScriptedModel.call("build", { target: "all" }), ScriptedModel.text("Built.")])

export const program = Effect.gen(function* () {
  const building = yield* Latch.make()
  const built = yield* Latch.make()
  const checkpoints: Array<Checkpointer.Checkpoint> = []
  const checkpointer = Layer.succeed(Checkpointer.Checkpointer, (checkpoint) =>
    Effect.sync(() => void checkpoints.push(checkpoint))
  )
  const handlers = toolkit.toLayer({
    build: ({ target }) => building.open.pipe(Effect.andThen(built.await), Effect.as(`${target} built`))
  })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const scripted = yield* ScriptedModel.ScriptedModel
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* building.await
    yield* session.pause({ until: ResumeCondition.signal("review-done") })
    const asked = (yield* session.status).pauses.map((pause) => pause.effective)
    yield* built.open
    yield* session.events().pipe(
      Stream.takeUntil((event) => event.type === "pause.effective"),
      Stream.runDrain
    )
    const paused = yield* session.status
    const saved = checkpoints.length
    const requests = scripted.requests.length

    const byHand = yield* session.resume()
    const bySignal = yield* session.resume("review-done")
    const report = yield* session.await(generation)
    yield* Timeline.print(session, [prompt])
    yield* Console.log(`status   ${JSON.stringify(paused.pauses)}`)
    yield* Console.log(`resume   by hand: ${JSON.stringify(byHand)}`)
    yield* Console.log(`resume   with the signal: ${JSON.stringify(bySignal)}`)

    assert.deepEqual(asked, [false], "a pause asked for while a tool runs is not yet in effect")
    assert.equal(paused.generation?.phase._tag, "Paused")
    assert.deepEqual([saved, requests], [1, 1], "in effect, it has a checkpoint, and no further request was made")
    assert.deepEqual(byHand, {
      accepted: false,
      reason: "condition-unmet",
      unmet: [ResumeCondition.signal("review-done")]
    })
    assert.deepEqual(bySignal, { accepted: true })
    assert.deepEqual([report.outcome, report.requests], ["finished", 2], "then the same generation goes on")
  })
  const layers = Layer.mergeAll(AgentRuntime.layerMemory, model, handlers, checkpointer)
  yield* host.pipe(Effect.scoped, Effect.provide(layers))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
