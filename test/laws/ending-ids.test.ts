import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { Event, type Ids, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, journalled, open } from "../support/harness.ts"
import { duringRequest, lasting, report, run, words } from "../support/scenes.ts"

/** How often each generation was started and ended, in the order of its start. */
const lives = (events: ReadonlyArray<Event.SessionEvent>) => {
  const found = new Map<string, { started: number; ended: number }>()
  for (const event of events) {
    if (event.type === "generation.started") {
      const life = found.get(event.generation_id) ?? { started: 0, ended: 0 }
      found.set(event.generation_id, { ...life, started: life.started + 1 })
    }
    if (Event.isTerminal(event)) {
      const life = found.get(event.generation_id) ?? { started: 0, ended: 0 }
      found.set(event.generation_id, { ...life, ended: life.ended + 1 })
    }
  }
  return found
}

const once = { started: 1, ended: 1 }

const both = (h: Harness) =>
  Effect.all([h.session.submit(Input.prompt("one")), h.session.submit(Input.prompt("two"))], {
    concurrency: "unbounded"
  })

describe("L-E6 ids that were returned", () => {
  const ways: ReadonlyArray<
    readonly [name: string, end: (h: Harness, id: Ids.GenerationId) => Effect.Effect<unknown>]
  > = [
    ["runs to its end", () => Effect.void],
    ["is cancelled at once", (h, id) => h.session.cancel(id)],
    ["is stopped at once", (h, id) => h.session.stop(id)],
    ["is cancelled and stopped at once", (h, id) => Effect.all([h.session.cancel(id), h.session.stop(id)])]
  ]
  for (const [name, end] of ways) {
    it.effect(`L-E6 case 10: a generation that ${name} has one start and one end`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* open({ script: [ScriptedModel.text("done")] })
          const id = yield* h.prompt("do it")
          yield* end(h, id)
          yield* report(h, id)
          assert.deepStrictEqual(lives(yield* h.events), new Map([[id, once]]))
        })
      )
    )
  }

  it.effect("L-E6 a generation whose session closes at once has one start and one end", () =>
    run(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const h = yield* Scope.provide(open({ script: [ScriptedModel.hang] }), scope)
        const reader = yield* Effect.forkScoped(Stream.runCollect(journalled(h.session.events())), {
          startImmediately: true
        })
        const id = yield* h.prompt("do it")
        yield* Scope.close(scope, Exit.void)
        const events = yield* Effect.orDie(Fiber.join(reader))
        assert.deepStrictEqual(lives(events), new Map([[id, once]]))
        assert.strictEqual(events.at(-1)?.type, "session.closed")
      })
    )
  )

  it.effect("L-E6 a generation whose caller is interrupted has one start and one end", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        const caller = yield* Effect.forkScoped(Effect.andThen(h.session.submit(Input.prompt("do it")), Effect.never), {
          startImmediately: true
        })
        yield* Fiber.interrupt(caller)
        yield* h.session.awaitIdle
        assert.deepStrictEqual([...lives(yield* h.events).values()], [once])
      })
    )
  )

  it.effect(
    "L-E6 case 9: of two prompts at once one starts, the other is refused and names no generation of its own",
    () =>
      run(
        Effect.gen(function* () {
          const h = yield* open({ script: [ScriptedModel.text("done")] })
          const [one, two] = yield* both(h)
          assert.deepStrictEqual([words(one), words(two)], ["queued", "refused busy"])
          assert.strictEqual(two.generationId, null)
          assert.isTrue(!two.accepted && two.actual === one.generationId)
          yield* h.session.awaitIdle
          assert.deepStrictEqual(lives(yield* h.events), new Map([[one.generationId, once]]))
        })
      )
  )

  it.effect("L-E6 every id that a receipt ever named is one that started and ended, and await knows it", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({
          after: [ScriptedModel.fail(lasting()), ScriptedModel.text("f"), ScriptedModel.text("t")]
        })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.submit(Input.followUp("f", { id: "f" }))
        yield* h.go
        yield* report(h, h.id)
        yield* h.session.submit(Input.steer("t", { id: "t" }))
        yield* h.session.awaitIdle
        const named = new Set<string>()
        for (const id of ["p", "s", "f", "t"]) {
          const receipt = yield* h.receipt(id)
          if (receipt?.generationId === null || receipt === undefined) continue
          named.add(receipt.generationId)
          yield* report(h, receipt.generationId as Ids.GenerationId)
        }
        const found = lives(yield* h.events)
        assert.deepStrictEqual(
          [...named].map((id) => found.get(id)),
          [...named].map(() => once)
        )
        assert.deepStrictEqual([...found.keys()].sort(), [...named].sort())
      })
    )
  )

  it.effect("L-E6 the active generation's id is one that has started", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const active = Option.getOrThrow(yield* h.session.generation)
        assert.deepStrictEqual([active.id, active.request], [h.id, 1])
        assert.deepStrictEqual([...lives(yield* h.events)], [[h.id, { started: 1, ended: 0 }]])
      })
    )
  )
})
