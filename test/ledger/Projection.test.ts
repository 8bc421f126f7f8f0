/** The fold: receipts, stages, queues, calls and reports follow from the entries and from nothing else. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Event, type Ids, Input } from "../../src/index.ts"
import type { Entry } from "../../src/ledger/Entry.ts"
import * as Entries from "../../src/ledger/Entry.ts"
import * as Report from "../../src/ledger/Report.ts"
import * as Projection from "../../src/ledger/Projection.ts"
import { generationId, inputId } from "../support/harness.ts"

const gen = generationId("gen_1")
const next = generationId("gen_2")
const callId = "gen_1.1.1" as Ids.ToolCallId

/** Folds entries as a journal would hand them over. */
const fold = (...entries: ReadonlyArray<Entry>) => {
  const projection = new Projection.Projection([])
  let sequence = 0
  const apply = (more: ReadonlyArray<Entry>) => {
    for (const entry of more) {
      projection.apply(
        Entries.isRecord(entry)
          ? entry
          : Object.assign({}, entry, { session_id: session, sequence: ++sequence, time: 7 })
      )
    }
  }
  apply(entries)
  return { projection, apply }
}
const session = "ses_fold" as Ids.SessionId

const reportOf = (projection: Projection.Projection, generation: Projection.GenerationState) =>
  Report.make(projection, generation, generation.calls)

const accepted = (input: Input.Input, bound: Ids.GenerationId | null = null): Entry => ({
  record: "input",
  input,
  anchor: bound,
  generation_id: bound,
  delivery: bound === null ? "new_turn" : "request_boundary",
  time: 7
})
const started = (id: Ids.GenerationId, ...ids: ReadonlyArray<string>): Entry => ({
  type: "generation.started",
  generation_id: id,
  initial_input_id: inputId(ids[0] ?? "p1"),
  input_ids: ids.map(inputId)
})
const delivered = (id: string, intent: Input.Intent = "prompt"): Entry => ({
  type: "input.delivered",
  generation_id: gen,
  input_id: inputId(id),
  intent,
  delivery: "new_turn",
  target_generation_id: gen
})
const requested = (request: number, ...ids: ReadonlyArray<string>): Entry => ({
  type: "request.started",
  generation_id: gen,
  request,
  input_ids: ids.map(inputId)
})
const completed = (request: number, inputTokens = 1, outputTokens = 1): Entry => ({
  type: "request.completed",
  generation_id: gen,
  request,
  input_ids: [],
  usage: { inputTokens, outputTokens },
  reason: "stop"
})
const message = (request: number, text: string): Entry => ({
  type: "assistant.message",
  generation_id: gen,
  request,
  text
})
const finished = (id: Ids.GenerationId): Entry => ({
  type: "generation.finished",
  generation_id: id,
  input_ids: [],
  accepted_input_ids: [],
  unknown_input_ids: [],
  text: "",
  cause: "finish"
})
const held = (id: string, target: Ids.GenerationId | null = null): Entry => ({
  type: "steering.held",
  input_id: inputId(id),
  target_generation_id: target,
  reason: "generation-cancelled",
  cause: "cancel"
})
const call = {
  generation_id: gen,
  request: 1,
  call_id: callId,
  provider_call_id: "a",
  tool: "edit"
}
const asked: Entry = { type: "tool.requested", ...call, params: {} }

const prompt = Input.prompt("go", { id: "p1" })
const steer = Input.steer("so", { id: "s1" })
const followUp = Input.followUp("later", { id: "f1" })
const begun = [accepted(prompt), started(gen, "p1")]
const dispositions = (projection: Projection.Projection, id: string) => {
  const receipt = projection.receipt(inputId(id))
  return receipt && [receipt.disposition, receipt.generationId, receipt.request, receipt.reason]
}

