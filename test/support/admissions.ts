/** Inputs and controls whose write is held: what is asked for, and whether it was answered meanwhile. */
import { Effect, type Fiber } from "effect"
import { Input } from "../../src/index.ts"
import { fork, type Harness } from "./harness.ts"
import { duringRequest } from "./scenes.ts"
import * as Stores from "./stores.ts"

/** Asks for something and waits until the write that is held is under way; `caller` is the fiber that waits for the answer. */
export const writing = <A, E, R>(hold: ReturnType<typeof Stores.hold>, ask: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const held = yield* hold
    const caller = yield* fork(ask)
    yield* held.reached
    return { ...held, caller }
  })

/** Whether it has its answer once everything that can go on has gone on. */
export const isAnswered = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.andThen(
    Stores.settle,
    Effect.sync(() => fiber.pollUnsafe() !== undefined)
  )

/** A generation whose first request is under way, and a steer `s1` whose admission is being written. */
export const reserved = (store: Stores.Watched, then?: Stores.Fate, options?: Parameters<typeof duringRequest>[0]) =>
  Effect.gen(function* () {
    const h = yield* duringRequest({ id: Stores.sessionId, ...options })
    const held = yield* writing(Stores.hold(store, "steering.accepted", then), h.steer(h.id, "s1", { id: "s1" }))
    return { ...h, ...held }
  })

/** Submits a follow-up under its name. */
export const followUp = (h: Harness, name: string) => h.session.submit(Input.followUp(name, { id: name }))
