/** R2, C9 and C10 one by one: what goes on in the next process, from where, and what never does. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import type { Prompt } from "effect/ai"
import {
  ContextPreparation,
  Event,
  Input,
  ResumeCondition,
  ToolPolicy,
  ToolReconciler,
  ToolScope
} from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { fork, generationId, inputId, type Options, toolResults, types, userTexts } from "../support/harness.ts"
import { receipts, report, seen, words } from "../support/scenes.ts"
import { notices } from "../support/providers.ts"
import * as Stores from "../support/stores.ts"

const law = it.effect
const answers = [ScriptedModel.text("one"), ScriptedModel.text("two"), ScriptedModel.text("three")]
const edits = ScriptedModel.calls([
  { name: "edit", params: { path: "a" }, id: "a" },
  { name: "look", params: { path: "b" }, id: "b" }
])
const modes = ["settle", "resume"] as const
const asks: ToolPolicy.Service = () => Effect.succeed(ToolPolicy.ask("may it?"))
const asking = Effect.provideService(ToolPolicy.ToolPolicy, asks)

/** A process that lives until its session has journalled this, and is then lost. */
const lived = (
  store: Stores.Watched,
  options: Options,
  until: Event.SessionEvent["type"],
  count?: number,
  then: (h: Stores.Process) => Effect.Effect<unknown> = () => Effect.void
) =>
  Effect.gen(function* () {
    const h = yield* Stores.boot(store.service, options)
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, until, count)
    yield* then(h)
    yield* Stores.settle
    store.fate = () => Effect.never
    return { ...h, id }
  })

const fresh = Effect.map(Stores.disk, (disk) => ({ disk, store: Stores.watch(disk) }))

/** A request that never ends. */
const requesting: Options = { script: [ScriptedModel.hang] }
/** Two calls, of which the first never ends. */
const calling: Options = { script: [edits, ...answers], edit: () => Effect.never }

/** A correction is accepted, and the process is lost before it has withheld anything. */
const corrected = (store: Stores.Watched, h: Stores.Process) =>
  Effect.gen(function* () {
    yield* Stores.hold(store, "tool.not_started", () => Effect.never)
    const live = Option.getOrUndefined(yield* h.session.generation)
    assert.isTrue((yield* h.steer(live?.id ?? generationId("none"), "s1", { id: "s1" })).accepted)
  })

