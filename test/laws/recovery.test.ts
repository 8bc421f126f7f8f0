/** R1, R2, R6 and C10: a process may die after any write it has made, and whoever opens the session next finds the truth. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ContextStore, type Event, type Ids, Input, type Receipt, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Contexts from "../support/contexts.ts"
import { generationId, journalled, type Options } from "../support/harness.ts"
import { seen } from "../support/scenes.ts"
import * as Stores from "../support/stores.ts"
import * as Truth from "../support/truth.ts"

type Mode = "settle" | "resume"
const modes: ReadonlyArray<Mode> = ["settle", "resume"]
const starters = new Set(["p1", "f1", "c1", "c2", "p2", "n1"])

/** What a process may still do by itself: everything once it is the last one. */
interface Gates {
  readonly send: Effect.Effect<void>
  readonly correct: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
  readonly hangs: boolean
}
const open: Gates = { send: Effect.void, correct: Effect.void, stop: Effect.void, hangs: false }

/** Answers by what the conversation has come to, so that any process can go on with it. */
const script =
  (gates: Gates): ScriptedModel.Script =>
  ({ index, prompt }) => {
    const at = prompt.findLastIndex((message) => starters.has(Input.idOfMessage(message) ?? ""))
    const message = prompt[at]
    const turn = message === undefined ? undefined : Input.idOfMessage(message)
    const steps = prompt.slice(at).filter(({ role }) => role === "tool").length
    const call = (name: string) => ({ name, params: { path: `${turn}-${name}` }, id: `${turn}-${name}` })
    if (turn === "p1" && steps === 0) return ScriptedModel.calls([call("look"), call("edit")])
    if (turn === "p1" && steps === 1) return ScriptedModel.calls([call("send")])
    if (turn === "p1") return ScriptedModel.wait(gates.correct, ScriptedModel.text(`${turn} ${index}`))
    if (turn === "f1" && steps === 0) return ScriptedModel.calls([call("look")])
    if (turn?.startsWith("c") === true && gates.hangs) return ScriptedModel.hang
    return ScriptedModel.text(`${turn} ${index}`)
  }

const optionsOf = (gates: Gates, began: Array<string>): Options => {
  const handle = (path: string) => {
    began.push(path)
    const wait = path === "p1-send" ? gates.send : path === "f1-look" ? gates.stop : Effect.void
    return Effect.as(wait, `did ${path}`)
  }
  return { script: script(gates), look: handle, edit: handle, send: handle }
}

/** What the callers of one process were given. */
interface Given {
  readonly receipts: Array<Receipt.Receipt>
  readonly controls: Array<Truth.Control>
  /** What was submitted, with its anchor: enough to submit it again. */
  readonly inputs: Array<readonly [Input.Input, Ids.GenerationId | undefined]>
}

/** Everything that may happen to a session, once. */
const life = (h: Stores.Process, gates: Record<"send" | "correct" | "stop", Deferred.Deferred<void>>, given: Given) =>
  Effect.gen(function* () {
    const { session } = h
    const submit = (input: Input.Input, anchor?: Ids.GenerationId) =>
      Effect.gen(function* () {
        given.inputs.push([input, anchor])
        const receipt = yield* anchor === undefined
          ? session.submit(input)
          : session.capability("live.steering").submit(input, anchor)
        given.receipts.push(receipt)
        return receipt
      })
    const control = (how: "cancel" | "stop", id: Ids.GenerationId) =>
      Effect.map(session[how](id), (receipt) => {
        if (receipt.accepted) given.controls.push({ how, generationId: id })
      })
    const live = Effect.map(session.generation, (found) =>
      Option.match(found, { onNone: () => generationId("none"), onSome: ({ id }) => id })
    )
    yield* submit(Input.prompt("p1", { id: "p1" }))
    const p1 = yield* live
    yield* seen(h, "tool.approval_requested")
    yield* submit(Input.ask("a1", { id: "a1" }), p1)
    const asked = (yield* h.events).flatMap((event) =>
      event.type === "tool.approval_requested" ? [event.call_id] : []
    )
    for (const call of asked) yield* session.decide(call, { _tag: "Allow" })
    yield* seen(h, "tool.started", 3)
    yield* submit(Input.followUp("f1", { id: "f1" }))
    yield* submit(Input.collect("c1", { id: "c1" }))
    yield* submit(Input.collect("c2", { id: "c2" }))
    yield* session.pause()
    yield* Deferred.succeed(gates.send, undefined)
    yield* seen(h, "pause.effective")
    yield* session.resume()
    yield* seen(h, "request.started", 3)
    yield* submit(Input.steer("s1", { id: "s1" }), p1)
    yield* submit(Input.steer("s2", { id: "s2" }))
    yield* Deferred.succeed(gates.correct, undefined)
    yield* seen(h, "tool.started", 4)
    yield* control("stop", yield* live)
    yield* Deferred.succeed(gates.stop, undefined)
    yield* seen(h, "generation.stopped")
    yield* TestClock.adjust("1 second")
    yield* seen(h, "request.started", 6)
    const last = yield* live
    yield* submit(Input.steer("s3", { id: "s3" }), last)
    yield* control("cancel", last)
    yield* seen(h, "generation.cancelled")
    yield* submit(Input.prompt("p2", { id: "p2" }))
    yield* seen(h, "generation.finished", 2)
  })

