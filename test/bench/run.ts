/**
 * Every figure of Midcourse beside its peers: `npm run bench`, about an hour; `npm run bench -- --quick`, some minutes.
 * Each cell is a fresh process, in turn over the peers, round after round. The whole run writes docs/performance.md and
 * test/bench/results.json; a quick one, or one with `--only step,cancel` or `--rounds 2`, prints. A cell that failed makes the exit
 * code 1, and so does a goal that the whole run did not measure; a goal missed is printed.
 */
import { spawn, spawnSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Numbers } from "./cells/cell.ts"
import { goals } from "./goals.ts"
import { columns, figureNames, type Kept, medians } from "./kept.ts"
import { full, needsInstall, type Plan, quick, type Task, timeLimit } from "./plan.ts"
import { markdown, type Origin } from "./report.ts"
import type { Run } from "./results.ts"

const here = import.meta.dirname
const root = join(here, "../..")

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    peers: { type: "string" },
    rounds: { type: "string" }
  }
})

const planned = (): Plan => {
  const rounds = options.rounds === undefined ? undefined : Number(options.rounds)
  return options.quick ? quick(rounds ?? 2) : full(rounds ?? 5)
}

const chosen = (plan: Plan): Plan => {
  const cells = options.only?.split(",")
  const peers = options.peers?.split(",")
  const tasks = plan.tasks.filter(
    ({ cell, peer }) => (cells?.includes(cell) ?? true) && (peers?.includes(peer) ?? true)
  )
  return { ...plan, tasks }
}

/** The peers' packages, installed beside this file when they are not. */
const install = (): void => {
  if (existsSync(join(here, "node_modules"))) return
  console.log("The peers are not installed: npm ci in test/bench, which takes a minute ...")
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--prefix", here], {
    cwd: here,
    stdio: "inherit",
    shell: process.platform === "win32"
  })
  if (status !== 0) throw new Error("the peers could not be installed")
}

/** The files of peers/ fit the packages: no gate of the repository sees them, which runs without those. */
const checkTypes = (): void => {
  const { status } = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", here], {
    cwd: root,
    stdio: "inherit"
  })
  if (status !== 0) throw new Error("the peers' files do not fit their packages: tsc -p test/bench fails")
}

const node = ["--disable-warning=ExperimentalWarning"]

interface Finished {
  readonly output: string
  /** Why it did not end well, if it did not. */
  readonly failure: string | undefined
}

/** Why a process that was not killed from here did not end well: a signal is a crash, or the system's want of memory. */
const unlessWell = (code: number | null, signal: string | null, error: string): string | undefined => {
  if (signal !== null) return `ended by ${signal}`
  if (code === 0) return undefined
  return error.split("\n").find((line) => /^\w*Error: /.test(line)) ?? (error === "" ? `exit code ${code}` : error)
}

const execute = (file: string, args: ReadonlyArray<string>, seconds: number): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...node, join(here, file), ...args], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: seconds * 1000,
      killSignal: "SIGKILL"
    })
    let output = ""
    let error = ""
    child.stdout.on("data", (chunk) => (output += String(chunk)))
    child.stderr.on("data", (chunk) => (error += String(chunk)))
    child.on("error", reject)
    child.on("close", (code, signal) => {
      const failure = child.killed ? `longer than ${seconds} s` : unlessWell(code, signal, error)
      resolve({ output, failure })
    })
  })

const numbersOf = (json: { readonly [key: string]: unknown }): Numbers =>
  Object.fromEntries(Object.entries(json).filter((entry): entry is [string, number] => typeof entry[1] === "number"))

const measure = async ({ args, cell, peer }: Task, round: number): Promise<Run> => {
  const { failure, output } = await execute("cell.ts", [cell, peer, ...args.map(String)], timeLimit)
  return {
    round,
    cell,
    args,
    peer,
    ...(failure === undefined ? { numbers: numbersOf(JSON.parse(output)) } : { failure })
  }
}

const measureAll = async ({ rounds, tasks }: Plan): Promise<ReadonlyArray<Run>> => {
  const runs: Array<Run> = []
  for (let round = 1; round <= rounds; round++) {
    for (const task of tasks) {
      const run = await measure(task, round)
      runs.push(run)
      const told = run.failure ?? JSON.stringify(run.numbers)
      console.log(`round ${round} of ${rounds}  ${task.cell} ${task.args.join(" ")}  ${task.peer.padEnd(18)} ${told}`)
    }
  }
  return runs
}

/** The medians of what durable.ts measures, each figure in a process of its own. */
const durable = async (rounds: number): Promise<ReadonlyArray<Kept>> => {
  const measured = new Map<string, [Kept, ...Array<Kept>]>()
  for (let round = 1; round <= rounds; round++) {
    for (const name of figureNames) {
      const { failure, output } = await execute("durable.ts", [name, "--json"], timeLimit)
      if (failure !== undefined) throw new Error(`durable.ts ${name} failed: ${failure}`)
      const kept: Kept = JSON.parse(output)
      measured.set(name, [kept, ...(measured.get(name) ?? [])])
      console.log(`round ${round} of ${rounds}  ${columns(kept).join("  ")}`)
    }
  }
  return Array.from(measured.values(), medians)
}

const versionsIn = (path: string, field: string): { readonly [name: string]: string } =>
  JSON.parse(readFileSync(path, "utf8"))[field]

const origin = (rounds: number): Origin => ({
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.versions.node,
  rounds,
  versions: {
    effect: versionsIn(join(root, "package.json"), "devDependencies")["effect"] ?? "unknown",
    ...versionsIn(join(here, "package.json"), "dependencies")
  }
})

/** Puts the results between their marks in docs/performance.md. */
const publish = (text: string): void => {
  const path = join(root, "docs/performance.md")
  const [before, rest] = readFileSync(path, "utf8").split("<!-- results -->\n")
  const [, after] = rest?.split("<!-- end of results -->") ?? []
  if (before === undefined || after === undefined) throw new Error(`${path} has no place for the results`)
  writeFileSync(path, `${before}<!-- results -->\n\n${text}\n\n<!-- end of results -->${after}`)
}

const everything = planned()
const plan = chosen(everything)
if (plan.tasks.some(({ peer }) => needsInstall(peer))) {
  install()
  checkTypes()
}
const whole =
  !options.quick && options.only === undefined && options.peers === undefined && options.rounds === undefined
const began = performance.now()
const kept = whole ? await durable(plan.rounds) : []
const runs = await measureAll(plan)
const reached = goals(runs, everything.tasks)
const from = origin(plan.rounds)
const text = markdown(from, runs, reached, kept)
console.log(`\n${text}\n`)
for (const { bound, limit, name, ratio, verdict } of reached) {
  const told = verdict === "missed" ? "MISSED" : verdict
  console.log(`${told.padEnd(12)}  ${(ratio?.toFixed(2) ?? "").padStart(6)}  ${bound} ${limit}  ${name}`)
}
if (whole) {
  publish(text)
  writeFileSync(
    join(here, "results.json"),
    `${JSON.stringify({ ...from, goals: reached, durable: kept, runs }, null, 1)}\n`
  )
}
console.log(`${((performance.now() - began) / 60_000).toFixed(1)} minutes`)
const failures = runs.filter(({ failure }) => failure !== undefined).length
const unmeasured = reached.filter(({ verdict }) => verdict === "not measured").length
if (failures > 0) console.error(`${failures} of ${runs.length} cells failed.`)
if (whole && unmeasured > 0) console.error(`${unmeasured} of ${reached.length} goals were not measured.`)
if (failures > 0 || (whole && unmeasured > 0)) process.exitCode = 1
