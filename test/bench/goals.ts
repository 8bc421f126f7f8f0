/** What Midcourse is to keep up with, each goal as a ratio of figures of one round. */
import { type Figure, medianBy, type Run } from "./results.ts"

export interface Goal {
  readonly name: string
  readonly ratio: number
  readonly limit: number
  readonly bound: "at most" | "at least"
  readonly met: boolean
}

const direct = "midcourse-direct"

const step = (peer: string, steps: number, ...subscribers: ReadonlyArray<number>): Figure => ({
  cell: "step",
  args: [steps, ...subscribers],
  peer,
  name: "cpu"
})

const over = (a = Number.NaN, b = Number.NaN): number => a / b

/** The goals whose figures were measured, with as many samples or generations as the plan gave a cell last. */
export const goals = (runs: ReadonlyArray<Run>): ReadonlyArray<Goal> => {
  const argsOf = (cell: string, peer: string): ReadonlyArray<number> =>
    runs.filter((run) => run.cell === cell && run.peer === peer).at(-1)?.args ?? []
  const figure = (peer: string, cell: string, name: string): Figure => ({
    cell,
    args: argsOf(cell, peer),
    peer,
    name
  })
  const live = argsOf("live", direct)[0] ?? 0

  const goal = (
    name: string,
    bound: Goal["bound"],
    limit: number,
    figures: ReadonlyArray<Figure>,
    compute: (...values: ReadonlyArray<number>) => number = over
  ): ReadonlyArray<Goal> => {
    const ratio = medianBy(runs, figures, compute)
    if (ratio === undefined) return []
    return [{ name, ratio, limit, bound, met: bound === "at most" ? ratio <= limit : ratio >= limit }]
  }
  const atMost = (name: string, limit: number, ours: Figure, beside: Figure) =>
    goal(name, "at most", limit, [ours, beside])
  const besidePi = (name: string, limit: number, cell: string, metric: string) =>
    atMost(name, limit, figure(direct, cell, metric), figure("pi", cell, metric))

  return [
    atMost("made: CPU of a step at 200, over the bare loop", 0.75, step("midcourse", 200), step("floor-ai", 200)),
    goal(
      "made: the runtime's own share of that step, over pi's whole step",
      "at most",
      0.8,
      [step("midcourse", 200), step("floor-stream", 200), step("pi", 200)],
      (whole = Number.NaN, floor = Number.NaN, pi = Number.NaN) => (whole - floor) / pi
    ),
    atMost("direct: CPU of a step at 200, over pi", 1.2, step(direct, 200), step("pi", 200)),
    atMost("direct: over AI SDK generateText", 0.25, step(direct, 200), step("ai-sdk-generate", 200)),
    atMost("direct: over OpenAI Agents", 0.05, step(direct, 200), step("openai-agents", 200)),
    atMost("direct: a step at 1,000 over one at 200", 1.1, step(direct, 1000), step(direct, 200)),
    besidePi("direct: submit to next request, p50, over pi", 1.2, "latency", "p50"),
    goal("receipted submits a second, over AI SDK's steering", "at least", 1, [
      figure(direct, "submits", "inside"),
      figure("ai-sdk-generate", "submits", "outside")
    ]),
    besidePi("direct: admitting 10,000 pending, over pi", 1, "submits", "admit"),
    besidePi(`direct: RSS of a live generation at ${live}, over pi`, 1.2, "live", "rss"),
    besidePi(`direct: CPU of starting ${live}, over pi`, 1, "live", "startCpu"),
    besidePi(`direct: CPU of steering and finishing ${live}, over pi`, 1, "live", "endCpu"),
    besidePi("direct: cancel p50 with 1,000 live, over pi", 1.3, "cancel", "p50"),
    besidePi("direct: cancel p99 with 1,000 live, over pi", 1.3, "cancel", "p99"),
    atMost("direct: a step with 100 subscribers over one", 3, step(direct, 200, 100), step(direct, 200)),
    goal(
      "direct: heap after all finished generations over a tenth of them",
      "at most",
      1.1,
      [figure(direct, "leftovers", "ratio")],
      (ratio = Number.NaN) => ratio
    )
  ].flat()
}
