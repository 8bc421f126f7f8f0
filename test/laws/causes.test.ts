/** C8: the causes that events name, each its own and never one for another. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Prompt } from "effect/ai"
import { AgentRuntime, Checkpointer, ContextStore, type Event, type Ids } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, open } from "../support/harness.ts"
import { gate, unauthorised, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const twoCalls = ScriptedModel.calls([
  { name: "edit", id: "a", params: { path: "p" } },
  { name: "send", id: "b", params: { path: "p" } }
])

type WithCause = Extract<Event.SessionEvent, { readonly cause: unknown }>
const causes = (events: ReadonlyArray<Event.SessionEvent>) =>
  events.filter((event): event is WithCause => "cause" in event).map((event) => `${event.type} ${event.cause}`)

const failingStore = (failAt: number): ContextStore.Service => {
  const messages: Array<Prompt.Message> = []
  let appends = 0
  return {
    append: (added) =>
      ++appends === failAt ? Effect.fail("no space left") : Effect.sync(() => void messages.push(...added)),
    messages: Effect.sync(() => [...messages]),
    has: () => Effect.succeed("absent")
  }
}

/** A generation that steers itself while its first tool runs, then ends as the way says. */
const ended = (way: (harness: Harness, id: Ids.GenerationId) => Effect.Effect<unknown>, letGo: boolean) =>
  Effect.gen(function* () {
    const tool = yield* gate
    const harness = yield* open({
      script: scripted(ScriptedModel.call("edit", { path: "p" }, "a")),
      edit: () => tool.pass("edited")
    })
    const id = yield* harness.prompt("go")
    yield* tool.entered
    yield* harness.steer(id, "so", { id: "s1" })
    yield* way(harness, id)
    if (letGo) yield* tool.open
    yield* harness.session.await(id)
    return causes(yield* harness.events)
  })

describe("L-C8 causes", () => {
  on("L-C8 a stop: asked by the user, everything after it because of the stop", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ended(({ session }, id) => session.stop(id), true), [
        "stop.requested user",
        "steering.held stop",
        "generation.stopped stop"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C8 a cancel: asked by the user, everything after it because of the cancel", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ended(({ session }, id) => session.cancel(id), false), [
        "cancel.requested user",
        "steering.held cancel",
        "tool.interrupted cancel",
        "generation.cancelled cancel"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C8 the model's own answer: finish", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted() })
      yield* harness.session.await(yield* harness.prompt("go"))
      assert.deepStrictEqual(causes(yield* harness.events), ["generation.finished finish"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C8 an exhausted budget: budget, for the calls, the steering and the end", () =>
    Effect.gen(function* () {
      const asking = yield* gate
      const harness = yield* open({
        script: scripted(ScriptedModel.wait(asking.pass(undefined), twoCalls)),
        agent: { maxRequests: 1 }
      })
      const id = yield* harness.prompt("go")
      yield* asking.entered
      yield* harness.steer(id, "so", { id: "s1" })
      yield* asking.open
      yield* harness.session.await(id)
      const found = causes(yield* harness.events)
      assert.sameMembers(found, [
        "tool.not_started budget",
        "tool.not_started budget",
        "steering.held budget",
        "generation.exhausted budget"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C8 a provider's failure: provider-failure, for the request, the steering and the end", () =>
    Effect.gen(function* () {
      const asking = yield* gate
      const harness = yield* open({
        script: scripted(ScriptedModel.wait(asking.pass(undefined), ScriptedModel.fail(unauthorised)))
      })
      const id = yield* harness.prompt("go")
      yield* asking.entered
      yield* harness.steer(id, "so", { id: "s1" })
      yield* asking.open
      yield* harness.session.await(id)
      assert.sameMembers(causes(yield* harness.events), [
        "request.failed provider-failure",
        "steering.held provider-failure",
        "generation.failed provider-failure"
      ])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C8 a context that cannot be written: storage", () =>
    Effect.gen(function* () {
      const harness = yield* open({ script: scripted() }).pipe(
        Effect.provideService(ContextStore.ContextStore, failingStore(1))
      )
      const report = yield* harness.session.await(yield* harness.prompt("go"))
      assert.strictEqual(report.error?.kind, "context")
      assert.deepStrictEqual(causes(yield* harness.events), ["steering.held storage", "generation.failed storage"])
    }).pipe(Effect.scoped, runtime)
  )

  for (const [name, checkpointer] of [
    ["dies", () => Effect.die(new Error("no space left"))],
    [
      "throws",
      () => {
        throw new Error("no space left")
      }
    ]
  ] as const) {
    on(`L-C8 a checkpointer that ${name}: storage`, () =>
      Effect.gen(function* () {
        const harness = yield* open({ script: scripted() })
        const report = yield* harness.session.await(yield* harness.prompt("go"))
        assert.strictEqual(report.error?.kind, "checkpoint")
        assert.deepStrictEqual(causes(yield* harness.events), ["generation.failed storage"])
      }).pipe(Effect.scoped, Effect.provideService(Checkpointer.Checkpointer, checkpointer), runtime)
    )
  }

  on("L-C8 a call withheld for a correction: the user, and nobody else's calls", () =>
    Effect.gen(function* () {
      const tool = yield* gate
      const harness = yield* open({ script: scripted(twoCalls), edit: () => tool.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* tool.entered
      yield* harness.steer(id, "so", { id: "s1" })
      yield* tool.open
      yield* harness.session.await(id)
      assert.deepStrictEqual(causes(yield* harness.events), ["tool.not_started user", "generation.finished finish"])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 32: an interruption names its real cause to the next generation, never a message of the user's", () =>
    Effect.gen(function* () {
      const tool = yield* gate
      const harness = yield* open({ script: scripted(twoCalls), edit: () => tool.pass("edited") })
      const id = yield* harness.prompt("go")
      yield* tool.entered
      yield* harness.session.cancel(id)
      yield* harness.session.await(id)
      yield* harness.session.await(yield* harness.prompt("and now"))
      const own = harness.model.requests[1]?.prompt.flatMap((message) =>
        message.role === "tool"
          ? message.content.flatMap((part) => (part.type === "tool-result" ? [String(part.result)] : []))
          : []
      )
      assert.strictEqual(own?.length, 2)
      for (const text of own ?? []) {
        assert.include(text, "the run was cancelled")
        assert.notInclude(text, "message")
        assert.notInclude(text, "correction")
      }
    }).pipe(Effect.scoped, runtime)
  )
})
