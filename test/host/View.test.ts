import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "../../src/domain/Event.ts"
import type { GenerationId, InputId, SessionId, ToolCallId } from "../../src/domain/Ids.ts"
import type { Receipt } from "../../src/domain/Receipt.ts"
import * as Answer from "../../src/host/cli/Answer.ts"
import * as Screen from "../../src/host/cli/Screen.ts"
import * as Style from "../../src/host/cli/Style.ts"
import * as View from "../../src/host/cli/View.ts"

const session_id = "ses" as SessionId
const generation_id = "gen_1" as GenerationId
const input = (id: string) => id as InputId

type Body = SessionEvent extends infer Event
  ? Event extends SessionEvent
    ? Omit<Event, "session_id" | "sequence" | "time" | "live" | "generation_id">
    : never
  : never

const eventOf = (body: Body): SessionEvent =>
  ({ ...body, session_id, generation_id, sequence: 1, time: 0 }) as SessionEvent

/** What has been seen after these. */
const after = (bodies: ReadonlyArray<Body>): View.View =>
  bodies.reduce((view, body) => View.next(view, eventOf(body))[0], View.make(Style.plain))

/** What a pipe would get to read. */
const written = (bodies: ReadonlyArray<Body>, palette = Style.plain): string => {
  let out = ""
  const screen = Screen.sequential((text) => {
    out += text
  })
  let view = View.make(palette)
  for (const body of bodies) {
    const [next, pieces] = View.next(view, eventOf(body))
    view = next
    pieces.forEach(screen.show)
  }
  screen.end()
  return out
}

const started = { type: "generation.started", initial_input_id: input("in-1"), input_ids: [input("in-1")] } as const
const request = (request: number, ...ids: ReadonlyArray<string>) =>
  ({ type: "request.started", request, input_ids: ids.map(input) }) as const
const completed = (request: number) =>
  ({
    type: "request.completed",
    reason: "stop",
    request,
    input_ids: [],
    usage: { inputTokens: 10, outputTokens: 2 }
  }) as const
const delta = (text: string) => ({ type: "text.delta", request: 1, text }) as const
const message = (text: string) => ({ type: "assistant.message", request: 1, text }) as const
const call = (id: string, tool = "move_file") =>
  ({ call_id: id as ToolCallId, provider_call_id: id, tool, request: 1 }) as const
const requested = (id: string, params: { readonly [key: string]: string }) =>
  ({ type: "tool.requested", ...call(id), params }) as const
const ended = (type: "generation.finished" | "generation.failed", error?: string) =>
  ({
    type,
    input_ids: [],
    accepted_input_ids: [],
    unknown_input_ids: [],
    text: "",
    cause: "finish",
    ...(error === undefined ? undefined : { error: { kind: "provider" as const, message: error } })
  }) as const

describe("an input", () => {
  it("is queued until a request is announced that carries it", () => {
    const accepted = { type: "input.accepted", input_id: input("in-2"), intent: "steer" } as const
    const delivered = {
      type: "steering.applied",
      input_id: input("in-2"),
      target_generation_id: generation_id,
      delivery: "request_boundary"
    } as const
    assert.strictEqual(written([accepted, delivered]), "* in-2 queued (steer)\n")
    assert.strictEqual(
      written([accepted, delivered, request(3, "in-2")]),
      "* in-2 queued (steer)\nrequest 3\n* in-2 applied in request 3\n"
    )
  })

  it("that waits for a run of its own says so", () =>
    assert.strictEqual(
      written([{ type: "input.accepted", input_id: input("in-2"), intent: "follow-up" }]),
      "* in-2 queued for a later run (follow-up)\n"
    ))

  it("that is held or unknown says why", () => {
    const fields = { input_id: input("in-2"), target_generation_id: generation_id, cause: "cancel" } as const
    assert.strictEqual(
      written([
        { type: "steering.held", ...fields, reason: "generation-cancelled" },
        { type: "steering.unknown", ...fields, reason: "write-interrupted" }
      ]),
      "* in-2 held (generation-cancelled)\n* in-2 unknown (write-interrupted)\n"
    )
  })
})

