/**
 * What the program does with a session: every event is shown, every line understood and answered, and it is known when
 * nothing goes on by itself any more. Each line that is an input gets an id of its own, and its receipt is kept.
 *
 * @since 0.1.0
 */
import { Clock, Effect, Latch, Option, Ref, Stream, SubscriptionRef } from "effect"
import { isTerminal, type SessionEvent } from "../../domain/Event.ts"
import * as Ids from "../../domain/Ids.ts"
import * as Input from "../../domain/Input.ts"
import type { ControlReceipt, Receipt } from "../../domain/Receipt.ts"
import * as ResumeCondition from "../../domain/ResumeCondition.ts"
import * as ToolScope from "../../domain/ToolScope.ts"
import type { Session } from "../../runtime/Session.ts"
import * as Answer from "./Answer.ts"
import * as Commands from "./Commands.ts"
import * as FileTools from "./FileTools.ts"
import * as Past from "./Past.ts"
import { Standing, of as standingOf } from "./Standing.ts"
import * as Style from "./Style.ts"
import type { Terminal } from "./Terminal.ts"
import * as View from "./View.ts"

/** @category models @since 0.1.0 */
export interface Talk {
  /** Shows an event, or takes note of one that an earlier start has shown. */
  readonly show: (event: SessionEvent) => Effect.Effect<void>
  readonly say: (...texts: ReadonlyArray<string>) => Effect.Effect<void>
  readonly prompt: (text: string) => Effect.Effect<Receipt>
  /** Does what a line says; `true` when it asks to quit. */
  readonly obey: (line: string) => Effect.Effect<boolean>
  /** Waits until a request has been made, or nothing goes on by itself. */
  readonly underWay: Effect.Effect<void>
  readonly standing: Effect.Effect<Standing>
  /** Waits until nothing goes on by itself and all of it has been shown. */
  readonly rest: Effect.Effect<Exclude<Standing, { readonly _tag: "Working" }>>
  /** Waits until what has happened has been shown, so that the program's own words come after it. */
  readonly abreast: Effect.Effect<void>
  readonly runs: Effect.Effect<View.View["runs"]>
  /** Every input this start is concerned with, its receipt as it stands now. */
  readonly rows: Effect.Effect<ReadonlyArray<Answer.Row>>
}

