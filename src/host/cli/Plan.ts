/**
 * What the embedded planner does next, as a pure function of the messages of a request. Nothing is remembered between
 * requests: the task, its corrections, and what was listed, read and moved are read back from the prompt, so a
 * repeated, retried or recovered request gets the same answer. Every answer calls tools it has not called too often
 * already, or ends the turn; so a turn always ends.
 *
 * @since 0.1.0
 */
import type { Prompt } from "effect/ai"
import { basename, label, matches, type Pattern, Statement, type Topic } from "./PlanGrammar.ts"
import {
  callKey,
  destination,
  indexPath,
  isWanted,
  moveKey,
  read,
  type Said,
  type Story,
  type Work
} from "./PlanStory.ts"
import { counted } from "./Style.ts"

/**
 * A tool call the planner asks for. Its id is `call_<n>`, the n-th call of the prompt.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly id: string
  readonly name: "list_files" | "read_file" | "write_file" | "move_file"
  readonly params: { readonly [key: string]: string }
}

/**
 * The next response: what to say, never blank, and what to call. Without calls it ends the turn.
 *
 * @category models
 * @since 0.1.0
 */
export interface Next {
  readonly text: string
  readonly calls: ReadonlyArray<Call>
}

/**
 * How much one response asks for. `filesPerStep` (2 unless said) is how many files it reads and moves; a long list takes
 * more, so that a task needs some thirty responses at most, or twice as many where `together` says that calls may run at
 * once: a file is then read in one response and moved in the next.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pace {
  readonly filesPerStep?: number | undefined
  readonly together?: boolean | undefined
}

/**
 * Decides the next response to a prompt.
 *
 * @category planning
 * @since 0.1.0
 */
export const next = (messages: ReadonlyArray<Prompt.Message>, options?: Pace): Next => {
  const story = read(messages)
  const { work } = story
  const step = work === undefined || !story.active ? idle : decide(story, work, options ?? {})
  const replies = story.said.flatMap((said) => reply(story, said, step.calls.length > 0))
  const calls = step.calls.map((call, index) => ({ ...call, id: `call_${story.nextCall + index}` }))
  return { text: [...replies, ...closing(story, step, replies.length > 0)].join(" "), calls }
}

type Ask = Omit<Call, "id">

interface Step {
  readonly text: string
  readonly calls: ReadonlyArray<Ask>
}

const idle: Step = { text: "", calls: [] }

const closing = (story: Story, step: Step, replied: boolean): ReadonlyArray<string> => {
  if (step.calls.length > 0) return [step.text]
  if (story.work === undefined) return replied && story.said.every(isRemark) ? [help] : replied ? [] : [help]
  if (!story.active) return replied ? [] : [history(story)]
  return replied && story.concluded && story.said.every(isRemark) ? [] : [summary(story, story.work)]
}

const help =
  "I sort the files of one directory into another. " +
  "For example: Sort the files of inbox/ into archive/2025 and write an index."

const isRemark = ({ statement }: Said): boolean =>
  statement._tag === "Question" ||
  statement._tag === "Courtesy" ||
  statement._tag === "Refused" ||
  statement._tag === "Unknown"

/** The next step of a task: list, then read and move, then index, then nothing. */
const decide = (story: Story, work: Work, { filesPerStep = 2, together = false }: Pace): Step => {
  if (work.listFailure !== undefined) return idle
  if (work.listing === undefined) {
    const list: Ask = { name: "list_files", params: { directory: work.source } }
    if (exhausted(work, list)) return idle
    const again = work.known.size > 0 ? `I look at ${work.source}/ again.` : `I list ${work.source}/ first.`
    return { text: again, calls: [list] }
  }
  const size = Math.max(1, filesPerStep, Math.ceil(work.listing.length / 20))
  const room = work.limit === undefined ? size : Math.min(size, Math.max(0, work.limit - work.moved.size))
  const batch = pending(work).slice(0, room)
  if (batch.length === 0) return decideIndex(story, work)
  const looks = batch.flatMap((file) => {
    const look: Ask = { name: "read_file", params: { path: file } }
    return story.titles.has(file) || exhausted(work, look) ? [] : [{ file, look }]
  })
  if (together && looks.length > 0) {
    return { text: `Reading ${names(looks.map(({ file }) => file))}.`, calls: looks.map(({ look }) => look) }
  }
  return {
    text: `${together ? "Moving" : "Reading and moving"} ${names(batch)} to ${work.target}.`,
    calls: batch.flatMap((file) => [
      ...looks.flatMap((each) => (each.file === file ? [each.look] : [])),
      move(work, file)
    ])
  }
}

