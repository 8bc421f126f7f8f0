/** One command: what its caller is to be told, and what stands afterwards. */
import { type Answer, type Command, grace, repeated, retries, retryDelay, type Submission } from "./Command.ts"
import { completed, fail, finish, land, lose, respond, sameScope, settle, start, waiting } from "./Progress.ts"
import {
  allPaused,
  type Call,
  closeAdmission,
  closings,
  copy,
  endPauses,
  type Expected,
  type Gen,
  hold,
  holds,
  type Model,
  type Pause,
  resolve,
  type Seen
} from "./Reference.ts"
import { interrupt } from "./Tools.ts"

export interface Stepped {
  readonly model: Model
  readonly expected: Expected
  /** What a listener that fired is told, if one did. */
  readonly listened: Expected | undefined
}

/** `inside` is what was seen by a listener that fired. */
export const step = (before: Model, command: Command, seen?: Seen, inside?: Seen): Stepped => {
  const model = copy(before)
  const expected = perform(model, command, seen)
  const { listener } = model
  if (listener === undefined || model.happened[listener.on] === listener.from) {
    return { model, expected, listened: undefined }
  }
  // Every event a listener may wait for is followed by a rest or commutes with what its operation does, so it is the same to
  // perform the operation afterwards.
  model.listener = undefined
  const listened = perform(model, listener.act, inside)
  return { model, expected, listened }
}

const perform = (model: Model, command: Command, seen: Seen | undefined): Expected => {
  const expected = apply(model, command, seen)
  settle(model, seen)
  // A scope that closes returns when all is settled, and so waits for deaf handlers (L-C7, L-T9).
  if (model.closed && model.live !== undefined) {
    model.now += grace
    settle(model, seen)
  }
  return expected
}

const nothing: Expected = { tag: "nothing" }
const done: Expected = { tag: "done" }
const refused = (...reasons: ReadonlyArray<string>): Extract<Expected, { readonly tag: "refused" }> => ({
  tag: "refused",
  reasons
})

const apply = (model: Model, command: Command, seen: Seen | undefined): Expected => {
  switch (command.do) {
    case "submit":
      return submit(model, command.input, command.anchor === undefined ? null : resolve(model, command.anchor))
    case "repeat": {
      const tried = repeated(command.change, model.tried.get(command.id), () => model.live?.n ?? 0)
      return tried === undefined ? nothing : submit(model, tried.input, tried.anchor)
    }
    case "cancel":
    case "stop":
      return end(model, command, seen)
    case "pause":
      return pause(model, command)
    case "resume":
      return resume(model, command.signal)
    case "decide":
      return decide(model, command)
    case "withdraw":
      return withdraw(model, command.id)
    case "promote":
      return promote(model, command.id, resolve(model, command.which), command.as)
    case "answer":
      answer(model, command.with)
      return nothing
    case "tool":
      tool(model, command, seen)
      return nothing
    case "jam":
      model.jammed = true
      return nothing
    case "write":
      written(model, command.how, seen)
      return nothing
    case "tick":
      model.now += command.millis
      endPauses(model)
      return nothing
    case "listen":
      if (model.listener === undefined && !model.closed) {
        model.listener = { on: command.on, from: model.happened[command.on], act: command.act }
      }
      return nothing
    case "close":
      close(model)
      return nothing
  }
}

const same = (a: Submission, b: Submission): boolean =>
  a.intent === b.intent && a.text === b.text && a.route === b.route && sameScope(a.scope, b.scope)

/** Shape, identity, anchor, capacity, admission: in this order (L-A2). */
const submit = (model: Model, input: Submission, anchor: number | null, derivedFrom?: string): Expected => {
  const { live, setting } = model
  const { id, intent } = input
  if (derivedFrom === undefined) model.tried.set(id, { input, anchor })
  if (input.text.trim() === "") return refused("invalid-input")
  const known = model.known.get(id)
  if (known !== undefined) {
    const again = known.anchor === anchor && known.derivedFrom === derivedFrom && same(known.input, input)
    return again ? { tag: "current", id } : refused("identity-conflict")
  }
  const open = live !== undefined && live.closing === undefined
  const join = open && intent === "steer"
  if (anchor !== null) {
    if (setting.steering === "unavailable") return refused("unavailable")
    // Free: of an anchored steer to a closed session the laws do not say which reason comes first.
    if (model.closed) return refused("session-closed", "no-active-generation")
    if (live === undefined) return { ...refused("no-active-generation"), actual: null }
    if (live.n !== anchor) return { ...refused("generation-mismatch"), actual: live.n }
    if (!open) return { ...refused("admission-closed"), actual: live.n }
  }
  if (model.closed) return refused("session-closed")
  const idle = live === undefined && model.turns.length === 0 && model.queue.length === 0
  if (intent === "prompt" && (allPaused(model) || !idle)) {
    // Free: C2 refuses a prompt under a pause, F1 one that meets other work; where both hold, either.
    return refused(...(allPaused(model) ? ["paused"] : []), ...(idle ? [] : ["busy"]))
  }
  if (join && setting.steering === "unavailable") return refused("unavailable")
  const full = [
    ...(model.known.size >= setting.identities ? ["identities-exhausted"] : []),
    ...((
      join ? live.pending.length >= setting.pendingSteering : model.queue.length + model.turns.length >= setting.queued
    )
      ? ["queue-full"]
      : [])
  ]
  if (full.length > 0) return refused(...full)

  model.known.set(id, {
    input,
    anchor,
    delivery: join ? "request_boundary" : "new_turn",
    at: model.now,
    ...(derivedFrom === undefined ? undefined : { derivedFrom }),
    status: join ? { tag: "Admitted", gen: live.n } : { tag: "Queued" }
  })
  if (join) {
    live.pending.push(id)
    live.inputs.push(id)
  } else if (intent === "steer") model.turns.push(id)
  else model.queue.push(id)
  const startsNow = intent === "prompt"
  if (startsNow) start(model, [id])
  // Free: what starts a generation because nothing else does may be told its id at once or later; a prompt at once (F1).
  const mayStart = !join && live === undefined && !allPaused(model) && waiting(model).includes(id)
  model.pauses = model.pauses.map((each) => ({ ...each, input: true }))
  endPauses(model)
  return {
    tag: "fresh",
    id,
    gens: join ? [live.n] : startsNow ? [model.gens.length] : mayStart ? [null, model.gens.length + 1] : [null]
  }
}

