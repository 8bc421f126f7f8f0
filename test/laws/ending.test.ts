import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Checkpointer, type Event, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, open, toolResults, types, userTexts } from "../support/harness.ts"
import { duringRequest, duringTool, lasting, passing, receipts, report, run, seen, words } from "../support/scenes.ts"

const count = (h: Harness, type: Event.SessionEvent["type"]) =>
  Effect.map(h.events, (events) => types(events).filter((found) => found === type).length)

/** A generation whose tool has run, whose final answer is given, and whose first checkpoint is being saved. */
const duringCheckpoint = Effect.gen(function* () {
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const saved: Array<Checkpointer.Checkpoint> = []
  const save: Checkpointer.Service = (checkpoint) =>
    Effect.gen(function* () {
      saved.push(checkpoint)
      yield* Deferred.succeed(entered, undefined)
      yield* Deferred.await(gate)
    })
  const script = [ScriptedModel.call("edit", { path: "a" }), ScriptedModel.text("answer"), ScriptedModel.text("better")]
  const h = yield* Effect.provideService(open({ script }), Checkpointer.Checkpointer, save)
  const id = yield* h.prompt("do it", "p")
  yield* Deferred.await(entered)
  return { ...h, id, saved, go: Effect.asVoid(Deferred.succeed(gate, undefined)) }
})

/** The same generation at its end, continued by a steer accepted during that checkpoint. */
const continued = Effect.tap(duringCheckpoint, (h) =>
  Effect.gen(function* () {
    yield* h.steer(h.id, "not quite")
    yield* h.go
    yield* report(h, h.id)
  })
)

describe("L-E1 the second look", () => {
  it.effect(
    "L-E1 case 1: a steer accepted during the checkpoint continues the same generation with one more request",
    () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringCheckpoint
          assert.strictEqual(words(yield* h.steer(h.id, "not quite", { id: "s" })), "queued")
          yield* h.go
          const { outcome, requests, text } = yield* report(h, h.id)
          assert.deepStrictEqual([outcome, requests, text], ["finished", 3, "better"])
          const receipt = yield* h.receipt("s")
          assert.deepStrictEqual([words(receipt), receipt?.generationId], ["applied in 3", h.id])
          assert.strictEqual(yield* count(h, "generation.started"), 1)
        })
      )
  )

  it.effect("L-E1 the continuation replays neither the prompt nor a tool", () =>
    run(
      Effect.gen(function* () {
        const h = yield* continued
        assert.deepStrictEqual(h.began, ["edit"])
        assert.deepStrictEqual(userTexts(h.model.requests[2]), ["do it", "not quite"])
        assert.strictEqual(toolResults(h.model.requests[2]).length, 1)
      })
    )
  )

  it.effect("L-E1 each normal finish saves a checkpoint of the request it follows", () =>
    run(
      Effect.gen(function* () {
        const h = yield* continued
        assert.deepStrictEqual(
          h.saved.map((checkpoint) => [checkpoint.generationId, checkpoint.request]),
          [
            [h.id, 2],
            [h.id, 3]
          ]
        )
        assert.deepStrictEqual(
          (yield* h.events).flatMap((event) => (event.type === "checkpoint.saved" ? [event.request] : [])),
          [2, 3]
        )
      })
    )
  )

  it.effect("L-E1 checkpoint.saved is told only after the host has saved", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringCheckpoint
        assert.notInclude(types(yield* h.events), "checkpoint.saved")
        yield* h.go
        yield* report(h, h.id)
        assert.include(types(yield* h.events), "checkpoint.saved")
      })
    )
  )

  it.effect("L-E1 without a Checkpointer the checkpoint is told too, before the terminal event", () =>
    run(
      Effect.gen(function* () {
        const h = yield* open({ script: [ScriptedModel.text("done")] })
        yield* report(h, yield* h.prompt("do it"))
        const told = types(yield* h.events)
        assert.deepStrictEqual(
          told.filter((type) => type === "checkpoint.saved" || type === "generation.finished"),
          ["checkpoint.saved", "generation.finished"]
        )
      })
    )
  )

  it.effect("L-E1 without a Checkpointer a steer pending at the finish continues the same generation", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        yield* h.steer(h.id, "not quite", { id: "s" })
        yield* h.go
        const { requests } = yield* report(h, h.id)
        assert.deepStrictEqual([requests, yield* count(h, "generation.started")], [2, 1])
        assert.strictEqual(yield* count(h, "checkpoint.saved"), 2)
        assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it", "not quite"])
      })
    )
  )

  it.effect("L-E1 an ordinary steer pending at the finish continues it as well", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringCheckpoint
        yield* h.session.submit(Input.steer("not quite", { id: "s" }))
        yield* h.go
        assert.strictEqual((yield* report(h, h.id)).requests, 3)
        assert.strictEqual(yield* count(h, "generation.started"), 1)
      })
    )
  )

  it.effect("L-E1 a checkpoint that cannot be saved fails the generation and holds what is pending", () =>
    run(
      Effect.gen(function* () {
        const entered = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const save = () =>
          Deferred.succeed(entered, undefined).pipe(
            Effect.andThen(Deferred.await(gate)),
            Effect.andThen(Effect.die("full"))
          )
        const script = [ScriptedModel.text("answer")]
        const h = yield* Effect.provideService(open({ script }), Checkpointer.Checkpointer, save)
        const id = yield* h.prompt("do it")
        yield* Deferred.await(entered)
        yield* h.steer(id, "x", { id: "s" })
        yield* Deferred.succeed(gate, undefined)
        const { error, outcome } = yield* report(h, id)
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "checkpoint"])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-failed"])
        assert.strictEqual(yield* count(h, "checkpoint.saved"), 0)
      })
    )
  )

  it.effect("L-E1 case 6: at the end a steer goes first, in the same generation, and a follow-up has its own", () =>
    run(
      Effect.gen(function* () {
        const script = ["first", "second", "third"].map((text) => ScriptedModel.text(text))
        const h = yield* duringRequest({ after: script.slice(1) })
        yield* h.session.submit(Input.followUp("afterwards", { id: "f" }))
        yield* h.steer(h.id, "now", { id: "s" })
        yield* h.go
        yield* h.session.awaitIdle
        assert.deepStrictEqual(
          h.model.requests.map((request) => userTexts(request).at(-1)),
          ["do it", "now", "afterwards"]
        )
        assert.deepStrictEqual(yield* receipts(h, "s", "f"), ["applied in 2", "applied in 1"])
      })
    )
  )
})

