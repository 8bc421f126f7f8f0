/** P1, P3 and P4: what a host's preparation leaves out, what it may not give, and what a provider that remembers is told. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Prompt, ResponseIdTracker } from "effect/ai"
import { TestClock } from "effect/testing"
import { AgentRuntime, ContextPreparation, type Ids, Input } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, open, toolResults, types, userTexts } from "../support/harness.ts"
import { gate, ofType, seenType } from "../support/providers.ts"
import { duringRequest, duringTool, passing, receipts, report } from "../support/scenes.ts"

const on = it.effect
const runtime = Effect.provide(AgentRuntime.layerMemory)
const prepared = (service: ContextPreparation.Service) =>
  Effect.provideService(ContextPreparation.ContextPreparation, service)

type Change = (messages: ReadonlyArray<Prompt.Message>) => ReadonlyArray<Prompt.Message>

/** Changes what these requests carry, and leaves the others as they are. */
const changing = (change: Change, ...requests: ReadonlyArray<number>) =>
  prepared((prompt, { request }) =>
    Effect.succeed(requests.includes(request) ? Prompt.fromMessages([...change(prompt.content)]) : prompt)
  )

const without =
  (...ids: ReadonlyArray<string>): Change =>
  (messages) =>
    messages.filter((message) => !ids.includes(Input.idOfMessage(message) ?? ""))

const look = (id: string) => ScriptedModel.call("look", { path: id }, id)
const notCarried = (h: Harness) =>
  Effect.map(h.events, (events) =>
    ofType(events, "steering.not_carried").map((event) => [String(event.input_id), event.request])
  )
const carriedFirst = (h: Harness) =>
  Effect.map(h.events, (events) => ofType(events, "request.started").map((event) => event.input_ids.map(String)))

/** A generation steered during its first tool call; its second request is answered with a call, its third with text. */
const steered = Effect.gen(function* () {
  const h = yield* duringTool({ after: [look("b"), ScriptedModel.text("third"), ScriptedModel.text("fourth")] })
  yield* h.steer(h.id, "and so", { id: "s" })
  yield* h.go
  yield* report(h, h.id)
  return h
})

