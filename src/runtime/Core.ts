/**
 * The one place of a session that acts: it performs what `Submission` decides and starts generations. Each operation looks and
 * commits in one synchronous step, and rings whoever must know; none runs another fiber's code.
 *
 * @since 0.1.0
 */
import { Deferred, Duration, Effect, Scope } from "effect"
import type { Scheduler } from "effect"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import * as Inbox from "../boundary/Inbox.ts"
import { type GenerationReport, UnknownGeneration } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type * as Input from "../domain/Input.ts"
import type * as Receipt from "../domain/Receipt.ts"
import { SessionError } from "../domain/SessionError.ts"
import * as Coordinator from "../engine/Coordinator.ts"
import * as Ending from "../engine/Ending.ts"
import { closing, type Engine, makeRun, type Run } from "../engine/Engine.ts"
import * as Gate from "../engine/Gate.ts"
import * as Loop from "../engine/Loop.ts"
import type { Entry } from "../ledger/Entry.ts"
import * as Projection from "../ledger/Projection.ts"
import * as Submission from "./Submission.ts"

/** @category models @since 0.1.0 */
export interface Options {
  readonly engine: Engine
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Makes the ids of this opening's generations unlike those of any other (L-A3). */
  readonly nonce: string
}

/** @category models @since 0.1.0 */
export class Core {
  readonly engine: Engine
  readonly scope: Scope.Scope
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #nonce: string
  readonly #awaiting = new Map<Ids.GenerationId, Deferred.Deferred<GenerationReport, SessionError>>()
  #coordinator: Coordinator.Coordinator | undefined
  #run: Run | undefined
  #taken: Run | undefined
  #admission: Admission.Admission | undefined
  #generations = 0
  #wakesAt = Number.POSITIVE_INFINITY
  #closed = false

  private constructor(options: Options, scope: Scope.Scope) {
    this.engine = options.engine
    this.scope = scope
    this.#dispatcher = options.dispatcher
    this.#nonce = options.nonce
  }