describe("L-E2 the close", () => {
  it.effect("L-E2 with nothing pending the generation ends without a further request", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringCheckpoint
        yield* h.go
        assert.deepStrictEqual((yield* report(h, h.id)).requests, 2)
      })
    )
  )

  it.effect("L-E2 case 5: from inside the terminal event's listener a steer is refused and a follow-up runs next", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest()
        const answered = yield* Deferred.make<ReadonlyArray<string>>()
        yield* Effect.forkScoped(
          Effect.gen(function* () {
            yield* seen(h, "generation.finished")
            const steer = yield* h.steer(h.id, "x", { id: "s" })
            const follow = yield* h.session.submit(Input.followUp("next", { id: "f" }))
            yield* Deferred.succeed(answered, [words(steer), words(follow)])
          }),
          { startImmediately: true }
        )
        yield* h.go
        const [steer, follow] = yield* Deferred.await(answered)
        yield* h.session.awaitIdle
        assert.deepStrictEqual([steer?.slice(0, 8), follow], ["refused ", "queued"])
        assert.deepStrictEqual(yield* receipts(h, "s", "f"), ["none", "applied in 1"])
      })
    )
  )

  it.effect("L-E2 admission is closed before the end is told: the refusal says closed, and nothing is stranded", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* h.session.stop(h.id)
        assert.notInclude(types(yield* h.events), "generation.stopped")
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "s" })), "refused admission-closed")
        yield* h.go
        const { undeliveredInputIds } = yield* report(h, h.id)
        assert.deepStrictEqual([undeliveredInputIds, yield* receipts(h, "s")], [[], ["none"]])
      })
    )
  )

  it.effect(
    "L-E2 case 3: an ordinary steer after admission closed starts the next generation and is not stranded",
    () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          yield* h.session.stop(h.id)
          const receipt = yield* h.session.submit(Input.steer("next", { id: "s" }))
          assert.deepStrictEqual([words(receipt), receipt.generationId], ["queued", null])
          yield* h.go
          yield* h.session.awaitIdle
          const settled = yield* h.receipt("s")
          assert.strictEqual(words(settled), "applied in 1")
          assert.notStrictEqual(settled?.generationId, h.id)
        })
      )
  )
})

