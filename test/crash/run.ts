/**
 * The long crash test: `npm run test:crash`, or `npm run test:crash -- --seed 7 --sqlite 50 --pg 0 --failpoints no --from 3`. The same seed
 * makes the same plan; where in a life its kill falls is the machine's.
 */
import { Effect, type Scope } from "effect"
import { cpSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as Postgres from "../support/postgres.ts"
import * as Children from "./children.ts"
import * as Failpoints from "./failpoints.ts"
import type { Case } from "./judge.ts"
import * as Kills from "./kills.ts"
import { inFile, type Place } from "./world.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    sqlite: { type: "string", default: "300" },
    pg: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    failpoints: { type: "string", default: "yes" }
  }
})
const seed = Number(values.seed)

const lies: Array<string> = []
const since = performance.now()
const say = (text: string) => console.log(`${((performance.now() - since) / 1000).toFixed(0).padStart(5)} s  ${text}`)
const found = (some: ReadonlyArray<string>) => {
  for (const lie of some) say(`UNTRUE ${lie}`)
  lies.push(...some)
}

interface Ground {
  readonly children: Children.Children
  readonly dialect: Place["dialect"]
  readonly placeIn: (folder: string) => Place
}

const kills = (ground: Ground, count: number) =>
  Effect.gen(function* () {
    let shown = 0
    const progress = ({ accepted, kills, sessions }: Kills.Tally) => {
      if (kills < shown + 10) return
      shown = kills
      say(`${ground.dialect}: ${kills} of ${count} kills, ${sessions} sessions, ${accepted} accepted receipts`)
    }
    const keep = ({ folder, lines, session }: Case) => {
      const kept = join(tmpdir(), `midcourse-${session}`)
      cpSync(folder, kept, { recursive: true })
      writeFileSync(join(kept, "said.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
      say(`${session} is kept in ${kept}`)
    }
    const tally = yield* Kills.run({ ...ground, kills: count, seed, from: Number(values.from), keep, progress })
    found(tally.lies)
    say(
      `${ground.dialect}: ${tally.kills} kills of ${tally.sessions} sessions, ${tally.accepted} accepted receipts, ` +
        `${tally.closed} lives over before their kill, ${tally.lies.length} untrue`
    )
  })

const tell = (name: string, { kills, kinds, lies, names }: Failpoints.Table) => {
  found(lies)
  say(`${name}: ${names} failpoints over ${kinds.length} kinds, ${kills} kills, ${lies.length} untrue`)
}

const failpoints = (ground: Ground) =>
  Effect.gen(function* () {
    const sides = ["before", "inside", "after"] as const
    let count = 0
    const progress = (where: string) => {
      if (++count % 20 === 0) say(`${count} kills at failpoints of ${ground.dialect}, the last ${where}`)
    }
    const plan = { ...ground, sides, modes: "both" as const, hosted: false, progress }
    const name = `${ground.dialect} failpoints`
    tell(name, yield* Failpoints.run(plan))
    if (ground.dialect === "pg") return
    tell(`${name}, host's context`, yield* Failpoints.run({ ...plan, hosted: true }))
    for (const [kind, nth] of [
      ["tool.completed", 3],
      ["request.completed", 4],
      ["cancel.requested", 1],
      ["generation.parked", 1]
    ] as const) {
      const side = kind === "tool.completed" || kind === "request.completed" ? "before" : "after"
      tell(`${name} of recovery, killed ${side} ${kind} ${nth}`, yield* Failpoints.again(plan, { side, kind, nth }))
    }
  })

const over = (ground: Ground, count: number): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (count > 0) yield* kills(ground, count)
    if (values.failpoints === "yes") yield* failpoints(ground)
  })

say(`seed ${seed}`)
await Effect.runPromise(
  Effect.gen(function* () {
    const children = yield* Children.make
    yield* over({ children, dialect: "sqlite", placeIn: inFile }, Number(values.sqlite))
    if (Postgres.programs === undefined) return say("pg: not installed, so not tried")
    if (Number(values.pg) === 0) return
    const { port } = yield* Postgres.start
    const placeIn = (): Place => ({ dialect: "pg", where: String(port) })
    yield* over({ children, dialect: "pg", placeIn }, Number(values.pg))
  }).pipe(Effect.scoped)
)
say(lies.length === 0 ? "everything that was said stood" : `${lies.length} untrue; seed ${seed}`)
process.exitCode = lies.length === 0 ? 0 : 1
