/**
 * The terminal program: its flags, what it says at the start and at the end, and the code it exits with.
 *
 * @since 0.1.0
 */
import { Cause, Console, Effect, FileSystem, Layer, Option, Path, Ref } from "effect"
import type { PlatformError } from "effect"
import { CliConfig, CliError, CliOutput, Command, Flag, GlobalFlag } from "effect/cli"
import * as Ids from "../../domain/Ids.ts"
import { SessionStore, type StoredSession } from "../../ledger/SessionStore.ts"
import * as AgentRuntime from "../../runtime/AgentRuntime.ts"
import * as Answer from "./Answer.ts"
import * as Commands from "./Commands.ts"
import * as Conversation from "./Conversation.ts"
import * as FileTools from "./FileTools.ts"
import * as Model from "./Model.ts"
import type * as Past from "./Past.ts"
import * as Store from "./Store.ts"
import * as Style from "./Style.ts"
import * as Terminal from "./Terminal.ts"
import * as View from "./View.ts"
import * as Workspace from "./Workspace.ts"

/**
 * What the process exits with.
 *
 * @category constants
 * @since 0.1.0
 */
export const exitCodes = { finished: 0, failed: 1, misused: 2, interrupted: 130 } as const

/** Milliseconds: time to read and to type. */
const personsPace = 150
/** Milliseconds: quick, and yet a stream that lines come into the middle of. */
const pipedPace = 10

const defaultSession = "main"