const end = (
  model: Model,
  { do: how, followUps, which }: Extract<Command, { readonly do: "cancel" | "stop" }>,
  seen: Seen | undefined
): Expected => {
  const { live } = model
  if (live?.n !== resolve(model, which)) {
    if (model.closed) return refused("session-closed")
    const reason = live === undefined ? "no-active-generation" : "generation-mismatch"
    return { ...refused(reason), actual: live?.n ?? null }
  }
  const closing = how === "cancel" ? closings.cancelled : closings.stopped
  const holdQueue = () => {
    if (followUps === "hold") for (const id of model.queue) hold(model, id, null, closing.held)
  }
  const already = live.closing
  if (already === undefined || (how === "cancel" && already.outcome === "stopped")) {
    closeAdmission(model, live, closing)
    holdQueue()
    return done
  }
  if (already.outcome !== closing.outcome || already.cause !== closing.cause) return refused("admission-closed")
  // Free: asking again for what was accepted may be refused, or accepted; then it does what it was asked (C6).
  if (seen?.accepted === true) holdQueue()
  return { tag: "either", reasons: ["admission-closed"] }
}

const pause = (model: Model, { scope, until }: Extract<Command, { readonly do: "pause" }>): Expected => {
  if (model.closed) return refused("session-closed")
  const never = until._tag === "Any" && until.of.length === 0
  if (never || model.pauses.length >= model.setting.pauses) return refused("condition-unmet")
  const fresh: Pause = { until, manual: false, input: false, signals: [], effective: false }
  model.pauses.push(scope === undefined ? fresh : { ...fresh, scope })
  endPauses(model)
  return done
}

/** What is said counts for every pause, whether or not one ends by it (L-C3). */
const resume = (model: Model, signal: string | undefined): Expected => {
  if (model.closed) return refused("session-closed")
  model.pauses = model.pauses.map((each) =>
    signal === undefined ? { ...each, manual: true } : { ...each, signals: [...each.signals, signal] }
  )
  const ends = model.pauses.some((each) => holds(each.until, each, model.now))
  endPauses(model)
  return ends ? done : refused("condition-unmet")
}

/** Every call that was ever put to a person, in order. */
export const asked = (model: Model): ReadonlyArray<Call> =>
  model.gens.flatMap((gen) => gen.calls).filter((call) => call.path.startsWith("asked"))

/** The call a decision is about: one that waits, or any by its place. */
export const decided = (model: Model, at: number | undefined): Call | undefined => {
  const calls = asked(model)
  return at === undefined ? calls.findLast((call) => call.state === "asking") : calls[at % Math.max(1, calls.length)]
}

const decide = (model: Model, { allow, at }: Extract<Command, { readonly do: "decide" }>): Expected => {
  const call = decided(model, at)
  if (call === undefined) return nothing
  if (model.closed) return refused("session-closed")
  if (call.state === "allowed" || call.state !== "asking") return refused("already-decided")
  if (allow) call.state = "allowed"
  else {
    call.state = "ended"
    call.status = "denied"
  }
  return done
}

const withdraw = (model: Model, id: string): Expected => {
  // Free: a closed session may say so, or that nothing of that id is queued.
  const closed = model.closed ? ["session-closed"] : []
  if (!model.known.has(id)) return refused("unknown-id", ...closed)
  if (!model.queue.includes(id)) return refused("not-queued", ...closed)
  hold(model, id, null, "withdrawn")
  return done
}

