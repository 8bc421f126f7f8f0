import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Deferred, Effect, Exit, Fiber, Latch, Random, Ref } from "effect"
import { Interleavings } from "../../src/testing/index.ts"

/** A mailbox whose owner finishes when it is empty. Broken, it looks and closes in two steps. */
const mailbox = (atomic: boolean): Interleavings.Scenario<void, never, never> => ({
  name: `mailbox ${atomic ? "atomic" : "in two steps"}`,
  setup: () => {
    const pending: Array<number> = [1]
    const applied: Array<number> = []
    const accepted: Array<number> = [1]
    let refused = 0
    let closed = false
    let next = 2
    return {
      main: Effect.gen(function* () {
        for (;;) {
          while (pending.length > 0) {
            yield* Effect.yieldNow
            const item = pending.shift()
            if (item !== undefined) applied.push(item)
          }
          if (!atomic) yield* Effect.asVoid(Effect.succeed("looked"))
          if (atomic && pending.length > 0) continue
          closed = true
          return
        }
      }),
      actions: {
        steer: () => {
          if (closed) refused++
          else {
            accepted.push(next)
            pending.push(next++)
          }
        }
      },
      check: () =>
        accepted.filter((item) => !applied.includes(item)).map((item) => `accepted ${item} was never applied`),
      outcome: () => `applied ${applied.length} refused ${refused}`,
      stateKey: () => `${pending.length} ${applied.length} ${closed}`
    }
  }
})

/** A waiter that looks and registers in two steps, but only while the producer prepares: two preemptions lose the ring. */
const wakeUp: Interleavings.Scenario<string, never, never> = {
  name: "lost wake-up",
  setup: () => {
    let preparing = false
    let value: string | undefined
    let ring: (() => void) | undefined
    const latch = Latch.makeUnsafe(false)
    const register = () => {
      ring = () => {
        latch.openUnsafe()
      }
    }
    const producer = Effect.gen(function* () {
      preparing = true
      yield* Effect.asVoid(Effect.succeed("prepared"))
      preparing = false
      value = "published"
      ring?.()
    })
    const waiter = Effect.gen(function* () {
      yield* Effect.void
      if (value !== undefined) return value
      if (preparing) yield* Effect.asVoid(Effect.succeed("looked"))
      register()
      yield* latch.await
      return value ?? "nothing"
    })
    return {
      main: Effect.gen(function* () {
        const making = yield* Effect.forkChild(producer)
        const waiting = yield* Effect.forkChild(waiter)
        yield* Fiber.join(making)
        return yield* Fiber.join(waiting)
      }),
      actions: {},
      check: () => []
    }
  }
}

const simple = (
  main: Effect.Effect<unknown, unknown>,
  more: Partial<Interleavings.Instance<unknown, unknown, never>> = {}
): Interleavings.Scenario<unknown, unknown, never> => ({
  name: "simple",
  setup: () => ({ main, actions: {}, check: () => [], ...more })
})

const few: Interleavings.Options = { random: 60, pairs: 200 }

