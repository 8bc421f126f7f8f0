/** Deltas a second from the provider to a live subscriber, 10,000 to an answer. */
import { collect, cpuTime, median, now } from "../measure.ts"
import { type Cell, expectEnd } from "./cell.ts"

export const run: Cell = async (adapter, [deltas = 10_000]) => {
  const rates: Array<number> = []
  const costs: Array<number> = []
  for (let round = 0; round < 15; round++) {
    let seen = 0
    await collect()
    const wall = now()
    const cpu = cpuTime()
    const running = adapter.start({ provider: () => ({ deltas }), tool: () => undefined, onDelta: () => void seen++ })
    await expectEnd(running, "done")
    if (seen !== deltas) throw new Error(`${seen} of ${deltas} deltas were seen`)
    if (round < 5) continue
    rates.push((deltas * 1_000_000) / (now() - wall))
    costs.push((cpuTime() - cpu) / deltas)
  }
  return { perSecond: median(rates), cpu: median(costs) }
}
