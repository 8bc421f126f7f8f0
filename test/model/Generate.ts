/** Sequences made up from a seed. What comes next is drawn by what the reference says may happen, so that most of it counts. */
import { ResumeCondition } from "../../src/index.ts"
import { generator } from "../../src/testing/internal/schedule.ts"
import type { Answer, CallSpec, Change, Command, Scope, Sequence, Setting, Tool, Until, Which } from "./Command.ts"
import { make, type Model } from "./Reference.ts"
import { asked, requesting, running, step } from "./Step.ts"
import { behaviours } from "./Tools.ts"

interface Draw {
  readonly below: (n: number) => number
  readonly chance: (p: number) => boolean
  readonly one: <A>(first: A, ...rest: ReadonlyArray<A>) => A
}

const drawFrom = (seed: number): Draw => {
  const next = generator(seed)
  const below = (n: number) => Math.floor(next() * n)
  return {
    below,
    chance: (p) => next() < p,
    one: (first, ...rest) => {
      const at = below(rest.length + 1)
      return at === 0 ? first : (rest[at - 1] ?? first)
    }
  }
}

const setting = ({ below, chance, one }: Draw): Setting => ({
  concurrency: one(1, 2),
  onCorrection: chance(0.8) ? "withhold" : "finish-batch",
  maxRequests: chance(0.3) ? 2 : 3 + below(6),
  steering: chance(0.95) ? "request_boundary" : "unavailable",
  identities: chance(0.2) ? 4 : 40,
  pendingSteering: chance(0.3) ? 2 : 8,
  queued: chance(0.3) ? 2 : 8,
  pauses: 3,
  store: chance(0.6) ? "journal" : one("tells", "cannot-tell"),
  collectDebounce: one(0, 1500),
  collectCap: one(2, 3)
})

const which = ({ chance, one }: Draw): Which => (chance(0.85) ? "live" : one("ended", "never"))
const scope = ({ one }: Draw): Scope | undefined =>
  one<Scope | undefined>(undefined, undefined, [], ["edit"], ["look", "send"])

const scoped = (draw: Draw) => {
  const drawn = scope(draw)
  return drawn === undefined ? {} : { scope: drawn }
}

const until = ({ one }: Draw, now: number): Until => {
  const { all, any, at, input, manual, signal } = ResumeCondition
  return one<Until>(
    manual,
    manual,
    signal("go"),
    input,
    at(now + 2000),
    all(manual, signal("go")),
    any(signal("go"), input),
    all(),
    any()
  )
}

const call = ({ chance, one }: Draw): CallSpec => ({
  tool: chance(0.05) ? "nope" : one<Tool>("look", "edit", "edit", "send"),
  path: chance(0.55) ? "plain" : one("plain", ...behaviours)
})

const calls = (draw: Draw, least: number): ReadonlyArray<CallSpec> =>
  Array.from({ length: least + draw.below(3) }, () => call(draw))

const answer = (draw: Draw): Answer => {
  const repeats = draw.chance(0.08) ? ({ repeats: true } as const) : {}
  const kind = draw.below(20)
  if (kind < 10) return { say: "calls", calls: calls(draw, 1), ...repeats }
  if (kind < 14) return { say: "text" }
  if (kind < 15) return { say: "hang", calls: calls(draw, 0), ...repeats }
  if (kind < 16) return { say: "length", calls: calls(draw, 0), ...repeats }
  if (kind < 17) return { say: draw.one("pause", "filter", "no-finish") }
  return { say: "fail", retryable: draw.chance(0.75), calls: draw.chance(0.3) ? calls(draw, 1) : [] }
}

const known = ({ below }: Draw, model: Model): string => {
  const ids = [...model.tried.keys(), "z"]
  return ids[below(ids.length)] ?? "z"
}

const steer = (draw: Draw, id: string): Command => {
  const input = { id, intent: "steer", text: `${id} says`, ...scoped(draw) } as const
  return draw.chance(0.65) ? { do: "submit", input, anchor: which(draw) } : { do: "submit", input }
}

const queued = (draw: Draw, id: string): Command => {
  const intent = draw.one("follow-up", "collect", "collect")
  const route = intent === "collect" && draw.chance(0.3) ? { route: "r" } : {}
  return { do: "submit", input: { id, intent, text: `${id} asks`, ...route } }
}

