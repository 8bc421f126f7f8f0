/** From a cancel to the end of its generation, with so many live: half of them one after the other, then the rest at once. */
import type { Adapter, Answer } from "../adapter.ts"
import { collect, cpuTime, idle, now, percentile, until } from "../measure.ts"
import { type Cell, expectEnd, settle, patience } from "./cell.ts"

/** So many at their provider, each until the signal it was given is aborted. */
export const park = async (adapter: Adapter, count: number) => {
  let arrived = 0
  let aborted = 0
  const waiting = (signal: AbortSignal | undefined): Promise<Answer> => {
    arrived++
    if (signal === undefined) return Promise.reject(new Error("the provider was given no signal"))
    return new Promise((_, reject) => {
      const abort = () => {
        aborted++
        reject(signal.reason)
      }
      signal.addEventListener("abort", abort, { once: true })
    })
  }
  const generations = Array.from({ length: count }, () =>
    adapter.start({ tool: () => undefined, provider: () => waiting })
  )
  await until(() => arrived === count)
  await idle()
  /** For when all were cancelled: nothing goes on, and every provider saw its abort. */
  const expectAborts = async () => {
    await settle(generations)
    if (aborted !== count) throw new Error(`${aborted} of ${count} providers saw their abort`)
  }
  return { generations, expectAborts }
}

/** How many, and how many to warm: a peer too slow for them in 8 seconds has fewer. */
export const run: Cell = async (adapter, [count = 1000, warmUp = count]) => {
  // In the same way as what will be measured: a cancel is a path no other work warms.
  const warmed = now()
  for (let warm = 0; warm < warmUp && now() - warmed < patience; warm += count) {
    const first = await park(adapter, count)
    for (const running of first.generations) {
      running.cancel()
      await expectEnd(running, "cancelled")
    }
    await first.expectAborts()
  }
  const { expectAborts, generations } = await park(adapter, count)
  await collect()
  const latencies: Array<number> = []
  const half = generations.slice(0, Math.floor(count / 2))
  const cpu = cpuTime()
  for (const running of half) {
    const began = now()
    running.cancel()
    await expectEnd(running, "cancelled")
    latencies.push(now() - began)
    // What its host does with it from here on is no part of the next one's time.
    await settle([running])
  }
  const spent = (cpuTime() - cpu) / half.length
  await collect()
  const began = now()
  const rest = generations.slice(half.length)
  for (const running of rest) running.cancel()
  for (const running of rest) await expectEnd(running, "cancelled")
  const burst = (now() - began) / rest.length
  await expectAborts()
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), cpu: spent, burst }
}
