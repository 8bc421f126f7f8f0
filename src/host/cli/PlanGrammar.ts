/**
 * The small grammar in which a person tells the embedded planner what to do. `parse` maps a message to statements and
 * is honest about the rest: a clause outside the grammar becomes `Unknown`, one it may not obey becomes `Refused`, and
 * neither ever turns into something the person did not say.
 *
 * @since 0.1.0
 */
import { Data, Glob } from "effect"

/**
 * Which files a clause is about: a kind of file, a glob, or one name (with or without its directory or extension).
 *
 * @category models
 * @since 0.1.0
 */
export type Pattern = Data.TaggedEnum<{
  Kind: { readonly kind: "drafts" | "notes" }
  Glob: { readonly glob: string }
  Name: { readonly name: string }
}>

/**
 * Constructors and matcher of `Pattern`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Pattern = Data.taggedEnum<Pattern>()

/**
 * What a question asks for.
 *
 * @category models
 * @since 0.1.0
 */
export type Topic = "progress" | "history" | "remaining" | "target" | "other"

/**
 * One thing a person said. `Sort` is a task; `Skip` to `Continue` are corrections; the others change no plan.
 *
 * @category models
 * @since 0.1.0
 */
export type Statement = Data.TaggedEnum<{
  Sort: {
    readonly source: string | undefined
    readonly target: string | undefined
    readonly only: ReadonlyArray<Pattern>
    readonly text: string
  }
  Skip: { readonly patterns: ReadonlyArray<Pattern> }
  Include: { readonly patterns: ReadonlyArray<Pattern> }
  Only: { readonly patterns: ReadonlyArray<Pattern> }
  Target: { readonly path: string }
  StopAfter: { readonly files: number; readonly more: boolean }
  StopNow: {}
  Index: { readonly write: boolean }
  Continue: {}
  Question: { readonly topic: Topic }
  Courtesy: {}
  Refused: { readonly text: string; readonly why: string }
  Unknown: { readonly text: string }
}>

/**
 * Constructors and matcher of `Statement`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Statement = Data.taggedEnum<Statement>()

/**
 * How a pattern is written, as a person would.
 *
 * @category formatting
 * @since 0.1.0
 */
export const label: (pattern: Pattern) => string = Pattern.$match({
  Kind: ({ kind }) => kind,
  Glob: ({ glob }) => glob,
  Name: ({ name }) => name
})

/**
 * Whether a file, given by its workspace-relative path, is one of those a pattern names. Case does not matter.
 *
 * @category predicates
 * @since 0.1.0
 */
export const matches = (pattern: Pattern, path: string): boolean => {
  const full = path.toLowerCase()
  const base = basename(full)
  const isDraft = base.startsWith("draft-") || base.startsWith("draft.")
  return Pattern.$match(pattern, {
    Kind: ({ kind }) => (kind === "drafts" ? isDraft : base.endsWith(".md") && !isDraft),
    Glob: ({ glob }) => {
      const compiled = Glob.make(glob.toLowerCase().replace(/[[\]{}\\]/g, "\\$&"), { dot: true })
      return Glob.match(compiled, glob.includes("/") ? full : base)
    },
    Name: ({ name }) => {
      const wanted = name.toLowerCase()
      return wanted === full || wanted === base || (!wanted.includes(".") && wanted === base.replace(/\.[^.]+$/, ""))
    }
  })
}

/**
 * The last part of a `/`-separated path.
 *
 * @category paths
 * @since 0.1.0
 */
export const basename = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/**
 * Reads a message. The clauses may be joined by commas, full stops, semicolons, line ends, "and", "then" or "but";
 * a message with no clause of the grammar in it is one remark. Blank text gives no statement.
 *
 * @category parsing
 * @since 0.1.0
 */
export const parse = (text: string): ReadonlyArray<Statement> => {
  const whole = text.trim()
  if (whole === "") return []
  const statements: Array<Statement> = []
  for (const piece of pieces(whole)) {
    const statement = clause(piece)
    const previous = statements.at(-1)
    const more = statement._tag === "Unknown" ? listed(piece) : undefined
    if (more !== undefined && previous !== undefined && takesMore(previous)) {
      statements[statements.length - 1] = { ...previous, patterns: [...previous.patterns, more] }
    } else {
      statements.push(statement)
    }
  }
  const meant = statements.filter((statement) => statement._tag !== "Courtesy")
  if (meant.length === 0) return [Statement.Courtesy()]
  return meant.every((statement) => statement._tag === "Unknown") ? [remark(whole)] : meant
}

