/** What a host's tools, schemas and providers may do without anything being said that is not so, and without anything hanging. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Option, Schema, SchemaGetter, type Scope } from "effect"
import { LanguageModel, Prompt, Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { Agent, AgentRuntime, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { fork, type Harness, open, type Options, toolkit } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"
import { report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const done = ScriptedModel.text("done")
const call = ScriptedModel.call("edit", { path: "a" }, "a")
const inMemory = (options: Options) => Effect.provide(open(options), AgentRuntime.layerMemory)

describe("L-T3 calls whose handlers end at once", () => {
  it.live("L-T3 a correction that comes by itself meanwhile withholds those not yet launched", () =>
    Effect.gen(function* () {
      const calls = Array.from({ length: 10 }, (_, index) => ({ name: "edit", params: { path: `${index}` } }))
      const h = yield* inMemory({
        script: [ScriptedModel.calls(calls), done],
        edit: () =>
          Effect.sync(() => {
            const until = performance.now() + 10
            while (performance.now() < until);
            return "edited"
          })
      })
      const id = yield* h.prompt("edit them all", "p")
      yield* Effect.sleep("30 millis")
      yield* h.steer(id, "no more", { id: "s" })
      const { tools } = yield* report(h, id)
      assert.isBelow(h.began.length, 10)
      assert.isTrue(tools.slice(h.began.length).every(({ status }) => status._tag === "NotStarted"))
      assert.strictEqual(words(yield* h.receipt("s")), "applied in 2")
    })
  )
})

describe("L-A7 a handler that waits for the receipt of its own steer", () => {
  for (const how of ["anchored", "ordinary"] as const) {
    law(`L-A7 L-C5 ${how}: a stop accepted meanwhile holds the steer at once, and hangs nothing`, () =>
      Effect.gen(function* () {
        const store = Stores.watch(yield* Stores.disk)
        const begun = yield* Deferred.make<void>()
        const said: Array<string> = []
        const h: Harness = yield* Stores.boot(store.service, {
          script: [call, done],
          edit: (): Effect.Effect<string> =>
            Effect.gen(function* () {
              yield* Deferred.await(begun)
              const live = Option.getOrUndefined(yield* h.session.generation)
              const steer = Input.steer("note", { id: "s" })
              const receipt = yield* how === "ordinary" || live === undefined
                ? h.session.submit(steer)
                : h.session.capability("live.steering").submit(steer, live.id)
              said.push(words(receipt))
              return "noted"
            })
        })
        const id = yield* h.prompt("go", "p")
        yield* seen(h, "tool.started")
        const held = yield* Stores.hold(store, "input.accepted")
        yield* Deferred.succeed(begun, undefined)
        yield* held.reached
        yield* fork(h.session.stop(id))
        yield* Stores.settle
        yield* held.release
        const { outcome } = yield* report(h, id)
        assert.deepStrictEqual([outcome, said], ["stopped", ["held generation-stopped"]])
        assert.strictEqual(ofType(yield* h.events, "steering.held").length, 1)
      })
    )
  }
})

/** An agent of one tool whose parameters are read by this. */
const reading = (read: (text: string) => Effect.Effect<string>) =>
  Effect.gen(function* () {
    const Text = Schema.String.pipe(
      Schema.decodeTo(Schema.String, {
        decode: SchemaGetter.transformEffect(read),
        encode: SchemaGetter.transform((text: string) => text)
      })
    )
    const toolkit = Toolkit.make(
      Tool.make("note", { parameters: Schema.Struct({ text: Text }), success: Schema.String })
    )
    const model = yield* ScriptedModel.make([ScriptedModel.call("note", { text: "a" }, "a"), done], { direct: true })
    const runtime = yield* AgentRuntime.AgentRuntime
    const services = yield* Layer.build(
      Layer.merge(model.layer, toolkit.toLayer({ note: () => Effect.succeed("noted") }))
    )
    const session = yield* Effect.provideContext(
      runtime.open(Agent.make({ name: "fixture", instructions: "", toolkit })),
      Context.merge(yield* Effect.context<Scope.Scope>(), services)
    )
    const receipt = yield* session.submit(Input.prompt("go"))
    if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
    return { session, id: receipt.generationId }
  }).pipe(Effect.provide(AgentRuntime.layerMemory))

describe("L-T6 a schema of the host's", () => {
  law("L-C4 L-T9 that never answers outlives no cancel", () =>
    Effect.gen(function* () {
      const { id, session } = yield* reading(() => Effect.never)
      yield* Stores.settle
      assert.deepStrictEqual(yield* session.cancel(id), { accepted: true })
      yield* TestClock.adjust("1 minute")
      const ended = yield* Effect.timeoutOption(session.await(id), "1 second").pipe(Effect.orDie)
      assert.deepStrictEqual(
        Option.getOrUndefined(ended)?.tools.map(({ status }) => status),
        [{ _tag: "NotStarted", reason: "cancelled" }]
      )
    })
  )

  for (const [what, defect] of [
    ["that is no JSON", { _tag: "Odd", n: 10n }],
    ["without a text", Object.create(null)]
  ] as const) {
    law(`L-T6 that dies of a value ${what} fails its call and not the run`, () =>
      Effect.gen(function* () {
        const { id, session } = yield* reading(() => Effect.die(defect))
        const { outcome, tools } = yield* Effect.orDie(session.await(id))
        assert.strictEqual(outcome, "finished")
        assert.deepInclude(tools[0]?.status, { _tag: "NotStarted", reason: "invalid" })
      })
    )
  }
})

