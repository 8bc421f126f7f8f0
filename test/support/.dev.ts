import { Effect } from "effect"
import { Interleavings } from "/work/main/src/testing/index.ts"
import * as S from "/work/main/test/support/scenarios.ts"
import { readFileSync } from "node:fs"
const src = readFileSync("/work/main/test/laws/exploration.test.ts", "utf8")
const body = src.slice(src.indexOf("const one ="), src.indexOf("const say")).replace(": ReadonlyArray<Explored>", "")
const explored = new Function(body + "; return explored")()
const only = process.argv[2] ?? ""
const cap = Number(process.argv[3] ?? 2000)
for (const { shape } of explored) {
  if (only !== "all" && !shape.name.startsWith(only)) continue
  const c0 = process.cpuUsage()
  const r = await Effect.runPromise(S.explore(shape, { preemptions: 2, maxSchedules: cap, pairs: Math.floor(cap / 7), random: Math.floor(cap/2) }))
  const c = process.cpuUsage(c0)
  console.log(Interleavings.report(r).slice(0, 1800), ((c.user + c.system) / 1e6 / r.schedules * 1000).toFixed(2), "cpu ms a schedule", r.deterministic)
}
