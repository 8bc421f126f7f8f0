/**
 * One conversation and its one owner, as a host sees it. Receipts, reports and statuses are the authority; events tell of
 * them (L-V1).
 *
 * @since 0.1.0
 */
import { Effect, Option, Stream } from "effect"
import { Prompt } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import type { SessionEvent } from "../domain/Event.ts"
import type { ActiveGeneration, GenerationReport, SessionStatus, UnknownGeneration } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import * as Input from "../domain/Input.ts"
import type * as Receipt from "../domain/Receipt.ts"
import { SessionError } from "../domain/SessionError.ts"
import type { Run } from "../engine/Engine.ts"
import { establishNothing } from "../engine/ToolReconciler.ts"
import * as Gate from "../engine/Gate.ts"
import type { Decision } from "../domain/ToolCall.ts"
import * as Controls from "./Controls.ts"
import type { Core } from "./Core.ts"
import type { LiveSteering } from "./LiveSteering.ts"

/**
 * An input that was accepted and did not, or may not, have an effect, with its content: send it again as a new input, with
 * `derivedFrom`, if it is still wanted (L-D5).
 *
 * @category models
 * @since 0.1.0
 */
export interface HeldInput {
  readonly input: Input.Input
  readonly status: Extract<Receipt.InputStatus, { readonly _tag: "Held" | "Unknown" }>
}

/** @category models @since 0.1.0 */
export interface ControlOptions {
  /** `hold` also holds the queued follow-ups; they stay queued otherwise (L-C6). */
  readonly followUps?: Controls.FollowUps
}

/** @category models @since 0.1.0 */
export interface Session {
  readonly id: Ids.SessionId
  /** What this session can do live, by name. */
  readonly capability: (name: "live.steering") => LiveSteering
  /** Ordinary delivery, by the input's intent. */
  readonly submit: (input: Input.Input) => Effect.Effect<Receipt.Receipt>
  /** The generation whose terminal event is not yet published, if any. */
  readonly generation: Effect.Effect<Option.Option<ActiveGeneration>>
  /** The report of a generation once it has ended; of an ended one at once. */
  readonly await: (id: Ids.GenerationId) => Effect.Effect<GenerationReport, UnknownGeneration | SessionError>
  /** Returns when no generation lives and none is to be started. */
  readonly awaitIdle: Effect.Effect<void, SessionError>
  /** The current receipt of an accepted input. */
  readonly receipt: (id: Ids.InputId) => Effect.Effect<Option.Option<Receipt.Receipt>>
  /** How far an accepted input has come (L-F7). */
  readonly input: (id: Ids.InputId) => Effect.Effect<Option.Option<Receipt.InputStatus>>
  /** What waits for a later generation, with its content, in the order it will be started. */
  readonly queued: Effect.Effect<ReadonlyArray<Input.Input>>
  /** What is held or unknown, in admission order. */
  readonly held: Effect.Effect<ReadonlyArray<HeldInput>>
  /** Takes a queued follow-up or collect back (L-F8). */
  readonly withdraw: (id: Ids.InputId) => Effect.Effect<Receipt.ControlReceipt>
  /** Turns a queued follow-up into steering of the running generation, under a new id that names the old one (L-F9). */
  readonly promote: (
    id: Ids.InputId,
    generationId: Ids.GenerationId,
    as?: Ids.InputId
  ) => Effect.Effect<Receipt.Receipt>
  /** Reads, and changes nothing (L-C1). */
  readonly status: Effect.Effect<SessionStatus>
  /** Asks for a pause; `pause.effective` tells when it is in effect (L-C2). */
  readonly pause: (options?: Controls.PauseOptions) => Effect.Effect<Receipt.ControlReceipt>
  /** Resumes by hand, or gives a named signal (L-C3). */
  readonly resume: (signal?: string) => Effect.Effect<Receipt.ControlReceipt>
  /** Answers the question about a call that waits for approval (L-T13). */
  readonly decide: (call: Ids.ToolCallId, decision: Decision) => Effect.Effect<Receipt.ControlReceipt>
  /** Lets what runs finish and starts nothing more (L-C5). */
  readonly stop: (id: Ids.GenerationId, options?: ControlOptions) => Effect.Effect<Receipt.ControlReceipt>
  /** Ends a generation; `await` answers when everything is settled (L-C4). */
  readonly cancel: (id: Ids.GenerationId, options?: ControlOptions) => Effect.Effect<Receipt.ControlReceipt>
  /** Every event after the sequence given (0: from the start), then the live ones; ends when the session closes (L-V2). */
  readonly events: (options?: { readonly after?: number }) => Stream.Stream<SessionEvent, SessionError>
  /** The journalled events after the sequence given (0: from the start) up to now. */
  readonly history: (options?: { readonly after?: number }) => Effect.Effect<ReadonlyArray<SessionEvent>, SessionError>
  /** What the next request would carry. */
  readonly context: Effect.Effect<Prompt.Prompt, SessionError>
}

