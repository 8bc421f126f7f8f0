import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Schema, Scope, type Stream } from "effect"
import { TestClock } from "effect/testing"
import { Event, Ids, Input, ToolPolicy, ToolScope } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, open, record, types } from "../support/harness.ts"
import * as contexts from "../support/contexts.ts"
import { duringRequest, duringTool, lasting, passing, report, run, seen, withLimits } from "../support/scenes.ts"

const decode = Schema.decodeUnknownEffect(Event.SessionEvent, { onExcessProperty: "error" })

/** Fails unless each event is one of the schema, with no key beyond it, and survives being written as JSON. */
const judge = (events: ReadonlyArray<Event.SessionEvent>) =>
  Effect.forEach(events, (event) =>
    Effect.gen(function* () {
      const json: unknown = JSON.parse(JSON.stringify(event))
      assert.deepStrictEqual<unknown>(json, event, event.type)
      assert.deepStrictEqual<unknown>(yield* Effect.orDie(decode(json)), event)
    })
  )

const everything = <E>(stream: Stream.Stream<Event.SessionEvent, E>) => record(stream)

describe("SessionEvent", () => {
  it.effect("every event of tools that run, fail, are denied, withheld, invalid and cut is of the schema", () =>
    run(
      Effect.gen(function* () {
        const calls = ScriptedModel.steps([
          ScriptedModel.reasoning("hm"),
          ScriptedModel.text("Let me ", "see."),
          ScriptedModel.calls([
            { name: "look", params: { path: "a" }, id: "c1" },
            { name: "look", params: { path: "a" }, id: "c1" },
            { name: "edit", params: { path: "b" }, id: "c2" },
            { name: "send", params: { path: "c" }, id: "c3" },
            { name: "none", params: null, id: "c4" },
            { name: "edit", params: { path: 7 }, id: "c5" }
          ])
        ])
        const policy: ToolPolicy.Service = (call) =>
          Effect.succeed(call.name === "send" ? ToolPolicy.deny("not today") : ToolPolicy.allow)
        const gate = yield* Deferred.make<void>()
        const entered = yield* Deferred.make<void>()
        let running = 0
        const h = yield* Effect.provideService(
          open({
            script: [
              calls,
              ScriptedModel.fail(passing()),
              ScriptedModel.calls([
                { name: "edit", params: { path: "x" } },
                { name: "send", params: { path: "y" } }
              ])
            ],
            look: () => Effect.die("broken"),
            edit: () =>
              ++running === 1
                ? Effect.succeed("edited")
                : Effect.as(Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(gate)), "edited")
          }),
          ToolPolicy.ToolPolicy,
          policy
        )
        const { got } = yield* everything(h.session.events())
        const id = yield* h.prompt("do it")
        yield* seen(h, "request.failed")
        yield* h.steer(generationId("gen_none"), "x")
        yield* TestClock.adjust("10 seconds")
        yield* Deferred.await(entered)
        yield* h.steer(id, "withhold")
        yield* seen(h, "tool.not_started", 4)
        yield* h.session.cancel(id)
        yield* report(h, id)
        yield* h.session.awaitIdle
        yield* judge(got)
        assert.includeMembers(types(got).slice(), [
          "text.delta",
          "reasoning.delta",
          "assistant.message",
          "input.refused",
          "request.failed",
          "tool.requested",
          "tools.admitted",
          "tool.started",
          "tool.completed",
          "tool.failed",
          "tool.denied",
          "tool.not_started",
          "tool.interrupted",
          "steering.held",
          "cancel.requested",
          "generation.cancelled",
          "session.idle"
        ])
      })
    )
  )

  it.effect("every event of inputs of each intent, delivered, held and unknown, is of the schema", () =>
    run(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const context = contexts.make({
          append: (land, id) => (id === "s2" ? Effect.never : land),
          has: () => Effect.succeed("cannot-tell")
        })
        const opened = withLimits({ collectDebounce: Duration.zero }, contexts.keptIn(context)(duringTool()))
        const h = yield* Scope.provide(opened, scope)
        const { ended, got } = yield* everything(h.session.events())
        yield* h.steer(h.id, "one", { id: "s1", scope: ToolScope.tools("send") })
        yield* h.session.submit(Input.ask("two", { id: "s2" }))
        yield* h.steer(h.id, "three", { id: "s3" })
        for (const input of [Input.followUp("f"), Input.collect("c"), Input.collect("d")])
          yield* h.session.submit(input)
        yield* h.session.submit(Input.prompt("busy"))
        yield* h.go
        yield* seen(h, "steering.applied")
        yield* h.session.cancel(h.id)
        yield* h.session.awaitIdle
        yield* Scope.close(scope, Exit.void)
        yield* ended
        yield* judge(got)
        assert.includeMembers(types(got).slice(), [
          "input.accepted",
          "steering.accepted",
          "input.delivered",
          "steering.applied",
          "steering.unknown",
          "steering.held",
          "input.refused",
          "input.completed",
          "checkpoint.saved",
          "generation.finished",
          "session.closed"
        ])
      })
    )
  )

  const endings: ReadonlyArray<readonly [type: string, options: Parameters<typeof duringRequest>[0]]> = [
    ["generation.failed", { first: ScriptedModel.fail(lasting()) }],
    ["generation.failed", { first: ScriptedModel.noFinish }],
    ["generation.failed", { first: ScriptedModel.finish("content-filter") }],
    ["generation.exhausted", { first: ScriptedModel.call("look", { path: "a" }), agent: { maxRequests: 1 } }],
    ["generation.stopped", {}]
  ]
  for (const [index, [type, options]] of endings.entries()) {
    it.effect(`every event of a generation that ends as ${type} (${index}) is of the schema`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest(options)
          yield* h.steer(h.id, "x")
          if (type === "generation.stopped") yield* h.session.stop(h.id)
          yield* h.go
          yield* report(h, h.id)
          const events = yield* h.events
          yield* judge(events)
          assert.include(types(events), type)
        })
      )
    )
  }

  it.effect("the refusal of a submission without types is told as an event of the schema", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const { got } = yield* everything(h.session.events())
        const { submit } = h.session.capability("live.steering")
        const good = Input.steer("x", { id: "i" })
        const wrong: ReadonlyArray<unknown> = [
          7,
          [],
          {},
          { ...good, id: 7 },
          { ...good, intent: 7 },
          { ...good, intent: {} }
        ]
        for (const input of wrong) {
          yield* submit(input as Input.Input, h.id)
          yield* h.session.submit(input as Input.Input)
        }
        for (const id of ["gen_\u00fc", 7, null, {}]) yield* submit(good, id as Ids.GenerationId)
        yield* h.go
        yield* report(h, h.id)
        // The reader is woken in the same turn as this fiber, after it.
        yield* Effect.yieldNow
        yield* judge(got)
        assert.strictEqual(types(got).filter((type) => type === "input.refused").length, 16)
      })
    )
  )

  it.effect.prop(
    "an event of the schema is plain JSON, whatever its type",
    [Event.SessionEvent],
    ([event]) =>
      Effect.gen(function* () {
        const encoded = yield* Schema.encodeEffect(Event.SessionEvent)(event)
        // JSON knows no negative zero.
        const plain: unknown = JSON.parse(JSON.stringify(event))
        assert.deepStrictEqual<unknown>(yield* decode(JSON.parse(JSON.stringify(encoded))), plain)
      }),
    { arbitrary: { runs: 1_000 } }
  )

  it.effect.prop("L-E4 the terminal events are the five outcomes and no other", [Event.SessionEvent], ([event]) =>
    Effect.sync(() => {
      const outcomes = ["finished", "failed", "stopped", "cancelled", "exhausted"]
      assert.strictEqual(
        Event.isTerminal(event),
        outcomes.some((outcome) => event.type === `generation.${outcome}`)
      )
    })
  )

  it.effect("an event of an unknown type, or without its place, is none", () =>
    Effect.gen(function* () {
      const place = { session_id: Ids.SessionId.make("s"), sequence: 1, time: 0 }
      yield* decode({ type: "session.idle", ...place })
      for (const bad of [{ type: "session.other", ...place }, { type: "session.idle" }, { ...place }]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(decode(bad))))
      }
    })
  )
})