describe("L-E3 what an abnormal end does with what is pending", () => {
  const held = (h: Harness) =>
    Effect.map(h.events, (events) =>
      events.flatMap((event) => (event.type === "steering.held" ? [[event.input_id, event.reason, event.cause]] : []))
    )

  for (const [control, outcome] of [
    ["stop", "stopped"],
    ["cancel", "cancelled"]
  ] as const) {
    it.effect(`L-E3 case 13: a ${control} holds it, with that reason and cause`, () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringRequest()
          yield* h.steer(h.id, "x", { id: "s" })
          yield* h.session[control](h.id)
          yield* h.go
          assert.strictEqual((yield* report(h, h.id)).outcome, outcome)
          assert.deepStrictEqual(yield* held(h), [[inputId("s"), `generation-${outcome}`, control]])
          assert.strictEqual(h.model.requests.length, 1)
        })
      )
    )
  }

  it.effect("L-E3 case 15: a failure holds it, and a queued follow-up starts next", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ first: ScriptedModel.fail(lasting()), after: [ScriptedModel.text("next")] })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.session.submit(Input.followUp("next", { id: "f" }))
        yield* h.go
        assert.strictEqual((yield* report(h, h.id)).outcome, "failed")
        yield* h.session.awaitIdle
        assert.deepStrictEqual(yield* held(h), [[inputId("s"), "generation-failed", "provider-failure"]])
        assert.deepStrictEqual(yield* receipts(h, "s", "f"), ["held generation-failed", "applied in 1"])
        assert.deepStrictEqual(
          userTexts(h.model.requests[1]).filter((text) => text === "x"),
          []
        )
      })
    )
  )

  it.effect("L-E3 calls of the last permitted response are not-started(budget) and the outcome is exhausted", () =>
    run(
      Effect.gen(function* () {
        const calls = ScriptedModel.calls([
          { name: "edit", params: { path: "a" } },
          { name: "look", params: { path: "b" } }
        ])
        const h = yield* duringRequest({ first: calls, agent: { maxRequests: 1 } })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        const { outcome, tools } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, h.began], ["exhausted", []])
        assert.deepStrictEqual(
          tools.map((tool) => tool.status),
          [1, 2].map(() => ({ _tag: "NotStarted", reason: "budget" }) as const)
        )
        assert.deepStrictEqual(yield* held(h), [[inputId("s"), "budget-exhausted", "budget"]])
      })
    )
  )

  it.effect("L-E3 case 4: a final answer on the last request with a steer pending is finished, the steer held", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { maxRequests: 1 } })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        const { outcome, text } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, text], ["finished", "first"])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held budget-exhausted"])
        assert.strictEqual(h.model.requests.length, 1)
      })
    )
  )

  it.effect("L-E3 the event of a steer held for the budget says that cause, whatever the generation's", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ agent: { maxRequests: 1 } })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        yield* report(h, h.id)
        assert.deepStrictEqual(yield* held(h), [[inputId("s"), "budget-exhausted", "budget"]])
      })
    )
  )

  it.effect("L-E3 a steer never raises the budget", () =>
    run(
      Effect.gen(function* () {
        let more: Effect.Effect<unknown> = Effect.void
        const script = () =>
          ScriptedModel.wait(
            Effect.suspend(() => more),
            ScriptedModel.text("ok")
          )
        const h = yield* open({ script, agent: { maxRequests: 3 } })
        const id = yield* h.prompt("do it", "p")
        more = Effect.suspend(() => h.steer(id, "and more"))
        const { outcome, requests, undeliveredInputIds } = yield* report(h, id)
        assert.deepStrictEqual([outcome, requests, undeliveredInputIds.length], ["finished", 3, 1])
      })
    )
  )

  it.effect("L-E3 a last permitted request that fails is failed, and is not retried", () =>
    run(
      Effect.gen(function* () {
        const h = yield* duringRequest({ first: ScriptedModel.fail(passing()), agent: { maxRequests: 1 } })
        yield* h.steer(h.id, "x", { id: "s" })
        yield* h.go
        const { outcome, requests } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, requests], ["failed", 1])
        assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-failed"])
      })
    )
  )

  it.effect(
    "L-E3 case 12: a cancel between the withheld call and the boundary holds the steer and pairs every call",
    () =>
      run(
        Effect.gen(function* () {
          const h = yield* duringTool({ calls: ["edit", "send"], after: [ScriptedModel.text("next")] })
          yield* h.steer(h.id, "x", { id: "s" })
          yield* seen(h, "tool.not_started")
          yield* h.session.cancel(h.id)
          const { tools } = yield* report(h, h.id)
          assert.deepStrictEqual(yield* receipts(h, "s"), ["held generation-cancelled"])
          assert.deepStrictEqual(
            tools.map((tool) => tool.status),
            [
              { _tag: "Interrupted", effects: "unknown", cause: "cancel" },
              { _tag: "NotStarted", reason: "steering", inputIds: [inputId("s")] }
            ]
          )
          yield* report(h, yield* h.prompt("next"))
          assert.deepStrictEqual(
            toolResults(h.model.requests[1]).map((result) => result.id),
            ["call-1", "call-2"]
          )
          assert.notInclude(userTexts(h.model.requests[1]), "x")
        })
      )
  )
})
