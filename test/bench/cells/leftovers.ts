/** What finished generations leave behind: the heap after 10,000 of three tool calls and a last word, each in a session that is closed. */
import { collect, heapUsed, pause } from "../measure.ts"
import { type Cell, expectEnd } from "./cell.ts"

const mebibytes = async (): Promise<number> => {
  await pause(50)
  await collect()
  return heapUsed() / 2 ** 20
}

export const run: Cell = async (adapter, [count = 10_000]) => {
  const finish = async (generations: number) => {
    for (let each = 0; each < generations; each++) {
      let asked = 0
      await expectEnd(adapter.start({ provider: () => (++asked > 3 ? "done" : "tool"), tool: () => undefined }), "done")
    }
  }
  await finish(count / 10)
  const first = await mebibytes()
  await finish((count * 9) / 10)
  const last = await mebibytes()
  return { first, last, ratio: last / first }
}
