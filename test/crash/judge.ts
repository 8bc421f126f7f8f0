/** Opens what killed processes have left, lets it come to rest, and holds every law against what was said and done before. */
import { Context, Effect, Exit, Layer, Option, Scope } from "effect"
import { AgentRuntime, Event, Ids, Input, type Receipt, SessionStore, SqlSessionStore } from "../../src/index.ts"
import * as Codec from "../../src/ledger/Codec.ts"
import * as Entry from "../../src/ledger/Entry.ts"
import { type Harness, inputId, opening } from "../support/harness.ts"
import * as Stores from "../support/stores.ts"
import * as Truth from "../support/truth.ts"
import { type Actor, decides } from "./chaos.ts"
import { configured, rest } from "./rest.ts"
import { client, contextIn, type Deed, deedsIn, inputOf, type Line, type Mode, type Place, type Sent } from "./world.ts"

/** A session that processes were killed over. */
export interface Case {
  readonly place: Place
  readonly session: string
  readonly folder: string
  readonly hosted: boolean
  readonly actor: Actor
  /** What all its processes have said, in order. */
  readonly lines: Array<Line>
}

type Store = SessionStore.SessionStore["Service"]

const entriesOf = (store: Store, id: Ids.SessionId) =>
  Effect.gen(function* () {
    const { position } = yield* store.position(id)
    const kinds = ["input", "message", "decision", "resumed", "write-begun"]
    const records = yield* Effect.forEach(kinds, (kind) => store.kind(id, kind, position))
    const events = yield* store.events(id, 0, 1_000_000)
    const stored = [...events, ...records.flat()].sort((a, b) => a.position - b.position)
    return yield* Effect.forEach(stored, Codec.decode)
  })

/** What the inputs that anybody knows of were, by id. */
const sentIn = (lines: ReadonlyArray<Line>): ReadonlyMap<string, Sent> =>
  new Map(lines.flatMap((line) => (line.line === "sent" ? [[line.sent.id, line.sent] as const] : [])))

/** Inputs that were sent and that nobody was given a receipt of. */
export const unanswered = (lines: ReadonlyArray<Line>): ReadonlyArray<Sent> => {
  const answered = new Set(lines.flatMap((line) => (line.line === "receipt" ? [line.id] : [])))
  return [...sentIn(lines).values()].filter(({ id }) => !answered.has(id))
}

const acceptedIn = (lines: ReadonlyArray<Line>): ReadonlyArray<Receipt.Accepted> =>
  lines.flatMap((line) => (line.line === "receipt" && line.receipt.accepted ? [line.receipt] : []))

/** Every receipt that a caller was given is known again, with what was sent, and says nothing less than it did. */
const receiptLies = (h: Harness, lines: ReadonlyArray<Line>, when: string) =>
  Effect.gen(function* () {
    const bad: Array<string> = []
    for (const given of acceptedIn(lines)) {
      const now = Option.getOrUndefined(yield* h.session.receipt(given.inputId))
      if (now === undefined || !now.accepted) {
        bad.push(`L-A7 ${given.inputId} was accepted and is forgotten ${when}`)
        continue
      }
      const settled = given.disposition !== "queued"
      if (settled && now.disposition !== given.disposition) {
        bad.push(`L-D1 ${given.inputId} was ${given.disposition} and is ${now.disposition} ${when}`)
      }
      if (given.request !== undefined && now.request !== given.request) {
        bad.push(`L-D2 ${given.inputId} was carried by ${given.request} and now by ${now.request} ${when}`)
      }
      if (given.generationId !== null && now.generationId !== given.generationId) {
        bad.push(`L-E5 ${given.inputId} was of ${given.generationId} and is of ${now.generationId} ${when}`)
      }
    }
    return bad
  })

/** What was sent under an id is what the journal has, and sending it again changes nothing (L-I1 to L-I3). */
const contentLies = (h: Harness, lines: ReadonlyArray<Line>, inputs: ReadonlyMap<string, Input.Input>) =>
  Effect.gen(function* () {
    const bad: Array<string> = []
    for (const sent of sentIn(lines).values()) {
      const found = inputs.get(sent.id)
      if (found === undefined) continue
      if (!Input.same(found, inputOf(sent))) bad.push(`L-I3 ${sent.id} is kept as ${JSON.stringify(found)}`)
      const now = Option.getOrUndefined(yield* h.session.receipt(inputId(sent.id)))
      const again = yield* sent.anchor === null
        ? h.session.submit(inputOf(sent))
        : h.session.capability("live.steering").submit(inputOf(sent), Ids.GenerationId.make(sent.anchor))
      if (JSON.stringify(again) !== JSON.stringify(now)) bad.push(`L-I1 ${sent.id} again: ${JSON.stringify(again)}`)
    }
    return bad
  })

