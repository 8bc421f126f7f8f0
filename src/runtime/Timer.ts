/**
 * Waiting for an instant, however far away: a timer of the platform holds no more than 31 bits of milliseconds.
 *
 * @since 0.1.0
 */
import { Clock, Duration, Effect } from "effect"

const longest = 2 ** 31 - 1

/**
 * Waits until the clock shows the instant (milliseconds since the Unix epoch); not at all if it has passed.
 *
 * @category combinators
 * @since 0.1.0
 */
export const sleepUntil = (instant: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const delay = instant - now
    if (delay <= 0) return Effect.void
    return Effect.flatMap(Effect.sleep(Duration.millis(Math.min(delay, longest))), () => sleepUntil(instant))
  })
