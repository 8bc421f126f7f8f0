/** From a steer inside a tool call to the request that carries it. */
import type { Adapter } from "../adapter.ts"
import { idle, now, percentile } from "../measure.ts"
import { carries, type Cell, expectEnd } from "./cell.ts"

const text = "the tests are in test/, not in spec/"
const corrected = 6
const requests = 8

/** One generation of eight requests, steered in its sixth tool call. */
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
      if (asked === 1) return idle().then(() => "tool")
      return asked > requests ? "done" : "tool"
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

export const run: Cell = async (adapter, [samples = 1000]) => {
  for (let round = 0; round < samples / 2; round++) await sample(adapter)
  const latencies: Array<number> = []
  for (let round = 0; round < samples; round++) {
    await idle()
    latencies.push(await sample(adapter))
  }
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
}
