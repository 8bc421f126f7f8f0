/**
 * A host keeps the conversation in a store of its own. A write of steering is interrupted there, and the store cannot
 * tell whether it landed: the receipt says `unknown`, and the runtime never writes it again.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option } from "effect"
import type { Prompt } from "effect/ai"
import { Agent, AgentRuntime, ContextStore, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const agent = Agent.make({ name: "editor", instructions: "Edit." })
const prompt = Input.prompt("Shorten the text.", { id: "shorten" })
const steer = Input.steer("Keep the title.", { id: "title" })
const next = Input.prompt("Is the title still there?", { id: "next" })

export const program = Effect.gen(function* () {
  const asked = yield* Latch.make()
  const steered = yield* Latch.make()
  const writing = yield* Latch.make()

  const conversation: Array<Prompt.Message> = []
  const attempts: Array<string> = []
  const store = Layer.succeed(ContextStore.ContextStore, {
    append: (messages) =>
      Effect.suspend(() => {
        attempts.push(...messages.flatMap((message) => Input.idOfMessage(message) ?? []))
        // The write of the steer goes out, and the answer never comes.
        if (messages.some((message) => Input.idOfMessage(message) === steer.id)) {
          return Effect.andThen(writing.open, Effect.never)
        }
        conversation.push(...messages)
        return Effect.void
      }),
    messages: Effect.sync(() => [...conversation]),
    // `absent` would promise that the interrupted write can no longer land. This store cannot promise it.
    has: () => Effect.succeed("cannot-tell")
  })
  // A real LanguageModel layer goes here.
  const model = ScriptedModel.layer([
    ScriptedModel.wait(Effect.andThen(asked.open, steered.await), ScriptedModel.text("Shortened.")),
    ScriptedModel.text("I cannot say.")
  ])

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const scripted = yield* ScriptedModel.ScriptedModel
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* asked.await
    yield* session.capability("live.steering").submit(steer, generation)
    yield* steered.open
    yield* writing.await
    yield* session.cancel(generation)
    const report = yield* session.await(generation)

    yield* session.submit(next)
    yield* session.awaitIdle
    const receipt = Option.getOrThrow(yield* session.receipt(steer.id))
    yield* Timeline.print(session, [prompt, steer, next])
    yield* Console.log(Timeline.receipt(receipt))

    assert.deepEqual([receipt.disposition, receipt.reason], ["unknown", "write-interrupted"])
    assert.deepEqual(report.unknownInputIds, [steer.id], "the report lists it apart from what is delivered and held")
    assert.equal(attempts.filter((id) => id === steer.id).length, 1, "an unknown write is never made again")
    assert.equal(scripted.requests.length, 2, "nothing but the next prompt starts a request")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, store)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