const separator = /;|\n|,|!|(?<=\?)\s|\.(?=\s|$)|\b(?:and|or|then|but)\b/i.source
const outsideQuotes = /(?=(?:[^"]*"[^"]*")*[^"]*$)/.source

const pieces = (text: string): ReadonlyArray<string> =>
  text
    .split(new RegExp(`(?:${separator})${outsideQuotes}`, "i"))
    .map((piece) => piece.trim())
    .filter((piece) => piece !== "")

type Listing = Extract<Statement, { readonly patterns: ReadonlyArray<Pattern> }>
const takesMore = (statement: Statement): statement is Listing =>
  statement._tag === "Skip" || statement._tag === "Only" || statement._tag === "Include"

/** A further item of a list, strict enough that "hurry" after "skip drafts and" is not one. */
const listed = (piece: string): Pattern | undefined => {
  const pattern = toPattern(piece)
  return pattern === undefined || (pattern._tag === "Name" && !/[."/]/.test(piece)) ? undefined : pattern
}

const courtesy =
  /^(?:thanks?|thank you.*|ok(?:ay)?|good(?: job)?|well done|great|nice|fine|perfect|cool|hello|hi|hey|yes|no|please)$/i
const filler = new RegExp(
  "^(?:please|actually|now|also|instead|ok(?:ay)?|hey|so|let's|let us" +
    "|(?:can|could|would) you(?: please)?|you (?:can|may|should)|i (?:want|would like|need) you to)\\s+",
  "i"
)
const questionWord =
  /^(?:how|what|which|where|when|why|who|is|are|was|were|did|do you|does|have|has|will|should|can i|may i)\b/i
const reportWord = /^(?:status|progress|report|summary|summari[sz]e)\b/i

const stripFillers = (piece: string): string => {
  const shorter = piece.replace(filler, "")
  return shorter === piece ? piece : stripFillers(shorter)
}

const clause = (piece: string): Statement => {
  if (courtesy.test(piece)) return Statement.Courtesy()
  if (reportWord.test(piece) || questionWord.test(piece)) return question(piece)
  const command = stripFillers(piece)
    .replace(/[\s?]+$/, "")
    .replace(/\s+please$/i, "")
  for (const rule of rules) {
    const found = rule.form.exec(command)
    if (found !== null) {
      const statement = rule.read(found, piece)
      if (statement !== undefined) return statement
    }
  }
  return piece.endsWith("?") ? question(piece) : Statement.Unknown({ text: piece })
}

const remark = (whole: string): Statement =>
  whole.endsWith("?") || questionWord.test(whole) ? question(whole) : Statement.Unknown({ text: whole })

const question = (text: string): Statement =>
  Statement.Question({
    topic: /\b(?:what (?:did|have) you|what (?:has|was) (?:been )?(?:done|happened)|what happened|report|summar)/i.test(
      text
    )
      ? "history"
      : /\b(?:left|remain(?:s|ing)?|still to)\b/i.test(text)
        ? "remaining"
        : /\b(?:where (?:do|are|will)|target|destination)\b/i.test(text)
          ? "target"
          : /\b(?:going|progress|far|status|done|long|many|ready|finished)\b/i.test(text)
            ? "progress"
            : "other"
  })

interface Rule {
  readonly form: RegExp
  /** Undefined when the words after all do not fit, and the next rule is tried. */
  readonly read: (found: RegExpExecArray, piece: string) => Statement | undefined
}

const group = (found: RegExpExecArray, index: number): string => found[index] ?? ""

const place = `("[^"]+"|'[^']+'|[^\\s"']+)`
const remaining =
  "(?:it|them|these|those|everything(?: else)?|(?:all )?the (?:rest|others)|the (?:other|remaining) files)"
const not = `(?:do not|don't|dont|never)`

const patternsOf = (words: string, make: (patterns: ReadonlyArray<Pattern>) => Statement): Statement | undefined => {
  const pattern = toPattern(words)
  return pattern === undefined ? undefined : make([pattern])
}

const skip = (words: string) => patternsOf(words, (patterns) => Statement.Skip({ patterns }))
const include = (words: string) => patternsOf(words, (patterns) => Statement.Include({ patterns }))
const only = (words: string) => patternsOf(words, (patterns) => Statement.Only({ patterns }))

/** Tried in this order; the first form that fits and reads wins. */
const rules: ReadonlyArray<Rule> = [
  {
    form: /^(?:continue|go on|go ahead|carry on|keep going|proceed|resume|finish|(?:finish|sort|move) the rest)$/i,
    read: () => Statement.Continue()
  },
  {
    form: /^(?:stop|finish|end|quit)\s+after\s+(the\s+next\s+)?(\w+)(\s+more)?(?:\s+files?)?$/i,
    read: (found) => stopAfter(group(found, 2), found[1] !== undefined || found[3] !== undefined)
  },
  {
    form: /^(?:only|just)\s+(\w+)(\s+more)?\s+files?$/i,
    read: (found) => stopAfter(group(found, 1), found[2] !== undefined)
  },
  {
    form: /^(?:stop|halt|enough|that's enough|that is enough)(?:\s+(?:now|here|it|moving(?: files)?))?$/i,
    read: () => Statement.StopNow()
  },
  {
    form: new RegExp(
      `^(?:no|skip|without|leave out|${not} (?:write|make|add|create))\\s+(?:(?:an?|the)\\s+)?index(?: file)?$`,
      "i"
    ),
    read: () => Statement.Index({ write: false })
  },
  {
    form: /^(?:write|make|add|create)\s+(?:an?|the)\s+index(?: file)?$/i,
    read: () => Statement.Index({ write: true })
  },
  {
    form: new RegExp(`^(?:include|also (?:move|include|sort)|unskip|${not} skip)\\s+(.+)$`, "i"),
    read: (found) => include(group(found, 1))
  },
  {
    form: new RegExp(`^(?:skip|ignore|exclude|omit|leave out|${not} (?:move|touch|sort|include))\\s+(.+)$`, "i"),
    read: (found) => skip(group(found, 1))
  },
  {
    form: /^leave\s+(.+?)\s+(?:alone|out|where they are|where it is|in place|untouched)$/i,
    read: (found) => skip(group(found, 1))
  },
  {
    form: /^(?:(?:move|sort|take|do)\s+)?(?:only|just)\s+(.+)$/i,
    read: (found) => only(group(found, 1))
  },
  {
    form: /^(?:(?:move|sort|take)\s+)?(.+?)\s+only$/i,
    read: (found) => only(group(found, 1))
  },
  {
    form: new RegExp(
      `^(?:use|take|make)\\s+${place}\\s+(?:as\\s+)?(?:(?:the|your|a)\\s+)?(?:new\\s+)?(?:target|destination)$`,
      "i"
    ),
    read: (found, piece) => target(group(found, 1), piece)
  },
  {
    form: new RegExp(
      `^(?:use|(?:switch|change) to)\\s+${place}(?:\\s+(?:instead|from now on|for the (?:rest|others)))?$`,
      "i"
    ),
    read: (found, piece) => (group(found, 1).includes("/") ? target(group(found, 1), piece) : undefined)
  },
  {
    form: new RegExp(
      `^(?:(?:change|set|switch)\\s+)?(?:the\\s+)?(?:target|destination)(?:\\s+(?:is|to)|\\s*[:=])?\\s+${place}$`,
      "i"
    ),
    read: (found, piece) => target(group(found, 1), piece)
  },
  {
    form: new RegExp(`^(?:move|put|sort|send)\\s+${remaining}\\s+(?:in|into|to|under)\\s+${place}$`, "i"),
    read: (found, piece) => target(group(found, 1), piece)
  },
  {
    form: /^(sort|tidy|organi[sz]e|archive|move|put)(?:\s+up)?\s+(.+?)(?:\s+(?:again|once more))?$/i,
    read: (found, piece) => {
      const put = /^put$/i.test(group(found, 1))
      return sort(put ? group(found, 2).replace(/\bin(?=\s+\S+$)/i, "into") : group(found, 2), piece)
    }
  }
]

const numbers = [
  "zero",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve"
]

const stopAfter = (word: string, more: boolean): Statement | undefined => {
  if (/^(?:this|file)$/i.test(word)) return Statement.StopAfter({ files: 1, more: true })
  const files = /^\d{1,6}$/.test(word) ? Number(word) : numbers.indexOf(word.toLowerCase())
  return files < 0 ? undefined : Statement.StopAfter({ files, more })
}

const unquote = (word: string): string => word.replace(/^["'`](.+)["'`]$/, "$1")

/** A usable directory of the workspace, or undefined. */
const directory = (word: string): string | undefined => {
  const path = unquote(word)
  const parts = path.split("/").filter((part, index) => part !== "." && (part !== "" || index === 0))
  if (path === "" || path.startsWith("/") || /^~|[\\:]/.test(path) || parts.includes("..")) return undefined
  return parts.filter((part) => part !== "").join("/") || "."
}

const refusedPath = (word: string, text: string): Statement =>
  Statement.Refused({ text, why: `${unquote(word)} is not a directory inside the workspace` })

const target = (word: string, text: string): Statement => {
  if (/^(?:it|that|this|them|the|another|other)$/i.test(word)) return Statement.Unknown({ text })
  const path = directory(word)
  return path === undefined ? refusedPath(word, text) : Statement.Target({ path })
}

const phrase = new RegExp(
  `^(.*?)\\s*\\b(into|to|under|of|in|from)\\s+(?:the\\s+)?${place}(?:\\s+(?:folder|directory))?$`,
  "i"
)
const generic = /^(?:(?:all|every|each|any|the|my|these|those|everything|it|of|files?)\s*)*$/i

const sort = (words: string, text: string): Statement | undefined => {
  let rest = words
  const places: { source?: string; target?: string } = {}
  for (let found = phrase.exec(rest); found !== null; found = phrase.exec(rest)) {
    const path = directory(group(found, 3))
    if (path === undefined) return refusedPath(group(found, 3), text)
    const role = /^(?:into|to|under)$/i.test(group(found, 2)) ? "target" : "source"
    if (places[role] !== undefined) return undefined
    places[role] = path
    rest = group(found, 1)
  }
  if (places.source === undefined && (rest.endsWith("/") || (places.target !== undefined && /^[\w-]+$/.test(rest)))) {
    const known = toPattern(rest)
    if (known === undefined || known._tag === "Name") {
      const path = directory(rest)
      if (path !== undefined && !generic.test(rest))
        return Statement.Sort({ ...wanted(places), source: path, only: [], text })
    }
  }
  if (generic.test(rest) || rest === "inbox") return Statement.Sort({ ...wanted(places), only: [], text })
  const pattern = toPattern(rest)
  if (pattern === undefined || (pattern._tag === "Name" && !/[./]/.test(rest))) {
    return places.target === undefined && places.source === undefined
      ? undefined
      : Statement.Refused({ text, why: `I cannot tell which files "${rest}" means` })
  }
  return Statement.Sort({ ...wanted(places), only: [pattern], text })
}

const wanted = (places: { readonly source?: string; readonly target?: string }) => ({
  source: places.source,
  target: places.target
})

const kinds: ReadonlyArray<readonly [form: RegExp, pattern: Pattern]> = [
  [/^drafts?$/i, Pattern.Kind({ kind: "drafts" })],
  [/^notes?$/i, Pattern.Kind({ kind: "notes" })],
  [/^(?:markdown|\.?md)s?$/i, Pattern.Glob({ glob: "*.md" })],
  [/^(?:texts?|\.?txts?)$/i, Pattern.Glob({ glob: "*.txt" })],
  [/^(?:tables?|spreadsheets?|\.?csvs?)$/i, Pattern.Glob({ glob: "*.csv" })]
]

const vague =
  /^(?:it|that|this|them|these|those|everything|all|any|others?|rest|ones?|something|files?|nothing|ahead|on)$/i

const toPattern = (words: string): Pattern | undefined => {
  const text = words
    .trim()
    .replace(/^(?:(?:the|all|any|every|each|my|of)\s+)+/i, "")
    .replace(/\s+(?:files?|ones)$/i, "")
    .replace(/^files?\s+(?:called|named|like)?\s*(?=\S)/i, "")
  const name = unquote(text).replace(/^\.\//, "")
  for (const [form, pattern] of kinds) {
    if (form.test(text)) return pattern
  }
  if (/^\.\w{1,8}$/.test(text)) return Pattern.Glob({ glob: `*${text}` })
  if (name === "" || vague.test(text) || (text === name && /\s/.test(text))) return undefined
  return /[*?]/.test(name) ? Pattern.Glob({ glob: name.replace(/\*{2,}/g, "*") }) : Pattern.Name({ name })
}
