/**
 * The controls of a session: stop, cancel, pause, resume, decide, withdraw, promote. Each is accepted or refused in one step
 * that never waits for what it ends, and never touches what it is not aimed at (L-C4, L-C5).
 *
 * @since 0.1.0
 */
import { Duration, Effect, Exit, Schema } from "effect"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import * as Supervised from "../boundary/Supervised.ts"
import type * as Ids from "../domain/Ids.ts"
import type * as Receipt from "../domain/Receipt.ts"
import * as ResumeCondition from "../domain/ResumeCondition.ts"
import type { Limits } from "../domain/Limits.ts"
import type { SessionError } from "../domain/SessionError.ts"
import { ToolScope } from "../domain/ToolScope.ts"
import * as Ending from "../engine/Ending.ts"
import { closing, type Run } from "../engine/Engine.ts"
import * as Gate from "../engine/Gate.ts"
import type { Decision } from "../domain/ToolCall.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { PauseState } from "../ledger/Projection.ts"
import type { Core } from "./Core.ts"
import * as Submission from "./Submission.ts"

/** @category models @since 0.1.0 */
export type FollowUps = "keep" | "hold"

type Refused = Extract<Receipt.ControlReceipt, { readonly accepted: false }>

const accepted: Receipt.ControlReceipt = { accepted: true }
const refused = (reason: Refused["reason"], more: Partial<Refused> = {}): Refused => ({
  accepted: false,
  reason,
  ...more
})

/** Looks and acts in one step; a closed session takes no control. */
const control = (
  core: Core,
  act: () => Refused | Effect.Effect<Receipt.ControlReceipt>
): Effect.Effect<Receipt.ControlReceipt> =>
  Effect.suspend((): Effect.Effect<Receipt.ControlReceipt> => {
    if (core.closed) return Effect.succeed(refused("session-closed"))
    const answer = act()
    return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
  })

/** The live generation if it is the one meant; whatever else is refused and left alone. */
const controllable = (core: Core, id: Ids.GenerationId): Run | Refused => {
  const run = core.live
  if (run?.id === id) return run
  return run === undefined
    ? refused("no-active-generation", { actual: null })
    : refused("generation-mismatch", { actual: run.id })
}

const end = (
  core: Core,
  run: Run,
  ending: Ending.Closing,
  type: "stop.requested" | "cancel.requested",
  followUps: FollowUps
): Effect.Effect<Receipt.ControlReceipt> => {
  const held = followUps === "hold" ? holdQueued(core, ending) : nothingHeld
  const asked: Entry = { type, generation_id: run.id, cause: "user" }
  const { entries, over } = held
  return answered(Ending.close(core.engine, run, ending, [asked, ...entries], { applied: over, failed: over }))
}

/** Accepted once it is written (L-C10). */
const answered = (
  written: Effect.Effect<void, SessionError>,
  answer: () => Receipt.ControlReceipt = () => accepted
): Effect.Effect<Receipt.ControlReceipt> =>
  Effect.match(written, { onSuccess: answer, onFailure: () => refused("storage-unavailable") })

/** Holds the follow-ups and collects that wait, but those whose fate is already in the lane (L-C6). */
const holdQueued = (core: Core, ending: Ending.Closing): Held => {
  const ids = core.projection.queue.filter((id) => !core.reservations.isClaimed(id))
  return {
    entries: ids.map((id) => Delivery.held(id, null, ending.held, ending.cause)),
    over: core.reservations.claim(ids)
  }
}

interface Held {
  readonly entries: ReadonlyArray<Entry>
  readonly over: () => void
}

const nothingHeld: Held = { entries: [], over: () => {} }

/** The same control again: accepted, and what it adds is done. */
const again = (core: Core, ending: Ending.Closing, followUps: FollowUps): Effect.Effect<Receipt.ControlReceipt> => {
  const { entries, over } = followUps === "hold" ? holdQueued(core, ending) : nothingHeld
  const { journal } = core.engine
  // Not before the first is written either (L-C10).
  return answered(entries.length === 0 ? journal.flushed : journal.commit(entries, { applied: over, failed: over }))
}

/**
 * Lets what runs finish, starts nothing more, and holds what is pending (L-C5).
 *
 * @category operations
 * @since 0.1.0
 */
export const stop = (core: Core, id: Ids.GenerationId, followUps: FollowUps): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const run = controllable(core, id)
    if ("accepted" in run) return run
    const already = closing(run)
    if (already?.outcome === "stopped") return again(core, already, followUps)
    if (already !== undefined) return refused("admission-closed", { actual: run.id })
    return end(core, run, Ending.stopped, "stop.requested", followUps)
  })

/**
 * Ends the generation: what runs is interrupted and reconciled, what is pending is held. Overrides a stop (L-C4 to L-C6).
 *
 * @category operations
 * @since 0.1.0
 */
