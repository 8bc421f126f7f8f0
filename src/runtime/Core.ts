/**
 * The one place of a session that acts: it performs what `Submission` decides, starts generations, and ends them on request.
 * Each operation looks and commits in one synchronous step, and rings whoever must know; none runs another fiber's code.
 *
 * @since 0.1.0
 */
import { Deferred, Effect } from "effect"
import type { Scheduler, Scope } from "effect"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import type { GenerationReport } from "../domain/Generation.ts"
import { UnknownGeneration } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type * as Input from "../domain/Input.ts"
import type { Limits } from "../domain/Limits.ts"
import type * as Receipt from "../domain/Receipt.ts"
import { SessionError } from "../domain/SessionError.ts"
import * as Coordinator from "../engine/Coordinator.ts"
import * as Ending from "../engine/Ending.ts"
import { closing, type Engine, type Run } from "../engine/Engine.ts"
import * as Loop from "../engine/Loop.ts"
import type { Entry } from "../ledger/Entry.ts"
import * as Projection from "../ledger/Projection.ts"
import * as Submission from "./Submission.ts"

/** @category models @since 0.1.0 */
export interface Options {
  readonly engine: Engine
  readonly limits: Limits
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Makes the ids of this opening's generations unlike those of any other (L-A3). */
  readonly nonce: string
}

/** @category models @since 0.1.0 */
export type FollowUps = "keep" | "hold"

/** @category models @since 0.1.0 */
export class Core {
  readonly engine: Engine
  readonly limits: Limits
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #nonce: string
  readonly #awaiting = new Map<Ids.GenerationId, Deferred.Deferred<GenerationReport, SessionError>>()
  #coordinator: Coordinator.Coordinator | undefined
  #run: Run | undefined
  #taken: Run | undefined
  #generations = 0
  #closed = false

  private constructor(options: Options) {
    this.engine = options.engine
    this.limits = options.limits
    this.#dispatcher = options.dispatcher
    this.#nonce = options.nonce
  }

  /** Starts the session's owner in the scope. */
  static make(options: Options): Effect.Effect<Core, never, Scope.Scope> {
    const core = new Core(options)
    return Effect.map(
      Coordinator.make(() => core.#next(), options.dispatcher),
      (coordinator) => {
        core.#coordinator = coordinator
        return core
      }
    )
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

  /** Anchored delivery (L-A2 to L-A5): decided, admitted, queued and rung in one step. */
  submitAnchored(input: Input.Input, generationId: Ids.GenerationId): Effect.Effect<Receipt.Receipt> {
    return Effect.suspend(() => {
      const decision = Submission.anchored(this.#view(), input, generationId)
      if (decision._tag === "Join") return this.#join(decision.run, input, generationId)
      return this.#answer(decision, input, generationId)
    })
  }

  /** Ordinary delivery, by intent (L-F1, L-F2, L-F5). */
  submit(input: Input.Input): Effect.Effect<Receipt.Receipt> {
    return Effect.flatMap(Admission.make, (admission) => {
      const decision = Submission.ordinary(this.#view(), input)
      switch (decision._tag) {
        case "Join":
          return this.#join(decision.run, input, null)
        case "Start":
          return this.#accept(input, null, "new_turn", this.#start(admission, [input.id]))
        case "Enqueue":
          return this.#accept(input, null, "new_turn", [])
        case "Known":
        case "Refuse":
          return this.#answer(decision, input, null)
      }
    })
  }

  /** Lets what runs finish, starts nothing more, and holds what is pending (L-C5). */
  stop(id: Ids.GenerationId, followUps: FollowUps): Effect.Effect<Receipt.ControlReceipt> {
    return Effect.suspend(() => {
      const found = this.#controllable(id)
      if ("accepted" in found) return Effect.succeed(found)
      const end = closing(found)
      if (end?.outcome === "stopped") return Effect.succeed(accepted)
      if (end !== undefined) return Effect.succeed(refusedBecauseClosed)
      return this.#end(found, Ending.stopped, "stop.requested", followUps)
    })
  }

  /** Ends the generation: what runs is interrupted and reconciled, what is pending is held (L-C4, L-C6). */
  cancel(id: Ids.GenerationId, followUps: FollowUps): Effect.Effect<Receipt.ControlReceipt> {
    return Effect.suspend(() => {
      const found = this.#controllable(id)
      if ("accepted" in found) return Effect.succeed(found)
      const end = closing(found)
      if (end?.outcome === "cancelled") return Effect.succeed(accepted)
      if (end !== undefined && end.outcome !== "stopped") return Effect.succeed(refusedBecauseClosed)
      this.#coordinator?.interrupt()
      return this.#end(found, Ending.cancelled, "cancel.requested", followUps)
    })
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
      this.#coordinator?.interrupt()
      this.#coordinator?.wake()
      return ending
    }).pipe(
      Effect.andThen(this.#coordinator?.awaitIdle ?? Effect.void),
      Effect.andThen(
        Effect.suspend(() => {
          const entries = this.#holdWaiting("session-closed", "close", true)
          return this.engine.journal.commit([...entries, { type: "session.closed" }])
        })
      ),
      Effect.andThen(
        Effect.sync(() => {
          this.engine.journal.end("closed")
          this.#settleAwaiting((waiting) => Deferred.doneUnsafe(waiting, Effect.fail(this.#error())))
        })
      )
    )
  }

  #error(): SessionError {
    return new SessionError({ sessionId: this.engine.journal.sessionId, reason: { _tag: "Closed" } })
  }

  #view(): Submission.View {
    return {
      limits: this.limits,
      projection: this.projection,
      live: this.live,
      closed: this.#closed,
      steering: this.engine.agent.steering
    }
  }

  #answer(
    decision: Submission.Decision,
    input: Input.Input,
    anchor: Ids.GenerationId | null
  ): Effect.Effect<Receipt.Receipt> {
    switch (decision._tag) {
      case "Known":
        return Effect.succeed(decision.receipt)
      case "Refuse": {
        const { inputId, reason } = decision.receipt
        this.engine.journal.publish({
          type: "input.refused",
          input_id: inputId,
          reason,
          ...(anchor === null ? undefined : { target_generation_id: anchor })
        })
        return Effect.succeed(decision.receipt)
      }
      case "Join":
      case "Start":
      case "Enqueue":
        return this.#accept(input, anchor, "new_turn", [])
    }
  }

