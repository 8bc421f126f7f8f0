/** So many generations parked at the provider at once: what starting, holding, and steering and finishing them costs. */
import type { Answer, Running, Waiting } from "../adapter.ts"
import { collect, cpuTime, heapUsed, now, pause, residentSet, until } from "../measure.ts"
import { carries, type Cell, expectEnd, settle } from "./cell.ts"

export const run: Cell = async (adapter, [count = 1000]) => {
  for (let warm = 0; warm < 200; warm++) {
    let asked = 0
    const provider = () => (++asked > 2 ? "done" : "tool")
    await expectEnd(adapter.start({ steerable: true, provider, tool: () => undefined }), "done")
  }
  await pause(50)
  await collect()
  const before = { resident: residentSet(), heap: heapUsed() }

  const generations: Array<Running> = []
  const releases: Array<(answer: Answer) => void> = []
  let seen = 0
  const startCpu = cpuTime()
  const startWall = now()
  for (let index = 0; index < count; index++) {
    let asked = 0
    const work = {
      steerable: true,
      tool: () => undefined,
      provider: (messages: ReadonlyArray<unknown>): Answer | Waiting => {
        if (++asked === 1) return () => new Promise((resolve) => releases.push(resolve))
        if (carries(messages, "MARK")) seen++
        return "done"
      }
    }
    generations.push(adapter.start(work))
  }
  await until(() => releases.length === count)
  const started = { cpu: cpuTime() - startCpu, wall: now() - startWall }

  await pause(100)
  await collect()
  await pause(20)
  await collect()
  const after = { resident: residentSet(), heap: heapUsed() }

  const endCpu = cpuTime()
  const endWall = now()
  await Promise.all(generations.map((running) => running.steer("MARK")))
  for (const release of releases) release("tool")
  for (const running of generations) await expectEnd(running, "done")
  const wall = now() - endWall
  await settle(generations)
  const ended = { cpu: cpuTime() - endCpu, wall }
  if (seen !== count) throw new Error(`${seen} of ${count} steers were carried`)
  return {
    rss: (after.resident - before.resident) / count / 1024,
    heap: (after.heap - before.heap) / count / 1024,
    startCpu: started.cpu,
    startWall: started.wall,
    endCpu: ended.cpu,
    endWall: ended.wall
  }
}
