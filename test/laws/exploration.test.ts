/**
 * Every scenario under many schedules: one action or preemption at every operation, pairs of them at the points that state classes
 * leave, then random ones from a seed. No schedule may break a law, and the schedules must differ in what comes of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Admission from "../../src/boundary/Admission.ts"
import * as Ending from "../../src/engine/Ending.ts"
import { type Ids, Input } from "../../src/index.ts"
import { Interleavings } from "../../src/testing/index.ts"
import * as Scenarios from "../support/scenarios.ts"

const seed = 1
/** Of each kind of pair every so manieth point, so that there are no more than this. */
const sampled: Interleavings.Options = { pairs: 500, random: 1000 }
/** Every pair of two actions, two preemptions, or one of each. */
const exhaustive: Interleavings.Options = { pairs: Number.MAX_SAFE_INTEGER, random: 3000 }

interface Explored {
  readonly law: string
  readonly shape: Scenarios.Shape
  readonly options: Interleavings.Options
}

const one = [["look", "edit"]]
const wave = [["look", "edit", "send"]]

const explored: ReadonlyArray<Explored> = [
  {
    law: "L-E1 L-E2 L-C4 a steer and a cancel around the checkpoint and the end",
    shape: { name: "end", actions: ["steer", "cancel"], responses: [], checkpoint: true },
    options: exhaustive
  },
  {
    law: "L-T3 L-B1 L-D6 a steer and a cancel around a tool call",
    shape: { name: "call", actions: ["steer", "cancel"], responses: [["edit"]] },
    options: exhaustive
  },
  {
    law: "L-T3 L-E2 L-C5 sequential tools",
    shape: { name: "sequential", actions: ["steer", "narrow", "remark", "cancel", "stop"], responses: one },
    options: sampled
  },
  {
    law: "L-A7 L-C10 L-E2 a session kept in a store, with its writes under way",
    shape: { name: "kept", actions: ["steer", "cancel", "stop", "pause", "resume"], responses: one, kept: true },
    options: sampled
  },
  {
    law: "L-A7 L-T13 a call that waits for a decision in a session kept in a store",
    shape: {
      name: "kept approval",
      actions: ["allow", "deny", "steer", "cancel"],
      responses: one,
      asks: "edit",
      kept: true
    },
    options: sampled
  },
  {
    law: "L-T4 L-T5 L-T7 a wave of three, two at once",
    shape: {
      name: "wave",
      actions: ["steer", "narrow", "cancel", "stop"],
      responses: wave,
      concurrency: 2,
      slow: true
    },
    options: sampled
  },
  {
    law: "L-T13 L-T3 a call that waits for a decision",
    shape: {
      name: "approval",
      actions: ["allow", "deny", "steer", "cancel", "pause", "resume"],
      responses: one,
      asks: "edit"
    },
    options: sampled
  },
  {
    law: "L-C2 L-C3 pauses of all work and of some",
    shape: { name: "pause", actions: ["pause", "pauseEdit", "resume", "steer", "stop"], responses: one },
    options: sampled
  },
  {
    law: "L-F2 L-F6 L-F8 L-F9 follow-ups, promoted and withdrawn",
    shape: {
      name: "follow-ups",
      actions: ["followUp", "promote", "withdraw", "ordinary", "cancelAll"],
      responses: [["look"]],
      queued: 1
    },
    options: sampled
  },
  {
    law: "L-F1 L-F3 L-F5 collects, prompts and ordinary steers",
    shape: { name: "collects", actions: ["collect", "prompt", "ordinary", "followUp", "stop"], responses: [["look"]] },
    options: sampled
  },
  {
    law: "L-B2 L-B3 a context of the host's own",
    shape: {
      name: "host's context",
      actions: ["steer", "cancel", "stop"],
      responses: [["look"]],
      pending: 2,
      when: 1,
      store: { lands: "late", tells: true }
    },
    options: sampled
  },
  {
    law: "L-B3 L-D4 a context of the host's own that cannot tell",
    shape: {
      name: "context in doubt",
      actions: ["cancel", "stop", "close"],
      responses: [["look"]],
      pending: 1,
      when: 1,
      store: { lands: "early", tells: false }
    },
    options: sampled
  },
  {
    law: "L-E3 L-C5 a request that fails and is tried again",
    shape: {
      name: "retry",
      actions: ["steer", "cancel", "stop", "pause", "resume"],
      responses: [["look"]],
      failing: 1
    },
    options: sampled
  },
  {
    law: "L-C7 L-V2 the session's scope closes",
    shape: { name: "close", actions: ["close", "steer", "followUp", "reader"], responses: one },
    options: sampled
  },
  {
    law: "L-V2 L-V3 readers, and a listener that steers",
    shape: { name: "readers", actions: ["reader", "listener", "steer", "cancel"], responses: [["look"]] },
    options: sampled
  },
  {
    law: "L-E1 L-E2 a steer that arrives during the checkpoint",
    shape: { name: "checkpoint", actions: ["steer", "ordinary", "cancel", "pause"], responses: [], checkpoint: true },
    options: sampled
  }
]