describe("L-P1 what preparation drops", () => {
  on("L-P1 is told as not carried, and the request does not claim to carry it", () =>
    Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(yield* notCarried(h), [["s", 2]])
      assert.deepStrictEqual((yield* carriedFirst(h))[1], [])
      assert.deepStrictEqual(userTexts(h.model.requests[1]), ["do it"])
    }).pipe(Effect.scoped, changing(without("s"), 2), runtime)
  )

  on("L-P1 the receipt names the first request that really carried it", () =>
    Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(userTexts(h.model.requests[2]), ["do it", "and so"])
      assert.deepStrictEqual((yield* carriedFirst(h))[2], ["s"])
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 3"])
    }).pipe(Effect.scoped, changing(without("s"), 2), runtime)
  )

  on("L-P1 dropped from several requests it is told once, for the first", () =>
    Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(yield* notCarried(h), [["s", 2]])
    }).pipe(Effect.scoped, changing(without("s"), 2, 3), runtime)
  )

  on("L-P1 carried by no request, it stays applied without one", () =>
    Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied"])
    }).pipe(Effect.scoped, changing(without("s"), 2, 3), runtime)
  )

  on("L-F7 carried by no request that completed, it is delivered and not completed", () =>
    Effect.gen(function* () {
      const h = yield* steered
      const completed = ofType(yield* h.events, "input.completed").map((event) => String(event.input_id))
      assert.deepStrictEqual(completed, ["p"])
      const status = yield* h.session.input(inputId("s"))
      assert.strictEqual(status._tag === "Some" ? status.value._tag : undefined, "Delivered")
    }).pipe(Effect.scoped, changing(without("s"), 2, 3), runtime)
  )

  on("L-F7 carried by a request that failed and not by the one that was then made, it is not completed", () =>
    Effect.gen(function* () {
      const h = yield* duringTool({ after: [ScriptedModel.fail(passing()), ScriptedModel.text("third")] })
      yield* h.steer(h.id, "and so", { id: "s" })
      yield* h.go
      yield* seenType(h.session, "request.failed")
      yield* TestClock.adjust("1 minute")
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* receipts(h, "s"), ["applied in 2"])
      const completed = ofType(yield* h.events, "input.completed").map((event) => String(event.input_id))
      assert.deepStrictEqual(completed, ["p"])
    }).pipe(Effect.scoped, changing(without("s"), 3), runtime)
  )

  on("L-P1 what is kept is carried, and nothing is told of it", () =>
    Effect.gen(function* () {
      const h = yield* duringTool({ calls: ["edit", "look"] })
      yield* h.steer(h.id, "one", { id: "one" })
      yield* h.steer(h.id, "two", { id: "two" })
      yield* h.go
      yield* report(h, h.id)
      assert.deepStrictEqual(yield* notCarried(h), [["one", 2]])
      assert.deepStrictEqual(yield* receipts(h, "one", "two"), ["applied", "applied in 2"])
    }).pipe(Effect.scoped, changing(without("one"), 2), runtime)
  )

  on("L-P1 a preparation that changes nothing tells of nothing", () =>
    Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(yield* notCarried(h), [])
      assert.deepStrictEqual(yield* carriedFirst(h), [["p"], ["s"], []])
    }).pipe(
      Effect.scoped,
      changing((messages) => messages, 1, 2, 3),
      runtime
    )
  )

  on("L-P1 the conversation itself keeps what preparation dropped", () =>
    Effect.gen(function* () {
      const h = yield* steered
      const { content } = yield* Effect.orDie(h.session.context)
      assert.deepStrictEqual(
        content.flatMap((message) => Input.idOfMessage(message) ?? []),
        ["p", "s"].map(inputId)
      )
    }).pipe(Effect.scoped, changing(without("s"), 2, 3), runtime)
  )

  on("L-P1 preparation is told the request, its generation and the inputs no request has carried", () => {
    const asked: Array<readonly [Ids.GenerationId, number, ReadonlyArray<string>]> = []
    return Effect.gen(function* () {
      const h = yield* steered
      assert.deepStrictEqual(asked, [
        [h.id, 1, ["p"]],
        [h.id, 2, ["s"]],
        [h.id, 3, []]
      ])
    }).pipe(
      Effect.scoped,
      prepared((prompt, { generationId, request, uncarried }) =>
        Effect.sync(() => {
          asked.push([generationId, request, uncarried])
          return prompt
        })
      ),
      runtime
    )
  })
})

const text = (value: string) => Prompt.makePart("text", { text: value })
const blank = Prompt.assistantMessage({ content: [text("  ")] })
const thinking = Prompt.assistantMessage({ content: [Prompt.makePart("reasoning", { text: "hm" })] })
const role =
  (...roles: ReadonlyArray<Prompt.Message["role"]>): Change =>
  (messages) =>
    messages.filter((message) => !roles.includes(message.role))

/** Prompts that no strict provider would take, each of a conversation with one tool call. */
const unsendable: ReadonlyArray<readonly [string, Change]> = [
  ["case 29: a call without its result", role("tool")],
  ["case 29: a result without its call", role("assistant")],
  ["a blank assistant message", (messages) => [...messages, blank, Prompt.userMessage({ content: [text("go on")] })]],
  [
    "an assistant message of reasoning alone",
    (messages) => [...messages, thinking, Prompt.userMessage({ content: [text("go on")] })]
  ],
  ["a blank user message", (messages) => [...messages, Prompt.userMessage({ content: [text(" ")] })]],
  [
    "a last message of the assistant's",
    (messages) => [...messages, Prompt.assistantMessage({ content: [text("so")] })]
  ],
  ["nothing but the instructions", role("user", "assistant", "tool")],
  ["the generation's prompt lost", without("p")],
  [
    "the generation's prompt replaced by its own words without a mark",
    (messages) =>
      messages.map((message) =>
        message.role === "user" ? Prompt.userMessage({ content: [text("summary of: do it")] }) : message
      )
  ]
]

