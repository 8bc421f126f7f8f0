/**
 * A session's events as lines to read. Pure: an event and what has been seen so far give the pieces to show and what is
 * to be remembered. It shows what the events say and no more: a call that was withheld is never shown as started, a
 * correction is `queued` until a request is announced that carries it.
 *
 * @since 0.1.0
 */
import { Data, Predicate } from "effect"
import type { SessionEvent } from "../../domain/Event.ts"
import type { GenerationId, InputId, ToolCallId } from "../../domain/Ids.ts"
import * as Pauses from "./Pauses.ts"
import * as Style from "./Style.ts"

/**
 * What to show next. `Text` goes on with the open line and `Close` ends it; `Finish` ends it with `rest` if it is still
 * the one begun last, and is `whole`, a line of its own, where it is not.
 *
 * @category models
 * @since 0.1.0
 */
export type Piece = Data.TaggedEnum<{
  Line: { readonly text: string }
  Text: { readonly text: string }
  Close: {}
  Finish: { readonly rest: string; readonly whole: string }
}>

/**
 * Constructors and matcher of `Piece`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Piece = Data.taggedEnum<Piece>()

/**
 * What the events so far leave to be remembered.
 *
 * @category models
 * @since 0.1.0
 */
export interface View {
  readonly palette: Style.Palette
  /** The generations in the order they started: what a person reads is `run 1`, `run 2`. */
  readonly runs: ReadonlyArray<GenerationId>
  /** The calls requested and not yet settled, by what they are called in a line. */
  readonly calls: ReadonlyMap<ToolCallId, string>
  /** The questions about those of them that were asked about. */
  readonly questions: ReadonlyMap<ToolCallId, Question>
  /** How many questions have been asked so far. */
  readonly asked: number
  /** The generation that was handed on as it stood, if the last one was. */
  readonly parked: GenerationId | undefined
  /** What the open line is, if one is open. */
  readonly open: { readonly _tag: "Words" } | { readonly _tag: "Call"; readonly id: ToolCallId } | undefined
  /** What of the current response has been shown. */
  readonly shown: string
  readonly thinking: boolean
  /** Why the last request failed: said once while the same happens again. */
  readonly failure: string | undefined
  readonly tally: { readonly requests: number; readonly inputTokens: number; readonly outputTokens: number }
}

/**
 * A question about a call, by the number it is shown with. It is open until it is answered or asked no more.
 *
 * @category models
 * @since 0.1.0
 */
export interface Question {
  readonly call: ToolCallId
  readonly number: number
  readonly label: string
  readonly open: boolean
}

const fresh: View["tally"] = { requests: 0, inputTokens: 0, outputTokens: 0 }

/** @category constructors @since 0.1.0 */
export const make = (palette: Style.Palette): View => ({
  palette,
  runs: [],
  calls: new Map(),
  questions: new Map(),
  asked: 0,
  parked: undefined,
  open: undefined,
  shown: "",
  thinking: false,
  failure: undefined,
  tally: fresh
})

type Shown = readonly [View, ReadonlyArray<Piece>]

/**
 * The questions that wait for an answer, the oldest first.
 *
 * @category queries
 * @since 0.1.0
 */
export const asking = ({ questions }: View): ReadonlyArray<Question> =>
  Array.from(questions.values())
    .filter(({ open }) => open)
    .sort((a, b) => a.number - b.number)

/**
 * A question was answered; its call may still wait to be launched.
 *
 * @category reducers
 * @since 0.1.0
 */
export const answered = (view: View, call: ToolCallId): View => {
  const question = view.questions.get(call)
  return question === undefined
    ? view
    : { ...view, questions: new Map(view.questions).set(call, { ...question, open: false }) }
}

/**
 * Takes note of an event that was shown before, by another process.
 *
 * @category reducers
 * @since 0.1.0
 */
export const recall = (view: View, event: SessionEvent): View => ({
  ...next(view, event)[0],
  open: undefined,
  shown: "",
  thinking: false,
  failure: undefined
})

/**
 * Shows one event.
 *
 * @category rendering
 * @since 0.1.0
 */
