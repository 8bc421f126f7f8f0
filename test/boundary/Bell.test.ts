/** The doorbell: no ring is lost, one is as good as many, and ringing runs nobody. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Bell } from "../../src/boundary/Bell.ts"

const make = Effect.withFiber((fiber) => Effect.succeed(new Bell(fiber.currentDispatcher)))

describe("Bell", () => {
  it.effect("L-V3 ringing does not run the waiter in the caller's step", () =>
    Effect.gen(function* () {
      const bell = yield* make
      let heard = 0
      const waiting = yield* Effect.forkChild(
        Effect.map(bell.wait, () => heard++),
        { startImmediately: true }
      )
      bell.ring()
      assert.strictEqual(heard, 0)
      yield* Fiber.join(waiting)
      assert.strictEqual(heard, 1)
    })
  )

  it.effect("L-A5 rings that nobody waits for are one, and whoever comes next hears it at once", () =>
    Effect.gen(function* () {
      const bell = yield* make
      bell.ring()
      bell.ring()
      yield* bell.wait
      assert.isFalse(bell.isRung)
      const waiting = yield* Effect.forkChild(bell.wait, { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(waiting.pollUnsafe())
      bell.ring()
      yield* Fiber.join(waiting)
    })
  )

  it.effect("L-A5 a waiter that was interrupted takes no ring, even one that was on its way", () =>
    Effect.gen(function* () {
      const bell = yield* make
      const waiting = yield* Effect.forkChild(bell.wait, { startImmediately: true })
      bell.ring()
      waiting.interruptUnsafe()
      yield* Fiber.await(waiting)
      yield* bell.wait
      const given = yield* Effect.forkChild(bell.wait, { startImmediately: true })
      yield* Fiber.interrupt(given)
      bell.ring()
      yield* bell.wait
    })
  )
})