describe("what the model says", () => {
  it("is one line, however it was cut up", () =>
    assert.strictEqual(
      written([delta("I li"), delta("st "), delta("it."), completed(1), message("I list it.")]),
      "  I list it.\n"
    ))

  it("keeps its lines and loses its blank ones", () =>
    assert.strictEqual(written([delta("\n\none\n"), delta("\ntwo"), completed(1)]), "  one\n  two\n"))

  it("is shown whole when its pieces were not", () =>
    assert.strictEqual(written([delta("I l"), completed(1), message("I list it.")]), "  I l\n  I list it.\n"))

  it("goes on below a line that comes into it", () => {
    const held = {
      type: "steering.held",
      input_id: input("in-2"),
      target_generation_id: null,
      cause: "user",
      reason: "withdrawn"
    } as const
    assert.strictEqual(
      written([delta("I list"), held, delta(" it."), completed(1)]),
      "  I list\n* in-2 held (withdrawn)\n  it.\n"
    )
  })

  it("cannot move the cursor, colour the screen or title the window", () =>
    assert.strictEqual(written([delta("a\u001b[2J\u001b]0;title\u0007b\u009bc\u202ed\r"), completed(1)]), "  abcd \n"))
})

describe("a tool call", () => {
  const params = { from: "inbox/a.md", to: "archive/2025/a.md" }
  const label = "  move_file inbox/a.md -> archive/2025/ ..."

  it("is one line from its start to its end", () =>
    assert.strictEqual(
      written([
        requested("c1", params),
        { type: "tool.started", ...call("c1") },
        { type: "tool.completed", ...call("c1"), result: {}, is_failure: false }
      ]),
      `${label} done\n`
    ))

  it("that was withheld is not shown as started, and names what came first", () =>
    assert.strictEqual(
      written([
        requested("c1", params),
        { type: "tool.not_started", ...call("c1"), reason: "steering", cause: "user", input_ids: [input("in-2")] }
      ]),
      `${label} not started (steering): in-2 came first\n`
    ))

  it("that failed, was denied or was interrupted says so", () => {
    assert.strictEqual(
      written([
        requested("c1", params),
        { type: "tool.completed", ...call("c1"), result: { detail: "it is taken" }, is_failure: true }
      ]),
      `${label} failed: it is taken\n`
    )
    assert.include(written([{ type: "tool.failed", ...call("c1"), reason: "boom" }]), "failed: boom")
    assert.include(written([{ type: "tool.denied", ...call("c1"), reason: "not here" }]), "denied: not here")
    assert.include(
      written([{ type: "tool.interrupted", ...call("c1"), cause: "cancel", effects: "unknown" }]),
      "interrupted (cancel); effects: unknown"
    )
  })

  it("beside another ends on a line of its own", () =>
    assert.strictEqual(
      written([
        requested("c1", { path: "a" }),
        requested("c2", { path: "b" }),
        { type: "tool.started", ...call("c1") },
        { type: "tool.started", ...call("c2") },
        { type: "tool.completed", ...call("c1"), result: {}, is_failure: false },
        { type: "tool.completed", ...call("c2"), result: {}, is_failure: false }
      ]),
      ["  move_file a ...", "  move_file b ...", "  move_file a ... done", "  move_file b ... done", ""].join("\n")
    ))

  it("with a long parameter says how long it is", () =>
    assert.include(
      written([requested("c1", { path: "a", content: "x".repeat(500) }), { type: "tool.started", ...call("c1") }]),
      "(content: 500 characters)"
    ))
})

describe("calls that run at once", () => {
  it("are said to be launched together; one alone is not", () => {
    const wave = (...ids: ReadonlyArray<string>) =>
      ({ type: "tools.admitted", request: 1, call_ids: ids.map((id) => id as ToolCallId) }) as const
    const asked = [requested("c1", { path: "a" }), requested("c2", { path: "b" })]
    assert.strictEqual(written([...asked, wave("c1", "c2")]), "  launched together: move_file a; move_file b\n")
    assert.strictEqual(written([...asked, wave("c1")]), "")
  })
})