  #join(run: Run, input: Input.Input, anchor: Ids.GenerationId | null): Effect.Effect<Receipt.Receipt> {
    const written = this.engine.journal.commit([
      {
        record: "input",
        input,
        anchor,
        generation_id: run.id,
        delivery: "request_boundary",
        time: this.engine.journal.now
      },
      {
        type: "input.accepted",
        generation_id: run.id,
        input_id: input.id,
        intent: input.intent,
        delivery: "request_boundary",
        target_generation_id: run.id
      },
      {
        type: "steering.accepted",
        generation_id: run.id,
        input_id: input.id,
        target_generation_id: run.id,
        delivery: "request_boundary"
      }
    ])
    Admission.admit(run.admission, input)
    return Effect.map(written, () => this.#receipt(input.id))
  }

  #accept(
    input: Input.Input,
    anchor: Ids.GenerationId | null,
    delivery: Receipt.Delivery,
    start: ReadonlyArray<Entry>
  ): Effect.Effect<Receipt.Receipt> {
    const written = this.engine.journal.commit([
      { record: "input", input, anchor, generation_id: null, delivery, time: this.engine.journal.now },
      { type: "input.accepted", input_id: input.id, intent: input.intent, delivery },
      ...start
    ])
    this.#adopt()
    this.#coordinator?.wake()
    return Effect.map(written, () => this.#receipt(input.id))
  }

  #receipt(id: Ids.InputId): Receipt.Receipt {
    const receipt = this.projection.receipt(id)
    if (receipt === undefined) throw new Error(`input ${id} was committed and is not in the fold`)
    return receipt
  }

  #admission: Admission.Admission | undefined

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
    this.#run = { id: state.id, state, admission, phase: { _tag: "Starting" }, carriedFirst: [] }
  }

  /** The owner asks what to do: the live generation if it is new, else what waits, else nothing. */
  #next(): Effect.Effect<void> | undefined {
    const run = this.live
    if (run !== undefined && run !== this.#taken) {
      this.#taken = run
      return this.#work(run)
    }
    if (run !== undefined || this.#closed || this.#waiting().length === 0) return undefined
    return Effect.flatMap(Admission.make, (admission) => {
      if (this.live !== undefined || this.#closed) return Effect.void
      const written = this.engine.journal.commit(this.#start(admission, this.#waiting()))
      this.#adopt()
      return written
    })
  }

  /** What the next generation starts with: waiting turns, else the first of the queue (L-F5, L-F6). */
  #waiting(): ReadonlyArray<Ids.InputId> {
    const { queue, turns } = this.projection
    return turns.length > 0 ? [...turns] : queue.slice(0, 1)
  }

  #work(run: Run): Effect.Effect<void> {
    return Effect.andThen(
      Loop.run(this.engine, run, () => !this.#closed && this.#waiting().length === 0),
      Effect.sync(() => {
        const waiting = this.#awaiting.get(run.id)
        const report = Projection.report(this.projection, run.state)
        if (waiting === undefined || report === undefined) return
        this.#awaiting.delete(run.id)
        this.#dispatcher.scheduleTask(() => Deferred.doneUnsafe(waiting, Effect.succeed(report)), 0)
      })
    )
  }

  #controllable(id: Ids.GenerationId): Run | Extract<Receipt.ControlReceipt, { readonly accepted: false }> {
    const run = this.live
    if (run?.id === id) return run
    if (this.#closed) return { accepted: false, reason: "session-closed" }
    return run === undefined
      ? { accepted: false, reason: "no-active-generation", actual: null }
      : { accepted: false, reason: "generation-mismatch", actual: run.id }
  }

  #end(
    run: Run,
    end: Ending.Closing,
    type: "stop.requested" | "cancel.requested",
    followUps: FollowUps
  ): Effect.Effect<Receipt.ControlReceipt> {
    const written = Ending.close(this.engine, run, end, [
      { type, generation_id: run.id, cause: "user" },
      ...(followUps === "hold" ? this.#holdWaiting(end.held, end.cause, false) : [])
    ])
    return Effect.as(written, accepted)
  }

  /** Holds what waits for a later generation: the follow-ups and collects, and with `turns` the waiting steers too. */
  #holdWaiting(reason: Receipt.HeldReason, cause: Ending.Closing["cause"], turns: boolean): ReadonlyArray<Entry> {
    const waiting = turns ? [...this.projection.turns, ...this.projection.queue] : this.projection.queue
    return waiting.map((id) => Delivery.held(id, null, reason, cause))
  }

  #settleAwaiting(settle: (waiting: Deferred.Deferred<GenerationReport, SessionError>) => void): void {
    const waiting = [...this.#awaiting.values()]
    this.#awaiting.clear()
    this.#dispatcher.scheduleTask(() => waiting.forEach(settle), 0)
  }
}

const accepted: Receipt.ControlReceipt = { accepted: true }
const refusedBecauseClosed: Receipt.ControlReceipt = { accepted: false, reason: "admission-closed" }
