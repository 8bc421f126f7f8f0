/**
 * What the rooms of the engine share: one session's parts, resolved once at `open`, and its live generation.
 *
 * @since 0.1.0
 */
import type { Context, Duration, Effect } from "effect"
import type { LanguageModel, Prompt, ResponseIdTracker, Toolkit } from "effect/ai"
import * as Admission from "../boundary/Admission.ts"
import type * as ContextStore from "../boundary/ContextStore.ts"
import type { Agent, Tools } from "../domain/Agent.ts"
import type { Outcome, Phase } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { Limits } from "../domain/Limits.ts"
import type { SessionError } from "../domain/SessionError.ts"
import type { Decision } from "../domain/ToolCall.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { Handed, Journal } from "../ledger/Journal.ts"
import type { GenerationState } from "../ledger/Projection.ts"
import type * as Checkpointer from "./Checkpointer.ts"
import * as ContextPreparation from "./ContextPreparation.ts"
import type * as ToolPolicy from "./ToolPolicy.ts"
import type * as ToolReconciler from "./ToolReconciler.ts"
import type { ToolRunner } from "./ToolRunner.ts"

/** @category models @since 0.1.0 */
export interface Engine {
  readonly agent: Agent<Tools>
  readonly model: LanguageModel.LanguageModel
  readonly toolkit: Toolkit.WithHandler<Tools>
  readonly tools: ToolRunner
  /** What `open` was given: handlers, schemas and ports of the host's run with it. */
  readonly services: Context.Context<never>
  readonly journal: Journal
  readonly context: ContextStore.Service | undefined
  readonly tracker: ResponseIdTracker.Service | undefined
  readonly policy: ToolPolicy.Service
  readonly reconciler: ToolReconciler.Service
  readonly checkpointer: Checkpointer.Service
  readonly preparation: ContextPreparation.Service
  readonly limits: Limits
  readonly grace: Duration.Duration
  /** What the host's context has not taken yet: results, then a notice. They go in before anything else does (L-T2, L-R3). */
  readonly debt: { results: Prompt.ToolMessage | undefined; notice: Prompt.UserMessage | undefined }
  /** Called when work has come to rest: a pause that waited for it may take effect. */
  readonly rested: () => void
}

/**
 * The live generation: its admission, what it is doing, and its folded state.
 *
 * @category models
 * @since 0.1.0
 */
export interface Run {
  readonly id: Ids.GenerationId
  readonly state: GenerationState
  readonly admission: Admission.Admission
  phase: Phase
  /** What is decided and not yet journalled, a step's end or what a boundary delivers: one commit takes it with what comes next. */
  staged: Staged | undefined
  /** Parking has waited as long as the grace time: what still runs is ended. */
  overdue: boolean
  /** The inputs that the request now under way is the first to carry (L-B5). */
  carriedFirst: ReadonlyArray<Ids.InputId>
  /** The inputs that the request now under way carries and no completed one has (L-F7). */
  carrying: ReadonlyArray<Ids.InputId>
  /** The messages of the newest request. */
  sent: ReadonlyArray<Prompt.Message>
  /** Whether the newest request carried something else than the conversation as it is. */
  altered: boolean
  /** The inputs already reported as not carried (L-P1). */
  notCarried: Set<Ids.InputId> | undefined
  /** Calls whose handlers run, with their tools' names. */
  running: Map<Ids.ToolCallId, string> | undefined
  /** Calls that wait for the host's answer, with the answer once it is given (L-T13). */
  asking: Map<Ids.ToolCallId, Decision | undefined> | undefined
  /** Calls whose answer is handed to the journal and not yet written. */
  deciding: Set<Ids.ToolCallId> | undefined
}

/**
 * Whether the host has no hand in what a request carries: the conversation is in the fold and is sent as it is.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isHandsOff = ({ context, journal, preparation }: Engine): boolean =>
  context === undefined && journal.isWarm && preparation === ContextPreparation.identity

/** @category models @since 0.1.0 */
export interface Staged extends Handed {
  readonly entries: ReadonlyArray<Entry>
}

/**
 * Journals entries, after what is staged.
 *
 * @category operations
 * @since 0.1.0
 */
export const commit = (engine: Engine, run: Run, entries: ReadonlyArray<Entry>): Effect.Effect<void, SessionError> => {
  const { staged } = run
  if (staged === undefined) return engine.journal.commit(entries)
  run.staged = undefined
  return engine.journal.commit([...staged.entries, ...entries], staged)
}

const none: ReadonlyArray<never> = []
const starting: Phase = { _tag: "Starting" }

/** @category constructors @since 0.1.0 */
export const makeRun = (state: GenerationState, admission: Admission.Admission): Run => ({
  id: state.id,
  state,
  admission,
  phase: starting,
  staged: undefined,
  overdue: false,
  carriedFirst: none,
  carrying: none,
  sent: none,
  altered: false,
  notCarried: undefined,
  running: undefined,
  asking: undefined,
  deciding: undefined
})

/**
 * How the run ends, once that is decided.
 *
 * @category accessors
 * @since 0.1.0
 */
export const closing = (run: Run): Admission.Closing | undefined => {
  const state = Admission.get(run.admission)
  return state._tag === "Closed" ? state.closing : undefined
}

/**
 * Whether work under way must be ended rather than let run: everything but a stop lets nothing go on (L-C5).
 *
 * @category accessors
 * @since 0.1.0
 */
export const isCutting = (run: Run): boolean => {
  const end = closing(run)
  if (end === undefined) return false
  // What is stopped is let run; what is handed on too, but for no longer than the grace time (L-C9).
  return cutting.includes(end.outcome) && end.parks !== true ? true : run.overdue
}
const cutting: ReadonlyArray<Outcome> = ["cancelled", "failed"]
