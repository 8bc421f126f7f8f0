/**
 * Explores the interleavings of a scenario. It runs under a deterministic `Scheduler` that decides, before every
 * run-loop operation, which runnable fiber goes on and whether an action of the scenario happens there: exhaustively for
 * one decision and for pairs of them, then at random from a seed. The first schedule that breaks a check is shrunk to
 * one from which nothing can be left out, and can be run again. The same seed gives the same exploration.
 *
 * A scenario is synchronous but for its fibers: a promise, a `setTimeout` or an unscripted device counts as never. `Clock`
 * and `Random` are the explorer's own: time starts at 0 and moves to the next timer when nothing is runnable. Operations
 * that the runtime fuses (`map`, `tap` and `sync` continuations, the code between two `yield*`) are one step, as they are
 * under the real scheduler; so are priorities ignored, which only adds orders.
 *
 * @since 0.1.0
 */
import { Clock, type Context, Effect, type Exit, type Fiber } from "effect"
import { actionNames, type Ran, runOnce } from "./internal/run.ts"
import { compile, describe, fromJson, type Plan, type Step as ScheduleStep, toJson } from "./internal/schedule.ts"
import { type Job, type PhaseCount, search, shrink } from "./internal/search.ts"

/**
 * A scenario's handle on its explorer.
 *
 * @category models
 * @since 0.1.0
 */
export interface Probe {
  /** From here on operations count, with `arm: "manual"`. */
  readonly arm: () => void
  /** From here on operations do not count: nothing is injected and nobody is preempted. */
  readonly disarm: () => void
  /** Moves the scenario's clock by milliseconds; the timers that are due become runnable. */
  readonly advance: (millis: number) => void
  /** The fiber of `main`, once it has suspended or ended. */
  readonly main: () => Fiber.Fiber<unknown, unknown> | undefined
}

/**
 * What may happen at any operation: an effect, forked under the same scheduler, or a function. A function may return the
 * effect, for what exists only once the scenario runs. What the action schedules runs before the fiber it was injected
 * into goes on. It has to end by the time the scenario is quiescent; a typed failure of it is none of the explorer's
 * business, a defect is a violation.
 *
 * @category models
 * @since 0.1.0
 */
export type Action<R> = Effect.Effect<unknown, unknown, R> | (() => unknown)

/**
 * One fresh run of a scenario.
 *
 * @category models
 * @since 0.1.0
 */
export interface Instance<A, E, R> {
  readonly main: Effect.Effect<A, E, R>
  /** By name. The names are the same in every run. */
  readonly actions: Readonly<Record<string, Action<R>>>
  /** What is wrong, judged when nothing is runnable any more. */
  readonly check: (exit: Exit.Exit<A, E>) => ReadonlyArray<string> | Effect.Effect<ReadonlyArray<string>, never, R>
  /** Names the way it ended, to see that outcomes vary. Default: the exit's tag. */
  readonly outcome?: ((exit: Exit.Exit<A, E>) => string | Effect.Effect<string, never, R>) | undefined
  /**
   * The state that decides what an action would meet. Pairs of actions are tried at the first and the last operation of
   * each fiber in each state; without it at every operation. Called at operations of some runs: cheap, and pure.
   */
  readonly stateKey?: (() => string) | undefined
}

/**
 * What is explored. `setup` is called anew for every schedule and shares nothing between them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scenario<A, E, R> {
  readonly name: string
  readonly setup: (probe: Probe) => Instance<A, E, R>
  /** When operations begin to count: `"start"` (the default), or when the scenario calls `probe.arm`. */
  readonly arm?: "start" | "manual" | undefined
  /** A defect of `main` is for `check` to judge. Default `false`: it is a violation. */
  readonly allowDefects?: boolean | undefined
}

/**
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Default 1. */
  readonly seed?: number | undefined
  /** 1: single actions and yields, then random. 2 (the default): also their pairs. */
  readonly preemptions?: 1 | 2 | undefined
  /** How many random schedules. Default 1,000. */
  readonly random?: number | undefined
  /** How many schedules each kind of pair may take; beyond it points are left out evenly. Default 20,000. */
  readonly pairs?: number | undefined
  /** How many schedules in all. Default 100,000. */
  readonly maxSchedules?: number | undefined
  /** Milliseconds of the caller's clock, looked at between batches of schedules. Default: none. */
  readonly timeLimit?: number | undefined
  /** The actions to inject. Default: all. */
  readonly actions?: ReadonlyArray<string> | undefined
  /** Operations and tasks of one schedule after which it counts as a livelock. Default 100,000. */
  readonly maxOperations?: number | undefined
  /** Runs that shrinking may take. Default 2,000. */
  readonly shrinks?: number | undefined
}