  /** Starts the session's owner in the scope. */
  static make(options: Options): Effect.Effect<Core, never, Scope.Scope> {
    return Effect.flatMap(Scope.Scope, (scope) => {
      const core = new Core(options, scope)
      return Effect.map(
        Coordinator.make(() => core.#next(), options.dispatcher),
        (coordinator) => {
          core.#coordinator = coordinator
          return core
        }
      )
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
      paused: Gate.isPaused(this.projection),
      steering: this.engine.agent.steering
    }
  }

  /** Anchored delivery (L-A2 to L-A5): decided, admitted, queued and rung in one step. */
  submitAnchored(input: Input.Input, generationId: Ids.GenerationId): Effect.Effect<Receipt.Receipt> {
    return Effect.suspend(() => {
      const decision = Submission.anchored(this.view, input, generationId)
      if (decision._tag === "Join") return this.join(decision.run, input, generationId, [])
      return this.answer(decision, input.intent, generationId)
    })
  }

  /** Ordinary delivery, by intent (L-F1, L-F2, L-F5). */
  submit(input: Input.Input): Effect.Effect<Receipt.Receipt> {
    return Effect.flatMap(Admission.make, (admission) => {
      const decision = Submission.ordinary(this.view, input)
      switch (decision._tag) {
        case "Join":
          return this.join(decision.run, input, null, [])
        case "Start":
          return this.#accept(input, this.#start(admission, [input.id]))
        case "Enqueue":
          return this.#accept(input, [])
        case "Known":
        case "Refuse":
          return this.answer(decision, input?.intent, null)
      }
    })
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
    this.engine.journal.publish({
      type: "input.refused",
      input_id: inputId,
      reason,
      ...(intent === undefined ? undefined : { intent }),
      ...(anchor === null ? undefined : { target_generation_id: anchor })
    })
    return Effect.succeed(decision.receipt)
  }

  /** Binds an input to the live generation's next boundary, in the same commit as `before`. */
  join(
    run: Run,
    input: Input.Input,
    anchor: Ids.GenerationId | null,
    before: ReadonlyArray<Entry>
  ): Effect.Effect<Receipt.Receipt> {
    const delivery = "request_boundary"
    const bound = { generation_id: run.id, input_id: input.id, target_generation_id: run.id }
    const time = this.engine.journal.now
    const written = this.engine.journal.commit([
      ...before,
      { record: "input", input, anchor, generation_id: run.id, delivery, time },
      { type: "input.accepted", ...bound, intent: input.intent, delivery },
      { type: "steering.accepted", ...bound, delivery }
    ])
    Admission.admit(run.admission, input)
    this.settlePauses()
    return Effect.map(written, () => this.#receipt(input.id))
  }

  /** The report of a generation, when it has one (L-C4). */
  await(id: Ids.GenerationId): Effect.Effect<GenerationReport, UnknownGeneration | SessionError> {
    return Effect.suspend((): Effect.Effect<GenerationReport, UnknownGeneration | SessionError> => {
      const generation = this.projection.generations.get(id)
      if (generation === undefined) return Effect.fail(new UnknownGeneration({ generationId: id }))
      const report = Projection.report(this.projection, generation)
      if (report !== undefined) return Effect.succeed(report)
      const waiting = this.#awaiting.get(id) ?? Deferred.makeUnsafe<GenerationReport, SessionError>()
      this.#awaiting.set(id, waiting)
      return Deferred.await(waiting)
    })
  }

  /** Waits until no generation lives and none is to be started. */
  get awaitIdle(): Effect.Effect<void, SessionError> {
    return Effect.suspend(() => {
      if (this.#closed) return Effect.fail(this.#error())
      return Effect.andThen(
        this.#coordinator?.awaitIdle ?? Effect.void,
        Effect.suspend(() => (this.#closed ? Effect.fail(this.#error()) : Effect.void))
      )
    })
  }

  /** Ends everything with the session (L-C7): returns when every receipt is settled. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closed = true
      const run = this.live
      const end = run && closing(run)
      const ending =
        run === undefined || (end !== undefined && end.outcome !== "stopped")
          ? Effect.void
          : Ending.close(this.engine, run, Ending.sessionClosed, [
              { type: "cancel.requested", generation_id: run.id, cause: "close" }
            ])
      this.interrupt()
      this.wake()
      return ending
    }).pipe(
      Effect.andThen(Effect.suspend(() => this.#coordinator?.awaitIdle ?? Effect.void)),
      Effect.andThen(
        Effect.suspend(() => {
          const { queue, turns } = this.projection
          const entries = [...turns, ...queue].map((id) => Delivery.held(id, null, "session-closed", "close"))
          return this.engine.journal.commit([...entries, { type: "session.closed" }])
        })
      ),
      Effect.andThen(
        Effect.sync(() => {
          this.engine.journal.end("closed")
          const waiting = [...this.#awaiting.values()]
          this.#awaiting.clear()
          const fail = Effect.fail(this.#error())
          this.#soon(() => waiting.forEach((each) => Deferred.doneUnsafe(each, fail)))
        })
      )
    )
  }

  /** Lets the owner look for work. */
  wake(): void {
    this.#coordinator?.wake()
  }

  /** Interrupts the live generation's fiber, in a turn of its own. */
  interrupt(): void {
    this.#coordinator?.interrupt()
  }

  /** Ends the pauses whose conditions hold, and lets what they held back go on. */
  settlePauses(): void {
    const entries = Gate.ended(this.projection, this.engine.journal.now)
    if (entries.length === 0) return
    this.#commitNow(entries)
    const run = this.live
    if (run !== undefined) Admission.ring(run.admission)
    this.wake()
  }

  /** Does something at an instant (milliseconds since the Unix epoch), unless the session has closed by then. */
  at(instant: number, act: () => void): void {
    const delay = Math.max(0, instant - this.engine.journal.now)
    // A timer holds no more than 31 bits of milliseconds; a later instant is reached in several.
    const timer = Effect.andThen(
      Effect.sleep(Duration.millis(Math.min(delay, longestTimer))),
      Effect.sync(() => {
        if (this.#closed) return
        if (delay > longestTimer) this.at(instant, act)
        else act()
      })
    )
    Effect.runForkWith(this.engine.services)(Effect.forkIn(timer, this.scope, { startImmediately: true }))
  }

  #commitNow(entries: ReadonlyArray<Entry>): void {
    Effect.runForkWith(this.engine.services)(this.engine.journal.commit(entries))
  }

  #soon(act: () => void): void {
    this.#dispatcher.scheduleTask(act, 0)
  }

  #error(): SessionError {
    return new SessionError({ sessionId: this.engine.journal.sessionId, reason: { _tag: "Closed" } })
  }

  #accept(input: Input.Input, start: ReadonlyArray<Entry>): Effect.Effect<Receipt.Receipt> {
    const delivery = "new_turn"
    const time = this.engine.journal.now
    const written = this.engine.journal.commit([
      { record: "input", input, anchor: null, generation_id: null, delivery, time },
      { type: "input.accepted", input_id: input.id, intent: input.intent, delivery },
      ...start
    ])
    this.#adopt()
    this.settlePauses()
    this.wake()
    return Effect.map(written, () => this.#receipt(input.id))
  }

  #receipt(id: Ids.InputId): Receipt.Receipt {
    const receipt = this.projection.receipt(id)
    if (receipt === undefined) throw new Error(`input ${id} was committed and is not in the fold`)
    return receipt
  }

  /** What starting a generation journals; `#adopt` makes it live in the step that commits it. */
  #start(admission: Admission.Admission, inputIds: ReadonlyArray<Ids.InputId>): ReadonlyArray<Entry> {
    const [initial] = inputIds
    if (initial === undefined) return []
    this.#admission = admission
    const id = `gen_${this.#nonce}_${++this.#generations}` as Ids.GenerationId
    return [{ type: "generation.started", generation_id: id, initial_input_id: initial, input_ids: inputIds }]
  }

  #adopt(): void {
    const state = this.projection.active
    const admission = this.#admission
    if (state === undefined || admission === undefined || this.#run?.state === state) return
    this.#admission = undefined
    this.#run = makeRun(state, admission)
  }

  /** The owner asks what to do: the live generation if it is new, else what waits, else nothing. */
  #next(): Coordinator.Next {
    const run = this.live
    if (run !== undefined && run !== this.#taken) {
      this.#taken = run
      return this.#work(run)
    }
    const inbox = this.#inbox()
    if (inbox._tag === "Nothing") return "idle"
    if (inbox._tag === "Later") {
      if (inbox.instant < this.#wakesAt) {
        this.#wakesAt = inbox.instant
        this.at(inbox.instant, () => {
          this.#wakesAt = Number.POSITIVE_INFINITY
          this.wake()
        })
      }
      return "later"
    }
    return Effect.flatMap(Admission.make, (admission) => {
      const now = this.#inbox()
      if (now._tag !== "Start") return Effect.void
      const written = this.engine.journal.commit(this.#start(admission, now.inputIds))
      this.#adopt()
      return written
    })
  }

  /** What the next generation would start with, if one may start at all (L-F6). */
  #inbox(): Inbox.Next {
    if (this.live !== undefined || this.#closed || Gate.isPaused(this.projection)) return { _tag: "Nothing" }
    return Inbox.next(this.projection, this.engine.limits, this.engine.journal.now)
  }

  /** Whether nothing is to be started once the live generation has ended. */
  #restful(): boolean {
    const { queue, turns } = this.projection
    return !this.#closed && (Gate.isPaused(this.projection) || (queue.length === 0 && turns.length === 0))
  }

  #work(run: Run): Effect.Effect<void> {
    return Effect.andThen(
      Loop.run(this.engine, run, () => this.#restful()),
      Effect.sync(() => {
        this.engine.rested()
        const waiting = this.#awaiting.get(run.id)
        const report = Projection.report(this.projection, run.state)
        if (waiting === undefined || report === undefined) return
        this.#awaiting.delete(run.id)
        this.#soon(() => Deferred.doneUnsafe(waiting, Effect.succeed(report)))
      })
    )
  }
}

const longestTimer = 2 ** 31 - 1
