/** Faults that a review found in what a host, a store or a provider hands over: refused or told, and nothing hangs. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Scope } from "effect"
import { Prompt, type Response } from "effect/ai"
import { TestClock } from "effect/testing"
import {
  Agent,
  AgentRuntime,
  ContextStore,
  type Event,
  Input,
  ResumeCondition,
  type SessionStore,
  ToolPolicy
} from "../../src/index.ts"
import { ScriptedModel, StrictPrompt } from "../../src/testing/index.ts"
import * as Contexts from "../support/contexts.ts"
import { fork, type Harness, inputId, open, toolResults } from "../support/harness.ts"
import { ofType, pairs, said } from "../support/providers.ts"
import { duringRequest, receipts, report, seen, words } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"
import * as Truth from "../support/truth.ts"

const law = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))
const edits = ScriptedModel.call("edit", { path: "a" }, "c1")
const done = [ScriptedModel.text("done"), ScriptedModel.text("done again"), ScriptedModel.text("done at last")]

/** What an effect came to, which may not take longer than the fibers and the grace time do. */
const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* fork(effect)
    yield* Stores.settle
    yield* TestClock.adjust("1 minute")
    yield* Stores.settle
    assert.isDefined(fiber.pollUnsafe(), "it hangs")
    return yield* Fiber.join(fiber)
  })

const lies = (h: Pick<Harness, "session">, ...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const given = yield* Effect.forEach(ids, (id) => h.session.receipt(inputId(id)))
    const story = yield* Truth.told(
      h.session,
      given.flatMap((receipt) => (receipt._tag === "Some" ? [receipt.value] : []))
    )
    return [...Truth.lies(story), ...Truth.requestLies(story), ...Truth.pauseLies(story)]
  })

describe("L-R4 two opens of one id at once", () => {
  law("L-R4 over a store whose claim takes time both return, with one session", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const claims: Array<string> = []
      const slow: typeof disk = {
        ...disk,
        claim: (id, agent) =>
          Effect.suspend(() => {
            claims.push(id)
            return Effect.andThen(Effect.sleep("20 millis"), disk.claim(id, agent))
          })
      }
      const model = yield* ScriptedModel.make(done)
      const opener = yield* Stores.runtimeOver(slow)
      const agent = Agent.make({ name: "one", instructions: "" })
      const one = opener.open(agent, { id: Stores.sessionId }).pipe(Effect.provide(model.layer))
      const scopes = [yield* Scope.make(), yield* Scope.make()] as const
      const both = Effect.all([Scope.provide(one, scopes[0]), Scope.provide(one, scopes[1])], { concurrency: 2 })
      const [a, b] = yield* soon(both)
      assert.strictEqual(a, b)
      assert.strictEqual(claims.length, 1)
      yield* soon(Scope.close(scopes[0], Exit.void))
      assert.isFalse((yield* a.status).closed)
      yield* soon(Scope.close(scopes[1], Exit.void))
      assert.isTrue((yield* a.status).closed)
    }).pipe(Effect.scoped)
  )
})

type Part = Response.StreamPartEncoded
/** A value that a provider's type forbids and its code may give. */
const bigint = 1n as unknown as string
const webCall = (id = "w"): Part => ({
  type: "tool-call",
  id,
  name: "web",
  params: { q: "x" },
  providerExecuted: true
})
const webResult = (id = "w", ...result: ReadonlyArray<unknown>): Part => ({
  type: "tool-result",
  id,
  name: "web",
  isFailure: false,
  // A result that is given may be undefined.
  result: result.length === 0 ? "hits" : result[0],
  providerExecuted: true
})

