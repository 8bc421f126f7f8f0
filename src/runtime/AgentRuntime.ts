/**
 * The service a host composes. It opens sessions: one owner each, shared by whoever opens the same id, closed with the last
 * scope that holds it.
 *
 * @since 0.1.0
 */
import { Clock, Context, Deferred, Effect, Exit, Layer, Random, Scope } from "effect"
import type { Scheduler } from "effect"
import { LanguageModel, Prompt, ResponseIdTracker, type Tool } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import { ContextStore } from "../boundary/ContextStore.ts"
import type { Restore } from "../boundary/Supervised.ts"
import type { Agent, Tools } from "../domain/Agent.ts"
import * as Ids from "../domain/Ids.ts"
import { Limits } from "../domain/Limits.ts"
import { SessionError } from "../domain/SessionError.ts"
import { GraceTime } from "../domain/Uncancellable.ts"
import { Checkpointer } from "../engine/Checkpointer.ts"
import { ContextPreparation } from "../engine/ContextPreparation.ts"
import * as Ending from "../engine/Ending.ts"
import { makeRun } from "../engine/Engine.ts"
import * as Recovery from "../engine/Recovery.ts"
import { ToolPolicy } from "../engine/ToolPolicy.ts"
import { ToolReconciler } from "../engine/ToolReconciler.ts"
import { Toolkits } from "../engine/Toolkits.ts"
import { ToolRunner } from "../engine/ToolRunner.ts"
import * as Codec from "../ledger/Codec.ts"
import { Journal, toSessionReason } from "../ledger/Journal.ts"
import { Projection } from "../ledger/Projection.ts"
import { SessionStore, StoreError } from "../ledger/SessionStore.ts"
import * as Snapshot from "../ledger/Snapshot.ts"
import { settleRested } from "./Controls.ts"
import { Core } from "./Core.ts"
import * as Session from "./Session.ts"

/** @category models @since 0.1.0 */
export interface OpenOptions {
  /** Made at random if absent. Opening an id that is open shares the live session. */
  readonly id?: Ids.SessionId
  /** What becomes of a generation that a lost process left: `settle` (the default) ends it, `resume` goes on with it (L-R2). */
  readonly recovery?: Recovery.Mode
  /** What closing does to a live generation: `cancel` (the default) ends it, `detach` hands it to the next process (L-C9). */
  readonly onClose?: "cancel" | "detach"
}

/**
 * A session that exists, as `list` shows it.
 *
 * @category models
 * @since 0.1.0
 */
export interface SessionSummary {
  readonly id: Ids.SessionId
  readonly agent: string
  readonly open: boolean
  /** The last journalled sequence. */
  readonly sequence: number
}

/** @category services @since 0.1.0 */
export class AgentRuntime extends Context.Service<
  AgentRuntime,
  {
    /**
     * Opens a session in the caller's scope; when the last scope that holds it closes, its generation is cancelled with the
     * reason `session-closed` and the scope returns once every receipt is settled (L-C7).
     */
    readonly open: <AgentTools extends Record<string, Tool.Any>>(
      agent: Agent<AgentTools>,
      options?: OpenOptions
    ) => Effect.Effect<
      Session.Session,
      SessionError,
      | LanguageModel.LanguageModel
      | Tool.HandlersFor<AgentTools>
      | Tool.HandlerServices<AgentTools[keyof AgentTools]>
      | Scope.Scope
    >
    readonly list: Effect.Effect<ReadonlyArray<SessionSummary>, SessionError>
  }
>()("midcourse/runtime/AgentRuntime") {}

interface Settings {
  readonly recovery: Recovery.Mode
  readonly onClose: "cancel" | "detach"
}

const settingsOf = ({ onClose = "cancel", recovery = "settle" }: OpenOptions): Settings => ({ recovery, onClose })

const byDefault: Settings = settingsOf({})

interface Opened {
  readonly agent: object
  readonly options: Settings
  readonly core: Core
  readonly session: Session.Session
  /** Made by whoever waits first for the last holder to have closed it. */
  closed: Deferred.Deferred<void> | undefined
  holders: number
}

