/** V1 and V2: one gapless sequence, and readers from anywhere. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Schema, Scope, Stream } from "effect"
import { AgentRuntime, Event, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { inputId, journalled, open, record, types } from "../support/harness.ts"
import { listen, working } from "../support/listeners.ts"
import { eventsOf, ofType, seenType, scripted } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)

/** A whole conversation: a steered generation, a refusal, a follow-up. */
const conversation = Effect.gen(function* () {
  const { harness, id, session, tool } = yield* working
  yield* harness.steer(id, "so", { id: "s1" })
  yield* session.submit(Input.prompt("busy"))
  yield* session.submit(Input.followUp("later", { id: "f1" }))
  yield* tool.open
  yield* session.awaitIdle
  return harness
})

const sequences = (events: ReadonlyArray<Event.SessionEvent>) => events.map((event) => event.sequence)
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

describe("L-V1 the sequence", () => {
  on("L-V1 journalled events are numbered without a gap from 1", () =>
    Effect.gen(function* () {
      const harness = yield* conversation
      const events = yield* harness.events
      assert.deepStrictEqual(sequences(events), upTo(events.length))
      assert.isAbove(events.length, 20)
      assert.deepStrictEqual(
        events.map((event) => event.session_id),
        events.map(() => harness.session.id)
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 status tells the last sequence", () =>
    Effect.gen(function* () {
      const harness = yield* conversation
      assert.strictEqual((yield* harness.session.status).sequence, (yield* harness.events).at(-1)?.sequence)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 an event is published after the state it tells of: a look-up from the listener is never behind it", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      const reached = ["Queued", "Admitted", "Delivered", "Completed"]
      const least = {
        "input.accepted": "Admitted",
        "steering.accepted": "Admitted",
        "steering.applied": "Delivered",
        "input.completed": "Completed"
      }
      const told: Array<string> = []
      yield* listen(session, (event) => {
        switch (event.type) {
          case "input.accepted":
          case "steering.applied":
          case "input.completed":
            return Effect.map(session.input(event.input_id), (status) => {
              told.push(event.type)
              const found = Option.getOrUndefined(status)?._tag ?? "nothing"
              const expected = event.input_id === inputId("p1") ? "Admitted" : least[event.type]
              assert.isAtLeast(reached.indexOf(found), reached.indexOf(expected), `${event.type}: ${found}`)
            })
          case "generation.finished":
            return Effect.map(
              Effect.all([session.await(event.generation_id), session.generation]),
              ([report, live]) => {
                told.push(event.type)
                assert.deepStrictEqual([report.outcome, Option.isNone(live)], ["finished", true])
              }
            )
          default:
            return Effect.void
        }
      })
      yield* harness.steer(id, "so", { id: "s1" })
      yield* tool.open
      yield* session.await(id)
      yield* seenType(session, "session.idle")
      assert.deepStrictEqual(
        told.filter((type) => type !== "input.accepted"),
        ["input.completed", "steering.applied", "input.completed", "generation.finished"]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 live events carry the last journalled sequence and a live index, and take no sequence", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      const { got } = yield* record(session.events())
      yield* tool.open
      yield* session.await(id)
      yield* seenType(session, "session.idle")
      const own = got.filter((event) => event.live === undefined)
      assert.deepStrictEqual(sequences(own), upTo(own.length))
      let last = 0
      const indexes: Array<number> = []
      for (const event of got) {
        if (event.live === undefined) last = event.sequence
        else {
          assert.strictEqual(event.sequence, last)
          indexes.push(event.live)
        }
      }
      assert.isAbove(indexes.length, 0)
      const [first = 0] = indexes
      assert.deepStrictEqual(
        indexes,
        indexes.map((_, index) => first + index)
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 text and reasoning as they come are live events with the request's number", () =>
    Effect.gen(function* () {
      const harness = yield* open({
        script: [ScriptedModel.steps([ScriptedModel.reasoning("hm", "so"), ScriptedModel.text("do", "ne")])]
      })
      const { got } = yield* record(harness.session.events())
      yield* harness.session.await(yield* harness.prompt("go"))
      yield* seenType(harness.session, "session.idle")
      assert.deepStrictEqual(
        [...ofType(got, "reasoning.delta"), ...ofType(got, "text.delta")].map(({ live, request, text, type }) => [
          type,
          text,
          request,
          live !== undefined
        ]),
        [
          ["reasoning.delta", "hm", 1, true],
          ["reasoning.delta", "so", 1, true],
          ["text.delta", "do", 1, true],
          ["text.delta", "ne", 1, true]
        ]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 a refusal is live: told to who listens, and in no journal", () =>
    Effect.gen(function* () {
      const { harness, id, session } = yield* working
      const { got } = yield* record(session.events())
      const before = (yield* session.status).sequence
      yield* session.submit(Input.prompt("now", { id: "p2" }))
      yield* harness.steer(id, "", { id: "s0" })
      yield* session.cancel(id)
      yield* session.await(id)
      yield* seenType(session, "session.idle")
      assert.deepStrictEqual(
        ofType(got, "input.refused").map((event) => [
          event.input_id,
          event.reason,
          event.sequence,
          event.live !== undefined
        ]),
        [
          ["p2", "busy", before, true],
          ["s0", "invalid-input", before, true]
        ]
      )
      assert.notInclude(types(yield* harness.events), "input.refused")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V1 events are plain JSON that the schema of events decodes", () =>
    Effect.gen(function* () {
      const harness = yield* conversation
      const events = yield* harness.events
      assert.deepStrictEqual(JSON.parse(JSON.stringify(events)), events)
      yield* Effect.forEach(events, (event) =>
        Schema.decodeUnknownEffect(Event.SessionEvent)(JSON.parse(JSON.stringify(event)))
      )
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-V2 readers", () => {
  on("L-V2 a reader that starts at any sequence gets each later event once and in order", () =>
    Effect.gen(function* () {
      const { events, session } = yield* conversation
      const all = yield* events
      for (let after = 0; after < all.length; after++) {
        const read = yield* Stream.runCollect(Stream.take(session.events({ after }), all.length - after))
        assert.deepStrictEqual(read, all.slice(after))
      }
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V2 a reader that joins mid-way has no seam between what it replays and what it follows", () =>
    Effect.gen(function* () {
      const { harness, id, session, tool } = yield* working
      const joined = (yield* session.status).sequence
      const { got } = yield* record(journalled(session.events({ after: 2 })))
      yield* harness.steer(id, "so")
      yield* tool.open
      yield* session.await(id)
      yield* seenType(session, "session.idle")
      const all = yield* harness.events
      assert.isAbove(all.length, joined)
      assert.deepStrictEqual(got, all.slice(2))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V2 a reader that starts after what there is gets only what is later than that", () =>
    Effect.gen(function* () {
      const { session, tool } = yield* working
      const after = (yield* session.status).sequence + 3
      const reader = yield* Effect.forkChild(Stream.runHead(journalled(session.events({ after }))), {
        startImmediately: true
      })
      yield* tool.open
      const first = Option.getOrUndefined(yield* Fiber.join(reader))
      assert.strictEqual(first?.sequence, after + 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V2 two readers get the same, live events included", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      const one = yield* record(session.events())
      const two = yield* record(session.events())
      yield* tool.open
      yield* session.await(id)
      yield* seenType(session, "session.idle")
      assert.deepStrictEqual(one.got, two.got)
      assert.include(types(one.got), "text.delta")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V2 live events are never replayed", () =>
    Effect.gen(function* () {
      const { id, session, tool } = yield* working
      yield* record(session.events())
      yield* tool.open
      yield* session.await(id)
      const replayed = yield* eventsOf(session)
      assert.isTrue(replayed.every((event) => event.live === undefined))
      const { sequence } = yield* session.status
      const late = yield* Stream.runCollect(Stream.take(session.events(), sequence))
      assert.deepStrictEqual(late, replayed)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-V2 a stream of events ends when the session closes, after everything in the journal", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { prompt, session } = yield* Scope.provide(open({ script: scripted(ScriptedModel.hang) }), scope)
      const reader = yield* Effect.forkChild(Stream.runCollect(session.events()), { startImmediately: true })
      yield* prompt("go")
      yield* Scope.close(scope, Exit.void)
      const events = yield* Fiber.join(reader)
      assert.strictEqual(events.at(-1)?.type, "session.closed")
      assert.deepStrictEqual(
        sequences(events.filter((event) => event.live === undefined)).length,
        events.at(-1)?.sequence
      )
    }).pipe(runtime)
  )
})