export const cancel = (core: Core, id: Ids.GenerationId, followUps: FollowUps): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const run = controllable(core, id)
    if ("accepted" in run) return run
    const already = closing(run)
    if (already?.outcome === "cancelled") return again(core, already, followUps)
    if (already !== undefined && (already.outcome !== "stopped" || run.phase._tag === "Ending")) {
      return refused("admission-closed", { actual: run.id })
    }
    core.interrupt()
    return end(core, run, Ending.cancelled, "cancel.requested", followUps)
  })

/** @category models @since 0.1.0 */
export interface PauseOptions {
  /** What ends the pause; by hand unless said (L-C3). */
  readonly until?: ResumeCondition.ResumeCondition
  /** Which tools' calls it is about; all work unless said. */
  readonly scope?: ToolScope
}

const isShape = Schema.is(
  Schema.Struct({
    until: Schema.optional(ResumeCondition.ResumeCondition),
    scope: Schema.optional(ToolScope)
  })
)

/** Looked at for hosts without types: conditions that are no conditions, or that never end. */
const isPause = (options: PauseOptions, limits: Limits): boolean => {
  try {
    return (
      JSON.stringify(options ?? {}).length <= limits.metadataBytes &&
      isShape(options ?? {}) &&
      (options?.scope?.tools.length ?? 0) <= limits.scopeNames
    )
  } catch {
    return false
  }
}

/**
 * Asks for a pause. It is in effect when no affected work runs and a checkpoint is saved (L-C2); pauses add up. A condition that
 * could never hold, or one more pause than the limit, is refused `condition-unmet`.
 *
 * @category operations
 * @since 0.1.0
 */
export const pause = (core: Core, options: PauseOptions = {}): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const { scope, until = ResumeCondition.manual } = options ?? {}
    const { journal, limits } = core.engine
    if (
      !isPause(options, limits) ||
      !ResumeCondition.canHold(until) ||
      core.projection.pauses.length >= limits.pauses
    ) {
      return refused("condition-unmet", { unmet: [until] })
    }
    const nothing = { manual: false, signals: new Set<string>(), inputAccepted: false, now: journal.now }
    const asked: Entry = {
      type: "pause.requested",
      until,
      unmet: ResumeCondition.unmet(until, nothing),
      ...(scope === undefined ? undefined : { scope })
    }
    const applied = () => {
      core.pausing.settle()
      // Whoever waits for an answer looks again, and may find that it is at rest.
      if (core.live !== undefined) Admission.ring(core.live.admission)
      core.engine.rested()
    }
    return answered(journal.commit([asked], { refusable: true, applied }))
  })

/**
 * Resumes by hand, or gives a named signal. Accepted when it ends a pause; refused with what is still unmet otherwise. What was
 * said counts either way: a signal given early need not be given again (L-C3).
 *
 * @category operations
 * @since 0.1.0
 */
export const resume = (core: Core, signal?: string): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const { journal } = core.engine
    const { pauses } = core.projection
    const unmet = () =>
      refused("condition-unmet", { unmet: pauses.flatMap((each) => Gate.waitsFor(each, journal.now)) })
    // What no pause waits for changes nothing, and is not kept (L-A6).
    if (!pauses.some((each) => Gate.waitsForSignal(each, signal, journal.now))) return unmet()
    let answer: Receipt.ControlReceipt = accepted
    const applied = () => {
      if (!core.pausing.settle()) answer = unmet()
    }
    const written = journal.commit([{ record: "resumed", signal: signal ?? null }], { refusable: true, applied })
    return answered(written, () => answer)
  })

/**
 * Lets pauses that nothing affected runs against any more take effect, once the host's checkpoint is saved. It runs in a fiber
 * of the session's, so that whoever asked for the pause may go away.
 *
 * @category operations
 * @since 0.1.0
 */