describe("Interleavings", () => {
  it.effect("finds the input that is accepted between the look and the close, and shrinks it to one step", () =>
    Effect.gen(function* () {
      const result = yield* Interleavings.explore(mailbox(false))
      assert.strictEqual(result.stoppedBy, "violation")
      assert.strictEqual(result.violation?.schedule.length, 1)
      assert.isTrue(result.violation?.shrunk)
      assert.deepStrictEqual(result.violation?.violations, ["accepted 2 was never applied"])
      assert.include(Interleavings.report(result), "run steer")
    })
  )

  it.effect("finds nothing in the atomic mailbox, and its outcomes vary", () =>
    Effect.gen(function* () {
      const result = yield* Interleavings.verify(mailbox(true), { random: 300 })
      assert.strictEqual(result.stoppedBy, "done")
      assert.isTrue(result.deterministic)
      assert.isAbove(Object.keys(result.outcomes).length, 3)
      assert.strictEqual(
        result.schedules,
        Object.values(result.outcomes).reduce((a, b) => a + b, 0)
      )
      assert.includeMembers(
        result.phases.map((phase) => phase.name),
        ["baseline", "one action", "one preemption", "two actions", "random"]
      )
    })
  )

  it.effect("replays a violation", () =>
    Effect.gen(function* () {
      const { violation } = yield* Interleavings.explore(mailbox(false))
      const json = violation?.replay ?? ""
      const again = yield* Interleavings.replay(mailbox(false), json)
      assert.deepStrictEqual(again.violations, violation?.violations)
      const mended = yield* Interleavings.replay(mailbox(true), json)
      assert.deepStrictEqual(mended.violations, [])
      const exit = yield* Effect.exit(Interleavings.replay(mailbox(true), "{}"))
      assert.isTrue(Exit.hasDies(exit))
    })
  )

  it.effect("a violation found at random is shrunk to the same single step", () =>
    Effect.gen(function* () {
      const wide = mailbox(false)
      const scenario: typeof wide = {
        ...wide,
        setup: (probe) => {
          const instance = wide.setup(probe)
          // ten more fibers, so that most random steps do not matter
          const noise = Effect.forEach(Array.from({ length: 10 }), () => Effect.yieldNow, { concurrency: 10 })
          return { ...instance, main: Effect.andThen(noise, instance.main) }
        }
      }
      const result = yield* Interleavings.explore(scenario, { random: 3_000, preemptions: 1, actions: [] })
      assert.strictEqual(result.stoppedBy, "done")
      const found = yield* Interleavings.explore(scenario, { preemptions: 1, random: 3_000 })
      assert.strictEqual(found.violation?.schedule.length, 1)
    })
  )

  it.effect("a wake-up that only two preemptions lose is found by two, not by one", () =>
    Effect.gen(function* () {
      const one = yield* Interleavings.explore(wakeUp, { preemptions: 1, random: 0 })
      assert.strictEqual(one.stoppedBy, "done")
      const two = yield* Interleavings.explore(wakeUp, { random: 0 })
      assert.deepStrictEqual(two.violation?.violations, ["HANG: main has not ended and nothing is runnable"])
      assert.strictEqual(two.violation?.schedule.length, 2)
      const random = yield* Interleavings.explore(wakeUp, { preemptions: 1, random: 3_000 })
      assert.strictEqual(random.phases.at(-1)?.name, "random")
      assert.isAtMost(random.violation?.schedule.length ?? 99, 2)
      const again = yield* Interleavings.replay(wakeUp, random.violation?.replay ?? "")
      assert.deepStrictEqual(again.violations, random.violation?.violations)
    })
  )

  it.effect("the same seed gives the same result, another seed another", () =>
    Effect.gen(function* () {
      const first = yield* Interleavings.explore(mailbox(true), { seed: 7, random: 200 })
      const second = yield* Interleavings.explore(mailbox(true), { seed: 7, random: 200 })
      const third = yield* Interleavings.explore(mailbox(true), { seed: 8, random: 200 })
      assert.deepStrictEqual(first, second)
      assert.notDeepEqual(first.outcomes, third.outcomes)
    })
  )

  it.effect("a hang, a livelock and a defect are violations", () =>
    Effect.gen(function* () {
      const of = (main: Effect.Effect<unknown, unknown>) =>
        Effect.map(
          Interleavings.explore(simple(main), { ...few, maxOperations: 5_000 }),
          (r) => r.violation?.violations
        )
      assert.deepStrictEqual(yield* of(Effect.never), ["HANG: main has not ended and nothing is runnable"])
      assert.include((yield* of(Effect.forever(Effect.void)))?.[0], "LIVELOCK")
      assert.include((yield* of(Effect.forever(Effect.yieldNow)))?.[0], "LIVELOCK")
      assert.include((yield* of(Effect.andThen(Effect.void, Effect.die("boom"))))?.[0], "DEFECT in main: Error: boom")
      assert.isUndefined(yield* of(Effect.andThen(Effect.void, Effect.fail("typed"))))
      const allowed = { ...simple(Effect.andThen(Effect.void, Effect.die("boom"))), allowDefects: true }
      assert.isUndefined((yield* Interleavings.explore(allowed, few)).violation)
    })
  )

  it.effect("a yield at every operation ends, and its fibers share the turns", () =>
    Effect.gen(function* () {
      const orders = new Set<string>()
      const scenario: Interleavings.Scenario<unknown, never, never> = {
        name: "turns",
        setup: () => {
          const order: Array<string> = []
          const walk = (name: string) =>
            Effect.gen(function* () {
              for (let i = 0; i < 3; i++) {
                order.push(name)
                yield* Effect.asVoid(Effect.succeed(name))
              }
            })
          return {
            main: Effect.all([walk("a"), walk("b")], { concurrency: 2 }),
            actions: {},
            check: () => (order.length === 6 ? [] : ["a turn is missing"]),
            outcome: () => {
              orders.add(order.join(""))
              return order.join("")
            }
          }
        }
      }
      yield* Interleavings.verify(scenario, { preemptions: 1, random: 300 })
      // six turns, three each: 20 orders
      assert.strictEqual(orders.size, 20)
    })
  )

  it.effect("what an action schedules runs before the fiber it was injected into goes on", () =>
    Effect.gen(function* () {
      const scenario: Interleavings.Scenario<void, never, never> = {
        name: "closure",
        setup: () => {
          let begun = false
          let ended = false
          let torn = false
          return {
            main: Effect.gen(function* () {
              for (let i = 0; i < 5; i++) {
                yield* Effect.asVoid(Effect.succeed(i))
                if (begun && !ended) torn = true
              }
            }),
            actions: {
              work: Effect.gen(function* () {
                begun = true
                const child = yield* Effect.forkChild(Effect.yieldNow)
                yield* Fiber.join(child)
                ended = true
              })
            },
            check: () => [],
            outcome: () => (torn ? "torn" : begun ? "whole" : "none")
          }
        }
      }
      const single = yield* Interleavings.verify(scenario, { preemptions: 1, random: 0 })
      assert.hasAllKeys(single.outcomes, ["none", "whole"])
      const preempted = yield* Interleavings.verify(scenario, { random: 0 })
      assert.property(preempted.outcomes, "torn")
    })
  )

  it.effect("an action may interrupt main, suspended or running, at any operation", () =>
    Effect.gen(function* () {
      const scenario: Interleavings.Scenario<string, never, never> = {
        name: "interrupt",
        setup: (probe) => {
          let released = 0
          const held = Effect.acquireUseRelease(
            Effect.asVoid(Effect.succeed("held")),
            () => Effect.as(Effect.yieldNow, "used"),
            () =>
              Effect.sync(() => {
                released++
              })
          )
          return {
            main: held,
            actions: { interrupt: () => probe.main()?.interruptUnsafe() },
            check: (exit) => (Exit.isSuccess(exit) && released !== 1 ? ["released " + released] : []),
            outcome: (exit) => (Exit.isSuccess(exit) ? exit.value : `interrupted, released ${released}`)
          }
        }
      }
      const result = yield* Interleavings.verify(scenario, { random: 200 })
      assert.hasAllKeys(result.outcomes, ["used", "interrupted, released 0", "interrupted, released 1"])
    })
  )

  it.effect("operations before arming do not count; never arming is a violation", () =>
    Effect.gen(function* () {
      const scenario = (arms: boolean): Interleavings.Scenario<void, never, never> => ({
        name: "arming",
        arm: "manual",
        setup: (probe) => {
          let early = true
          const bad: Array<string> = []
          return {
            main: Effect.gen(function* () {
              for (let i = 0; i < 20; i++) yield* Effect.asVoid(Effect.succeed(i))
              early = false
              if (arms) probe.arm()
              yield* Effect.asVoid(Effect.succeed("armed"))
            }),
            actions: {
              look: () => {
                if (early) bad.push("too early")
              }
            },
            check: () => bad
          }
        }
      })
      const result = yield* Interleavings.verify(scenario(true), few)
      assert.isBelow(result.baseline, 10)
      const never = yield* Interleavings.explore(scenario(false), few)
      assert.include(never.violation?.violations[0], "NEVER ARMED")
    })
  )

  it.effect("time moves only when nothing is runnable, and with the probe", () =>
    Effect.gen(function* () {
      const scenario: Interleavings.Scenario<string, never, never> = {
        name: "time",
        setup: (probe) => ({
          main: Effect.gen(function* () {
            const began = yield* Clock.currentTimeMillis
            const slow = Effect.as(Effect.sleep("1 hour"), "slow")
            const won = yield* Effect.race(slow, Effect.as(Effect.sleep("2 hours"), "slower"))
            const took = (yield* Clock.currentTimeMillis) - began
            return `${won} ${took >= 3_600_000}`
          }),
          actions: { wait: () => probe.advance(1_000) },
          check: (exit) => (Exit.isSuccess(exit) && exit.value === "slow true" ? [] : ["time went wrong"])
        })
      }
      yield* Interleavings.verify(scenario, few)
    })
  )

  it.effect("random numbers are the same in every schedule", () =>
    Effect.gen(function* () {
      const result = yield* Interleavings.verify(
        simple(Random.nextInt, { outcome: (exit) => (Exit.isSuccess(exit) ? String(exit.value) : "") }),
        few
      )
      assert.strictEqual(Object.keys(result.outcomes).length, 1)
    })
  )

  it.effect("an action that throws, dies or does not end is a violation; a typed failure is not", () =>
    Effect.gen(function* () {
      const of = (act: Interleavings.Action<never>) =>
        Effect.map(
          Interleavings.explore(simple(Effect.void, { actions: { act } }), few),
          (r) => r.violation?.violations[0]
        )
      assert.include(
        yield* of(() => {
          throw new Error("no")
        }),
        "ACTION act threw"
      )
      assert.include(yield* of(Effect.die("no")), "DEFECT in action act")
      assert.include(yield* of(() => Effect.never), "HANG: action act")
      assert.isUndefined(yield* of(Effect.fail("typed")))
      assert.isUndefined(yield* of(Effect.asVoid(Effect.forkDetach(Effect.never))))
    })
  )

  it.effect("services come from the caller; a check may be an effect", () => {
    class Counter extends Context.Service<Counter, Ref.Ref<number>>()("test/Counter") {}
    const scenario: Interleavings.Scenario<void, never, Counter> = {
      name: "services",
      setup: () => {
        const done = Deferred.makeUnsafe<void>()
        return {
          main: Effect.gen(function* () {
            yield* Ref.set(yield* Counter, 1)
            yield* Deferred.await(done)
          }),
          actions: {},
          check: () => Effect.map(Effect.flatMap(Counter, Ref.get), (count) => [`count ${count}`])
        }
      }
    }
    return Effect.gen(function* () {
      const result = yield* Interleavings.explore(scenario, few)
      assert.deepStrictEqual(result.violation?.violations, ["HANG: main has not ended and nothing is runnable"])
      const ended = yield* Interleavings.explore(
        { ...scenario, setup: (probe) => ({ ...scenario.setup(probe), main: Effect.void }) },
        few
      )
      assert.deepStrictEqual(ended.violation?.violations, ["count 1"])
    }).pipe(Effect.provideServiceEffect(Counter, Ref.make(0)))
  })

  it.effect("verify dies with the report; limits stop an exploration", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Interleavings.verify(mailbox(false)))
      assert.include(Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "", "replay {")
      const short = yield* Interleavings.explore(mailbox(true), { maxSchedules: 10 })
      assert.strictEqual(short.stoppedBy, "schedules")
      assert.strictEqual(short.schedules, 10)
      const late = yield* Interleavings.explore(mailbox(true), { timeLimit: 0 })
      assert.strictEqual(late.stoppedBy, "time")
    })
  )

  it.effect("what differs from run to run is reported", () =>
    Effect.gen(function* () {
      let runs = 0
      const scenario: Interleavings.Scenario<void, never, never> = {
        name: "drifting",
        setup: () => {
          const length = ++runs
          return {
            main: Effect.forEach(Array.from({ length }), () => Effect.yieldNow, { discard: true }),
            actions: {},
            check: () => []
          }
        }
      }
      const result = yield* Interleavings.explore(scenario, { random: 0, preemptions: 1, maxSchedules: 5 })
      assert.isFalse(result.deterministic)
      assert.include(Interleavings.report(result), "NOT DETERMINISTIC")
    })
  )
})
