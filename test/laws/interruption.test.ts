import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Interleavings } from "../../src/testing/index.ts"
import * as Scenarios from "../support/scenarios.ts"

const explore = (shape: Scenarios.Shape, options: Interleavings.Options) =>
  Effect.gen(function* () {
    const result = yield* Scenarios.explore(shape, options)
    yield* Effect.sync(() => process.stdout.write(`${Interleavings.report(result)}\n`))
    assert.isUndefined(result.violation?.replay, Interleavings.report(result))
    assert.isAbove(Object.keys(result.outcomes).length, 1, "the schedules must differ in what comes of them")
    return result
  })

describe("interruption at every scheduling point", () => {
  const few = { preemptions: 1, random: 300 } as const
  it.live(
    "L-B2 L-D6 L-E4 three pending steers and a cancel",
    () => explore({ name: "cancel", actions: ["cancel"], pending: 3 }, few),
    120_000
  )
  for (const store of [
    { lands: "late", tells: true },
    { lands: "early", tells: true },
    { lands: "late", tells: false },
    { lands: "early", tells: false }
  ] as const) {
    const name = `${store.lands} landing, ${store.tells ? "telling" : "not telling"}`
    it.live(
      `L-B3 L-D4 three pending steers, a context of the host's own (${name}) and a cancel`,
      () => explore({ name, actions: ["cancel"], pending: 3, store }, few),
      120_000
    )
  }
  it.live(
    "L-C5 L-E3 three pending steers and a stop",
    () => explore({ name: "stop", actions: ["stop"], pending: 3 }, few),
    120_000
  )
  it.live("L-E1 L-E2 a steer", () => explore({ name: "steer", actions: ["steer"], pending: 1 }, few), 120_000)
  it.live("L-F5 an ordinary steer", () => explore({ name: "ordinary", actions: ["ordinary"] }, few), 120_000)
  it.live(
    "L-F2 L-F6 a follow-up",
    () => explore({ name: "follow-up", actions: ["followUp"], pending: 1 }, few),
    120_000
  )
  it.live(
    "L-C7 the session's scope closes",
    () => explore({ name: "close", actions: ["close"], pending: 2 }, few),
    120_000
  )
  it.live(
    "L-V2 a reader joins",
    () => explore({ name: "reader", actions: ["reader", "steer"], pending: 1 }, few),
    120_000
  )
  it.live(
    "L-D6 everything at once",
    () =>
      explore(
        { name: "all", actions: ["steer", "cancel", "stop", "ordinary", "followUp", "close", "reader"], pending: 1 },
        { preemptions: 2, random: 3000, pairs: 1000 }
      ),
    240_000
  )
})
