/**
 * Runs the terminal program as a person or a script would: as a process of its own, with what it reads and writes.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, onTestFinished } from "vitest"
import * as Workspace from "../../src/host/cli/Workspace.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Options {
  readonly args?: ReadonlyArray<string>
  readonly env?: { readonly [name: string]: string }
  /** Flags of Node itself. */
  readonly node?: ReadonlyArray<string>
}

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

export interface Running {
  readonly pid: number
  /** Resolves when what was written so far has this in it; rejects if the program ends before. */
  readonly until: (text: string) => Promise<void>
  readonly type: (text: string) => void
  readonly endInput: () => void
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Ended>
}

/** Starts the program without this process's own settings; it does not outlive the test. */
export const start = ({ args = [], env = {}, node = [] }: Options = {}): Running => {
  const own = Object.entries(process.env).filter(([name]) => !/^(FORCE_COLOR|NO_COLOR|OPENAI_\w+)$/.test(name))
  const child = spawn(process.execPath, [...node, "src/host/cli/main.ts", ...args], {
    cwd: root,
    env: { ...Object.fromEntries(own), ...env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  let out = ""
  let error = ""
  const waiting = new Set<() => void>()
  const ring = () => waiting.forEach((look) => look())
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text
    ring()
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    error += text
  })
  child.stdin.on("error", () => undefined)
  let over = false
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code) => {
      over = true
      resolve({ code, out, error })
      ring()
    })
  })
  onTestFinished(async () => {
    child.kill("SIGKILL")
    await ended
  })
  return {
    pid: child.pid ?? 0,
    until: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (out.includes(text)) resolve()
          else if (over) reject(new Error(`it ended without ${JSON.stringify(text)}:\n${out}${error}`))
          else return
          waiting.delete(look)
        }
        waiting.add(look)
        look()
      }),
    type: (text) => void child.stdin.write(text),
    endInput: () => void child.stdin.end(),
    signal: (signal) => void child.kill(signal),
    ended
  }
}

/** Runs it to its end with this as its whole input. */
export const run = (input: string, options?: Options): Promise<Ended> => {
  const program = start(options)
  program.type(input)
  program.endInput()
  return program.ended
}

/** A directory of its own, empty, for one test. */
export const directory = (): string => {
  const made = mkdtempSync(join(tmpdir(), "midcourse-test-"))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** A copy of the scratch workspace that outlives the program. */
export const workspace = (): string => {
  const made = directory()
  for (const [path, content] of Workspace.files) {
    mkdirSync(dirname(join(made, path)), { recursive: true })
    writeFileSync(join(made, path), content)
  }
  return made
}

/** The names of the files that the scratch workspace has to sort, sorted. */
export const inbox: ReadonlyArray<string> = Workspace.files.map(([path]) => path.slice("inbox/".length)).sort()

/** The names in a directory, sorted; none if there is no such directory. */
export const names = (directory: string, path: string): ReadonlyArray<string> => {
  try {
    return readdirSync(join(directory, path)).sort()
  } catch {
    return []
  }
}

/** The row of an input in the summary at the end. */
export const row = (out: string, id: string): string =>
  out
    .slice(out.lastIndexOf("\ninput "))
    .split("\n")
    .find((line) => line.startsWith(`${id} `))
    ?.replace(/ {2,}/g, " | ") ?? ""

/** That these are in it, each after the one before. */
export const inOrder = (out: string, texts: ReadonlyArray<string>): void => {
  let from = 0
  for (const text of texts) {
    const at = out.indexOf(text, from)
    if (at < 0)
      expect.fail(`no ${JSON.stringify(text)} after ${JSON.stringify(out.slice(0, from).slice(-80))} in:\n${out}`)
    from = at + text.length
  }
}
