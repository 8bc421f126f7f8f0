/**
 * The one place of a session that acts: it performs what `Submission` decides and starts generations. Each operation looks and
 * commits in one synchronous step, and rings whoever must know; none runs another fiber's code.
 *
 * @since 0.1.0
 */
import { Effect, Exit, type Fiber, Result, Scope } from "effect"
import type { Scheduler } from "effect"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import * as Inbox from "../boundary/Inbox.ts"
import { type GenerationReport, UnknownGeneration } from "../domain/Generation.ts"
import * as Ids from "../domain/Ids.ts"
import * as Input from "../domain/Input.ts"
import type * as Receipt from "../domain/Receipt.ts"
import { SessionError } from "../domain/SessionError.ts"
import { Coordinator, type Host, type Next } from "../engine/Coordinator.ts"
import * as Ending from "../engine/Ending.ts"
import { closing, type Engine, makeRun, type Run } from "../engine/Engine.ts"
import * as Gate from "../engine/Gate.ts"
import { isOpen } from "../engine/Immediate.ts"
import * as Loop from "../engine/Loop.ts"
import type { Entry } from "../ledger/Entry.ts"
import type * as Projection from "../ledger/Projection.ts"
import * as Report from "../ledger/Report.ts"
import { Awaiting } from "./Awaiting.ts"
import type { LiveSteering } from "./LiveSteering.ts"
import { Pausing } from "./Pausing.ts"
import { Reservations } from "./Reservations.ts"
import * as Submission from "./Submission.ts"
import { sleepUntil } from "./Timer.ts"

/** @category models @since 0.1.0 */
export interface Options {
  readonly engine: Engine
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Makes the ids of this opening's generations unlike those of any other (L-A3). */
  readonly nonce: string
}

/** @category models @since 0.1.0 */
export class Core implements Host {
  readonly engine: Engine
  readonly reservations: Reservations
  readonly pausing: Pausing
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #nonce: string
  readonly #awaiting: Awaiting
  readonly #coordinator: Coordinator
  #scope: Scope.Closeable | undefined
  #liveSteering: LiveSteering | undefined
  #run: Run | undefined
  #taken: Run | undefined
  #timers: Set<Fiber.Fiber<unknown>> | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #closed = false
  #over = false
  #ready = false

  constructor({ dispatcher, engine, nonce }: Options) {
    this.engine = engine
    this.reservations = new Reservations(this, dispatcher, engine.journal.stored !== undefined)
    this.pausing = new Pausing(this)
    this.#awaiting = new Awaiting(dispatcher)
    this.#dispatcher = dispatcher
    this.#nonce = nonce
    this.#coordinator = new Coordinator(this, dispatcher, engine.services)
  }

  /** What runs beside the owner's work ends with it; made by whoever needs it first. */
  get scope(): Scope.Scope {
    return (this.#scope ??= Scope.makeUnsafe())
  }

  /** The anchored way in, as a host holds it. */
  get liveSteering(): LiveSteering {
    return (this.#liveSteering ??= {
      version: 1,
      mode: this.engine.agent.steering,
      cancellable: false,
      submit: (input, generationId) => this.submitAnchored(input, generationId)
    })
  }

  get closed(): boolean {
    return this.#closed
  }

  get projection(): Projection.Projection {
    return this.engine.journal.projection
  }

  /** The generation whose terminal event is not yet published. */
  get live(): Run | undefined {
    return this.#run !== undefined && this.projection.active === this.#run.state ? this.#run : undefined
  }

  /** What decisions look at. */
  get view(): Submission.View {
    return {
      limits: this.engine.limits,
      projection: this.projection,
      live: this.live,
      closed: this.#closed,
      lost: this.engine.journal.lost,
      reserved: this.reservations,
      paused: Gate.isPaused(this.projection),
      steering: this.engine.agent.steering
    }
  }

  /** Anchored delivery (L-A2 to L-A5): decided, admitted, queued and rung in one step. */
  submitAnchored(given: Input.Input, generationId: Ids.GenerationId): Effect.Effect<Receipt.Receipt> {
    return Effect.suspend((): Effect.Effect<Receipt.Receipt> => {
      const read = Input.read(given, this.engine.limits)
      if (Result.isFailure(read)) return this.#unread(given, generationId, read.failure)
      const input = read.success
      const settled = this.reservations.settled(input.id)
      if (settled !== undefined) return Effect.andThen(settled, this.submitAnchored(input, generationId))
      const decision = Submission.anchored(this.view, input, generationId)
      if (decision._tag === "Join") return this.join(decision.run, input, generationId)
      return this.answer(decision, input.intent, generationId)
    })
  }