describe("L-R7 a value that has no stored form", () => {
  const cases: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Part>]> = [
    ["a bigint as the provider's result", [webCall(), webResult("w", bigint)]],
    ["undefined as the provider's result", [webCall(), webResult("w", undefined)]],
    ["a bigint in the provider's metadata", [webCall(), { ...webResult(), metadata: { x: { n: bigint } } }]],
    [
      "a bigint in the metadata of a text",
      [
        { type: "text-start", id: "t", metadata: { x: { n: bigint } } },
        { type: "text-delta", id: "t", delta: "hi" },
        { type: "text-end", id: "t", metadata: { x: { n: bigint } } }
      ]
    ]
  ]
  for (const [what, parts] of cases) {
    for (const closes of [true, false]) {
      const which = closes ? "was closed" : "was lost"
      law(`L-R7 ${what}: the session does not hang, and can be opened again when it ${which}`, () =>
        Effect.gen(function* () {
          const { disk } = yield* fresh
          const script = [ScriptedModel.steps([ScriptedModel.parts(parts), ScriptedModel.text("said")]), ...done]
          const h = yield* Stores.boot(disk, { script, model: { direct: true } })
          const id = yield* h.prompt("do it", "p")
          yield* soon(Effect.exit(h.session.await(id)))
          if (closes) {
            yield* soon(h.session.submit(Input.followUp("then", { id: "f" })))
            yield* soon(h.close)
          }
          const n = yield* soon(Stores.boot(disk, { script: done }))
          const next = yield* soon(report(n, yield* n.prompt("next", "q")))
          assert.strictEqual(next.outcome, "finished")
          assert.deepStrictEqual(n.model.violations, [])
          assert.deepStrictEqual(yield* lies(n, "p", "q"), [])
        })
      )
    }
  }
})

describe("L-T2 results that are owed to a host's context", () => {
  for (const closes of [true, false]) {
    const which = closes ? "closed in good order" : "lost"
    law(`L-T2 are given after reopening a session that was ${which}, before the next prompt`, () =>
      Effect.gen(function* () {
        const { disk } = yield* fresh
        const context = Contexts.make()
        let down = false
        const failing: ContextStore.Service = {
          ...context.service,
          append: (messages) => (down ? Effect.fail("the disk was busy") : context.service.append(messages))
        }
        const kept = Effect.provideService(ContextStore.ContextStore, failing)
        const edit = () =>
          Effect.sync(() => {
            down = true
            return "did"
          })
        const h = yield* kept(Stores.boot(disk, { script: [edits, ...done], edit }))
        const { error, outcome } = yield* report(h, yield* h.prompt("do it", "p"))
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "context"])
        if (closes) yield* h.close
        down = false
        const n = yield* kept(Stores.boot(disk, { script: done }))
        assert.strictEqual((yield* report(n, yield* n.prompt("next", "q"))).outcome, "finished")
        assert.deepStrictEqual(n.model.violations, [])
        assert.deepStrictEqual(pairs(n.model.requests[0]), [{ calls: ["c1"], results: ["c1"] }])
        assert.strictEqual(toolResults(n.model.requests[0]).length, 1)
      })
    )
  }
})

describe("L-T13 a decision behind an affecting steer", () => {
  law("L-T13 that is still being written is refused as already decided", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const policy: ToolPolicy.Service = () => Effect.succeed(ToolPolicy.ask("may it?"))
      const h = yield* Stores.boot(store.service, { script: [edits, ...done] }).pipe(
        Effect.provideService(ToolPolicy.ToolPolicy, policy)
      )
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, "tool.approval_requested")
      const call = ofType(yield* h.events, "tool.approval_requested")[0]?.call_id
      if (call === undefined) return assert.fail("nobody asked")
      const held = yield* Stores.holdNext(store)
      const steered = yield* fork(h.steer(id, "no", { id: "s" }))
      yield* held.reached
      const decided = yield* fork(h.session.decide(call, { _tag: "Allow" }))
      yield* Stores.settle
      yield* held.release
      assert.isTrue((yield* Fiber.join(steered)).accepted)
      assert.deepStrictEqual(yield* Fiber.join(decided), { accepted: false, reason: "already-decided" })
      yield* report(h, id)
      assert.deepStrictEqual(h.began, [])
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
    })
  )
})

