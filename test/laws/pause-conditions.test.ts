/** C3: a pause ends when its conditions hold and not before; and the pure rules of conditions. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Clock, Duration, Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Input, ResumeCondition } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, open, types } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"
import { duringTool, receipts, report, words } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const { all, any, at, input, manual, signal } = ResumeCondition
const accepted = { accepted: true } as const
const unmet = (...of: ReadonlyArray<ResumeCondition.ResumeCondition>) =>
  ({ accepted: false, reason: "condition-unmet", unmet: of }) as const

/** Lets everything that can go on go on, without the clock. */
const settle = TestClock.adjust(0)
const idle = open({ script: ["one", "two", "three", "four"].map((text) => ScriptedModel.text(text)) })
const paused = (h: Harness) => Effect.map(h.session.status, ({ pauses }) => pauses.length > 0)
const pauseTypes = (h: Harness) =>
  Effect.map(h.events, (events) => types(events).filter((type) => type.startsWith("pause.")))

/** An idle session paused until the condition holds, with a follow-up that waits for that. */
const pausedUntil = (until: ResumeCondition.ResumeCondition) =>
  Effect.gen(function* () {
    const h = yield* idle
    yield* h.session.submit(Input.followUp("before", { id: "first" }))
    yield* h.session.awaitIdle.pipe(Effect.orDie)
    yield* h.session.pause({ until })
    yield* settle
    return h
  })

