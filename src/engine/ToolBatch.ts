/**
 * The calls of one response, from requested to answered (L-T1 to L-T9). What happens next is decided purely from what each
 * call has come to, what is pending and how the run stands; one loop performs it, commits before it acts, and answers every
 * call in the order requested, whatever happens.
 *
 * ```
 *   ┌── allowed ── Asking ── denied, withdrawn ──→ Ended(denied, not started)
 *   ↓                ↑ ask
 * Waiting ─ launch ─┴────────────→ Running ─ exit ──────→ Ended
 *    │                                └─ cut, then grace ──→ Ended(interrupted)
 *    └─ withheld, denied, invalid, run closed ──────────────→ Ended(not started)
 * ```
 *
 * @since 0.1.0
 */
import { Effect, Exit, Schema } from "effect"
import { Prompt, type Tool } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import * as Supervised from "../boundary/Supervised.ts"
import type * as Ids from "../domain/Ids.ts"
import type { OnCorrection } from "../domain/Agent.ts"
import * as Uncancellable from "../domain/Uncancellable.ts"
import type { Phase } from "../domain/Generation.ts"
import type { SessionError } from "../domain/SessionError.ts"
import type { Entry } from "../ledger/Entry.ts"
import { isDone, isOpen } from "./Immediate.ts"
import { closing, type Engine, isCutting, type Run, type Staged } from "./Engine.ts"
import * as Ending from "./Ending.ts"
import * as Gate from "./Gate.ts"
import { decide, type NotStarted, type View } from "./ToolDecision.ts"
import { about, type Call, established, type Established, notStarted } from "./ToolCalls.ts"
import * as ToolPolicy from "./ToolPolicy.ts"
import * as ToolResult from "./ToolResult.ts"
import { describe, mayNeedApproval, type Outcome, outcomeOf } from "./ToolRunner.ts"
import * as Transcript from "./Transcript.ts"

/**
 * The calls of one response. `opening` is what asked for them, where it is yet to be journalled; `refusal` says why none of them
 * may be launched.
 *
 * @category models
 * @since 0.1.0
 */
export interface Batch {
  readonly engine: Engine
  readonly live: Run
  readonly request: number
  readonly calls: ReadonlyArray<Call>
  readonly restore: Supervised.Restore
  readonly opening?: Array<Entry>
  readonly refusal?: NotStarted | undefined
}

/**
 * Runs the calls of a response to their answers. Where the journal is the context, the last of them and the message that answers
 * them all are left staged, if any was launched. Answers why a host's context did not take the results, or `undefined`.
 *
 * @category operations
 * @since 0.1.0
 */
export const run = (batch: Batch): Effect.Effect<string | undefined, SessionError> =>
  Effect.flatMap(answered(batch), (message) =>
    message === undefined || batch.engine.context === undefined
      ? Effect.undefined
      : Transcript.appendResults(batch.engine, batch.live, message, batch.restore)
  )

/**
 * The same for calls whose own message a host's context may not have: their answers go in once it is known to be there.
 *
 * @category operations
 * @since 0.1.0
 */
export const owe = (batch: Batch): Effect.Effect<void, SessionError> =>
  Effect.map(answered(batch), (message) => {
    if (batch.calls.length > 0) batch.engine.debt.results = message
  })

/** Runs the batch to the message that answers it; `undefined` when it is handed on unanswered. */
const answered = (batch: Batch): Effect.Effect<Prompt.ToolMessage | undefined, SessionError> =>
  Effect.onError(perform(new Answering(batch)), () => abandonAll(batch.calls))

/** A batch on its way to its answers, as `decide` looks at it, with what it has come to and not yet journalled. */
class Answering implements View {
  readonly batch: Batch
  readonly calls: ReadonlyArray<Call>
  readonly concurrency: number
  readonly onCorrection: OnCorrection
  entries: Array<Entry>
  /** Whether what asked for the calls is yet to be journalled. */
  isOpening: boolean
  /** How many calls have no answer yet. */
  open = 0
  #ended: Array<Ids.ToolCallId> = []

  constructor(batch: Batch) {
    const { agent } = batch.engine
    this.batch = batch
    this.calls = batch.calls
    this.concurrency = agent.tools === "sequential" ? 1 : agent.tools.concurrency
    this.onCorrection = agent.onCorrection
    this.entries = batch.opening ?? []
    this.isOpening = batch.opening !== undefined
    for (const call of batch.calls) if (call.state._tag !== "Ended") this.open++
  }

  get closing(): Admission.Closing | undefined {
    return closing(this.batch.live)
  }

  affecting(tool: string): ReadonlyArray<Ids.InputId> {
    return Admission.affecting(this.batch.live.admission, tool)
  }