describe("L-P3 what preparation may not give", () => {
  for (const [name, change] of unsendable) {
    on(`L-P3 ${name} fails the generation as invalid-prompt, and nothing is sent`, () =>
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* h.go
        const { error, outcome, requests } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, error?.kind, requests], ["failed", "invalid-prompt", 1])
        assert.strictEqual(h.model.requests.length, 1)
        assert.deepStrictEqual(h.model.violations, [])
      }).pipe(Effect.scoped, changing(change, 2), runtime)
    )
  }

  on("L-P3 the error says what is wrong with the prompt", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.go
      const { error } = yield* report(h, h.id)
      assert.include(error?.message, "call-1")
      const [failed] = ofType(yield* h.events, "generation.failed")
      assert.deepStrictEqual([failed?.cause, failed?.error], ["preparation", error])
    }).pipe(Effect.scoped, changing(role("tool"), 2), runtime)
  )

  on("L-P3 the generation's prompt may be summarised, if the message says so", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.go
      assert.strictEqual((yield* report(h, h.id)).outcome, "finished")
      assert.deepStrictEqual(userTexts(h.model.requests[1]), ["They asked for it."])
    }).pipe(
      Effect.scoped,
      changing(
        (messages) =>
          messages.map((message) =>
            message.role === "user" ? ContextPreparation.summary("They asked for it.") : message
          ),
        2
      ),
      runtime
    )
  )

  for (const [name, broken] of [
    ["fails", Effect.fail("no room")],
    ["dies", Effect.die(new Error("no room"))]
  ] as const) {
    on(`L-P3 a preparation that ${name} fails the generation as preparation, and nothing is sent`, () =>
      Effect.gen(function* () {
        const h = yield* duringTool()
        yield* h.steer(h.id, "more", { id: "s" })
        yield* h.go
        const { error, outcome } = yield* report(h, h.id)
        assert.deepStrictEqual([outcome, error?.kind], ["failed", "preparation"])
        assert.include(error?.message, "no room")
        assert.strictEqual(h.model.requests.length, 1)
      }).pipe(
        Effect.scoped,
        prepared((prompt, { request }) => (request === 2 ? broken : Effect.succeed(prompt))),
        runtime
      )
    )
  }

  on("L-P3 a preparation that throws fails the generation as preparation", () =>
    Effect.gen(function* () {
      const h = yield* open({ script: [] })
      const { error } = yield* report(h, yield* h.prompt("go"))
      assert.deepStrictEqual([error?.kind, h.model.requests.length], ["preparation", 0])
    }).pipe(
      Effect.scoped,
      prepared(() => {
        throw new Error("no room")
      }),
      runtime
    )
  )

  on("L-P3 after such a failure the conversation is as it was, and the next prompt is sent", () =>
    Effect.gen(function* () {
      const h = yield* duringTool()
      yield* h.go
      yield* report(h, h.id)
      assert.strictEqual((yield* report(h, yield* h.prompt("again"))).outcome, "finished")
      const [, second] = h.model.requests
      assert.deepStrictEqual(
        toolResults(second).map(({ id }) => id),
        ["call-1"]
      )
      assert.strictEqual(userTexts(second)[0], "do it")
    }).pipe(Effect.scoped, changing(role("tool"), 2), runtime)
  )
})

