/** From a steer inside a tool call to the request that carries it. */
import type { Adapter } from "../adapter.ts"
import { idle, now, percentile } from "../measure.ts"
import { carries, type Cell, expectEnd, patience } from "./cell.ts"

const text = "the tests are in test/, not in spec/"
const corrected = 6
const calls = 8

/** One generation of eight tool calls, so of nine requests, steered in the sixth call. */
const sample = async (adapter: Adapter): Promise<number> => {
  let asked = 0
  let called = 0
  let sent = 0
  let latency: number | undefined
  const running = adapter.start({
    steerable: true,
    provider: (messages) => {
      const at = now()
      asked++
      if (sent > 0 && latency === undefined && carries(messages, text)) latency = at - sent
      if (asked === 1) return () => idle().then(() => "tool" as const)
      return asked > calls ? "done" : "tool"
    },
    tool: () => {
      if (++called !== corrected) return undefined
      sent = now()
      return text
    }
  })
  await expectEnd(running, "done")
  if (latency === undefined) throw new Error("the steer was lost")
  return latency
}

/** How many samples, and how many to warm. A peer too slow for them in 8 seconds each says how many it had. */
export const run: Cell = async (adapter, [samples = 1000, warm = samples / 2]) => {
  const series = async (total: number) => {
    const began = now()
    const latencies: Array<number> = []
    while (latencies.length < total && (now() - began < patience || latencies.length === 0)) {
      await idle()
      latencies.push(await sample(adapter))
    }
    return latencies
  }
  await series(warm)
  const latencies = await series(samples)
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), measured: latencies.length }
}
