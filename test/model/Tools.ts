/** The calls of one response, by the laws T1 to T9, T13 and C2. */
import { grace } from "./Command.ts"
import { affects, allPaused, type Call, type Gen, type Model, type Seen } from "./Reference.ts"

/**
 * What a path makes of its call: the policy denies or asks, the parameters are no parameters, the handler does not heed its
 * interruption, or a reconciler can tell what an interrupted handler did.
 */
export const behaviours = ["plain", "denied", "asked", "invalid", "deaf", "verified"] as const
export type Behaviour = (typeof behaviours)[number]

export const behaviour = (path: string): Behaviour => behaviours.find((name) => path.startsWith(name)) ?? "plain"

const end = (call: Call, status: string): void => {
  call.state = "ended"
  call.status = status
}

/** `requested` of every call of a response; a repeat of an id is invalid in itself (L-T1, L-T6). */
export const request = (gen: Gen, calls: ReadonlyArray<Call>, refusal: string | undefined): ReadonlyArray<Call> => {
  for (const call of calls) {
    gen.calls.push(call)
    if (call.state === "ended") continue
    if (refusal !== undefined) end(call, `not-started ${refusal}`)
    else if (call.tool === "nope" || behaviour(call.path) === "invalid") end(call, "not-started invalid")
  }
  return calls
}

/** Interrupts what runs (L-T7, L-T9); a deaf handler is waited for. */
export const cut = (gen: Gen, batch: ReadonlyArray<Call>, now: number): void => {
  for (const call of batch) {
    if (call.state !== "running") continue
    if (behaviour(call.path) === "deaf") {
      call.overdue ??= now + grace
      if (now < call.overdue) continue
    }
    interrupt(gen, call)
  }
}

/** What is said of a call that was interrupted while it ran (L-T7). */
export const interrupt = (gen: Gen, call: Call): void => {
  const effects = call.tool === "look" ? "none" : "unknown"
  const found = call.tool === "edit" && behaviour(call.path) === "verified" ? "verified" : effects
  end(call, `interrupted ${found} ${gen.closing?.cause ?? "close"}`)
}

/** The pending corrections that affect a tool. */
const correcting = (model: Model, gen: Gen, tool: string): ReadonlyArray<string> =>
  gen.pending.filter((id) => affects(model.known.get(id)?.input.scope, tool))

/**
 * Free: T3 asks that the pending corrections be checked at the launch, so a call that could not be launched now anyway (no slot,
 * or all work paused) may be withheld at once or later; the same goes for a scoped pause. Of two reasons that apply, either.
 */
type Choice = "must" | "may"

const withhold = (call: Call, reasons: ReadonlyArray<string>, choice: Choice, seen: Seen | undefined): boolean => {
  const chosen = seen?.calls.get(call.key)
  const [first] = reasons
  if (first === undefined) return false
  const agreed = reasons.find((reason) => chosen === `not-started ${reason}`)
  if (choice === "may" && seen !== undefined && agreed === undefined) return false
  end(call, `not-started ${agreed ?? first}`)
  return true
}

/** What follows from where the calls stand: withheld, asked about, launched. Answers whether all have ended. */
export const advance = (model: Model, gen: Gen, batch: ReadonlyArray<Call>, seen: Seen | undefined): boolean => {
  const { closing } = gen
  if (closing !== undefined) {
    if (closing.outcome !== "stopped") cut(gen, batch, model.now)
    for (const call of batch) {
      if (call.state !== "running" && call.state !== "ended") end(call, `not-started ${closing.call}`)
    }
    return batch.every((call) => call.state === "ended")
  }
  // Again after every change: a question that was just asked may have to be withdrawn at once.
  while (pass(model, gen, batch, seen)) continue
  return batch.every((call) => call.state === "ended")
}

/** Looks at every call once, in the order requested; `false` when nothing came of it. */
const pass = (model: Model, gen: Gen, batch: ReadonlyArray<Call>, seen: Seen | undefined): boolean => {
  let changed = false
  let free = model.setting.concurrency - batch.filter((call) => call.state === "running").length
  for (const call of batch) {
    if (call.state === "ended" || call.state === "running") continue
    const waits = call.state === "waiting"
    const corrected = model.setting.onCorrection === "withhold" || !waits
    const ids = corrected ? correcting(model, gen, call.tool) : []
    const scoped =
      call.state !== "asking" &&
      model.pauses.some((pause) => pause.scope !== undefined && affects(pause.scope, call.tool))
    const reasons = [...(ids.length > 0 ? [`steering ${ids.join()}`] : []), ...(scoped ? ["paused"] : [])]
    const launchable = free > 0 && !allPaused(model) && call.state !== "asking"
    // A question that waits is withdrawn by a correction at once (L-T13).
    const choice = launchable || (call.state === "asking" && ids.length > 0) ? "must" : "may"
    const withheld = withhold(call, reasons, choice, seen)
    changed ||= withheld || launchable
    if (withheld || !launchable) continue
    if (waits && behaviour(call.path) === "denied") end(call, "denied")
    else if (waits && behaviour(call.path) === "asked") call.state = "asking"
    else {
      call.state = "running"
      call.status = "started"
      model.happened.tool++
      free--
    }
  }
  return changed
}