describe("L-P2 a slow preparation", () => {
  const slow = Effect.gen(function* () {
    const preparing = yield* gate
    const service: ContextPreparation.Service = (prompt, { request }) =>
      request === 1 ? preparing.pass(prompt) : Effect.succeed(prompt)
    const h = yield* prepared(service)(
      open({ script: ["one", "two", "three"].map((each) => ScriptedModel.text(each)) })
    )
    const id = yield* h.prompt("go", "p")
    yield* preparing.entered
    return { h, id, preparing }
  })

  on("L-P2 a steer that arrives meanwhile is carried by that request or the next", () =>
    Effect.gen(function* () {
      const { h, id, preparing } = yield* slow
      yield* h.steer(id, "more", { id: "s" })
      yield* preparing.open
      assert.strictEqual((yield* report(h, id)).outcome, "finished")
      const first = h.model.requests.findIndex((request) => userTexts(request).includes("more"))
      assert.include([0, 1], first)
      assert.deepStrictEqual(yield* receipts(h, "s"), [`applied in ${first + 1}`])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 one that never answers is ended by a cancel, and nothing is sent", () =>
    Effect.gen(function* () {
      const { h, id } = yield* slow
      yield* h.steer(id, "more", { id: "s" })
      yield* h.session.cancel(id)
      const { outcome, requests } = yield* report(h, id)
      assert.deepStrictEqual([outcome, requests, h.model.requests.length], ["cancelled", 0, 0])
      assert.deepStrictEqual(yield* receipts(h, "p", "s"), ["applied", "held generation-cancelled"])
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C4 one that ignores its interruption is left after the grace time, and nothing is sent", () =>
    Effect.gen(function* () {
      const preparing = yield* gate
      const service: ContextPreparation.Service = (prompt) => Effect.uninterruptible(preparing.pass(prompt))
      const h = yield* prepared(service)(open({ script: [] }))
      const id = yield* h.prompt("go")
      yield* preparing.entered
      yield* h.session.cancel(id)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* report(h, id)).outcome, "cancelled")
      yield* preparing.open
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(h.model.requests.length, 0)
    }).pipe(Effect.scoped, runtime)
  )

  on("L-C5 a stop meanwhile makes no request", () =>
    Effect.gen(function* () {
      const { h, id, preparing } = yield* slow
      yield* h.session.stop(id)
      yield* preparing.open
      const { outcome } = yield* report(h, id)
      assert.deepStrictEqual([outcome, h.model.requests.length], ["stopped", 0])
      assert.notInclude(types(yield* h.events), "request.started")
    }).pipe(Effect.scoped, runtime)
  )
})

describe("L-P4 preparation and a provider that remembers responses", () => {
  const from = (id: string, step: ScriptedModel.Step) => ScriptedModel.steps([ScriptedModel.metadata(id), step])
  const tracked = Effect.provideServiceEffect(ResponseIdTracker.ResponseIdTracker, ResponseIdTracker.make)
  const remembered = Effect.gen(function* () {
    const h = yield* duringRequest({
      first: from("r1", look("a")),
      after: [from("r2", look("b")), from("r3", ScriptedModel.text("third"))]
    })
    yield* h.steer(h.id, "and so", { id: "s", scope: { tools: [] } })
    yield* h.go
    yield* report(h, h.id)
    return h.model.requests.map((request) => request.previousResponseId)
  })

  on("L-P4 that leaves the prompt as it is changes nothing: only what is new is sent", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* remembered, [undefined, "r1", "r2"])
    }).pipe(
      Effect.scoped,
      prepared((prompt) => Effect.succeed(prompt)),
      tracked,
      runtime
    )
  )

  on("L-P4 that changed the prefix has the whole prompt sent, on no earlier response", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* remembered, [undefined, undefined, undefined])
    }).pipe(Effect.scoped, changing(without("s"), 2, 3), tracked, runtime)
  )

  on("L-P4 that changed the prefix of one request has the whole prompt sent in the next one too", () =>
    Effect.gen(function* () {
      const hint = Prompt.userMessage({ content: [text("a hint for this request alone")] })
      const ids = yield* changing((messages) => [...messages, hint], 2)(remembered)
      assert.deepStrictEqual(ids, [undefined, undefined, undefined])
    }).pipe(Effect.scoped, tracked, runtime)
  )
})