  pause(tool: string): "go" | "wait" | "withhold" {
    return Gate.onTool(this.batch.engine.journal.projection, tool)
  }

  /** Whether every call has its answer. */
  get isOver(): boolean {
    return this.open === 0
  }

  /** The message that answers the calls, in the order requested (L-T2). */
  get message(): Prompt.ToolMessage {
    const content: Array<Prompt.ToolResultPart> = []
    for (const { answer } of this.calls) if (answer !== undefined) content.push(answer)
    return Prompt.toolMessage({ content })
  }

  end(
    call: Call,
    entry: Entry,
    isFailure: boolean,
    result: Schema.Json,
    modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart>
  ): void {
    call.state = { _tag: "Ended" }
    call.answer = ToolResult.part(call, isFailure, result, modelOutput)
    this.open--
    this.#ended.push(call.id)
    this.batch.live.asking?.delete(call.id)
    this.entries.push(entry)
  }

  endUnstarted(call: Call, status: NotStarted): void {
    const { live, request } = this.batch
    this.end(call, notStarted(live, request, call, status), true, ToolResult.explain(status))
  }

  endDenied(call: Call, reason: string): void {
    const { live, request } = this.batch
    const entry: Entry = { ...about("tool.denied", live, request, call), reason }
    this.end(call, entry, true, ToolResult.explain({ _tag: "Denied", reason }))
  }

  /** What has come to be and is not journalled; the calls that ended run until it is: no pause is in effect before (L-C2). */
  take(): Staged {
    const { entries } = this
    const ended = this.#ended
    this.entries = []
    this.isOpening = false
    this.#ended = []
    return {
      entries,
      applied: () => {
        for (const id of ended) this.batch.live.running?.delete(id)
      }
    }
  }
}

const perform = Effect.fnUntraced(function* (answering: Answering) {
  const { calls, engine, live, refusal, request, restore } = answering.batch
  const { journal } = engine
  for (const call of calls) {
    if (call.state._tag === "Ended") continue
    const tool = engine.tools.find(call.name)
    if (refusal !== undefined) answering.endUnstarted(call, refusal)
    else if (tool === undefined) answering.endUnstarted(call, invalid(`there is no tool ${call.name}`))
    else {
      const decoding = engine.tools.decode(tool, call.params)
      // A schema that waits is the host's: what asked for the calls is written before it.
      if (!isDone(decoding) && answering.entries.length > 0) yield* journal.commit(answering.take().entries)
      const decoded = isDone(decoding) ? decoding : yield* waited(answering, decoding)
      if (decoded === undefined) continue
      if (Exit.isFailure(decoded)) answering.endUnstarted(call, invalid(describe(decoded.cause)))
      else admit(engine, call, tool, decoded.value)
    }
  }
  while (true) {
    for (const call of calls) {
      if (call.state._tag === "Asking") call.state = { _tag: "Asking", decision: live.asking?.get(call.id) }
      if (call.state._tag !== "Running") continue
      if (call.exit !== undefined || call.overdue) {
        const reaped = reap(answering, call)
        if (isOpen(reaped)) yield* reaped
      } else if (isCutting(live)) yield* cut(engine, live, call)
    }
    const { consult, launched } = transit(answering)
    if (answering.isOver && engine.context === undefined) {
      const { message } = answering
      answering.entries.push(Transcript.recorded(live, message))
      const { isOpening } = answering
      const taken = answering.take()
      // What the next request carries is looked up: what this one has completed must be folded by then.
      if (isOpening) yield* journal.commit(taken.entries, taken)
      else live.staged = taken
      return message
    }
    if (answering.entries.length > 0) {
      const taken = answering.take()
      const written = journal.commit(taken.entries, taken)
      // Where nothing is waited for, the check, its commit and the start of the handlers are one step.
      if (isOpen(written)) yield* written
    }
    for (const call of launched) launch(engine, live, request, call)
    engine.rested()
    if (consult !== undefined) {
      const verdict = yield* judge(engine, live, request, consult, restore)
      if (verdict?._tag === "Allow") consult.state = { _tag: "Waiting", verdict: "allowed" }
      else if (verdict?._tag === "Deny") answering.endDenied(consult, verdict.reason)
      else if (verdict?._tag === "Ask") {
        consult.state = { _tag: "Asking", decision: undefined }
        live.asking ??= new Map()
        live.asking.set(consult.id, undefined)
        answering.entries.push({
          ...about("tool.approval_requested", live, request, consult),
          reason: verdict.question,
          params: consult.params
        })
      }
      continue
    }
    // What has not been launched stays asked for: whoever goes on will launch it (L-C9).
    if (closing(live)?.parks === true && !isRunning(live)) return undefined
    if (answering.isOver) return answering.message
    if (calls.some(isToReap)) {
      // However fast calls end, whoever has something to say has a turn before the next one is launched (L-T3, L-C5).
      if (answering.open > 1) yield* Effect.yieldNow
      continue
    }
    live.phase = waitingPhase(engine, live, request)
    engine.rested()
    yield* changed(engine, live, restore)
    live.phase = { _tag: "RunningTools", request }
  }
})

