/**
 * A policy that asks before anything is deployed. The host allows one call and denies one; a call that nobody asked
 * about runs meanwhile and is held up by neither.
 */
import assert from "node:assert/strict"
import { Effect, Layer, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt, ToolPolicy } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const parameters = Schema.Struct({ target: Schema.String })
const deploy = Tool.make("deploy", { parameters, success: Schema.String })
const check = Tool.make("check", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
const toolkit = Toolkit.make(deploy, check)
const agent = Agent.make({ name: "ops", instructions: "Operate.", toolkit, tools: { concurrency: 3 } })
const prompt = Input.prompt("Deploy to staging and production, and check the database.", { id: "deploy" })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([
  ScriptedModel.calls([
    { name: "deploy", params: { target: "staging" } },
    { name: "deploy", params: { target: "production" } },
    { name: "check", params: { target: "database" } }
  ]),
  ScriptedModel.text("Staging is deployed, the database is fine; production was not allowed.")
])

const policy = Layer.succeed(ToolPolicy.ToolPolicy, (call) =>
  Effect.succeed(call.name === "deploy" ? ToolPolicy.ask("may this be deployed?") : ToolPolicy.allow)
)

export const program = Effect.gen(function* () {
  const ran: Array<string> = []
  const handler = ({ target }: typeof parameters.Type) =>
    Effect.sync(() => {
      ran.push(target)
      return `${target}: ok`
    })
  const handlers = toolkit.toLayer({ deploy: handler, check: handler })

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    // The host decides nothing until the unrelated check has given its result.
    const untilChecked = yield* session.events().pipe(
      Stream.takeUntil((event) => event.type === "tool.completed"),
      Stream.runCollect
    )
    const questions = untilChecked.filter((event) => event.type === "tool.approval_requested")
    const ranBefore = [...ran]
    for (const { call_id, params } of questions) {
      const { target } = yield* Schema.decodeUnknownEffect(parameters)(params)
      yield* session.decide(
        call_id,
        target === "staging" ? { _tag: "Allow" } : { _tag: "Deny", reason: "not on a Friday" }
      )
    }
    const report = yield* session.await(generation)
    yield* Timeline.print(session, [prompt])

    assert.deepEqual([questions.length, ranBefore], [2, ["database"]], "a question delays no call but its own")
    assert.deepEqual(ran, ["database", "staging"], "what was denied never ran")
    assert.deepEqual(
      report.tools.map((call) => call.status),
      [
        { _tag: "Completed", isFailure: false },
        { _tag: "Denied", reason: "not on a Friday" },
        { _tag: "Completed", isFailure: false }
      ],
      "a denial is a denial, and not a correction"
    )
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers, policy)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
