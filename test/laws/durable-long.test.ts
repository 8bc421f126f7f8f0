/** R2 and V2: a long session is opened from a snapshot, and everything in it is as it was. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, type Ids, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, journalled } from "../support/harness.ts"
import { receipts, report, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const answers = ["one", "two", "three", "four"].map((text) => ScriptedModel.text(text))
const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))

/** A long session: many generations with a call each, some held and waiting inputs, then one that is alive. */
const long = (store: Stores.Watched, generations: number) =>
  Effect.gen(function* () {
    const script: ScriptedModel.Script = ({ index, prompt }) =>
      prompt.at(-1)?.role === "tool"
        ? ScriptedModel.text(`done ${index}`)
        : ScriptedModel.call("edit", { path: `${index}` }, `call-${index}`)
    const h = yield* Stores.boot(store.service, { script })
    const ids: Array<Ids.GenerationId> = []
    for (let n = 0; n < generations; n++)
      ids.push(yield* Effect.tap(h.prompt(`do ${n}`, `p${n}`), (id) => report(h, id)))
    return { ...h, ids }
  })

describe("L-R2 opening a long session", () => {
  law("L-R2 it begins with a snapshot, folds little, and everything is as it was", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* long(store, 120)
      yield* old.session.pause()
      yield* old.session.submit(Input.followUp("held", { id: "h1" }))
      yield* old.session.withdraw(inputId("h1"))
      yield* old.session.submit(Input.followUp("waits", { id: "w1" }))
      const reports = yield* Effect.forEach(old.ids, (id) => report(old, id))
      const events = yield* old.events
      const context = yield* Effect.orDie(old.session.context)
      const known = yield* all(old)
      assert.isTrue(store.appends.some((append) => append.snapshot !== undefined))

      const claims: Array<number> = []
      const claim: typeof disk.claim = (id, agent) =>
        Effect.tap(disk.claim(id, agent), ({ entries }) => Effect.sync(() => void claims.push(entries.length)))
      const h = yield* Stores.boot({ ...disk, claim }, { script: answers })
      assert.isAtMost(claims[0] ?? 0, 1100)
      assert.deepStrictEqual(yield* all(h), known)
      assert.deepStrictEqual(
        (yield* h.session.held).map(({ input }) => input.content),
        ["held"]
      )
      assert.deepStrictEqual(yield* Effect.forEach(old.ids, (id) => report(h, id)), reports)
      assert.deepStrictEqual((yield* h.events).slice(0, events.length), [...events])
      assert.deepStrictEqual(yield* Effect.orDie(h.session.context), context)
      for (const n of [0, 1, 119]) {
        assert.isTrue((yield* h.session.submit(Input.prompt(`do ${n}`, { id: `p${n}` }))).accepted)
        assert.strictEqual(
          words(yield* h.session.submit(Input.prompt("x", { id: `p${n}` }))),
          "refused identity-conflict"
        )
      }
      yield* h.session.resume()
      yield* Effect.orDie(h.session.awaitIdle)
      assert.deepStrictEqual(yield* receipts(h, "w1"), ["applied in 1"])
      assert.strictEqual(h.model.requests[0]?.prompt.length, context.content.length + 1)
    })
  )

  law("L-R2 a step that waits for an answer is taken up with the whole conversation in sight", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const seenBy: Array<number> = []
      const guarded = Tool.make("guarded", {
        parameters: Schema.Struct({ path: Schema.String }),
        success: Schema.String,
        needsApproval: (_, { messages }) => Effect.sync(() => seenBy.push(messages.length) > 0)
      })
      const toolkit = Toolkit.make(guarded)
      const agent = Agent.make({ name: "guarded", instructions: "", toolkit })
      const opened = (service: typeof disk, script: ScriptedModel.Script) =>
        Effect.gen(function* () {
          const model = yield* ScriptedModel.make(script)
          const runtime = yield* AgentRuntime.AgentRuntime
          const session = yield* runtime
            .open(agent, { id: Stores.sessionId, recovery: "resume" })
            .pipe(Effect.provide([model.layer, toolkit.toLayer({ guarded: () => Effect.succeed("did") })]))
          return session
        }).pipe((scene) => Stores.over(service, Effect.orDie(scene)))
      const script: ScriptedModel.Script = ({ index }) =>
        index <= 200 ? ScriptedModel.text(`${index}`) : ScriptedModel.call("guarded", { path: "a" }, "a")
      const first = yield* opened(store.service, script)
      for (let n = 0; n <= 200; n++) {
        const receipt = yield* first.submit(Input.prompt("x", { id: `p${n}` }))
        const id = receipt.generationId as Ids.GenerationId
        if (n < 200) yield* Effect.orDie(first.await(id))
      }
      yield* asked(first, 1)
      store.fate = () => Effect.never
      const second = yield* opened(disk, script)
      yield* asked(second, 2)
      assert.deepStrictEqual(seenBy, [seenBy[0], seenBy[0]])
    })
  )

  law("L-V2 a start before what was pruned fails typed and says where the events begin", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* long(store, 90)
      yield* old.close
      const first = yield* Effect.orDie(disk.prune(Stores.sessionId, 200))
      const h = yield* Stores.boot(disk, { script: answers })
      const error = yield* Effect.flip(Stream.runHead(h.session.events()))
      assert.deepStrictEqual(error.reason, { _tag: "EventsPruned", first })
      const event = Option.getOrUndefined(yield* Stream.runHead(h.session.events({ after: first - 1 })))
      assert.strictEqual(event?.sequence, first)
    })
  )
})

type Session = Harness["session"]
const asked = (session: Session, times: number) =>
  journalled(session.events()).pipe(
    Stream.filter((event) => event.type === "tool.approval_requested"),
    Stream.take(times),
    Stream.runDrain,
    Effect.orDie
  )

/** Every receipt and every stage of a long session. */
const all = (h: Harness) =>
  Effect.forEach([...Array.from({ length: 120 }, (_, n) => `p${n}`), "h1", "w1"], (name) =>
    Effect.zip(h.session.receipt(inputId(name)), h.session.input(inputId(name)))
  )
