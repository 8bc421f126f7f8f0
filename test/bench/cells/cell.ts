/** A cell measures one thing of one peer in a process of its own. */
import type { Adapter, Running } from "../adapter.ts"
import { idle } from "../measure.ts"

export type Numbers = { readonly [name: string]: number }

/** Measures; `args` are the cell's own, such as how many steps. Times are microseconds, memory kilobytes, unless named. */
export type Cell = (adapter: Adapter, args: ReadonlyArray<number>) => Promise<Numbers>

/** Microseconds that a series is given: a peer too slow for it has fewer. */
export const patience = 8_000_000

/** Waits for a generation that must come to this end. */
export const expectEnd = async (running: Running, outcome: "done" | "cancelled"): Promise<void> => {
  const ended = await running.done
  if (ended !== outcome) throw new Error(`expected ${outcome}: ${ended}`)
}

/** Waits until nothing of these goes on after their end, so that the CPU time of it is counted. */
export const settle = async (generations: ReadonlyArray<Running>): Promise<void> => {
  await Promise.all(generations.map(({ settled }) => settled))
  await idle()
}

/** Whether a steer that bears this text is among the last messages, in whatever form the peer keeps them. */
export const carries = (messages: ReadonlyArray<unknown>, text: string): boolean =>
  JSON.stringify(messages.slice(-3)).includes(text)