const decideIndex = (story: Story, work: Work): Step => {
  const lines = indexLines(story, work)
  if (!work.index || lines.length === 0 || work.indexFailure !== undefined) return idle
  const path = indexPath(work)
  const list: Ask = { name: "list_files", params: { directory: work.target } }
  const look: Ask = { name: "read_file", params: { path } }
  if (work.targetListing === undefined) {
    return exhausted(work, list) ? idle : { text: `I look at what ${work.target} holds.`, calls: [list] }
  }
  if (work.targetListing.includes(path) && work.existingIndex === undefined) {
    return exhausted(work, look) ? idle : { text: "I read the index that is there, to extend it.", calls: [look] }
  }
  const head = work.existingIndex === undefined ? "# Index\n\n" : `${work.existingIndex.trimEnd()}\n`
  const write: Ask = { name: "write_file", params: { path, content: `${head}${lines.join("\n")}\n` } }
  return exhausted(work, write) ? idle : { text: `Writing ${path}.`, calls: [write] }
}

const move = (work: Work, file: string): Ask => ({
  name: "move_file",
  params: { from: file, to: destination(work, file) }
})

/** A call withheld by a correction is worth asking for again, but not for ever. */
const exhausted = (work: Work, call: Ask): boolean =>
  (work.attempts.get(callKey(call.name, call.params)) ?? 0) >= work.people + 3

const open = (work: Work): ReadonlyArray<string> =>
  (work.listing ?? Array.from(work.known)).filter((file) => !work.moved.has(file) && isWanted(work, file))

const pending = (work: Work): ReadonlyArray<string> =>
  open(work).filter(
    (file) => !work.failures.has(moveKey(file, destination(work, file))) && !exhausted(work, move(work, file))
  )

/** One line a moved file that no index written or read so far has. */
const indexLines = (story: Story, work: Work): ReadonlyArray<string> => {
  const written = [...story.indexes.map((index) => index.content), work.existingIndex ?? ""]
  const known = new Set(written.flatMap((content) => content.split("\n")))
  return Array.from(
    work.moved,
    ([from, to]) => `- ${to}: ${story.titles.get(from) ?? "(not read)"} (from ${from})`
  ).filter((line) => !known.has(line))
}

const reply = (story: Story, { opening, statement }: Said, goesOn: boolean): ReadonlyArray<string> => {
  const { work } = story
  const rest = goesOn ? " I go on." : ""
  const noTask = ["There is no task yet that this could correct."]
  const about = (answer: (work: Work) => string): ReadonlyArray<string> =>
    work === undefined ? noTask : [answer(work)]
  return Statement.$match(statement, {
    Sort: ({ only }) =>
      work === undefined || (opening && only.length === 0)
        ? []
        : [`Understood: I sort ${only.length > 0 ? patterns(only) : "all"} of ${work.source}/ into ${work.target}.`],
    Skip: (said) =>
      about((work) => `Understood: I skip ${patterns(said.patterns)}.${consequence(work, said.patterns)}`),
    Include: (said) => about(() => `Understood: I include ${patterns(said.patterns)}.`),
    Only: (said) =>
      about((work) => `Understood: I move only ${patterns(said.patterns)}.${unmatched(work, said.patterns)}`),
    Target: ({ path }) => about((work) => `Understood: the target is ${path}.${stay(work, path)}`),
    StopAfter: () => about(limitReply),
    StopNow: () => about(() => "Understood: I move no more files."),
    Index: ({ write }) => (opening && write ? [] : about(() => `Understood: I write ${write ? "an" : "no"} index.`)),
    Continue: () => about((work) => (goesOn ? "Understood: I go on." : `Nothing of ${work.source}/ is left to move.`)),
    Question: ({ topic }) => [answer(story, topic)],
    Courtesy: () => [`All right.${rest}`],
    Refused: ({ why }) => [`I cannot do that: ${why}.${rest}`],
    Unknown: ({ text }) => [`I do not know how to do this: "${clip(text)}".${rest}`]
  })
}

const consequence = (work: Work, skipped: ReadonlyArray<Pattern>): string => {
  const late = Array.from(work.moved.keys()).filter((file) => skipped.some((pattern) => matches(pattern, file)))
  return late.length > 0
    ? ` ${names(late)} ${late.length === 1 ? "is" : "are"} moved already.`
    : unmatched(work, skipped)
}

const unmatched = (work: Work, named: ReadonlyArray<Pattern>): string => {
  const missing = named.filter((pattern) => !Array.from(work.known).some((file) => matches(pattern, file)))
  return work.known.size === 0 || missing.length === 0
    ? ""
    : ` No file of ${work.source}/ matches ${patterns(missing)}.`
}

const stay = (work: Work, path: string): string => {
  const elsewhere = Array.from(work.moved.values()).filter((to) => parent(to) !== path)
  return elsewhere.length === 0
    ? ""
    : ` ${files(elsewhere.length)} moved before ${elsewhere.length === 1 ? "stays where it is" : "stay where they are"}.`
}

