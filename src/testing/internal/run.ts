import { Cause, Clock, Context, Effect, Exit, type Fiber, Random, Scheduler } from "effect"
import { generator, type Plan, type Step } from "./schedule.ts"
import { DeterministicScheduler, Trace } from "./scheduler.ts"

/** @see Interleavings.Probe */
export interface Probe {
  readonly arm: () => void
  readonly disarm: () => void
  readonly advance: (millis: number) => void
  readonly main: () => Fiber.Fiber<unknown, unknown> | undefined
}

/** @see Interleavings.Action */
export type Action<R> = Effect.Effect<unknown, unknown, R> | (() => unknown)

/** @see Interleavings.Instance */
export interface Instance<A, E, R> {
  readonly main: Effect.Effect<A, E, R>
  readonly actions: Readonly<Record<string, Action<R>>>
  readonly check: (exit: Exit.Exit<A, E>) => ReadonlyArray<string> | Effect.Effect<ReadonlyArray<string>, never, R>
  readonly outcome?: ((exit: Exit.Exit<A, E>) => string | Effect.Effect<string, never, R>) | undefined
  readonly stateKey?: (() => string) | undefined
}

/** @see Interleavings.Scenario */
export interface Scenario<A, E, R> {
  readonly name: string
  readonly setup: (probe: Probe) => Instance<A, E, R>
  readonly arm?: "start" | "manual" | undefined
  readonly allowDefects?: boolean | undefined
}

export interface Ran {
  readonly operations: number
  readonly outcome: string
  readonly violations: ReadonlyArray<string>
  readonly trace: Trace | undefined
}

export interface RunOptions {
  readonly actions: ReadonlyArray<string>
  readonly limit: number
  readonly seed: number
  readonly traceFrom?: number | undefined
  readonly record?: Array<Step> | undefined
}

export const actionNames = <A, E, R>(scenario: Scenario<A, E, R>): ReadonlyArray<string> => {
  const nothing = () => {}
  return Object.keys(scenario.setup({ arm: nothing, disarm: nothing, advance: nothing, main: () => undefined }).actions)
}

const seededRandom = (seed: number): typeof Random.Random.Service => {
  const next = generator(seed)
  return { nextDoubleUnsafe: next, nextIntUnsafe: () => Math.floor((next() - 0.5) * 2 * Number.MAX_SAFE_INTEGER) }
}

const defects = (exit: Exit.Exit<unknown, unknown>): Array<string> =>
  Exit.isFailure(exit) && exit.cause.reasons.some(Cause.isDieReason) ? [Cause.pretty(exit.cause)] : []

/** Runs one schedule from a fresh setup to quiescence, then judges it. */
export const runOnce = <A, E, R>(
  scenario: Scenario<A, E, R>,
  context: Context.Context<R>,
  plan: Plan,
  options: RunOptions
): Ran => {
  const violations: Array<string> = []
  const forked: Array<readonly [name: string, fiber: Fiber.Fiber<unknown, unknown>]> = []
  let main: Fiber.Fiber<A, E> | undefined
  const runAction = (name: string) => {
    const action = instance.actions[name]
    let effect: unknown = action
    try {
      if (typeof action === "function") effect = action()
    } catch (error) {
      violations.push(`ACTION ${name} threw: ${String(error)}`)
    }
    // what a plain action returns is untyped; if it is an effect, the scenario's types give it the context
    if (Effect.isEffect(effect)) forked.push([name, fork(effect as Effect.Effect<unknown, unknown, R>)])
  }
  const scheduler: DeterministicScheduler = new DeterministicScheduler(plan, {
    actions: options.actions,
    limit: options.limit,
    runAction,
    mainEnded: () => main?.pollUnsafe() !== undefined,
    record: options.record
  })
  const instance = scenario.setup({
    arm: () => {
      scheduler.armed = true
    },
    disarm: () => {
      scheduler.armed = false
    },
    advance: (millis) => scheduler.clock.advance(millis),
    main: () => main
  })
  if (options.traceFrom !== undefined) scheduler.trace = new Trace(options.traceFrom, instance.stateKey)
  if (scenario.arm !== "manual") scheduler.armed = true
  const services = Context.add(
    Context.add(Context.add(context, Scheduler.Scheduler, scheduler), Clock.Clock, scheduler.clock),
    Random.Random,
    seededRandom(options.seed)
  )
  const fork = Effect.runForkWith(services)
  scheduler.schedule(() => {
    main = fork(instance.main)
  })
  scheduler.drain()
  scheduler.armed = false
  const trace = scheduler.trace
  for (const error of scheduler.thrown) violations.push(`DEFECT in a scheduled task: ${String(error)}`)
  if (scheduler.stopped) violations.push(`LIVELOCK: not quiescent after ${options.limit} operations`)
  for (const [name, fiber] of forked) {
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) violations.push(...defects(exit).map((cause) => `DEFECT in action ${name}: ${cause}`))
    else if (!scheduler.stopped) violations.push(`HANG: action ${name} has not ended and nothing is runnable`)
  }
  const exit = main?.pollUnsafe()
  if (exit === undefined) {
    if (!scheduler.stopped) violations.push("HANG: main has not ended and nothing is runnable")
    return { operations: scheduler.operations, outcome: "", violations, trace }
  }
  if (scenario.allowDefects !== true) violations.push(...defects(exit).map((cause) => `DEFECT in main: ${cause}`))
  const settle = <B>(value: B | Effect.Effect<B, never, R>, otherwise: B): B => {
    if (!Effect.isEffect(value)) return value
    const fiber = fork(value)
    scheduler.drain()
    const settled = fiber.pollUnsafe()
    if (settled !== undefined && Exit.isSuccess(settled)) return settled.value
    violations.push(settled === undefined ? "HANG: a check has not ended" : `DEFECT in a check: ${settled.cause}`)
    return otherwise
  }
  violations.push(...settle(instance.check(exit), []))
  const outcome = settle(instance.outcome?.(exit) ?? exit._tag, "")
  return { operations: scheduler.operations, outcome, violations, trace }
}
