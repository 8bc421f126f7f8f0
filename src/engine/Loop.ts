/**
 * One generation: boundary → request → tools → boundary …, until the second look after a final answer finds nothing pending.
 * The loop runs under one mask; the only windows for an interrupt are the provider's stream and the host's own work, so
 * nothing the runtime does can be cut in half.
 *
 * @since 0.1.0
 */
import { Clock, Duration, Effect, Exit, Schedule } from "effect"
import type { AiError, Prompt, Response } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import * as Delivery from "../boundary/Delivery.ts"
import * as Supervised from "../boundary/Supervised.ts"
import type * as Ids from "../domain/Ids.ts"
import type { SessionError } from "../domain/SessionError.ts"
import type { Entry } from "../ledger/Entry.ts"
import { openCalls } from "../ledger/Projection.ts"
import * as Checkpointer from "./Checkpointer.ts"
import * as Ending from "./Ending.ts"
import { closing, commit, type Engine, isHandsOff, type Run } from "./Engine.ts"
import * as Gate from "./Gate.ts"
import { after } from "./Immediate.ts"
import * as Outgoing from "./Outgoing.ts"
import * as Recovery from "./Recovery.ts"
import * as Request from "./Request.ts"
import type { Gathered } from "./Response.ts"
import * as ToolBatch from "./ToolBatch.ts"
import * as ToolCalls from "./ToolCalls.ts"
import { type NotStarted, notStartedBy } from "./ToolDecision.ts"
import { describe } from "./ToolRunner.ts"
import * as Transcript from "./Transcript.ts"

/**
 * Runs a generation to its terminal event. It fails when the journal is lost, and with it the right to say anything: whoever
 * opens the session next settles it (L-R7). Fork it uninterruptible: an interrupt can then not fall between the fork and the
 * mask and leave a generation without an end (L-E6).
 *
 * @category operations
 * @since 0.1.0
 */
export const run = (engine: Engine, live: Run, idle: () => boolean): Effect.Effect<void, SessionError> =>
  Effect.flatMap(
    Effect.exit(Effect.interruptible(Effect.uninterruptibleMask((restore) => work(engine, live, restore)))),
    (exit) => Effect.flatMap(conclude(engine, live, exit), () => Ending.settle(engine, live, idle))
  )

/** A generation that starts here has no step of another process to bring to its end (L-R2). */
const work = (engine: Engine, live: Run, restore: Restore): Effect.Effect<void, SessionError> => {
  const { _tag } = live.state.step
  const goesOn = _tag === "Final" || _tag === "Calling"
  return goesOn
    ? Effect.flatMap(resume(engine, live, restore), () => steps(engine, live, restore))
    : steps(engine, live, restore)
}

/** What the steps came to: what they left staged is written, and an end that nobody has decided is. */
const conclude = (
  engine: Engine,
  live: Run,
  exit: Exit.Exit<void, SessionError>
): Effect.Effect<void, SessionError> => {
  if (engine.journal.lost !== undefined) return Effect.void
  const written = live.staged === undefined ? Effect.void : commit(engine, live, [])
  return after(written, () => {
    if (Exit.isSuccess(exit)) return Effect.void
    return Exit.hasInterrupts(exit) ? Ending.interrupted(engine, live) : defect(engine, live, describe(exit.cause))
  })
}

/** A defect ends the run, and the calls it leaves open are answered like those of a lost one. */
const defect = (engine: Engine, live: Run, message: string): Effect.Effect<void, SessionError> => {
  const end = Ending.failed({ kind: "defect", message })
  return Effect.andThen(
    Ending.close(engine, live, end),
    Recovery.answerDefect(engine, live.state, closing(live) ?? end)
  )
}

