/** Owners in processes of their own, spoken to a line at a time. */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

export interface Owner {
  /** What it says next. */
  readonly says: Effect.Effect<string>
  /** Tells it to append, and waits for what it says. */
  readonly append: Effect.Effect<string>
  /** Ends it at once, without a word to it. */
  readonly kill: Effect.Effect<void>
}

const program = fileURLToPath(new URL("owner.ts", import.meta.url))

/** Starts an owner; it ends with the scope. */
export const owner = (...args: ReadonlyArray<string>): Effect.Effect<Owner, never, Scope.Scope> =>
  Effect.gen(function* () {
    const start = Effect.sync(() => spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] }))
    const ended = (child: Effect.Success<typeof start>, end: () => void) =>
      Effect.callback<void>((resume) => {
        if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        end()
      })
    const child = yield* Effect.acquireRelease(start, (child) => ended(child, () => child.stdin.end()))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const says = Effect.map(
      Effect.promise(() => lines.next()),
      (line) => (line.done === true ? "(ended)" : line.value)
    )
    const tell = Effect.sync(() => void child.stdin.write("append\n"))
    return { says, append: Effect.andThen(tell, says), kill: ended(child, () => child.kill("SIGKILL")) }
  })
