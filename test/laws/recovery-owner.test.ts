/** R4 to R7, I3 and the reports that asked for them: one owner, a journal that is whole, and what waits is neither lost nor doubled. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  AgentRuntime,
  ContextPreparation,
  type Event,
  type Ids,
  Input,
  type SessionStore
} from "../../src/index.ts"
import * as Digest from "../../src/ledger/Digest.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { fork, inputId, type Options, record, types, userTexts } from "../support/harness.ts"
import { receipts, report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const answers = ["one", "two", "three", "four"].map((text) => ScriptedModel.text(text))
const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))

/** A process whose first call is running until it is let go or interrupted. */
const working = (store: Stores.Watched, options: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const interrupted = yield* Deferred.make<void>()
    const script = [ScriptedModel.call("edit", { path: "a" }, "a"), ...answers]
    const edit = () =>
      Effect.onInterrupt(Effect.as(Deferred.await(gate), "did"), () => Deferred.succeed(interrupted, undefined))
    const h = yield* Stores.boot(store.service, { script, edit, ...options })
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, "tool.started")
    return {
      ...h,
      id,
      go: Deferred.succeed(gate, undefined),
      cut: Effect.andThen(Stores.settle, Deferred.isDone(interrupted))
    }
  })

type Working = Effect.Success<ReturnType<typeof working>>

/** What everybody who holds a session that can no longer be written is told. */
const told = (h: Working, reason: string) =>
  Effect.gen(function* () {
    const reasonOf = (error: { readonly _tag: string }) =>
      "reason" in error ? (error.reason as { readonly _tag: string })._tag : error._tag
    assert.strictEqual(reasonOf(yield* Effect.flip(h.session.await(h.id))), reason)
    assert.strictEqual(reasonOf(yield* Effect.flip(h.session.awaitIdle)), reason)
    const reader = yield* record(h.session.events())
    const ended = yield* reader.ended
    assert.strictEqual(ended._tag, "Failure")
    assert.strictEqual(words(yield* h.steer(h.id, "late", { id: "late" })), "refused storage-unavailable")
    for (const input of [
      Input.followUp("x", { id: "x" }),
      Input.collect("x", { id: "y" }),
      Input.steer("x", { id: "z" })
    ]) {
      assert.strictEqual(words(yield* h.session.submit(input)), "refused storage-unavailable")
    }
    assert.deepStrictEqual(yield* h.session.pause(), { accepted: false, reason: "storage-unavailable" })
    assert.strictEqual((yield* h.session.stop(h.id)).accepted, false)
    assert.strictEqual((yield* h.session.cancel(h.id)).accepted, false)
  }).pipe(Effect.scoped)