/**
 * One decision of a schedule: an action, or a yield, before an operation; or a runnable other than the first.
 *
 * @category models
 * @since 0.1.0
 */
export type Step = ScheduleStep

/**
 * A schedule that breaks a check.
 *
 * @category models
 * @since 0.1.0
 */
export interface Violation {
  readonly schedule: ReadonlyArray<Step>
  readonly violations: ReadonlyArray<string>
  /** Whether no single step can be left out; `false` when the runs for shrinking were spent. */
  readonly shrunk: boolean
  /** JSON for `replay`. */
  readonly replay: string
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Result {
  readonly scenario: string
  readonly seed: number
  /** Schedules run, those for shrinking apart. */
  readonly schedules: number
  /** Operations of all of them together. */
  readonly operations: number
  /** Operations of the schedule without any decision. */
  readonly baseline: number
  /** How often each outcome came up among the schedules without violation. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly phases: ReadonlyArray<Readonly<PhaseCount>>
  readonly stoppedBy: "done" | "violation" | "schedules" | "time"
  /** Whether the schedule without any decision ran twice alike; if not, replay and shrinking cannot be trusted. */
  readonly deterministic: boolean
  readonly violation: Violation | undefined
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Replayed {
  readonly violations: ReadonlyArray<string>
  readonly outcome: string
  readonly operations: number
}

/**
 * Explores a scenario until a violation, the end, or a limit. Its services come from the caller's context and are
 * shared by all schedules.
 *
 * @category exploration
 * @since 0.1.0
 */
export const explore = <A, E, R>(scenario: Scenario<A, E, R>, options: Options = {}): Effect.Effect<Result, never, R> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const clock = yield* Clock.Clock
    const began = clock.currentTimeMillisUnsafe()
    const exploration = makeExploration(scenario, context, options)
    for (;;) {
      if (exploration.advance(BATCH)) return exploration.result()
      if (options.timeLimit !== undefined && clock.currentTimeMillisUnsafe() - began >= options.timeLimit) {
        return exploration.result("time")
      }
      yield* Effect.yieldNow
    }
  })

/**
 * Explores a scenario and dies with the report if a schedule breaks a check.
 *
 * @category exploration
 * @since 0.1.0
 */
export const verify = <A, E, R>(scenario: Scenario<A, E, R>, options?: Options): Effect.Effect<Result, never, R> =>
  Effect.filterOrElse(
    explore(scenario, options),
    (result) => result.violation === undefined,
    (result) => Effect.die(new Error(report(result)))
  )

/**
 * Runs one schedule of a scenario again. Dies on JSON that is no schedule, or of another scenario's actions.
 *
 * @category exploration
 * @since 0.1.0
 */
export const replay = <A, E, R>(
  scenario: Scenario<A, E, R>,
  json: string,
  options: Pick<Options, "seed" | "maxOperations"> = {}
): Effect.Effect<Replayed, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.sync(() => {
      const steps = fromJson(json)
      if (steps === undefined) throw new Error(`Interleavings: not a schedule: ${json}`)
      const actions = actionNames(scenario)
      const { operations, outcome, violations } = runOnce(scenario, context, compile(steps, actions), {
        actions,
        seed: options.seed ?? DEFAULT.seed,
        limit: options.maxOperations ?? DEFAULT.maxOperations
      })
      return { violations, outcome, operations }
    })
  )

/**
 * A result in words.
 *
 * @category formatting
 * @since 0.1.0
 */
export const report = (result: Result): string => {
  const lines = [
    `${result.scenario}: ${result.schedules} schedules, ${result.operations} operations (${result.baseline} undisturbed), ` +
      `seed ${result.seed}, stopped by ${result.stoppedBy}`
  ]
  for (const { name, schedules, stride } of result.phases) {
    lines.push(`  ${name}: ${schedules}${stride > 1 ? `, every ${stride}th point` : ""}`)
  }
  const outcomes = Object.entries(result.outcomes).sort((a, b) => b[1] - a[1])
  lines.push(`  outcomes ${outcomes.length}: ${outcomes.map(([name, count]) => `${name} ${count}`).join(", ")}`)
  if (!result.deterministic) lines.push("  NOT DETERMINISTIC: undisturbed, two runs differ")
  if (result.violation !== undefined) {
    lines.push(`VIOLATION, ${result.violation.schedule.length} steps${result.violation.shrunk ? ", minimal" : ""}:`)
    for (const step of result.violation.schedule) lines.push(`  ${describe(step)}`)
    for (const violation of result.violation.violations) lines.push(`  > ${violation}`)
    lines.push(`  replay ${result.violation.replay}`)
  }
  return lines.join("\n")
}