const isToReap = (call: Call): boolean => call.state._tag === "Running" && (call.exit !== undefined || call.overdue)

/** Decides what is next, and takes it as far as the journal: the calls to launch once that is written, and the one to ask about. */
const transit = (
  answering: Answering
): { readonly consult: Call | undefined; readonly launched: ReadonlyArray<Call> } => {
  const { live, request } = answering.batch
  const launched: Array<Call> = []
  let consult: Call | undefined
  for (const transition of decide(answering)) {
    const call = answering.calls[transition.index]
    if (call === undefined) continue
    switch (transition._tag) {
      case "Withhold":
        answering.endUnstarted(call, transition.status)
        break
      case "Deny":
        answering.endDenied(call, transition.reason)
        break
      case "Launch":
        launched.push(call)
        break
      case "Consult":
        consult ??= call
    }
  }
  // A wave is launched whole: who else may be in it is asked first (L-T4).
  if (consult !== undefined) return { consult, launched: [] }
  if (launched.length === 0) return { consult, launched }
  answering.entries.push({
    type: "tools.admitted",
    generation_id: live.id,
    request,
    call_ids: launched.map((call) => call.id)
  })
  for (const call of launched) {
    call.state = { _tag: "Running" }
    live.asking?.delete(call.id)
    live.running ??= new Map()
    live.running.set(call.id, call.name)
    answering.entries.push(about("tool.started", live, request, call))
  }
  return { consult, launched }
}

const isRunning = ({ running }: Run): boolean => running !== undefined && running.size > 0

/** A waiting approval is not running (L-T13): with nothing else under way, a paused batch is at rest. */
const waitingPhase = (engine: Engine, live: Run, request: number): Phase =>
  !isRunning(live) && Gate.isPaused(engine.journal.projection) ? { _tag: "Paused" } : { _tag: "RunningTools", request }

/** Waits for a schema of the host's; `undefined` when the run was cut meanwhile: what ends it withholds the call. */
const waited = (
  { batch: { engine, live, restore } }: Answering,
  decoding: Effect.Effect<unknown, Schema.SchemaError>
) =>
  Effect.flatMap(Supervised.run(decoding, restore, engine.grace), (answer) =>
    answer._tag === "Ended" ? Effect.succeed(answer.exit) : Effect.as(Ending.interrupted(engine, live), undefined)
  )

/** Unknown tools and invalid parameters are answered as data before anything is launched (L-T6). */
const invalid = (detail: string): NotStarted => ({ _tag: "NotStarted", reason: "invalid", detail })

const admit = (engine: Engine, call: Call, tool: Tool.Any, decoded: unknown): void => {
  call.tool = tool
  call.decoded = decoded
  if (engine.policy === ToolPolicy.allowAll && !mayNeedApproval(tool)) {
    call.state = { _tag: "Waiting", verdict: "allowed" }
  }
}

/**
 * Asks the policy and the tool itself, whose own question the policy may not relax (L-T11); one that dies denies. The pending
 * corrections are looked at again before the launch. `undefined` when the run was cut meanwhile.
 */
const judge = Effect.fnUntraced(function* (
  engine: Engine,
  live: Run,
  request: number,
  call: Call,
  restore: Supervised.Restore
) {
  const info = { sessionId: engine.journal.sessionId, generationId: live.id }
  const question = Effect.suspend(() => engine.policy(described(call, request), info))
  const asked = yield* Supervised.run(
    Effect.zip(
      question,
      call.tool === undefined
        ? Effect.succeed(false)
        : engine.tools.needsApproval(call.tool, call.decoded, call.providerId, live.sent)
    ),
    restore,
    engine.grace
  )
  if (asked._tag !== "Ended") {
    yield* Ending.interrupted(engine, live)
    return undefined
  }
  if (Exit.isFailure(asked.exit)) return ToolPolicy.deny("the policy failed, so the call was not allowed")
  const [answer, needsApproval] = asked.exit.value
  // Only an allowing verdict allows, whatever a host without types gives.
  const verdict = isVerdict(answer) ? answer : ToolPolicy.deny("the policy gave no verdict")
  return verdict._tag === "Allow" && needsApproval ? ToolPolicy.ask(`may ${call.name} be run?`) : verdict
})

