/**
 * What the messages of a request tell: the task, the corrections to it, and what the tool results so far established.
 * A failed call counts as failed, one that was not started as not done, one that was interrupted as not known, and a
 * note of the runtime's own is never taken for a person's words.
 *
 * @since 0.1.0
 */
import { Predicate } from "effect"
import type { Prompt } from "effect/ai"
import { basename, label, matches, parse, type Pattern, Statement } from "./PlanGrammar.ts"

/**
 * A sort task and how far it is. Paths are workspace-relative.
 *
 * @category models
 * @since 0.1.0
 */
export interface Work {
  readonly source: string
  target: string
  index: boolean
  only: ReadonlyArray<Pattern> | undefined
  /** The last rule that matches a file decides about it. */
  rules: ReadonlyArray<{ readonly keep: boolean; readonly pattern: Pattern }>
  /** How many files are moved in all when no more are to be moved. */
  limit: number | undefined
  /** What was said about the task after it was given or with it, and how many files were moved then. */
  readonly corrections: Array<{ readonly label: string; readonly after: number }>
  /** The files of the source by the latest listing; undefined when it must be listed. */
  listing: ReadonlyArray<string> | undefined
  listingCut: boolean
  listFailure: string | undefined
  /** Every file a listing of this task ever showed. */
  readonly known: Set<string>
  /** Where each moved file is. */
  readonly moved: Map<string, string>
  /** Moves that failed, by `moveKey`, and why. */
  readonly failures: Map<string, string>
  /** How often each call was asked for, by `callKey`. */
  readonly attempts: Map<string, number>
  /** How many messages of people were about this task. */
  people: number
  /** How many files were moved before the current turn. */
  base: number
  targetListing: ReadonlyArray<string> | undefined
  existingIndex: string | undefined
  indexFailure: string | undefined
}

/**
 * All that is known from a prompt.
 *
 * @category models
 * @since 0.1.0
 */
export interface Story {
  readonly work: Work | undefined
  /** Whether the current turn is to work on the task, not only to answer. */
  readonly active: boolean
  /** What people said since the last response, in order. */
  readonly said: ReadonlyArray<Said>
  /** Whether the last response called no tool, so that a summary was given. */
  readonly concluded: boolean
  /** The title of each file read, undefined for one that could not be read. */
  readonly titles: ReadonlyMap<string, string | undefined>
  readonly moves: ReadonlyArray<{ readonly from: string; readonly to: string }>
  readonly indexes: ReadonlyArray<{ readonly path: string; readonly content: string }>
  /** The number of the next tool call. */
  readonly nextCall: number
}

/**
 * A statement nobody has answered yet, and whether it opened its turn.
 *
 * @category models
 * @since 0.1.0
 */
export interface Said {
  readonly statement: Statement
  readonly opening: boolean
}

/**
 * The key of a move in `Work.failures`.
 *
 * @category keys
 * @since 0.1.0
 */
export const moveKey = (from: string, to: string): string => `${from} > ${to}`

/**
 * The key of a call in `Work.attempts`: the tool and the path it is about.
 *
 * @category keys
 * @since 0.1.0
 */
export const callKey = (name: string, params: unknown): string =>
  `${name} ${field(params, "path") ?? field(params, "from") ?? field(params, "directory") ?? ""}`

/**
 * Where a file goes under the task's target.
 *
 * @category paths
 * @since 0.1.0
 */
export const destination = (work: Work, file: string): string => under(work.target, basename(file))

/**
 * The path of the task's index.
 *
 * @category paths
 * @since 0.1.0
 */
export const indexPath = (work: Work): string => under(work.target, "INDEX.md")

const under = (directory: string, name: string): string => (directory === "." ? name : `${directory}/${name}`)

/**
 * Whether the corrections so far leave a file to be moved.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isWanted = (work: Work, file: string): boolean => {
  if (work.only !== undefined && !work.only.some((pattern) => matches(pattern, file))) return false
  return work.rules.findLast((rule) => matches(rule.pattern, file))?.keep ?? true
}

/**
 * Reads the messages of a request.
 *
 * @category constructors
 * @since 0.1.0
 */
