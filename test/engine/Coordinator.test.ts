/** The owner fiber and its doorbell: no ring is lost, one piece of work runs at a time, an interrupt hits only what runs. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Coordinator from "../../src/engine/Coordinator.ts"
import { Interleavings } from "../../src/testing/index.ts"

/** A coordinator that stays open until it is told to close, so that the owner is judged while it lives. */
const make = (next: () => Coordinator.Next) =>
  Effect.withFiber((fiber) =>
    Effect.succeed(new Coordinator.Coordinator({ next }, fiber.currentDispatcher, fiber.context))
  )

/** Pieces of work that are submitted while others run; each yields in a window of its own. */
const workshop = () => {
  const queue: Array<number> = []
  const done: Array<number> = []
  const interrupted: Array<number> = []
  const found: Array<string> = []
  let submitted = 0
  let running: number | undefined
  let taken: number | undefined
  const window = Effect.interruptible(Effect.andThen(Effect.yieldNow, Effect.yieldNow))
  const work = (id: number) =>
    Effect.suspend(() => {
      if (running !== undefined) found.push(`work ${id} began while ${running} ran`)
      running = id
      return Effect.map(Effect.exit(window), (exit) => {
        running = undefined
        taken = undefined
        const ended = Exit.isSuccess(exit) ? done : interrupted
        ended.push(id)
      })
    })
  return {
    done,
    interrupted,
    found,
    submitted: () => submitted,
    running: () => running,
    /** The piece that was handed out last, if it has not ended. */
    taken: () => taken,
    submit: () => void queue.push(++submitted),
    next: (): Coordinator.Next => {
      const id = queue.shift()
      if (id === undefined) return "idle"
      taken = id
      return work(id)
    }
  }
}

/** Work is submitted and the owner rung at any moment, also by whoever waits for it to be idle. */
const rings: Interleavings.Scenario<number, never, never> = {
  name: "rings",
  setup: () => {
    const shop = workshop()
    let wake = () => {}
    let promised = 0
    const submit = () => {
      shop.submit()
      wake()
    }
    return {
      main: Effect.gen(function* () {
        const coordinator = yield* make(shop.next)
        wake = () => coordinator.wake()
        // what came before the doorbell was there is rung for here
        submit()
        yield* Effect.yieldNow
        submit()
        promised = shop.submitted()
        yield* coordinator.awaitIdle
        return shop.done.length
      }),
      actions: { submit },
      check: (exit) => [
        ...shop.found,
        ...(Exit.isSuccess(exit) && exit.value < promised
          ? [`idle after ${exit.value} of ${promised} pieces of work`]
          : []),
        ...(shop.done.length < shop.submitted()
          ? [`${shop.submitted() - shop.done.length} pieces of work were never run`]
          : [])
      ],
      outcome: () => `${shop.submitted()} submitted`,
      stateKey: () => `${shop.submitted()} ${shop.done.length} ${shop.running() ?? "-"}`
    }
  }
}

/** An interrupt at any moment, while work follows work. */
const interrupts: Interleavings.Scenario<void, never, never> = {
  name: "interrupts",
  setup: () => {
    const shop = workshop()
    const targets = new Set<number>()
    let interrupt = () => {}
    return {
      main: Effect.gen(function* () {
        const coordinator = yield* make(shop.next)
        interrupt = () => coordinator.interrupt()
        for (let i = 0; i < 3; i++) shop.submit()
        coordinator.wake()
        yield* coordinator.awaitIdle
      }),
      actions: {
        interrupt: () => {
          const taken = shop.taken()
          if (taken !== undefined) targets.add(taken)
          interrupt()
        }
      },
      check: () => [
        ...shop.found,
        ...shop.interrupted.filter((id) => !targets.has(id)).map((id) => `work ${id} was interrupted for another`),
        ...(shop.done.length + shop.interrupted.length === 3 ? [] : ["a piece of work has not ended"])
      ],
      outcome: () => `interrupted ${shop.interrupted.join()}`,
      stateKey: () => `${shop.done.length} ${shop.interrupted.length} ${shop.running() ?? "-"}`
    }
  }
}

const explored = { random: 500, pairs: 3_000 }