const limitReply = (work: Work): string => {
  const left = work.limit === undefined ? 0 : work.limit - work.moved.size
  return left > 0
    ? `Understood: I stop after ${left === 1 ? "one more file" : `${left} more files`}.`
    : `Understood: ${files(work.moved.size)} ${work.moved.size === 1 ? "is" : "are"} moved already, so I move no more.`
}

const answer = (story: Story, topic: Topic): string => {
  const { work } = story
  if (topic === "history" || work === undefined) return history(story)
  switch (topic) {
    case "progress":
      return progress(work)
    case "remaining": {
      const left = open(work)
      return work.known.size === 0
        ? `I have not listed ${work.source}/ yet.`
        : left.length === 0
          ? "No file is left to move."
          : `Left to move: ${names(left)}.`
    }
    case "target":
      return `The files go to ${work.target}. ${progress(work)}`
    case "other":
      return `I have no answer to that. ${progress(work)}`
  }
}

const progress = (work: Work): string => {
  if (work.known.size === 0 && work.moved.size === 0) return "So far no file is moved."
  const total = work.moved.size + open(work).length
  return `So far ${work.moved.size} of ${files(total)} ${work.moved.size === 1 ? "is" : "are"} moved.`
}

const history = (story: Story): string => {
  if (story.moves.length === 0 && story.indexes.length === 0) return "So far I have changed no file."
  const places = new Map<string, Array<string>>()
  for (const { from, to } of story.moves) {
    const place = parent(to)
    places.set(place, [...(places.get(place) ?? []), from])
  }
  const written = Array.from(new Set(story.indexes.map((index) => index.path)))
  return [
    ...Array.from(places, ([place, from]) => `I moved ${files(from.length)} to ${place}: ${names(from)}.`),
    ...(written.length > 0 ? [`I wrote ${join(written)}.`] : [])
  ].join(" ")
}

/** Told when nothing is left to call: what is done, what is not, and why. */
const summary = (story: Story, work: Work): string => {
  if (work.listFailure !== undefined) return `I could not list ${work.source}/: ${work.listFailure}.`
  if (work.listing === undefined)
    return `I could not list ${work.source}/: the call was not carried out. Nothing more was done.`
  const moved = Array.from(work.moved.values())
  const places = Array.from(new Set(moved.map(parent)))
  const left = work.listing.filter((file) => !work.moved.has(file))
  const failed = left.flatMap((file) => {
    const why = work.failures.get(moveKey(file, destination(work, file)))
    return !isWanted(work, file) || why === undefined ? [] : [`${basename(file)} could not be moved: ${why}.`]
  })
  const dropped = open(work).filter(
    (file) => !work.failures.has(moveKey(file, destination(work, file))) && exhausted(work, move(work, file))
  )
  const stopped = pending(work)
  const skipped = left.filter((file) => !isWanted(work, file))
  const gone = Array.from(work.known).filter((file) => !work.moved.has(file) && !left.includes(file))
  const indexed = story.indexes.some((index) => index.path === indexPath(work))
  return [
    moved.length === 0 ? "No file was moved." : `Done: ${files(moved.length)} moved to ${join(places)}.`,
    ...(indexed && moved.length > 0 ? [`The index is ${indexPath(work)}.`] : []),
    ...(work.index && work.indexFailure !== undefined ? [`I did not write the index: ${work.indexFailure}.`] : []),
    ...(skipped.length > 0 ? [`Left in ${work.source}/ as you said: ${names(skipped)}.`] : []),
    ...(stopped.length > 0 ? [`Not moved because I was to stop: ${names(stopped)}.`] : []),
    ...failed,
    ...(dropped.length > 0 ? [`Asked for and not carried out: ${names(dropped)}.`] : []),
    ...(gone.length > 0
      ? [`No longer in ${work.source}/, though no move of mine reported success: ${names(gone)}.`]
      : []),
    ...(work.listingCut ? [`The listing of ${work.source}/ was cut; there are more files.`] : []),
    ...(work.corrections.length > 0 ? [`Corrections obeyed: ${work.corrections.map(correction).join("; ")}.`] : [])
  ].join(" ")
}

const correction = ({ after, label: text }: Work["corrections"][number]): string =>
  after === 0 ? text : `${text} (after ${files(after)})`

const patterns = (list: ReadonlyArray<Pattern>): string => join(list.map(label))
const files = (count: number): string => counted(count, "file")
const clip = (text: string): string => (text.length > 120 ? `${text.slice(0, 119)}…` : text)

const names = (paths: ReadonlyArray<string>): string =>
  paths.length > 12
    ? `${paths.slice(0, 12).map(basename).join(", ")} and ${paths.length - 12} more`
    : join(paths.map(basename))

const parent = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/"))) || "."

const join = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.slice(-1).join("")}`
