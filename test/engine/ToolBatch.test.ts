/** The pure decision over a batch of calls, as properties: who is launched, who is withheld and why. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import * as Ending from "../../src/engine/Ending.ts"
import { decide, notStartedBy, type Transition, type View } from "../../src/engine/ToolDecision.ts"
import { inputId } from "../support/harness.ts"

const names = ["look", "edit", "send"] as const
const name = Schema.Literals(names)

const state = Schema.Union([
  Schema.TaggedStruct("Waiting", { verdict: Schema.Literals(["unasked", "allowed"]) }),
  Schema.TaggedStruct("Asking", {
    decision: Schema.Union([
      Schema.Undefined,
      Schema.TaggedStruct("Allow", {}),
      Schema.TaggedStruct("Deny", { reason: Schema.Literal("no") })
    ])
  }),
  Schema.TaggedStruct("Running", {}),
  Schema.TaggedStruct("Ended", {})
])
const closings = {
  stopped: Ending.stopped,
  cancelled: Ending.cancelled,
  closed: Ending.sessionClosed,
  exhausted: Ending.exhausted,
  failed: Ending.failed({ kind: "provider", message: "no" })
} as const

const batch = Schema.Struct({
  calls: Schema.Array(Schema.Struct({ name, state })).check(Schema.isMaxLength(8)),
  concurrency: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
  onCorrection: Schema.Literals(["withhold", "finish-batch"]),
  affected: Schema.Array(name),
  paused: Schema.Record(name, Schema.Literals(["go", "go", "wait", "withhold"]))
})
type Batch = typeof batch.Type
const batches = { batch: Arbitrary.schema(batch) }
const ids = [inputId("s1"), inputId("s2")]

const viewOf = (batch: Batch, closing?: keyof typeof closings): View => ({
  calls: batch.calls,
  concurrency: batch.concurrency,
  onCorrection: batch.onCorrection,
  closing: closing === undefined ? undefined : closings[closing],
  affecting: (tool) => (batch.affected.some((one) => one === tool) ? ids : []),
  pause: (tool) =>
    names.reduce<"go" | "wait" | "withhold">((found, one) => (one === tool ? batch.paused[one] : found), "go")
})

type Call = Batch["calls"][number]
const isOpen = ({ state }: Call) => state._tag === "Waiting" || state._tag === "Asking"
const starts = (transitions: ReadonlyArray<Transition>) =>
  transitions.filter(({ _tag }) => _tag === "Launch" || _tag === "Consult")
const at = (transitions: ReadonlyArray<Transition>, index: number) =>
  transitions.find((transition) => transition.index === index)

/** Whether a pending correction withholds the call (L-T5, L-T13). */
const isWithheld = (batch: Batch, call: Call) =>
  isOpen(call) &&
  batch.affected.includes(call.name) &&
  (batch.onCorrection === "withhold" || call.state._tag === "Asking")

/** Whether the call would go if a slot were free. */
const isReady = (batch: Batch, call: Call) =>
  !isWithheld(batch, call) &&
  batch.paused[call.name] === "go" &&
  (call.state._tag === "Waiting" || (call.state._tag === "Asking" && call.state.decision?._tag === "Allow"))

const options = { arbitrary: { runs: 300 } }