describe("Projection: inputs", () => {
  it("L-D1 a receipt reads queued, then applied, and names the first request that carried it", () => {
    const { apply, projection } = fold(...begun)
    assert.deepStrictEqual(dispositions(projection, "p1"), ["queued", gen, undefined, undefined])
    apply([delivered("p1")])
    assert.deepStrictEqual(dispositions(projection, "p1"), ["applied", gen, undefined, undefined])
    apply([requested(1, "p1")])
    assert.deepStrictEqual(dispositions(projection, "p1"), ["applied", gen, 1, undefined])
    apply([requested(2), completed(2)])
    apply([{ type: "input.completed", generation_id: gen, input_id: inputId("p1"), intent: "prompt", request: 2 }])
    assert.deepStrictEqual(dispositions(projection, "p1"), ["applied", gen, 1, undefined])
  })

  it("L-I1 an identity that was never accepted has no receipt", () => {
    assert.isUndefined(fold(...begun).projection.receipt(inputId("nobody")))
  })

  it("L-F7 anchored steering is admitted from the start, a follow-up queued", () => {
    const { projection } = fold(...begun, accepted(steer, gen), accepted(followUp))
    assert.deepStrictEqual(
      ["s1", "f1"].map((id) => projection.inputs.get(inputId(id))?.status),
      [{ _tag: "Admitted", generationId: gen }, { _tag: "Queued" }]
    )
  })

  it("L-F2 what waits is in admission order, steers apart from follow-ups and collects", () => {
    const { projection } = fold(
      accepted(followUp),
      accepted(Input.steer("so", { id: "s1" })),
      accepted(Input.collect("c", { id: "c1" })),
      accepted(Input.steer("and", { id: "s2" }))
    )
    assert.deepStrictEqual([projection.turns, projection.queue], [["s1", "s2"].map(inputId), ["f1", "c1"].map(inputId)])
  })

  it("L-E5 what a generation starts with leaves the queue and is bound to it", () => {
    const { projection } = fold(accepted(followUp), accepted(Input.followUp("more", { id: "f2" })), started(gen, "f1"))
    assert.deepStrictEqual(projection.queue, [inputId("f2")])
    assert.deepStrictEqual(projection.generations.get(gen)?.inputIds, [inputId("f1")])
  })

  it("L-D3 what is held leaves the queue and keeps its reason", () => {
    const { projection } = fold(accepted(followUp), held("f1"))
    assert.deepStrictEqual(projection.queue, [])
    assert.deepStrictEqual(dispositions(projection, "f1"), ["held", null, undefined, "generation-cancelled"])
  })

  it("L-D4 an unknown input names the generation it was written for", () => {
    const { projection } = fold(...begun, {
      type: "steering.unknown",
      generation_id: gen,
      input_id: inputId("p1"),
      target_generation_id: gen,
      reason: "write-interrupted",
      cause: "cancel"
    })
    assert.deepStrictEqual(dispositions(projection, "p1"), ["unknown", gen, undefined, "write-interrupted"])
  })
})

