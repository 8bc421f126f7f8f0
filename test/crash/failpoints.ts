/**
 * One kill at every named failpoint: right before the first commit that carries each kind is handed to the store, inside it (right before
 * the statement that commits it), and right after.
 */
import { Effect } from "effect"
import { cpSync } from "node:fs"
import { recorder, type Config, type Failpoint, type Line, type Mode, type Place, type Side } from "./world.ts"
import { type Children, type Outcome, temporary } from "./children.ts"
import { type Case, judge } from "./judge.ts"
import * as Life from "./life.ts"

export interface Plan {
  readonly children: Children
  readonly dialect: Place["dialect"]
  readonly placeIn: (folder: string) => Place
  readonly sides: ReadonlyArray<Side>
  /** How each is recovered: by one mode, by both in turn, or by each of both. */
  readonly modes: Mode | "turns" | "both"
  readonly hosted: boolean
  /** Only at these kinds. */
  readonly only?: ReadonlyArray<string>
  readonly progress?: (where: string) => void
}

export interface Table {
  /** The kinds that were met, each a failpoint on every side. */
  readonly kinds: ReadonlyArray<string>
  readonly names: number
  readonly kills: number
  readonly lies: ReadonlyArray<string>
}

/** The kinds of a life's commits, in the order they are first met. */
const kindsIn = (lines: ReadonlyArray<Line>): ReadonlyArray<string> => [
  ...new Set(lines.flatMap((line) => (line.line === "commit" ? line.kinds : [])))
]

/** The kinds that a process met first in the commit that it died at. */
const diedAt = (lines: ReadonlyArray<Line>): ReadonlyArray<string> => {
  const dies = lines.find((line) => line.line === "dies")
  const before = new Set(kindsIn(lines))
  return dies?.line === "dies" ? dies.kinds.filter((kind) => !before.has(kind)) : []
}

const configOf = (one: Case, mode: Mode, scene: Config["scene"], failpoint: Failpoint | undefined): Config => ({
  place: one.place,
  session: one.session,
  mode,
  onClose: "detach",
  scene,
  life: 1,
  seed: 1,
  folder: one.folder,
  hosted: one.hosted,
  concurrency: 1,
  lifetime: 0,
  failpoint,
  again: []
})

let sessions = 0

const caseIn = ({ hosted, placeIn }: Plan, folder: string, session = `failpoint_${++sessions}`): Case => ({
  place: placeIn(folder),
  session,
  folder,
  hosted,
  actor: Life.actor(Life.open, recorder(folder)),
  lines: []
})

const failed = (outcome: Outcome): string => `it ended with ${outcome.code}: ${outcome.complaint.slice(0, 800)}`

const live = (plan: Plan, one: Case, mode: Mode, scene: Config["scene"], failpoint?: Failpoint) =>
  Effect.map(plan.children.live(configOf(one, mode, scene, failpoint)), (outcome) => {
    one.lines.push(...outcome.lines)
    return outcome
  })

/** Kills at each kind that `whole` says a process meets; `prepare` makes the session it meets them in. */
const everywhere = (
  plan: Plan,
  scene: Config["scene"],
  whole: ReadonlyArray<Line>,
  prepare: (folder: string) => Case
) =>
  Effect.gen(function* () {
    const kinds = kindsIn(whole).filter((kind) => plan.only?.includes(kind) ?? true)
    const covered = new Set<string>()
    const lies: Array<string> = []
    let kills = 0
    for (const side of plan.sides) {
      for (const [index, kind] of kinds.entries()) {
        if (kind === "context" && side === "inside") continue
        const turn = (index + (side === "after" ? 1 : 0)) % 2 === 0 ? "settle" : "resume"
        const modes: ReadonlyArray<Mode> =
          plan.modes === "both" ? ["settle", "resume"] : [plan.modes === "turns" ? turn : plan.modes]
        for (const mode of modes) {
          // One commit is one kill, however many kinds are first met in it.
          const key = (each: string) => (plan.modes === "both" ? `${side} ${each} ${mode}` : `${side} ${each}`)
          if (covered.has(key(kind))) continue
          const name = `${plan.hosted ? "host's context, " : ""}${scene} ${side} ${kind}, ${mode}`
          yield* Effect.scoped(
            Effect.gen(function* () {
              const one = prepare(yield* temporary("memory"))
              const outcome = yield* live(plan, one, mode, scene, { side, kind, nth: 1 })
              for (const each of [kind, ...diedAt(outcome.lines)]) covered.add(key(each))
              kills++
              if (!outcome.killed) lies.push(`${name}: not reached; ${failed(outcome)}`)
              for (const lie of yield* judge(one, mode, 1)) lies.push(`${name}: ${lie}`)
            })
          )
          plan.progress?.(name)
        }
      }
    }
    return { kinds, names: covered.size, kills, lies }
  })

/** Every kind of a whole life. */
export const run = (plan: Plan): Effect.Effect<Table> =>
  Effect.gen(function* () {
    const one = caseIn(plan, yield* temporary("memory"))
    const outcome = yield* live(plan, one, "settle", "life")
    if (outcome.code !== 0) return { kinds: [], names: 0, kills: 0, lies: [`the whole life: ${failed(outcome)}`] }
    const bad = yield* judge(one, "settle", 1)
    if (bad.length > 0) return { kinds: [], names: 0, kills: 0, lies: bad.map((lie) => `the whole life: ${lie}`) }
    return yield* everywhere(plan, "life", outcome.lines, (folder) => caseIn(plan, folder))
  }).pipe(Effect.scoped)

/** Every kind that a process journals that opens what was killed at `first`, and is killed over it. For a database that is a file. */
export const again = (plan: Plan, first: Failpoint): Effect.Effect<Table> =>
  Effect.gen(function* () {
    const lost = yield* temporary("memory")
    const one = caseIn(plan, lost)
    const outcome = yield* live(plan, one, "settle", "life", first)
    if (!outcome.killed) return { kinds: [], names: 0, kills: 0, lies: [`not reached; ${failed(outcome)}`] }
    const copy = (folder: string): Case => {
      cpSync(lost, folder, { recursive: true })
      const copied = caseIn(plan, folder, one.session)
      copied.lines.push(...one.lines)
      return copied
    }
    const tables: Array<Table> = []
    for (const mode of ["settle", "resume"] as const) {
      const whole = yield* Effect.scoped(
        Effect.gen(function* () {
          return yield* live(plan, copy(yield* temporary("memory")), mode, "rest")
        })
      )
      if (whole.code !== 0) {
        tables.push({ kinds: [], names: 0, kills: 0, lies: [`${mode}: ${failed(whole)}`] })
        continue
      }
      tables.push(yield* everywhere({ ...plan, modes: mode }, "rest", whole.lines, copy))
    }
    return {
      kinds: [...new Set(tables.flatMap(({ kinds }) => kinds))],
      names: tables.reduce((sum, { names }) => sum + names, 0),
      kills: tables.reduce((sum, { kills }) => sum + kills, 0),
      lies: tables.flatMap(({ lies }) => lies.map((lie) => `after ${first.side} ${first.kind} ${first.nth}: ${lie}`))
    }
  }).pipe(Effect.scoped)