/** Brings the step that another process began to its end (L-R2). */
const resume = Effect.fnUntraced(function* (engine: Engine, live: Run, restore: Restore) {
  const { request, step } = live.state
  if (step._tag === "Final") return yield* finish(engine, live, restore)
  if (step._tag !== "Calling") return
  live.phase = { _tag: "RunningTools", request }
  const conversation = yield* Transcript.read(engine, restore)
  if (conversation._tag === "Ended" && Exit.isSuccess(conversation.exit)) live.sent = conversation.exit.value
  const calls = ToolCalls.restored(openCalls(live.state))
  const refusal = isSpent(engine, live) ? overBudget : undefined
  const batch = { engine, live, request, calls, restore }
  if (engine.context === undefined) {
    yield* ToolBatch.run({ ...batch, refusal })
    return
  }
  // A host's context may have been lost before it had the response: calls nobody has asked for are not launched.
  const asked = yield* Transcript.hasAsked(engine, calls)
  const lost = asked ? refusal : ({ _tag: "NotStarted", reason: "process-lost" } as const)
  yield* ToolBatch.owe({ ...batch, refusal: lost })
})

/** Whether the generation has made as many requests as it may. */
const isSpent = (engine: Engine, live: Run): boolean => live.state.request >= engine.agent.maxRequests

const overBudget: NotStarted = { _tag: "NotStarted", reason: "budget" }

type Restore = Supervised.Restore

/** Returns when admission has closed, and only then. */
const steps = Effect.fnUntraced(function* (engine: Engine, live: Run, restore: Restore) {
  let backoff: Backoff | undefined
  let first = true
  let continues = false
  while (closing(live) === undefined) {
    let delivering = nobody
    if (goesStraightOn(engine, live)) {
      delivering = stage(engine, live, first)
      first = false
    } else {
      if (live.staged !== undefined) {
        yield* commit(engine, live, [])
        engine.rested()
        continue
      }
      if (isSpent(engine, live)) return yield* Ending.close(engine, live, Ending.exhausted)
      yield* gate(engine, live, restore)
      if (closing(live) !== undefined) return
      yield* boundary(engine, live, first, restore)
      first = false
      if (closing(live) !== undefined) return
    }
    const responded: Request.Responded | undefined = yield* request(engine, live, delivering, continues, restore)
    if (responded === undefined) continue
    switch (responded._tag) {
      case "Complete": {
        backoff = undefined
        continues = responded.reason === "pause" && responded.gathered.calls.length === 0
        yield* complete(engine, live, responded.gathered, responded.reason, restore)
        break
      }
      case "Interrupted": {
        yield* interrupted(engine, live, responded.gathered, restore)
        break
      }
      case "Failed": {
        const { error, gathered, retryable } = responded
        if (retryable !== undefined) backoff ??= yield* makeBackoff(engine)
        const delay = retryable === undefined || backoff === undefined ? undefined : yield* backoff(retryable)
        const retry = delay !== undefined && closing(live) === undefined && !isSpent(engine, live)
        // Whatever the provider remembers of this response, it must not go on from it (L-P4).
        engine.tracker?.clearUnsafe()
        const entry: Entry = {
          type: "request.failed",
          generation_id: live.id,
          request: live.state.request,
          input_ids: live.carriedFirst,
          cause: "provider-failure",
          error,
          retry
        }
        // A failed request of a generation that is handed on is made again by whoever goes on with it (L-C9).
        if (closing(live)?.parks === true) return yield* engine.journal.commit([entry])
        if (retry) {
          yield* engine.journal.commit([entry])
          yield* backOff(engine, live, delay, restore)
          break
        }
        // A stop that was accepted while the last request ran decides the outcome, not the request's failure (L-C5).
        if (closing(live) === undefined) yield* Ending.close(engine, live, Ending.failed(error))
        yield* abandon(engine, live, gathered, [entry], restore)
      }
    }
  }
})

/**
 * Whether the next request follows in the run of this code: then one commit takes the end of the step before, what the boundary
 * delivers, and the request. Where a host has a hand in it, or anything is paused, each is written before what comes next.
 */
const goesStraightOn = (engine: Engine, live: Run): boolean =>
  isHandsOff(engine) &&
  engine.journal.projection.pauses.length === 0 &&
  // What is being written, a pause perhaps, is folded before anything builds on the fold.
  engine.journal.isQuiet &&
  !isSpent(engine, live)

