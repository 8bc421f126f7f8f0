/**
 * Runs every program in examples/ in a process of its own, one after the other, with a limit on its time. An example
 * that exits non-zero, runs out of time, or prints nothing (it exported its program and forgot to run it) fails.
 */
import { spawnSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"

const limit = 60_000

const reasonOf = (file: string): string | undefined => {
  const { error, signal, status, stderr, stdout } = spawnSync(process.execPath, [join("examples", file)], {
    encoding: "utf8",
    killSignal: "SIGKILL",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: limit
  })
  const reason =
    error !== undefined
      ? error.message
      : signal !== null
        ? `ended by ${signal}`
        : status !== 0
          ? `exited with ${status}`
          : stdout.trim() === ""
            ? "printed nothing"
            : undefined
  if (reason !== undefined) {
    console.error(`${stdout}${stderr}`)
  }
  return reason
}

const files = readdirSync("examples")
  .filter((file) => file.endsWith(".ts"))
  .toSorted()
let failed = 0
for (const file of files) {
  const started = performance.now()
  const reason = reasonOf(file)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  failed += reason === undefined ? 0 : 1
  console.log(
    `${reason === undefined ? "ran   " : "FAILED"} examples/${file} ${seconds} s${reason === undefined ? "" : `: ${reason}`}`
  )
}
console.log(`Examples: ${files.length - failed} ran, ${failed} failed`)
process.exitCode = files.length > 0 && failed === 0 ? 0 : 1
