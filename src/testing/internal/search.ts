import { generator, type Plan, type Step, YIELD } from "./schedule.ts"
import type { Ran } from "./run.ts"

export interface Job {
  readonly plan: Plan
  readonly traceFrom: number | undefined
}

export interface PhaseCount {
  readonly name: string
  schedules: number
  /** Of the points of a pair, every `stride`th was taken; 1 is all of them. */
  readonly stride: number
}

export interface SearchOptions {
  readonly actions: ReadonlyArray<number>
  readonly preemptions: 1 | 2
  readonly pairs: number
  readonly random: number
  readonly seed: number
}

type Search<A = void> = Generator<Job, A, Ran>
type Decision = readonly [at: number, act: number]

const NOTHING: Plan = { at: [], act: [] }

const of = (...decisions: ReadonlyArray<Decision>): Plan => ({
  at: decisions.map((d) => d[0]),
  act: decisions.map((d) => d[1])
})

const job = (plan: Plan, traceFrom?: number): Job => ({ plan, traceFrom })

/** Every schedule of the exploration, in order; what a run tells directs the ones after it. */
export function* search(options: SearchOptions, begin: (phase: PhaseCount) => void): Search {
  const enter = (name: string, stride = 1) => begin({ name, schedules: 0, stride })
  enter("baseline")
  const base = yield job(NOTHING, 0)
  const operations = base.operations
  const shared = base.trace?.shared() ?? []
  const points = base.trace?.points() ?? []
  const isShared = new Set(shared)

  if (options.actions.length > 0) enter("one action")
  for (const action of options.actions) {
    for (let at = 0; at < operations; at++) {
      yield job(of([at, action]))
      if (isShared.has(at)) yield job(of([at, action], [at, YIELD]))
    }
  }

  enter("one preemption")
  for (let at = 0; at < operations; at++) yield job(of([at, YIELD]))

  if (options.preemptions === 2) {
    const count = options.actions.length
    const strideOf = (first: number, second: number) =>
      Math.max(1, Math.ceil(Math.sqrt((first * second) / 2 / Math.max(1, options.pairs))))
    const phases = [
      { name: "two actions", first: options.actions, second: options.actions },
      { name: "two preemptions", first: [YIELD], second: [YIELD] },
      { name: "an action and a preemption", first: options.actions, second: [YIELD] },
      { name: "a preemption and an action", first: [YIELD], second: options.actions }
    ]
    for (const { first, name, second } of phases) {
      const from = first[0] === YIELD ? shared : points
      const to = second[0] === YIELD ? shared : points
      if (count === 0 && (first.length === 0 || second.length === 0)) continue
      const stride = strideOf(from.length * first.length, to.length * second.length)
      enter(name, stride)
      yield* pairs(from, first, second, stride)
    }
  }

  enter("random")
  for (let i = 0; i < options.random; i++) yield job(draw(options, operations, i))
}

/** The second decision's points are those of the run that the first one leads to. */
function* pairs(
  from: ReadonlyArray<number>,
  first: ReadonlyArray<number>,
  second: ReadonlyArray<number>,
  stride: number
): Search {
  const yields = second[0] === YIELD
  for (let i = 0; i < from.length; i += stride) {
    const at = from[i] ?? 0
    for (const act of first) {
      const after = act === YIELD ? at + 1 : at
      const ran = yield job(of([at, act]), after)
      const found = (yields ? ran.trace?.shared() : ran.trace?.points()) ?? []
      const to = yields || act === YIELD || found[0] === at ? found : [at, ...found]
      for (let j = stride > 1 ? (i / stride) % stride : 0; j < to.length; j += stride) {
        for (const then of second) yield job(of([at, act], [to[j] ?? 0, then]))
      }
    }
  }
}

const DENSITIES = [0.02, 0.1, 0.3]

/** In turn: a few actions and yields; a yield at every operation; yields at a rate. Every choice is drawn. */
const draw = (options: SearchOptions, operations: number, index: number): Plan => {
  const seed = (options.seed + Math.imul(index + 1, 0x9e3779b1)) | 0
  const next = generator(seed ^ 0x5bd1e995)
  const below = (n: number) => Math.floor(next() * n)
  const decisions: Array<Decision> = []
  const kind = index % 3
  const somewhere = () => below(Math.ceil(operations * 1.25) + 1)
  const injections = options.actions.length === 0 ? 0 : below(4) + (kind === 1 ? 0 : 1)
  for (let i = 0; i < injections; i++) {
    decisions.push([somewhere(), options.actions[below(options.actions.length)] ?? YIELD])
  }
  if (kind === 0) for (let i = below(5); i > 0; i--) decisions.push([somewhere(), YIELD])
  decisions.sort((a, b) => a[0] - b[0])
  const density = kind === 0 ? 0 : kind === 1 ? 1 : (DENSITIES[below(DENSITIES.length)] ?? 1)
  return { ...of(...decisions), random: { seed, density } }
}

/** How far the operations after a step that was left out may have moved. */
const SHIFTS = [0, -1, 1, -2, 2, -3, 3]

const shifted = (steps: ReadonlyArray<Step>, from: number, by: number): ReadonlyArray<Step> =>
  steps.map((step, i) => (i >= from && "at" in step ? { ...step, at: Math.max(0, step.at + by) } : step))

/**
 * Removes steps as long as what is left still fails, until no single one can go or the tries are spent. `fails` gives
 * the steps that took effect. Leaving one out moves the operations after it, so the later steps are also tried moved.
 */
export const shrink = (
  steps: ReadonlyArray<Step>,
  fails: (steps: ReadonlyArray<Step>) => ReadonlyArray<Step> | undefined,
  tries: number
): { readonly steps: ReadonlyArray<Step>; readonly minimal: boolean } => {
  let current = steps
  let parts = 2
  let tried = 0
  while (current.length > 0) {
    const size = Math.max(1, Math.ceil(current.length / parts))
    const shifts = size === 1 ? SHIFTS : [0]
    let smaller: ReadonlyArray<Step> | undefined
    for (const by of shifts) {
      for (let start = 0; start < current.length && smaller === undefined; start += size) {
        if (by !== 0 && start === current.length - 1) continue
        if (tried++ >= tries) return { steps: current, minimal: false }
        const left = shifted([...current.slice(0, start), ...current.slice(start + size)], start, by)
        const fired = fails(left)
        if (fired !== undefined) smaller = fired.length < current.length ? fired : left
      }
    }
    if (smaller !== undefined) {
      current = smaller
      parts = Math.max(2, parts - 1)
    } else if (size === 1) break
    else parts = Math.min(current.length, parts * 2)
  }
  return { steps: current, minimal: true }
}