describe("L-R4 one owner", () => {
  law("L-R4 the older owner's next write fails: its work is interrupted, and its callers are told", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      const waiting = yield* fork(Effect.flip(old.session.await(old.id)))
      const young = yield* Stores.boot(disk, { script: answers })
      const submitted = yield* old.steer(old.id, "s1", { id: "s1" })
      assert.strictEqual(words(submitted), "refused storage-unavailable")
      assert.isTrue(yield* old.cut)
      assert.strictEqual((yield* Fiber.join(waiting))._tag, "SessionError")
      yield* told(old, "OwnerLost")
      assert.strictEqual((yield* report(young, old.id)).outcome, "failed")
      assert.isTrue(Option.isNone(yield* young.session.receipt(inputId("s1"))))
    })
  )

  law("L-R4 the older owner publishes nothing of a call that ended after it was fenced", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      const reader = yield* record(old.session.events())
      yield* Stores.settle
      const before = reader.got.length
      yield* Stores.boot(disk, { script: answers })
      yield* old.go
      yield* Stores.settle
      assert.strictEqual(reader.got.length, before)
      assert.strictEqual((yield* reader.ended)._tag, "Failure")
      assert.strictEqual(old.model.requests.length, 1)
    }).pipe(Effect.scoped)
  )

  law("L-R4 the older owner repeats nothing as true that the new one has settled", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      const f1 = Input.followUp("f1", { id: "f1" })
      assert.strictEqual(words(yield* old.session.submit(f1)), "queued")
      const young = yield* Stores.boot(disk, { script: answers })
      yield* Effect.orDie(young.session.awaitIdle)
      assert.deepStrictEqual(yield* receipts(young, "f1"), ["applied in 1"])
      yield* old.steer(old.id, "s1", { id: "s1" })
      assert.strictEqual(words(yield* old.session.submit(f1)), "refused storage-unavailable")
    })
  )

  law("L-R4 closing the older owner returns at once and writes nothing", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      yield* Stores.boot(disk, { script: answers })
      yield* old.steer(old.id, "s1", { id: "s1" })
      const before = yield* Stores.stored(disk)
      const closed = yield* fork(old.close)
      yield* Stores.settle
      assert.isDefined(closed.pollUnsafe())
      assert.deepStrictEqual(yield* Stores.stored(disk), before)
    })
  )

  law("L-R4 an open id is not shared with another agent or other options", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const made = (recovery: "settle" | "resume", agent: Agent.Agent<{}>) =>
        Effect.flatMap(AgentRuntime.AgentRuntime, (runtime) => runtime.open(agent, { id: Stores.sessionId, recovery }))
      const one = Agent.make({ name: "one", instructions: "" })
      const model = yield* ScriptedModel.make([])
      const got = yield* Stores.over(
        store.service,
        Effect.gen(function* () {
          const first = yield* made("settle", one)
          assert.strictEqual(yield* made("settle", one), first)
          const errors = [
            yield* Effect.flip(made("resume", one)),
            yield* Effect.flip(made("settle", Agent.make({ name: "one", instructions: "" })))
          ]
          return errors.map((error) => error.reason._tag)
        }).pipe(Effect.provide(model.layer))
      )
      assert.deepStrictEqual(got, ["InUse", "InUse"])
    })
  )
})

type Claim = SessionStore.Claim
const second = (claim: Claim, change: (entry: SessionStore.StoredEntry) => SessionStore.StoredEntry): Claim => ({
  ...claim,
  entries: claim.entries.map((entry, index) => (index === 1 ? change(entry) : entry))
})

const tampered: ReadonlyArray<readonly [string, (claim: Claim) => Claim]> = [
  ["an unknown kind", (claim) => second(claim, (entry) => ({ ...entry, kind: "prophecy" }))],
  ["a kind that is another's", (claim) => second(claim, (entry) => ({ ...entry, kind: "message" }))],
  ["a body that is no event", (claim) => second(claim, (entry) => ({ ...entry, body: { type: "nonsense" } }))],
  ["a body of another shape", (claim) => second(claim, (entry) => ({ ...entry, body: "{" }))],
  ["a snapshot that was changed", (claim) => ({ ...claim, snapshot: { position: 0, body: "{}", checksum: "0" } })],
  [
    "a snapshot of another shape",
    (claim) => ({ ...claim, snapshot: { position: 0, body: "{}", checksum: Digest.short("0 snapshot {}") } })
  ]
]

describe("L-R5 a journal that cannot be read", () => {
  for (const [name, change] of tampered) {
    law(`L-R5 ${name} is refused with a clear error, and left untouched`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        yield* working(store)
        const before = yield* Stores.stored(disk)
        const watched = Stores.watch({ ...disk, claim: (id, agent) => Effect.map(disk.claim(id, agent), change) })
        const error = yield* Effect.flip(Stores.booting(watched.service, { script: answers }))
        assert.strictEqual(error.reason._tag, "JournalCorrupt")
        assert.isAbove(error.message.length, 40)
        assert.strictEqual(watched.appends.length, 0)
        assert.deepStrictEqual(yield* Stores.stored(disk), before)
      })
    )
  }

  law("L-R5 a newer format is refused by its number", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const claim = () => Stores.fails({ _tag: "TooNew", format: 2, supported: 1 })
      const error = yield* Effect.flip(Stores.booting({ ...disk, claim }, { script: answers }))
      assert.deepStrictEqual(error.reason, { _tag: "JournalTooNew", format: 2, supported: 1 })
    })
  )

  law("L-R5 after a refusal the id is free to be opened again", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      let broken = true
      const claim: typeof disk.claim = (id, agent) =>
        broken ? Stores.fails({ _tag: "Unavailable", detail: "not yet" }) : disk.claim(id, agent)
      const error = yield* Effect.flip(Stores.booting({ ...disk, claim }, { script: answers }))
      assert.strictEqual(error.reason._tag, "StorageUnavailable")
      broken = false
      const h = yield* Stores.boot({ ...disk, claim }, { script: answers })
      assert.strictEqual((yield* report(h, yield* h.prompt("now", "p"))).outcome, "finished")
    })
  )
})

