/** C10 and A7 for everything else a caller is promised: controls, withdrawals, promotions and decisions are written before they answer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { type Ids, Input, type Receipt, ResumeCondition, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { followUp, isAnswered, writing } from "../support/admissions.ts"
import { fork, type Harness, inputId, open, types } from "../support/harness.ts"
import { duringRequest, type Gated, receipts, report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const id = Stores.sessionId
const accepted: Receipt.ControlReceipt = { accepted: true }
const allow = { _tag: "Allow" } as const
const deny = { _tag: "Deny", reason: "no" } as const

/** A generation whose only call waits for an answer. */
const asking = Effect.gen(function* () {
  const script = [ScriptedModel.call("edit", { path: "a" }, "edit-1"), ScriptedModel.text("done")]
  const policy: ToolPolicy.Service = () => Effect.succeed(ToolPolicy.ask("may it?"))
  const h = yield* open({ id, script }).pipe(Effect.provideService(ToolPolicy.ToolPolicy, policy))
  const generation = yield* h.prompt("do it", "p")
  yield* seen(h, "tool.approval_requested")
  const events = yield* h.events
  const call = events.flatMap((event) => (event.type === "tool.approval_requested" ? [event.call_id] : []))[0]
  return { ...h, id: generation, call: call ?? ("none" as Ids.ToolCallId) }
})

type Control = readonly [
  name: string,
  kind: Parameters<typeof Stores.hold>[1],
  act: (h: Gated) => Effect.Effect<Receipt.ControlReceipt | Receipt.Receipt>
]

const controls: ReadonlyArray<Control> = [
  ["a stop", "stop.requested", (h) => h.session.stop(h.id)],
  ["a cancel", "cancel.requested", (h) => h.session.cancel(h.id)],
  ["a pause", "pause.requested", (h) => h.session.pause()],
  ["a withdrawal", "steering.held", (h) => h.session.withdraw(inputId("f1"))],
  ["a promotion", "steering.accepted", (h) => h.session.promote(inputId("f1"), h.id, inputId("s1"))],
  ["a follow-up", "input.accepted", (h) => followUp(h, "f2")],
  ["a collect", "input.accepted", (h) => h.session.submit(Input.collect("c1", { id: "c1" }))],
  ["an ordinary steer", "input.accepted", (h) => h.session.submit(Input.steer("o1", { id: "o1" }))]
]

const waiting = Effect.gen(function* () {
  const h = yield* duringRequest({ id })
  assert.strictEqual(words(yield* followUp(h, "f1")), "queued")
  return h
})

