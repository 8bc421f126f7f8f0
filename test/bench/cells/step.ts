/**
 * What one request and its tool call cost once the compiler is done, in generations of so many such steps. The request that ends a
 * generation is shared out among its steps.
 */
import type { Adapter } from "../adapter.ts"
import { collect, cpuTime, idle, now } from "../measure.ts"
import { type Cell, expectEnd, patience } from "./cell.ts"

const warm = 10_000
const measured = 10_000

/** One generation of so many steps, and the request that ends it. */
export const generation = (adapter: Adapter, steps: number, subscribers = 1) => {
  let asked = 0
  const provider = () => (++asked > steps ? "done" : "tool")
  return expectEnd(adapter.start({ provider, tool: () => undefined, subscribers }), "done")
}

/** `steps`, and how many subscribers (1). A peer too slow for 10,000 steps of warming in 8 seconds says how many it had. */
export const run: Cell = async (adapter, [steps = 200, subscribers = 1]) => {
  const series = async (total: number) => {
    const began = now()
    let count = 0
    while (count < total && (now() - began < patience || count === 0)) {
      await generation(adapter, steps, subscribers)
      count += steps
    }
    await idle()
    return count
  }
  const warmed = await series(warm)
  await collect()
  const cpu = cpuTime()
  const wall = now()
  const count = await series(measured)
  return { cpu: (cpuTime() - cpu) / count, wall: (now() - wall) / count, warmed, measured: count }
}
