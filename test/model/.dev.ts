import { Effect } from "effect"
import { makeBench, report } from "/work/main/test/model/Run.ts"
import { generate, shrink } from "/work/main/test/model/Generate.ts"
const [from, count, maxKinds] = process.argv.slice(2).map(Number) as [number, number, number]
const bench = Effect.runSync(makeBench)
const kinds = new Map<string, number>()
const t = performance.now()
for (let seed = from; seed < from + count; seed++) {
  const sequence = generate(seed)
  const d = bench.run(sequence)
  if (!d) continue
  const key0 = (d.wrong[0] ?? "").replace(/\d+/g, "#").slice(0, 120)
  const n = kinds.get(key0) ?? 0
  kinds.set(key0, n + 1)
  if (n === 0 && kinds.size <= (maxKinds ?? 8)) {
    const m = shrink(sequence, (s) => { const e = bench.run(s); return e !== undefined && (e.wrong[0] ?? "").replace(/\d+/g, "#").slice(0,25) === key0.slice(0,25) })
    const e = bench.run(m)
    console.log(report(seed, m, e!))
  }
}
console.log([...kinds].map(([k, n]) => `${n} × ${k}`).join("\n"))
console.log(count, "sequences", ((performance.now() - t) / 1000).toFixed(1), "s", [...bench.counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([a, b]) => `${a} ${b}`).join(", "))