describe("L-C10 nothing is answered before it is written", () => {
  for (const [name, kind, act] of controls) {
    law(`L-C10 ${name}`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          const asked = yield* writing(Stores.hold(store, kind), act(h))
          assert.isFalse(yield* isAnswered(asked.caller))
          yield* asked.release
          assert.isTrue((yield* Fiber.join(asked.caller)).accepted)
        })
      )
    )

    law(`L-C10 ${name}, asked for again while it is being written`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          const asked = yield* writing(Stores.hold(store, kind), act(h))
          const again = yield* fork(act(h))
          yield* Stores.settle
          const early = again.pollUnsafe()
          // Refusing it meanwhile is allowed; accepting what is not written is not.
          if (early !== undefined) assert.isFalse((yield* early).accepted)
          yield* asked.release
          assert.isTrue((yield* Fiber.join(asked.caller)).accepted)
        })
      )
    )
  }

  law("L-C10 a resume", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* open({ id, script: [] })
        yield* h.session.pause()
        const asked = yield* writing(Stores.hold(store, "resumed"), h.session.resume())
        assert.isFalse(yield* isAnswered(asked.caller))
        yield* asked.release
        assert.deepStrictEqual(yield* Fiber.join(asked.caller), accepted)
      })
    )
  )

  law("L-C10 a decision, and the call is not launched before", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* asking
        const asked = yield* writing(Stores.hold(store, "decision"), h.session.decide(h.call, allow))
        assert.isFalse(yield* isAnswered(asked.caller))
        assert.deepStrictEqual(h.began, [])
        yield* asked.release
        assert.deepStrictEqual(yield* Fiber.join(asked.caller), accepted)
        yield* report(h, h.id)
        assert.deepStrictEqual(h.began, ["edit"])
      })
    )
  )

  law("L-T13 of two decisions at once, one is accepted and the call goes by it", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* asking
        const first = yield* writing(Stores.hold(store, "decision"), h.session.decide(h.call, allow))
        const second = yield* fork(h.session.decide(h.call, deny))
        yield* Stores.settle
        yield* first.release
        assert.deepStrictEqual(yield* Fiber.join(first.caller), accepted)
        assert.deepStrictEqual(yield* Fiber.join(second), { accepted: false, reason: "already-decided" })
        yield* report(h, h.id)
        assert.deepStrictEqual(h.began, ["edit"])
      })
    )
  )

  for (const [name, kind, act] of controls.filter(([name]) => name !== "a stop" && name !== "a cancel")) {
    law(`L-C10 ${name} whose write certainly failed is refused storage-unavailable, and may be asked for again`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          Stores.once(store, kind, Stores.unavailable)
          const refused = yield* act(h)
          assert.isTrue(!refused.accepted && refused.reason === "storage-unavailable")
          assert.isTrue((yield* act(h)).accepted)
        })
      )
    )

    law(`L-A7 interrupting the caller of ${name} changes nothing`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          const asked = yield* writing(Stores.hold(store, kind), act(h))
          yield* Fiber.interrupt(asked.caller)
          yield* asked.release
          yield* Stores.settle
          const told = yield* h.events
          assert.include(types(told), kind)
        })
      )
    )
  }

  for (const how of ["stop", "cancel"] as const) {
    law(`L-C10 a ${how} whose write failed is not accepted, and its generation does not end by it`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          Stores.once(store, `${how}.requested`, Stores.unavailable)
          assert.deepStrictEqual(yield* h.session[how](h.id), { accepted: false, reason: "storage-unavailable" })
          yield* h.go
          yield* Stores.settle
          const later = yield* Stores.boot(store.service, { script: [] })
          const told = types(yield* later.events)
          assert.notInclude(told, `${how}.requested`)
          assert.notInclude(told, "generation.stopped")
          assert.notInclude(told, "generation.cancelled")
        })
      )
    )

    law(`L-A7 interrupting the caller of a ${how} changes nothing`, () =>
      Stores.on((store) =>
        Effect.gen(function* () {
          const h = yield* waiting
          const asked = yield* writing(
            Stores.hold(store, `${how}.requested`),
            h.session[how](h.id, { followUps: "hold" })
          )
          yield* Fiber.interrupt(asked.caller)
          yield* h.go
          yield* asked.release
          assert.strictEqual((yield* report(h, h.id)).outcome, how === "stop" ? "stopped" : "cancelled")
        })
      )
    )
  }
})

/** What is said of a queued input, and whether a generation ever took it. */
const fate = (h: Harness, name: string) =>
  Effect.map(Effect.zip(h.receipt(name), h.events), ([receipt, events]) => ({
    receipt: words(receipt),
    started: events.some((event) => event.type === "generation.started" && event.input_ids.includes(inputId(name)))
  }))

/** Lets the write that is held land once nothing else can go on, and tells that it was accepted. */
const acceptedLate = (caller: Fiber.Fiber<Receipt.ControlReceipt>, release: Effect.Effect<void>) =>
  Effect.gen(function* () {
    yield* Stores.settle
    yield* release
    assert.deepStrictEqual(yield* Fiber.join(caller), accepted)
    yield* Stores.settle
  })

/** Asks for a control that holds an input while the end is being written, so that it is written after it. */
const acceptedAfter = (
  store: Stores.Watched,
  ending: Effect.Success<ReturnType<typeof Stores.hold>>,
  ask: Effect.Effect<Receipt.ControlReceipt>
) =>
  Effect.gen(function* () {
    yield* ending.reached
    const caller = yield* fork(ask)
    const held = yield* Stores.hold(store, "steering.held")
    yield* ending.release
    yield* held.reached
    yield* acceptedLate(caller, held.release)
  })

