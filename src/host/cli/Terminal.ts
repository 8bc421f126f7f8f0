/**
 * The terminal as the program uses it: lines typed or piped in, interrupts, and a screen. The one file that touches
 * `process` and `node:readline`.
 *
 * @since 0.1.0
 */
import { type Cause, Context, Effect, Layer, Queue } from "effect"
import { readFileSync } from "node:fs"
import * as Readline from "node:readline"
import * as Commands from "./Commands.ts"
import * as Screen from "./Screen.ts"
import * as Style from "./Style.ts"
import type { Piece } from "./View.ts"

/**
 * `lines` ends with the input. `interrupts` has one element for each Ctrl-C.
 *
 * @category services
 * @since 0.1.0
 */
export class Terminal extends Context.Service<
  Terminal,
  {
    /** Whether a person types at a terminal, rather than a program into a pipe. */
    readonly interactive: boolean
    readonly palette: Style.Palette
    readonly show: (...pieces: ReadonlyArray<Piece>) => Effect.Effect<void>
    readonly lines: Queue.Dequeue<string, Cause.Done>
    readonly interrupts: Queue.Dequeue<"interrupt">
  }
>()("midcourse/host/cli/Terminal") {}

const promptText = "> "

const write = (text: string): void => {
  process.stdout.write(text)
}

/**
 * The terminal of this process. Its input is read from when the layer is built until its scope closes.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Terminal> = Layer.effect(
  Terminal,
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string, Cause.Done>()
    const interrupts = yield* Queue.unbounded<"interrupt">()
    const interrupt = (): void => {
      Queue.offerUnsafe(interrupts, "interrupt")
    }
    const interactive = isTerminal(process.stdin) && isTerminal(process.stdout) && process.env["TERM"] !== "dumb"
    const palette = colours(process.stdout)

    const console = yield* Effect.acquireRelease(
      Effect.sync(() => {
        process.on("SIGINT", interrupt)
        return interactive ? openEditor(lines, interrupt) : openPipe(lines)
      }),
      (console) =>
        Effect.sync(() => {
          console.close()
          process.off("SIGINT", interrupt)
        })
    )
    return Terminal.of({
      interactive,
      palette,
      lines,
      interrupts,
      show: (...pieces) => Effect.sync(() => console.show(pieces))
    })
  })
)

interface Console {
  readonly show: (pieces: ReadonlyArray<Piece>) => void
  readonly close: () => void
}

const openPipe = (lines: Queue.Queue<string, Cause.Done>): Console => {
  const screen = Screen.sequential(write)
  const reader = Readline.createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
  reader.on("line", (line) => Queue.offerUnsafe(lines, line))
  reader.on("close", () => Queue.endUnsafe(lines))
  // An input that cannot be read (a directory, a terminal that is gone) is an input at its end.
  process.stdin.on("error", () => reader.close())
  return {
    show: (pieces) => pieces.forEach(screen.show),
    close: () => {
      reader.close()
      screen.end()
    }
  }
}

const openEditor = (lines: Queue.Queue<string, Cause.Done>, interrupt: () => void): Console => {
  const editor = Readline.createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal: true,
    prompt: promptText,
    historySize: 100,
    removeHistoryDuplicates: true,
    completer: (line: string) => [Commands.complete(line), line]
  })
  const typing = Screen.above({
    write,
    columns: () => process.stdout.columns || 80,
    prompt: promptText,
    editor: {
      row: () => editor.getCursorPos().rows,
      redraw: () => {
        // The rows above are not the editor's any more: it would go up over them and wipe them.
        Object.assign(editor, { prevRows: 0 })
        editor.prompt(true)
      }
    }
  })
  let screen: Screen.Screen = typing
  const leave = (): void => {
    if (screen !== typing) return
    typing.end()
    screen = Screen.sequential(write, true)
  }
  editor.on("line", (line) => {
    typing.entered(line)
    Queue.offerUnsafe(lines, line)
  })
  editor.on("SIGINT", interrupt)
  editor.on("close", () => {
    leave()
    Queue.endUnsafe(lines)
  })
  process.stdin.on("error", () => editor.close())
  editor.prompt()
  return {
    show: (pieces) => {
      process.stdout.cork()
      pieces.forEach((piece) => screen.show(piece))
      process.stdout.uncork()
    },
    close: () => {
      editor.close()
      screen.end()
    }
  }
}

const isTerminal = (stream: { readonly isTTY?: boolean }): boolean => stream.isTTY === true

const colours = (stream: { readonly isTTY?: boolean }): Style.Palette =>
  Style.wantsColour(process.env, isTerminal(stream)) ? Style.coloured : Style.plain

/**
 * The version in the package's own manifest.
 *
 * @category process
 * @since 0.1.0
 */
export const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"))
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "0"
}

/**
 * The arguments of the command line.
 *
 * @category process
 * @since 0.1.0
 */
export const args = (): ReadonlyArray<string> => process.argv.slice(2)

/**
 * Whether what is written to standard output is coloured.
 *
 * @category process
 * @since 0.1.0
 */
export const coloursOutput = (): boolean => colours(process.stdout) === Style.coloured

/**
 * Writes one message to standard error.
 *
 * @category process
 * @since 0.1.0
 */
export const complain = (message: string): void => {
  process.stderr.write(`${colours(process.stderr).bad("midcourse:")} ${message}\n`)
}

/**
 * Runs the program and ends the process with the code it succeeds with, once everything is written. A signal that asks the
 * process to end interrupts it first, so that its scopes close; an output that nobody reads any more does too.
 *
 * @category process
 * @since 0.1.0
 */
export const run = (program: Effect.Effect<number>): void => {
  let code: number | undefined
  const fiber = Effect.runFork(program)
  const end = (status: number) => () => {
    code ??= status
    fiber.interruptUnsafe()
  }
  process.on("SIGTERM", end(143))
  process.on("SIGHUP", end(129))
  process.stdout.on("error", end(0))
  process.stderr.on("error", () => undefined)
  process.on("uncaughtException", (error) => {
    complain(`unexpected: ${error.message}`)
    end(1)()
  })
  fiber.addObserver((exit) => {
    const status = code ?? (exit._tag === "Success" ? exit.value : 1)
    process.stdout.write("", () => process.exit(status))
  })
}

/**
 * Loads what Node warns of as experimental, without the warning: it is not for whoever runs the program.
 *
 * @category process
 * @since 0.1.0
 */
export const withoutExperimentalWarning = async <A>(load: () => Promise<A>): Promise<A> => {
  const { emitWarning } = process
  const isExperimental = ([, options]: ReadonlyArray<unknown>): boolean =>
    options === "ExperimentalWarning" ||
    (typeof options === "object" && options !== null && "type" in options && options.type === "ExperimentalWarning")
  process.emitWarning = (...args: ReadonlyArray<unknown>) => {
    if (!isExperimental(args)) Reflect.apply(emitWarning, process, args)
  }
  try {
    return await load()
  } finally {
    process.emitWarning = emitWarning
  }
}
