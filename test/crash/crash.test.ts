/**
 * R1, R2, R6, R7, A7, C9, C10 and T10 where a process really ends: it is killed, at random moments and at each thing that it
 * journals, and whoever opens the session next finds that everything it had said stands. `npm run test:crash` kills longer.
 */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Postgres from "../support/postgres.ts"
import * as Children from "./children.ts"
import * as Failpoints from "./failpoints.ts"
import * as Kills from "./kills.ts"
import { inFile, type Place } from "./world.ts"

class Nursery extends Context.Service<Nursery, Children.Children>()("test/crash/Nursery") {}

const seed = Number(process.env["CRASH_SEED"] ?? Math.floor(Math.random() * 1_000_000))

const randomly = (dialect: Place["dialect"], placeIn: (folder: string) => Place, kills: number) =>
  Effect.gen(function* () {
    const tally = yield* Kills.run({ children: yield* Nursery, dialect, placeIn, kills, seed })
    assert.strictEqual(tally.lies.join("\n"), "", `seed ${seed}`)
    assert.strictEqual(tally.kills, kills)
  })

const sides = ["before", "after"] as const

const named = (options: Pick<Failpoints.Plan, "hosted"> & { readonly only?: ReadonlyArray<string> }) =>
  Effect.gen(function* () {
    const plan = {
      ...options,
      children: yield* Nursery,
      dialect: "sqlite",
      placeIn: inFile,
      sides,
      modes: "turns"
    } as const
    const { kinds, lies, names } = yield* Failpoints.run(plan)
    assert.strictEqual(lies.join("\n"), "")
    assert.strictEqual(names, sides.length * kinds.length)
    assert.isAtLeast(kinds.length, options.only?.length ?? 36)
  })

layer(Layer.effect(Nursery, Children.make), { excludeTestServices: true })("a process is killed", (it) => {
  it.effect(`L-R1 at any moment, over SQLite (seed ${seed})`, () => randomly("sqlite", inFile, 30), 300_000)
  it.effect("L-R2 right before and right after each thing that it journals", () => named({ hosted: false }), 300_000)
  it.effect(
    "L-B3 around each write into a context of the host's",
    () => named({ hosted: true, only: ["write-begun", "context", "input.delivered", "steering.applied"] }),
    300_000
  )
  it.effect(
    "L-R1 while it recovers what another killed process has left",
    () =>
      Effect.gen(function* () {
        const plan = {
          children: yield* Nursery,
          dialect: "sqlite",
          placeIn: inFile,
          sides,
          modes: "turns",
          hosted: false
        } as const
        const only = ["tool.interrupted", "generation.failed", "session.recovered", "generation.resumed"]
        const first = { side: "before", kind: "tool.completed", nth: 3 } as const
        const { kinds, lies } = yield* Failpoints.again({ ...plan, only }, first)
        assert.strictEqual(lies.join("\n"), "")
        assert.sameMembers([...kinds], only)
      }),
    300_000
  )
})

describe.skipIf(Postgres.programs === undefined)("over PostgreSQL, where it is installed", () => {
  layer(Layer.effect(Nursery, Children.make), { excludeTestServices: true })("a process is killed", (it) => {
    it.effect(
      `L-R1 at any moment, over PostgreSQL (seed ${seed})`,
      () =>
        Effect.gen(function* () {
          const { port } = yield* Postgres.start
          yield* randomly("pg", () => ({ dialect: "pg", where: String(port) }), 10)
        }).pipe(Effect.scoped),
      300_000
    )
  })
})
