/**
 * What a typed line means. A line that does not begin with `/` is a correction of the running generation; the rest is the
 * table below. A line that is no command is never guessed at: it becomes `Mistake`, and nothing is sent.
 *
 * @since 0.1.0
 */
import { Data } from "effect"

/**
 * What a pause is asked to last until.
 *
 * @category models
 * @since 0.1.0
 */
export type Until =
  | { readonly _tag: "Hand" }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Time"; readonly seconds: number }

/**
 * A line, understood. An input is named by its id, a question by the number it is shown with.
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
  Now: { readonly input: string }
  Drop: { readonly input: string }
  Pause: { readonly until: Until; readonly tools: ReadonlyArray<string> | undefined }
  Resume: { readonly signal: string | undefined }
  Approve: { readonly question: number | undefined }
  Deny: { readonly question: number | undefined; readonly reason: string }
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
  /** What the argument is called in the help, in brackets where it may be left out. A command without one refuses one. */
  readonly argument?: string
  readonly summary: string
  /** Reads the argument, which is trimmed, and not blank where one must be given. */
  readonly read: (argument: string) => Command
}

const wrong = (message: string): Command => Command.Mistake({ message })

const inputOf = (text: string): string | undefined => {
  const number = /^(?:in-)?([1-9]\d{0,8})$/i.exec(text)?.[1]
  return number === undefined ? undefined : `in-${number}`
}

const readInput =
  (name: string, command: (input: string) => Command) =>
  (text: string): Command => {
    const input = inputOf(text)
    return input === undefined ? wrong(`write /${name} and the number of an input, as in /${name} 3`) : command(input)
  }

const pauseUsage = "write /pause, /pause until SIGNAL, /pause for SECONDS, /pause only TOOL,TOOL"

/** `until` or `for`, and `only`, each once and in any order. */
const readPause = (argument: string): Command => {
  let until: Until = { _tag: "Hand" }
  let tools: ReadonlyArray<string> | undefined
  const words = argument
    .replace(/\s*,\s*/g, ",")
    .split(/\s+/)
    .filter((word) => word !== "")
  for (let index = 0; index < words.length; index += 2) {
    const clause = words[index]
    const value = words[index + 1]
    if (value === undefined) return wrong(`${pauseUsage}; nothing was paused`)
    if (clause === "only" && tools === undefined) {
      tools = value.split(",").filter((tool) => tool !== "")
      if (tools.length === 0) return wrong(`${pauseUsage}; nothing was paused`)
    } else if (clause === "until" && until._tag === "Hand") {
      until = { _tag: "Signal", name: value }
    } else if (clause === "for" && until._tag === "Hand") {
      const seconds = Number(value)
      if (!(seconds > 0 && seconds <= longestPause)) {
        return wrong(`${value} is not a number of seconds above 0 and up to ${longestPause}; nothing was paused`)
      }
      until = { _tag: "Time", seconds }
    } else return wrong(`${pauseUsage}; nothing was paused`)
  }
  return Command.Pause({ until, tools })
}

/** Seconds: a year. */
const longestPause = 31_536_000

const readApprove = (argument: string): Command => {
  if (argument === "") return Command.Approve({ question: undefined })
  return /^[1-9]\d{0,8}$/.test(argument)
    ? Command.Approve({ question: Number(argument) })
    : wrong("write /approve, or /approve and the number of a question; nothing was approved")
}

const readDeny = (argument: string): Command => {
  const [, number, reason = ""] = /^(?:([1-9]\d{0,8})(?=\s|$))?\s*(.*)$/s.exec(argument) ?? []
  return Command.Deny({
    question: number === undefined ? undefined : Number(number),
    reason: reason === "" ? "the user denied it" : reason
  })
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
    name: "now",
    argument: "N",
    summary: "give the waiting follow-up in-N to the running task as a correction instead",
    read: readInput("now", (input) => Command.Now({ input }))
  },
  {
    name: "drop",
    argument: "N",
    summary: "take the waiting follow-up in-N back",
    read: readInput("drop", (input) => Command.Drop({ input }))
  },
  {
    name: "pause",
    argument: "[until SIGNAL | for SECONDS | only TOOL,TOOL]",
    summary: "let what runs finish, then wait: for /resume, a signal, a time; only: with these tools' calls",
    read: readPause
  },
  {
    name: "resume",
    argument: "[SIGNAL]",
    summary: "go on after a pause, or give it the signal it waits for",
    read: (text) => Command.Resume({ signal: text === "" ? undefined : text })
  },
  {
    name: "approve",
    argument: "[N]",
    summary: "let the call of question N run; the one that has waited longest if no number is given",
    read: readApprove
  },
  {
    name: "deny",
    argument: "[N] [REASON]",
    summary: "do not let it run, and tell the model why",
    read: readDeny
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
    summary: "read no further line before nothing goes on by itself (for scripts)",
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
  if (spec.argument !== undefined && !isOptional(spec.argument) && rest === "") {
    return Command.Mistake({ message: `write ${usage(spec)}` })
  }
  if (spec.argument === undefined && rest !== "") {
    return Command.Mistake({ message: `${usage(spec)} takes nothing after it; nothing was sent` })
  }
  return spec.read(rest)
}

const isOptional = (argument: string): boolean => argument.startsWith("[")

/**
 * How a command is written.
 *
 * @category formatting
 * @since 0.1.0
 */
export const usage = ({ argument, name }: Spec): string =>
  argument === undefined ? `/${name}` : `/${name} ${argument}`

/** What is longer has its words on the next line. */
const helpColumn = 20

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
  return rows.flatMap(([left = "", right = ""]) =>
    left.length > helpColumn ? [left, `${"".padEnd(helpColumn)}  ${right}`] : [`${left.padEnd(helpColumn)}  ${right}`]
  )
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
