/** What a session does by itself until it must wait: for the provider, a tool, a decision, the clock or the host. */
import { advance, request } from "./Tools.ts"
import {
  affects,
  allPaused,
  type Call,
  type Closing,
  closeAdmission,
  closings,
  type Gen,
  hold,
  type Model,
  type Seen,
  setStatus
} from "./Reference.ts"

/** Settles what is left and publishes the one terminal event (L-D6, L-E4). */
const terminal = (model: Model, gen: Gen, closing: Closing): void => {
  closeAdmission(model, gen, gen.closing ?? closing)
  for (const id of gen.inputs) {
    if (model.known.get(id)?.status.tag === "Admitted") hold(model, id, gen.n, (gen.closing ?? closing).held)
  }
  gen.ended = (gen.closing ?? closing).outcome
  model.live = undefined
  model.happened.end++
}

export const start = (model: Model, ids: ReadonlyArray<string>): Gen => {
  const gen: Gen = {
    n: model.gens.length + 1,
    initial: ids,
    inputs: [...ids],
    pending: [],
    unwritten: ids.every((id) => isCollect(model, id)) ? [ids] : ids.map((id) => [id]),
    requests: 0,
    tries: 0,
    phase: { tag: "Boundary" },
    calls: []
  }
  model.gens.push(gen)
  model.live = gen
  model.turns = model.turns.filter((id) => !ids.includes(id))
  model.queue = model.queue.filter((id) => !ids.includes(id))
  for (const id of ids) setStatus(model, id, { tag: "Admitted", gen: gen.n })
  return gen
}

export const isCollect = (model: Model, id: string): boolean => model.known.get(id)?.input.intent === "collect"

/** What is to start next: waiting turns together, then one follow-up or one group of collects (L-F2, L-F3, L-F5). */
export const waiting = (model: Model): ReadonlyArray<string> => {
  if (model.turns.length > 0) return model.turns
  const [head] = model.queue
  if (head === undefined || !isCollect(model, head)) return head === undefined ? [] : [head]
  const first = model.known.get(head)?.input
  const group: Array<string> = []
  for (const id of model.queue) {
    const input = model.known.get(id)?.input
    const alike = input?.route === first?.route && sameScope(input?.scope, first?.scope)
    if (!isCollect(model, id) || !alike || group.length >= model.setting.collectCap) break
    group.push(id)
  }
  const latest = Math.max(...group.map((id) => model.known.get(id)?.at ?? 0))
  const whole = group.length < model.queue.length || group.length >= model.setting.collectCap
  return whole || model.now >= latest + model.setting.collectDebounce ? group : []
}

export const sameScope = (a: ReadonlyArray<string> | undefined, b: ReadonlyArray<string> | undefined): boolean =>
  a === undefined || b === undefined
    ? a === b
    : a.every((name) => b.includes(name)) && b.every((name) => a.includes(name))

/** One thing that happens by itself; `false` when nothing does. */
const happens = (model: Model, seen: Seen | undefined): boolean => {
  const gen = model.live
  if (gen === undefined) {
    const ids = model.closed || allPaused(model) ? [] : waiting(model)
    if (ids.length > 0) start(model, ids)
    return ids.length > 0
  }
  const { closing, phase } = gen
  switch (phase.tag) {
    case "Boundary": {
      if (closing !== undefined) terminal(model, gen, closing)
      else if (gen.requests >= model.setting.maxRequests) terminal(model, gen, closings.exhausted)
      else if (allPaused(model)) return false
      else return boundary(model, gen, seen)
      return true
    }
    case "Writing": {
      if (closing === undefined || closing.outcome === "stopped") return false
      lose(model, gen, phase.item, closing.held, "write-interrupted")
      return true
    }
    case "Requesting": {
      if (closing === undefined || closing.outcome === "stopped") return false
      gen.phase = { tag: "Tools", batch: request(gen, phase.said ?? [], closing.call) }
      return true
    }
    case "Tools": {
      if (!advance(model, gen, phase.batch, seen)) return false
      gen.phase = { tag: "Boundary" }
      return true
    }
    case "BackingOff": {
      if (closing === undefined && model.now < phase.until) return false
      gen.phase = { tag: "Boundary" }
      return true
    }
  }
}

/**
 * What started the generation and everything pending enter the context one by one, in order, and the request that carries them first
 * starts (L-B1, L-B2, L-D2).
 */
