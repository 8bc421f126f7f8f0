import { type Clock, Duration, Effect, type Fiber, type Scheduler } from "effect"
import { generator, type Plan, type Step, YIELD } from "./schedule.ts"

type Task = () => void
type AnyFiber = Fiber.Fiber<unknown, unknown>

/** First in, first out, with a front to return to and a place to take from. */
class Runnable {
  private items: Array<Task> = []
  private head = 0

  get size(): number {
    return this.items.length - this.head
  }

  push(task: Task): void {
    this.items.push(task)
  }

  unshift(task: Task): void {
    if (this.head > 0) this.items[--this.head] = task
    else this.items.unshift(task)
  }

  take(index: number): Task | undefined {
    const items = this.items
    const task = items[this.head + index]
    if (index > 0) items.copyWithin(this.head + 1, this.head, this.head + index)
    this.head++
    if (this.head === items.length) {
      items.length = 0
      this.head = 0
    } else if (this.head > 64) {
      items.splice(0, this.head)
      this.head = 0
    }
    return task
  }
}

/** What a traced run tells of its operations: where another fiber could go on, and one key a state class. */
export class Trace {
  readonly from: number
  readonly key: (() => string) | undefined
  readonly contended: Array<boolean> = []
  private readonly classes = new Map<string, { readonly first: number; last: number }>()
  private taskFrom = 0
  private taskFiber: AnyFiber | undefined
  private taskShared = false

  constructor(from: number, key: (() => string) | undefined) {
    this.from = from
    this.key = key
  }

  beginTask(operation: number, action: boolean): void {
    this.taskFrom = operation
    this.taskFiber = undefined
    this.taskShared = action
  }

  see(operation: number, fiber: AnyFiber, others: boolean): void {
    if (this.taskFiber === undefined) this.taskFiber = fiber
    else if (this.taskFiber !== fiber && !this.taskShared) {
      this.taskShared = true
      for (let i = this.taskFrom; i < operation; i++) this.contended[i] = true
    }
    this.contended[operation] = others || this.taskShared
    if (operation < this.from || this.key === undefined) return
    const interruptible = "interruptible" in fiber && fiber.interruptible === true
    const key = `${fiber.id} ${interruptible} ${this.key()}`
    const known = this.classes.get(key)
    if (known === undefined) this.classes.set(key, { first: operation, last: operation })
    else known.last = operation
  }

  /** The first and the last operation of each state class, ascending; every operation when there is no key. */
  points(): ReadonlyArray<number> {
    const found = new Set<number>()
    if (this.key === undefined) for (let i = this.from; i < this.contended.length; i++) found.add(i)
    for (const { first, last } of this.classes.values()) found.add(first).add(last)
    return [...found].sort((a, b) => a - b)
  }

  /** The operations at which another fiber could go on, ascending. */
  shared(): ReadonlyArray<number> {
    const found: Array<number> = []
    for (let i = this.from; i < this.contended.length; i++) if (this.contended[i] === true) found.push(i)
    return found
  }
}

type Resume = "none" | "front" | "back"

export interface Settings {
  readonly actions: ReadonlyArray<string>
  readonly limit: number
  readonly runAction: (name: string) => void
  readonly mainEnded: () => boolean
  readonly record: Array<Step> | undefined
}

/**
 * One run's scheduler. Level 0 holds what is runnable; a level above holds what an injected action scheduled, and runs
 * out before the level below goes on. A forced yield puts its fiber at the end of level 0, from any level.
 */
export class DeterministicScheduler implements Scheduler.Scheduler {
  readonly executionMode = "sync" as const
  readonly clock: VirtualClock
  readonly thrown: Array<unknown> = []
  operations = 0
  armed = false
  stopped = false
  trace: Trace | undefined
  private asks = 0
  private choices = 0
  private next = 0
  private skip = 0
  private level = 0
  private resume: Resume = "none"
  private readonly levels: Array<Runnable> = [new Runnable()]
  private readonly plan: Plan
  private readonly settings: Settings
  private readonly draw: (() => number) | undefined

  constructor(plan: Plan, settings: Settings) {
    this.plan = plan
    this.settings = settings
    this.draw = plan.random === undefined ? undefined : generator(plan.random.seed)
    this.clock = new VirtualClock((task) => this.schedule(task))
  }

