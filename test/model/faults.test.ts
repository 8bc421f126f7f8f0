/** The reference bites: each fault planted in the engine, or in the face of a session, is found on sequences that agree without it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type * as AdmissionModule from "../../src/boundary/Admission.ts"
import type * as InboxModule from "../../src/boundary/Inbox.ts"
import type * as GateModule from "../../src/engine/Gate.ts"
import type * as ToolDecisionModule from "../../src/engine/ToolDecision.ts"
import type { Receipt, Session } from "../../src/index.ts"
import type * as SubmissionModule from "../../src/runtime/Submission.ts"
import * as Scenarios from "../support/scenarios.ts"
import { generate } from "./Generate.ts"
import { type Bench, makeBench, type Wrap } from "./Run.ts"

const planted = vi.hoisted(() => ({ fault: "none" }))

vi.mock("../../src/boundary/Admission.ts", async (original) => {
  const real = await original<typeof AdmissionModule>()
  return {
    ...real,
    closeIfEmpty: (...[self, closing]: Parameters<typeof real.closeIfEmpty>) => {
      if (planted.fault !== "closes with something pending") return real.closeIfEmpty(self, closing)
      real.close(self, closing)
      return true
    },
    close: (...[self, closing]: Parameters<typeof real.close>) => {
      const pending = real.close(self, closing)
      return planted.fault === "an end forgets what is pending" ? [] : pending
    },
    affecting: (...[self, tool]: Parameters<typeof real.affecting>) =>
      planted.fault === "a correction withholds nothing" ? [] : real.affecting(self, tool),
    take: (...[self, count]: Parameters<typeof real.take>) =>
      real.take(self, planted.fault === "a boundary takes one" ? 1 : count)
  }
})

vi.mock("../../src/boundary/Inbox.ts", async (original) => {
  const real = await original<typeof InboxModule>()
  return {
    ...real,
    next: (...[projection, limits, now]: Parameters<typeof real.next>): InboxModule.Next => {
      const next = real.next(projection, limits, now)
      if (next._tag !== "Start") return next
      if (planted.fault === "turns wait behind follow-ups" && projection.queue.length > 0) {
        return { _tag: "Start", inputIds: projection.queue.slice(0, 1) }
      }
      if (planted.fault === "every collect is compatible" && projection.turns.length === 0) {
        const collects = projection.queue.findIndex((id) => projection.inputs.get(id)?.intent !== "collect")
        const leading = projection.queue.slice(0, collects < 0 ? limits.collectCap : collects)
        if (leading.length > 0) return { _tag: "Start", inputIds: leading }
      }
      return planted.fault === "two follow-ups share a generation"
        ? { _tag: "Start", inputIds: [...new Set([...next.inputIds, ...projection.queue.slice(0, 2)])] }
        : next
    }
  }
})

vi.mock("../../src/engine/Gate.ts", async (original) => {
  const real = await original<typeof GateModule>()
  return {
    ...real,
    isPaused: (...[projection]: Parameters<typeof real.isPaused>) =>
      planted.fault !== "a pause holds nothing back" && real.isPaused(projection),
    ending: (...[projection, now]: Parameters<typeof real.ending>) =>
      planted.fault === "any pause ends by hand"
        ? projection.pauses.filter((pause) => pause.manual)
        : real.ending(projection, now),
    ready: (...[projection, running, requesting]: Parameters<typeof real.ready>) =>
      real.ready(projection, planted.fault === "a pause does not wait for tools" ? [] : running, requesting)
  }
})

vi.mock("../../src/engine/ToolDecision.ts", async (original) => {
  const real = await original<typeof ToolDecisionModule>()
  return {
    ...real,
    notStartedBy: (...[end]: Parameters<typeof real.notStartedBy>) =>
      planted.fault === "every end is called a stop"
        ? ({ _tag: "NotStarted", reason: "stopped" } as const)
        : real.notStartedBy(end),
    decide: (...[view]: Parameters<typeof real.decide>) =>
      real.decide(planted.fault === "a stop launches what waits" ? { ...view, closing: undefined } : view)
  }
})

vi.mock("../../src/runtime/Submission.ts", async (original) => {
  const real = await original<typeof SubmissionModule>()
  return {
    ...real,
    anchored: (...[view, input, id]: Parameters<typeof real.anchored>) => {
      const decision = real.anchored(view, input, id)
      const joins = decision._tag === "Refuse" && decision.receipt.reason === "generation-mismatch"
      return planted.fault === "a steer moves to another generation" && joins && view.live !== undefined
        ? ({ _tag: "Join", run: view.live } as const)
        : decision
    },
    ordinary: (...[view, input]: Parameters<typeof real.ordinary>) => {
      const decision = real.ordinary(view, input)
      const busy = decision._tag === "Refuse" && decision.receipt.reason === "busy"
      return planted.fault === "a prompt that meets work is queued" && busy ? ({ _tag: "Enqueue" } as const) : decision
    }
  }
})

const inEngine = [
  "closes with something pending",
  "an end forgets what is pending",
  "a correction withholds nothing",
  "a boundary takes one",
  "turns wait behind follow-ups",
  "two follow-ups share a generation",
  "every collect is compatible",
  "a pause holds nothing back",
  "any pause ends by hand",
  "a pause does not wait for tools",
  "every end is called a stop",
  "a stop launches what waits",
  "a steer moves to another generation",
  "a prompt that meets work is queued"
] as const

const done: Receipt.ControlReceipt = { accepted: true }

/** Faces that lie. */
const faces: Record<string, Wrap> = {
  "a refused submit is reported accepted": (session) => ({
    ...session,
    submit: (input) =>
      Effect.map(session.submit(input), (receipt) =>
        receipt.accepted
          ? receipt
          : { accepted: true, inputId: input.id, generationId: null, disposition: "queued", delivery: "new_turn" }
      )
  }),
  "a cancel drops what is pending": (session) => {
    const dropped = new Set<string>()
    const cancel: Session.Session["cancel"] = (id, options) =>
      Effect.flatMap(session.status, ({ generation }) => {
        for (const pending of generation?.pendingInputIds ?? []) dropped.add(pending)
        return session.cancel(id, options)
      })
    return {
      ...session,
      cancel,
      receipt: (id) => (dropped.has(id) ? Effect.succeedNone : session.receipt(id))
    }
  },
  "a stop is accepted and not done": (session) => ({ ...session, stop: () => Effect.succeed(done) }),
  "a withdrawal is accepted and not done": (session) => ({ ...session, withdraw: () => Effect.succeed(done) }),
  "a pause is accepted and not done": (session) => ({ ...session, pause: () => Effect.succeed(done) }),
  "a decision is accepted twice": (session) => ({
    ...session,
    decide: (call, decision) => Effect.as(session.decide(call, decision), done)
  })
}

