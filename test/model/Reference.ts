/**
 * The laws of a session as a small pure state machine over whole commands: what a caller is answered, and what stands when
 * nothing can go on by itself any more. It shares no code with the engine.
 *
 * Where the laws leave a choice the reference looks at what the engine chose (`Seen`) and allows it only if it is one of those
 * left: see `Choice` in `Tools.ts`, and the comments that begin with `Free:`.
 */
import type { Command, Setting, Submission, Tried, Until, Which } from "./Command.ts"

export type Outcome = "finished" | "failed" | "stopped" | "cancelled" | "exhausted"

/** Why admission closed: how the generation ends, the reason its pending inputs are held with, and the cause its calls name. */
export interface Closing {
  readonly outcome: Outcome
  readonly held: string
  readonly call: string
  readonly cause: string
}

export type Status =
  | { readonly tag: "Queued" }
  | { readonly tag: "Admitted"; readonly gen: number }
  | { readonly tag: "Delivered" | "Completed"; readonly gen: number; readonly request?: number }
  | { readonly tag: "Unknown"; readonly gen: number; readonly reason: string }
  | { readonly tag: "Held"; readonly gen: number | null; readonly reason: string }

/** One accepted identity. */
export interface Known {
  readonly input: Submission
  readonly anchor: number | null
  readonly delivery: "request_boundary" | "new_turn"
  readonly at: number
  readonly derivedFrom?: string
  readonly status: Status
}

export interface Call {
  readonly key: string
  readonly providerId: string
  readonly tool: string
  readonly path: string
  state: "waiting" | "asking" | "allowed" | "running" | "ended"
  /** In words, as the report says it. */
  status: string
  /** When a call that does not heed its interruption is given up. */
  overdue?: number
}

export type Phase =
  | { readonly tag: "Boundary" }
  /** The write of these has begun and hangs. */
  | { readonly tag: "Writing"; readonly item: ReadonlyArray<string> }
  /** `said` are the calls of a response that hangs: it will never be complete. */
  | { readonly tag: "Requesting"; readonly said?: ReadonlyArray<Call> }
  | { readonly tag: "Tools"; readonly batch: ReadonlyArray<Call> }
  | { readonly tag: "BackingOff"; readonly until: number }

export interface Gen {
  readonly n: number
  readonly initial: ReadonlyArray<string>
  readonly inputs: Array<string>
  pending: Array<string>
  /** What it started with, as far as its writes have not begun; collects are written together. */
  unwritten: ReadonlyArray<ReadonlyArray<string>>
  requests: number
  tries: number
  phase: Phase
  closing?: Closing
  readonly calls: Array<Call>
  ended?: Outcome
}

export interface Pause {
  readonly until: Until
  readonly scope?: ReadonlyArray<string>
  readonly manual: boolean
  readonly input: boolean
  readonly signals: ReadonlyArray<string>
  readonly effective: boolean
}

export interface Model {
  readonly setting: Setting
  readonly known: Map<string, Known>
  /** What was last tried under an id, accepted or not: what a repeat repeats. */
  readonly tried: Map<string, Tried<number>>
  readonly gens: Array<Gen>
  live: Gen | undefined
  turns: Array<string>
  queue: Array<string>
  pauses: Array<Pause>
  closed: boolean
  /** Whether the next write into a context of the host's hangs. */
  jammed: boolean
  now: number
  /** How often each kind of event has happened, for listeners. */
  readonly happened: { request: number; tool: number; end: number }
  listener: { readonly on: "request" | "tool" | "end"; readonly from: number; readonly act: Command } | undefined
}

export const make = (setting: Setting): Model => ({
  setting,
  known: new Map(),
  tried: new Map(),
  gens: [],
  live: undefined,
  turns: [],
  queue: [],
  pauses: [],
  closed: false,
  jammed: false,
  now: 0,
  happened: { request: 0, tool: 0, end: 0 },
  listener: undefined
})