const say = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))

describe("exploration", () => {
  let total = 0
  for (const { law, options, shape } of explored) {
    it.live(
      law,
      () =>
        Effect.gen(function* () {
          const result = yield* Scenarios.explore(shape, { maxSchedules: 1_000_000, ...options, seed, preemptions: 2 })
          const report = Interleavings.report(result)
          total += result.schedules
          const outcomes = Object.keys(result.outcomes).length
          yield* say(
            `exploration ${shape.name}: ${result.schedules} schedules, seed ${seed}, ${result.baseline} operations, ${outcomes} outcomes`
          )
          assert.isUndefined(result.violation?.replay, report)
          assert.isTrue(result.deterministic, report)
          assert.isAbove(outcomes, 3, report)
        }),
      300_000
    )
  }
  it("at least 100,000 schedules in all", () => {
    process.stdout.write(`exploration in all: ${total} schedules, seed ${seed}\n`)
    assert.isAtLeast(total, 100_000)
  })
})

/** A loop that drains what is pending and ends when there is nothing, under a way of ending. */
const admission = (
  name: string,
  end: (admission: Admission.Admission) => Effect.Effect<boolean>
): Interleavings.Scenario<void, never, never> => ({
  name,
  setup: () => {
    const generation = Effect.runSync(
      Effect.withFiber((fiber) => Effect.succeed(Admission.make(fiber.currentDispatcher)))
    )
    const accepted: Array<Ids.InputId> = []
    const delivered: Array<Ids.InputId> = []
    let count = 0
    return {
      main: Effect.gen(function* () {
        while (true) {
          for (const { id } of Admission.take(generation, Number.POSITIVE_INFINITY)) delivered.push(id)
          yield* Effect.yieldNow
          if (yield* end(generation)) return
        }
      }),
      actions: {
        steer: () => {
          const input = Input.steer("left", { id: `s${++count}` })
          if (Admission.admit(generation, input)) accepted.push(input.id)
        }
      },
      check: () => accepted.filter((id) => !delivered.includes(id)).map((id) => `L-E2 ${id} was accepted and stranded`),
      outcome: () => `${accepted.length} accepted`
    }
  }
})

describe("a broken admission", () => {
  it.effect("L-E2 the real close, which looks and closes in one step, strands nothing", () =>
    Effect.gen(function* () {
      const real = admission("one step", (generation) =>
        Effect.sync(() => Admission.closeIfEmpty(generation, Ending.finished))
      )
      const result = yield* Interleavings.explore(real, { seed, random: 500 })
      assert.isUndefined(result.violation, Interleavings.report(result))
      assert.isAbove(Object.keys(result.outcomes).length, 1)
    })
  )
  it.effect("L-E2 a look, a turn for others and then the close is found, shrunk to one steer and replayed", () =>
    Effect.gen(function* () {
      const broken = admission("look, then close", (generation) =>
        Effect.gen(function* () {
          if (Admission.pending(generation).length > 0) return false
          yield* Effect.yieldNow
          Admission.close(generation, Ending.finished)
          return true
        })
      )
      const { violation } = yield* Interleavings.explore(broken, { seed, random: 0 })
      assert.deepStrictEqual(violation?.violations, ["L-E2 s1 was accepted and stranded"])
      assert.lengthOf(violation?.schedule ?? [], 1)
      const again = yield* Interleavings.replay(broken, violation?.replay ?? "")
      assert.deepStrictEqual(again.violations, ["L-E2 s1 was accepted and stranded"])
    })
  )
})
