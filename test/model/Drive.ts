/** Runs a sequence against the real engine under a deterministic scheduler, and compares it with the reference at every rest. */
import { Clock, Context, Effect, Exit, type Fiber, Option, Scheduler, Scope, Stream } from "effect"
import {
  Event,
  type Generation,
  type Ids,
  type Input,
  type LiveSteering,
  type Receipt,
  type Session,
  type ToolCall
} from "../../src/index.ts"
import { DeterministicScheduler } from "../../src/testing/internal/scheduler.ts"
import { generationId, inputId, journalled } from "../support/harness.ts"
import { type Command, repeated, type Submission, type Tried, type Which } from "./Command.ts"

export type Answered = Receipt.Receipt | Receipt.ControlReceipt | undefined

/** What the fixture does, not the session. */
const outer: ReadonlyArray<Command["do"]> = ["answer", "tool", "jam", "write"]

const pathOf = (params: unknown): string =>
  typeof params === "object" && params !== null && "path" in params ? String(params.path) : ""

/** A call's status in words, as the reference says it. */
export const words = (status: ToolCall.ToolCallStatus): string => {
  switch (status._tag) {
    case "Requested":
      return "requested"
    case "Admitted":
    case "Started":
      return "started"
    case "Completed":
      return status.isFailure ? "completed failure" : "completed"
    case "Failed":
      return "failed"
    case "Denied":
      return "denied"
    case "NotStarted":
      return `not-started ${status.reason}${status.inputIds === undefined ? "" : ` ${status.inputIds.join()}`}`
    case "Interrupted":
      return `interrupted ${status.effects} ${status.cause}`
  }
}

export interface CallSeen {
  readonly id: Ids.ToolCallId
  readonly key: string
  readonly asks: boolean
  asking: boolean
  status: string
}

const unanswered: Effect.Effect<Answered> = Effect.as(Effect.void, undefined)

/** One session under way. */
export class Drive {
  readonly scheduler = new DeterministicScheduler(
    { at: [], act: [] },
    { actions: [], limit: 2_000_000, runAction: () => {}, mainEnded: () => true, record: undefined }
  )
  readonly events: Array<Event.SessionEvent> = []
  readonly generations: Array<Ids.GenerationId> = []
  readonly calls = new Map<Ids.ToolCallId, CallSeen>()
  readonly reports = new Map<number, Generation.GenerationReport>()
  readonly given: Array<Receipt.Receipt> = []
  listened: Array<Answered> = []
  #listening = false
  #closing: Fiber.Fiber<void> | undefined
  readonly #tried = new Map<string, Tried<Ids.GenerationId>>()
  readonly #fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly #scope = Scope.makeUnsafe()
  readonly session: Session.Session
  readonly #steering: LiveSteering.LiveSteering
  #lastEnded: Ids.GenerationId | undefined

