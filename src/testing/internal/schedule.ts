import { Option, Schema } from "effect"

/** What happens at one decision of a schedule. `at` counts operations and `choice` counts choices, both from 0. */
export type Step =
  | { readonly at: number; readonly run: string }
  | { readonly at: number; readonly yield: true }
  | { readonly choice: number; readonly take: number }

const StepSchema = Schema.Union([
  Schema.Struct({ at: Schema.Int, run: Schema.String }),
  Schema.Struct({ at: Schema.Int, yield: Schema.Literal(true) }),
  Schema.Struct({ choice: Schema.Int, take: Schema.Int })
])

const Stored = Schema.fromJsonString(Schema.Struct({ scenario: Schema.String, steps: Schema.Array(StepSchema) }))
const decodeStored = Schema.decodeUnknownOption(Stored)
const encodeStored = Schema.encodeSync(Stored)

export const toJson = (scenario: string, steps: ReadonlyArray<Step>): string => encodeStored({ scenario, steps })

export const fromJson = (json: string): ReadonlyArray<Step> | undefined =>
  Option.getOrUndefined(Option.map(decodeStored(json), (stored) => stored.steps))

export const describe = (step: Step): string =>
  "choice" in step
    ? `choice ${step.choice}: take runnable ${step.take}`
    : "run" in step
      ? `operation ${step.at}: run ${step.run}`
      : `operation ${step.at}: yield`

/** Stands for a forced yield where an action's number would be. */
export const YIELD = -1

/** A schedule as the scheduler reads it: operations in ascending order, and what to do at each. */
export interface Plan {
  readonly at: ReadonlyArray<number>
  readonly act: ReadonlyArray<number>
  readonly picks?: ReadonlyMap<number, number> | undefined
  /** Besides: a yield at each operation with this probability, and every choice drawn. */
  readonly random?: { readonly seed: number; readonly density: number } | undefined
}

export const compile = (steps: ReadonlyArray<Step>, actions: ReadonlyArray<string>): Plan => {
  const picks = new Map<number, number>()
  const points: Array<readonly [at: number, act: number]> = []
  for (const step of steps) {
    if ("choice" in step) picks.set(step.choice, step.take)
    else if ("yield" in step) points.push([step.at, YIELD])
    else {
      const action = actions.indexOf(step.run)
      if (action < 0) throw new Error(`Interleavings: the scenario has no action ${step.run}`)
      points.push([step.at, action])
    }
  }
  points.sort((a, b) => a[0] - b[0])
  return { at: points.map((p) => p[0]), act: points.map((p) => p[1]), picks }
}

/** Mulberry32: a small generator whose whole state is its seed. Numbers in [0, 1). */
export const generator = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