/**
 * Takes up the talk with a session. `past` is what was in it before it was opened.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  session: Session,
  terminal: Terminal["Service"],
  past: Past.Past
): Effect.fn.Return<Talk> {
  const { palette } = terminal
  const steering = session.capability("live.steering")
  const view = yield* Ref.make(View.make(palette))
  const given = yield* Ref.make(yield* Past.unfinished(past, session))
  const lastNumber = yield* Ref.make(Past.lastNumber(past))
  const seen = yield* SubscriptionRef.make(0)
  const requesting = yield* Latch.make()

  const say = (...texts: ReadonlyArray<string>): Effect.Effect<void> =>
    terminal.show(...texts.map((text) => View.Piece.Line({ text })))
  const runs = Effect.map(Ref.get(view), (view) => view.runs)

  const show = Effect.fnUntraced(function* (event: SessionEvent) {
    if (Past.includes(past, event)) {
      yield* Ref.update(view, (view) => View.recall(view, event))
    } else {
      const pieces = yield* Ref.modify(view, (view) => {
        const [next, pieces] = View.next(view, event)
        return [pieces, next]
      })
      yield* terminal.show(...pieces)
      if (event.type === "request.started" || isTerminal(event)) yield* requesting.open
    }
    if (event.live === undefined) yield* SubscriptionRef.set(seen, event.sequence)
  })

  /** Waits until it holds; it is looked at again with every event that has been shown. */
  const until = (holds: Effect.Effect<boolean>): Effect.Effect<void> =>
    SubscriptionRef.changes(seen).pipe(
      Stream.takeUntilEffect(() => holds),
      Stream.runDrain
    )

  const abreast = Effect.flatMap(session.status, ({ sequence }) =>
    until(Effect.map(SubscriptionRef.get(seen), (seen) => seen >= sequence))
  )

  /** While there is something to show, something goes on. */
  const standing: Effect.Effect<Standing> = Effect.gen(function* () {
    const status = yield* session.status
    if ((yield* SubscriptionRef.get(seen)) < status.sequence) return Standing.Working()
    return standingOf(status, yield* Ref.get(view), yield* Clock.currentTimeMillis)
  })
  const resting = Effect.map(standing, ({ _tag }) => _tag !== "Working")

  const rest: Talk["rest"] = Effect.gen(function* () {
    while (true) {
      yield* until(resting)
      const now = yield* standing
      if (now._tag !== "Working") return now
    }
  })

  const submit = Effect.fnUntraced(function* (
    kind: string,
    text: string,
    deliver: (id: string) => Effect.Effect<Receipt>
  ) {
    const id = `in-${yield* Ref.updateAndGet(lastNumber, (last) => last + 1)}`
    const receipt = yield* deliver(id)
    yield* Ref.update(given, (rows) => [...rows, { id, kind, text, receipt }])
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
        : submit(kind, text, (id) => steering.submit(make(id), run))
    )

  /** Says why a control was refused; an accepted one is told by its event. */
  const answer = Effect.fnUntraced(function* (what: string, act: Effect.Effect<ControlReceipt>) {
    const receipt = yield* act
    yield* abreast
    const refusal = Answer.controlled(palette, yield* runs, what, receipt, yield* Clock.currentTimeMillis)
    if (refusal !== undefined) yield* say(refusal)
    return receipt.accepted
  })

  const control = (what: string, act: (run: Ids.GenerationId) => Effect.Effect<ControlReceipt>) =>
    Effect.flatMap(anchor, (run) =>
      run === undefined ? say(palette.bad(`${what}: nothing is running`)) : answer(what, act(run))
    )

  const rows = Effect.flatMap(Ref.get(given), (rows) => Effect.forEach(rows, (row) => current(session, row)))

  const bringForward = Effect.fnUntraced(function* (input: string) {
    const live = yield* session.generation
    if (Option.isNone(live)) {
      return yield* say(
        palette.bad(`now: nothing is running that ${input} could be given to; it waits for its own run`)
      )
    }
    const number = (yield* Ref.get(lastNumber)) + 1
    const as = Ids.InputId.make(`in-${number}`)
    const receipt = yield* session.promote(Ids.InputId.make(input), live.value.id, as)
    yield* abreast
    if (!receipt.accepted) return yield* say(Answer.refused(palette, yield* runs, receipt, `now ${input}`))
    if (receipt.inputId !== as) return yield* say(palette.dim(`  ${input} goes on as ${receipt.inputId} already`))
    yield* Ref.set(lastNumber, number)
    yield* Ref.update(given, (rows) => {
      const text = rows.find(({ id }) => id === input)?.text ?? input
      return [...rows, { id: as, kind: "steer", text, receipt }]
    })
    yield* say(palette.dim(`  ${input} goes on as ${as}`))
  })

  const pause = Effect.fnUntraced(function* (until: Commands.Until, tools: ReadonlyArray<string> | undefined) {
    const unknown = tools?.filter((tool) => !(tool in FileTools.toolkit.tools)) ?? []
    if (unknown.length > 0) {
      const known = Object.keys(FileTools.toolkit.tools).join(", ")
      return yield* say(palette.bad(Style.clean(`there is no tool ${unknown.join(", ")}; the tools are ${known}`)))
    }
    const condition = conditionOf(until, yield* Clock.currentTimeMillis)
    const scope = tools === undefined ? undefined : { scope: ToolScope.tools(...tools) }
    yield* answer("pause", session.pause({ until: condition, ...scope }))
  })

  const decide = Effect.fnUntraced(function* (
    number: number | undefined,
    decision: Parameters<Session["decide"]>[1],
    done: string
  ) {
    const look = Effect.map(Ref.get(view), (view) => ({
      asked: view.asked,
      question: View.asking(view).find((question) => number === undefined || question.number === number)
    }))
    // Piped lines do not see the question: they wait for it as long as something goes on.
    if (!terminal.interactive) {
      yield* until(
        Effect.flatMap(look, ({ asked, question }) =>
          question === undefined && (number === undefined || number > asked) ? resting : Effect.succeed(true)
        )
      )
    }
    const { asked, question } = yield* look
    if (question === undefined) {
      const why =
        number === undefined
          ? "no question waits for an answer"
          : number > asked
            ? `there is no question ${number}`
            : `question ${number} waits for no answer any more`
      return yield* say(palette.bad(why))
    }
    const receipt = yield* session.decide(question.call, decision)
    if (!receipt.accepted) {
      return yield* answer(`question ${question.number}: answer`, Effect.succeed(receipt))
    }
    yield* Ref.update(view, (view) => View.answered(view, question.call))
    yield* say(palette.good(`question ${question.number} ${done}`))
    yield* abreast
  })

  const status = Effect.gen(function* () {
    yield* abreast
    const seen = yield* Ref.get(view)
    const { runs } = seen
    const known = { runs, questions: View.asking(seen), rows: yield* rows, now: yield* Clock.currentTimeMillis }
    yield* say(
      ...Answer.status(palette, known, yield* session.status),
      ...Answer.table(palette, runs, known.rows).map((line) => `  ${line}`)
    )
  })

  const wait = Effect.gen(function* () {
    if (terminal.interactive) return yield* say(palette.dim("no need to wait: type when you like"))
    const now = yield* rest
    if (now._tag === "Waiting") yield* say(palette.dim(`nothing goes on without ${now.what}`))
  })

  const prompt = (text: string) => submit("prompt", text, (id) => session.submit(Input.prompt(text, { id })))

  return {
    show,
    say,
    prompt,
    underWay: Effect.raceFirst(requesting.await, Effect.asVoid(rest)),
    standing,
    rest,
    abreast,
    runs,
    rows,
    obey: (line) =>
      Commands.Command.$match(Commands.parse(line), {
        Blank: () => Effect.void,
        Steer: ({ text }) => anchored("steer", text, (id) => Input.steer(text, { id })),
        Ask: ({ text }) => anchored("ask", text, (id) => Input.ask(text, { id })),
        FollowUp: ({ text }) => submit("follow-up", text, (id) => session.submit(Input.followUp(text, { id }))),
        Prompt: ({ text }) => prompt(text),
        Now: ({ input }) => bringForward(input),
        Drop: ({ input }) => answer(`drop ${input}`, session.withdraw(Ids.InputId.make(input))),
        Pause: ({ tools, until }) => pause(until, tools),
        Resume: ({ signal }) => answer("resume", session.resume(signal)),
        Approve: ({ question }) => decide(question, { _tag: "Allow" }, "approved"),
        Deny: ({ question, reason }) => decide(question, { _tag: "Deny", reason }, "denied"),
        Stop: () => control("stop", (run) => session.stop(run)),
        Cancel: () => control("cancel", (run) => session.cancel(run)),
        Status: () => status,
        Wait: () => wait,
        Help: () => say(...Commands.help.map((line) => `  ${line}`)),
        Mistake: ({ message }) => say(palette.bad(Style.clean(message))),
        Quit: () => Effect.succeed("quit" as const)
      }).pipe(Effect.map((done) => done === "quit"))
  }
})

const current = (session: Session, row: Answer.Row): Effect.Effect<Answer.Row> =>
  row.receipt.accepted
    ? Effect.map(session.receipt(row.receipt.inputId), (now) => ({
        ...row,
        receipt: Option.getOrElse(now, () => row.receipt)
      }))
    : Effect.succeed(row)

const conditionOf = (until: Commands.Until, now: number): ResumeCondition.ResumeCondition => {
  switch (until._tag) {
    case "Hand":
      return ResumeCondition.manual
    case "Signal":
      return ResumeCondition.signal(until.name)
    case "Time":
      return ResumeCondition.at(now + until.seconds * 1000)
  }
}
