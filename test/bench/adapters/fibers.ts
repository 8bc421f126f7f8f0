/** How a generation that runs in an Effect fiber is handed to a cell. */
import { Cause, Exit, type Fiber } from "effect"
import type { Outcome } from "../adapter.ts"

/** What the fiber came to; interrupted is cancelled. */
export const ended = (fiber: Fiber.Fiber<Outcome>): Promise<Outcome> =>
  new Promise((resolve) => {
    fiber.addObserver((exit) => {
      if (Exit.isSuccess(exit)) return resolve(exit.value)
      resolve(Cause.hasInterruptsOnly(exit.cause) ? "cancelled" : `failed: ${Cause.pretty(exit.cause)}`)
    })
  })