const asks: ToolPolicy.Service = ({ name }) =>
  Effect.succeed(name === "edit" ? ToolPolicy.ask("may it?") : ToolPolicy.allow)

type Store = Effect.Success<typeof Stores.disk>
const configured = (context: Contexts.HostContext | undefined) => {
  return <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    effect.pipe(
      Effect.provideService(ToolPolicy.ToolPolicy, asks),
      Effect.provideService(ContextStore.ContextStore, context?.service)
    )
}

/** How a process ends: with the answer to its last write, or without it. */
type Death = "answered" | "unanswered"

/** Lets `n` writes land, and nothing after them. */
const dies = (watched: Stores.Watched, n: number, death: Death) =>
  Effect.map(Deferred.make<void>(), (died) => {
    const dead = Effect.andThen(Deferred.succeed(died, undefined), Effect.never)
    watched.fate = (land, _, nth) =>
      nth < n || (nth === n && death === "answered") ? land : nth === n ? Effect.andThen(land, dead) : dead
    return Deferred.await(died)
  })

/** Lives until it has made `n` writes. Answers whether it died of it. */
const firstLife = (store: Store, context: Contexts.HostContext | undefined, n: number, death: Death) =>
  Effect.gen(function* () {
    const began: Array<string> = []
    const given: Given = { receipts: [], controls: [], inputs: [] }
    const gates = {
      send: yield* Deferred.make<void>(),
      correct: yield* Deferred.make<void>(),
      stop: yield* Deferred.make<void>()
    }
    const watched = Stores.watch(store)
    const died = yield* dies(watched, n, death)
    const mine = {
      send: Deferred.await(gates.send),
      correct: Deferred.await(gates.correct),
      stop: Deferred.await(gates.stop)
    }
    const h = yield* configured(context)(Stores.boot(watched.service, optionsOf({ ...mine, hangs: true }, began)))
    const lived = yield* Effect.raceFirst(Effect.as(life(h, gates, given), true), Effect.as(died, false))
    yield* Stores.settle
    assert.deepStrictEqual(h.model.violations, [])
    return { began, given, lived, writes: watched.appends.length }
  })