/** Takes what the boundary delivers into the commit that is to come, and answers which inputs those are. */
const stage = (engine: Engine, live: Run, first: boolean): ReadonlyArray<Ids.InputId> => {
  const { projection } = engine.journal
  const started = first ? projection.admitted(live.state.initialInputIds) : []
  const pending = Admission.take(live.admission, Number.POSITIVE_INFINITY)
  if (started.length === 0 && pending.length === 0) return nobody
  const items = [...Delivery.itemsOf(started), ...pending.map(Delivery.alone)]
  const entries = Delivery.written(projection, live.id, items)
  live.staged =
    live.staged === undefined ? { entries } : { ...live.staged, entries: [...live.staged.entries, ...entries] }
  return [...started, ...pending].map(({ id }) => id)
}

const nobody: ReadonlyArray<Ids.InputId> = []

/** Waits while all work is paused: the pause takes effect here, and inputs accepted meanwhile stay queued (L-C2). */
const gate = Effect.fnUntraced(function* (engine: Engine, live: Run, restore: Restore) {
  while (Gate.isPaused(engine.journal.projection) && closing(live) === undefined) {
    live.phase = { _tag: "Paused" }
    engine.rested()
    const waited = yield* Effect.exit(restore(live.admission.bell.wait))
    if (Exit.isFailure(waited)) return yield* Ending.interrupted(engine, live)
  }
  // In the step that leaves: a pause asked for from here on finds work, and waits for it.
  live.phase = { _tag: "Delivering" }
})

/** Writes what the generation was started with, then everything pending, in admission order (L-B1). */
const boundary = Effect.fnUntraced(function* (engine: Engine, live: Run, first: boolean, restore: Restore) {
  live.phase = { _tag: "Delivering" }
  const { context, grace, journal } = engine
  if (context === undefined) {
    if (stage(engine, live, first).length > 0) yield* commit(engine, live, [])
    return
  }
  const owed = yield* Transcript.settleDebt(engine)
  if (owed !== undefined) return yield* contextFailed(engine, live, owed)
  const target: Delivery.Target = {
    generationId: live.id,
    journal,
    grace,
    interruption: () => closing(live) ?? Ending.sessionClosed
  }
  const started = first ? Delivery.itemsOf(journal.projection.admitted(live.state.initialInputIds)) : []
  let index = 0
  while (closing(live) === undefined) {
    const [next] = index < started.length ? [started[index++]] : Admission.take(live.admission, 1).map(Delivery.alone)
    if (next === undefined) return
    const delivered = yield* Delivery.toStore(target, context, next, restore)
    if (delivered._tag === "Interrupted") return yield* Ending.interrupted(engine, live)
    if (delivered._tag === "Failed") return yield* contextFailed(engine, live, delivered.message)
  }
})

const request = (
  engine: Engine,
  live: Run,
  delivering: ReadonlyArray<Ids.InputId>,
  continues: boolean,
  restore: Restore
): Effect.Effect<Request.Responded | undefined, SessionError> =>
  after(Outgoing.make(engine, live, delivering, continues, restore), (outgoing) => {
    // Looked at in the step that commits the request: what has ended or is paused starts nothing more (L-C5, L-C2).
    if (outgoing === undefined || closing(live) !== undefined || Gate.isPaused(engine.journal.projection)) {
      return Effect.undefined
    }
    const number = live.state.request + 1
    live.phase = { _tag: "Requesting", request: number }
    live.carrying = outgoing.carrying
    live.carriedFirst = outgoing.carriedFirst
    live.sent = outgoing.messages
    for (const { input_id } of outgoing.dropped) (live.notCarried ??= new Set()).add(input_id)
    const started = commit(engine, live, [
      { type: "request.started", generation_id: live.id, request: number, input_ids: outgoing.carriedFirst },
      ...outgoing.dropped
    ])
    return after(started, () => Request.send(engine, live, number, outgoing.messages, restore))
  })

