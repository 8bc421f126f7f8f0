/** Processes that are started before they are needed, told what to do, and killed. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { appending, type Config, type Line, saidIn, signs } from "./world.ts"

/** What became of a process, and what it had said by then. */
export interface Outcome {
  readonly killed: boolean
  readonly code: number | null
  readonly lines: ReadonlyArray<Line>
  readonly complaint: string
}

/** So many milliseconds after it was told what to do, or has opened its session, or has written its `nth` commit. */
export type Kill =
  | { readonly from: "told" | "opened"; readonly after: number }
  | { readonly from: "commit"; readonly nth: number; readonly after: number }

export interface Children {
  /** Runs one life, to be killed or left alone. */
  readonly live: (config: Config, kill?: Kill) => Effect.Effect<Outcome>
}

/** Milliseconds after which a life that nobody meant to kill is given up. */
const patience = 30_000

const program = fileURLToPath(new URL("child.ts", import.meta.url))

interface Started {
  readonly process: ChildProcess
  readonly output: string
  /** Everything is loaded, and it waits to be told. */
  readonly ready: Promise<void>
  readonly opened: Promise<void>
  readonly committed: (nth: number) => Promise<void>
  readonly complaint: () => string
}

const start = (output: string): Started => {
  const process = appending(output, (descriptor) =>
    spawn(globalThis.process.execPath, ["--disable-warning=ExperimentalWarning", program], {
      stdio: ["pipe", descriptor, "pipe"],
      env: { ...globalThis.process.env, NODE_COMPILE_CACHE: join(tmpdir(), "midcourse-crash-compiled") }
    })
  )
  let complaint = ""
  const heard = (test: () => boolean) =>
    new Promise<void>((resolve) => {
      if (process.exitCode !== null || process.signalCode !== null) return resolve()
      process.once("close", () => resolve())
      process.stderr?.on("data", () => {
        if (test()) resolve()
      })
    })
  process.stderr?.on("data", (chunk: Buffer) => void (complaint += chunk.toString()))
  // Killed before it has read what it is to do.
  process.stdin?.on("error", () => {})
  return {
    process,
    output,
    ready: heard(() => complaint.includes(signs.ready)),
    opened: heard(() => complaint.includes(signs.opened)),
    committed: (nth) => heard(() => complaint.split(signs.commit).length > nth),
    complaint: () => Object.values(signs).reduce((text, sign) => text.replaceAll(sign, ""), complaint)
  }
}

const ended = ({ process }: Started): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (process.exitCode !== null || process.signalCode !== null) return resume(Effect.void)
    process.once("close", () => resume(Effect.void))
  })

const memory = "/dev/shm"

/**
 * A folder that is removed with the scope. What a killed process has written stands in memory as well as on a disk, where more
 * happens between two kills.
 */
export const temporary = (medium: "memory" | "disk"): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const parent = medium === "memory" && existsSync(memory) ? memory : tmpdir()
      return mkdtempSync(join(parent, "midcourse-crash-"))
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

/** One process is always being started while another is at work. None is left when the scope ends. */
export const make: Effect.Effect<Children, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* temporary("memory")
  const alive = new Set<Started>()
  let count = 0
  const spare = () => {
    const started = start(join(folder, `${++count}.jsonl`))
    alive.add(started)
    started.process.once("close", () => alive.delete(started))
    return started
  }
  let next = spare()
  yield* Effect.addFinalizer(() =>
    Effect.forEach(
      alive,
      (started) =>
        Effect.andThen(
          Effect.sync(() => started.process.kill("SIGKILL")),
          ended(started)
        ),
      { discard: true }
    )
  )
  return {
    live: (config, kill) =>
      Effect.gen(function* () {
        const mine = next
        next = spare()
        yield* Effect.promise(() => mine.ready)
        mine.process.stdin?.end(JSON.stringify(config))
        if (kill?.from === "opened") yield* Effect.promise(() => mine.opened)
        if (kill?.from === "commit") yield* Effect.promise(() => mine.committed(kill.nth))
        const timer = setTimeout(() => mine.process.kill("SIGKILL"), kill?.after ?? patience)
        yield* ended(mine)
        clearTimeout(timer)
        const { exitCode, signalCode } = mine.process
        return {
          killed: signalCode === "SIGKILL",
          code: exitCode,
          lines: saidIn(mine.output),
          complaint: mine.complaint()
        }
      })
  }
})