/** What a subscriber was told, and what was accepted, is in the journal. */
const journalLies = (lines: ReadonlyArray<Line>, entries: ReadonlyArray<Entry.Committed>): Array<string> => {
  const bad: Array<string> = []
  const events = new Map(entries.flatMap((entry) => (Entry.isRecord(entry) ? [] : [[entry.sequence, entry] as const])))
  const count = (test: (entry: Entry.Committed) => boolean) => entries.filter(test).length
  const isEvent = (type: string) => (entry: Entry.Committed) => !Entry.isRecord(entry) && entry.type === type
  const held = (id: string, reason: string) =>
    count(
      (entry) =>
        !Entry.isRecord(entry) && entry.type === "steering.held" && entry.input_id === id && entry.reason === reason
    )
  let paused = 0
  let resumed = 0
  for (const line of lines) {
    switch (line.line) {
      case "event": {
        const found = events.get(line.event.sequence)
        if (sorted(found) !== sorted(line.event)) {
          bad.push(`L-V1 ${line.event.sequence} ${line.event.type} was told and is ${JSON.stringify(found)}`)
        }
        break
      }
      case "paused":
        paused++
        break
      case "resumed":
        resumed++
        break
      case "withdrawn":
        if (held(line.id, "withdrawn") !== 1) bad.push(`L-C10 ${line.id} was withdrawn and is not`)
        break
      case "promoted":
        if (held(line.id, "promoted") !== 1) bad.push(`L-F9 ${line.id} was promoted and is not`)
        if (count((entry) => Entry.isRecord(entry) && entry.record === "input" && entry.input.id === line.as) !== 1) {
          bad.push(`L-F9 ${line.id} was promoted and ${line.as} is not accepted`)
        }
        break
      case "decided":
        if (
          count((entry) => Entry.isRecord(entry) && entry.record === "decision" && entry.call_id === line.call) === 0
        ) {
          bad.push(`L-C10 ${line.call} was decided and is not`)
        }
        break
      case "wrong":
        bad.push(`L-R3 a process sent an invalid request: ${line.what}`)
        break
      default:
    }
  }
  if (count(isEvent("pause.requested")) < paused) bad.push("L-C10 a pause was accepted and is not journalled")
  if (count((entry) => Entry.isRecord(entry) && entry.record === "resumed") < resumed) {
    bad.push("L-C10 a resume was accepted and is not journalled")
  }
  return bad
}

const sorted = (value: object | undefined): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner
  )

/** The world outside saw nothing that the journal does not tell of, and nothing twice. */
const deedLies = (deeds: ReadonlyArray<Deed>, told: Truth.Told): Array<string> => {
  const bad: Array<string> = []
  const calls = (...types: ReadonlyArray<Event.SessionEvent["type"]>) =>
    new Set(
      told.events.flatMap((event) =>
        "provider_call_id" in event && types.includes(event.type) ? [event.provider_call_id] : []
      )
    )
  const started = calls("tool.started")
  const completed = calls("tool.completed")
  const context = new Set(told.context.flatMap((message) => Input.idOfMessage(message) ?? []))
  const began = new Set<string>()
  const ended = new Set<string>()
  for (const deed of deeds) {
    if (deed.deed === "began") {
      if (began.has(deed.call)) bad.push(`L-R2 ${deed.call} began twice`)
      if (!started.has(deed.call)) bad.push(`L-T10 ${deed.call} began and is not started`)
      began.add(deed.call)
    }
    if (deed.deed === "ended") ended.add(deed.call)
    if (deed.deed !== "asked") continue
    for (const id of deed.inputs) if (!context.has(inputId(id))) bad.push(`L-B3 ${id} was sent and is in no context`)
    for (const id of deed.results) {
      if (!completed.has(id)) bad.push(`L-T10 the result of ${id} was sent and is not journalled`)
    }
    if (new Set(deed.inputs).size !== deed.inputs.length) bad.push(`L-B1 a request held ${deed.inputs.join()}`)
  }
  for (const id of completed) if (!ended.has(id)) bad.push(`L-T8 ${id} is completed and never ended`)
  return bad
}

/** A lost request runs no more: to the story of a pause it has ended where the session was opened again. */
const withoutLostRequests = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyArray<Event.SessionEvent> => {
  const lost = new Set<Event.SessionEvent>()
  let open: Event.SessionEvent | undefined
  for (const event of events) {
    if (event.type === "request.started") open = event
    if (event.type === "request.completed" || event.type === "request.failed" || Event.isTerminal(event))
      open = undefined
    if (event.type === "session.recovered" && open !== undefined) lost.add(open)
  }
  return events.filter((event) => !lost.has(event))
}