describe("L-R6 what waits", () => {
  for (const end of ["a crash", "a clean close"] as const) {
    law(`L-R6 two follow-ups and a collect group are the same after ${end}, in order`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const old = yield* working(store)
        for (const name of ["f1", "f2"]) yield* old.session.submit(Input.followUp(name, { id: name }))
        for (const name of ["c1", "c2"]) yield* old.session.submit(Input.collect(name, { id: name }))
        if (end === "a clean close") yield* old.close
        else store.fate = () => Effect.never
        const h = yield* Stores.boot(disk, { script: answers })
        assert.deepStrictEqual((yield* h.session.status).queuedInputIds, ["f1", "f2", "c1", "c2"].map(inputId))
        assert.isTrue(Option.isNone(yield* h.session.generation))
        yield* Stores.settle
        yield* TestClock.adjust("1 second")
        yield* Effect.orDie(h.session.awaitIdle)
        const starts = (yield* h.events).flatMap((event) =>
          event.type === "generation.started" ? [event.input_ids] : []
        )
        assert.deepStrictEqual(
          starts.slice(1),
          [["f1"], ["f2"], ["c1", "c2"]].map((ids) => ids.map(inputId))
        )
        assert.deepStrictEqual(userTexts(h.model.requests[2]).slice(-2), ["c1", "c2"])
      })
    )
  }

  law("case 43: messages queued while nothing ran are drained when the session is opened", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* Stores.boot(store.service, { script: answers })
      yield* Stores.hold(store, "generation.started", () => Effect.never)
      yield* old.session.submit(Input.collect("c1", { id: "c1" }))
      const h = yield* Stores.boot(disk, { script: answers })
      yield* TestClock.adjust("1 second")
      yield* Effect.orDie(h.session.awaitIdle)
      assert.deepStrictEqual(yield* receipts(h, "c1"), ["applied in 1"])
    })
  )

  law("case 44: a restart drops nothing: what was queued is held, with its content, or still waits", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      yield* old.steer(old.id, "keep me", { id: "s1", metadata: { from: "phone" } })
      store.fate = () => Effect.never
      const h = yield* Stores.boot(disk, { script: answers })
      assert.deepStrictEqual(yield* receipts(h, "s1"), ["held process-lost"])
      const [held] = yield* h.session.held
      assert.deepStrictEqual([held?.input.content, held?.input.metadata], ["keep me", { from: "phone" }])
    })
  )

  law("case 45: nothing is acknowledged that a restart would lose", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      const held = yield* Stores.hold(store, "input.accepted", () => Effect.never)
      const submitted = yield* fork(old.session.submit(Input.followUp("f1", { id: "f1" })))
      yield* held.reached
      yield* Stores.settle
      assert.isUndefined(submitted.pollUnsafe())
      const h = yield* Stores.boot(disk, { script: answers })
      assert.deepStrictEqual(yield* receipts(h, "f1"), ["none"])
    })
  )

  for (const [recovery, host, request] of [
    ["settle", "trusts the runtime", "applied in 2"],
    ["resume", "trusts the runtime", "applied in 2"],
    // What the host prepares is asked for between the delivery and its request.
    ["settle", "prepares its requests", "applied"],
    ["resume", "prepares its requests", "applied in 2"]
  ] as const) {
    law(
      `case 24, ${recovery}, a host that ${host}: a steer applied in the last step before a restart is applied once`,
      () =>
        Effect.gen(function* () {
          const { disk, store } = yield* fresh
          const old = yield* Effect.provideService(
            working(store),
            ContextPreparation.ContextPreparation,
            host === "prepares its requests" ? Effect.succeed : ContextPreparation.identity
          )
          yield* old.steer(old.id, "s1", { id: "s1" })
          const held = yield* Stores.hold(store, "steering.applied", (land) => Effect.andThen(land, Effect.never))
          yield* old.go
          yield* held.reached
          yield* held.release
          yield* Stores.settle
          const h = yield* Stores.boot(disk, { script: answers, open: { recovery } })
          yield* Effect.orDie(h.session.awaitIdle)
          const again = yield* h.steer(old.id, "s1", { id: "s1" })
          assert.strictEqual(words(again), request)
          const { content } = yield* Effect.orDie(h.session.context)
          assert.strictEqual(content.filter((message) => Input.idOfMessage(message) === "s1").length, 1)
        })
    )
  }

  law("L-I3 a submit that was written and whose answer was lost is the same input after reopening", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const old = yield* working(store)
      yield* Stores.hold(store, "input.accepted", (land) => Effect.andThen(land, Effect.never)).pipe(
        Effect.flatMap(({ release }) => release)
      )
      const f1 = Input.followUp("f1", { id: "f1" })
      yield* fork(old.session.submit(f1))
      yield* Stores.settle
      const h = yield* Stores.boot(disk, { script: answers })
      yield* h.session.submit(f1)
      yield* Effect.orDie(h.session.awaitIdle)
      assert.strictEqual(words(yield* h.session.submit(f1)), "applied in 1")
      assert.strictEqual(h.model.requests.length, 1)
      assert.strictEqual(
        words(yield* h.session.submit(Input.followUp("other", { id: "f1" }))),
        "refused identity-conflict"
      )
    })
  )
})