describe("L-R2 resume goes on from the last committed step", () => {
  law("L-R2 the request that was in flight is made again, with a number of its own and what was pending", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, requesting, "request.started", 1, (h) =>
        Effect.flatMap(h.session.generation, (live) =>
          Option.isSome(live) ? h.steer(live.value.id, "s1", { id: "s1" }) : Effect.void
        )
      )
      const h = yield* Stores.boot(disk, { script: answers, open: { recovery: "resume" } })
      assert.strictEqual(Option.getOrUndefined(yield* h.session.generation)?.id, id)
      const { outcome, requests, text } = yield* report(h, id)
      assert.deepStrictEqual([outcome, requests, text], ["finished", 2, "one"])
      assert.deepStrictEqual(userTexts(h.model.requests[0]), ["do it", "s1"])
      assert.deepStrictEqual(yield* receipts(h, "p", "s1"), ["applied in 1", "applied in 2"])
      assert.strictEqual(types(yield* h.events).filter((type) => type === "generation.started").length, 1)
    })
  )

  law("L-R2 a started call is not run again, the next one is launched, and both are answered in order", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, calling, "tool.started")
      const h = yield* Stores.boot(disk, { script: answers, open: { recovery: "resume" } })
      const { outcome, tools } = yield* report(h, id)
      assert.strictEqual(outcome, "finished")
      assert.deepStrictEqual(h.began, ["look"])
      assert.deepStrictEqual(
        tools.map(({ status }) => status._tag),
        ["Interrupted", "Completed"]
      )
      const results = toolResults(h.model.requests[0])
      assert.deepStrictEqual(
        results.map((result) => [result.id, result.isFailure]),
        [
          ["a", true],
          ["b", false]
        ]
      )
      assert.include(results[0]?.result, "unknown")
    })
  )

  law("L-R2 unstarted calls go through T3: a pending correction withholds them", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, calling, "tool.started", 1, (h) => corrected(store, h))
      const h = yield* Stores.boot(disk, { script: answers, open: { recovery: "resume" } })
      const { tools } = yield* report(h, id)
      assert.deepStrictEqual(h.began, [])
      assert.deepStrictEqual(tools[1]?.status, { _tag: "NotStarted", reason: "steering", inputIds: [inputId("s1")] })
    })
  )

  law("L-R2 a last step that was the final answer ends without a request", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const first = yield* Stores.boot(store.service, { script: answers })
      const held = yield* Stores.hold(store, "checkpoint.saved", () => Effect.never)
      const id = yield* first.prompt("do it", "p")
      yield* held.reached
      const h = yield* Stores.boot(disk, { script: answers, open: { recovery: "resume" } })
      const { outcome, requests, text } = yield* report(h, id)
      assert.deepStrictEqual([outcome, requests, text], ["finished", 1, "one"])
      assert.strictEqual(h.model.requests.length, 0)
    })
  )

  law("L-R2 with the budget used up it is exhausted, without a request", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const agent = { maxRequests: 1 }
      const { id } = yield* lived(store, { ...requesting, agent }, "request.started")
      const h = yield* Stores.boot(disk, { script: answers, agent, open: { recovery: "resume" } })
      assert.strictEqual((yield* report(h, id)).outcome, "exhausted")
      assert.strictEqual(h.model.requests.length, 0)
    })
  )

  law("L-T13 a call that waited for an answer is asked about again, and runs once it is allowed", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const script = [ScriptedModel.call("edit", { path: "a" }, "a"), ...answers]
      const { id } = yield* asking(lived(store, { script }, "tool.approval_requested"))
      const h = yield* asking(Stores.boot(disk, { script: answers, open: { recovery: "resume" } }))
      yield* seen(h, "tool.approval_requested", 2)
      const call = (yield* h.events).flatMap((event) => (event.type === "tool.requested" ? [event.call_id] : []))[0]
      assert.isDefined(call)
      if (call === undefined) return
      assert.isTrue((yield* h.session.decide(call, { _tag: "Allow" })).accepted)
      assert.strictEqual((yield* report(h, id)).outcome, "finished")
      assert.deepStrictEqual(h.began, ["edit"])
    })
  )

  law("L-R1 a reconciler that established what a started call did is believed", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, calling, "tool.started")
      const established: ToolReconciler.Service = () => Effect.succeedSome({ written: true })
      const h = yield* Stores.boot(disk, { script: answers }).pipe(
        Effect.provideService(ToolReconciler.ToolReconciler, established)
      )
      const { status } = (yield* report(h, id)).tools[0] ?? {}
      assert.strictEqual(status?._tag === "Interrupted" ? status.effects : status?._tag, "verified")
    })
  )
})

describe("L-R2 settle ends what was lost", () => {
  law("L-R2 pending steering is held, unstarted calls are not started, and the session is idle and usable", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, calling, "tool.started", 1, (h) => corrected(store, h))
      const h = yield* Stores.boot(disk, { script: answers })
      const { error, outcome, tools, undeliveredInputIds } = yield* report(h, id)
      assert.deepStrictEqual([outcome, undeliveredInputIds, error?.kind], ["failed", [inputId("s1")], "storage"])
      assert.deepStrictEqual(
        tools.map(({ status }) => (status._tag === "NotStarted" ? status.reason : status._tag)),
        ["Interrupted", "process-lost"]
      )
      assert.deepStrictEqual(yield* receipts(h, "s1"), ["held process-lost"])
      assert.deepStrictEqual(
        (yield* h.session.held).map(({ input }) => input.content),
        ["s1"]
      )
      const end = (yield* h.events).find(Event.isTerminal)
      assert.strictEqual(end?.cause, "process-loss")
      assert.deepStrictEqual(h.began, [])
      assert.strictEqual((yield* report(h, yield* h.prompt("next", "n"))).outcome, "finished")
    })
  )

  law("L-R3 the next request is valid and says once, truthfully, what was interrupted", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      yield* lived(store, calling, "tool.started")
      const h = yield* Stores.boot(disk, { script: answers })
      yield* report(h, yield* h.prompt("next", "n"))
      const [request] = h.model.requests
      assert.deepStrictEqual(h.model.violations, [])
      assert.strictEqual(notices(request).length, 1)
      assert.match(notices(request).join(), /edit \(a\) had started; whether it took effect is unknown/)
      assert.match(toolResults(request)[0]?.result ?? "", /process.*unknown/)
    })
  )

  law("L-R3 a prompt that was written and never sent is followed by the notice", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      // A host that prepares its requests is asked after the prompt is written.
      const prepares = Effect.provideService(ContextPreparation.ContextPreparation, Effect.succeed<Prompt.Prompt>)
      const first = yield* prepares(Stores.boot(store.service, { script: answers }))
      const held = yield* Stores.hold(store, "request.started", () => Effect.never)
      yield* first.prompt("do it", "p")
      yield* held.reached
      const h = yield* Stores.boot(disk, { script: answers })
      yield* report(h, yield* h.prompt("next", "n"))
      assert.strictEqual(notices(h.model.requests[0]).length, 1)
    })
  )
})

