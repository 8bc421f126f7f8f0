/** The figures of what a store costs, as durable.ts measures them: one process gives each once, a whole run their medians. */
import { median } from "./measure.ts"

/** What durable.ts measures, by the name it is asked for. */
export const figureNames = ["receipt", "throughput", "step", "opening"] as const

export type FigureName = (typeof figureNames)[number]

export interface Kept {
  readonly name: string
  readonly unit: "µs" | "a second"
  readonly ours: number
  readonly beside: number
  /** What it is held against. */
  readonly than: string
  readonly ratio: number
  readonly bound: "at most" | "at least"
  readonly limit: number
}

/** The medians of a figure's rounds; the ratio is taken within a round. */
export const medians = (rounds: readonly [Kept, ...Array<Kept>]): Kept => {
  const of = (value: (round: Kept) => number) => median(rounds.map(value))
  return {
    ...rounds[0],
    ours: of(({ ours }) => ours),
    beside: of(({ beside }) => beside),
    ratio: of(({ ratio }) => ratio)
  }
}

const isMet = ({ bound, limit, ratio }: Kept): boolean => (bound === "at most" ? ratio <= limit : ratio >= limit)

/** Its columns: what, ours, what it is held against, the ratio, the goal. */
export const columns = (kept: Kept): readonly [string, string, string, string, string] => {
  const { beside, bound, limit, name, ours, ratio, than, unit } = kept
  const shown = (value: number) =>
    `${value.toLocaleString("en-GB", { maximumFractionDigits: value < 100 ? 1 : 0 })} ${unit}`
  const verdict = isMet(kept) ? "met" : "missed"
  return [name, shown(ours), `${shown(beside)} ${than}`, ratio.toFixed(2), `${bound} ${limit}: ${verdict}`]
}
