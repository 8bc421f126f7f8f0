/** T11 and T13: who is asked before a call, and what becomes of a call while it waits for the answer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { AgentRuntime, Event, type Ids, Input, ToolPolicy, ToolScope } from "../../src/index.ts"
import { answers, type Batch, open, type Options, told } from "../support/batches.ts"
import { toolResults, userTexts } from "../support/harness.ts"
import { ofType, seen, seenType } from "../support/providers.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const allow = { _tag: "Allow" } as const
const deny = (reason: string) => ({ _tag: "Deny", reason }) as const

/** Asks about the calls of these paths. */
const asking =
  (...paths: ReadonlyArray<string>): ToolPolicy.Service =>
  (call) =>
    Effect.succeed(paths.includes(call.providerId) ? ToolPolicy.ask(`run ${call.providerId}?`) : ToolPolicy.allow)

/** Waits until the host is asked about the call of this path, and answers the call's id. */
const asked = (batch: Batch, path: string): Effect.Effect<Ids.ToolCallId> =>
  Effect.andThen(
    seen(batch.session, (event) => event.type === "tool.approval_requested" && event.provider_call_id === path),
    batch.callId(path)
  )

const decide = (batch: Batch, path: string, decision: typeof allow | ReturnType<typeof deny>) =>
  Effect.flatMap(batch.callId(path), (id) => batch.session.decide(id, decision))

/** A batch whose only call, `write:a`, waits for an answer about it. */
const waiting = (free: Options["free"] = []) =>
  Effect.gen(function* () {
    const batch = yield* open({ calls: ["write:a"], free, policy: asking("a") })
    return { ...batch, call: yield* asked(batch, "a") }
  })

/** Lets everything that can go on go on. */
const settle = TestClock.adjust("1 minute")

/** The paths that were asked about, in order. */
const askedAbout = (batch: Batch) =>
  Effect.map(batch.events, (events) => ofType(events, "tool.approval_requested").map((event) => event.provider_call_id))

