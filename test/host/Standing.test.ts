import { assert, describe, it } from "@effect/vitest"
import type { SessionStatus } from "../../src/domain/Generation.ts"
import type { GenerationId, InputId, SessionId, ToolCallId } from "../../src/domain/Ids.ts"
import * as ResumeCondition from "../../src/domain/ResumeCondition.ts"
import * as Answer from "../../src/host/cli/Answer.ts"
import * as Pauses from "../../src/host/cli/Pauses.ts"
import * as Standing from "../../src/host/cli/Standing.ts"
import * as Style from "../../src/host/cli/Style.ts"
import * as View from "../../src/host/cli/View.ts"

type Pause = SessionStatus["pauses"][number]

const status = (changes: Partial<SessionStatus>): SessionStatus => ({
  sessionId: "ses" as SessionId,
  agent: "files",
  closed: false,
  generation: {
    id: "gen_1" as GenerationId,
    initialInputId: "in-1" as InputId,
    startedAt: 0,
    request: 2,
    phase: { _tag: "Paused" },
    pendingInputIds: []
  },
  queuedInputIds: [],
  pauses: [],
  identities: { used: 1, limit: 2000 },
  sequence: 1,
  evidence: { durable: false, context: "journal", reconciler: false },
  ...changes
})
const queued = ["in-2" as InputId]
const pause = (until: ResumeCondition.ResumeCondition, changes: Partial<Pause> = {}): Pause => ({
  until,
  unmet: ResumeCondition.unmet(until, { manual: false, signals: new Set(), inputAccepted: false, now: 0 }),
  effective: true,
  ...changes
})
const calls = (unsettled: ReadonlyArray<string>, asked: ReadonlyArray<string>): View.View => ({
  ...View.make(Style.plain),
  calls: new Map(unsettled.map((id) => [id as ToolCallId, id])),
  questions: new Map(
    asked.map((id, index) => [id as ToolCallId, { call: id as ToolCallId, number: index + 1, label: id, open: true }])
  )
})
const standing = (changes: Partial<SessionStatus>, view = View.make(Style.plain)) =>
  Standing.of(status(changes), view, 0)
const { Idle, Waiting, Working } = Standing.Standing

describe("a session", () => {
  it("that nothing runs in and nothing waits in is idle, paused or not", () => {
    assert.deepStrictEqual(standing({ generation: null }), Idle())
    assert.deepStrictEqual(standing({ generation: null, pauses: [pause(ResumeCondition.manual)] }), Idle())
  })

  it("goes on by itself while a run does, or one is to start", () => {
    assert.deepStrictEqual(standing({}), Working())
    assert.deepStrictEqual(standing({ generation: null, queuedInputIds: queued }), Working())
  })

  it("waits for what ends a pause of all work, once it is in effect", () => {
    const tea = ResumeCondition.signal("tea")
    const waiting = Waiting({ what: "the signal tea (/resume tea)" })
    assert.deepStrictEqual(standing({ pauses: [pause(tea)] }), waiting)
    assert.deepStrictEqual(standing({ generation: null, queuedInputIds: queued, pauses: [pause(tea)] }), waiting)
    assert.deepStrictEqual(standing({ pauses: [pause(tea, { effective: false })] }), Working())
    assert.deepStrictEqual(standing({ pauses: [pause(tea, { scope: { tools: ["move_file"] } })] }), Working())
  })

  it("does not wait where time alone ends the pause", () => {
    const { all, any, at, manual, signal } = ResumeCondition
    const ends = (until: ResumeCondition.ResumeCondition, unmet?: ReadonlyArray<ResumeCondition.ResumeCondition>) =>
      Pauses.endsByItself(pause(until, unmet === undefined ? {} : { unmet }))
    assert.isTrue(ends(at(9)))
    assert.isTrue(ends(any(manual, at(9))))
    assert.isFalse(ends(all(manual, at(9))))
    assert.isTrue(ends(all(manual, at(9)), [at(9)]))
    assert.isFalse(ends(all(any(manual, signal("a")), at(9)), [manual, signal("a"), at(9)]))
    assert.isFalse(ends(any()))
  })

  it("waits for an answer only when every call that is left was asked about", () => {
    assert.deepStrictEqual(
      standing({}, calls(["c1", "c2"], ["c1", "c2"])),
      Waiting({ what: "an answer to question 1 and 2 (/approve or /deny)" })
    )
    assert.deepStrictEqual(standing({}, calls(["c1", "c2"], ["c1"])), Working())
    assert.deepStrictEqual(standing({}, View.answered(calls(["c1"], ["c1"]), "c1" as ToolCallId)), Working())
  })
})

describe("a status", () => {
  it("shows the pauses, the questions, and the waiting inputs with their numbers and texts", () => {
    const known = {
      runs: ["gen_1" as GenerationId],
      questions: View.asking(calls(["c1"], ["c1"])),
      rows: [
        {
          id: "in-2",
          kind: "follow-up",
          text: "write a report",
          receipt: { accepted: true, inputId: "in-2" as InputId, generationId: null, disposition: "queued" }
        }
      ] as const,
      now: 0
    }
    const pauses = [
      pause(ResumeCondition.manual),
      pause(ResumeCondition.at(3000), { effective: false, scope: { tools: [] } })
    ]
    assert.deepStrictEqual(Answer.status(Style.plain, known, status({ pauses, queuedInputIds: queued })), [
      "run 1 is running, request 2 (paused)",
      "  pause in effect: it waits for /resume",
      "  pause of nothing accepted, not yet in effect: it waits for the time to be up (3 s more)",
      "  question 1 waits: c1",
      "  corrections pending: none; waiting for a later run: in-2",
      "    in-2: write a report /now 2 /drop 2",
      "  1 of 2000 input ids used; sequence 1"
    ])
  })
})
