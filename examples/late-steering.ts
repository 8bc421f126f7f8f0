/**
 * A correction that arrives while a finished generation saves its checkpoint continues that generation. One that
 * arrives after admission has closed is refused: it starts nothing, and leaves no trace.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option } from "effect"
import { Agent, AgentRuntime, Checkpointer, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const agent = Agent.make({ name: "clerk", instructions: "Write minutes." })
const prompt = Input.prompt("Write the minutes.", { id: "minutes" })
const during = Input.steer("Name who was absent.", { id: "absent" })
const sign = Input.prompt("Sign them.", { id: "sign" })
const after = Input.steer("With the date.", { id: "date" })

export const program = Effect.gen(function* () {
  const saving = yield* Latch.make()
  const saved = yield* Latch.make()
  const signing = yield* Latch.make()
  const stopped = yield* Latch.make()
  const checkpointer = Layer.succeed(Checkpointer.Checkpointer, () => Effect.andThen(saving.open, saved.await))
  // A real LanguageModel layer goes here.
  const model = ScriptedModel.layer([
    ScriptedModel.text("The budget was agreed."),
    ScriptedModel.text("The budget was agreed. Absent: Kim."),
    ScriptedModel.wait(Effect.andThen(signing.open, stopped.await), ScriptedModel.text("Signed: Jo."))
  ])

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const scripted = yield* ScriptedModel.ScriptedModel
    const session = yield* runtime.open(agent)
    const steering = session.capability("live.steering")
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    // The model has given its answer, and the checkpoint is being written.
    yield* saving.await
    yield* steering.submit(during, generation)
    yield* saved.open
    const report = yield* session.await(generation)

    const ended = yield* steering.submit(after, generation)

    // The next one is told to stop: it still runs, and takes nothing more.
    const again = yield* Receipt.orFail(yield* session.submit(sign))
    const stopping = yield* Effect.fromNullishOr(again.generationId)
    yield* signing.await
    yield* session.stop(stopping)
    const closed = yield* steering.submit(after, stopping)
    yield* stopped.open
    yield* session.awaitIdle

    yield* Timeline.print(session, [prompt, during, sign])
    const settled = Option.getOrThrow(yield* session.receipt(during.id))
    for (const receipt of [settled, ended, closed]) yield* Console.log(Timeline.receipt(receipt))

    assert.deepEqual(report.deliveredInputIds, [prompt.id, during.id], "steering during the checkpoint is delivered")
    assert.deepEqual([report.requests, report.text], [2, "The budget was agreed. Absent: Kim."], "by one more request")
    assert.equal(ended.reason, "no-active-generation", "steering after the end is refused")
    assert.equal(closed.reason, "admission-closed", "and so is steering of a generation that is ending")
    assert.equal(scripted.requests.length, 3, "refused steering starts nothing")
    assert.equal((yield* session.status).identities.used, 3, "and leaves no trace")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, checkpointer)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