/** The sessions of one runtime, over a store or over none. */
const make = (store: SessionStore["Service"] | undefined): AgentRuntime["Service"] => {
  const sessions = new Map<Ids.SessionId, Opened | Deferred.Deferred<void>>()
  const toolkits = new Toolkits()
  const open = (agent: Agent<Tools>, options?: OpenOptions) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const id = options?.id ?? (`ses_${nonce(yield* Random.Random)}` as Ids.SessionId)
        if (!Ids.isId(id)) {
          const detail = "a session id is 1 to 128 printable ASCII characters"
          return yield* new SessionError({ sessionId: String(id), reason: { _tag: "InvalidId", detail } })
        }
        const settings = options === undefined ? byDefault : settingsOf(options)
        while (true) {
          const found = sessions.get(id)
          if (found === undefined) break
          // Being opened by another, or closed by its last holder: the id is free, or shared, when that is done.
          if (!("core" in found)) yield* restore(Deferred.await(found))
          else if (found.holders > 0) return yield* share(id, found, agent, settings)
          else yield* restore(Deferred.await((found.closed ??= Deferred.makeUnsafe())))
        }
        const opening = Deferred.makeUnsafe<void>()
        sessions.set(id, opening)
        // Whoever waits looks again when the opener holds it, or has failed to open it.
        return yield* Effect.onExit(
          Effect.flatMap(start(id, agent, settings, store, toolkits, restore), (opened) => {
            sessions.set(id, opened)
            return hold(id, opened)
          }),
          (exit) =>
            Effect.sync(() => {
              if (Exit.isFailure(exit)) sessions.delete(id)
              Deferred.doneUnsafe(opening, Effect.void)
            })
        )
      })
    )
  const share = (id: Ids.SessionId, found: Opened, agent: object, settings: Settings) => {
    const detail =
      found.agent !== agent
        ? "another agent"
        : found.options.recovery !== settings.recovery || found.options.onClose !== settings.onClose
          ? "other options"
          : undefined
    if (detail === undefined) return hold(id, found)
    return Effect.fail(new SessionError({ sessionId: id, reason: { _tag: "InUse", detail } }))
  }
  const hold = (id: Ids.SessionId, opened: Opened) => {
    opened.holders++
    return Effect.flatMap(Scope.Scope, (scope) =>
      Effect.as(
        Scope.addFinalizerExit(scope, () => release(id, opened)),
        opened.session
      )
    )
  }
  const release = (id: Ids.SessionId, opened: Opened): Effect.Effect<void> => {
    if (--opened.holders > 0) return Effect.void
    const { core, options } = opened
    // With what it was opened with, whoever closes it.
    const closed = Effect.provideContext(core.close(options.onClose), core.engine.services)
    return Effect.flatMap(closed, () => {
      sessions.delete(id)
      return opened.closed === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(opened.closed, undefined))
    })
  }
  const live = (): ReadonlyArray<SessionSummary> =>
    Array.from(sessions).flatMap(([id, found]) => ("core" in found ? [summaryOf(id, found.core)] : []))
  return AgentRuntime.of({
    // The engine keeps no type of a host's tools; what they need is in the context that `open` requires.
    open: open as unknown as AgentRuntime["Service"]["open"],
    list:
      store === undefined
        ? Effect.sync(live)
        : Effect.mapBoth(store.list, {
            onSuccess: (stored) => {
              const open = new Map(live().map((summary) => [summary.id, summary]))
              return stored.map(({ agent, id, sequence }) => open.get(id) ?? { id, agent, open: false, sequence })
            },
            onFailure: (error) => new SessionError({ sessionId: "*", reason: toSessionReason(error.reason) })
          })
  })
}

const summaryOf = (id: Ids.SessionId, core: Core): SessionSummary => ({
  id,
  agent: core.engine.agent.name,
  open: true,
  sequence: core.engine.journal.sequence
})

/**
 * Sessions whose journal lives and goes with them. Needs nothing.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<AgentRuntime> = Layer.sync(AgentRuntime, () => make(undefined))

/**
 * Sessions kept in a store: their receipts outlive the process, and opening a stored id recovers it (L-R2).
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<AgentRuntime, never, SessionStore> = Layer.effect(
  AgentRuntime,
  Effect.map(SessionStore, make)
)

const instructionsOf = (agent: Agent<Tools>): ReadonlyArray<Prompt.Message> =>
  agent.instructions.trim() === "" ? [] : [Prompt.systemMessage({ content: agent.instructions })]

/** Claims what is stored and folds it; a session that is not stored begins empty. */
const claim = Effect.fnUntraced(function* (id: Ids.SessionId, agent: Agent<Tools>, store: SessionStore["Service"]) {
  const instructions = instructionsOf(agent)
  const claimed = yield* store.claim(id, agent.name)
  const { snapshot } = claimed
  const projection =
    snapshot === undefined
      ? new Projection(instructions)
      : yield* Effect.mapError(
          Effect.flatMap(Codec.decodeSnapshot(snapshot), (body) => Snapshot.restore(body, instructions)),
          (error) =>
            new StoreError({ reason: { _tag: "Corrupt", detail: `the snapshot cannot be read: ${error.message}` } })
        )
  for (const stored of claimed.entries) {
    const entry = yield* Codec.decode(stored)
    yield* Effect.try({
      try: () => projection.apply(entry),
      catch: (error) => new StoreError({ reason: { _tag: "Corrupt", detail: String(error) } })
    })
  }
  const { created, epoch, position } = claimed
  return { projection, stored: { store, epoch, position, snapshot: snapshot?.position ?? 0 }, created }
})