const BATCH = 32
const DEFAULT = { seed: 1, random: 1_000, pairs: 20_000, maxSchedules: 100_000, maxOperations: 100_000, shrinks: 2_000 }
const UNDISTURBED: Plan = { at: [], act: [] }

const makeExploration = <A, E, R>(scenario: Scenario<A, E, R>, context: Context.Context<R>, options: Options) => {
  const seed = options.seed ?? DEFAULT.seed
  const limit = options.maxOperations ?? DEFAULT.maxOperations
  const maxSchedules = options.maxSchedules ?? DEFAULT.maxSchedules
  const actions = actionNames(scenario)
  const injected = (options.actions ?? actions).map((name) => {
    const at = actions.indexOf(name)
    if (at < 0) throw new Error(`Interleavings: the scenario has no action ${name}`)
    return at
  })
  const run = (plan: Plan, traceFrom?: number, record?: Array<Step>): Ran =>
    runOnce(scenario, context, plan, { actions, limit, seed, traceFrom, record })

  // the first run may fill caches that shorten the later ones
  run(UNDISTURBED)
  const once = run(UNDISTURBED)
  const again = run(UNDISTURBED)
  const deterministic = once.operations === again.operations && once.outcome === again.outcome
  const outcomes = new Map<string, number>()
  const phases: Array<PhaseCount> = []
  let schedules = 0
  let operations = 0
  let stoppedBy: Result["stoppedBy"] = "done"
  let violation: Violation | undefined

  const fail = (plan: Plan, seen: Ran): Violation => {
    const fired: Array<Step> = []
    const repeated = run(plan, undefined, fired)
    if (repeated.violations.length === 0) {
      const violations = ["NOT REPRODUCED: the scenario is not deterministic", ...seen.violations]
      return { schedule: fired, violations, shrunk: false, replay: toJson(scenario.name, fired) }
    }
    const fails = (candidate: ReadonlyArray<Step>) => {
      const kept: Array<Step> = []
      return run(compile(candidate, actions), undefined, kept).violations.length > 0 ? kept : undefined
    }
    const { minimal, steps } = shrink(fired, fails, options.shrinks ?? DEFAULT.shrinks)
    const { violations } = run(compile(steps, actions))
    return { schedule: steps, violations, shrunk: minimal, replay: toJson(scenario.name, steps) }
  }

  const jobs = search(
    {
      actions: injected,
      preemptions: options.preemptions ?? 2,
      pairs: options.pairs ?? DEFAULT.pairs,
      random: options.random ?? DEFAULT.random,
      seed
    },
    (phase) => phases.push(phase)
  )
  let job: IteratorResult<Job, void> = jobs.next()

  /** Runs up to `count` schedules; `true` when the exploration is over. */
  const advance = (count: number): boolean => {
    for (let i = 0; i < count; i++) {
      if (job.done === true) return true
      if (schedules >= maxSchedules) {
        stoppedBy = "schedules"
        return true
      }
      const ran = run(job.value.plan, job.value.traceFrom)
      schedules++
      operations += ran.operations
      const phase = phases.at(-1)
      if (phase !== undefined) phase.schedules++
      if (schedules === 1 && ran.operations === 0 && ran.violations.length === 0) {
        stoppedBy = "violation"
        const violations = ["NEVER ARMED: the scenario has no operation to explore"]
        violation = { schedule: [], violations, shrunk: true, replay: toJson(scenario.name, []) }
        return true
      }
      if (ran.violations.length > 0) {
        stoppedBy = "violation"
        violation = fail(job.value.plan, ran)
        return true
      }
      outcomes.set(ran.outcome, (outcomes.get(ran.outcome) ?? 0) + 1)
      job = jobs.next(ran)
    }
    return false
  }

  const result = (stopped?: "time"): Result => ({
    scenario: scenario.name,
    seed,
    schedules,
    operations,
    baseline: again.operations,
    outcomes: Object.fromEntries(outcomes),
    phases,
    stoppedBy: stopped ?? stoppedBy,
    deterministic,
    violation
  })
  return { advance, result }
}
