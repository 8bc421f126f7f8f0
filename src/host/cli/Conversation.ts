/**
 * One session at the terminal: the task as its first prompt, every event shown as it comes, every line understood and
 * answered, until the input ends and nothing runs, or the person quits. Each line is one input with an id of its own, and
 * its receipt is shown as it changes.
 *
 * @since 0.1.0
 */
import { Effect, Fiber, Latch, Option, Queue, Ref, Scope, Stream, SubscriptionRef } from "effect"
import type { LanguageModel } from "effect/ai"
import * as Agent from "../../domain/Agent.ts"
import { isTerminal, type SessionEvent } from "../../domain/Event.ts"
import type { GenerationId } from "../../domain/Ids.ts"
import * as Input from "../../domain/Input.ts"
import type { ControlReceipt, Receipt } from "../../domain/Receipt.ts"
import type { SessionError } from "../../domain/SessionError.ts"
import * as AgentRuntime from "../../runtime/AgentRuntime.ts"
import type { Session } from "../../runtime/Session.ts"
import * as Answer from "./Answer.ts"
import * as Commands from "./Commands.ts"
import * as FileTools from "./FileTools.ts"
import * as Style from "./Style.ts"
import { Terminal } from "./Terminal.ts"
import * as View from "./View.ts"

/**
 * The agent that works through the files.
 *
 * @category agents
 * @since 0.1.0
 */
export const agent = Agent.make({
  name: "files",
  instructions: [
    "You work on the files of one directory with the tools you are given; paths are relative to it.",
    "Say in one short sentence what you do next, and do a few files at a time.",
    "A later message of the user corrects the task: obey it from then on, and do not undo what is done unless asked.",
    "A tool call that was not started had no effect: ask for it again only if it is still wanted.",
    "When nothing is left to do, say what you did, what you left, and why."
  ].join(" "),
  toolkit: FileTools.toolkit,
  maxRequests: 60
})

/**
 * How a conversation ended, what its runs came to, and every input with its last receipt.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended {
  readonly by: "input" | "quit" | "interrupt" | "refusal"
  /** Whether a run failed or used up its budget. */
  readonly failed: boolean
  /** Whether the last run was cancelled by Ctrl-C. */
  readonly interrupted: boolean
  readonly runs: ReadonlyArray<GenerationId>
  readonly rows: ReadonlyArray<Answer.Row>
}

/**
 * Holds the conversation. `hint` is shown when the model fails.
 *
 * @category operations
 * @since 0.1.0
 */
export const hold = Effect.fn("Conversation.hold")(function* (options: {
  readonly task: string
  readonly hint: string | undefined
}): Effect.fn.Return<
  Ended,
  SessionError,
  AgentRuntime.AgentRuntime | FileTools.Handlers | LanguageModel.LanguageModel | Terminal
> {
  const runtime = yield* AgentRuntime.AgentRuntime
  const terminal = yield* Terminal
  const scope = yield* Scope.make()
  const session = yield* Scope.provide(runtime.open(agent), scope)
  const talk = yield* makeTalk(session, terminal, options.hint)
  const printing = yield* Effect.forkChild(Stream.runForEach(session.events(), talk.show), { startImmediately: true })
  const by = yield* Effect.onExit(talk.run(options.task), (exit) => Scope.close(scope, exit))
  yield* Fiber.join(printing)
  return { by, ...(yield* talk.outcome) }
})