describe("Projection: generations", () => {
  it("L-E4 there is no report before the terminal event, and one after it", () => {
    const { apply, projection } = fold(...begun)
    const generation = projection.generations.get(gen)
    assert.isDefined(generation)
    if (generation === undefined) return
    assert.isUndefined(generation.ended)
    assert.strictEqual(projection.active, generation)
    apply([finished(gen)])
    assert.strictEqual(reportOf(projection, generation)?.outcome, "finished")
    assert.isUndefined(projection.active)
  })

  it("L-E4 delivered, undelivered and unknown inputs are told apart", () => {
    const { projection } = fold(
      ...begun,
      accepted(steer, gen),
      accepted(Input.steer("and", { id: "s2" }), gen),
      delivered("p1"),
      held("s1", gen),
      {
        type: "steering.unknown",
        generation_id: gen,
        input_id: inputId("s2"),
        target_generation_id: gen,
        reason: "write-failed",
        cause: "storage"
      }
    )
    const generation = projection.generations.get(gen)
    assert.deepStrictEqual(generation && Report.partition(projection, generation), {
      delivered: [inputId("p1")],
      undelivered: [inputId("s1")],
      unknown: [inputId("s2")]
    })
  })

  it("L-E4 usage and requests are summed over the generation", () => {
    const { projection } = fold(
      ...begun,
      requested(1),
      completed(1, 10, 2),
      requested(2),
      completed(2, 20, 3),
      finished(gen)
    )
    const generation = projection.generations.get(gen)
    const report = generation && reportOf(projection, generation)
    assert.deepStrictEqual([report?.requests, report?.usage], [2, { inputTokens: 30, outputTokens: 5 }])
  })

  it("the report's text is the last message without calls, also when calls came with a later one", () => {
    const { projection } = fold(
      ...begun,
      message(1, "an answer"),
      message(2, "I will edit"),
      { ...asked, request: 2 },
      finished(gen)
    )
    assert.strictEqual(projection.generations.get(gen)?.text, "an answer")
  })

  it("the text of a message with several calls is not taken for an answer", () => {
    const second: Entry = { type: "tool.requested", ...call, call_id: "gen_1.1.2" as Ids.ToolCallId, params: {} }
    const { projection } = fold(...begun, message(1, "I will edit"), asked, second, finished(gen))
    assert.strictEqual(projection.generations.get(gen)?.text, "")
  })

  it("an ended generation stays while the next one runs", () => {
    const { projection } = fold(...begun, finished(gen), accepted(followUp), started(next, "f1"))
    assert.strictEqual(projection.active?.id, next)
    assert.strictEqual(projection.generations.get(gen)?.ended?.outcome, "finished")
  })
})

describe("Projection: calls", () => {
  const chain: ReadonlyArray<readonly [Event.Body, unknown]> = [
    [{ type: "tools.admitted", generation_id: gen, request: 1, call_ids: [callId] }, { _tag: "Admitted" }],
    [{ type: "tool.started", ...call }, { _tag: "Started" }],
    [
      { type: "tool.completed", ...call, result: "ok", is_failure: true },
      { _tag: "Completed", isFailure: true }
    ]
  ]

  it("L-T1 a call's status follows its events", () => {
    const { apply, projection } = fold(...begun, asked)
    const status = () => projection.generations.get(gen)?.calls.find(({ id }) => id === callId)?.status
    assert.deepStrictEqual(status(), { _tag: "Requested" })
    for (const [event, expected] of chain) {
      apply([event])
      assert.deepStrictEqual(status(), expected)
    }
  })

  const ends: ReadonlyArray<readonly [Event.Body, unknown]> = [
    [
      { type: "tool.failed", ...call, reason: "no disk" },
      { _tag: "Failed", error: "no disk" }
    ],
    [
      { type: "tool.denied", ...call, reason: "no" },
      { _tag: "Denied", reason: "no" }
    ],
    [
      { type: "tool.not_started", ...call, reason: "steering", cause: "user", input_ids: [inputId("s1")] },
      { _tag: "NotStarted", reason: "steering", inputIds: [inputId("s1")] }
    ],
    [
      { type: "tool.not_started", ...call, reason: "invalid", cause: "provider-failure", detail: "no path" },
      { _tag: "NotStarted", reason: "invalid", detail: "no path" }
    ],
    [
      { type: "tool.interrupted", ...call, cause: "cancel", effects: "unknown" },
      { _tag: "Interrupted", effects: "unknown", cause: "cancel" }
    ],
    [
      { type: "tool.interrupted", ...call, cause: "close", effects: "verified", result: { done: true } },
      { _tag: "Interrupted", effects: "verified", cause: "close", outcome: { done: true } }
    ]
  ]
  for (const [event, expected] of ends) {
    it(`L-T1 ${event.type} with ${JSON.stringify(expected)} is what the report says`, () => {
      const { projection } = fold(...begun, asked, event, finished(gen))
      const generation = projection.generations.get(gen)
      const report = generation && reportOf(projection, generation)
      assert.deepStrictEqual(report?.tools, [
        { id: callId, providerId: "a", name: "edit", request: 1, status: expected as never }
      ])
    })
  }

  it.effect("L-R8 an event of a generation that never started is an error of the journal, not a silence", () =>
    Effect.sync(() => {
      assert.throws(() => fold(asked), /gen_1/)
    })
  )
})