const boundary = (model: Model, gen: Gen, seen: Seen | undefined): boolean => {
  while (gen.closing === undefined) {
    const [next, ...later] = gen.unwritten
    const [first, ...pending] = gen.pending
    const item = next ?? (first === undefined ? undefined : [first])
    if (item === undefined) break
    if (next === undefined) gen.pending = pending
    else gen.unwritten = later
    if (model.jammed && model.setting.store !== "journal") {
      model.jammed = false
      gen.phase = { tag: "Writing", item }
      return true
    }
    for (const id of item) setStatus(model, id, { tag: "Delivered", gen: gen.n })
  }
  // Free: under a pause asked for during its writes, a boundary may go on to its request or rest before it.
  const rests = allPaused(model) && seen?.requests !== undefined && seen.requests === gen.requests
  if (gen.closing !== undefined || rests) return gen.closing !== undefined
  gen.requests++
  for (const id of gen.inputs) {
    const status = model.known.get(id)?.status
    if (status?.tag === "Delivered" && status.request === undefined) {
      setStatus(model, id, { ...status, request: gen.requests })
    }
  }
  gen.phase = { tag: "Requesting" }
  model.happened.request++
  return true
}

/** A write that hung has landed. */
export const land = (model: Model, gen: Gen, item: ReadonlyArray<string>, seen: Seen | undefined): void => {
  for (const id of item) setStatus(model, id, { tag: "Delivered", gen: gen.n })
  gen.phase = { tag: "Boundary" }
  boundary(model, gen, seen)
}

/** A write that hung was interrupted or failed: what can be established settles its inputs (L-B3, L-D4). */
export const lose = (model: Model, gen: Gen, item: ReadonlyArray<string>, held: string, unknown: string): void => {
  for (const id of item) {
    if (model.setting.store === "tells") hold(model, id, gen.n, held)
    else setStatus(model, id, { tag: "Unknown", gen: gen.n, reason: unknown })
  }
  gen.phase = { tag: "Boundary" }
}

/** A response has come whole: what it carried is completed (L-F7). */
export const completed = (model: Model, gen: Gen): void => {
  gen.tries = 0
  for (const id of gen.inputs) {
    const status = model.known.get(id)?.status
    if (status?.tag === "Delivered") setStatus(model, id, { ...status, tag: "Completed" })
  }
}

/** The final answer, and the look after its checkpoint (L-E1, L-E2, L-E3). */
export const finish = (model: Model, gen: Gen): void => {
  const more = gen.pending.length > 0 && gen.requests < model.setting.maxRequests
  if (gen.closing === undefined && more) gen.phase = { tag: "Boundary" }
  else terminal(model, gen, closings.finished)
}

/** What a response asks for is answered, whatever happens. */
export const respond = (gen: Gen, calls: ReadonlyArray<Call>, refusal: string | undefined): void => {
  gen.phase = { tag: "Tools", batch: request(gen, calls, gen.closing?.call ?? refusal) }
}

/** A failed request that is not tried again (L-E3): the generation's end stands if it has one. */
export const fail = (model: Model, gen: Gen, calls: ReadonlyArray<Call>): void => {
  if (gen.closing === undefined) closeAdmission(model, gen, closings.failed)
  respond(gen, calls, undefined)
}

/**
 * Whether a pause is in effect now (L-C2). Free: while a retry is waited for nothing runs, and C2 says only when a pause may take
 * effect, so it may at once or when the wait is over. A question that waits for an answer is not running (L-T13).
 */
const effective = (model: Model, scope: ReadonlyArray<string> | undefined): "yes" | "no" | "either" => {
  const gen = model.live
  if (gen === undefined) return "yes"
  const { phase } = gen
  const running = phase.tag === "Tools" ? phase.batch.filter((call) => call.state === "running") : []
  if (running.some((call) => affects(scope, call.tool))) return "no"
  if (scope !== undefined) return "yes"
  return phase.tag === "Requesting" || phase.tag === "Writing" ? "no" : phase.tag === "BackingOff" ? "either" : "yes"
}

/** Until nothing happens by itself any more. */
export const settle = (model: Model, seen: Seen | undefined): void => {
  while (happens(model, seen)) continue
  model.pauses = model.pauses.map((pause, index) => {
    if (pause.effective) return pause
    const now = effective(model, pause.scope)
    return { ...pause, effective: now === "yes" || (now === "either" && seen?.effective[index] === true) }
  })
}
