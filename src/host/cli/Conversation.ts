/**
 * One session at the terminal: the task as its first prompt, every event shown as it comes, every line understood and
 * answered, until the input ends and nothing goes on by itself, or the person quits. A kept session is taken up where an
 * earlier start left it.
 *
 * @since 0.1.0
 */
import { Clock, Effect, Exit, Fiber, Option, Queue, Ref, Scope, Stream } from "effect"
import type { LanguageModel } from "effect/ai"
import * as Agent from "../../domain/Agent.ts"
import { isTerminal, type SessionEvent } from "../../domain/Event.ts"
import type { GenerationId, SessionId } from "../../domain/Ids.ts"
import type { SessionError } from "../../domain/SessionError.ts"
import * as ToolPolicy from "../../engine/ToolPolicy.ts"
import * as AgentRuntime from "../../runtime/AgentRuntime.ts"
import type { Session } from "../../runtime/Session.ts"
import * as Answer from "./Answer.ts"
import * as FileTools from "./FileTools.ts"
import * as Past from "./Past.ts"
import type { Standing } from "./Standing.ts"
import * as Style from "./Style.ts"
import * as Talk from "./Talk.ts"
import { Terminal } from "./Terminal.ts"
import { runOf } from "./View.ts"

/**
 * The agent that works through the files. `parallel` is how many calls of one response may run at once.
 *
 * @category agents
 * @since 0.1.0
 */
export const agent = (parallel = 1) =>
  Agent.make({
    name: "files",
    instructions: [
      "You work on the files of one directory with the tools you are given; paths are relative to it.",
      "Say in one short sentence what you do next, and do a few files at a time.",
      "A later message of the user corrects the task: obey it from then on, and do not undo what is done unless asked.",
      "A tool call that was not started had no effect: ask for it again only if it is still wanted.",
      "When nothing is left to do, say what you did, what you left, and why."
    ].join(" "),
    toolkit: FileTools.toolkit,
    tools: parallel > 1 ? { concurrency: parallel } : "sequential",
    maxRequests: 60
  })

/**
 * The policy that asks before a call that changes files.
 *
 * @category policies
 * @since 0.1.0
 */
export const askBeforeChanges: ToolPolicy.Service = ({ name }) =>
  Effect.succeed(changes.has(name) ? ToolPolicy.ask("may it run?") : ToolPolicy.allow)

const changes: ReadonlySet<string> = new Set([FileTools.WriteFile.name, FileTools.MoveFile.name])

/**
 * What to hold a conversation about. `hint` is shown when the model fails.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The first prompt; without one, what was left goes on and lines are waited for. */
  readonly task: string | undefined
  readonly hint: string | undefined
  readonly parallel: number
  readonly approve: boolean
  /** The session in a store; one that goes with the process unless said. */
  readonly kept?:
    | { readonly id: SessionId; readonly recovery: "settle" | "resume"; readonly past: Past.Past }
    | undefined
}

/**
 * How a conversation ended, what its runs came to, and every input with its last receipt.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended {
  readonly by: "input" | "quit" | "interrupt"
  /** Whether the task itself was refused. */
  readonly refused: boolean
  /** Whether a run failed or used up its budget. */
  readonly failed: boolean
  /** Whether the last run was cancelled by Ctrl-C. */
  readonly interrupted: boolean
  readonly runs: ReadonlyArray<GenerationId>
  readonly rows: ReadonlyArray<Answer.Row>
}

/**
 * Holds the conversation.
 *
 * @category operations
 * @since 0.1.0
 */
export const hold = Effect.fn("Conversation.hold")(function* (
  options: Options
): Effect.fn.Return<
  Ended,
  SessionError,
  AgentRuntime.AgentRuntime | FileTools.Handlers | LanguageModel.LanguageModel | Terminal
> {
  const { kept } = options
  const runtime = yield* AgentRuntime.AgentRuntime
  const terminal = yield* Terminal
  const scope = yield* Scope.make()
  // A kept session is handed on as it stands: who opens it next goes on with it.
  const opened = runtime.open(
    agent(options.parallel),
    kept === undefined ? {} : { id: kept.id, recovery: kept.recovery, onClose: "detach" }
  )
  const policy = options.approve ? askBeforeChanges : ToolPolicy.allowAll
  const session = yield* Scope.provide(Effect.provideService(opened, ToolPolicy.ToolPolicy, policy), scope)
  return yield* Effect.gen(function* () {
    const { sequence } = yield* session.status
    const conversation = yield* make(session, terminal, options)
    if (sequence > 0) yield* conversation.takeUp(sequence)
    const printing = yield* Effect.forkChild(
      Stream.runForEach(session.events({ after: sequence }), conversation.show),
      { startImmediately: true }
    )
    // A session that is lost ends the events, and with them the conversation.
    const by = yield* Effect.raceFirst(conversation.run, Effect.andThen(Fiber.join(printing), Effect.never))
    yield* Scope.close(scope, Exit.void)
    yield* Fiber.join(printing)
    return { by, ...(yield* conversation.outcome) }
  }).pipe(Effect.onExit((exit) => Scope.close(scope, exit)))
})

