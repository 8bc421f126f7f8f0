/** What Midcourse is to keep up with, each goal as a ratio of figures of one round. */
import { median } from "./measure.ts"
import type { Task } from "./plan.ts"
import { type Figure, inRounds, type Run } from "./results.ts"

export interface Goal {
  readonly name: string
  readonly limit: number
  readonly bound: "at most" | "at least"
  /** How many rounds have all its figures; the ratio is the median of theirs. */
  readonly rounds: number
  readonly ratio: number | undefined
  readonly verdict: "met" | "missed" | "not measured"
}

const direct = "midcourse-direct"

const step = (peer: string, steps: number, ...subscribers: ReadonlyArray<number>): Figure => ({
  cell: "step",
  args: [steps, ...subscribers],
  peer,
  name: "cpu"
})

const over = (a = Number.NaN, b = Number.NaN): number => a / b

const count = (args: ReadonlyArray<number>): string => (args[0] ?? 0).toLocaleString("en-GB")

/** Every goal, measured or not. Where plans differ in how many samples or generations a cell has, the last of `tasks` counts. */
export const goals = (runs: ReadonlyArray<Run>, tasks: ReadonlyArray<Task>): ReadonlyArray<Goal> => {
  const lastOf = (cell: string): ReadonlyArray<number> =>
    tasks.filter((task) => task.cell === cell && task.peer === direct).at(-1)?.args ?? []
  const goal = (
    name: string,
    bound: Goal["bound"],
    limit: number,
    figures: ReadonlyArray<Figure>,
    compute: (...values: ReadonlyArray<number>) => number = over
  ): Goal => {
    const ratios = inRounds(runs, figures, compute)
    const goal = { name, bound, limit, rounds: ratios.length }
    if (ratios.length === 0) return { ...goal, ratio: undefined, verdict: "not measured" }
    const ratio = median(ratios)
    const met = bound === "at most" ? ratio <= limit : ratio >= limit
    return { ...goal, ratio, verdict: met ? "met" : "missed" }
  }
  const atMost = (name: string, limit: number, ours: Figure, beside: Figure) =>
    goal(name, "at most", limit, [ours, beside])
  const besidePi = (name: string, limit: number, cell: string, args: ReadonlyArray<number>, metric: string) =>
    atMost(name, limit, { cell, args, peer: direct, name: metric }, { cell, args, peer: "pi", name: metric })
  const submitting = (peer: string, name: string): Figure => ({ cell: "submits", args: [2000], peer, name })
  const live = lastOf("live")
  const left = lastOf("leftovers")

  return [
    atMost(
      "made: CPU of a step at 200, over the loop with `toolkit.handle`",
      0.75,
      step("midcourse", 200),
      step("floor-ai", 200)
    ),
    goal(
      "made: what a step at 200 costs over the bare loop's, over pi's whole step",
      "at most",
      0.8,
      [step("midcourse", 200), step("floor-stream", 200), step("pi", 200)],
      (whole = Number.NaN, floor = Number.NaN, pi = Number.NaN) => (whole - floor) / pi
    ),
    atMost("direct: CPU of a step at 200, over pi", 1.2, step(direct, 200), step("pi", 200)),
    atMost("direct: over AI SDK generateText", 0.25, step(direct, 200), step("ai-sdk-generate", 200)),
    atMost("direct: over OpenAI Agents", 0.05, step(direct, 200), step("openai-agents", 200)),
    atMost("direct: a step at 1,000 over one at 200", 1.1, step(direct, 1000), step(direct, 200)),
    besidePi("direct: submit to next request, p50, over pi", 1.2, "latency", lastOf("latency"), "p50"),
    goal("direct: 2,000 receipted submits, as many a second, over AI SDK's steering", "at least", 1, [
      submitting(direct, "inside"),
      submitting("ai-sdk-generate", "outside")
    ]),
    besidePi("direct: admitting 10,000 pending, over pi", 1, "submits", [10_000], "admit"),
    besidePi(`direct: RSS of a live generation at ${count(live)}, over pi`, 1.2, "live", live, "rss"),
    besidePi(`direct: CPU of starting ${count(live)}, over pi`, 1, "live", live, "startCpu"),
    besidePi(`direct: CPU of steering and finishing ${count(live)}, over pi`, 1, "live", live, "endCpu"),
    besidePi("direct: cancel p50 with 1,000 live, over pi", 1.3, "cancel", lastOf("cancel"), "p50"),
    besidePi("direct: cancel p99 with 1,000 live, over pi", 1.3, "cancel", lastOf("cancel"), "p99"),
    atMost("direct: a step with 100 subscribers over one", 3, step(direct, 200, 100), step(direct, 200)),
    goal(
      `direct: heap after ${count(left)} finished generations over a tenth of them`,
      "at most",
      1.1,
      [{ cell: "leftovers", args: left, peer: direct, name: "ratio" }],
      (ratio = Number.NaN) => ratio
    )
  ]
}
