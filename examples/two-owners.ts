/**
 * Two processes open one session. The newer owns it: the older one's next write fails, its work is interrupted, and whoever asks it
 * is told so.
 */
import assert from "node:assert/strict"
import { Console, Deferred, Effect, Layer } from "effect"
import { Agent, AgentRuntime, Ids, Input, Receipt, SessionStore } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const agent = Agent.make({ name: "packer", instructions: "Say what to pack. Be brief." })

// One store, two runtimes over it. In a real deployment this is SqlSessionStore, and each runtime a process of its own.
const store = Layer.effectContext(Layer.build(SessionStore.layerMemory))
const open = Effect.flatMap(AgentRuntime.AgentRuntime, (runtime) =>
  runtime.open(agent, { id: Ids.SessionId.make("trip") })
)

export const program = Effect.gen(function* () {
  const shared = Layer.succeedContext(yield* Layer.build(store))
  const own = Layer.provide(AgentRuntime.layer, shared)

  const asked = yield* Deferred.make<void>()
  const waits = ScriptedModel.layer([ScriptedModel.wait(Deferred.succeed(asked, undefined), ScriptedModel.hang)])
  const older = yield* open.pipe(Effect.provide(Layer.merge(own, waits)))
  const started = yield* Receipt.orFail(yield* older.submit(Input.prompt("What do I pack for Oslo?", { id: "oslo" })))
  const generation = yield* Effect.fromNullishOr(started.generationId)
  yield* Deferred.await(asked)

  const answers = ScriptedModel.layer([ScriptedModel.text("A raincoat.")])
  const newer = yield* open.pipe(Effect.provide(Layer.merge(Layer.fresh(own), answers)))
  const { outcome } = yield* newer.await(generation)
  yield* Console.log(`the newer owner finds the run ${outcome}`)

  const late = yield* older.capability("live.steering").submit(Input.steer("Bergen.", { id: "bergen" }), generation)
  yield* Console.log(Timeline.receipt(late))
  const told = yield* Effect.flip(older.await(generation))
  yield* Console.log(told.message)
  assert.equal(outcome, "failed", "the run that the older owner had is settled, not shared")
  assert.equal(late.disposition, "refused", "the older owner accepts nothing it cannot write")
}).pipe(Effect.scoped)

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
