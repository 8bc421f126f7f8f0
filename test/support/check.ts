/**
 * Runs every gate: each `check:*` script of package.json, in order, to the end, then says which failed.
 * `npm run check -- lint format` runs only those two.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

interface Outcome {
  readonly gate: string
  readonly passed: boolean
  readonly seconds: number
}

const manifest: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync("package.json", "utf8")
)
const gates = Object.keys(manifest.scripts).flatMap((name) => (name.startsWith("check:") ? [name.slice(6)] : []))

const chosen = process.argv.slice(2)
const unknown = chosen.filter((gate) => !gates.includes(gate))
if (unknown.length > 0) {
  console.error(`No gate is called ${unknown.join(", ")}. The gates: ${gates.join(", ")}`)
  process.exit(1)
}

const run = (gate: string): Outcome => {
  console.log(`\n== ${gate}: ${manifest.scripts[`check:${gate}`]}`)
  const started = performance.now()
  const { status } = spawnSync("npm", ["run", "--silent", `check:${gate}`], {
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32"
  })
  return { gate, passed: status === 0, seconds: (performance.now() - started) / 1000 }
}

const outcomes = (chosen.length > 0 ? chosen : gates).map(run)

console.log("\n== gates")
for (const { gate, passed, seconds } of outcomes) {
  console.log(`${passed ? "passed" : "FAILED"}  ${gate.padEnd(10)} ${seconds.toFixed(1)} s`)
}
process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1
