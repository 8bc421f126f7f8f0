/**
 * A session kept in SQLite: the process is lost with a correction pending and a follow-up queued; the next one finds both as they
 * truly are and goes on.
 */
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Console, Deferred, Effect, Exit, Layer, Option, Scope } from "effect"
import { Agent, AgentRuntime, Ids, Input, Receipt, SqlSessionStore } from "../src/index.ts"
import * as SqliteClient from "../src/store/SqliteClient.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const id = Ids.SessionId.make("trip")
const agent = Agent.make({ name: "packer", instructions: "Say what to pack. Be brief." })

/** One process: its own connection to the file, its own runtime. */
const runtime = (file: string) =>
  AgentRuntime.layer.pipe(Layer.provide(SqlSessionStore.layer), Layer.provide(SqliteClient.layer({ filename: file })))

export const program = Effect.gen(function* () {
  const folder = mkdtempSync(join(tmpdir(), "midcourse-"))
  const file = join(folder, "sessions.db")

  // The first process asks the model, which never answers; then it is gone without a word.
  const asked = yield* Deferred.make<void>()
  const silent = ScriptedModel.layer([ScriptedModel.wait(Deferred.succeed(asked, undefined), ScriptedModel.hang)])
  const lost = yield* Scope.make()
  yield* Effect.gen(function* () {
    const session = yield* (yield* AgentRuntime.AgentRuntime).open(agent, { id })
    const started = yield* Receipt.orFail(
      yield* session.submit(Input.prompt("What do I pack for Oslo?", { id: "oslo" }))
    )
    const generation = yield* Effect.fromNullishOr(started.generationId)
    yield* Deferred.await(asked)
    yield* session.capability("live.steering").submit(Input.steer("Bergen, not Oslo.", { id: "bergen" }), generation)
    yield* session.submit(Input.followUp("And for the way back?", { id: "back" }))
    yield* Console.log("the process is lost")
  }).pipe(
    Effect.provide(
      Layer.merge(yield* Layer.buildWithScope(runtime(file), lost).pipe(Effect.map(Layer.succeedContext)), silent)
    ),
    Effect.provideService(Scope.Scope, lost)
  )

  // The next process opens the same id. The correction is held, and the follow-up runs.
  yield* Effect.gen(function* () {
    const session = yield* (yield* AgentRuntime.AgentRuntime).open(agent, { id })
    yield* session.awaitIdle
    const bergen = Option.getOrThrow(yield* session.receipt(Ids.InputId.make("bergen")))
    const back = Option.getOrThrow(yield* session.receipt(Ids.InputId.make("back")))
    for (const receipt of [bergen, back]) yield* Console.log(Timeline.receipt(receipt))
    assert.deepEqual(
      [bergen.disposition, back.disposition],
      ["held", "applied"],
      "nothing is lost, nothing is replayed"
    )
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(runtime(file), ScriptedModel.layer([ScriptedModel.text("A raincoat.")])))
  )
  yield* Scope.close(lost, Exit.void)
  rmSync(folder, { recursive: true, force: true })
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
