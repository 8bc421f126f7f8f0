/** What was measured, and ratios taken within one round, so that a machine busy for a while slows both sides of them. */
import type { Numbers } from "./cells/cell.ts"
import { median } from "./measure.ts"

/** One run of a cell; `failure` says why there are no numbers. */
export interface Run {
  readonly round: number
  readonly cell: string
  readonly args: ReadonlyArray<number>
  readonly peer: string
  readonly numbers?: Numbers
  readonly failure?: string
}

/** A figure of a peer: which cell, with which numbers after the peer, and which of its results. */
export interface Figure {
  readonly cell: string
  readonly args: ReadonlyArray<number>
  readonly peer: string
  readonly name: string
}

const isOf =
  ({ args, cell, peer }: Omit<Figure, "name">) =>
  (run: Run): boolean =>
    run.cell === cell && run.peer === peer && run.args.join() === args.join()

/** The runs of one cell of a peer. */
export const runsOf = (runs: ReadonlyArray<Run>, figure: Omit<Figure, "name">): ReadonlyArray<Run> =>
  runs.filter(isOf(figure))

const valueIn = (runs: ReadonlyArray<Run>, round: number, figure: Figure): number | undefined =>
  runsOf(runs, figure).find((run) => run.round === round)?.numbers?.[figure.name]

/** The median over the rounds, if it was measured. */
export const medianOf = (runs: ReadonlyArray<Run>, figure: Figure): number | undefined => {
  const values = runsOf(runs, figure).flatMap(({ numbers }) => numbers?.[figure.name] ?? [])
  return values.length === 0 ? undefined : median(values)
}

/** What `compute` makes of one round's figures, in each of the rounds that have all of them. */
export const inRounds = (
  runs: ReadonlyArray<Run>,
  figures: ReadonlyArray<Figure>,
  compute: (...values: ReadonlyArray<number>) => number
): ReadonlyArray<number> => {
  const rounds = new Set(runs.map(({ round }) => round))
  return [...rounds].flatMap((round) => {
    const values = figures.flatMap((figure) => valueIn(runs, round, figure) ?? [])
    return values.length === figures.length ? [compute(...values)] : []
  })
}