describe("L-A2 an input that cannot be read", () => {
  const detached = (): Input.Input => {
    const bytes = new Uint8Array(8)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    const content = [Prompt.makePart("file", { mediaType: "a/b", data: bytes })]
    return { id: inputId("bad"), intent: "steer", author: "u", content }
  }
  const throwing = (after: number) => (): Input.Input => {
    let reads = 0
    return {
      id: inputId("bad"),
      intent: "steer",
      author: "u",
      get content(): string {
        if (reads++ >= after) throw new Error("not any more")
        return "x"
      }
    }
  }
  const cases: ReadonlyArray<readonly [string, () => Input.Input]> = [
    ["whose bytes were detached", detached],
    ["whose getter throws", throwing(0)]
  ]
  for (const [what, make] of cases) {
    law(`L-A2 ${what} is refused and reserves nothing`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const h = yield* Scope.provide(duringRequest(), scope)
        const before = yield* h.session.status
        const steering = h.session.capability("live.steering")
        const refused = yield* steering.submit(make(), h.id)
        assert.strictEqual(words(refused), "refused invalid-input")
        for (const intent of ["prompt", "steer", "follow-up", "collect"] as const) {
          const input = Object.defineProperty(make(), "intent", { value: intent })
          assert.strictEqual(words(yield* h.session.submit(input)), "refused invalid-input")
        }
        const after = yield* h.session.status
        assert.deepStrictEqual([after.identities, after.sequence], [before.identities, before.sequence])
        assert.strictEqual(words(yield* h.steer(h.id, "x", { id: "bad" })), "queued")
        yield* h.go
        assert.strictEqual((yield* soon(report(h, h.id))).outcome, "finished")
        const next = yield* soon(report(h, yield* h.prompt("next", "q")))
        assert.strictEqual(next.outcome, "finished")
        assert.deepStrictEqual(yield* lies(h, "p", "q", "bad"), [])
        yield* soon(Scope.close(scope, Exit.void))
      }).pipe(runtime)
    )
  }

  law("L-A2 whose getter throws at any later read is refused or taken, and reserves nothing if it is refused", () =>
    Effect.gen(function* () {
      const h = yield* duringRequest()
      for (const after of [1, 2, 3, 4, 5]) {
        const used = (yield* h.session.status).identities.used
        const given = { ...Object.getOwnPropertyDescriptors(throwing(after)()), id: { value: inputId(`late${after}`) } }
        const input: Input.Input = Object.create(null, { ...given, intent: { value: "steer", enumerable: true } })
        const receipt = yield* h.session.capability("live.steering").submit(input, h.id)
        assert.strictEqual((yield* h.session.status).identities.used, used + (receipt.accepted ? 1 : 0))
        if (!receipt.accepted) assert.strictEqual(receipt.reason, "invalid-input")
      }
      yield* h.go
      assert.strictEqual((yield* soon(report(h, h.id))).outcome, "finished")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-R7 a store that does what its type forbids", () => {
  type Written = Effect.Effect<void, SessionStore.StoreError>
  const cases: ReadonlyArray<readonly [string, () => Written]> = [
    [
      "throws",
      () => {
        throw new Error("the pool is closed")
      }
    ],
    ["fails with something else", () => Effect.fail("x") as unknown as Written],
    ["dies", () => Effect.die(new Error("x"))]
  ]
  const kinds: ReadonlyArray<Event.SessionEvent["type"]> = ["request.started", "generation.finished"]
  for (const [what, bad] of cases) {
    for (const kind of kinds) {
      law(`L-R7 an append of ${kind} that ${what} loses the session, with typed errors and no hanging`, () =>
        Effect.gen(function* () {
          const { disk } = yield* fresh
          let met = false
          const broken: typeof disk = {
            ...disk,
            append: (commit) => {
              if (met || !Stores.carries(commit, kind)) return disk.append(commit)
              met = true
              return bad()
            }
          }
          const h = yield* Stores.boot(broken, { script: done })
          const id = yield* h.prompt("do it", "p")
          const error = yield* soon(Effect.flip(h.session.await(id)))
          assert.strictEqual(error._tag, "SessionError")
          assert.strictEqual((yield* soon(Effect.flip(h.session.awaitIdle)))._tag, "SessionError")
          const refused = yield* soon(h.session.submit(Input.followUp("f", { id: "f" })))
          assert.strictEqual(words(refused), "refused storage-unavailable")
          yield* soon(h.close)
          assert.isTrue(met)
          const n = yield* soon(Stores.boot(disk, { script: done }))
          assert.strictEqual((yield* soon(report(n, yield* n.prompt("next", "q")))).outcome, "finished")
        })
      )
    }
  }

  law("L-R7 an append that throws at the admission refuses the prompt", () =>
    Effect.gen(function* () {
      const { disk } = yield* fresh
      const broken: typeof disk = {
        ...disk,
        append: () => {
          throw new Error("the pool is closed")
        }
      }
      const opened = yield* soon(Effect.exit(Stores.booting(broken, { script: done })))
      if (Exit.isFailure(opened)) return assert.notInclude(String(opened.cause), "Die")
      const receipt = yield* soon(opened.value.session.submit(Input.prompt("do it", { id: "p" })))
      assert.strictEqual(words(receipt), "refused storage-unavailable")
      yield* soon(opened.value.close)
    })
  )
})

describe("L-C2 a pause that ends while it is being written", () => {
  const story = (h: Harness) =>
    Effect.map(h.events, (events) => {
      const ended = new Set<number>()
      return events.flatMap((event) => {
        if (event.type === "pause.ended") ended.add(event.requested)
        return event.type === "pause.effective" && ended.has(event.requested) ? [event.requested] : []
      })
    })
  const yields = (count: number): Stores.Fate => {
    const slow = Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })
    return (land) => Effect.andThen(slow, land)
  }
  for (const count of [1, 2, 3, 5]) {
    for (const scope of [undefined, { tools: ["edit"] }]) {
      const which = scope === undefined ? "of everything" : "of a tool"
      law(`L-C2 ${which}, its instant past: it is not told effective after it has ended (${count} yields)`, () =>
        Effect.gen(function* () {
          const { store } = yield* fresh
          yield* TestClock.adjust("1 hour")
          const h = yield* Stores.boot(store.service, { script: [ScriptedModel.hang] })
          if (scope !== undefined) {
            yield* h.prompt("do it", "p")
            yield* seen(h, "request.started")
          }
          store.fate = yields(count)
          for (const ahead of [-1000, 0, 1]) {
            const until = ResumeCondition.at((yield* Clock.currentTimeMillis) + ahead)
            const asked = yield* fork(h.session.pause({ until, ...(scope === undefined ? {} : { scope }) }))
            yield* Effect.yieldNow
            yield* TestClock.adjust("1 millis")
            yield* Stores.settle
            yield* Fiber.join(asked)
          }
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual(yield* story(h), [])
          assert.deepStrictEqual((yield* h.session.status).pauses, [])
        })
      )
    }
  }
})