/** Appends that carry this fail, by what a store may say of it. */
const failures: ReadonlyArray<readonly [string, Stores.Fate]> = [
  ["certainly fails", Stores.unavailable],
  ["is in doubt and did not land", Stores.vanishes]
]

describe("L-R7 a write that fails after admission", () => {
  for (const [name, fate] of failures) {
    law(`L-R7 when it ${name}, work is interrupted, nothing is started or published, and the next open recovers`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const old = yield* working(store)
        yield* old.session.submit(Input.followUp("f1", { id: "f1" }))
        const reader = yield* record(old.session.events())
        yield* Stores.settle
        const before = reader.got.length
        Stores.once(store, "tool.completed", fate)
        yield* old.go
        yield* Stores.settle
        yield* told(old, "StorageUnavailable")
        assert.strictEqual(reader.got.length, before)
        assert.strictEqual(old.model.requests.length, 1)
        const h = yield* Stores.boot(disk, { script: answers })
        assert.strictEqual((yield* report(h, old.id)).tools[0]?.status._tag, "Interrupted")
        yield* Effect.orDie(h.session.awaitIdle)
        assert.deepStrictEqual(yield* receipts(h, "f1"), ["applied in 1"])
      }).pipe(Effect.scoped)
    )
  }

  law("L-R7 a call that runs when the journal is lost is interrupted", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const old = yield* working(store)
      Stores.once(store, "stop.requested", Stores.unavailable)
      assert.strictEqual((yield* old.session.stop(old.id)).accepted, false)
      assert.isTrue(yield* old.cut)
    })
  )

  law("L-R7 a write in doubt that landed goes on", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const old = yield* working(store)
      Stores.once(store, "tool.completed", Stores.landsUnconfirmed)
      yield* old.go
      assert.strictEqual((yield* report(old, old.id)).outcome, "finished")
    })
  )
})

describe("L-A6 a flood of refusals", () => {
  law("L-A6 100,000 refusals grow neither the journal nor what the session holds", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const h = yield* working(store)
      const status = yield* h.session.status
      const appends = store.appends.length
      const before = yield* Stores.stored(disk)
      const generation = "gen_of_another_day" as Ids.GenerationId
      for (let n = 0; n < 100_000; n++) {
        const receipt = yield* h.steer(generation, "x", { id: `r${n}` })
        if (receipt.accepted) assert.fail("it was accepted")
      }
      assert.deepStrictEqual(yield* h.session.status, status)
      assert.strictEqual(store.appends.length, appends)
      assert.deepStrictEqual(yield* Stores.stored(disk), before)
      assert.deepStrictEqual(yield* receipts(h, "r0", "r99999"), ["none", "none"])
      yield* h.go
      assert.notInclude(types(yield* h.events), "input.refused" satisfies Event.SessionEvent["type"])
    })
  )
})