/** A copy that shares nothing that changes. */
export const copy = (model: Model): Model => {
  const gens = model.gens.map((gen): Gen => {
    if (gen.ended !== undefined) return gen
    const calls = gen.calls.map((call) => ({ ...call }))
    const copied = (list: ReadonlyArray<Call>) =>
      list.map((call) => calls.find((other) => other.key === call.key) ?? { ...call })
    const { phase } = gen
    return {
      ...gen,
      inputs: [...gen.inputs],
      pending: [...gen.pending],
      calls,
      phase:
        phase.tag === "Tools"
          ? { tag: "Tools", batch: copied(phase.batch) }
          : phase.tag === "Requesting" && phase.said !== undefined
            ? { tag: "Requesting", said: copied(phase.said) }
            : phase
    }
  })
  return {
    ...model,
    known: new Map(model.known),
    tried: new Map(model.tried),
    gens,
    live: gens.find((gen) => gen.n === model.live?.n && gen.ended === undefined),
    turns: [...model.turns],
    queue: [...model.queue],
    pauses: [...model.pauses],
    happened: { ...model.happened }
  }
}

/** What the engine was seen to do, for the choices the laws leave. Absent when a sequence is being made up. */
export interface Seen {
  /** Statuses of calls in words, by key. */
  readonly calls: ReadonlyMap<string, string>
  /** Whether the pauses that have not ended are in effect, in order. */
  readonly effective: ReadonlyArray<boolean>
  /** Whether the caller's operation was accepted. */
  readonly accepted: boolean
  /** The requests the live generation has made. */
  readonly requests: number | undefined
}

/** What a caller is to be told. */
export type Expected =
  | { readonly tag: "nothing" }
  /** Accepted now: `queued`, bound to one of these. */
  | { readonly tag: "fresh"; readonly id: string; readonly gens: ReadonlyArray<number | null> }
  /** The receipt as it stands. */
  | { readonly tag: "current"; readonly id: string }
  | { readonly tag: "refused"; readonly reasons: ReadonlyArray<string>; readonly actual?: number | null }
  | { readonly tag: "done" }
  | { readonly tag: "either"; readonly reasons: ReadonlyArray<string> }

export const closings = {
  finished: { outcome: "finished", held: "budget-exhausted", call: "stopped", cause: "finish" },
  exhausted: { outcome: "exhausted", held: "budget-exhausted", call: "budget", cause: "budget" },
  stopped: { outcome: "stopped", held: "generation-stopped", call: "stopped", cause: "stop" },
  cancelled: { outcome: "cancelled", held: "generation-cancelled", call: "cancelled", cause: "cancel" },
  closed: { outcome: "cancelled", held: "session-closed", call: "closed", cause: "close" },
  failed: { outcome: "failed", held: "generation-failed", call: "failed", cause: "provider-failure" }
} as const satisfies Record<string, Closing>

/** The generation a caller means; 0 is one that never was. */
export const resolve = (model: Model, which: Which): number => {
  const { live } = model
  const last = model.gens.findLast((gen) => gen !== live)?.n ?? 0
  switch (which) {
    case "live":
      return live?.n ?? last
    case "ended":
      return last
    case "never":
      return 0
  }
}

export const affects = (scope: ReadonlyArray<string> | undefined, tool: string): boolean =>
  scope === undefined || scope.includes(tool)

/** Whether all work is paused (L-C2). */
export const allPaused = (model: Model): boolean => model.pauses.some((pause) => pause.scope === undefined)

export const holds = (until: Until, pause: Pause, now: number): boolean => {
  switch (until._tag) {
    case "Manual":
      return pause.manual
    case "At":
      return now >= until.instant
    case "Signal":
      return pause.signals.includes(until.name)
    case "Input":
      return pause.input
    case "All":
      return until.of.every((each) => holds(each, pause, now))
    case "Any":
      return until.of.some((each) => holds(each, pause, now))
  }
}

/** Drops the pauses whose conditions hold (L-C3). */
export const endPauses = (model: Model): void => {
  model.pauses = model.pauses.filter((pause) => !holds(pause.until, pause, model.now))
}

export const setStatus = (model: Model, id: string, status: Status): void => {
  const known = model.known.get(id)
  if (known !== undefined) model.known.set(id, { ...known, status })
}

export const hold = (model: Model, id: string, gen: number | null, reason: string): void => {
  model.queue = model.queue.filter((other) => other !== id)
  model.turns = model.turns.filter((other) => other !== id)
  setStatus(model, id, { tag: "Held", gen, reason })
}

/** Closes admission and holds what nothing will drain (L-E3, L-C5). */
export const closeAdmission = (model: Model, gen: Gen, closing: Closing): void => {
  gen.closing = closing
  for (const id of gen.pending) hold(model, id, gen.n, closing.held)
  gen.pending = []
}
