/**
 * Three people leave requests while the agent works. Neighbouring requests of one author and route are merged into
 * one generation; each stays a message of its own. Another author's are never mixed in.
 */
import assert from "node:assert/strict"
import { Console, Duration, Effect, Latch, Layer, Option, Stream } from "effect"
import { Agent, AgentRuntime, Input, Limits } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const agent = Agent.make({ name: "kitchen", instructions: "Take orders." })
const prompt = Input.prompt("Heat the oven.", { id: "oven" })
const collects = [
  Input.collect("A soup.", { id: "ann-1", author: "ann", route: "table 4" }),
  Input.collect("And bread.", { id: "ann-2", author: "ann", route: "table 4" }),
  Input.collect("A salad.", { id: "bob-1", author: "bob", route: "table 4" }),
  Input.collect("Two coffees.", { id: "cleo-1", author: "cleo", route: "table 7" }),
  Input.collect("The bill.", { id: "cleo-2", author: "cleo", route: "table 7" })
]

export const program = Effect.gen(function* () {
  const heating = yield* Latch.make()
  const ordered = yield* Latch.make()
  // A real LanguageModel layer goes here.
  const model = ScriptedModel.layer([
    ScriptedModel.wait(Effect.andThen(heating.open, ordered.await), ScriptedModel.text("The oven is hot.")),
    ScriptedModel.text("Soup and bread for Ann."),
    ScriptedModel.text("A salad for Bob."),
    ScriptedModel.text("Two coffees and the bill for Cleo.")
  ])
  // A collect waits half a second for a neighbour unless a host says otherwise.
  const limits = Layer.succeed(Limits.Limits, { ...(yield* Limits.Limits), collectDebounce: Duration.zero })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const scripted = yield* ScriptedModel.ScriptedModel
    const session = yield* runtime.open(agent)
    yield* session.submit(prompt)
    yield* heating.await
    for (const collect of collects) yield* session.submit(collect)
    yield* ordered.open
    yield* session.awaitIdle
    yield* Timeline.print(session, [prompt, ...collects])

    for (const { id } of collects) {
      yield* Console.log(Timeline.receipt(Option.getOrThrow(yield* session.receipt(id))))
    }

    const { sequence } = yield* session.status
    const events = yield* session.events().pipe(Stream.take(sequence), Stream.runCollect)
    const groups = events.flatMap((event) => (event.type === "generation.started" ? [event.input_ids.join(" ")] : []))
    assert.deepEqual(groups, ["oven", "ann-1 ann-2", "bob-1", "cleo-1 cleo-2"], "merged by author and route, in order")
    const messages = scripted.requests.map(({ prompt }) => prompt.filter(({ role }) => role === "user").length)
    assert.deepEqual(messages, [1, 3, 4, 6], "and each request stays a message of its own")
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, limits)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