describe("a question about a call", () => {
  const asks = (id: string, params: { readonly [key: string]: string }) =>
    ({ type: "tool.approval_requested", ...call(id), reason: "may it run?", params }) as const
  const move = { from: "inbox/a.md", to: "archive/a.md" }

  it("has a number, the call's parameters and its two answers", () =>
    assert.strictEqual(
      written([requested("c1", move), asks("c1", move)]),
      "  question 1: move_file inbox/a.md -> archive/: may it run? /approve 1 or /deny 1 REASON\n"
    ))

  it("shows the beginning of a long parameter", () => {
    const write = { path: "a", content: `# Index\n${"x".repeat(500)}` }
    const out = written([requested("c1", write), asks("c1", write)])
    assert.include(out, "move_file a (content: 508 characters): may it run?")
    assert.match(out, /\n    content: # Index x{290,}…\n$/)
  })

  it("waits until its call is answered or ends, and keeps its number when it is asked again", () => {
    const goesOn = { type: "generation.resumed", initial_input_id: input("in-1"), input_ids: [], request: 1 } as const
    const begin = [requested("c1", move), requested("c2", move), asks("c1", move), asks("c2", move)]
    const numbers = (...bodies: ReadonlyArray<Body>) =>
      View.asking(after([...begin, ...bodies])).map(({ number }) => number)
    assert.deepStrictEqual(numbers(), [1, 2])
    assert.deepStrictEqual(numbers({ type: "tool.started", ...call("c1") }), [2])
    assert.deepStrictEqual(numbers({ type: "tool.denied", ...call("c2"), reason: "no" }), [1])
    assert.deepStrictEqual(numbers(goesOn), [])
    assert.deepStrictEqual(numbers(goesOn, asks("c2", move)), [2])
    const answered = View.answered(after(begin), "c1" as ToolCallId)
    assert.deepStrictEqual(
      View.asking(answered).map(({ number }) => number),
      [2]
    )
    assert.strictEqual(answered.calls.size, 2)
  })
})

describe("a pause", () => {
  const until = { _tag: "Signal", name: "tea" } as const
  const scope = { tools: ["move_file"] }

  it("is shown when it is accepted, in effect and over, with what ends it", () =>
    assert.strictEqual(
      written([
        { type: "pause.requested", until, unmet: [until] },
        { type: "pause.effective", until, requested: 1 },
        { type: "pause.ended", until, requested: 1 }
      ]),
      [
        "pause accepted: what runs may finish; it lasts until the signal tea (/resume tea)",
        "pause in effect: nothing runs",
        "pause ended",
        ""
      ].join("\n")
    ))

  it("of some tools names them", () =>
    assert.strictEqual(
      written([
        { type: "pause.requested", until: { _tag: "At", instant: 2500 }, unmet: [], scope },
        { type: "pause.effective", until, requested: 1, scope },
        { type: "pause.ended", until, requested: 1, scope }
      ]),
      [
        "pause of move_file accepted: what runs may finish; it lasts until the time to be up (2.5 s more)",
        "pause of move_file in effect: none of their calls runs",
        "pause of move_file ended",
        ""
      ].join("\n")
    ))
})

describe("a session that is opened again", () => {
  const recovered = { type: "session.recovered", lost_generation_id: generation_id } as const
  const parked = { type: "generation.parked", initial_input_id: input("in-1"), input_ids: [] } as const

  it("says that a process was lost, and not where it handed its run on", () => {
    assert.include(written([started, recovered]), "the process that ran run 1 had ended in the middle of it")
    assert.notInclude(written([started, parked, recovered]), "had ended")
    assert.strictEqual(written([{ type: "session.recovered" }]), "the session is open again\n")
  })

  it("recalls what was shown before and goes on from there", () => {
    const before: ReadonlyArray<Body> = [
      started,
      request(1, "in-1"),
      requested("c1", { path: "a" }),
      { type: "tool.started", ...call("c1") }
    ]
    const view = before.reduce<View.View>((view, body) => View.recall(view, eventOf(body)), View.make(Style.plain))
    const interrupted = { type: "tool.interrupted", ...call("c1"), cause: "process-loss", effects: "unknown" } as const
    const [, pieces] = View.next(view, eventOf(interrupted))
    assert.deepStrictEqual(pieces, [
      View.Piece.Line({ text: "  move_file a ... interrupted (process-loss); effects: unknown" })
    ])
    assert.strictEqual(View.runOf(view, generation_id), "run 1")
  })
})

describe("a run", () => {
  it("is counted, and ends with what it used", () =>
    assert.strictEqual(
      written([started, request(1, "in-1"), completed(1), ended("generation.finished")]),
      [
        "run 1 starts with in-1",
        "request 1",
        "* in-1 applied in request 1",
        "run 1 finished",
        "  1 request completed, 10 tokens in, 2 out",
        ""
      ].join("\n")
    ))

  it("that fails says why once for all its tries, and once at the end", () => {
    const failed = (request: number, retry: boolean) =>
      ({
        type: "request.failed",
        request,
        input_ids: [],
        cause: "provider-failure",
        error: { kind: "provider", message: "no way." },
        retry
      }) as const
    assert.strictEqual(
      written([started, failed(1, true), failed(2, true), failed(3, false), ended("generation.failed", "no way.")]),
      [
        "run 1 starts with in-1",
        "request 1 failed: no way; trying again",
        "request 2 failed; trying again",
        "request 3 failed",
        "run 1 failed: no way.",
        "  0 requests completed, 0 tokens in, 0 out",
        ""
      ].join("\n")
    )
  })
})

describe("the words of the program", () => {
  const runs = [generation_id, "gen_2" as GenerationId]
  const refusal = (reason: "no-active-generation" | "busy" | "generation-mismatch" | "invalid-input") =>
    Answer.refused(Style.plain, runs, {
      accepted: false,
      inputId: "in-3",
      generationId: "gen_1",
      disposition: "refused",
      reason,
      actual: "gen_2" as GenerationId,
      detail: "content is blank"
    })

  it("say of a refusal what it was and what would be accepted", () => {
    assert.strictEqual(
      refusal("no-active-generation"),
      "* in-3 refused (no-active-generation): run 1 has ended and nothing was started; /prompt TEXT starts a new run"
    )
    assert.include(refusal("busy"), "/follow TEXT")
    assert.include(refusal("generation-mismatch"), "run 2 is running now")
    assert.include(refusal("invalid-input"), "content is blank")
  })

  it("are silent about an accepted control, which its event tells", () => {
    assert.isUndefined(Answer.controlled(Style.plain, runs, "stop", { accepted: true }))
    assert.strictEqual(
      Answer.controlled(Style.plain, runs, "stop", {
        accepted: false,
        reason: "generation-mismatch",
        actual: "gen_2" as GenerationId
      }),
      "stop refused (generation-mismatch); run 2 is running"
    )
  })

  it("say of a refused resume what is unmet, and of a refused withdrawal why", () => {
    const said = (what: string, receipt: Parameters<typeof Answer.controlled>[3]) =>
      Answer.controlled(Style.plain, runs, what, receipt, 1000)
    const unmet = [
      { _tag: "Signal", name: "tea" },
      { _tag: "At", instant: 5000 }
    ] as const
    assert.strictEqual(
      said("resume", { accepted: false, reason: "condition-unmet", unmet }),
      "resume refused (condition-unmet); it still waits for the signal tea (/resume tea) and the time to be up (4 s more)"
    )
    assert.strictEqual(
      said("resume", { accepted: false, reason: "condition-unmet", unmet: [] }),
      "resume refused (condition-unmet); nothing is paused"
    )
    assert.strictEqual(
      said("drop in-2", { accepted: false, reason: "not-queued" }),
      "drop in-2 refused (not-queued); it does not wait for a run of its own"
    )
  })

  it("end with every input, what became of it and the request that carried it", () => {
    const base = { accepted: true, inputId: input("in-1"), generationId: generation_id } as const
    const receipts: ReadonlyArray<Receipt> = [
      { ...base, disposition: "applied", request: 1 },
      { ...base, disposition: "held", reason: "generation-stopped" },
      { accepted: false, inputId: "in-3", generationId: null, disposition: "refused", reason: "busy" }
    ]
    const rows = receipts.map((receipt, index) => ({
      id: `in-${index + 1}`,
      kind: "steer",
      text: `t${index}`,
      receipt
    }))
    assert.deepStrictEqual(Answer.table(Style.plain, [generation_id], rows), [
      "input  kind   disposition                carried by  text",
      "in-1   steer  applied                    request 1   t0",
      "in-2   steer  held (generation-stopped)  -           t1",
      "in-3   steer  refused (busy)             -           t2"
    ])
    assert.include(Answer.table(Style.plain, runs, rows)[1], "run 1, request 1")
  })
})

describe("colours", () => {
  it("follow FORCE_COLOR, then NO_COLOR, then the terminal", () => {
    assert.isTrue(Style.wantsColour({}, true))
    assert.isFalse(Style.wantsColour({}, false))
    assert.isFalse(Style.wantsColour({ NO_COLOR: "1" }, true))
    assert.isTrue(Style.wantsColour({ NO_COLOR: "" }, true))
    assert.isTrue(Style.wantsColour({ FORCE_COLOR: "1", NO_COLOR: "1" }, false))
    assert.isFalse(Style.wantsColour({ FORCE_COLOR: "0" }, true))
    assert.isFalse(Style.wantsColour({ TERM: "dumb" }, true))
  })

  it("change no word and no width", () => {
    const events = [started, request(1, "in-1"), delta("I list it."), completed(1), ended("generation.finished")]
    const coloured = written(events, Style.coloured)
    assert.include(coloured, "\u001b[")
    assert.strictEqual(Style.clean(coloured), Style.clean(written(events)))
    assert.strictEqual(Style.widthOf(Style.coloured.bad("日本 é")), 6)
  })
})