const isVerdict = Schema.is(ToolPolicy.Verdict)

const described = (call: Call, request: number): ToolPolicy.ToolCall => ({
  id: call.id,
  providerId: call.providerId,
  name: call.name,
  params: call.params,
  request
})

/** The handler begins here and nowhere else: after its `tool.started` is committed (L-T1). */
const launch = (engine: Engine, live: Run, request: number, call: Call): void => {
  const { tool } = call
  if (tool === undefined || isCutting(live)) {
    call.overdue = true
    return
  }
  const handler = engine.tools.run(tool, call.decoded, call.providerId, (result) =>
    engine.journal.log.publish({ ...about("tool.progress", live, request, call), result })
  )
  const fiber = Effect.runForkWith(engine.tools.contextOf(tool))(handler)
  call.fiber = fiber
  // A handler that has ended by now is seen without a bell.
  call.exit = fiber.pollUnsafe()
  if (call.exit !== undefined) return
  fiber.addObserver((exit) => {
    call.exit = exit
    Admission.ring(live.admission)
  })
}

/** Tells a running call to end, unless it may not be, and starts its grace time (L-T9). */
const cut = Effect.fnUntraced(function* (engine: Engine, live: Run, call: Call) {
  const { fiber, timer, tool } = call
  if (fiber === undefined || tool === undefined || timer !== undefined) return
  const own = Uncancellable.graceOf(tool)
  if (own === undefined) fiber.interruptUnsafe()
  if (call.exit !== undefined) return
  call.timer = yield* Effect.forkDetach(
    Effect.andThen(
      Effect.sleep(own ?? engine.grace),
      Effect.sync(() => {
        call.overdue = true
        Admission.ring(live.admission)
      })
    ),
    { startImmediately: true }
  )
})

/** Settles a call that has ended or outlasted its grace time: its real result if it has one (L-T8), else the truth. */
const reap = (answering: Answering, call: Call): Effect.Effect<void> => {
  const { engine, live, request } = answering.batch
  call.timer?.interruptUnsafe()
  const fail = (error: string) => {
    const entry: Entry = { ...about("tool.failed", live, request, call), reason: error }
    answering.end(call, entry, true, ToolResult.explain({ _tag: "Failed", error }))
    return Effect.void
  }
  const output: Outcome =
    call.exit === undefined
      ? { _tag: "Interrupted" }
      : Exit.isFailure(call.exit)
        ? outcomeOf(call.exit.cause)
        : call.exit.value
  switch (output._tag) {
    case "Completed": {
      const { isFailure } = output
      const result = ToolResult.bound(output.result, engine.limits.toolResultLength)
      const entry: Entry = { ...about("tool.completed", live, request, call), result, is_failure: isFailure }
      answering.end(call, entry, isFailure, result, output.modelOutput)
      return Effect.void
    }
    case "Failed":
      return fail(String(ToolResult.bound(output.error, engine.limits.toolResultLength)))
    case "Interrupted": {
      call.fiber?.interruptUnsafe()
      const closed = closing(live)
      if (!isCutting(live) || closed === undefined) {
        return fail("the handler interrupted itself; its effects are unknown")
      }
      const { cause } = closed
      // Cut after its start was written and before its handler began, it has done nothing.
      const asked: Effect.Effect<Established> =
        call.fiber === undefined
          ? Effect.succeed({ effects: "none" })
          : established(engine, described(call, request), call.tool)
      return Effect.map(asked, ({ effects, result }) => {
        const found = result === undefined ? undefined : { outcome: result }
        answering.end(
          call,
          {
            ...about("tool.interrupted", live, request, call),
            cause,
            effects,
            ...(result === undefined ? undefined : { result })
          },
          true,
          ToolResult.explain({ _tag: "Interrupted", effects, cause, ...found })
        )
      })
    }
  }
}

/** Ends what still runs when the batch itself cannot go on: nothing may be left behind. */
const abandonAll = (calls: ReadonlyArray<Call>): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const call of calls) {
      call.timer?.interruptUnsafe()
      if (call.exit === undefined) call.fiber?.interruptUnsafe()
    }
  })

/** Waits until a call ends, something is admitted, or the run is told to end. */
const changed = (engine: Engine, live: Run, restore: Supervised.Restore): Effect.Effect<void, SessionError> => {
  const ring = live.admission.bell.wait
  if (isCutting(live)) return ring
  return Effect.flatMap(Effect.exit(restore(ring)), (exit) => {
    if (Exit.isSuccess(exit)) return Effect.void
    // An interrupt is told once; from then on the wait is closed to it, or it would not be a wait.
    return Effect.flatMap(Ending.interrupted(engine, live), () => (isCutting(live) ? Effect.void : ring))
  })
}
