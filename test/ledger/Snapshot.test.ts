/** R2: a snapshot and what came after it fold to what the whole journal folds to, wherever it was taken. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { Input, ResumeCondition, ToolPolicy, ToolScope } from "../../src/index.ts"
import * as Codec from "../../src/ledger/Codec.ts"
import * as Digest from "../../src/ledger/Digest.ts"
import type { Committed } from "../../src/ledger/Entry.ts"
import { Projection } from "../../src/ledger/Projection.ts"
import type { StoredEntry } from "../../src/ledger/SessionStore.ts"
import * as Snapshot from "../../src/ledger/Snapshot.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, inputId } from "../support/harness.ts"
import { seen } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

/** The journal of a session in which everything happens that a snapshot must keep. */
const journal = Effect.gen(function* () {
  const disk = yield* Stores.disk
  const store = Stores.watch(disk)
  const gate = yield* Deferred.make<void>()
  const script: ScriptedModel.Script = ({ index }) =>
    index === 1
      ? ScriptedModel.calls([
          { name: "look", params: { path: "a" }, id: "a" },
          { name: "edit", params: { path: "b" }, id: "b" },
          { name: "look", params: { path: "c" }, id: "a" }
        ])
      : index === 4
        ? ScriptedModel.hang
        : ScriptedModel.text(`answer ${index}`)
  const asks: ToolPolicy.Service = ({ name }) =>
    Effect.succeed(name === "edit" ? ToolPolicy.ask("may it?") : ToolPolicy.allow)
  const h = yield* Stores.boot(store.service, { script, edit: () => Effect.as(Deferred.await(gate), "did") }).pipe(
    Effect.provideService(ToolPolicy.ToolPolicy, asks)
  )
  const { session } = h
  const id = yield* h.prompt("do it", "p")
  yield* seen(h, "tool.approval_requested")
  for (const event of yield* h.events) {
    if (event.type === "tool.approval_requested") yield* session.decide(event.call_id, { _tag: "Allow" })
  }
  yield* seen(h, "tool.started", 2)
  yield* session.submit(Input.followUp("f1", { id: "f1", metadata: { a: [1] } }))
  yield* session.submit(Input.followUp("f2", { id: "f2", scope: ToolScope.tools("edit") }))
  yield* session.submit(Input.collect("c1", { id: "c1", route: "r" }))
  yield* session.promote(inputId("f2"), id, inputId("s2"))
  yield* session.submit(Input.followUp("f3", { id: "f3" }))
  yield* session.withdraw(inputId("f3"))
  yield* session.pause({ until: ResumeCondition.all(ResumeCondition.signal("a"), ResumeCondition.signal("b")) })
  yield* session.pause({ until: ResumeCondition.input, scope: ToolScope.tools("send") })
  yield* session.resume("a")
  yield* Deferred.succeed(gate, undefined)
  yield* seen(h, "pause.effective", 2)
  yield* h.steer(id, "s3", { id: "s3" })
  yield* session.resume("b")
  yield* seen(h, "request.started", 3)
  yield* Stores.settle
  yield* TestClock.adjust("1 second")
  yield* seen(h, "request.started", 4)
  yield* session.submit(Input.steer("s4", { id: "s4" }))
  const live = Option.getOrUndefined(yield* session.generation)
  yield* session.stop(live?.id ?? generationId("none"))
  yield* session.cancel(live?.id ?? generationId("none"), { followUps: "hold" })
  yield* seen(h, "generation.cancelled")
  return yield* Effect.forEach(
    // As a store would give them back.
    JSON.parse(JSON.stringify(store.appends.flatMap((append) => append.entries))) as ReadonlyArray<StoredEntry>,
    Codec.decode
  )
}).pipe(Effect.orDie)

const fold = (entries: ReadonlyArray<Committed>, into = new Projection([])) => {
  for (const entry of entries) into.apply(entry)
  return into
}

/** The fold as text: what a snapshot takes of it, and what it leaves to the store. */
const shape = (projection: Projection) => ({
  taken: Snapshot.take(projection),
  active: projection.active?.id,
  statuses: Array.from(projection.inputs.keys(), (id) => projection.receipt(id))
})

describe("L-R2 a snapshot", () => {
  it.effect("L-R2 taken after any entry, it and the rest fold to the whole", () =>
    Effect.gen(function* () {
      const entries = yield* journal
      assert.isAbove(entries.length, 70)
      const whole = shape(fold(entries))
      for (let at = 0; at <= entries.length; at++) {
        const taken = Codec.encodeSnapshot(at, Snapshot.take(fold(entries.slice(0, at))))
        const body = yield* Codec.decodeSnapshot(taken)
        const restored = yield* Snapshot.restore(body, [])
        assert.deepStrictEqual(shape(restored), shape(fold(entries.slice(0, at))), `as it was after ${at}`)
        assert.deepStrictEqual(shape(fold(entries.slice(at), restored)), whole, `with the rest after ${at}`)
      }
    })
  )

  it.effect("L-R2 it keeps the content of what may still be delivered or asked for, and of nothing else", () =>
    Effect.gen(function* () {
      const projection = fold(yield* journal)
      const body = yield* Codec.decodeSnapshot(Codec.encodeSnapshot(0, Snapshot.take(projection)))
      const restored = yield* Snapshot.restore(body, [])
      for (const [id, { input, status }] of projection.inputs) {
        const kept = restored.inputs.get(id)
        const over = status._tag === "Delivered" || status._tag === "Completed"
        assert.deepStrictEqual(kept?.input, over ? undefined : input)
        assert.strictEqual(kept?.digest, over && input !== undefined ? Digest.ofInput(input) : undefined)
      }
    })
  )

  it.effect("L-R2 it does not grow with the conversation", () =>
    Effect.gen(function* () {
      const entries = yield* journal
      const messages = entries.filter((entry) => "record" in entry && entry.record === "message")
      const size = (list: ReadonlyArray<Committed>) => JSON.stringify(Snapshot.take(fold(list))).length
      assert.strictEqual(size([...entries, ...messages, ...messages]), size(entries))
    })
  )
})