const complete = (
  engine: Engine,
  live: Run,
  gathered: Gathered,
  reason: Response.FinishReason,
  restore: Restore
): Effect.Effect<void, SessionError> => {
  if (!gathered.whole) engine.tracker?.clearUnsafe()
  const number = live.state.request
  const requested = ToolCalls.requested(live, number, gathered.calls, gathered.repeats)
  const entries: Array<Entry> = [
    {
      type: "request.completed",
      generation_id: live.id,
      request: number,
      input_ids: live.carriedFirst,
      usage: gathered.usage,
      reason
    }
  ]
  for (const id of live.carrying) {
    const intent = engine.journal.projection.inputs.get(id)?.intent
    if (intent === undefined) continue
    entries.push({ type: "input.completed", generation_id: live.id, input_id: id, intent, request: number })
  }
  const isFinal = gathered.calls.length === 0 && reason !== "pause"
  if (gathered.text.trim() !== "" || isFinal) {
    entries.push({ type: "assistant.message", generation_id: live.id, request: number, text: gathered.text })
  }
  entries.push(...requested.entries)
  const { calls } = requested
  if (calls.length === 0) {
    return after(Transcript.append(engine, live, entries, listed(gathered.message), restore), (fault) => {
      if (fault !== undefined) return contextFailed(engine, live, fault)
      return isFinal ? finish(engine, live, restore) : Effect.void
    })
  }
  const refusal = refusalOf(engine, live, reason)
  if (refusal !== undefined) return unlaunched(engine, live, entries, gathered.message, calls, refusal, restore)
  if (engine.context !== undefined) return intoContext(engine, live, entries, gathered.message, calls, restore)
  live.phase = { _tag: "RunningTools", request: number }
  if (gathered.message !== undefined) entries.push(Transcript.recorded(live, gathered.message))
  return Effect.asVoid(ToolBatch.run({ engine, live, request: number, calls, restore, opening: entries }))
}

/** A response with calls, where a host keeps the context: none is launched before that has the response. */
const intoContext = Effect.fnUntraced(function* (
  engine: Engine,
  live: Run,
  entries: ReadonlyArray<Entry>,
  message: Prompt.Message | undefined,
  calls: ReadonlyArray<ToolCalls.Call>,
  restore: Restore
) {
  const number = live.state.request
  const fault = yield* Transcript.append(engine, live, entries, listed(message), restore)
  if (fault !== undefined) {
    yield* contextFailed(engine, live, fault)
    // Whether the response landed cannot be told: its calls are answered once it is known to be there.
    const { entries: ended, message } = ToolCalls.refuse(live, number, calls, failedToo)
    engine.debt.results = message
    return yield* engine.journal.commit(ended)
  }
  live.phase = { _tag: "RunningTools", request: number }
  const lost = yield* ToolBatch.run({ engine, live, request: number, calls, restore })
  if (lost !== undefined) yield* contextFailed(engine, live, lost)
})

const failedToo = { _tag: "NotStarted", reason: "failed" } as const

const listed = (message: Prompt.Message | undefined): ReadonlyArray<Prompt.Message> =>
  message === undefined ? [] : [message]

/** A response none of whose calls may be launched: it and the answers to them are one step. */
const unlaunched = Effect.fnUntraced(function* (
  engine: Engine,
  live: Run,
  entries: ReadonlyArray<Entry>,
  message: Prompt.Message | undefined,
  calls: ReadonlyArray<ToolCalls.Call>,
  refusal: NotStarted,
  restore: Restore
) {
  const refused = ToolCalls.refuse(live, live.state.request, calls, refusal)
  const all = [...entries, ...refused.entries]
  const fault = yield* Transcript.append(engine, live, all, [...listed(message), refused.message], restore)
  if (fault === undefined) return
  engine.debt.results = refused.message
  yield* contextFailed(engine, live, fault)
})

/** Why none of a complete response's calls may be launched, if so (L-T12, L-E3). */
const refusalOf = (engine: Engine, live: Run, reason: Response.FinishReason) => {
  if (reason === "length") {
    const detail = "the response was cut at the provider's length limit"
    return { _tag: "NotStarted", reason: "invalid", detail } as const
  }
  const end = closing(live)
  // What is handed on as it stands stays asked for (L-C9).
  if (end !== undefined) return end.parks === true ? undefined : notStartedBy(end)
  return isSpent(engine, live) ? overBudget : undefined
}

const contextFailed = (engine: Engine, live: Run, message: string): Effect.Effect<void, SessionError> =>
  Ending.fail(engine, live, "context", message)