const promote = (model: Model, id: string, n: number, as: string): Expected => {
  const known = model.known.get(id)
  const closed = model.closed ? ["session-closed"] : []
  if (known === undefined) return refused("unknown-id", ...closed)
  const before = [...model.known].find(([, other]) => other.derivedFrom === id)
  if (before !== undefined && before[1].anchor === n) {
    // Free: the same promotion under another new id is no other promotion, or finds nothing queued.
    return before[0] === as ? { tag: "current", id: as } : { tag: "current", id: before[0] }
  }
  if (known.status.tag !== "Queued" || known.input.intent !== "follow-up") return refused("not-queued", ...closed)
  const expected = submit(model, { ...known.input, id: as, intent: "steer" }, n, id)
  if (expected.tag === "fresh") hold(model, id, null, "promoted")
  return expected
}

/** Calls as they were asked for; a repeat of an id is answered and never run. */
const callsOf = (gen: Gen, how: Answer): ReadonlyArray<Call> => {
  const specs = "calls" in how ? how.calls : []
  const made = specs.map(({ path, tool }, index): Call => ({
    key: `${gen.n}.${gen.requests}.${index + 1}`,
    providerId: `c${gen.n}.${gen.requests}.${index + 1}`,
    tool,
    path,
    state: "waiting",
    status: "requested"
  }))
  const [first] = made
  if (!("repeats" in how) || first === undefined) return made
  const key = `${gen.n}.${gen.requests}.${made.length + 1}`
  return [...made, { ...first, key, state: "ended", status: "not-started invalid" }]
}

/** Whether the provider has a request before it that it has not begun to answer. */
export const requesting = (model: Model): boolean =>
  model.live?.phase.tag === "Requesting" && model.live.phase.said === undefined

const answer = (model: Model, how: Answer): void => {
  const gen = model.live
  if (gen === undefined || !requesting(model)) return
  const calls = callsOf(gen, how)
  switch (how.say) {
    case "text":
      completed(model, gen)
      return finish(model, gen)
    case "pause":
      completed(model, gen)
      gen.phase = { tag: "Boundary" }
      return
    case "calls":
    case "length": {
      completed(model, gen)
      // A response without calls is an answer, however it was cut.
      if (calls.length === 0) return finish(model, gen)
      const spent = gen.requests >= model.setting.maxRequests ? "budget" : undefined
      return how.say === "length" ? respondInvalid(gen, calls) : respond(gen, calls, spent)
    }
    case "hang":
      gen.phase = { tag: "Requesting", said: calls }
      return
    case "filter":
    case "no-finish":
      return fail(model, gen, [])
    case "fail": {
      const again =
        how.retryable && gen.closing === undefined && gen.tries < retries && gen.requests < model.setting.maxRequests
      if (how.retryable) gen.tries++
      if (!again) return fail(model, gen, calls)
      gen.phase = { tag: "BackingOff", until: model.now + retryDelay }
    }
  }
}

/** A response cut at the length limit: its calls are invalid, whatever else would keep them back (L-T12). */
const respondInvalid = (gen: Gen, calls: ReadonlyArray<Call>): void => {
  for (const call of calls) {
    call.state = "ended"
    call.status = "not-started invalid"
  }
  respond(gen, calls, undefined)
}

/** The end of a write that hung. */
const written = (model: Model, how: "land" | "fail", seen: Seen | undefined): void => {
  const gen = model.live
  if (gen?.phase.tag !== "Writing") return
  const { item } = gen.phase
  if (how === "land") return land(model, gen, item, seen)
  lose(model, gen, item, "write-failed", "write-failed")
  if (gen.closing === undefined) closeAdmission(model, gen, closings.failed)
}

/** The running call that a command means. */
export const running = (model: Model, at: number): Call | undefined => {
  const phase = model.live?.phase
  const calls = phase?.tag === "Tools" ? phase.batch.filter((call) => call.state === "running") : []
  return calls[at % Math.max(1, calls.length)]
}

const tool = (model: Model, { at, how }: Extract<Command, { readonly do: "tool" }>, seen: Seen | undefined): void => {
  const call = running(model, at)
  if (call === undefined) return
  // Free: a call that ends within its grace time was interrupted (T7) and yet has a result (T8); either is true of it.
  const chosen = seen?.calls.get(call.key) ?? "interrupted"
  if (call.overdue !== undefined && chosen.startsWith("interrupted")) return interrupted(model, call)
  call.state = "ended"
  // `send` gives its failure as a result; a failure of the others, and any defect, is `failed` (L-T6).
  call.status = how === "end" ? "completed" : how === "fail" && call.tool === "send" ? "completed failure" : "failed"
}

const interrupted = (model: Model, call: Call): void => {
  if (model.live !== undefined) interrupt(model.live, call)
}

const close = (model: Model): void => {
  if (model.closed) return
  const { live } = model
  model.closed = true
  if (live !== undefined && (live.closing === undefined || live.closing.outcome === "stopped")) {
    closeAdmission(model, live, closings.closed)
  }
  for (const id of [...model.turns, ...model.queue]) hold(model, id, null, "session-closed")
}