describe("decide", () => {
  it.prop(
    "names each call at most once, in the order requested, and none that runs or has ended",
    batches,
    ({ batch }) => {
      const indexes = decide(viewOf(batch)).map(({ index }) => index)
      assert.deepStrictEqual(
        indexes,
        [...new Set(indexes)].sort((a, b) => a - b)
      )
      for (const index of indexes) {
        const call = batch.calls[index]
        assert.isTrue(call !== undefined && isOpen(call))
      }
    },
    options
  )

  it.prop(
    "L-T4 launches the first calls that are ready, as many as there are free slots, and no other",
    batches,
    ({ batch }) => {
      const running = batch.calls.filter(({ state }) => state._tag === "Running").length
      const ready = batch.calls.flatMap((call, index) => (isReady(batch, call) ? [index] : []))
      assert.deepStrictEqual(
        starts(decide(viewOf(batch))).map(({ index }) => index),
        ready.slice(0, Math.max(0, batch.concurrency - running))
      )
    },
    options
  )

  it.prop(
    "L-T11 launches nothing that has not been allowed: what was not asked about is asked about first",
    batches,
    ({ batch }) => {
      for (const { _tag, index } of starts(decide(viewOf(batch)))) {
        const state = batch.calls[index]?.state
        const allowed =
          (state?._tag === "Waiting" && state.verdict === "allowed") ||
          (state?._tag === "Asking" && state.decision?._tag === "Allow")
        assert.strictEqual(_tag, allowed ? "Launch" : "Consult")
      }
    },
    options
  )

  it.prop(
    "L-T3 withholds every open call that a correction affects, naming the inputs, and no other for one",
    batches,
    ({ batch }) => {
      const transitions = decide(viewOf(batch))
      batch.calls.forEach((call, index) => {
        const found = at(transitions, index)
        const steered = found?._tag === "Withhold" && found.status.reason === "steering"
        assert.strictEqual(steered, isWithheld(batch, call))
        if (steered) assert.deepStrictEqual(found.status.inputIds, ids)
      })
    },
    options
  )

  it.prop(
    "L-T13 a call that waits for an answer is left alone, and holds up no other",
    batches,
    ({ batch }) => {
      const transitions = decide(viewOf(batch))
      const isUndecided = (call: Call) => call.state._tag === "Asking" && call.state.decision === undefined
      batch.calls.forEach((call, index) => {
        if (isUndecided(call) && !isWithheld(batch, call)) assert.isUndefined(at(transitions, index))
      })
      const others = batch.calls.flatMap((call, index) => (isUndecided(call) ? [] : [index]))
      const without = decide(viewOf({ ...batch, calls: batch.calls.filter((call) => !isUndecided(call)) }))
      assert.deepStrictEqual(
        transitions.filter(({ index }) => others.includes(index)),
        without.map((transition) => ({ ...transition, index: others[transition.index] ?? -1 }))
      )
    },
    options
  )

  it.prop(
    "L-T13 a refusal ends its call as denied unless a correction had withdrawn it",
    batches,
    ({ batch }) => {
      const transitions = decide(viewOf(batch))
      batch.calls.forEach((call, index) => {
        const refused = call.state._tag === "Asking" && call.state.decision?._tag === "Deny"
        assert.strictEqual(at(transitions, index)?._tag === "Deny", refused && !isWithheld(batch, call))
      })
    },
    options
  )

  it.prop(
    "L-C2 a scoped pause withholds, an unscoped one only delays",
    batches,
    ({ batch }) => {
      const transitions = decide(viewOf(batch))
      batch.calls.forEach((call, index) => {
        const found = at(transitions, index)
        const undecided = call.state._tag === "Asking" && call.state.decision?._tag !== "Allow"
        if (!isOpen(call) || isWithheld(batch, call) || undecided) return
        if (batch.paused[call.name] === "wait") assert.isUndefined(found)
        const paused = found?._tag === "Withhold" && found.status.reason === "paused"
        assert.strictEqual(paused, batch.paused[call.name] === "withhold")
      })
    },
    options
  )

  it.prop(
    "L-C5 a run that is ending withholds every open call with its own reason, before anything else is looked at",
    {
      ...batches,
      closing: Arbitrary.schema(Schema.Literals(["stopped", "cancelled", "closed", "exhausted", "failed"]))
    },
    ({ batch, closing }) => {
      const reasons = {
        stopped: "stopped",
        cancelled: "cancelled",
        closed: "closed",
        exhausted: "budget",
        failed: "failed"
      }
      assert.deepStrictEqual(
        decide(viewOf(batch, closing)).map(({ _tag, index, ...rest }) => [_tag, index, rest]),
        batch.calls.flatMap((call, index) =>
          isOpen(call) ? [["Withhold", index, { status: { _tag: "NotStarted", reason: reasons[closing] } }]] : []
        )
      )
    },
    options
  )

  it.prop(
    "is a function of what it is shown",
    batches,
    ({ batch }) => {
      assert.deepStrictEqual(decide(viewOf(batch)), decide(viewOf(batch)))
    },
    options
  )

  it("L-T3 sequential: with one running nothing more is launched, and the next when it has ended", () => {
    const view = viewOf({
      calls: [
        { name: "edit", state: { _tag: "Running" } },
        { name: "send", state: { _tag: "Waiting", verdict: "allowed" } },
        { name: "look", state: { _tag: "Waiting", verdict: "allowed" } }
      ],
      concurrency: 1,
      onCorrection: "withhold",
      affected: [],
      paused: { look: "go", edit: "go", send: "go" }
    })
    assert.deepStrictEqual(decide(view), [])
    const ended = view.calls.map((call, index) => (index === 0 ? { ...call, state: { _tag: "Ended" } as const } : call))
    assert.deepStrictEqual(decide({ ...view, calls: ended }), [{ _tag: "Launch", index: 1 }])
  })

  it("L-C8 each end has its own reason for what it does not start", () => {
    assert.deepStrictEqual(
      Object.values(closings).map((closing) => notStartedBy(closing).reason),
      ["stopped", "cancelled", "closed", "budget", "failed"]
    )
  })
})