describe("Coordinator races", () => {
  it.effect("L-F6 no ring is lost, one piece of work runs at a time, and idle means that all of it is done", () =>
    Effect.gen(function* () {
      const result = yield* Interleavings.verify(rings, explored)
      assert.isTrue(result.deterministic)
      assert.isAbove(Object.keys(result.outcomes).length, 1)
    })
  )

  it.effect("L-C4 an interrupt ends the work that runs and never the work after it", () =>
    Effect.gen(function* () {
      const result = yield* Interleavings.verify(interrupts, explored)
      assert.isTrue(result.deterministic)
      assert.isAbove(Object.keys(result.outcomes).length, 2)
    })
  )
})

describe("Coordinator", () => {
  it.effect("L-V3 neither a wake nor an interrupt runs the owner in the caller's step", () =>
    Effect.gen(function* () {
      const shop = workshop()
      const coordinator = yield* make(shop.next)
      shop.submit()
      coordinator.wake()
      assert.deepStrictEqual([shop.running(), shop.done], [undefined, []])
      yield* Effect.yieldNow
      yield* coordinator.awaitIdle
      assert.deepStrictEqual(shop.done, [1])
      yield* coordinator.close
    })
  )

  it.effect("work may ring and interrupt from inside itself", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      let left = 0
      const coordinator = yield* make(() => {
        if (left === 0) return "idle"
        const name = `work ${left--}`
        return Effect.gen(function* () {
          coordinator.wake()
          coordinator.interrupt()
          ran.push(`${name} goes on`)
          const exit = yield* Effect.exit(Effect.interruptible(Effect.never))
          ran.push(`${name} ${Exit.hasInterrupts(exit) ? "interrupted" : "ended"}`)
        })
      })
      left = 2
      coordinator.wake()
      yield* coordinator.awaitIdle
      assert.deepStrictEqual(ran, ["work 2 goes on", "work 2 interrupted", "work 1 goes on", "work 1 interrupted"])
      yield* coordinator.close
    })
  )

  it.effect("work that dies does not end the owner", () =>
    Effect.gen(function* () {
      const pieces = [Effect.die(new Error("boom")), Effect.interrupt, Effect.sync(() => void ran.push("last"))]
      const ran: Array<string> = []
      const coordinator = yield* make(() => pieces.shift() ?? "idle")
      coordinator.wake()
      yield* coordinator.awaitIdle
      assert.deepStrictEqual(ran, ["last"])
      yield* coordinator.close
    })
  )

  it.effect("an interrupt while idle does nothing, now or later", () =>
    Effect.gen(function* () {
      const shop = workshop()
      const coordinator = yield* make(shop.next)
      coordinator.interrupt()
      yield* Effect.yieldNow
      shop.submit()
      coordinator.wake()
      yield* coordinator.awaitIdle
      assert.deepStrictEqual([shop.done, shop.interrupted], [[1], []])
      yield* coordinator.close
    })
  )

  it.effect("who waits for idle waits for the work that runs, and may give up", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const pieces = [Deferred.await(gate)]
      const coordinator = yield* make(() => pieces.shift() ?? "idle")
      coordinator.wake()
      const impatient = yield* Effect.forkChild(coordinator.awaitIdle, { startImmediately: true })
      const patient = yield* Effect.forkChild(coordinator.awaitIdle, { startImmediately: true })
      yield* Fiber.interrupt(impatient)
      assert.isUndefined(patient.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(patient)
      yield* coordinator.awaitIdle
      yield* coordinator.close
    })
  )

  it.effect("while there will be work without a ring of the host's it is not idle", () =>
    Effect.gen(function* () {
      let answer: Coordinator.Next = "later"
      const coordinator = yield* make(() => answer)
      const waiting = yield* Effect.forkChild(coordinator.awaitIdle, { startImmediately: true })
      coordinator.wake()
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      assert.isUndefined(waiting.pollUnsafe())
      answer = "idle"
      coordinator.wake()
      yield* Fiber.join(waiting)
      yield* coordinator.close
    })
  )

  it.effect("what was to be done at the start is done without a ring", () =>
    Effect.gen(function* () {
      const shop = workshop()
      shop.submit()
      const coordinator = yield* make(shop.next)
      yield* coordinator.awaitIdle
      assert.deepStrictEqual(shop.done, [1])
      yield* coordinator.close
    })
  )
})