export const settleRested = (core: Core): void => {
  const { checkpointer, grace, journal, services } = core.engine
  if (core.projection.pauses.length === 0) return
  const run = core.live
  const busy = run !== undefined && run.phase._tag !== "Paused"
  const ready = Gate.ready(core.projection, run?.running?.values() ?? [], busy).filter(
    (each) => !core.pausing.isSaving(each) && !core.pausing.isEnding(each)
  )
  if (ready.length === 0) return
  const release = core.pausing.save(ready)
  const saved: ReadonlyArray<Entry> =
    run === undefined ? [] : [{ type: "checkpoint.saved", generation_id: run.id, request: run.state.request }]
  const save =
    run === undefined
      ? Effect.succeedSome(Exit.void)
      : Supervised.within(
          Effect.suspend(() =>
            checkpointer({
              sessionId: journal.sessionId,
              generationId: run.id,
              request: run.state.request,
              sequence: journal.sequence
            })
          ),
          grace
        )
  const take: Effect.Effect<void> = Effect.flatMap(save, (answer) => {
    const still = ready.filter((each) => core.projection.pauses.includes(each) && !core.pausing.isEnding(each))
    if (still.length === 0 || core.closed) return Effect.void
    // A pause without its checkpoint is not in effect: it is tried again for as long as the pause stands.
    if (answer._tag === "None" || Exit.isFailure(answer.value)) {
      return Effect.andThen(
        Effect.sleep(beforeRetry),
        Effect.suspend(() => take)
      )
    }
    const lives = run !== undefined && core.live === run
    return Effect.ignore(
      journal.commit([...(lives ? saved : []), ...still.map((each: PauseState) => Gate.effective(each))])
    )
  })
  const once = Effect.ensuring(take, Effect.sync(release))
  Effect.runForkWith(services)(Effect.forkIn(once, core.scope, { startImmediately: true }))
}

const beforeRetry = Duration.seconds(1)

/**
 * Answers the question about a call (L-T13). Refused once it is answered, or the call no longer waits.
 *
 * @category operations
 * @since 0.1.0
 */
export const decide = (core: Core, id: Ids.ToolCallId, decision: Decision): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const run = core.live
    const step = run?.state.step
    const name = step?._tag === "Calling" ? step.calls.get(id)?.name : undefined
    // A correction that affects the call has withdrawn it, though its batch has not said so yet (L-T13).
    const withdrawn = run !== undefined && name !== undefined && Admission.affecting(run.admission, name).length > 0
    if (run?.asking?.has(id) === true && closing(run) === undefined && !withdrawn) {
      if (run.asking.get(id) !== undefined || run.deciding?.has(id) === true) return refused("already-decided")
      run.deciding ??= new Set()
      run.deciding.add(id)
      let answer: Receipt.ControlReceipt = accepted
      const applied = () => {
        run.deciding?.delete(id)
        // Looked at again: a correction or an end may have been ahead of it in the lane.
        const waits = run.asking?.has(id) === true && closing(run) === undefined
        if (waits && (name === undefined || Admission.affecting(run.admission, name).length === 0)) {
          run.asking?.set(id, told)
        } else answer = refused("already-decided")
        Admission.ring(run.admission)
      }
      const failed = () => void run.deciding?.delete(id)
      // Only an allowing answer allows, whatever a host without types gives.
      const told: Decision =
        decision._tag === "Allow" ? { _tag: "Allow" } : { _tag: "Deny", reason: reasonOf(decision) }
      const entry: Entry = { record: "decision", call_id: id, decision: told }
      return answered(core.engine.journal.commit([entry], { refusable: true, applied, failed }), () => answer)
    }
    for (const { calls } of core.projection.generations.values()) {
      if (calls.some((call) => call.id === id)) return refused("already-decided")
    }
    return refused("unknown-id")
  })

const reasonOf = (decision: { readonly reason?: unknown }): string =>
  typeof decision.reason === "string" ? decision.reason : "denied"

/**
 * Takes a queued follow-up or collect back (L-F8). Steering is never withdrawn.
 *
 * @category operations
 * @since 0.1.0
 */
export const withdraw = (core: Core, id: Ids.InputId): Effect.Effect<Receipt.ControlReceipt> =>
  control(core, () => {
    const undecided = core.reservations.decided(id)
    if (undecided !== undefined) return Effect.andThen(undecided, withdraw(core, id))
    if (!core.projection.inputs.has(id)) return refused("unknown-id")
    if (!core.projection.queue.includes(id)) return refused("not-queued")
    const unclaim = core.reservations.claim([id])
    const over = () => {
      unclaim()
      core.wake()
    }
    const entry = Delivery.held(id, null, "withdrawn", "user")
    return answered(core.engine.journal.commit([entry], { refusable: true, applied: over, failed: over }))
  })

/**
 * Turns a queued follow-up into steering of the running generation, in one step (L-F9).
 *
 * @category operations
 * @since 0.1.0
 */
export const promote = (
  core: Core,
  id: Ids.InputId,
  generationId: Ids.GenerationId,
  as?: Ids.InputId
): Effect.Effect<Receipt.Receipt> =>
  Effect.suspend(() => {
    const undecided = core.reservations.decided(id) ?? core.reservations.settled(as)
    if (undecided !== undefined) return Effect.andThen(undecided, promote(core, id, generationId, as))
    const fresh = `in_${globalThis.crypto.randomUUID()}` as Ids.InputId
    const decision = Submission.promotion(core.view, id, generationId, as ?? fresh)
    if (decision._tag !== "Promote") return core.answer(decision, "steer", generationId)
    return core.join(decision.run, decision.input, generationId, id)
  })
