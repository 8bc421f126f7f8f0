import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Command, Sequence, Setting } from "./Command.ts"
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
        yield* Effect.sync(() =>
          process.stdout.write(`reference: ${sequences} sequences, seed ${seed}: ${counts.join(", ")}\n`)
        )
        assert.isUndefined(found?.seed, found && report(found.seed, found.sequence, found.disagreement))
      }),
    300_000
  )
})

const setting: Setting = {
  concurrency: 1,
  onCorrection: "withhold",
  maxRequests: 8,
  steering: "request_boundary",
  identities: 40,
  pendingSteering: 8,
  queued: 8,
  pauses: 3,
  store: "journal",
  collectDebounce: 0,
  collectCap: 3
}
const begin: Command = { do: "submit", input: { id: "p", intent: "prompt", text: "begin" } }

/** Sequences that once disagreed, as they were shrunk. */
const once: Record<string, Sequence> = {
  "L-C2 L-T13 a pause takes effect while only a question waits": {
    setting,
    commands: [
      begin,
      { do: "answer", with: { say: "calls", calls: [{ tool: "edit", path: "asked" }] } },
      { do: "pause", until: { _tag: "Manual" } }
    ]
  },
  "L-C6 a stop asked again, now holding the follow-ups, holds them or is refused": {
    setting,
    commands: [
      begin,
      { do: "submit", input: { id: "f", intent: "follow-up", text: "later" } },
      { do: "stop", which: "live" },
      { do: "stop", which: "live", followUps: "hold" }
    ]
  },
  "L-C5 a stop decides the outcome though a write fails after it": {
    setting: { ...setting, store: "tells" },
    commands: [{ do: "jam" }, begin, { do: "stop", which: "live" }, { do: "write", how: "fail" }]
  },
  "L-T12 L-P3 a continuation after finish reason pause that fails is tried again": {
    setting,
    commands: [
      begin,
      { do: "answer", with: { say: "pause" } },
      { do: "answer", with: { say: "fail", retryable: true, calls: [] } },
      { do: "tick", millis: 1000 },
      { do: "answer", with: { say: "text" } }
    ]
  }
}

describe("sequences that once disagreed", () => {
  for (const [law, sequence] of Object.entries(once)) {
    it.live(law, () =>
      Effect.gen(function* () {
        const disagreement = (yield* makeBench).run(sequence)
        assert.isUndefined(disagreement?.at, disagreement && report(0, sequence, disagreement))
      })
    )
  }
})