const flags = {
  task: Flag.String("task").pipe(
    Flag.withDescription(`The task. Unless said, in a new session: ${Workspace.defaultTask}`),
    Flag.withMetavar("TEXT"),
    Flag.filter(
      (task) => task.trim() !== "",
      () => "a task that is not blank"
    ),
    Flag.optional
  ),
  workspace: Flag.String("workspace").pipe(
    Flag.withDescription("Work in this directory, on its own files, instead of a scratch one. Nothing removes it"),
    Flag.withMetavar("DIR"),
    Flag.optional
  ),
  keep: Flag.Boolean("keep").pipe(
    Flag.withDescription("Keep the scratch directory instead of removing it at the end"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  ),
  model: Flag.String("model").pipe(
    Flag.withDescription(`The server's model, with OPENAI_API_KEY set. Unless said: ${Model.defaultName}`),
    Flag.withMetavar("NAME"),
    Flag.optional
  ),
  pace: Flag.Int("pace").pipe(
    Flag.withDescription(
      `The embedded planner's wait before each word, in milliseconds: ${personsPace} at a terminal, ${pipedPace} in a pipe`
    ),
    Flag.withMetavar("MS"),
    Flag.filter(
      (pace) => pace >= 0 && pace <= 60_000,
      () => "a number from 0 to 60000"
    ),
    Flag.optional
  ),
  parallel: Flag.Int("parallel").pipe(
    Flag.withDescription("How many tool calls of one response may run at once"),
    Flag.withMetavar("N"),
    Flag.filter(
      (parallel) => parallel >= 1 && parallel <= 16,
      () => "a number from 1 to 16"
    ),
    Flag.withDefault(1)
  ),
  approve: Flag.Boolean("approve").pipe(
    Flag.withDescription("Ask before each call that writes or moves a file; /approve and /deny answer"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  ),
  store: Flag.String("store").pipe(
    Flag.withDescription("Keep the session in this file, an SQLite database, and its scratch directory beside it"),
    Flag.withMetavar("FILE"),
    Flag.filter(
      (store) => store.trim() !== "",
      () => "the name of a file"
    ),
    Flag.optional
  ),
  session: Flag.String("session").pipe(
    Flag.withDescription(`Which session of the store. Unless said: ${defaultSession}`),
    Flag.withMetavar("ID"),
    Flag.filter(
      (id) => Ids.isId(id),
      () => "1 to 128 printable ASCII characters"
    ),
    Flag.optional
  ),
  resume: Flag.Boolean("resume").pipe(
    Flag.withDescription("Go on with a run that was cut off by the end of its process, instead of ending it"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  ),
  list: Flag.Boolean("list").pipe(
    Flag.withDescription("List the sessions of the store, and no more"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  )
}

const description = [
  "An agent works through real files while you correct it. Every line you type is an input with a receipt: queued, then",
  "applied in request N, held, unknown or refused, with the reason. A line that comes too late is refused and starts nothing.",
  "",
  "Lines:",
  ...Commands.help.map((line) => `  ${line}`),
  "",
  "Ctrl-C ends the run, a second one the program. Piped lines are submitted one after the other from the first request on;",
  "the program then ends when its input has ended and nothing goes on by itself. Piped answers wait for their question.",
  "",
  "With --store the session outlives the program: start it again with the same file and it says what became of everything,",
  "runs what was queued, and takes lines. What was paused, and what waits for an answer, is kept as it stands; /quit ends it.",
  "",
  "Environment:",
  `  OPENAI_API_KEY   use a server that speaks the OpenAI protocol instead of the embedded planner`,
  `  OPENAI_BASE_URL  its address. Unless set: ${Model.defaultBaseUrl}`,
  "  NO_COLOR, FORCE_COLOR",
  "",
  "Exit codes: 0 finished, stopped or cancelled; 1 a run failed or used up its budget, or the store is unusable;\n  2 bad usage or a refused task; 130 ended by Ctrl-C."
].join("\n  ")

type Given = Command.Command.Config.Infer<typeof flags>

/** The command, which leaves its exit code in `code`. */
const command = (code: Ref.Ref<number>) =>
  Command.make("midcourse", flags, (given) =>
    Effect.gen(function* () {
      const kept = yield* keep(given)
      if (kept !== undefined && given.list) return yield* say(...listing(kept.store, yield* Store.list(kept.store)))
      const { interactive, palette } = yield* Terminal.Terminal
      const model = yield* Model.choose({
        name: Option.getOrUndefined(given.model),
        pace: Option.getOrElse(given.pace, () => (interactive ? personsPace : pipedPace)),
        together: given.parallel > 1
      })
      const directory = Option.getOrUndefined(given.workspace)
      const workspace = yield* Workspace.open({ directory, store: kept?.store.file, keep: given.keep })
      const isNew = kept === undefined || kept.past.sequence === 0
      const task = Option.getOrElse(given.task, () => (isNew ? Workspace.defaultTask : undefined))
      yield* say(...(yield* opening({ task, model, workspace, kept })))
      const { approve, parallel } = given
      const ended = yield* Conversation.hold({ task, hint: model.hint, approve, parallel, kept }).pipe(
        Effect.provide(Layer.mergeAll(runtime(kept), model.layer, FileTools.layer(workspace.root)))
      )
      yield* say("", ...Answer.table(palette, ended.runs, ended.rows), "", ...(yield* closing(workspace)))
      yield* Ref.set(code, codeOf(ended))
    }).pipe(Effect.scoped, Effect.provide(Terminal.layer))
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: "midcourse", description: "Watch it work in a scratch directory, and type" },
      { command: "printf 'skip drafts\\n' | midcourse", description: "Correct it from a script" },
      { command: "midcourse --store work.db", description: "Keep the session: start it again after whatever happened" },
      { command: 'midcourse --workspace . --task "Sort downloads/ into sorted"', description: "On files of your own" }
    ])
  )

interface Kept {
  readonly store: Store.Store
  readonly id: Ids.SessionId
  readonly recovery: "settle" | "resume"
  readonly past: Past.Past
}

/** The session in the store that the command line names, if it names one. */
const keep = Effect.fnUntraced(function* (given: Given) {
  const name = Option.getOrUndefined(given.store)
  if (name === undefined) {
    if (Option.isNone(given.session) && !given.resume && !given.list) return undefined
    const flag = Option.isSome(given.session) ? "--session" : given.resume ? "--resume" : "--list"
    return yield* new Model.Misuse({ detail: `${flag} is about a store: name its file with --store FILE` })
  }
  const store = yield* Store.open(name, { mustExist: given.list })
  const id = Ids.SessionId.make(Option.getOrElse(given.session, () => defaultSession))
  const kept: Kept = {
    store,
    id,
    recovery: given.resume ? "resume" : "settle",
    past: yield* Store.past(store, id)
  }
  return kept
})

const runtime = (kept: Kept | undefined): Layer.Layer<AgentRuntime.AgentRuntime> =>
  kept === undefined
    ? AgentRuntime.layerMemory
    : Layer.provide(AgentRuntime.layer, Layer.succeed(SessionStore, kept.store.sessions))

const listing = (store: Store.Store, sessions: ReadonlyArray<StoredSession>): ReadonlyArray<string> => {
  const width = Math.max(0, ...sessions.map(({ id }) => id.length))
  return sessions.length === 0
    ? [`there is no session in ${store.file}`]
    : sessions.map(
        ({ agent, id, sequence }) => `${id.padEnd(width)}  ${Style.clean(agent)}  ${Style.counted(sequence, "event")}`
      )
}

/**
 * Runs the program with these arguments; succeeds with the exit code, whatever happens. Every failure is one message on
 * standard error.
 *
 * @category running
 * @since 0.1.0
 */
export const run = (args: ReadonlyArray<string>): Effect.Effect<number, never, Command.Environment> =>
  Effect.gen(function* () {
    const code = yield* Ref.make<number>(exitCodes.finished)
    yield* Command.runWith(command(code), { version: Terminal.version() })(args)
    return yield* Ref.get(code)
  }).pipe(
    Effect.provide([
      CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] }),
      CliOutput.layerPresenter(presenter)
    ]),
    Effect.catchCause((cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(exitCodes.interrupted)
      const error = Cause.squash(cause)
      if (CliError.isCliError(error)) return Effect.succeed(exitCodes.misused)
      const misused = error instanceof Model.Misuse || error instanceof Workspace.WorkspaceError
      return Effect.as(
        Effect.sync(() => Terminal.complain(error instanceof Error ? error.message : String(error))),
        misused ? exitCodes.misused : exitCodes.failed
      )
    })
  )