describe("L-T2 results of the provider's that answer no call", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Part>, ReadonlyArray<string>]> = [
    ["of no call at all", [webResult("zz")], []],
    ["a second one", [webCall(), webResult(), webResult()], ["tool-call w", "tool-result w"]],
    ["before its call", [webResult(), webCall()], ["tool-call w"]]
  ]
  for (const [what, parts, kept] of cases) {
    law(`L-T2 ${what} does not enter the context`, () =>
      Effect.gen(function* () {
        const script = [ScriptedModel.steps([ScriptedModel.parts(parts), ScriptedModel.text("said")]), ...done]
        const h = yield* open({ script, model: { direct: true } })
        yield* report(h, yield* h.prompt("do it", "p"))
        const { content } = yield* Effect.orDie(h.session.context)
        assert.deepStrictEqual(StrictPrompt.violations(content, { allowLastAssistant: true }), [])
        assert.strictEqual((yield* report(h, yield* h.prompt("next", "q"))).outcome, "finished")
        assert.deepStrictEqual(h.model.violations, [])
        assert.deepStrictEqual(said(h.model.requests[1])[0]?.parts, [...kept, "text said"])
      }).pipe(Effect.scoped, runtime)
    )
  }
})

describe("L-A6 refused resumes", () => {
  law("L-A6 a thousand of one signal grow the journal by nothing", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const h = yield* Stores.boot(store.service, { script: done })
      const { all, signal } = ResumeCondition
      yield* h.session.pause({ until: all(signal("a"), signal("b")) })
      yield* Stores.settle
      assert.isFalse((yield* h.session.resume("a")).accepted)
      const before = [store.appends.length, (yield* h.session.status).sequence]
      for (let i = 0; i < 1000; i++) {
        const { accepted } = yield* h.session.resume(i % 2 === 0 ? "a" : "unheard")
        assert.isFalse(accepted)
      }
      assert.deepStrictEqual([store.appends.length, (yield* h.session.status).sequence], before)
      assert.isTrue((yield* h.session.resume("b")).accepted)
    })
  )
})