  shouldYield(fiber: AnyFiber): boolean {
    // After a forced yield the run loop asks twice more before the delayed operation runs: they are not operations.
    if (this.skip > 0) {
      this.skip--
      return false
    }
    if (this.stopped || ++this.asks > this.settings.limit) {
      this.stopped = true
      return true
    }
    if (!this.armed) return false
    const operation = this.operations++
    const { act, at, random } = this.plan
    const record = this.settings.record
    if (this.trace !== undefined) this.trace.see(operation, fiber, this.level > 0 || this.base.size > 0)
    let resume: Resume = "none"
    while (at[this.next] === operation) {
      const action = act[this.next++] ?? YIELD
      if (action === YIELD) resume = "back"
      else {
        this.inject(operation, action)
        if (resume === "none") resume = this.draw !== undefined && this.draw() < 0.5 ? "back" : "front"
      }
    }
    if (random !== undefined && this.draw !== undefined && resume !== "back") {
      if (random.density >= 1 || (random.density > 0 && this.draw() < random.density)) resume = "back"
    }
    if (resume === "back") record?.push({ at: operation, yield: true })
    this.resume = resume
    return resume !== "none"
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return { scheduleTask: (task) => this.schedule(task), flush: () => this.drain() }
  }

  schedule(task: Task): void {
    if (this.stopped) return
    const resume = this.resume
    if (resume === "none") {
      this.at(this.level).push(task)
      return
    }
    this.resume = "none"
    const resumed = () => {
      this.skip = 2
      task()
      this.skip = 0
    }
    if (resume === "front") this.at(this.level).unshift(resumed)
    else this.base.push(resumed)
  }

  /** Runs until nothing is runnable; while main has not ended, time then moves to the next timer. */
  drain(): void {
    const before = this.level
    while (!this.stopped) {
      let level = this.levels.length - 1
      while (level > 0 && this.at(level).size === 0) level--
      const runnable = this.at(level)
      if (runnable.size === 0) {
        this.level = 0
        if (this.settings.mainEnded() || !this.clock.next()) break
        continue
      }
      if (++this.asks > this.settings.limit) this.stopped = true
      const task = runnable.take(level === 0 && this.armed && runnable.size > 1 ? this.choose(runnable.size) : 0)
      this.level = level
      this.trace?.beginTask(this.operations, false)
      try {
        task?.()
      } catch (error) {
        this.thrown.push(error)
      }
    }
    this.level = before
  }

  private get base(): Runnable {
    return this.at(0)
  }

  private at(level: number): Runnable {
    return (this.levels[level] ??= new Runnable())
  }

  private inject(operation: number, action: number): void {
    const name = this.settings.actions[action]
    if (name === undefined) return
    this.settings.record?.push({ at: operation, run: name })
    this.at(this.level + 1).push(() => {
      this.trace?.beginTask(this.operations, true)
      this.settings.runAction(name)
    })
  }

  private choose(size: number): number {
    const choice = this.choices++
    const take = this.draw === undefined ? (this.plan.picks?.get(choice) ?? 0) % size : Math.floor(this.draw() * size)
    if (take > 0) this.settings.record?.push({ choice, take })
    return take
  }
}

interface Timer {
  readonly due: number
  readonly ring: Task
}

/** Time that moves only when nothing is runnable, or when a scenario moves it. Starts at 0. */
export class VirtualClock implements Clock.Clock {
  private now = 0
  private timers: Array<Timer> = []
  private readonly schedule: (task: Task) => void

  constructor(schedule: (task: Task) => void) {
    this.schedule = schedule
  }

  readonly currentTimeMillis = Effect.sync(() => this.now)
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())

  currentTimeMillisUnsafe(): number {
    return this.now
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(Math.floor(this.now * 1_000_000))
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.currentTimeNanosUnsafe()
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const millis = Duration.toMillis(duration)
    if (millis <= 0) return Effect.yieldNow
    if (!Number.isFinite(millis)) return Effect.never
    return Effect.callback<void>((resume) => {
      const timer: Timer = { due: this.now + millis, ring: () => resume(Effect.void) }
      const at = this.timers.findIndex((other) => other.due > timer.due)
      if (at < 0) this.timers.push(timer)
      else this.timers.splice(at, 0, timer)
      return Effect.sync(() => {
        this.timers = this.timers.filter((other) => other !== timer)
      })
    })
  }

  advance(millis: number): void {
    this.now += millis
    while (this.timers[0] !== undefined && this.timers[0].due <= this.now) {
      const timer = this.timers.shift()
      if (timer !== undefined) this.schedule(timer.ring)
    }
  }

  /** Moves to the next timer; `false` when there is none. */
  next(): boolean {
    const timer = this.timers[0]
    if (timer === undefined) return false
    this.advance(timer.due - this.now)
    return true
  }
}