const make = Effect.fnUntraced(function* (session: Session, terminal: Terminal["Service"], options: Options) {
  const { hint, kept, task } = options
  const { palette } = terminal
  const past = kept?.past ?? Past.none
  const talk = yield* Talk.make(session, terminal, past)
  const { abreast, rest, say } = talk
  const ends = yield* Ref.make({ refused: false, failed: false, interrupted: false })
  const listening = yield* Ref.make(true)
  const idle = palette.dim("nothing is running: /prompt TEXT starts a new run, /quit ends the program")

  const show = Effect.fnUntraced(function* (event: SessionEvent) {
    yield* talk.show(event)
    if (Past.includes(past, event)) return
    if (isTerminal(event) && event.type !== "generation.cancelled") {
      yield* Ref.update(ends, (ends) => ({ ...ends, interrupted: false }))
    }
    if (isFailure(event)) yield* Ref.update(ends, (ends) => ({ ...ends, failed: true }))
    if (event.type === "generation.failed" && event.error?.kind === "provider" && hint !== undefined) {
      yield* say(palette.dim(`  ${hint}`))
    }
    if (event.type === "session.idle" && terminal.interactive && (yield* Ref.get(listening))) yield* say(idle)
  })

  /** Piped lines are for a run that is under way; a person's are taken as they come. */
  const listen: Effect.Effect<"input" | "quit", SessionError> = Effect.gen(function* () {
    if (!terminal.interactive) yield* talk.underWay
    while (true) {
      const taken = yield* Effect.option(Queue.take(terminal.lines))
      if (Option.isNone(taken)) break
      const line = taken.value
      if (!terminal.interactive && line.trim() !== "") yield* say(`> ${Style.clean(line)}`)
      if (yield* talk.obey(line)) {
        yield* endRun
        return "quit"
      }
    }
    yield* Ref.set(listening, false)
    if (terminal.interactive && (yield* talk.standing)._tag === "Working") {
      yield* say(palette.dim("the input has ended: the program ends with the run"))
    }
    yield* leave(yield* rest)
    return "input"
  })

  /** Closing a kept session leaves its run to the next start; who quits ends it. */
  const endRun = Effect.gen(function* () {
    const live = yield* session.generation
    if (kept === undefined || Option.isNone(live)) return
    // The session closes before what is queued could be started: it waits for the next start.
    yield* session.cancel(live.value.id)
  })

  /** Says what was waited for and cannot come any more, and what becomes of it. */
  const leave = Effect.fnUntraced(function* (standing: Standing) {
    if (standing._tag !== "Waiting") return
    const live = yield* session.generation
    const runs = yield* talk.runs
    const who = Option.match(live, { onNone: () => "what is queued", onSome: ({ id }) => runOf({ runs }, id) })
    const fate = kept === undefined ? "the session ends with the input" : "the session is kept as it stands"
    yield* say(palette.waiting(`${who} goes on only with ${standing.what}, and the input has ended: ${fate}`))
  })

  /** The first Ctrl-C ends the run, the second, or one while nothing runs, the program. */
  const interrupts: Effect.Effect<"interrupt"> = Effect.gen(function* () {
    let cancelled: GenerationId | undefined
    while (true) {
      yield* Queue.take(terminal.interrupts)
      const live = yield* session.generation
      if (Option.isNone(live) || live.value.id === cancelled) return "interrupt" as const
      cancelled = live.value.id
      yield* Ref.update(ends, (ends) => ({ ...ends, interrupted: true }))
      yield* session.cancel(cancelled, { followUps: "hold" })
      yield* abreast
      yield* say(palette.dim("Ctrl-C once more ends the program"))
    }
  })

  return {
    show,
    /** Shows what opening the session made of what was left, up to this sequence, and what is still open. */
    takeUp: Effect.fnUntraced(function* (until: number) {
      const rows = yield* talk.rows
      const { pauses } = yield* session.status
      yield* session.events().pipe(
        Stream.takeUntil((event) => event.live === undefined && event.sequence >= until),
        Stream.runForEach(show)
      )
      yield* say(...Answer.leftOver(palette, rows, pauses, yield* Clock.currentTimeMillis))
    }),
    run: Effect.gen(function* () {
      if (task !== undefined) {
        const first = yield* talk.prompt(task)
        yield* Ref.update(ends, (ends) => ({ ...ends, refused: !first.accepted }))
        // Without its task a new session has nothing to talk about.
        if (!first.accepted && past.sequence === 0) return "input" as const
      } else if (terminal.interactive && (yield* session.status).generation === null) yield* say(idle)
      return yield* Effect.raceFirst(listen, interrupts)
    }),
    outcome: Effect.gen(function* () {
      return { ...(yield* Ref.get(ends)), runs: yield* talk.runs, rows: yield* talk.rows }
    })
  }
})

/** A run that an earlier start lost is no failure of this one. */
const isFailure = (event: SessionEvent): boolean =>
  event.type === "generation.exhausted" || (event.type === "generation.failed" && event.cause !== "process-loss")
