/**
 * A cancel holds what was accepted and not yet written. Held steering never comes back by itself: a host that still
 * wants it sends it again, as a new input that names the old one.
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option } from "effect"
import { Agent, AgentRuntime, Input, Receipt } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const agent = Agent.make({ name: "planner", instructions: "Plan the week." })
const prompt = Input.prompt("Plan my week.", { id: "plan", author: "ann" })
const steer = Input.steer("Friday is a holiday.", { id: "holiday", author: "ann" })

export const program = Effect.gen(function* () {
  const asked = yield* Latch.make()
  // A real LanguageModel layer goes here. Its first answer never comes.
  const model = ScriptedModel.layer([
    ScriptedModel.wait(asked.open, ScriptedModel.hang),
    ScriptedModel.text("Monday to Thursday: work. Friday: off.")
  ])

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* asked.await
    yield* session.capability("live.steering").submit(steer, generation)
    yield* session.cancel(generation)
    const report = yield* session.await(generation)

    const [held] = yield* session.held
    assert(held !== undefined, "what a cancel held can be looked up, with its content")
    const { author, content, id } = held.input
    const again = Input.prompt(content, { id: "holiday-again", author, derivedFrom: id })
    yield* session.submit(again)
    yield* session.awaitIdle

    yield* Timeline.print(session, [prompt, steer, again])
    const old = Option.getOrThrow(yield* session.receipt(id))
    const now = Option.getOrThrow(yield* session.receipt(again.id))
    yield* Console.log(`${Timeline.receipt(old)}\n${Timeline.receipt(now)}`)

    assert.deepEqual(report.undeliveredInputIds, [steer.id], "the report says what was accepted and not delivered")
    assert.deepEqual([old.disposition, old.reason], ["held", "generation-cancelled"], "and it stays held")
    assert.equal(now.disposition, "applied", "the new input is delivered like any other")
    assert.notEqual(now.generationId, generation, "in a generation of its own")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
