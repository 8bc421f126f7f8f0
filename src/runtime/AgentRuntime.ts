/**
 * The service a host composes. It opens sessions: one owner each, shared by whoever opens the same id, closed with the last
 * scope that holds it.
 *
 * @since 0.1.0
 */
import { Clock, Context, Deferred, Effect, Exit, Layer, Random, Scope } from "effect"
import { LanguageModel, Prompt, ResponseIdTracker, type Tool } from "effect/ai"
import { ContextStore } from "../boundary/ContextStore.ts"
import type { Agent, Tools } from "../domain/Agent.ts"
import * as Ids from "../domain/Ids.ts"
import { Limits } from "../domain/Limits.ts"
import { SessionError } from "../domain/SessionError.ts"
import { GraceTime } from "../domain/Uncancellable.ts"
import { Checkpointer } from "../engine/Checkpointer.ts"
import { ContextPreparation } from "../engine/ContextPreparation.ts"
import { ToolPolicy } from "../engine/ToolPolicy.ts"
import { ToolReconciler } from "../engine/ToolReconciler.ts"
import { ToolRunner } from "../engine/ToolRunner.ts"
import { Journal } from "../ledger/Journal.ts"
import { settleRested } from "./Controls.ts"
import { Core } from "./Core.ts"
import * as Session from "./Session.ts"

/** @category models @since 0.1.0 */
export interface OpenOptions {
  /** Made at random if absent. Opening an id that is open shares the live session. */
  readonly id?: Ids.SessionId
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

interface Opened {
  readonly agent: object
  readonly core: Core
  readonly session: Session.Session
  readonly scope: Scope.Closeable
  readonly closed: Deferred.Deferred<void>
  holders: number
}

/**
 * Sessions whose journal lives and goes with them. Needs nothing.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<AgentRuntime> = Layer.sync(AgentRuntime, () => {
  const sessions = new Map<Ids.SessionId, Opened>()
  const open = (agent: Agent<Tools>, options: OpenOptions = {}) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const id = options.id ?? (`ses_${yield* nonce}` as Ids.SessionId)
        if (!Ids.isId(id)) {
          const detail = "a session id is 1 to 128 printable ASCII characters"
          return yield* new SessionError({ sessionId: String(id), reason: { _tag: "InvalidId", detail } })
        }
        while (true) {
          const found = sessions.get(id)
          if (found === undefined) break
          if (found.holders > 0) return yield* share(id, found, agent)
          // The last holder is closing it; the id is free when everything there is settled.
          yield* Deferred.await(found.closed)
        }
        const opened = yield* start(id, agent)
        sessions.set(id, opened)
        return yield* hold(id, opened)
      })
    )
  const share = (id: Ids.SessionId, found: Opened, agent: object) => {
    if (found.agent === agent) return hold(id, found)
    const detail = "it was opened with another agent"
    return Effect.fail(new SessionError({ sessionId: id, reason: { _tag: "InUse", detail } }))
  }
  const hold = (id: Ids.SessionId, opened: Opened) => {
    opened.holders++
    const release = Effect.suspend(() => {
      if (--opened.holders > 0) return Effect.void
      return opened.core.close.pipe(
        Effect.andThen(Scope.close(opened.scope, Exit.void)),
        Effect.andThen(
          Effect.suspend(() => {
            sessions.delete(id)
            return Deferred.succeed(opened.closed, undefined)
          })
        ),
        Effect.asVoid
      )
    })
    return Effect.as(
      Effect.addFinalizer(() => release),
      opened.session
    )
  }
  return AgentRuntime.of({
    // The engine keeps no type of a host's tools; what they need is in the context that `open` requires.
    open: open as unknown as AgentRuntime["Service"]["open"],
    list: Effect.sync(() =>
      Array.from(sessions, ([id, { core }]) => ({
        id,
        agent: core.engine.agent.name,
        open: true,
        sequence: core.engine.journal.sequence
      }))
    )
  })
})

const start = Effect.fnUntraced(function* (id: Ids.SessionId, agent: Agent<Tools>) {
  const services = yield* Effect.context<LanguageModel.LanguageModel | Tool.HandlersFor<Tools>>()
  const scope = yield* Scope.make()
  const toolkit = yield* agent.toolkit
  const dispatcher = yield* Effect.withFiber((fiber) => Effect.succeed(fiber.currentDispatcher))
  const instructions = agent.instructions.trim() === "" ? [] : [Prompt.systemMessage({ content: agent.instructions })]
  const journal = new Journal({ sessionId: id, clock: yield* Clock.Clock, dispatcher, instructions })
  const saving = new Set<number>()
  const core: Core = yield* Scope.provide(
    Core.make({
      engine: {
        agent,
        model: Context.get(services, LanguageModel.LanguageModel),
        toolkit,
        tools: new ToolRunner(toolkit, services),
        services,
        journal,
        context: yield* ContextStore,
        tracker: Context.getOrUndefined(services, ResponseIdTracker.ResponseIdTracker),
        policy: yield* ToolPolicy,
        reconciler: yield* ToolReconciler,
        checkpointer: yield* Checkpointer,
        preparation: yield* ContextPreparation,
        limits: yield* Limits,
        grace: yield* GraceTime,
        rested: () => settleRested(core, saving)
      },
      dispatcher,
      nonce: yield* nonce
    }),
    scope
  )
  const opened: Opened = {
    agent,
    core,
    session: Session.make(core),
    scope,
    closed: Deferred.makeUnsafe(),
    holders: 0
  }
  return opened
})

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

/** 16 characters of the fiber's random source: ids made with it are unlike those of any other opening. */
const nonce: Effect.Effect<string> = Random.Random.useSync((random) =>
  Array.from({ length: 16 }, () => alphabet[Math.floor(random.nextDoubleUnsafe() * alphabet.length)]).join("")
)