describe("L-T8 what a host still holds of what it gave", () => {
  law("L-T8 a result changed after its call has completed is what it was", () =>
    Effect.gen(function* () {
      const kept: { items: Array<number> } = { items: [1] }
      const toolkit = Toolkit.make(Tool.make("list", { success: Schema.Json }))
      const model = yield* ScriptedModel.make([
        ScriptedModel.call("list", {}, "a"),
        ScriptedModel.call("list", {}, "b"),
        done
      ])
      const runtime = yield* AgentRuntime.AgentRuntime
      const handlers = toolkit.toLayer({ list: () => Effect.succeed(kept) })
      const agent = Agent.make({ name: "fixture", instructions: "", toolkit })
      const session = yield* Effect.provide(runtime.open(agent), [model.layer, handlers])
      const receipt = yield* session.submit(Input.prompt("go"))
      if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
      yield* Effect.orDie(session.await(receipt.generationId))
      kept.items.push(2)
      const { content } = yield* Effect.orDie(session.context)
      const parts = content.flatMap((message) => (message.role === "tool" ? message.content : []))
      assert.deepStrictEqual(
        parts.map((part) => (part.type === "tool-result" ? part.result : undefined)),
        [{ items: [1] }, { items: [1] }]
      )
    }).pipe(Effect.scoped, Effect.provide(AgentRuntime.layerMemory))
  )

  law("L-R8 what a provider adds to the prompt it was given is in no later one", () =>
    Effect.gen(function* () {
      const scripted = yield* ScriptedModel.make([call, done])
      const model = Context.get(yield* Layer.build(scripted.layer), LanguageModel.LanguageModel)
      // As a host without types would write it.
      const greedy = {
        ...model,
        streamText: (options: { readonly prompt: Prompt.RawInput }) => {
          const given: unknown = Prompt.make(options.prompt).content
          if (Array.isArray(given)) given.push(...Prompt.make(options.prompt).content)
          return model.streamText(options)
        }
      } as unknown as typeof model
      const runtime = yield* AgentRuntime.AgentRuntime
      const handlers = toolkit.toLayer({
        look: () => Effect.succeed(""),
        edit: () => Effect.succeed(""),
        send: () => Effect.succeed("")
      })
      const agent = Agent.make({ name: "fixture", instructions: "", toolkit })
      const session = yield* runtime
        .open(agent)
        .pipe(Effect.provideService(LanguageModel.LanguageModel, greedy), Effect.provide(handlers))
      const receipt = yield* session.submit(Input.prompt("go"))
      if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
      yield* Effect.orDie(session.await(receipt.generationId))
      const { content } = yield* Effect.orDie(session.context)
      assert.deepStrictEqual(
        content.map(({ role }) => role),
        ["user", "assistant", "tool", "assistant"]
      )
    }).pipe(Effect.scoped, Effect.provide(AgentRuntime.layerMemory))
  )

  law("L-R8 metadata that writes itself as something else leaves a journal that can be read", () =>
    Effect.gen(function* () {
      const disk = yield* Stores.disk
      for (const written of [() => "other", () => Effect.runSync(Effect.die("no"))]) {
        const metadata = Object.defineProperty({ a: 1 }, "toJSON", { value: written, enumerable: false })
        const part = {
          type: "tool-call",
          id: "a",
          name: "edit",
          params: { path: "x" },
          providerExecuted: false,
          metadata
        }
        const h = yield* Stores.boot(disk, {
          script: [ScriptedModel.parts([part as never]), done, done],
          model: { direct: true }
        })
        yield* report(h, yield* h.prompt("go"))
        yield* h.close
      }
      yield* Stores.boot(disk, { script: [] })
    })
  )
})

describe("a host's copy of a session", () => {
  law("does what the session does, and so does an operation taken out of it", () =>
    Effect.gen(function* () {
      const h = yield* inMemory({ script: [done] })
      const { id, receipt, submit, ...rest } = { ...h.session }
      assert.strictEqual(id, h.session.id)
      assert.strictEqual(h.session.submit, h.session.submit)
      const go = Input.prompt("go", { id: "p" })
      yield* submit(go)
      const live = Option.getOrThrow(yield* rest.generation)
      assert.strictEqual((yield* rest.await(live.id)).outcome, "finished")
      assert.strictEqual(Option.getOrThrow(yield* receipt(go.id)).disposition, "applied")
      assert.strictEqual((yield* rest.status).sequence, (yield* h.session.status).sequence)
    })
  )
})