export const next = (view: View, event: SessionEvent): Shown => {
  const { palette } = view
  switch (event.type) {
    case "generation.started": {
      const runs = [...view.runs, event.generation_id]
      const started = `run ${runs.length} starts with ${event.input_ids.join(", ")}`
      return lines({ ...view, runs, tally: fresh, failure: undefined }, palette.dim(started))
    }
    case "generation.resumed": {
      // Whoever goes on with it asks again: until then nobody would hear an answer.
      const questions = new Map(Array.from(view.questions, ([id, each]) => [id, { ...each, open: false }]))
      const after = event.request === undefined || event.request === 0 ? "" : ` after request ${event.request}`
      return lines(
        { ...view, questions, parked: undefined },
        palette.dim(`${runOf(view, event.generation_id)} goes on${after}`)
      )
    }
    case "generation.parked": {
      const parked = `${runOf(view, event.generation_id)} is kept as it stands, and goes on when the session is opened again`
      return lines({ ...view, parked: event.generation_id }, palette.waiting(parked))
    }
    case "stop.requested":
      return lines(view, palette.waiting("stop accepted: what runs may finish, nothing more starts"))
    case "cancel.requested":
      return event.cause === "close"
        ? lines(view, palette.waiting("the session closes: what runs is interrupted"))
        : lines(view, palette.waiting("cancel accepted: what runs is interrupted"))
    case "generation.finished":
    case "generation.failed":
    case "generation.stopped":
    case "generation.cancelled":
    case "generation.exhausted":
      return ended(view, event)
    case "request.started": {
      const head = palette.strong(`request ${event.request}`)
      const applied = event.input_ids.map((id) => note(id, palette.good(`applied in request ${event.request}`)))
      return lines({ ...view, shown: "", thinking: false }, head, ...applied)
    }
    case "request.completed": {
      const { inputTokens, outputTokens, requests } = view.tally
      const tally = {
        requests: requests + 1,
        inputTokens: inputTokens + event.usage.inputTokens,
        outputTokens: outputTokens + event.usage.outputTokens
      }
      return lines({ ...view, tally, failure: undefined })
    }
    case "request.failed": {
      const why = event.error.message
      const said = !event.retry || view.failure === why ? "" : `: ${words(why).replace(/\.$/, "")}`
      const then = event.retry ? "; trying again" : ""
      return lines({ ...view, failure: why }, palette.bad(`request ${event.request} failed${said}${then}`))
    }
    case "text.delta":
      return said(view, event.text)
    case "reasoning.delta":
      return view.thinking ? [view, []] : lines({ ...view, thinking: true }, palette.dim("  (thinking)"))
    case "assistant.message":
      return view.shown === event.text || event.text.trim() === ""
        ? lines(view)
        : lines(view, ...event.text.split("\n").map((line) => `  ${Style.clean(line)}`))
    case "input.accepted": {
      const how = event.intent === "follow-up" || event.intent === "collect" ? "queued for a later run" : "queued"
      return aside(view, note(event.input_id, `${palette.waiting(how)} (${event.intent})`))
    }
    case "steering.held":
      return aside(view, note(event.input_id, palette.waiting(`held (${event.reason})`)))
    case "steering.unknown":
      return aside(view, note(event.input_id, palette.bad(`unknown (${event.reason})`)))
    case "steering.not_carried":
      return aside(view, note(event.input_id, palette.bad(`not carried by request ${event.request} (${event.reason})`)))
    case "tool.requested": {
      const label = callLabel(event.tool, event.params)
      return [{ ...view, calls: new Map(view.calls).set(event.call_id, label) }, []]
    }
    case "tool.started": {
      const [closed, pieces] = lines(view)
      const open = { _tag: "Call", id: event.call_id } as const
      return [
        { ...closed, open, questions: without(view.questions, event.call_id) },
        [...pieces, Piece.Text({ text: `  ${labelOf(view, event)} ...` })]
      ]
    }
    case "tools.admitted": {
      const labels = event.call_ids.map((id) => view.calls.get(id) ?? id)
      return labels.length > 1 ? lines(view, palette.dim(`  launched together: ${labels.join("; ")}`)) : [view, []]
    }
    case "tool.approval_requested": {
      const label = labelOf(view, event)
      const number = view.questions.get(event.call_id)?.number ?? view.asked + 1
      const question: Question = { call: event.call_id, number, label, open: true }
      const questions = new Map(view.questions).set(event.call_id, question)
      const answers = `/approve ${number} or /deny ${number} REASON`
      return lines(
        { ...view, questions, asked: Math.max(view.asked, number) },
        `  ${palette.waiting(`question ${number}`)}: ${label}: ${words(event.reason)} ${palette.dim(answers)}`,
        ...longOnes(event.params).map((text) => `    ${text}`)
      )
    }
    case "tool.progress":
      return [view, []]
    case "tool.completed":
      return event.is_failure
        ? settled(view, event, palette.bad(`failed: ${failureOf(event.result)}`))
        : settled(view, event, palette.good(`done${outcomeOf(event.result)}`))
    case "tool.failed":
      return settled(view, event, palette.bad(`failed: ${words(event.reason)}`))
    case "tool.denied":
      return settled(view, event, palette.bad(`denied: ${words(event.reason)}`))
    case "tool.not_started": {
      const by = event.input_ids === undefined ? "" : `: ${event.input_ids.join(", ")} came first`
      const detail = event.detail === undefined ? "" : `: ${words(event.detail)}`
      return settled(view, event, palette.waiting(`not started (${event.reason})${by}${detail}`))
    }
    case "tool.interrupted":
      return settled(view, event, palette.bad(`interrupted (${event.cause}); effects: ${event.effects}`))
    case "pause.requested": {
      const until = Pauses.condition(event.until, event.time)
      return lines(
        view,
        palette.waiting(`pause${Pauses.about(event.scope)} accepted: what runs may finish; it lasts until ${until}`)
      )
    }
    case "pause.effective":
      return lines(
        view,
        palette.waiting(
          `pause${Pauses.about(event.scope)} in effect: ${event.scope === undefined ? "nothing" : "none of their calls"} runs`
        )
      )
    case "pause.ended":
      return lines(view, palette.good(`pause${Pauses.about(event.scope)} ended`))
    case "session.recovered": {
      const { lost_generation_id: lost } = event
      if (lost === undefined || lost === view.parked) return lines(view, palette.dim("the session is open again"))
      const run = runOf(view, lost)
      return lines(
        view,
        palette.waiting(`the session is open again; the process that ran ${run} had ended in the middle of it`)
      )
    }
    // Receipts are shown from the caller's own hand, and the rest says nothing a person would act on.
    case "input.refused":
    case "input.delivered":
    case "input.completed":
    case "steering.accepted":
    case "steering.applied":
    case "checkpoint.saved":
    case "session.idle":
    case "session.closed":
      return [view, []]
  }
}

