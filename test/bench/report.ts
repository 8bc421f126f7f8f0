/** The results as Markdown. */
import type { Goal } from "./goals.ts"
import { columns as columnsOf, type Kept } from "./kept.ts"
import { described, peers } from "./plan.ts"
import { type Figure, medianOf, type Run, runsOf } from "./results.ts"

/** Where and with what it was measured. */
export interface Origin {
  readonly date: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly node: string
  readonly rounds: number
  readonly versions: { readonly [name: string]: string }
}

type Column = readonly [title: string, cell: string, args: ReadonlyArray<number>, name: string, unit: Unit]

type Unit = "µs" | "ms" | "KB" | "a second"

const shown = (value: number, unit: Unit): string => {
  const scaled = unit === "ms" ? value / 1000 : value
  const digits = scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2
  return scaled.toLocaleString("en-GB", { maximumFractionDigits: digits, minimumFractionDigits: digits })
}

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const table = (titles: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [line(titles), line(titles.map((_, index) => (index === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n")

const columnTable = (runs: ReadonlyArray<Run>, columns: ReadonlyArray<Column>): string | undefined => {
  const measured = columns.filter(([, cell, args]) =>
    runs.some((run) => run.cell === cell && run.args.join() === args.join())
  )
  const rows = peers.flatMap((peer) => {
    const figures = measured.map(([, cell, args, name]): Figure => ({ cell, args, peer, name }))
    if (figures.every((figure) => runsOf(runs, figure).length === 0)) return []
    const values = measured.map(([, , , , unit], index) => {
      const figure = figures[index]
      const value = figure === undefined ? undefined : medianOf(runs, figure)
      if (value !== undefined) return shown(value, unit)
      return figure !== undefined && runsOf(runs, figure).length > 0 ? "failed" : "not run"
    })
    return [[described[peer] ?? peer, ...values]]
  })
  return rows.length === 0
    ? undefined
    : table(["", ...measured.map(([title, , , , unit]) => `${title}, ${unit}`)], rows)
}

/** The columns of the submits of a peer, whose number differs for the durable one. */
const sizes = (runs: ReadonlyArray<Run>, cell: string): ReadonlyArray<ReadonlyArray<number>> => {
  const found = new Map(runs.filter((run) => run.cell === cell).map(({ args }) => [args.join(), args]))
  return [...found.values()].sort(([a = 0], [b = 0]) => b - a)
}

const subscribers = (args: ReadonlyArray<number>) => args[1] ?? 1

const sections = (runs: ReadonlyArray<Run>): ReadonlyArray<readonly [title: string, body: string | undefined]> => {
  const steps = sizes(runs, "step").filter((args) => args.length === 1)
  const watched = sizes(runs, "step").filter(([steps]) => steps === 200)
  const columns = (cell: string, of: (args: ReadonlyArray<number>) => ReadonlyArray<Column>) =>
    columnTable(runs, sizes(runs, cell).flatMap(of))
  const count = ([n = 0]: ReadonlyArray<number>) => n.toLocaleString("en-GB")
  return [
    [
      "Cost of a step",
      columnTable(
        runs,
        steps.toReversed().flatMap((args): ReadonlyArray<Column> => [
          [`CPU at ${count(args)}`, "step", args, "cpu", "µs"],
          [`wall at ${count(args)}`, "step", args, "wall", "µs"]
        ])
      )
    ],
    [
      "Cost of a step at 200, CPU, by subscribers",
      columnTable(
        runs.filter((run) => run.cell !== "step" || ["midcourse-direct", "pi"].includes(run.peer)),
        watched
          .toSorted((a, b) => subscribers(a) - subscribers(b))
          .map((args): Column => [`${subscribers(args)}`, "step", args, "cpu", "µs"])
      )
    ],
    [
      "Deltas streamed to a subscriber",
      columns("stream", (args) => [
        ["deltas", "stream", args, "perSecond", "a second"],
        ["CPU a delta", "stream", args, "cpu", "µs"]
      ])
    ],
    [
      "From a submit in a tool call to the next request",
      columns("latency", (args) => [
        ["p50", "latency", args, "p50", "µs"],
        ["p99", "latency", args, "p99", "µs"]
      ])
    ],
    [
      "Submits into a parked generation, and the request that then carries them all",
      columns("submits", (args) => [
        [`${count(args)} from inside`, "submits", args, "inside", "a second"],
        ["by a plain call", "submits", args, "outside", "a second"],
        ["to the next request", "submits", args, "admit", "ms"]
      ])
    ],
    [
      "Live generations, one subscriber each, parked at the provider",
      columns("live", (args) => [
        [`${count(args)}: RSS each`, "live", args, "rss", "KB"],
        ["heap each", "live", args, "heap", "KB"],
        ["start CPU", "live", args, "startCpu", "ms"],
        ["start wall", "live", args, "startWall", "ms"],
        ["steer and finish CPU", "live", args, "endCpu", "ms"],
        ["wall", "live", args, "endWall", "ms"]
      ])
    ],
    [
      "Cancel with 1,000 live",
      columns("cancel", (args) => [
        ["p50", "cancel", args, "p50", "µs"],
        ["p99", "cancel", args, "p99", "µs"],
        ["CPU", "cancel", args, "cpu", "µs"],
        ["all at once, each", "cancel", args, "burst", "µs"]
      ])
    ]
  ]
}

const goalTable = (goals: ReadonlyArray<Goal>): string =>
  table(
    ["goal", "ratio", "limit", "rounds", ""],
    goals.map(({ bound, limit, name, ratio, rounds, verdict }) => [
      name,
      ratio?.toFixed(2) ?? "",
      `${bound} ${limit}`,
      `${rounds}`,
      verdict === "met" ? verdict : `**${verdict.toUpperCase()}**`
    ])
  )

const durableTable = (durable: ReadonlyArray<Kept>): string =>
  table(["figure", "Midcourse", "beside", "ratio", "goal"], durable.map(columnsOf))

const notes = (runs: ReadonlyArray<Run>): ReadonlyArray<string> => {
  const cold = new Set(
    runs.flatMap(({ args, cell, numbers, peer }) =>
      cell === "step" && numbers?.["warmed"] !== undefined && numbers["warmed"] < 10_000
        ? [`${described[peer] ?? peer} (at ${args[0]})`]
        : []
    )
  )
  const few = new Set(
    runs.flatMap(({ args: [samples = 0], cell, numbers, peer }) =>
      cell === "latency" && (numbers?.["measured"] ?? samples) < samples ? [described[peer] ?? peer] : []
    )
  )
  const failures = runs.flatMap(({ args, cell, failure, peer }) =>
    failure === undefined ? [] : [`${cell} ${args.join(" ")} of ${described[peer] ?? peer}: ${failure}`]
  )
  return [
    ...(cold.size === 0 ? [] : [`Measured after fewer than 10,000 steps of warming: ${[...cold].join(", ")}.`]),
    ...(few.size === 0
      ? []
      : [`From a submit to the next request in fewer samples, being slow: ${[...few].join(", ")}.`]),
    ...new Set(failures)
  ]
}

/** Everything that was measured. */
export const markdown = (
  origin: Origin,
  runs: ReadonlyArray<Run>,
  goals: ReadonlyArray<Goal>,
  durable: ReadonlyArray<Kept>
): string => {
  const { cores, cpu, date, memoryGiB, node, rounds, versions } = origin
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const parts = [
    `Measured on ${date}: ${cpu}, ${cores} cores, ${memoryGiB} GiB, Node ${node}; medians of ${rounds} rounds.`,
    named.join(", ") + ".",
    "### Goals",
    goalTable(goals),
    ...sections(runs).flatMap(([title, body]) => (body === undefined ? [] : [`### ${title}`, body])),
    ...(durable.length === 0 ? [] : ["### Durable", durableTable(durable)]),
    ...notes(runs)
  ]
  return parts.join("\n\n")
}
