/** Steers a second into a generation parked at its provider, and how long the next request then takes to carry them all. */
import type { Adapter, Answer, Running } from "../adapter.ts"
import { collect, cpuTime, median, now } from "../measure.ts"
import { type Cell, expectEnd } from "./cell.ts"

/** A generation parked in its first request; `admit` answers it with a call of the tool, and tells what came of it. */
const park = async (adapter: Adapter) => {
  const parked = Promise.withResolvers<(answer: Answer) => void>()
  const next = Promise.withResolvers<{ readonly at: number; readonly messages: number }>()
  let asked = 0
  const running = adapter.start({
    steerable: true,
    tool: () => undefined,
    provider: (messages) => {
      if (++asked === 1) return () => new Promise((resolve) => parked.resolve(resolve))
      next.resolve({ at: now(), messages: messages.length })
      return "done"
    }
  })
  const release = await parked.promise
  const admit = async (steers: number) => {
    await collect()
    const cpu = cpuTime()
    const began = now()
    release("tool")
    const { at, messages } = await next.promise
    await expectEnd(running, "done")
    if (messages < steers) throw new Error(`${messages} messages for ${steers} steers`)
    return { wall: at - began, cpu: cpuTime() - cpu }
  }
  return { running, admit }
}

/** One after the other by a plain call of the host, waiting for a receipt where it takes time. */
const outside = async (running: Running, texts: ReadonlyArray<string>): Promise<void> => {
  for (const text of texts) {
    const receipt = running.steer(text)
    if (receipt !== undefined) await receipt
  }
}

/** `outside` is a plain call; `inside` is from the peer's own world, the same where it has none. Both a second. */
export const run: Cell = async (adapter, [count = 10_000]) => {
  const texts = Array.from({ length: count }, (_, index) => `s${index}`)
  const figures = { outside: [] as Array<number>, inside: [] as Array<number>, admit: [] as Array<number> }
  const cpu: Array<number> = []
  // Ten thousand of either way come before those that are measured.
  const warm = Math.max(6, 2 * Math.ceil(10_000 / count))
  for (let round = 0; round < warm + 10; round++) {
    const way = round % 2 === 0 ? "outside" : "inside"
    const { admit, running } = await park(adapter)
    await collect()
    const began = now()
    if (way === "inside" && running.steerAll !== undefined) await running.steerAll(texts)
    else await outside(running, texts)
    const rate = (count * 1_000_000) / (now() - began)
    const admitted = await admit(count)
    if (round < warm) continue
    figures[way].push(rate)
    figures.admit.push(admitted.wall)
    cpu.push(admitted.cpu)
  }
  return {
    outside: median(figures.outside),
    inside: median(figures.inside),
    admit: median(figures.admit),
    admitCpu: median(cpu)
  }
}