export const read = (messages: ReadonlyArray<Prompt.Message>): Story => {
  const reader = makeReader()
  for (const message of messages) {
    switch (message.role) {
      case "system":
        break
      case "user":
        reader.user(message)
        break
      case "assistant":
        reader.assistant(message)
        break
      case "tool":
        for (const part of message.content) {
          if (part.type === "tool-result") reader.result(part)
        }
        break
    }
  }
  return reader.story()
}

const makeReader = () => {
  let work: Work | undefined
  let active = false
  let said: Array<Said> = []
  let turn: { readonly generation: string | undefined } | undefined
  let responded = false
  let concluded = false
  let cutOff = false
  let lastCall = 0
  const calls = new Map<string, { readonly name: string; readonly params: unknown }>()
  const titles = new Map<string, string | undefined>()
  const moves: Array<{ readonly from: string; readonly to: string }> = []
  const indexes: Array<{ readonly path: string; readonly content: string }> = []

  const opensTurn = (intent: string | undefined, generation: string | undefined): boolean => {
    if (turn === undefined) return true
    if (turn.generation !== undefined && generation !== undefined) return turn.generation !== generation
    if (!responded && !cutOff) return false
    return intent === undefined ? concluded || cutOff : intent === "steer" ? cutOff : true
  }

  const user = (message: Prompt.UserMessage): void => {
    const marks = message.options["midcourse"]
    if (Predicate.hasProperty(marks, "notice") || Predicate.hasProperty(marks, "summarises")) {
      cutOff = true
      return
    }
    const statements = parse(message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n"))
    if (statements.length === 0) return
    const generation = field(marks, "target_generation_id") ?? field(marks, "generation_id")
    const opening = opensTurn(field(marks, "intent"), generation)
    if (opening) {
      turn = { generation }
      responded = false
      cutOff = false
    }
    const works = statements.some((statement) => isTask(statement) || isCorrection(statement))
    if (opening && !works) active = false
    if (works && work !== undefined && (opening || !active)) reopen(work)
    const taskFirst = [...statements.filter(isTask), ...statements.filter((statement) => !isTask(statement))]
    for (const statement of taskFirst) said.push({ statement: hear(statement, opening), opening })
    if (works && work !== undefined) active = true
    if (work !== undefined) work.people += 1
  }

  /** Lets a statement change the task, and returns what is to be answered. */
  const hear = (statement: Statement, opening: boolean): Statement => {
    if (statement._tag === "Sort") {
      if (!opening && active && statement.only.length > 0) return Statement.Unknown({ text: statement.text })
      const source = statement.source ?? work?.source ?? "inbox"
      const target = statement.target ?? work?.target ?? "archive/2025"
      if (source === target) return sameDirectory(statement.text)
      const again = statement.source === undefined && statement.target === undefined
      work = begin(source, target, statement.only, again && (work?.index ?? false))
      titles.clear()
      return statement
    }
    if (statement._tag === "Target" && statement.path === work?.source) return sameDirectory(`target ${statement.path}`)
    if (work !== undefined) correct(work, statement)
    return statement
  }

  const assistant = (message: Prompt.AssistantMessage): void => {
    let called = false
    for (const part of message.content) {
      if (part.type === "tool-result") result(part)
      if (part.type !== "tool-call") continue
      called = true
      const numbered = /^call_(\d{1,9})$/.exec(part.id)
      lastCall = Math.max(lastCall + 1, Number(numbered?.[1] ?? 0))
      calls.set(part.id, { name: part.name, params: part.params })
      if (work !== undefined) {
        const key = callKey(part.name, part.params)
        work.attempts.set(key, (work.attempts.get(key) ?? 0) + 1)
      }
    }
    said = []
    responded = true
    concluded = !called
  }

  const result = (part: Prompt.ToolResultPart): void => {
    const call = calls.get(part.id)
    const outcome = outcomeOf(part)
    if (outcome._tag === "NotStarted") {
      cutOff = cutOff || /\b(?:cancelled|stopped|closed|process-lost)\b/i.test(outcome.text)
      return
    }
    if (call === undefined) return
    const path = field(call.params, "path") ?? field(call.params, "from") ?? field(call.params, "directory") ?? ""
    switch (call.name) {
      case "list_files":
        return work === undefined ? undefined : listed(work, path, outcome)
      case "read_file":
        if (work !== undefined && path === indexPath(work)) return indexRead(work, outcome)
        if (outcome._tag !== "Interrupted")
          titles.set(path, outcome._tag === "Done" ? titleOf(outcome.value) : undefined)
        return
      case "move_file": {
        const to = field(call.params, "to") ?? ""
        if (outcome._tag === "Done") moves.push({ from: path, to })
        return work === undefined ? undefined : moved(work, path, to, outcome)
      }
      case "write_file":
        if (outcome._tag === "Done") indexes.push({ path, content: field(call.params, "content") ?? "" })
        return work === undefined || path !== indexPath(work) ? undefined : indexWritten(work, outcome)
    }
  }

  const story = (): Story => ({
    work,
    active: active && work !== undefined,
    said,
    concluded,
    titles,
    moves,
    indexes,
    nextCall: lastCall + 1
  })

  return { user, assistant, result, story }
}

const isTask = (statement: Statement): boolean => statement._tag === "Sort"

const isCorrection = Statement.$match({
  Sort: () => false,
  Skip: () => true,
  Include: () => true,
  Only: () => true,
  Target: () => true,
  StopAfter: () => true,
  StopNow: () => true,
  Index: () => true,
  Continue: () => true,
  Question: () => false,
  Courtesy: () => false,
  Refused: () => false,
  Unknown: () => false
})

const sameDirectory = (text: string): Statement =>
  Statement.Refused({ text, why: "the target would be the directory that is sorted" })

const begin = (source: string, target: string, only: ReadonlyArray<Pattern>, index: boolean): Work => ({
  source,
  target,
  index,
  only: only.length === 0 ? undefined : only,
  rules: [],
  limit: undefined,
  corrections: [],
  listing: undefined,
  listingCut: false,
  listFailure: undefined,
  known: new Set(),
  moved: new Map(),
  failures: new Map(),
  attempts: new Map(),
  people: 0,
  base: 0,
  targetListing: undefined,
  existingIndex: undefined,
  indexFailure: undefined
})

/** A later turn takes the task up again: its rules stand, what failed is tried again, a limit is over. */
const reopen = (work: Work): void => {
  work.limit = undefined
  work.base = work.moved.size
  work.listing = undefined
  work.listFailure = undefined
  work.failures.clear()
  work.attempts.clear()
  work.targetListing = undefined
  work.existingIndex = undefined
  work.indexFailure = undefined
}

const correct = (work: Work, statement: Statement): void => {
  const note = (text: string): void => {
    work.corrections.push({ label: text, after: work.moved.size })
  }
  const all = (patterns: ReadonlyArray<Pattern>): string => patterns.map(label).join(" and ")
  const retarget = (): void => {
    work.targetListing = undefined
    work.existingIndex = undefined
    work.indexFailure = undefined
  }
  switch (statement._tag) {
    case "Skip":
      work.rules = [...work.rules, ...statement.patterns.map((pattern) => ({ keep: false, pattern }))]
      return note(`skip ${all(statement.patterns)}`)
    case "Include":
      work.rules = [...work.rules, ...statement.patterns.map((pattern) => ({ keep: true, pattern }))]
      if (work.only !== undefined) work.only = [...work.only, ...statement.patterns]
      return note(`include ${all(statement.patterns)}`)
    case "Only": {
      const named = new Set(statement.patterns.map(label))
      work.rules = work.rules.filter((rule) => !named.has(label(rule.pattern)))
      work.only = statement.patterns
      return note(`only ${all(statement.patterns)}`)
    }
    case "Target":
      if (statement.path === work.target) return
      work.target = statement.path
      retarget()
      return note(`target ${statement.path}`)
    case "StopAfter":
      work.limit = (statement.more ? work.moved.size : work.base) + statement.files
      return note(
        `stop after ${statement.files}${statement.more ? " more" : ""} file${statement.files === 1 ? "" : "s"}`
      )
    case "StopNow":
      work.limit = work.moved.size
      return note("stop")
    case "Index":
      if (work.index === statement.write) return
      work.index = statement.write
      return statement.write ? undefined : note("no index")
    case "Continue":
      work.limit = undefined
      return
    case "Sort":
    case "Question":
    case "Courtesy":
    case "Refused":
    case "Unknown":
      return
  }
}

type Outcome =
  | { readonly _tag: "Done"; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly text: string; readonly reason: string | undefined }
  | { readonly _tag: "Interrupted" }
  | { readonly _tag: "NotStarted"; readonly text: string }

const outcomeOf = (part: Prompt.ToolResultPart): Outcome => {
  if (!part.isFailure) return { _tag: "Done", value: part.result }
  const text = Predicate.isString(part.result)
    ? part.result
    : (field(part.result, "detail") ?? field(part.result, "message") ?? field(part.result, "reason") ?? "it failed")
  if (Predicate.isString(part.result) && /^not[- ]started/i.test(text)) return { _tag: "NotStarted", text }
  return /^interrupted/i.test(text) || field(part.result, "type") === "execution-interrupted"
    ? { _tag: "Interrupted" }
    : { _tag: "Failed", text, reason: field(part.result, "reason") }
}

const listed = (work: Work, directory: string, outcome: Outcome): void => {
  if (outcome._tag === "Interrupted") return
  const paths = outcome._tag === "Done" ? listedPaths(outcome.value) : []
  if (directory === work.source) {
    if (outcome._tag === "Failed") {
      work.listFailure = outcome.text
      return
    }
    work.listing = paths
    work.listingCut =
      outcome._tag === "Done" && Predicate.hasProperty(outcome.value, "truncated") && outcome.value.truncated === true
    for (const path of paths) work.known.add(path)
  } else if (directory === work.target) {
    if (outcome._tag === "Failed" && outcome.reason !== "not-found") work.indexFailure = outcome.text
    else work.targetListing = paths
  }
}

const listedPaths = (value: unknown): ReadonlyArray<string> =>
  Predicate.hasProperty(value, "files") && Array.isArray(value.files)
    ? value.files.flatMap((file: unknown) => field(file, "path") ?? [])
    : []

const moved = (work: Work, from: string, to: string, outcome: Outcome): void => {
  switch (outcome._tag) {
    case "Done":
      work.moved.set(from, to)
      work.targetListing = undefined
      work.existingIndex = undefined
      return
    case "Failed":
      work.failures.set(moveKey(from, to), outcome.text)
      return
    case "Interrupted":
      work.listing = undefined
      return
    case "NotStarted":
      return
  }
}

const indexRead = (work: Work, outcome: Outcome): void => {
  if (
    outcome._tag === "Done" &&
    Predicate.hasProperty(outcome.value, "truncated") &&
    outcome.value.truncated === true
  ) {
    work.indexFailure = "the index that is there is too long to extend"
  } else if (outcome._tag === "Done") {
    work.existingIndex = field(outcome.value, "content") ?? ""
  } else if (outcome._tag === "Failed") {
    work.indexFailure = outcome.text
  }
}

const indexWritten = (work: Work, outcome: Outcome): void => {
  if (outcome._tag === "Failed") work.indexFailure = outcome.text
  work.targetListing = undefined
  work.existingIndex = undefined
}

const titleOf = (value: unknown): string | undefined =>
  (field(value, "content") ?? "")
    .split("\n")
    .map((line) => line.replace(/^#+\s*/, "").trim())
    .find((line) => line !== "")
    ?.slice(0, 80)

const field = (value: unknown, key: string): string | undefined =>
  Predicate.hasProperty(value, key) && Predicate.isString(value[key]) ? value[key] : undefined