/**
 * What a person reads for a generation: `run 1`, or its id if it is none of this session's.
 *
 * @category formatting
 * @since 0.1.0
 */
export const runOf = ({ runs }: Pick<View, "runs">, id: string): string => {
  const at = runs.findIndex((run) => run === id)
  return at < 0 ? id : `run ${at + 1}`
}

/**
 * A line about one input.
 *
 * @category formatting
 * @since 0.1.0
 */
export const note = (id: InputId | string, what: string): string => `* ${id} ${what}`

type Ended = Extract<SessionEvent, { readonly type: `generation.${string}`; readonly accepted_input_ids: unknown }>

const ended = (view: View, event: Ended): Shown => {
  const { palette, tally } = view
  const outcome = event.type.slice("generation.".length)
  const paint = event.type === "generation.finished" ? palette.good : palette.bad
  const why = event.error === undefined ? "" : `: ${words(event.error.message)}`
  const counts = `${Style.counted(tally.requests, "request")} completed`
  const tokens = `${tally.inputTokens} tokens in, ${tally.outputTokens} out`
  return lines(
    { ...view, calls: new Map(), questions: new Map() },
    paint(`${runOf(view, event.generation_id)} ${outcome}${why}`),
    palette.dim(`  ${counts}, ${tokens}`)
  )
}