/** What a face is made of, by name; each part closes over nothing but the core. */
const parts: { readonly [Name in keyof Session]: (core: Core) => Session[Name] } = {
  id: (core) => core.engine.journal.sessionId,
  capability: (core) => () => core.liveSteering,
  submit: (core) => (input) => core.submit(input),
  generation: (core) => Effect.sync(() => Option.map(Option.fromUndefinedOr(core.live), active)),
  await: (core) => (id) => core.await(id),
  awaitIdle: (core) => core.awaitIdle,
  receipt: (core) => (id) => Effect.sync(() => Option.fromUndefinedOr(core.projection.receipt(id))),
  input: (core) => (id) => Effect.sync(() => Option.fromUndefinedOr(core.projection.inputs.get(id)?.status)),
  queued: ({ projection }) => Effect.sync(() => ownInputs(projection, [...projection.turns, ...projection.queue])),
  held: (core) => Effect.sync(() => held(core)),
  status: (core) => Effect.sync(() => status(core)),
  withdraw: (core) => (id) => Controls.withdraw(core, id),
  promote: (core) => (id, generationId, as) => Controls.promote(core, id, generationId, as),
  pause: (core) => (options) => Controls.pause(core, options),
  resume: (core) => (signal) => Controls.resume(core, signal),
  decide: (core) => (call, decision) => Controls.decide(core, call, decision),
  stop: (core) => (id, options) => Controls.stop(core, id, options?.followUps ?? "keep"),
  cancel: (core) => (id, options) => Controls.cancel(core, id, options?.followUps ?? "keep"),
  events: (core) => (options) => core.engine.journal.stream(options?.after ?? 0),
  history: (core) => (options) => history(core, options?.after ?? 0),
  context: (core) => Effect.suspend(() => context(core))
}

const owner = Symbol("midcourse/runtime/Session")

interface Owned {
  readonly [owner]: { readonly core: Core; readonly made: Array<unknown> }
}

/** The same for every session: a part is made when it is first asked for, and from then on is that one. */
const accessors = Object.entries(parts).map(([name, part], index) => {
  const accessor: PropertyDescriptor & ThisType<Owned> = {
    configurable: true,
    enumerable: true,
    get() {
      const { core, made } = this[owner]
      return (made[index] ??= part(core))
    }
  }
  return [name, accessor] as const
})

/**
 * The face of a core. One object a session, whose parts are its own, so that a host may copy it, and cost nothing until they are
 * used.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (core: Core): Session => {
  const face = Object.defineProperty({}, owner, { value: { core, made: [] } satisfies Owned[typeof owner] })
  // One by one: all at once they are copied first, for every session.
  for (const [name, accessor] of accessors) Object.defineProperty(face, name, accessor)
  // It has a property for each of the interface's, of its type: `parts` does.
  return face as Session
}

const held = ({ projection }: Core): ReadonlyArray<HeldInput> => {
  const found: Array<HeldInput> = []
  for (const { input, status } of projection.inputs.values()) {
    if (input === undefined) continue
    if (status._tag === "Held" || status._tag === "Unknown") found.push({ input: Input.own(input), status })
  }
  return found
}

const context = (core: Core): Effect.Effect<Prompt.Prompt, SessionError> => {
  const { context, journal } = core.engine
  const { projection, sessionId } = journal
  if (context === undefined) {
    return Effect.map(journal.warm, () => Prompt.fromMessages([...projection.messages]))
  }
  return Effect.mapBoth(context.messages, {
    onSuccess: (messages) => Prompt.fromMessages([...projection.messages, ...messages]),
    onFailure: (error) => new SessionError({ sessionId, reason: { _tag: "StorageUnavailable", detail: String(error) } })
  })
}

/** Copies: what a host does with them changes nothing here. */
const ownInputs = (projection: Core["projection"], ids: ReadonlyArray<Ids.InputId>): ReadonlyArray<Input.Input> =>
  ids.flatMap((id) => {
    const found = projection.input(id)
    return found === undefined ? [] : [Input.own(found)]
  })

const history = (core: Core, after: number): Effect.Effect<ReadonlyArray<SessionEvent>, SessionError> =>
  Effect.suspend(() => {
    const { journal } = core.engine
    const until = journal.sequence
    if (after >= until) return Effect.succeed([])
    // Nobody who reads the past is owed a live event: those carry the sequence before them.
    return journal.stream(after).pipe(
      Stream.filter((event) => event.live === undefined),
      Stream.takeUntil((event) => event.sequence >= until),
      Stream.runCollect
    )
  })

const active = (run: Run): ActiveGeneration => {
  const { id, initialInputIds, request, startedAt } = run.state
  return { id, initialInputId: initialInputIds[0], startedAt, request }
}

const status = (core: Core): SessionStatus => {
  const { agent, context, journal, limits, reconciler } = core.engine
  const { projection, sequence, sessionId } = journal
  const { live } = core
  return {
    sessionId,
    agent: agent.name,
    closed: core.closed,
    generation:
      live === undefined
        ? null
        : {
            ...active(live),
            phase: live.phase,
            pendingInputIds: Admission.pending(live.admission).map((input) => input.id)
          },
    queuedInputIds: [...projection.turns, ...projection.queue],
    pauses: projection.pauses.map((pause) => ({
      until: pause.until,
      unmet: Gate.waitsFor(pause, journal.now),
      effective: pause.effective,
      ...(pause.scope === undefined ? undefined : { scope: pause.scope })
    })),
    identities: { used: projection.inputs.size, limit: limits.identities },
    sequence,
    evidence: {
      durable: journal.stored?.store.durable === true,
      context: context === undefined ? "journal" : "own-store",
      reconciler: reconciler !== establishNothing
    }
  }
}