/** The checkpoint, then the second look: either something is pending and the generation goes on, or admission closes (L-E1, L-E2). */
const finish = Effect.fnUntraced(function* (engine: Engine, live: Run, restore: Restore) {
  const { checkpointer, journal } = engine
  const number = live.state.request
  live.phase = { _tag: "Checkpointing", request: number }
  if (checkpointer !== Checkpointer.saveNothing) {
    const { sequence, sessionId } = journal
    const checkpoint = { sessionId, generationId: live.id, request: number, sequence }
    const saved = yield* Supervised.run(
      Effect.suspend(() => checkpointer(checkpoint)),
      restore,
      engine.grace
    )
    if (saved._tag !== "Ended") return yield* Ending.interrupted(engine, live)
    if (Exit.isFailure(saved.exit)) {
      const message = `the checkpoint was not saved: ${describe(saved.exit.cause)}`
      return yield* Ending.fail(engine, live, "checkpoint", message)
    }
  }
  yield* journal.commit([{ type: "checkpoint.saved", generation_id: live.id, request: number }])
  while (true) {
    const state = Admission.get(live.admission)
    if (state._tag === "Closed") return
    if (Admission.closeIfEmpty(live.admission, Ending.finished)) return
    if (state.pending.length > 0) {
      // A steer never raises the budget: the answer stands, and what came after it is held (L-E3).
      if (isSpent(engine, live)) return yield* Ending.close(engine, live, Ending.finished)
      return
    }
    // Only an admission still being written keeps an empty queue open (L-A7).
    yield* live.admission.bell.wait
  }
})

/** The request was cut by the generation's own end. */
const interrupted = Effect.fnUntraced(function* (engine: Engine, live: Run, gathered: Gathered, restore: Restore) {
  engine.tracker?.clearUnsafe()
  // A request that was in flight when the session was handed on is made again (L-C9).
  if (closing(live)?.parks === true) return
  yield* Ending.interrupted(engine, live)
  yield* abandon(engine, live, gathered, [], restore)
})

/** Keeps what a response that will not be retried had said, and answers the calls it had finished asking for (L-T12). */
const abandon = Effect.fnUntraced(function* (
  engine: Engine,
  live: Run,
  gathered: Gathered,
  entries: ReadonlyArray<Entry>,
  restore: Restore
) {
  const end = closing(live) ?? Ending.stopped
  const number = live.state.request
  const requested = ToolCalls.requested(live, number, gathered.calls, gathered.repeats)
  const said: ReadonlyArray<Entry> =
    gathered.text.trim() === ""
      ? []
      : [{ type: "assistant.message", generation_id: live.id, request: number, text: gathered.text }]
  const journalled = [...entries, ...said, ...requested.entries]
  if (requested.calls.length === 0) {
    yield* Transcript.append(engine, live, journalled, listed(gathered.message), restore)
    return
  }
  yield* unlaunched(engine, live, journalled, gathered.message, requested.calls, notStartedBy(end), restore)
})

type Backoff = (error: AiError.AiError) => Effect.Effect<Duration.Duration | undefined>

/** The agent's schedule, stepped by hand so that a correction, a stop and a cancel are seen while it waits. */
const makeBackoff = (engine: Engine): Effect.Effect<Backoff> =>
  Effect.map(
    Schedule.toStep(engine.agent.retry),
    (step): Backoff =>
      (error) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const stepped = yield* Effect.exit(step(now, error))
          if (Exit.isFailure(stepped)) return undefined
          const [, delay] = stepped.value
          const asked = error.reason._tag === "RateLimitError" ? error.reason.retryAfter : undefined
          return asked === undefined ? delay : Duration.max(delay, asked)
        })
  )

/** Waits out the backoff, or as long as nothing ends the generation. */
const backOff = Effect.fnUntraced(function* (engine: Engine, live: Run, delay: Duration.Duration, restore: Restore) {
  live.phase = { _tag: "BackingOff", request: live.state.request }
  const ended: Effect.Effect<void> = Effect.suspend(() =>
    closing(live) === undefined ? Effect.flatMap(live.admission.bell.wait, () => ended) : Effect.void
  )
  const waited = yield* Effect.exit(restore(Effect.raceFirst(Effect.sleep(delay), ended)))
  if (Exit.isFailure(waited)) yield* Ending.interrupted(engine, live)
})