const makeTalk = Effect.fnUntraced(function* (
  session: Session,
  terminal: Terminal["Service"],
  hint: string | undefined
) {
  const { palette } = terminal
  const steering = session.capability("live.steering")
  const view = yield* Ref.make(View.make(palette))
  const rows = yield* Ref.make<ReadonlyArray<Answer.Row>>([])
  const ends = yield* Ref.make({ failed: false, interrupted: false })
  const seen = yield* SubscriptionRef.make(0)
  const running = yield* Latch.make()
  const listening = yield* Ref.make(true)

  const say = (...texts: ReadonlyArray<string>): Effect.Effect<void> =>
    terminal.show(...texts.map((text) => View.Piece.Line({ text })))
  const runs = Effect.map(Ref.get(view), (view) => view.runs)

  const show = Effect.fnUntraced(function* (event: SessionEvent) {
    const pieces = yield* Ref.modify(view, (view) => {
      const [next, pieces] = View.next(view, event)
      return [pieces, next]
    })
    yield* terminal.show(...pieces)
    if (event.type === "request.started" || isTerminal(event)) yield* running.open
    if (isTerminal(event) && event.type !== "generation.cancelled") {
      yield* Ref.update(ends, (ends) => ({ ...ends, interrupted: false }))
    }
    if (event.type === "generation.failed" || event.type === "generation.exhausted") {
      yield* Ref.update(ends, (ends) => ({ ...ends, failed: true }))
    }
    if (event.type === "generation.failed" && event.error?.kind === "provider" && hint !== undefined) {
      yield* say(palette.dim(`  ${hint}`))
    }
    if (event.type === "session.idle" && terminal.interactive && (yield* Ref.get(listening))) {
      yield* say(palette.dim("nothing is running: /prompt TEXT starts a new run, /quit ends the program"))
    }
    if (event.live === undefined) yield* SubscriptionRef.set(seen, event.sequence)
  })

  /** Waits until what has happened has been shown, so that the program's own words come after it. */
  const abreast = Effect.flatMap(session.status, ({ sequence }) =>
    SubscriptionRef.changes(seen).pipe(
      Stream.takeUntil((shown) => shown >= sequence),
      Stream.runDrain
    )
  )

  /** Waits until nothing runs and all of it has been shown. */
  const quiet = Effect.andThen(session.awaitIdle, abreast)

  const send = Effect.fnUntraced(function* (
    kind: string,
    text: string,
    deliver: (id: string) => Effect.Effect<Receipt>
  ) {
    const id = `in-${(yield* Ref.get(rows)).length + 1}`
    const receipt = yield* deliver(id)
    yield* Ref.update(rows, (rows) => [...rows, { id, kind, text, receipt }])
    yield* abreast
    if (!receipt.accepted) yield* say(Answer.refused(palette, yield* runs, receipt))
    return receipt
  })

  /** The run a line is for: the one that goes on, else the last there was, which refuses it. */
  const anchor = Effect.flatMap(session.generation, (live) =>
    Effect.map(runs, (runs) => Option.getOrUndefined(Option.map(live, ({ id }) => id)) ?? runs.at(-1))
  )

  const anchored = (kind: string, text: string, make: (id: string) => Input.Input) =>
    Effect.flatMap(anchor, (run) =>
      run === undefined
        ? say(palette.bad("there has been no run yet; /prompt TEXT starts one"))
        : send(kind, text, (id) => steering.submit(make(id), run))
    )

  const control = Effect.fnUntraced(function* (
    what: string,
    act: (run: GenerationId) => Effect.Effect<ControlReceipt>
  ) {
    const run = yield* anchor
    if (run === undefined) return yield* say(palette.bad(`${what}: nothing is running`))
    const receipt = yield* act(run)
    yield* abreast
    const refusal = Answer.controlled(palette, yield* runs, what, receipt)
    if (refusal !== undefined) yield* say(refusal)
  })

  const table = Effect.gen(function* () {
    const current = yield* Effect.forEach(yield* Ref.get(rows), (row) =>
      row.receipt.accepted
        ? Effect.map(session.receipt(row.receipt.inputId), (now) => ({
            ...row,
            receipt: Option.getOrElse(now, () => row.receipt)
          }))
        : Effect.succeed(row)
    )
    return current
  })

  const steer = (text: string) => anchored("steer", text, (id) => Input.steer(text, { id }))
  const ask = (text: string) => anchored("ask", text, (id) => Input.ask(text, { id }))
  const prompt = (text: string) => send("prompt", text, (id) => session.submit(Input.prompt(text, { id })))
  const followUp = (text: string) => send("follow-up", text, (id) => session.submit(Input.followUp(text, { id })))

  const status = Effect.gen(function* () {
    yield* abreast
    const known = yield* runs
    yield* say(
      ...Answer.status(palette, known, yield* session.status),
      ...Answer.table(palette, known, yield* table).map((line) => `  ${line}`)
    )
  })

  /** Does what a line says; `true` when it asks to quit. */
  const obey = (line: string): Effect.Effect<boolean, SessionError> =>
    Commands.Command.$match(Commands.parse(line), {
      Blank: () => Effect.void,
      Steer: ({ text }) => steer(text),
      Ask: ({ text }) => ask(text),
      FollowUp: ({ text }) => followUp(text),
      Prompt: ({ text }) => prompt(text),
      Stop: () => control("stop", (run) => session.stop(run)),
      Cancel: () => control("cancel", (run) => session.cancel(run)),
      Status: () => status,
      Wait: () => (terminal.interactive ? say(palette.dim("no need to wait: type when you like")) : quiet),
      Help: () => say(...Commands.help.map((line) => `  ${line}`)),
      Mistake: ({ message }) => say(palette.bad(Style.clean(message))),
      Quit: () => Effect.succeed(true)
    }).pipe(Effect.map((quits) => quits === true))

  /** Piped lines are for a run that is under way; a person's are taken as they come. */
  const listen: Effect.Effect<"input" | "quit", SessionError> = Effect.gen(function* () {
    if (!terminal.interactive) yield* running.await
    while (true) {
      const taken = yield* Effect.option(Queue.take(terminal.lines))
      if (Option.isNone(taken)) break
      const line = taken.value
      if (!terminal.interactive && line.trim() !== "") yield* say(`> ${Style.clean(line)}`)
      if (yield* obey(line)) return "quit"
    }
    yield* Ref.set(listening, false)
    if (terminal.interactive && Option.isSome(yield* session.generation)) {
      yield* say(palette.dim("the input has ended: the program ends with the run"))
    }
    yield* quiet
    return "input"
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
    run: Effect.fnUntraced(function* (task: string) {
      const first = yield* prompt(task)
      if (!first.accepted) return "refusal" as const
      return yield* Effect.raceFirst(listen, interrupts)
    }),
    outcome: Effect.gen(function* () {
      return { ...(yield* Ref.get(ends)), runs: yield* runs, rows: yield* table }
    })
  }
})