const start = Effect.fnUntraced(function* (
  id: Ids.SessionId,
  agent: Agent<Tools>,
  options: Settings,
  store: SessionStore["Service"] | undefined,
  toolkits: Toolkits,
  restore: Restore
) {
  const services = yield* Effect.context<LanguageModel.LanguageModel | Tool.HandlersFor<Tools>>()
  const resolved = yield* toolkits.resolve(agent.toolkit, services)
  const dispatcher = yield* Effect.withFiber((fiber) => Effect.succeed(fiber.currentDispatcher))
  const { created, projection, stored } =
    store === undefined
      ? { created: true, projection: new Projection(instructionsOf(agent)), stored: undefined }
      : yield* Effect.mapError(
          // Interrupted here, a claim is without an owner, and the next one fences it.
          restore(claim(id, agent, store)),
          (error) => new SessionError({ sessionId: id, reason: toSessionReason(error.reason) })
        )
  const clock = Context.get(services, Clock.Clock)
  const journal = new Journal({ sessionId: id, clock, dispatcher, services, projection, stored })
  const core: Core = new Core({
    engine: {
      agent,
      model: Context.get(services, LanguageModel.LanguageModel),
      toolkit: resolved.toolkit,
      tools: new ToolRunner(resolved, services),
      services,
      journal,
      context: Context.get(services, ContextStore),
      tracker: Context.getOrUndefined(services, ResponseIdTracker.ResponseIdTracker),
      policy: Context.get(services, ToolPolicy),
      reconciler: Context.get(services, ToolReconciler),
      checkpointer: Context.get(services, Checkpointer),
      preparation: Context.get(services, ContextPreparation),
      limits: Context.get(services, Limits),
      grace: Context.get(services, GraceTime),
      debt: { results: undefined, notice: undefined },
      rested: () => settleRested(core)
    },
    dispatcher,
    nonce: nonce(Context.get(services, Random.Random))
  })
  journal.onLost = () => core.lose()
  const resumed = created
    ? undefined
    : yield* Effect.onError(recover(core, options.recovery, dispatcher), () => core.abandon)
  core.ready(resumed)
  const opened: Opened = {
    agent,
    options,
    core,
    session: Session.make(core),
    closed: undefined,
    holders: 0
  }
  return opened
})

/** Settles or takes up what a lost process left, before anything new is started (L-R2, L-R6). */
const recover = Effect.fnUntraced(function* (
  core: Core,
  mode: Recovery.Mode,
  dispatcher: Scheduler.SchedulerDispatcher
) {
  const { engine } = core
  const { journal } = engine
  const { projection } = journal
  const lost = projection.active
  if (lost === undefined) {
    Recovery.recallDebt(engine)
    yield* journal.commit([{ type: "session.recovered" }])
    return undefined
  }
  const admission = Admission.make(dispatcher)
  const run = makeRun(lost, admission)
  yield* Recovery.reconcile(engine, lost, Recovery.modeOf(engine, lost, mode))
  if (!Recovery.goesOn(engine, lost, mode)) {
    Admission.close(admission, Recovery.endingOf(lost))
    yield* Recovery.answer(engine, lost, Recovery.unlaunchedBy(lost), Recovery.endingOf(lost).cause)
    yield* Ending.settle(engine, run, () => projection.queue.length === 0 && projection.turns.length === 0)
    yield* journal.commit([{ type: "session.recovered", lost_generation_id: lost.id }])
    return undefined
  }
  const { initialInputIds, request } = lost
  yield* journal.commit([
    // Parked, or at rest under a pause, it was not lost (L-R2, L-C9).
    { type: "session.recovered", ...(Recovery.isLost(engine, lost) ? { lost_generation_id: lost.id } : undefined) },
    {
      type: "generation.resumed",
      generation_id: lost.id,
      initial_input_id: initialInputIds[0],
      input_ids: initialInputIds,
      request
    }
  ])
  // What it was started with is written by its first boundary; everything else that is bound to it is pending.
  const begins = new Set(initialInputIds)
  for (const input of projection.admitted(lost.inputIds)) if (!begins.has(input.id)) Admission.admit(admission, input)
  return run
})

/** 16 characters of the random source: ids made with it are unlike those of any other opening. */
const nonce = (random: typeof Random.Random.Service): string =>
  // Joined it is one string; added up, its parts would be kept beside it.
  [half(random), half(random)].join("")

/** 8 characters of base 36: a number has the digits for no more than ten. */
const half = (random: typeof Random.Random.Service): string =>
  Math.floor(random.nextDoubleUnsafe() * 36 ** 8)
    .toString(36)
    .padStart(8, "0")