const change = ({ one }: Draw): Change =>
  one<Change>("nothing", "nothing", "nothing", "text", "intent", "scope", "anchor", "route")

/** What a host may do, at any time and from inside any listener. */
const operation = (draw: Draw, model: Model, id: string): Command => {
  const kind = draw.below(26)
  if (kind < 8) return steer(draw, id)
  if (kind < 12) return queued(draw, id)
  if (kind < 13) return { do: "submit", input: { id, intent: "prompt", text: draw.chance(0.9) ? `${id} begins` : " " } }
  if (kind < 15) return { do: "repeat", id: known(draw, model), change: change(draw) }
  if (kind < 17) {
    const followUps = draw.chance(0.3) ? ({ followUps: "hold" } as const) : {}
    return { do: draw.one("cancel", "stop"), which: which(draw), ...followUps }
  }
  if (kind < 19) return { do: "pause", until: until(draw, model.now), ...scoped(draw) }
  if (kind < 21) return draw.chance(0.5) ? { do: "resume" } : { do: "resume", signal: draw.one("go", "other") }
  if (kind < 22) return { do: "decide", allow: draw.chance(0.6), at: draw.below(4) }
  if (kind < 23) return { do: "withdraw", id: model.queue[0] ?? known(draw, model) }
  const waits = model.queue.find((each) => model.known.get(each)?.input.intent === "follow-up")
  return {
    do: "promote",
    id: draw.chance(0.8) ? (waits ?? known(draw, model)) : known(draw, model),
    which: which(draw),
    as: id
  }
}

const listen = (draw: Draw, model: Model, id: string): Command => {
  const on = draw.one("request", "tool", "end")
  // At an end the next generation may begin before the listener is heard: only a prompt fares the same either way.
  const act: Command =
    on === "end"
      ? { do: "submit", input: { id, intent: "prompt", text: `${id} begins` } }
      : draw.chance(0.05)
        ? { do: "close" }
        : operation(draw, model, id)
  return { do: "listen", on, act }
}

const next = (draw: Draw, model: Model, id: string): Command => {
  if (draw.chance(0.015)) return { do: "close" }
  if (model.live === undefined && draw.chance(0.5)) {
    return { do: "submit", input: { id, intent: "prompt", text: `${id} begins` } }
  }
  if (draw.chance(0.08)) return listen(draw, model, id)
  if (draw.chance(0.08)) return { do: "tick", millis: draw.one(500, 1000, 1000, 2000, 6000) }
  if (model.live?.phase.tag === "Writing" && draw.chance(0.4)) {
    return { do: "write", how: draw.one("land", "land", "fail") }
  }
  if (model.setting.store !== "journal" && !model.jammed && draw.chance(0.12)) return { do: "jam" }
  if (asked(model).some((each) => each.state === "asking") && draw.chance(0.3)) {
    return { do: "decide", allow: draw.chance(0.7) }
  }
  if (requesting(model) && draw.chance(0.45)) return { do: "answer", with: answer(draw) }
  if (running(model, 0) !== undefined && draw.chance(0.45)) {
    return { do: "tool", at: draw.below(2), how: draw.one("end", "end", "end", "fail", "die") }
  }
  return operation(draw, model, id)
}

export const generate = (seed: number): Sequence => {
  const draw = drawFrom(seed)
  const drawn = setting(draw)
  const length = 5 + draw.below(21)
  const commands: Array<Command> = []
  let model = make(drawn)
  for (let i = 0; i < length; i++) {
    const command = next(draw, model, `i${i + 1}`)
    commands.push(command)
    model = step(model, command).model
  }
  return { setting: drawn, commands }
}

/** Leaves out commands as long as what is left still disagrees, until none can be left out. */
export const shrink = (sequence: Sequence, disagrees: (sequence: Sequence) => boolean): Sequence => {
  let { commands } = sequence
  for (let size = commands.length; size >= 1;) {
    let at = 0
    let removed = false
    while (at < commands.length) {
      const shorter = [...commands.slice(0, at), ...commands.slice(at + size)]
      if (disagrees({ ...sequence, commands: shorter })) {
        commands = shorter
        removed = true
      } else at += size
    }
    size = size > 1 ? Math.ceil(size / 2) : removed ? 1 : 0
  }
  return { ...sequence, commands }
}
