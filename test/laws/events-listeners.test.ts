/** V3 and V4: listeners that act from inside their handlers, and what precedes what. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { AgentRuntime, type Event, Input, type Receipt } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, journalled, open, record, types, userTexts } from "../support/harness.ts"
import { edit, listen, working } from "../support/listeners.ts"
import { eventsOf, gate, ofType, seenType, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** A generation that was steered while its tool ran, at its end. */
const steered = Effect.gen(function* () {
  const { harness, id, session, tool } = yield* working
  yield* harness.steer(id, "so", { id: "s1" })
  yield* tool.open
  yield* session.await(id)
  return harness
})

describe("L-V3 listeners", () => {
  on("L-V3 a listener may steer the generation from inside its handler", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      const receipts: Array<Receipt.Receipt> = []
      yield* listen(session, (event) =>
        event.type === "tool.started"
          ? Effect.map(harness.steer(id, "so", { id: "s1" }), (receipt) => receipts.push(receipt))
          : Effect.void
      )
      yield* seenType(session, "steering.accepted")
      yield* tool.open
      yield* session.await(id)
      assert.deepStrictEqual(
        receipts.map((receipt) => receipt.disposition),
        ["queued"]
      )
      assert.include(userTexts(harness.model.requests[1]), "so")
    }).pipe(Effect.scoped, runtime)
  )

  for (const [way, outcome] of [
    ["cancel", "cancelled"],
    ["stop", "stopped"]
  ] as const) {
    on(`L-V3 a listener may ${way} the generation from inside its handler`, () =>
      Effect.gen(function* () {
        const { id, session, tool } = yield* working
        yield* listen(session, (event) => (event.type === "tool.started" ? session[way](id) : Effect.void))
        yield* seenType(session, `${way}.requested`)
        yield* tool.open
        assert.strictEqual((yield* session.await(id)).outcome, outcome)
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("case 5: from the terminal event a follow-up starts the next generation and anchored steering is refused", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      const answers: Array<string> = []
      yield* listen(session, (event) =>
        event.type === "generation.finished" && event.generation_id === id
          ? Effect.gen(function* () {
              const steer = yield* harness.steer(id, "late")
              const followUp = yield* session.submit(Input.followUp("later", { id: "f1" }))
              answers.push(steer.accepted ? "accepted" : steer.reason, followUp.disposition)
            })
          : Effect.void
      )
      yield* tool.open
      yield* seenType(session, "generation.finished", 2)
      assert.deepStrictEqual(answers, ["no-active-generation", "queued"])
      assert.strictEqual(userTexts(harness.model.requests.at(-1)).at(-1), "later")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V3 a listener may submit from inside the handler of a live event", () =>
    Effect.gen(function* () {
      const harness: Harness = yield* open({ script: scripted(edit) })
      let steered = 0
      yield* listen(harness.session, (event) =>
        event.type === "text.delta" && ++steered === 1
          ? harness.session.submit(Input.followUp("later", { id: "f1" }))
          : Effect.void
      )
      yield* harness.prompt("go")
      yield* seenType(harness.session, "generation.finished", 2)
      assert.strictEqual(userTexts(harness.model.requests.at(-1)).at(-1), "later")
    }).pipe(Effect.scoped, runtime)
  )

  for (const [name, broken] of [
    ["fails", Effect.fail("listener")],
    ["dies", Effect.die(new Error("listener"))],
    ["interrupts itself", Effect.interrupt]
  ] as const) {
    on(`L-V3 a listener that ${name} harms neither the session nor another listener`, () =>
      Effect.gen(function* () {
        const { id, session, tool } = yield* working
        const bad = yield* listen(session, () => broken)
        const { got } = yield* record(journalled(session.events()))
        yield* tool.open
        const report = yield* session.await(id)
        yield* seenType(session, "session.idle")
        assert.isTrue(Exit.isFailure(yield* Fiber.await(bad)))
        assert.strictEqual(report.outcome, "finished")
        assert.deepStrictEqual(got, yield* eventsOf(session))
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-V3 a listener that never comes back blocks nobody", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      yield* listen(session, () => Effect.never)
      yield* tool.open
      assert.strictEqual((yield* session.await(id)).outcome, "finished")
      yield* session.awaitIdle
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 a slow listener gets every journalled event in the end", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      const slow = yield* gate
      const got: Array<Event.SessionEvent> = []
      yield* listen(session, (event) => {
        got.push(event)
        return got.length === 1 ? slow.pass(undefined) : Effect.void
      })
      yield* tool.open
      yield* session.await(id)
      yield* session.awaitIdle
      assert.strictEqual(got.length, 1)
      const all = yield* eventsOf(session)
      yield* slow.open
      yield* session.submit(Input.prompt("again"))
      yield* seenType(session, "generation.finished", 2)
      assert.deepStrictEqual(got.filter((event) => event.live === undefined).slice(0, all.length), all)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-V4 order", () => {
  on("L-V4 what the model said before a boundary precedes what that boundary applied", () =>
    Effect.gen(function* () {
      const harness = yield* steered
      const events = yield* harness.events
      const [said, answered] = ofType(events, "assistant.message").map((event) => event.sequence)
      const [ran] = ofType(events, "tool.completed").map((event) => event.sequence)
      const [applied] = ofType(events, "steering.applied").map((event) => event.sequence)
      assert.deepStrictEqual(
        [said, ran, applied, answered],
        [said, ran, applied, answered].sort((a, b) => (a ?? 0) - (b ?? 0))
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V4 also for a live reader: the deltas of a response precede what the boundary after it applied", () =>
    Effect.gen(function* () {
      const asking = yield* gate
      const harness = yield* open({
        script: scripted(
          ScriptedModel.steps([ScriptedModel.text("half"), ScriptedModel.wait(asking.pass(undefined), edit)])
        )
      })
      const { got } = yield* record(harness.session.events())
      const id = yield* harness.prompt("go")
      yield* asking.entered
      yield* harness.steer(id, "so", { id: "s1" })
      yield* asking.open
      yield* harness.session.await(id)
      yield* seenType(harness.session, "session.idle")
      const line = got.flatMap((event) =>
        event.type === "text.delta" ? [`${event.text}`] : event.type === "steering.applied" ? ["applied"] : []
      )
      assert.deepStrictEqual(line, ["half", "I edit", "applied", "answer 2"])
    }).pipe(Effect.scoped, runtime)
  )

  on("case 34: a reader that joins later finds the same order in the sequence", () =>
    Effect.gen(function* () {
      const harness = yield* steered
      const line = types(yield* harness.events).filter(
        (type) => type === "assistant.message" || type === "steering.applied"
      )
      assert.deepStrictEqual(line, ["assistant.message", "steering.applied", "assistant.message"])
    }).pipe(Effect.scoped, runtime)
  )
})