describe("L-A7 what waits while its fate is being written", () => {
  law("L-F8 a follow-up whose withdrawal is being written is started by nobody", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* waiting
        const ending = yield* Stores.hold(store, "generation.finished")
        yield* h.go
        yield* acceptedAfter(store, ending, h.session.withdraw(inputId("f1")))
        assert.deepStrictEqual(yield* fate(h, "f1"), { receipt: "held withdrawn", started: false })
      })
    )
  )

  law("L-F8 a collect whose withdrawal is being written is not started when its debounce is over", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* open({ id, script: [ScriptedModel.text("one")] })
        yield* h.session.submit(Input.collect("c1", { id: "c1" }))
        const withdrawn = yield* writing(Stores.hold(store, "steering.held"), h.session.withdraw(inputId("c1")))
        yield* TestClock.adjust("1 second")
        yield* acceptedLate(withdrawn.caller, withdrawn.release)
        assert.deepStrictEqual(yield* fate(h, "c1"), { receipt: "held withdrawn", started: false })
      })
    )
  )

  law("L-C6 what a cancel is about to hold is started by nobody", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* waiting
        const ending = yield* Stores.hold(store, "generation.cancelled")
        yield* h.session.cancel(h.id)
        yield* acceptedAfter(store, ending, h.session.cancel(h.id, { followUps: "hold" }))
        assert.deepStrictEqual(yield* fate(h, "f1"), { receipt: "held generation-cancelled", started: false })
      })
    )
  )

  law("L-F9 the same promotion, asked for while it is being written, gets the same receipt", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* waiting
        const promote = h.session.promote(inputId("f1"), h.id, inputId("s1"))
        const first = yield* writing(Stores.hold(store, "steering.accepted"), promote)
        const again = yield* fork(promote)
        yield* first.release
        assert.deepStrictEqual(yield* Fiber.join(again), yield* Fiber.join(first.caller))
      })
    )
  )

  law("L-I2 a promotion under an id that is being admitted waits for it and conflicts", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* waiting
        const steered = yield* writing(Stores.hold(store, "steering.accepted"), h.steer(h.id, "mine", { id: "s1" }))
        const promoted = yield* fork(h.session.promote(inputId("f1"), h.id, inputId("s1")))
        yield* Stores.settle
        yield* steered.release
        assert.strictEqual(words(yield* Fiber.join(steered.caller)), "queued")
        assert.strictEqual(words(yield* Fiber.join(promoted)), "refused identity-conflict")
        assert.deepStrictEqual(yield* receipts(h, "f1"), ["queued"])
        assert.strictEqual(store.appends.filter((each) => Stores.carries(each, "steering.accepted")).length, 1)
      })
    )
  )

  law("L-F9 a follow-up whose promotion failed is still queued, and starts", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* waiting
        Stores.once(store, "steering.accepted", Stores.unavailable)
        const promoted = yield* h.session.promote(inputId("f1"), h.id, inputId("s1"))
        assert.strictEqual(words(promoted), "refused storage-unavailable")
        assert.deepStrictEqual(yield* receipts(h, "f1", "s1"), ["queued", "none"])
        yield* h.go
        yield* Effect.orDie(h.session.awaitIdle)
        assert.deepStrictEqual(yield* receipts(h, "f1"), ["applied in 1"])
      })
    )
  )

  law("L-C3 a signal that was written counts, also when its caller was interrupted", () =>
    Stores.on((store) =>
      Effect.gen(function* () {
        const h = yield* open({ id, script: [] })
        yield* h.session.pause({ until: ResumeCondition.signal("go") })
        const asked = yield* writing(Stores.hold(store, "resumed"), h.session.resume("go"))
        yield* Fiber.interrupt(asked.caller)
        yield* asked.release
        yield* seen(h, "pause.ended")
        assert.isTrue(Option.isNone(yield* h.session.generation))
      })
    )
  )
})