/** The first of so many sequences that agrees without the fault and disagrees with it. */
const found = (bench: Bench, most: number, fault: string, wrap?: Wrap): number | undefined => {
  for (let seed = 1; seed <= most; seed++) {
    const sequence = generate(seed)
    planted.fault = "none"
    if (bench.run(sequence) !== undefined) continue
    planted.fault = fault
    const disagreement = bench.run(sequence, wrap)
    planted.fault = "none"
    if (disagreement !== undefined) return seed
  }
  return undefined
}

describe("the explorer finds a planted fault", () => {
  it.live(
    "L-E2 closes with something pending",
    () =>
      Effect.gen(function* () {
        planted.fault = "closes with something pending"
        const shape: Scenarios.Shape = { name: "end", actions: ["steer"], responses: [], checkpoint: true }
        const { violation } = yield* Scenarios.explore(shape, { seed: 1, random: 0 })
        planted.fault = "none"
        assert.lengthOf(violation?.schedule ?? [], 1)
        assert.match(violation?.violations.join() ?? "", /L-E2 s1 was accepted and stranded/)
      }),
    60_000
  )
})

describe("the reference finds a planted fault", () => {
  const most = 1000
  const finds = (fault: string, wrap?: Wrap) =>
    Effect.gen(function* () {
      const seed = found(yield* makeBench, most, fault, wrap)
      yield* Effect.sync(() => process.stdout.write(`fault "${fault}": found by sequence ${seed}\n`))
      assert.isDefined(seed, `${most} sequences do not tell: ${fault}`)
    })
  for (const fault of inEngine) it.live(fault, () => finds(fault), 60_000)
  for (const [fault, wrap] of Object.entries(faces)) it.live(fault, () => finds(fault, wrap), 60_000)
})