describe("L-C10 what was accepted is completed in the next process", () => {
  for (const recovery of modes) {
    for (const how of ["stop", "cancel"] as const) {
      law(`L-C10 ${recovery}: a ${how}, then killed: its own cause, no request and no handler`, () =>
        Effect.gen(function* () {
          const { disk, store } = yield* fresh
          const { id } = yield* lived(store, calling, "tool.started", 1, (h) =>
            Effect.gen(function* () {
              const live = Option.getOrUndefined(yield* h.session.generation)
              yield* Stores.hold(store, "tool.interrupted", () => Effect.never)
              const receipt = yield* h.session[how](live?.id ?? generationId("none"))
              assert.isTrue(receipt.accepted)
            })
          )
          const h = yield* Stores.boot(disk, { script: answers, open: { recovery } })
          assert.isTrue(Option.isNone(yield* h.session.generation))
          assert.strictEqual((yield* report(h, id)).outcome, how === "stop" ? "stopped" : "cancelled")
          const end = (yield* h.events).find(Event.isTerminal)
          assert.strictEqual(end?.cause, how)
          assert.deepStrictEqual([h.began, h.model.requests.length], [[], 0])
        })
      )
    }
  }
})

/** A generation that stands under a pause, lost. */
const paused = (store: Stores.Watched, options: Options = requesting, scope?: ToolScope.ToolScope) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const script = [ScriptedModel.call("edit", { path: "a" }, "a"), ...answers]
    const h = yield* Stores.boot(store.service, {
      ...options,
      script,
      edit: () => Effect.as(Deferred.await(gate), "did")
    })
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, "tool.started")
    yield* h.session.pause({ ...(scope === undefined ? {} : { scope }), until: ResumeCondition.signal("go") })
    yield* Deferred.succeed(gate, undefined)
    yield* seen(h, "pause.effective")
    yield* Stores.settle
    store.fate = () => Effect.never
    return { ...h, id }
  })

describe("L-R2 a generation at pause.effective is not lost", () => {
  for (const recovery of modes) {
    law(`L-R2 ${recovery}: it stays live and paused, and goes on when its condition holds`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const { id } = yield* paused(store)
        const h = yield* Stores.boot(disk, { script: answers, open: { recovery } })
        yield* Stores.settle
        const status = yield* h.session.status
        assert.deepStrictEqual([status.generation?.id, status.generation?.phase._tag], [id, "Paused"])
        assert.strictEqual(h.model.requests.length, 0)
        assert.strictEqual(words(yield* h.session.submit(Input.prompt("n", { id: "n" }))), "refused paused")
        assert.strictEqual((yield* h.session.resume()).accepted, false)
        assert.isTrue((yield* h.session.resume("go")).accepted)
        assert.strictEqual((yield* report(h, id)).outcome, "finished")
        assert.deepStrictEqual(h.began, [])
      })
    )
  }

  law("L-R2 a pause of other work in effect and one of all work not yet: the generation was lost", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const { id } = yield* lived(store, requesting, "request.started", 1, (h) =>
        Effect.gen(function* () {
          yield* h.session.pause({ scope: ToolScope.tools("send") })
          yield* seen(h, "pause.effective")
          yield* h.session.pause()
        })
      )
      const h = yield* Stores.boot(disk, { script: answers })
      assert.isTrue(Option.isNone(yield* h.session.generation))
      assert.strictEqual((yield* report(h, id)).outcome, "failed")
    })
  )
})