  /** Ordinary delivery, by intent (L-F1, L-F2, L-F5). */
  submit(given: Input.Input): Effect.Effect<Receipt.Receipt> {
    return Effect.suspend(() => {
      const read = Input.read(given, this.engine.limits)
      return Result.isFailure(read) ? this.#unread(given, null, read.failure) : this.#submit(read.success)
    })
  }

  #unread(given: Input.Input, anchor: Ids.GenerationId | null, detail: string): Effect.Effect<Receipt.Receipt> {
    return this.answer(Submission.unread(given, anchor, detail), undefined, anchor)
  }

  #submit(input: Input.Input): Effect.Effect<Receipt.Receipt> {
    const settled = this.reservations.settled(input.id)
    if (settled !== undefined) return Effect.flatMap(settled, () => this.#submit(input))
    const decision = Submission.ordinary(this.view, input)
    switch (decision._tag) {
      case "Join":
        return this.join(decision.run, input, null)
      case "Start":
        return this.#accept(input, "starting")
      case "Enqueue":
        return this.#accept(input, "queued")
      case "Known":
      case "Refuse":
        return this.answer(decision, input.intent, null)
    }
  }

  /** Answers without a trace: a known input's receipt, or a refusal, which is told live and never journalled (L-A6). */
  answer(
    decision: Submission.Decision,
    intent: Input.Intent | undefined,
    anchor: Ids.GenerationId | null
  ): Effect.Effect<Receipt.Receipt> {
    if (decision._tag === "Known") return Effect.succeed(decision.receipt)
    if (decision._tag !== "Refuse") return Effect.die(new Error(`${decision._tag} is no answer`))
    const { inputId, reason } = decision.receipt
    this.engine.journal.log.publish({
      type: "input.refused",
      input_id: inputId,
      reason,
      ...(Input.isIntent(intent) ? { intent } : undefined),
      ...(Ids.isId(anchor) ? { target_generation_id: anchor } : undefined)
    })
    return Effect.succeed(decision.receipt)
  }

  /** Binds an input to the live generation's next boundary, in the same commit as the promotion it comes from, if any. */
  join(
    run: Run,
    input: Input.Input,
    anchor: Ids.GenerationId | null,
    promoted?: Ids.InputId
  ): Effect.Effect<Receipt.Receipt> {
    const delivery = "request_boundary"
    const { id } = input
    const entries: Array<Entry> = promoted === undefined ? [] : [Delivery.held(promoted, null, "promoted", "user")]
    entries.push(
      this.engine.journal.accepted(input, anchor, run.id, delivery),
      {
        type: "input.accepted",
        generation_id: run.id,
        input_id: id,
        target_generation_id: run.id,
        intent: input.intent,
        delivery
      },
      { type: "steering.accepted", generation_id: run.id, input_id: id, target_generation_id: run.id, delivery }
    )
    let late: Effect.Effect<void, SessionError> = Effect.void
    const over = this.reservations.join(run.admission, id, promoted)
    const written = this.engine.journal.commit(entries, {
      refusable: true,
      applied: () => {
        if (!Admission.admit(run.admission, input)) late = this.#holdLate(run, id)
        over()
        this.pausing.settle()
      },
      failed: over
    })
    if (!isOpen(written)) return Effect.succeed(this.#receipt(id))
    const receipt = Effect.suspend(() => Effect.map(Effect.exit(late), () => this.#receipt(id)))
    return this.#answered(written, receipt, input, anchor)
  }

  /**
   * Admission closed while an input was being written: it is held with the closing reason, and no terminal event precedes that
   * (L-A7). What is handed on stays as it is (L-C9).
   */
  #holdLate(run: Run, id: Ids.InputId): Effect.Effect<void, SessionError> {
    const end = closing(run)
    return end === undefined || end.parks === true
      ? Effect.void
      : this.engine.journal.commit([Ending.held(run, id, end)])
  }

  /** The report of a generation, when it has one (L-C4). Who waits is added in the step that finds none. */
  await(id: Ids.GenerationId): Effect.Effect<GenerationReport, UnknownGeneration | SessionError> {
    return Effect.callback((resume) => {
      const generation = this.projection.generations.get(id)
      if (generation === undefined) return resume(Effect.fail(new UnknownGeneration({ generationId: String(id) })))
      if (generation.ended !== undefined) return resume(this.#report(generation))
      if (this.engine.journal.lost !== undefined || this.#over) return resume(Effect.fail(this.#error()))
      return this.#awaiting.add(id, resume)
    })
  }

  /** The report of an ended generation; its calls are read back if another process made them. */
  #report(generation: Projection.GenerationState): Effect.Effect<GenerationReport, SessionError> {
    const { journal } = this.engine
    if (!generation.cold) return Effect.succeed(Report.make(this.projection, generation, generation.calls))
    return Effect.map(journal.calls(generation), (calls) => Report.make(this.projection, generation, calls))
  }

  /** Waits until no generation lives and none is to be started. */
  get awaitIdle(): Effect.Effect<void, SessionError> {
    return Effect.suspend(() => {
      const over = () => this.#closed || this.engine.journal.lost !== undefined
      if (over()) return Effect.fail(this.#error())
      return Effect.andThen(
        this.#coordinator.awaitIdle,
        Effect.suspend(() => (over() ? Effect.fail(this.#error()) : Effect.void))
      )
    })
  }

  /** Ends everything with the session (L-C7), or hands it on as it stands (L-C9): returns when that is written. */
  close(how: "cancel" | "detach"): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closed = true
      // A start that is being written is known once it is folded, and is then ended like any other.
      const flushed = Effect.ignore(this.engine.journal.flushed)
      return Effect.flatMap(Effect.ignore(Effect.flatMap(flushed, () => this.#conclude(how))), () => {
        this.#over = true
        for (const timer of this.#timers ?? []) timer.interruptUnsafe()
        this.engine.journal.end("closed")
        this.#awaiting.fail(() => this.#error())
        return this.abandon
      })
    })
  }

  /** Brings the live generation to its end, and says that the session is closed. */
  #conclude(how: "cancel" | "detach"): Effect.Effect<void, SessionError> {
    const { journal } = this.engine
    const idle = Effect.flatMap(this.#closeLive(how), () => this.#coordinator.awaitIdle)
    return Effect.flatMap(idle, () => {
      const { queue, turns } = this.projection
      // What waits in a store is still true when the next process opens it (L-R6).
      const kept = journal.stored !== undefined
      const held = kept ? [] : [...turns, ...queue].map((id) => Delivery.held(id, null, "session-closed", "close"))
      return journal.commit([...held, { type: "session.closed" }])
    })
  }

  /** Ends whatever still runs, and says nothing of it. */
  get abandon(): Effect.Effect<void> {
    return Effect.flatMap(this.#coordinator.close, () =>
      this.#scope === undefined ? Effect.void : Scope.close(this.#scope, Exit.void)
    )
  }

  #closeLive(how: "cancel" | "detach"): Effect.Effect<void, SessionError> {
    const run = this.live
    const end = run && closing(run)
    this.wake()
    if (run === undefined || run.phase._tag === "Ending") return Effect.void
    if (end !== undefined && end.outcome !== "stopped") return Effect.void
    // A session without a store has nobody to be handed to.
    if (how === "detach" && this.engine.journal.stored !== undefined) return this.#park(run)
    this.interrupt()
    return Ending.close(this.engine, run, Ending.sessionClosed, [
      { type: "cancel.requested", generation_id: run.id, cause: "close" }
    ])
  }

  /** Parks at the next committed step; what outlasts the grace time is interrupted and made again by whoever resumes (L-C9). */
  #park(run: Run): Effect.Effect<void> {
    // A stop that was accepted is not undone: it is let come to its end, or completed by whoever opens the session next.
    if (closing(run) === undefined) Admission.close(run.admission, Ending.parked)
    const overdue = Effect.andThen(
      Effect.sleep(this.engine.grace),
      Effect.sync(() => {
        if (this.live !== run) return
        run.overdue = true
        Admission.ring(run.admission)
        this.interrupt()
      })
    )
    return Effect.asVoid(Effect.forkIn(overdue, this.scope, { startImmediately: true }))
  }

  /** The journal can no longer be written: everything stops, and nothing is said that is not known (L-R4, L-R7). */
  lose(): void {
    this.interrupt()
    this.wake()
    this.#awaiting.fail(() => this.#error())
  }

  /** Opens the session for work: what waits is started, and a generation that goes on goes on (L-R2, L-R6). */
  ready(resumed: Run | undefined): void {
    this.#ready = true
    if (resumed !== undefined) this.#run = resumed
    this.pausing.settle()
    this.wake()
  }

  /** Lets the owner look for work. */
  wake(): void {
    this.#coordinator.wake()
  }

  /** Interrupts the live generation's fiber, in a turn of its own. */
  interrupt(): void {
    this.#coordinator.interrupt()
  }

  /** Does something at an instant (milliseconds since the Unix epoch), for as long as the session lives. */
  later(instant: number, act: Effect.Effect<void>): Fiber.Fiber<unknown> {
    const timer = Effect.runForkWith(this.engine.services)(Effect.andThen(sleepUntil(instant), act))
    const timers = (this.#timers ??= new Set())
    timers.add(timer)
    timer.addObserver(() => timers.delete(timer))
    return timer
  }

  #error(): SessionError {
    const { lost, sessionId } = this.engine.journal
    return new SessionError({ sessionId, reason: lost ?? { _tag: "Closed" } })
  }

  /** The receipt once the admission is written; a certain failure refuses, and one that cannot be told says so (L-A7). */
  #answered(
    written: Effect.Effect<void, SessionError>,
    receipt: Effect.Effect<Receipt.Receipt>,
    input: Input.Input,
    anchor: Ids.GenerationId | null
  ): Effect.Effect<Receipt.Receipt> {
    if (Exit.isExit(written) && Exit.isSuccess(written)) return receipt
    return Effect.matchEffect(written, {
      onSuccess: () => receipt,
      onFailure: ({ reason }) => this.answer(Submission.unwritten(input.id, anchor, reason), input.intent, anchor)
    })
  }

  #accept(input: Input.Input, kind: "starting" | "queued"): Effect.Effect<Receipt.Receipt> {
    const delivery = "new_turn"
    const release = this.reservations.reserve(input.id, kind)
    const written = this.engine.journal.commit(
      [
        this.engine.journal.accepted(input, null, null, delivery),
        { type: "input.accepted", input_id: input.id, intent: input.intent, delivery },
        ...(kind === "queued" ? [] : this.#start([input.id]))
      ],
      {
        refusable: true,
        applied: () => {
          release()
          if (kind === "starting") this.#adopt()
          this.pausing.settle()
          this.wake()
        },
        failed: release
      }
    )
    return this.#answered(
      written,
      Effect.sync(() => this.#receipt(input.id)),
      input,
      null
    )
  }

  #receipt(id: Ids.InputId): Receipt.Receipt {
    const receipt = this.projection.receipt(id)
    if (receipt === undefined) throw new Error(`input ${id} was committed and is not in the fold`)
    return receipt
  }

  /** What starting a generation journals; `#adopt` makes it live in the step that folds it. */
  #start(inputIds: ReadonlyArray<Ids.InputId>): ReadonlyArray<Entry> {
    const [initial] = inputIds
    if (initial === undefined) return []
    // Starts are one at a time and every start is folded before the next, so the count of generations is the next one's.
    const id = `gen_${this.#nonce}_${this.projection.generations.size + 1}` as Ids.GenerationId
    return [{ type: "generation.started", generation_id: id, initial_input_id: initial, input_ids: inputIds }]
  }

  #adopt(): void {
    const state = this.projection.active
    if (state === undefined || this.#run?.state === state) return
    this.#run = makeRun(state, Admission.make(this.#dispatcher))
  }

  /** The owner asks what to do: the live generation if it is new, else what waits, else nothing. */
  next(): Next {
    const run = this.live
    if (run !== undefined && run !== this.#taken && this.#ready) {
      this.#taken = run
      return this.#work(run)
    }
    const inbox = this.#inbox()
    if (inbox._tag === "Nothing") return "idle"
    if (inbox._tag === "Undecided") return "later"
    if (inbox._tag === "Later") {
      if (inbox.instant < this.#wakesAt) {
        this.#wakesAt = inbox.instant
        const act = Effect.sync(() => {
          this.#wakesAt = Number.POSITIVE_INFINITY
          this.wake()
        })
        this.later(inbox.instant, act)
      }
      return "later"
    }
    return Effect.suspend(() => {
      const now = this.#inbox()
      if (now._tag !== "Start") return Effect.void
      const over = this.reservations.start(now.inputIds)
      const applied = () => {
        over()
        this.#adopt()
      }
      return Effect.ignore(this.engine.journal.commit(this.#start(now.inputIds), { applied, failed: over }))
    })
  }

  /** What the next generation would start with, if one may start at all (L-F6). */
  #inbox(): Inbox.Next {
    const barred = !this.#ready || this.#closed || this.reservations.starting || this.engine.journal.lost !== undefined
    if (this.live !== undefined || barred || Gate.isPaused(this.projection)) return { _tag: "Nothing" }
    return Inbox.next(this.projection, this.engine.limits, this.engine.journal.now, (id) =>
      this.reservations.isClaimed(id)
    )
  }

  /** Whether nothing is to be started once the live generation has ended. */
  #restful(): boolean {
    const { queue, turns } = this.projection
    return !this.#closed && (Gate.isPaused(this.projection) || (queue.length === 0 && turns.length === 0))
  }

  #work(run: Run): Effect.Effect<void> {
    return Effect.flatMap(Effect.exit(Loop.run(this.engine, run, () => this.#restful())), (exit) => {
      if (Exit.hasDies(exit)) return Effect.orDie(exit)
      this.engine.rested()
      if (run.state.ended !== undefined) this.#awaiting.settle(run.id, this.#report(run.state))
      return Effect.void
    })
  }
}