  constructor(
    open: Effect.Effect<Session.Session, never, Scope.Scope>,
    services: Context.Context<never>,
    wrap: (session: Session.Session) => Session.Session
  ) {
    const context = services.pipe(
      Context.add(Scheduler.Scheduler, this.scheduler),
      Context.add(Clock.Clock, this.scheduler.clock)
    )
    this.#fork = Effect.runForkWith(context)
    this.session = wrap(this.do(Effect.provideService(open, Scope.Scope, this.#scope)))
    this.#steering = this.session.capability("live.steering")
    this.#fork(Stream.runForEach(journalled(this.session.events()), (event) => Effect.sync(() => this.#record(event))))
    this.scheduler.drain()
  }

  /** Performs an effect and lets everything come to rest. It has to have ended by then. */
  do<A, E>(effect: Effect.Effect<A, E>): A {
    const fiber = this.#fork(effect)
    this.scheduler.drain()
    const exit = fiber.pollUnsafe()
    if (exit === undefined) throw new Error("an operation has not answered and nothing is runnable")
    if (Exit.isFailure(exit)) throw new Error(`an operation failed: ${exit.cause.toString()}`)
    return exit.value
  }

  /** Performs a command from outside and comes to rest. `outside` is what the fixture does of it. */
  perform(command: Command, outside: () => void): Answered {
    this.listened = []
    let answered: Answered
    if (command.do === "tick") this.scheduler.clock.advance(command.millis)
    else if (command.do === "listen") this.#listen(command)
    else if (outer.includes(command.do)) outside()
    else answered = this.do(this.#operation(command))
    this.scheduler.drain()
    // A scope that closes waits for handlers that do not heed their interruption.
    if (this.#closing !== undefined && this.#closing.pollUnsafe() === undefined) {
      this.scheduler.clock.advance(5000)
      this.scheduler.drain()
      if (this.#closing.pollUnsafe() === undefined) throw new Error("the scope has not closed and nothing is runnable")
    }
    return answered
  }

  #operation(command: Command): Effect.Effect<Answered> {
    return Effect.suspend((): Effect.Effect<Answered> => {
      const { session } = this
      switch (command.do) {
        case "submit":
          return this.#submit(command.input, command.anchor === undefined ? null : this.#resolve(command.anchor))
        case "repeat": {
          const again = repeated(
            command.change,
            this.#tried.get(command.id),
            () => this.#live() ?? generationId("gen_never")
          )
          return again === undefined ? unanswered : this.#submit(again.input, again.anchor)
        }
        case "cancel":
        case "stop": {
          const options = command.followUps === undefined ? {} : { followUps: command.followUps }
          return session[command.do](this.#resolve(command.which), options)
        }
        case "pause":
          return session.pause({
            until: command.until,
            ...(command.scope === undefined ? undefined : { scope: { tools: [...command.scope] } })
          })
        case "resume":
          return session.resume(command.signal)
        case "decide": {
          const asked = [...this.calls.values()].filter((call) => call.asks)
          const call =
            command.at === undefined
              ? asked.findLast((each) => each.asking)
              : asked[command.at % Math.max(1, asked.length)]
          if (call === undefined) return unanswered
          call.asking = false
          return session.decide(call.id, command.allow ? { _tag: "Allow" } : { _tag: "Deny", reason: "no" })
        }
        case "withdraw":
          return session.withdraw(inputId(command.id))
        case "promote":
          return this.#given(session.promote(inputId(command.id), this.#resolve(command.which), inputId(command.as)))
        case "close":
          return Effect.sync(() => {
            this.#closing ??= this.#fork(Scope.close(this.#scope, Exit.void))
            return undefined
          })
        case "answer":
        case "tool":
        case "jam":
        case "write":
        case "tick":
        case "listen":
          return Effect.die(new Error(`${command.do} is no operation of a session`))
      }
    })
  }

  #submit(input: Submission, anchor: Ids.GenerationId | null): Effect.Effect<Answered> {
    this.#tried.set(input.id, { input, anchor })
    const made: Input.Input = {
      id: inputId(input.id),
      intent: input.intent,
      content: input.text,
      author: "user",
      ...(input.scope === undefined ? undefined : { scope: { tools: [...input.scope] } }),
      ...(input.route === undefined ? undefined : { route: input.route })
    }
    return this.#given(anchor === null ? this.session.submit(made) : this.#steering.submit(made, anchor))
  }

  #given(receipt: Effect.Effect<Receipt.Receipt>): Effect.Effect<Answered> {
    return Effect.tap(receipt, (got) => Effect.sync(() => this.given.push(got)))
  }

  #live(): Ids.GenerationId | undefined {
    return Option.getOrUndefined(Effect.runSync(this.session.generation))?.id
  }

  #resolve(which: Which): Ids.GenerationId {
    const ended = this.#lastEnded ?? generationId("gen_never")
    switch (which) {
      case "live":
        return this.#live() ?? ended
      case "ended":
        return ended
      case "never":
        return generationId("gen_never")
    }
  }

  #listen({ on, act }: Extract<Command, { readonly do: "listen" }>): void {
    if (this.#listening || this.#closing !== undefined) return
    this.#listening = true
    const meant = (event: Event.SessionEvent) =>
      on === "end" ? Event.isTerminal(event) : event.type === (on === "tool" ? "tool.started" : "request.started")
    const inside = journalled(this.session.events({ after: this.events.length })).pipe(
      Stream.filter(meant),
      Stream.take(1),
      Stream.runForEach(() =>
        Effect.map(this.#operation(act), (answered) => {
          this.#listening = false
          this.listened.push(answered)
        })
      )
    )
    this.#fork(inside)
  }

  /** The reference's number of a generation; 0 is one that never was, -1 one it does not know. */
  number(id: string | null): number | null {
    if (id === null) return null
    return id === "gen_never" ? 0 : this.generations.findIndex((other) => other === id) + 1 || -1
  }

  #record(event: Event.SessionEvent): void {
    this.events.push(event)
    if (event.type === "generation.started") this.generations.push(event.generation_id)
    if (event.type === "tool.requested") {
      const n = this.number(event.generation_id)
      const before = [...this.calls.values()].filter((call) => call.key.startsWith(`${n}.${event.request}.`)).length
      this.calls.set(event.call_id, {
        id: event.call_id,
        key: `${n}.${event.request}.${before + 1}`,
        asks: pathOf(event.params).startsWith("asked"),
        asking: false,
        status: "requested"
      })
    }
    if ("call_id" in event) this.#call(event)
    if (Event.isTerminal(event)) this.#lastEnded = event.generation_id
  }

  #call(event: Extract<Event.SessionEvent, { readonly call_id: Ids.ToolCallId }>): void {
    const call = this.calls.get(event.call_id)
    if (call === undefined) return
    switch (event.type) {
      case "tool.approval_requested":
        call.asking = true
        return
      case "tool.started":
        call.status = "started"
        return
      case "tool.completed":
        call.status = words({ _tag: "Completed", isFailure: event.is_failure })
        break
      case "tool.failed":
        call.status = "failed"
        break
      case "tool.denied":
        call.status = "denied"
        break
      case "tool.not_started":
        call.status = words({
          _tag: "NotStarted",
          reason: event.reason,
          ...(event.input_ids === undefined ? undefined : { inputIds: event.input_ids })
        })
        break
      case "tool.interrupted":
        call.status = words({ _tag: "Interrupted", effects: event.effects, cause: event.cause })
        break
      case "tool.requested":
      case "tool.progress":
        return
    }
    call.asking = false
  }

  /** Whether the pauses that have not ended are in effect, in order. */
  pauses(): ReadonlyArray<boolean> {
    return Effect.runSync(this.session.status).pauses.map((pause) => pause.effective)
  }

  requests(): number | undefined {
    return Option.getOrUndefined(Effect.runSync(this.session.generation))?.request
  }

  /** The report of an ended generation, read once. */
  report(n: number): Generation.GenerationReport {
    const known = this.reports.get(n)
    const id = this.generations[n - 1]
    if (known !== undefined || id === undefined) return known ?? never(`generation ${n} was not started`)
    const report = this.do(Effect.orDie(this.session.await(id)))
    this.reports.set(n, report)
    return report
  }
}

const never = (message: string): never => {
  throw new Error(message)
}
