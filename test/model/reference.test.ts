import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeBench, report, search } from "./Run.ts"

const seed = 1
const sequences = 10_000

describe("the engine and the reference", () => {
  it.live(
    "L-A2 L-I1 L-D1 L-E4 L-T1 L-C2 L-F6 agree on what every caller is told and what stands at every rest",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeBench
        const found = search(bench, seed, sequences)
        const counts = [...bench.counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, n]) => `${what} ${n}`)
        process.stdout.write(`reference: ${sequences} sequences, seed ${seed}: ${counts.join(", ")}\n`)
        assert.isUndefined(found, found && report(found.seed, found.sequence, found.disagreement))
      }),
    240_000
  )
})