/** Opens what was left, lets it come to rest, and prompts. */
const lastLife = (store: Store, context: Contexts.HostContext | undefined, mode: Mode, began: Array<string>) =>
  Effect.gen(function* () {
    const bad: Array<string> = []
    const before = (yield* Stores.stored(store)).map((line) => line.slice(line.indexOf("{")))
    const left = before.map((text) => JSON.parse(text) as Event.SessionEvent).filter((event) => "type" in event)
    const h = yield* configured(context)(Stores.boot(store, { ...optionsOf(open, began), open: { recovery: mode } }))
    const { session } = h
    const atOpen = Option.getOrUndefined(yield* session.generation)
    const known = left.flatMap((event) => (event.type === "generation.started" ? [event.generation_id] : []))
    if (atOpen !== undefined && !known.includes(atOpen.id))
      bad.push("L-R6 a generation was started before open returned")
    const { pauses } = yield* session.status
    if (pauses.length > 0) {
      yield* Stores.settle
      if (h.model.requests.length > 0) bad.push("L-C3 a request was made in a pause")
      const refused = yield* session.submit(Input.prompt("n1", { id: "n1" }))
      if (refused.accepted) bad.push("L-C3 a prompt was accepted in a pause")
      yield* session.resume()
    }
    const decides = Stream.runForEach(journalled(session.events()), (event) =>
      event.type === "tool.approval_requested" && event.sequence > left.length
        ? session.decide(event.call_id, { _tag: "Allow" })
        : Effect.void
    )
    yield* Effect.forkDetach(decides, { startImmediately: true })
    yield* rest(h)
    const { id } = yield* Effect.map(h.prompt("n1", "n1"), (id) => ({ id }))
    yield* rest(h)
    const report = yield* Effect.orDie(session.await(id))
    if (report.outcome !== "finished") bad.push(`L-R3 the next prompt ${report.outcome}: ${report.error?.message}`)
    for (const violation of h.model.violations) bad.push(`L-R3 ${violation}`)
    return { h, bad, left }
  })

/** Lets time pass until nothing lives and nothing is to be started. */
const rest = (h: Stores.Process) =>
  Effect.gen(function* () {
    const idle = yield* Effect.forkDetach(h.session.awaitIdle, { startImmediately: true })
    for (let second = 0; second < 10 && idle.pollUnsafe() === undefined; second++) {
      yield* TestClock.adjust("1 second")
      yield* Stores.settle
    }
    const status = yield* h.session.status
    if (idle.pollUnsafe() === undefined) {
      return yield* Effect.die(new Error(`it does not come to rest: ${JSON.stringify(status)}`))
    }
    return yield* Effect.orDie(Fiber.join(idle))
  })

/** What became of what was left behind, by what the laws say of it. */
const recoveryLies = (
  left: ReadonlyArray<Event.SessionEvent>,
  events: ReadonlyArray<Event.SessionEvent>,
  mode: Mode
) => {
  const bad: Array<string> = []
  const started = left.flatMap((event) => (event.type === "generation.started" ? [event.generation_id] : []))
  const lost = started.find((id) => Truth.endOf(left, id) === undefined)
  const starts = events.flatMap((event) => (event.type === "generation.started" ? [event.initial_input_id] : []))
  const order = ["p1", "f1", "c1", "p2"].filter((id) => starts.some((started) => started === id))
  if (starts.filter((id) => order.includes(id)).join() !== order.join())
    bad.push(`L-R6 started in the order ${starts.join()}`)
  if (lost === undefined) return bad
  const mine = events.filter((event) => event.generation_id === lost)
  const ending = mine.some((event) => event.type === "stop.requested" || event.type === "cancel.requested")
  const effective = left.filter((event) => event.type === "pause.effective").length
  const rests = effective > left.filter((event) => event.type === "pause.ended").length
  const goesOn = !ending && (mode === "resume" || rests)
  const resumed = mine.filter(({ sequence, type }) => type === "generation.resumed" && sequence > left.length).length
  if (goesOn !== resumed > 0) bad.push(`L-R2 ${lost} was resumed ${resumed} times`)
  const end = Truth.endOf(events, lost)
  for (const event of mine) {
    const forgotten = event.type === "steering.held" && event.reason === "budget-exhausted"
    if (forgotten) bad.push(`L-R2 ${event.input_id} was pending and nothing delivered it`)
  }
  if (goesOn && end?.type !== "generation.finished") bad.push(`L-R2 ${lost} went on and came to ${end?.type}`)
  if (!goesOn && !ending && (end?.type !== "generation.failed" || end.cause !== "process-loss")) {
    bad.push(`L-R2 ${lost} was lost and came to ${end?.type}`)
  }
  for (const event of left) {
    if (event.type !== "tool.started") continue
    if (Truth.toolEndOf(left, event.call_id) !== undefined) continue
    const found = Truth.toolEndOf(events, event.call_id)
    const effects = event.tool === "look" ? "none" : "unknown"
    if (found?.type !== "tool.interrupted" || found.cause !== "process-loss" || found.effects !== effects) {
      bad.push(`L-R1 ${event.tool} had started and is ${found?.type}`)
    }
  }
  return bad
}

