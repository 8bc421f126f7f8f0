/** A resolved toolkit serves every session whose handlers are the same, no other, and keeps nothing else of the first one. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import type { Tools } from "../../src/domain/Agent.ts"
import { Toolkits } from "../../src/engine/Toolkits.ts"
import { Agent, AgentRuntime, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { toolResults } from "../support/harness.ts"

const Where = Tool.make("where", { success: Schema.String })
const toolkit = Toolkit.make(Where)
/** As the runtime keeps it: with tools of no type in particular. */
const kept = toolkit as unknown as Toolkit.Toolkit<Tools>
const handlers = (answer: string) => toolkit.toLayer({ where: () => Effect.succeed(answer) })
class Heavy extends Context.Service<Heavy, object>()("test/Heavy") {}

describe("Toolkits", () => {
  it.effect("resolves once for the same handlers, and again for others", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const toolkits = new Toolkits()
        const here = yield* Layer.build(handlers("here"))
        const there = yield* Layer.build(handlers("there"))
        const first = yield* toolkits.resolve(kept, Context.add(here, Heavy, {}))
        assert.strictEqual(yield* toolkits.resolve(kept, here), first)
        assert.notStrictEqual(yield* toolkits.resolve(kept, there), first)
      })
    )
  )

  it.effect("L-T6 two sessions of one agent in one runtime each run their own handlers", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const runtime = yield* AgentRuntime.AgentRuntime
        const agent = Agent.make({ name: "fixture", instructions: "", toolkit })
        const answers: Array<unknown> = []
        for (const place of ["here", "there", "here"]) {
          const model = yield* ScriptedModel.make([ScriptedModel.call("where", {}, "a"), ScriptedModel.text("done")])
          const session = yield* Effect.provide(runtime.open(agent), [model.layer, handlers(place)])
          const receipt = yield* session.submit(Input.prompt("go"))
          if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
          yield* Effect.orDie(session.await(receipt.generationId))
          answers.push(toolResults(model.requests[1]).map(({ result }) => result))
        }
        assert.deepStrictEqual(answers, [["here"], ["there"], ["here"]])
      })
    ).pipe(Effect.provide(AgentRuntime.layerMemory))
  )
})
