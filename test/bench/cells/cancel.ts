/** From a cancel to the end of its generation, with so many live: half of them one after the other, then the rest at once. */
import type { Adapter } from "../adapter.ts"
import { collect, cpuTime, idle, now, percentile, until } from "../measure.ts"
import { type Cell, expectEnd } from "./cell.ts"

/** Starts one that stays at its provider until it is aborted. */
const start = (adapter: Adapter, onParked: () => void) =>
  adapter.start({
    tool: () => undefined,
    provider: (_, signal) => {
      onParked()
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true })
      })
    }
  })

/** So many at their provider. */
export const parked = async (adapter: Adapter, count: number) => {
  let arrived = 0
  const generations = Array.from({ length: count }, () => start(adapter, () => arrived++))
  await until(() => arrived === count)
  await idle()
  return generations
}

export const run: Cell = async (adapter, [count = 1000]) => {
  // As many as will be measured, in the same way: a cancel is a path no other work warms.
  for (const running of await parked(adapter, count)) {
    running.cancel()
    await expectEnd(running, "cancelled")
  }
  const generations = await parked(adapter, count)
  await collect()
  const latencies: Array<number> = []
  const half = Math.floor(count / 2)
  const cpu = cpuTime()
  for (const [index, running] of generations.slice(0, half).entries()) {
    const began = now()
    running.cancel()
    await expectEnd(running, "cancelled")
    latencies.push(now() - began)
    if (index % 10 === 0) await idle()
  }
  const spent = (cpuTime() - cpu) / half
  await collect()
  const began = now()
  const rest = generations.slice(half)
  for (const running of rest) running.cancel()
  for (const running of rest) await expectEnd(running, "cancelled")
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    cpu: spent,
    burst: (now() - began) / rest.length
  }
}
