/** Processes that are started before they are needed, told what to do, and killed. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { appending, type Config, type Line, saidIn } from "./world.ts"

/** What became of a process, and what it had said by then. */
export interface Outcome {
  readonly killed: boolean
  readonly code: number | null
  readonly lines: ReadonlyArray<Line>
  readonly complaint: string
}

export interface Children {
  /** Runs one life; it is killed so many milliseconds after it was told what to do, or left alone. */
  readonly live: (config: Config, killAfter?: number) => Effect.Effect<Outcome>
}

const program = fileURLToPath(new URL("child.ts", import.meta.url))

interface Started {
  readonly process: ChildProcess
  readonly output: string
  readonly complaint: () => string
}

const start = (output: string): Started => {
  const process = appending(output, (descriptor) =>
    spawn(globalThis.process.execPath, ["--disable-warning=ExperimentalWarning", program], {
      stdio: ["pipe", descriptor, "pipe"]
    })
  )
  let complaint = ""
  process.stderr?.on("data", (chunk: Buffer) => void (complaint += chunk.toString()))
  // Killed before it has read what it is to do.
  process.stdin?.on("error", () => {})
  return { process, output, complaint: () => complaint }
}

const ended = ({ process }: Started): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (process.exitCode !== null || process.signalCode !== null) return resume(Effect.void)
    process.once("close", () => resume(Effect.void))
  })

/** A folder that is removed with the scope. */
export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "midcourse-crash-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** One process is always being started while another is at work. None is left when the scope ends. */
export const make: Effect.Effect<Children, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* temporary
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
      (started) => Effect.andThen(Effect.sync(() => started.process.kill("SIGKILL")), ended(started)),
      { discard: true }
    )
  )
  return {
    live: (config, killAfter) =>
      Effect.gen(function* () {
        const mine = next
        next = spare()
        const end = yield* Effect.forkChild(ended(mine), { startImmediately: true })
        mine.process.stdin?.end(JSON.stringify(config))
        const limit = killAfter === undefined ? "20 seconds" : killAfter
        const kill = Effect.andThen(
          Effect.sleep(limit),
          Effect.sync(() => mine.process.kill("SIGKILL"))
        )
        yield* Effect.forkChild(kill)
        yield* Effect.raceFirst(Effect.andThen(Effect.yieldNow, ended(mine)), Effect.sleep("30 seconds"))
        void end
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