/** Help goes out as it is; a bad command line is one message, not the whole help again. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    Effect.suspend(() => {
      if (event._tag === "InvalidInvocation") {
        const wrong = event.errors.map((error) => error.message.replace(/\s+/g, " ").trim()).join("; ")
        return Effect.sync(() => Terminal.complain(`${wrong}. Run it with --help to see what there is`))
      }
      const formatter = CliOutput.defaultFormatter({ colors: Terminal.coloursOutput() })
      return Console.log(
        event._tag === "Help" ? formatter.formatHelpDoc(event.helpDoc) : `${event.name} ${event.version}`
      )
    })
}

const say = (...texts: ReadonlyArray<string>): Effect.Effect<void, never, Terminal.Terminal> =>
  Terminal.Terminal.use((terminal) => terminal.show(...texts.map((text) => View.Piece.Line({ text }))))

const codeOf = (ended: Conversation.Ended): number => {
  if (ended.refused) return exitCodes.misused
  if (ended.by === "interrupt" || (ended.by === "input" && ended.interrupted)) return exitCodes.interrupted
  return ended.failed ? exitCodes.failed : exitCodes.finished
}

const opening = Effect.fnUntraced(function* (about: {
  readonly task: string | undefined
  readonly model: Model.Model
  readonly workspace: Workspace.Workspace
  readonly kept: Kept | undefined
}) {
  const { interactive, palette } = yield* Terminal.Terminal
  const { kept, task, workspace } = about
  const fate =
    workspace.origin === "adopted" ? "yours" : workspace.kept ? "scratch, kept" : "scratch, removed at the end"
  return [
    `${palette.strong(`midcourse ${Terminal.version()}`)}`,
    `model      ${about.model.name}`,
    ...(kept === undefined ? [] : [`session    ${kept.id} in ${kept.store.file} (${ageOf(kept.past)})`]),
    `workspace  ${workspace.root} (${fate})`,
    ...(task === undefined ? [] : [`task       ${Style.clip(Style.clean(task), 200)}`]),
    ...(interactive ? [palette.dim("Type a correction and press Enter at any time. /help lists the commands.")] : []),
    ""
  ]
})

const ageOf = ({ inputs, sequence }: Past.Past): string =>
  sequence === 0 ? "new" : `${Style.counted(inputs.length, "input")} and ${sequence} events so far`

const shownFiles = 40

/** What a scratch workspace holds now, which is all there is to see of one that is about to be removed. */
const closing = Effect.fnUntraced(function* (workspace: Workspace.Workspace) {
  const { palette } = yield* Terminal.Terminal
  if (workspace.origin === "adopted") return [`The files are in ${workspace.root}`]
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const places = new Map<string, Array<string>>()
  const walk = (directory: string): Effect.Effect<void, PlatformError.PlatformError> =>
    Effect.gen(function* () {
      const entries = Array.from(yield* fs.readDirectoryEntries(path.join(workspace.root, directory)))
      const files = entries.flatMap((entry) => (entry.type === "File" ? [entry.name] : [])).sort()
      if (files.length > 0 || entries.length === 0) places.set(directory, files)
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        if (entry.type === "Directory") yield* walk(directory === "" ? entry.name : `${directory}/${entry.name}`)
      }
    })
  yield* walk("")
  return [
    palette.strong(workspace.kept ? `files, kept in ${workspace.root}` : "files"),
    ...Array.from(places, ([place, files]) => {
      const more = files.length > shownFiles ? ` and ${files.length - shownFiles} more` : ""
      return `  ${place || "."}/  ${files.slice(0, shownFiles).map(Style.clean).join(", ") || "(empty)"}${more}`
    })
  ]
})