describe("L-C3 a pause that is ended by hand", () => {
  on("L-C3 ends on resume, once, and says which pause ended", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(manual)
      assert.deepStrictEqual(yield* h.session.resume(), accepted)
      assert.isFalse(yield* paused(h))
      const events = yield* h.events
      const [requested] = ofType(events, "pause.requested")
      assert.deepStrictEqual(
        [...ofType(events, "pause.effective"), ...ofType(events, "pause.ended")].map((event) => event.requested),
        [requested?.sequence, requested?.sequence]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 is not ended by a signal, by time or by an input", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(manual)
      assert.deepStrictEqual(yield* h.session.resume("go"), unmet(manual))
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* TestClock.adjust("365 days")
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual(yield* receipts(h, "f"), ["queued"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 resume without a pause is refused and changes nothing", () =>
    Effect.gen(function* () {
      const h = yield* idle
      const before = yield* h.session.status
      assert.isFalse((yield* h.session.resume()).accepted)
      assert.deepStrictEqual(yield* h.session.status, before)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 a resume before the pause does not count for it", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* h.session.resume()
      yield* h.session.pause()
      assert.isTrue(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C3 a pause until an instant", () => {
  on("L-C3 ends at that instant and not a millisecond sooner", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(at((yield* Clock.currentTimeMillis) + 60_000))
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* TestClock.adjust(59_999)
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual(yield* receipts(h, "f"), ["queued"])
      yield* TestClock.adjust(1)
      assert.isFalse(yield* paused(h))
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 in the past ends at once", () =>
    Effect.gen(function* () {
      const h = yield* idle
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* h.session.pause({ until: at(5) }), accepted)
      yield* settle
      assert.isFalse(yield* paused(h))
      assert.include(yield* pauseTypes(h), "pause.ended")
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("go"))), "queued")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 farther away than a timer reaches (2^31 ms) ends then, and not sooner", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(at((yield* Clock.currentTimeMillis) + Duration.toMillis("60 days")))
      yield* TestClock.adjust("30 days")
      assert.isTrue(yield* paused(h))
      yield* TestClock.adjust("29 days")
      assert.isTrue(yield* paused(h))
      yield* TestClock.adjust("1 day")
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 is refused a resume by hand, which says the instant that is unmet", () =>
    Effect.gen(function* () {
      const until = at((yield* Clock.currentTimeMillis) + 1000)
      const h = yield* pausedUntil(until)
      assert.deepStrictEqual(yield* h.session.resume(), unmet(until))
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual((yield* h.session.status).pauses[0]?.unmet, [until])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 wakes a running generation that waits at it", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.session.pause({ until: at((yield* Clock.currentTimeMillis) + 1000) })
      yield* h.go
      yield* TestClock.adjust(999)
      assert.strictEqual(h.model.requests.length, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* report(h, h.id)).text, "second")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C3 a pause until a signal", () => {
  on("L-C3 ends on that signal, and another is refused with the one that is unmet", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(signal("deployed"))
      assert.deepStrictEqual(yield* h.session.resume("tested"), unmet(signal("deployed")))
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual(yield* h.session.resume("deployed"), accepted)
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 a signal counts for every pause that waits for it", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(signal("a"))
      yield* h.session.pause({ until: any(signal("b"), signal("a")) })
      yield* h.session.resume("a")
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C3 a pause until a further input", () => {
  on("L-C3 ends when one is accepted, which then starts", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(input)
      assert.isTrue(yield* paused(h))
      yield* h.session.submit(Input.followUp("f", { id: "f" }))
      yield* settle
      assert.isFalse(yield* paused(h))
      assert.deepStrictEqual(yield* receipts(h, "f"), ["applied in 1"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 is not ended by one that is refused", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(input)
      assert.strictEqual(words(yield* h.session.submit(Input.prompt("p"))), "refused paused")
      assert.strictEqual(words(yield* h.session.submit(Input.followUp("  "))), "refused invalid-input")
      assert.isTrue(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 is not ended by one that was accepted before: it is no further input", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(input)
      yield* h.session.submit(Input.followUp("before", { id: "first" }))
      yield* settle
      assert.isTrue(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 is ended by a steer of the running generation, which is delivered", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.session.pause({ until: input })
      yield* h.go
      yield* settle
      assert.strictEqual(h.model.requests.length, 1)
      yield* h.steer(h.id, "go on", { id: "s" })
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-C3 a pause until several conditions", () => {
  on("L-C3 all of them: refused with exactly what is still unmet, in the order written", () =>
    Effect.gen(function* () {
      const until = all(signal("a"), signal("b"), manual)
      const h = yield* pausedUntil(until)
      assert.deepStrictEqual(yield* h.session.resume("b"), unmet(signal("a"), manual))
      assert.deepStrictEqual(yield* h.session.resume(), unmet(signal("a")))
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual(yield* h.session.resume("a"), accepted)
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 a signal given early counts: it need not be given again when the rest holds", () =>
    Effect.gen(function* () {
      const instant = at((yield* Clock.currentTimeMillis) + 1000)
      const h = yield* pausedUntil(all(instant, signal("a")))
      assert.deepStrictEqual(yield* h.session.resume("a"), unmet(instant))
      yield* TestClock.adjust(1000)
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 an instant that passes while the rest does not hold ends nothing", () =>
    Effect.gen(function* () {
      const h = yield* pausedUntil(all(at((yield* Clock.currentTimeMillis) + 1000), signal("a")))
      yield* TestClock.adjust(5000)
      assert.isTrue(yield* paused(h))
      assert.deepStrictEqual(yield* h.session.resume(), unmet(signal("a")))
      assert.deepStrictEqual(yield* h.session.resume("a"), accepted)
    }).pipe(Effect.scoped, runtime)
  )

  for (const [name, end] of [
    ["its signal", (h: Harness) => h.session.resume("a")],
    ["its instant", () => TestClock.adjust(1000)],
    ["an input", (h: Harness) => h.session.submit(Input.followUp("f"))]
  ] as const) {
    on(`L-C3 any of them: ${name} alone ends it`, () =>
      Effect.gen(function* () {
        const h = yield* pausedUntil(any(signal("a"), at((yield* Clock.currentTimeMillis) + 1000), input))
        assert.isTrue(yield* paused(h))
        yield* end(h)
        assert.isFalse(yield* paused(h))
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-C3 nested: all of a signal and any of an instant or by hand", () =>
    Effect.gen(function* () {
      const instant = at((yield* Clock.currentTimeMillis) + 1000)
      const h = yield* pausedUntil(all(signal("a"), any(instant, all(manual, signal("b")))))
      assert.deepStrictEqual(yield* h.session.resume("b"), unmet(signal("a"), instant, manual))
      assert.deepStrictEqual(yield* h.session.resume("a"), unmet(instant, manual))
      yield* TestClock.adjust(1000)
      assert.isFalse(yield* paused(h))
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C3 `pause.requested` tells the conditions and those that are unmet", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const until = all(at(5), signal("a"))
      const h = yield* pausedUntil(until)
      const [event] = ofType(yield* h.events, "pause.requested")
      assert.deepStrictEqual([event?.until, event?.unmet], [until, [signal("a")]])
    }).pipe(Effect.scoped, runtime)
  )
})

const conditions = Arbitrary.schema(ResumeCondition.ResumeCondition)
const facts = Schema.Struct({
  manual: Schema.Boolean,
  signals: Schema.Array(Schema.Literals(["a", "b", "c"])),
  inputAccepted: Schema.Boolean,
  now: Schema.Int.check(Schema.isBetween({ minimum: -5, maximum: 5 }))
})
type Drawn = typeof facts.Type
const toFacts = (drawn: Drawn): ResumeCondition.Facts => ({ ...drawn, signals: new Set(drawn.signals) })

/** Small names and instants, so that facts and conditions meet. */
const narrow = (condition: ResumeCondition.ResumeCondition): ResumeCondition.ResumeCondition => {
  switch (condition._tag) {
    case "At":
      return Number.isFinite(condition.instant) ? at(Math.trunc(condition.instant) % 5) : condition
    case "Signal":
      return signal(["a", "b", "c"][condition.name.length % 3] ?? "a")
    case "All":
      return all(...condition.of.map(narrow))
    case "Any":
      return any(...condition.of.map(narrow))
    case "Manual":
    case "Input":
      return condition
  }
}

/** The ways a condition can come to hold: each a list of simple conditions that must all be met. */
type Way = ReadonlyArray<ResumeCondition.ResumeCondition>
const ways = (condition: ResumeCondition.ResumeCondition): ReadonlyArray<Way> => {
  if (condition._tag === "Any") return condition.of.flatMap(ways)
  if (condition._tag !== "All") return [[condition]]
  return condition.of.reduce<ReadonlyArray<Way>>(
    (sofar, each) => sofar.flatMap((way) => ways(each).map((more) => [...way, ...more])),
    [[]]
  )
}
const isMet = (simple: ResumeCondition.ResumeCondition, given: ResumeCondition.Facts): boolean =>
  (simple._tag === "Manual" && given.manual) ||
  (simple._tag === "Input" && given.inputAccepted) ||
  (simple._tag === "Signal" && given.signals.has(simple.name)) ||
  (simple._tag === "At" && given.now >= simple.instant)

const meet = (given: ResumeCondition.Facts, simple: ResumeCondition.ResumeCondition): ResumeCondition.Facts => ({
  manual: given.manual || simple._tag === "Manual",
  inputAccepted: given.inputAccepted || simple._tag === "Input",
  signals: simple._tag === "Signal" ? new Set([...given.signals, simple.name]) : given.signals,
  now: simple._tag === "At" ? Math.max(given.now, simple.instant) : given.now
})
const small = (condition: ResumeCondition.ResumeCondition) => JSON.stringify(condition).length < 600
const runs = { arbitrary: { runs: 300 } }

describe("L-C3 conditions", () => {
  it.prop(
    "L-C3 a condition holds exactly when one of the ways to meet it is met",
    { condition: conditions, drawn: facts },
    ({ condition, drawn }) => {
      const narrowed = narrow(condition)
      if (!small(narrowed)) return
      const given = toFacts(drawn)
      const expected = ways(narrowed).some((way) => way.every((simple) => isMet(simple, given)))
      assert.strictEqual(ResumeCondition.holds(narrowed, given), expected)
    },
    runs
  )

  it.prop(
    "L-C3 what is unmet is only what is not met, and meeting it makes the whole hold",
    { condition: conditions, drawn: facts },
    ({ condition, drawn }) => {
      const narrowed = narrow(condition)
      if (!ResumeCondition.canHold(narrowed)) return
      const given = toFacts(drawn)
      const missing = ResumeCondition.unmet(narrowed, given)
      assert.strictEqual(missing.length === 0, ResumeCondition.holds(narrowed, given))
      for (const simple of missing) assert.isFalse(isMet(simple, given))
      assert.isTrue(ResumeCondition.holds(narrowed, missing.reduce(meet, given)))
    },
    runs
  )

  it.prop(
    "L-C3 a condition that holds goes on holding, whatever else happens",
    { condition: conditions, drawn: facts, more: facts },
    ({ condition, drawn, more }) => {
      const narrowed = narrow(condition)
      const given = toFacts(drawn)
      const later: ResumeCondition.Facts = {
        manual: given.manual || more.manual,
        inputAccepted: given.inputAccepted || more.inputAccepted,
        signals: new Set([...drawn.signals, ...more.signals]),
        now: Math.max(given.now, more.now)
      }
      if (ResumeCondition.holds(narrowed, given)) assert.isTrue(ResumeCondition.holds(narrowed, later))
    },
    runs
  )
})