/** Ends the open line, then shows whole ones. */
const lines = (view: View, ...texts: ReadonlyArray<string>): Shown => [
  view.open === undefined ? view : { ...view, open: undefined },
  [...(view.open === undefined ? [] : [Piece.Close()]), ...texts.map((text) => Piece.Line({ text }))]
]

/** Shows a line that does not end what is being said or done. */
const aside = (view: View, text: string): Shown => [view, [Piece.Line({ text })]]

const said = (view: View, delta: string): Shown => {
  const shown = view.shown + delta
  const [before, pieces] = view.open?._tag === "Call" ? lines(view) : ([view, []] as Shown)
  const shows: Array<Piece> = [...pieces]
  let { open } = before
  for (const [index, line] of delta.split("\n").entries()) {
    if (index > 0 && open !== undefined) {
      shows.push(Piece.Close())
      open = undefined
    }
    const text = open === undefined ? Style.clean(line).trimStart() : Style.clean(line)
    if (text === "") continue
    shows.push(Piece.Text({ text: open === undefined ? `  ${text}` : text }))
    open = { _tag: "Words" }
  }
  return [{ ...before, open, shown }, shows]
}

interface Call {
  readonly call_id: ToolCallId
  readonly tool: string
}

const labelOf = (view: View, { call_id, tool }: Call): string => view.calls.get(call_id) ?? tool

const without = <Value>(map: ReadonlyMap<ToolCallId, Value>, id: ToolCallId): ReadonlyMap<ToolCallId, Value> => {
  const left = new Map(map)
  left.delete(id)
  return left
}

const settled = (view: View, call: Call, what: string): Shown => {
  const left = { calls: without(view.calls, call.call_id), questions: without(view.questions, call.call_id) }
  const whole = `  ${labelOf(view, call)} ... ${what}`
  return view.open?._tag === "Call" && view.open.id === call.call_id
    ? [{ ...view, ...left, open: undefined }, [Piece.Finish({ rest: ` ${what}`, whole })]]
    : aside({ ...view, ...left }, whole)
}

/** A call in few words: its plain parameters, and the size of the long ones. */
const callLabel = (tool: string, params: unknown): string => {
  const values = Predicate.isObject(params) ? Object.entries(params) : []
  const isMove = values.length === 2 && Predicate.hasProperty(params, "from") && Predicate.hasProperty(params, "to")
  const parts = isMove ? [moveLabel(String(params.from), String(params.to))] : values.map(valueLabel)
  return Style.clip(Style.clean([tool, ...parts].join(" ")), 100)
}

/** The name of a file that keeps its name is said once. */
const moveLabel = (from: string, to: string): string => {
  const directory = to.slice(0, to.lastIndexOf("/") + 1)
  const keeps = directory !== "" && from.slice(from.lastIndexOf("/") + 1) === to.slice(directory.length)
  return `${from} -> ${keeps ? directory : to}`
}

/** The beginnings of the parameters that a call's label only measures. */
const longOnes = (params: unknown): ReadonlyArray<string> =>
  Predicate.isObject(params)
    ? Object.entries(params).flatMap(([name, value]) =>
        Predicate.isString(value) && isLong(value) ? [`${name}: ${Style.clip(Style.clean(value), 300)}`] : []
      )
    : []

const isLong = (value: string): boolean => value.length > 60 || value.includes("\n")

const valueLabel = ([name, value]: readonly [string, unknown]): string => {
  if (!Predicate.isString(value)) return `${name}=${Style.clip(JSON.stringify(value) ?? "", 30)}`
  return isLong(value) ? `(${name}: ${value.length} characters)` : value
}

const outcomeOf = (result: unknown): string =>
  Predicate.hasProperty(result, "files") && Array.isArray(result.files)
    ? `: ${Style.counted(result.files.length, "file")}`
    : ""

const failureOf = (result: unknown): string => {
  const detail =
    Predicate.hasProperty(result, "detail") && Predicate.isString(result.detail)
      ? result.detail
      : Predicate.isString(result)
        ? result
        : JSON.stringify(result)
  return words(detail)
}

const words = (text: string): string => Style.clip(Style.clean(text).trim(), 400)