/** What a lost generation came to is what its recovery says (L-R2). */
const lossLies = (
  left: ReadonlyArray<Entry.Committed>,
  events: ReadonlyArray<Event.SessionEvent>,
  mode: Mode
): Array<string> => {
  const before = left.flatMap((entry) => (Entry.isRecord(entry) ? [] : [entry]))
  const started = before.flatMap((event) => (event.type === "generation.started" ? [event.generation_id] : []))
  const lost = started.find((id) => Truth.endOf(before, id) === undefined)
  if (lost === undefined) return []
  const bad: Array<string> = []
  const mine = before.filter((event) => event.generation_id === lost)
  const ending = mine.some((event) => event.type === "stop.requested" || event.type === "cancel.requested")
  const isParked = mine.at(-1)?.type === "generation.parked"
  const end = Truth.endOf(events, lost)
  const resumed = events.some(
    (event) => event.type === "generation.resumed" && event.generation_id === lost && event.sequence > before.length
  )
  const resting = new Set<number>()
  for (const event of before) {
    if (event.type === "pause.effective" && event.scope === undefined) resting.add(event.requested)
    if (event.type === "pause.ended") resting.delete(event.requested)
  }
  const isResting = resting.size > 0
  if (mode === "settle" && !isParked && !isResting && resumed) bad.push(`L-R2 ${lost} was settled and resumed`)
  if (ending && resumed) bad.push(`L-C10 ${lost} was resumed past its end`)
  // Without what started it there is nothing to go on with.
  const initial = mine.flatMap((event) => (event.type === "generation.started" ? event.input_ids : []))
  const settled = (event: Event.SessionEvent) => event.type === "steering.held" || event.type === "steering.unknown"
  const baseless = events.some((event) => settled(event) && "input_id" in event && event.input_id === initial[0])
  if (!ending && !baseless && (mode === "resume" || isParked) && !resumed) bad.push(`L-R2 ${lost} was not resumed`)
  if (!ending && !resumed && (end?.type !== "generation.failed" || end.cause !== "process-loss")) {
    bad.push(`L-R2 ${lost} was lost and came to ${end?.type}`)
  }
  for (const event of mine) {
    if (event.type !== "tool.started" || Truth.toolEndOf(before, event.call_id) !== undefined) continue
    const found = Truth.toolEndOf(events, event.call_id)
    if (found?.type !== "tool.interrupted" || found.cause !== "process-loss") {
      bad.push(`L-R1 ${event.provider_call_id} had started and is ${found?.type}`)
    }
  }
  return bad
}

const storeAt = (place: Place) =>
  Effect.map(
    Layer.build(Layer.fresh(SqlSessionStore.layer.pipe(Layer.provide(Layer.fresh(client(place)))))),
    Context.get(SessionStore.SessionStore)
  )

/** Everything that is untrue of a session that was left, each named by the law it breaks. */
export const judge = ({ actor, folder, hosted, lines, place, session }: Case, mode: Mode, life: number) =>
  Effect.gen(function* () {
    const id = Ids.SessionId.make(session)
    const store = yield* storeAt(place)
    const left = yield* Effect.orElseSucceed(entriesOf(store, id), (): ReadonlyArray<Entry.Committed> => [])
    const bad = journalLies(lines, left)
    const runtime = yield* Stores.runtimeOver(store)
    const scope = yield* Scope.make()
    const h = yield* opening({ ...actor.options, id, open: { recovery: mode } }).pipe(
      Effect.provideService(AgentRuntime.AgentRuntime, runtime),
      Scope.provide(scope),
      configured(actor, hosted ? contextIn(folder, () => {}) : undefined)
    )
    bad.push(...(yield* receiptLies(h, lines, "after opening")))
    yield* Effect.forkIn(Effect.ignore(decides(h.session, () => {})), scope)
    yield* rest(h)
    const next = `n${life}`
    const receipt = yield* h.session.submit(Input.prompt(next, { id: next }))
    if (!receipt.accepted || receipt.generationId === null) bad.push(`L-R2 the next prompt: ${JSON.stringify(receipt)}`)
    yield* rest(h)
    for (const violation of h.model.violations) bad.push(`L-R3 ${violation}`)
    const entries = yield* entriesOf(store, id)
    const inputs = new Map(
      entries.flatMap((entry) =>
        Entry.isRecord(entry) && entry.record === "input" ? [[entry.input.id, entry.input] as const] : []
      )
    )
    bad.push(...(yield* receiptLies(h, lines, "at rest")))
    bad.push(...(yield* contentLies(h, lines, new Map(inputs))))
    const told = yield* Truth.toldOf(h.session, [...inputs.keys()])
    bad.push(...Truth.contextLies(told))
    for (const { disposition, inputId } of told.receipts) {
      if (disposition === "unknown") bad.push(`L-D4 ${inputId} is unknown, and its context can tell`)
    }
    const deeds = deedsIn(folder)
    const began = deeds.flatMap((deed) => (deed.deed === "began" ? [deed.call] : []))
    const controls = lines.flatMap((line) => (line.line === "control" ? [line] : []))
    bad.push(
      ...Truth.lies(told),
      ...Truth.toolLies({ ...told, events: Truth.askedOnce(told.events) }, began),
      ...Truth.controlLies(told, controls),
      ...Truth.requestLies(told),
      ...Truth.pauseLies({ ...told, events: withoutLostRequests(told.events) }),
      ...deedLies(deeds, told),
      ...lossLies(left, told.events, mode)
    )
    yield* Scope.close(scope, Exit.void)
    return bad
  }).pipe(
    Effect.scoped,
    Effect.catchCause((cause) =>
      Effect.succeed([`it cannot be opened or brought to rest: ${String(cause).slice(0, 600)}`])
    )
  )
