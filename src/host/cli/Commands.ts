/**
 * What a typed line means. A line that does not begin with `/` is a correction of the running generation; the rest is the
 * table below. A line that is no command is never guessed at: it becomes `Mistake`, and nothing is sent.
 *
 * @since 0.1.0
 */
import { Data } from "effect"

/**
 * A line, understood.
 *
 * @category models
 * @since 0.1.0
 */
export type Command = Data.TaggedEnum<{
  Blank: {}
  Steer: { readonly text: string }
  Ask: { readonly text: string }
  FollowUp: { readonly text: string }
  Prompt: { readonly text: string }
  Stop: {}
  Cancel: {}
  Status: {}
  Wait: {}
  Help: {}
  Quit: {}
  Mistake: { readonly message: string }
}>

/**
 * Constructors and matcher of `Command`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Command = Data.taggedEnum<Command>()

/**
 * One row of the table: how a command is written, what it does in a line, and how its argument is read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spec {
  readonly name: string
  /** What the argument is called in the help. A command without one refuses an argument. */
  readonly argument?: string
  readonly summary: string
  /** Reads the argument, which is trimmed, and not blank where one is wanted. */
  readonly read: (argument: string) => Command
}

/**
 * Every command, in the order the help lists them.
 *
 * @category constants
 * @since 0.1.0
 */
export const table: ReadonlyArray<Spec> = [
  {
    name: "ask",
    argument: "TEXT",
    summary: "a question or remark: answered at the next request, withholds no tool call",
    read: (text) => Command.Ask({ text })
  },
  {
    name: "follow",
    argument: "TEXT",
    summary: "a task for after this one: it waits and gets a run of its own",
    read: (text) => Command.FollowUp({ text })
  },
  {
    name: "prompt",
    argument: "TEXT",
    summary: "a new task, when nothing is running",
    read: (text) => Command.Prompt({ text })
  },
  {
    name: "stop",
    summary: "let the running request and tools finish, start nothing more",
    read: () => Command.Stop()
  },
  {
    name: "cancel",
    summary: "end the run now; what is pending is held",
    read: () => Command.Cancel()
  },
  {
    name: "status",
    summary: "what is running, and every input with its receipt",
    read: () => Command.Status()
  },
  {
    name: "wait",
    summary: "read no further line before nothing is running (for scripts)",
    read: () => Command.Wait()
  },
  {
    name: "help",
    summary: "this list",
    read: () => Command.Help()
  },
  {
    name: "quit",
    summary: "end the run and the program",
    read: () => Command.Quit()
  }
]

/**
 * Reads a line. `//text` is the correction `/text`.
 *
 * @category parsing
 * @since 0.1.0
 */
export const parse = (line: string): Command => {
  const text = line.trim()
  if (text === "") return Command.Blank()
  if (!text.startsWith("/")) return Command.Steer({ text })
  if (text.startsWith("//")) return Command.Steer({ text: text.slice(1) })
  const [, name = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(text) ?? []
  const spec = table.find((spec) => spec.name === name.toLowerCase())
  if (spec === undefined) {
    return Command.Mistake({
      message: `there is no command /${name}; /help lists them, and //${name} sends it as a correction`
    })
  }
  if (spec.argument !== undefined && rest === "") {
    return Command.Mistake({ message: `write ${usage(spec)}` })
  }
  if (spec.argument === undefined && rest !== "") {
    return Command.Mistake({ message: `${usage(spec)} takes nothing after it; nothing was sent` })
  }
  return spec.read(rest)
}

/**
 * How a command is written.
 *
 * @category formatting
 * @since 0.1.0
 */
export const usage = ({ argument, name }: Spec): string =>
  argument === undefined ? `/${name}` : `/${name} ${argument}`

/**
 * The table as aligned lines, the correction first.
 *
 * @category formatting
 * @since 0.1.0
 */
export const help: ReadonlyArray<string> = (() => {
  const rows = [
    ["TEXT", "a correction of the running task, delivered with its next request"],
    ...table.map((spec) => [usage(spec), spec.summary])
  ]
  const width = Math.max(...rows.map(([left = ""]) => left.length))
  return rows.map(([left = "", right = ""]) => `${left.padEnd(width)}  ${right}`)
})()

/**
 * The commands a line that is being typed may become.
 *
 * @category parsing
 * @since 0.1.0
 */
export const complete = (line: string): ReadonlyArray<string> =>
  line.startsWith("/")
    ? table
        .map((spec) => (spec.argument === undefined ? `/${spec.name}` : `/${spec.name} `))
        .filter((text) => text.startsWith(line.toLowerCase()))
    : []