describe("L-C9 a session that is handed on", () => {
  const detach = { onClose: "detach" } as const

  /** Closes once `go` lets the work under way end. */
  const handed = (store: Stores.Watched, options: Options, until: Event.SessionEvent["type"]) =>
    Effect.gen(function* () {
      const h = yield* Stores.boot(store.service, { ...options, open: detach })
      const id = yield* h.prompt("do it", "p")
      yield* seen(h, until)
      const closing = yield* fork(h.close)
      yield* Stores.settle
      return { ...h, id, closing }
    })

  for (const recovery of modes) {
    law(`L-C9 ${recovery}: it parks after the step under way, settles nothing, and goes on in the next process`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const gate = yield* Deferred.make<void>()
        const h = yield* handed(
          store,
          { script: [edits, ...answers], edit: () => Effect.as(Deferred.await(gate), "did") },
          "tool.started"
        )
        const refused = yield* h.session.submit(Input.followUp("late", { id: "late" }))
        assert.strictEqual(words(refused), "refused session-closed")
        assert.strictEqual(words(yield* h.steer(h.id, "late", { id: "late" })), "refused session-closed")
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(h.closing)
        const next = yield* Stores.boot(disk, { script: answers, open: { recovery } })
        const { outcome, tools } = yield* report(next, h.id)
        assert.strictEqual(outcome, "finished")
        assert.deepStrictEqual(
          tools.map(({ status }) => status._tag),
          ["Completed", "Completed"]
        )
        assert.deepStrictEqual([h.began, next.began], [["edit"], ["look"]])
        const told = types(yield* next.events)
        assert.isAbove(told.indexOf("generation.resumed"), told.indexOf("generation.parked"))
        assert.isBelow(told.indexOf("tool.completed"), told.indexOf("generation.parked"))
      })
    )

    law(`L-C9 ${recovery}: what was pending is still queued and is delivered there`, () =>
      Effect.gen(function* () {
        const { disk, store } = yield* fresh
        const h = yield* Stores.boot(store.service, { script: [ScriptedModel.hang], open: detach })
        const id = yield* h.prompt("do it", "p")
        yield* seen(h, "request.started")
        yield* h.steer(id, "s1", { id: "s1" })
        yield* h.session.submit(Input.followUp("f1", { id: "f1" }))
        const closing = yield* fork(h.close)
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(closing)
        assert.deepStrictEqual(yield* receipts(h, "s1", "f1"), ["queued", "queued"])
        const next = yield* Stores.boot(disk, { script: answers, open: { recovery } })
        assert.deepStrictEqual((yield* report(next, id)).requests, 2)
        yield* Effect.orDie(next.session.awaitIdle)
        assert.deepStrictEqual(yield* receipts(next, "s1", "f1"), ["applied in 2", "applied in 1"])
      })
    )
  }

  law("L-C9 a call that outlasts the grace time is interrupted, and told so", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const ended = yield* Deferred.make<void>()
      const edit = () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(ended, undefined))
      const h = yield* handed(store, { script: [edits, ...answers], edit }, "tool.started")
      yield* TestClock.adjust("1 minute")
      yield* Stores.settle
      assert.isTrue(yield* Deferred.isDone(ended))
      yield* Fiber.join(h.closing)
      const next = yield* Stores.boot(disk, { script: answers })
      const { tools } = yield* report(next, h.id)
      assert.deepStrictEqual(tools[0]?.status, { _tag: "Interrupted", effects: "unknown", cause: "close" })
      assert.deepStrictEqual(next.began, ["look"])
    })
  )

  law("L-C10 a cancel while it is being handed on is refused, or done and not resumed", () =>
    Effect.gen(function* () {
      const { disk, store } = yield* fresh
      const gate = yield* Deferred.make<void>()
      const edit = () => Effect.as(Deferred.await(gate), "did")
      const h = yield* handed(store, { script: [edits, ...answers], edit }, "tool.started")
      const receipt = yield* h.session.cancel(h.id)
      yield* Deferred.succeed(gate, undefined)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(h.closing)
      const late = yield* h.session.cancel(h.id)
      const next = yield* Stores.boot(disk, { script: answers })
      const { outcome } = yield* report(next, h.id)
      assert.strictEqual(outcome === "cancelled", receipt.accepted)
      assert.isFalse(late.accepted)
    })
  )

  law("L-C7 whoever asks a session that was handed on for its generation is told that it is closed", () =>
    Effect.gen(function* () {
      const { store } = yield* fresh
      const h = yield* handed(store, { script: [ScriptedModel.hang] }, "request.started")
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(h.closing)
      const asked = yield* fork(Effect.flip(h.session.await(h.id)))
      yield* Stores.settle
      const error = yield* asked.pollUnsafe() ?? Effect.die(new Error("it waits for ever"))
      assert.strictEqual(error._tag === "SessionError" ? error.reason._tag : error._tag, "Closed")
    })
  )
})