/** One session whose processes die after so many writes each, and everything that is untrue of it in the end. */
const judge = (deaths: ReadonlyArray<number>, death: Death, mode: Mode, hosted: boolean) =>
  Effect.gen(function* () {
    const store = yield* Stores.disk
    const context = hosted ? Contexts.make() : undefined
    const [first = 0, ...later] = deaths
    const { began, given } = yield* firstLife(store, context, first, death)
    for (const n of later) {
      const watched = Stores.watch(store)
      const died = yield* dies(watched, n, death)
      const opens = Stores.boot(watched.service, { ...optionsOf(open, began), open: { recovery: mode } })
      const opening = yield* Effect.forkDetach(configured(context)(Effect.andThen(opens, Stores.settle)))
      yield* Effect.raceFirst(Fiber.await(opening), died)
    }
    const { bad, h, left } = yield* lastLife(store, context, mode, began)
    for (const receipt of given.receipts) {
      if (receipt.accepted && Option.isNone(yield* h.session.receipt(receipt.inputId))) {
        bad.push(`L-A7 ${receipt.inputId} was accepted and is forgotten`)
      }
    }
    for (const [input, anchor] of given.inputs) {
      const now = yield* h.session.receipt(input.id)
      if (Option.isNone(now)) continue
      const again = yield* anchor === undefined
        ? h.session.submit(input)
        : h.session.capability("live.steering").submit(input, anchor)
      if (JSON.stringify(again) !== JSON.stringify(now.value))
        bad.push(`L-I1 ${input.id} again: ${JSON.stringify(again)}`)
    }
    const told = yield* Truth.toldOf(
      h.session,
      given.inputs.map(([{ id }]) => id)
    )
    return [
      ...bad,
      ...Truth.contextLies(told),
      ...Truth.lies(told),
      ...Truth.toolLies({ ...told, events: Truth.askedOnce(told.events) }, began),
      ...Truth.controlLies(told, given.controls),
      ...Truth.requestLies(told),
      ...recoveryLies(left, told.events, mode)
    ]
  })

/** The writes of a whole life. */
const whole = (hosted: boolean) =>
  Effect.gen(function* () {
    const context = hosted ? Contexts.make() : undefined
    const { lived, writes } = yield* firstLife(yield* Stores.disk, context, Number.POSITIVE_INFINITY, "answered")
    assert.isTrue(lived)
    return writes
  })

/** Judges a life that ends after each of its writes; names the first few that lie. */
const everywhere = (
  deaths: (n: number) => ReadonlyArray<ReadonlyArray<number>>,
  death: Death,
  mode: Mode,
  hosted = false
) =>
  Effect.gen(function* () {
    const writes = yield* whole(hosted)
    assert.isAbove(writes, 40)
    const found: Array<string> = []
    for (let n = 1; n <= writes; n++) {
      for (const each of deaths(n)) {
        const bad = yield* Effect.catchCause(Effect.scoped(judge(each, death, mode, hosted)), (cause) =>
          Effect.succeed([String(cause)])
        )
        if (bad.length > 0) found.push(`after ${each.join()}: ${bad.join("; ").slice(0, 300)}`)
      }
    }
    assert.strictEqual(found.slice(0, 12).join("\n"), "")
  })

describe("L-R1 and L-R2 a process is lost after any of its writes", () => {
  for (const mode of modes) {
    for (const death of ["answered", "unanswered"] as const) {
      it.effect(`L-R2 ${mode}: every write the last, ${death}`, () => everywhere((n) => [[n]], death, mode), 120_000)
    }
    it.effect(
      `L-R1 ${mode}: and the process that recovers it is lost as well`,
      () => everywhere((n) => [1, 2, 3, 4].map((k) => [n, k]), "answered", mode),
      240_000
    )
    it.effect(
      `L-R1 ${mode}: every write the last, in a session whose host keeps the context`,
      () => everywhere((n) => [[n]], "answered", mode, true),
      120_000
    )
  }
})
