/** A host's own code that throws where it is called back: loud, and no one else's loss. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Scope, Stream } from "effect"
import { AgentRuntime, Ids, Input, SessionStore, SqlSessionStore } from "../../src/index.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { open } from "../support/harness.ts"
import { words } from "../support/scenes.ts"

const onSqlite = AgentRuntime.layer.pipe(
  Layer.provide(SqlSessionStore.layer),
  Layer.provide(SqliteClient.layer({ filename: ":memory:" }))
)

/** What was thrown to nobody meanwhile, taken from whoever else listens for that. */
const thrown = Effect.acquireRelease(
  Effect.sync(() => {
    const messages: Array<string> = []
    const others = process.listeners("uncaughtException")
    const listener = (error: Error) => void messages.push(error.message)
    process.removeAllListeners("uncaughtException").on("uncaughtException", listener)
    return { messages, others }
  }),
  ({ others }) =>
    Effect.sync(() => {
      process.removeAllListeners("uncaughtException")
      for (const other of others) process.on("uncaughtException", other)
    })
)

/** Calls back as a host without Effect would. */
const calledBack = (effect: Effect.Effect<unknown, unknown>, onExit: () => void) =>
  Effect.runCallback(effect, { onExit })

const throws = (name: string) => () => {
  throw new Error(name)
}

describe("L-A7 a callback that throws", () => {
  it.live("L-A7 L-C7 in the answer of a commit costs no other session its answer, nor the store its next commit", () =>
    Effect.gen(function* () {
      const { messages } = yield* thrown
      const scope = yield* Scope.make()
      const context = Context.add(yield* Layer.buildWithScope(onSqlite, scope), Scope.Scope, scope)
      const sessions = yield* Effect.forEach(["A", "B", "C", "D"], (name) =>
        Effect.provide(open({ id: Ids.SessionId.make(name), script: [ScriptedModel.hang] }), context)
      )
      yield* Effect.forEach(sessions, (h) => h.prompt("go", "p"))
      const answered: Array<string> = []
      for (const [index, h] of sessions.entries()) {
        const act = index < 2 ? throws(`${index}`) : () => void answered.push(`${index}`)
        calledBack(h.session.submit(Input.followUp("x", { id: "x" })), act)
      }
      const later = yield* Effect.forEach(sessions, (h) => h.session.submit(Input.followUp("y", { id: "y" }))).pipe(
        Effect.timeout("2 seconds")
      )
      assert.deepStrictEqual(later.map(words), ["queued", "queued", "queued", "queued"])
      assert.sameMembers(answered, ["2", "3"])
      yield* Effect.timeout(Scope.close(scope, Exit.void), "2 seconds")
      assert.deepStrictEqual(messages, ["0", "1"])
    })
  )

  it.live("L-A7 L-C7 in the answer of a lone commit, or when its store has closed, is as loud as it was", () =>
    Effect.gen(function* () {
      const { messages } = yield* thrown
      const scope = yield* Scope.make()
      const client = SqliteClient.layer({ filename: ":memory:" })
      const context = yield* Layer.buildWithScope(Layer.provide(SqlSessionStore.layer, client), scope)
      const store = Context.get(context, SessionStore.SessionStore)
      const sessionId = Ids.SessionId.make("A")
      const { epoch } = yield* store.claim(sessionId, "agent")
      const append = (position: number) =>
        store.append({
          sessionId,
          epoch,
          expected: position - 1,
          entries: [{ position, sequence: null, kind: "resumed", inputId: null, body: {} }],
          snapshot: undefined
        })
      calledBack(append(1), throws("answer"))
      yield* append(2)
      yield* Effect.forkChild(append(3), { startImmediately: true })
      const closed = yield* Deferred.make<void>()
      calledBack(Scope.close(scope, Exit.void), () => {
        Deferred.doneUnsafe(closed, Effect.void)
        throw new Error("close")
      })
      yield* Effect.timeout(Deferred.await(closed), "2 seconds")
      yield* Effect.sleep(1)
      assert.deepStrictEqual(messages, ["answer", "close"])
    })
  )

  it.live("L-A7 L-E6 in one answer of a commit costs the others of it nothing, and the generation ends", () =>
    Effect.gen(function* () {
      const { messages } = yield* thrown
      const gate = yield* Deferred.make<void>()
      const script = [ScriptedModel.wait(Deferred.await(gate), ScriptedModel.text("done")), ScriptedModel.text("more")]
      const h = yield* Effect.provide(open({ script: [...script, ...script] }), yield* Layer.build(onSqlite))
      const id = yield* h.prompt("go", "p")
      const answered: Array<string> = []
      const submit = (name: string, act: () => void) =>
        calledBack(h.session.submit(Input.followUp(name, { id: name })), act)
      submit("f0", () => void answered.push("f0"))
      submit("f1", throws("f1"))
      submit("f2", () => void answered.push("f2"))
      calledBack(h.steer(id, "left", { id: "s1" }), () => void answered.push("s1"))
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Effect.timeout(h.session.await(id), "2 seconds")).outcome, "finished")
      assert.deepStrictEqual([answered, messages], [["f0", "f2", "s1"], ["f1"]])
    })
  )

  it.live("L-V3 L-C4 in the end of a wait or of a reader costs the others of it nothing", () =>
    Effect.gen(function* () {
      const { messages } = yield* thrown
      const gate = yield* Deferred.make<void>()
      const script = [ScriptedModel.wait(Deferred.await(gate), ScriptedModel.text("done"))]
      const h = yield* Effect.provide(open({ script }), AgentRuntime.layerMemory)
      const id = yield* h.prompt("go", "p")
      yield* Effect.sleep("10 millis")
      const { sequence } = yield* h.session.status
      const ends: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
        ["await", h.session.await(id)],
        ["idle", h.session.awaitIdle],
        ["read", h.session.events({ after: sequence }).pipe(Stream.take(1), Stream.runDrain)]
      ]
      const answered: Array<string> = []
      for (const [name, wait] of ends) {
        calledBack(wait, throws(name))
        calledBack(wait, () => void answered.push(name))
      }
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.sleep("50 millis")
      assert.sameMembers(answered, ["await", "idle", "read"])
      assert.sameMembers(messages, ["await", "idle", "read"])
    })
  )
})