describe("L-T11 a tool's own needsApproval", () => {
  on("L-T11 `true` is asked although no policy is set", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["careful:a"] })
      yield* asked(batch, "a")
      yield* settle
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T11 a policy that allows cannot relax it", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["careful:a"], policy: () => Effect.succeed(ToolPolicy.allow) })
      yield* asked(batch, "a")
      yield* settle
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  for (const [what, tool, policy] of [
    ["a function", "choosy", {}],
    ["an effect", "asked", { policy: () => Effect.succeed(ToolPolicy.allow) }]
  ] as const) {
    on(`L-T11 ${what} is asked with the call's parameters, and only what it says is asked about`, () =>
      Effect.gen(function* () {
        const batch = yield* open({ calls: [`${tool}:risky`, `${tool}:safe`], free: "all", ...policy })
        yield* asked(batch, "risky")
        yield* batch.entered("safe")
        yield* decide(batch, "risky", allow)
        assert.deepStrictEqual(told(yield* batch.report), ["risky Completed", "safe Completed"])
        assert.deepStrictEqual(yield* askedAbout(batch), ["risky"])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-T11 one that dies launches nothing", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["broken:a"], free: "all" })
      const report = yield* batch.report
      assert.deepStrictEqual(
        report.tools.map((tool) => tool.status._tag),
        ["Denied"]
      )
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T11 a policy may tighten: it asks about a tool that asks nothing itself", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* settle
      assert.deepStrictEqual(batch.began, [])
      const [event] = ofType(yield* batch.events, "tool.approval_requested")
      assert.strictEqual(event?.reason, "run a?")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T11 a policy may tighten further: it denies what the tool would have asked about", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["careful:a"], policy: () => Effect.succeed(ToolPolicy.deny("never")) })
      assert.deepStrictEqual(told(yield* batch.report), ["a Denied never"])
      assert.deepStrictEqual(yield* askedAbout(batch), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T11 when both ask, the host is asked once, with the policy's question", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["careful:a"], free: "all", policy: asking("a") })
      yield* asked(batch, "a")
      yield* decide(batch, "a", allow)
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
      assert.deepStrictEqual(
        ofType(yield* batch.events, "tool.approval_requested").map((event) => event.reason),
        ["run a?"]
      )
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T13 the question and the answer", () => {
  on("L-T13 the question is an event with the call, its tool and its parameters, and nothing has started", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      const events = yield* batch.events
      const [event] = ofType(events, "tool.approval_requested")
      assert.deepStrictEqual(
        [event?.call_id, event?.tool, event?.params, event?.request],
        [batch.call, "write", { path: "a" }, 1]
      )
      assert.deepStrictEqual(ofType(events, "tool.started"), [])
      assert.deepStrictEqual(ofType(events, "tools.admitted"), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 it delays no unrelated call, also where calls run one at a time", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b", "write:c"], policy: asking("a") })
      yield* batch.entered("b")
      yield* batch.release("b")
      yield* batch.entered("c")
      yield* batch.release("c")
      yield* settle
      assert.deepStrictEqual(batch.began, ["b", "c"])
      yield* decide(batch, "a", allow)
      yield* batch.entered("a")
      yield* batch.release("a")
      yield* batch.report
      assert.deepStrictEqual(answers(batch.model.requests[1]), ["a did a", "b did b", "c did c"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 Allow launches the call, which keeps its real result", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      assert.deepStrictEqual(yield* batch.session.decide(batch.call, allow), { accepted: true })
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
      assert.deepStrictEqual(answers(batch.model.requests[1]), ["a did a"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 Deny denies the call with the reason, to the report, the events and the model", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      yield* decide(batch, "a", deny("not before Monday"))
      assert.deepStrictEqual(told(yield* batch.report), ["a Denied not before Monday"])
      assert.deepStrictEqual(
        ofType(yield* batch.events, "tool.denied").map((event) => event.reason),
        ["not before Monday"]
      )
      assert.include(toolResults(batch.model.requests[1])[0]?.result, "not before Monday")
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 two questions are answered in any order, and the results go in the order requested", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "write:b"], free: "all", policy: asking("a", "b") })
      yield* asked(batch, "a")
      yield* asked(batch, "b")
      yield* decide(batch, "b", allow)
      yield* batch.entered("b")
      yield* decide(batch, "a", deny("no"))
      assert.deepStrictEqual(told(yield* batch.report), ["a Denied no", "b Completed"])
      assert.deepStrictEqual(
        toolResults(batch.model.requests[1]).map((result) => result.id),
        ["a", "b"]
      )
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a second answer is refused, and the first stands", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.decide(batch.call, allow)
      const refused = { accepted: false, reason: "already-decided" } as const
      assert.deepStrictEqual(yield* batch.session.decide(batch.call, deny("no")), refused)
      yield* batch.entered("a")
      assert.deepStrictEqual(yield* batch.session.decide(batch.call, deny("no")), refused)
      yield* batch.release("a")
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
      assert.deepStrictEqual(yield* batch.session.decide(batch.call, deny("no")), refused)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 an answer about a call that was never requested is refused", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      const other = `${batch.id}.1.9` as Ids.ToolCallId
      assert.deepStrictEqual(yield* batch.session.decide(other, allow), { accepted: false, reason: "unknown-id" })
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 answering the provider's id instead of the runtime's is refused", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      const receipt = yield* batch.session.decide("a" as Ids.ToolCallId, allow)
      assert.deepStrictEqual(receipt, { accepted: false, reason: "unknown-id" })
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T13 a correction meanwhile", () => {
  for (const scope of [undefined, ToolScope.tools("write")]) {
    const which = scope === undefined ? "about all work" : "about the tool"
    on(`L-T13 a correction ${which} ends the waiting call not-started(steering), and a later answer is refused`, () =>
      Effect.gen(function* () {
        const batch = yield* waiting()
        yield* batch.steer("rather not", { id: "s", ...(scope === undefined ? {} : { scope }) })
        assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted steering s"])
        assert.isFalse((yield* batch.session.decide(batch.call, allow)).accepted)
        assert.deepStrictEqual(userTexts(batch.model.requests[1]), ["go", "rather not"])
        assert.deepStrictEqual(batch.began, [])
      }).pipe(Effect.scoped, runtime)
    )
  }

  for (const scope of [ToolScope.none, ToolScope.tools("read")]) {
    const which = scope.tools.length === 0 ? "about nothing" : "about another tool"
    on(`L-T13 a correction ${which} leaves it waiting, and it is launched when allowed`, () =>
      Effect.gen(function* () {
        const batch = yield* waiting("all")
        yield* batch.steer("by the way", { id: "s", scope })
        yield* settle
        assert.deepStrictEqual(yield* decide(batch, "a", allow), { accepted: true })
        assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
        assert.deepStrictEqual(userTexts(batch.model.requests[1]), ["go", "by the way"])
      }).pipe(Effect.scoped, runtime)
    )
  }

  on("L-T13 after an Allow the corrections are looked at again: one that came before the launch withholds it", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      yield* batch.session.pause()
      assert.deepStrictEqual(yield* decide(batch, "a", allow), { accepted: true })
      yield* batch.steer("no", { id: "s" })
      yield* batch.session.resume()
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted steering s"])
      assert.deepStrictEqual(batch.began, [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a correction withdraws the waiting call alone: what runs beside it keeps its result", () =>
    Effect.gen(function* () {
      const batch = yield* open({ calls: ["write:a", "read:b"], concurrency: 2, policy: asking("a") })
      yield* asked(batch, "a")
      yield* batch.entered("b")
      yield* batch.steer("no", { id: "s" })
      yield* batch.release("b")
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted steering s", "b Completed"])
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T13 the end of the generation meanwhile", () => {
  on("L-T13 a stop ends the waiting call not-started(stopped), and a later answer is refused", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.stop(batch.id)
      assert.isFalse((yield* batch.session.decide(batch.call, allow)).accepted)
      const report = yield* batch.report
      assert.deepStrictEqual([report.outcome, ...told(report)], ["stopped", "a NotStarted stopped"])
      assert.isFalse((yield* batch.session.decide(batch.call, allow)).accepted)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a cancel ends the waiting call not-started(cancelled): it was never running", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.cancel(batch.id)
      assert.isFalse((yield* batch.session.decide(batch.call, allow)).accepted)
      const report = yield* batch.report
      assert.deepStrictEqual([report.outcome, ...told(report)], ["cancelled", "a NotStarted cancelled"])
      assert.deepStrictEqual(ofType(yield* batch.events, "tool.interrupted"), [])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a close ends the waiting call not-started(closed)", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const batch = yield* Scope.provide(waiting(), scope)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted closed"])
      assert.isFalse((yield* batch.session.decide(batch.call, allow)).accepted)
      assert.strictEqual((yield* batch.events).filter(Event.isTerminal).length, 1)
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-T13 a pause meanwhile", () => {
  on("L-T13 an unscoped pause delays the launch and not the answer", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      yield* batch.session.pause()
      assert.deepStrictEqual(yield* decide(batch, "a", allow), { accepted: true })
      yield* settle
      assert.deepStrictEqual(batch.began, [])
      yield* batch.session.resume()
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 during an unscoped pause a Deny is told at once", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.pause()
      yield* decide(batch, "a", deny("no"))
      yield* seenType(batch.session, "tool.denied")
      assert.strictEqual((yield* batch.session.status).pauses.length, 1)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a waiting call is not running: a pause takes effect while it waits", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.pause()
      yield* settle
      assert.strictEqual(ofType(yield* batch.events, "pause.effective").length, 1)
      assert.strictEqual((yield* batch.session.status).generation?.phase._tag, "Paused")
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a pause about the tool leaves the call waiting, and makes it not-started(paused) at its launch", () =>
    Effect.gen(function* () {
      const batch = yield* waiting()
      yield* batch.session.pause({ scope: ToolScope.tools("write") })
      yield* settle
      assert.deepStrictEqual(yield* decide(batch, "a", allow), { accepted: true })
      assert.deepStrictEqual(told(yield* batch.report), ["a NotStarted paused"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a pause about the tool that ends before the answer changes nothing", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      yield* batch.session.pause({ scope: ToolScope.tools("write") })
      yield* batch.session.resume()
      yield* decide(batch, "a", allow)
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-T13 a follow-up accepted while a call waits neither withdraws nor launches it", () =>
    Effect.gen(function* () {
      const batch = yield* waiting("all")
      yield* batch.session.submit(Input.followUp("later"))
      yield* settle
      assert.deepStrictEqual(batch.began, [])
      yield* decide(batch, "a", allow)
      assert.deepStrictEqual(told(yield* batch.report), ["a Completed"])
    }).pipe(Effect.scoped, runtime)
  )
})
