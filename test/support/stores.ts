/** Stores that delay, fail or doubt on command, and processes over one store that may be lost at any of its writes. */
import { Context, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { AgentRuntime, type Event, Ids, type SessionError, SessionStore } from "../../src/index.ts"
import { type Harness, opening, type Options } from "./harness.ts"

type Service = SessionStore.SessionStore["Service"]
type Written = Effect.Effect<void, SessionStore.StoreError>

/** What becomes of one append; `land` writes it. Appends count from 1. */
export type Fate = (land: Written, commit: SessionStore.Append, nth: number) => Written

export interface Watched {
  readonly service: Service
  /** Every append that was handed over, in order. */
  readonly appends: ReadonlyArray<SessionStore.Append>
  fate: Fate
  position: (read: ReturnType<Service["position"]>) => ReturnType<Service["position"]>
}

export const fails = (reason: SessionStore.StoreErrorReason) => Effect.fail(new SessionStore.StoreError({ reason }))
const unconfirmed = fails({ _tag: "Unconfirmed", detail: "the line broke" })

export const unavailable: Fate = () => fails({ _tag: "Unavailable", detail: "the disk is full" })
export const lands: Fate = (land) => land
export const landsUnconfirmed: Fate = (land) => Effect.andThen(land, unconfirmed)
export const vanishes: Fate = () => unconfirmed

/** A memory store that outlives the runtimes over it. */
export const disk: Effect.Effect<Service, never, Scope.Scope> = Effect.map(
  Layer.build(Layer.fresh(SessionStore.layerMemory)),
  Context.get(SessionStore.SessionStore)
)

/** The store as one process sees it. */
export const watch = (store: Service): Watched => {
  const appends: Array<SessionStore.Append> = []
  const watched: Watched = {
    appends,
    fate: lands,
    position: (read) => read,
    service: {
      ...store,
      append: (commit) =>
        Effect.suspend(() => {
          appends.push(commit)
          return watched.fate(store.append(commit), commit, appends.length)
        }),
      position: (id) => Effect.suspend(() => watched.position(store.position(id)))
    }
  }
  return watched
}

/** The bodies of a commit's entries. */
export const bodies = (commit: SessionStore.Append): ReadonlyArray<Record<string, unknown>> =>
  commit.entries.map((entry) => entry.body as Record<string, unknown>)

type Kind = Event.SessionEvent["type"] | "input" | "message" | "write-begun" | "resumed" | "decision"

/** Whether a commit holds an event of this type or a record of this kind, with these values if any are given. */
export const carries = (commit: SessionStore.Append, kind: Kind, values: Record<string, unknown> = {}): boolean =>
  bodies(commit).some(
    (body) =>
      (body["type"] === kind || body["record"] === kind) &&
      Object.entries(values).every(([key, value]) => body[key] === value)
  )

/** From now on, the first append that carries this meets the fate, and every other one lands. */
export const once = (watched: Watched, kind: Kind, fate: Fate, values?: Record<string, unknown>): void => {
  let met = false
  watched.fate = (land, commit, nth) => {
    if (met || !carries(commit, kind, values)) return land
    met = true
    return fate(land, commit, nth)
  }
}

/** Delays the first append that carries this until it is let go; `reached` ends when it is under way. */
export const hold = (watched: Watched, kind: Kind, then: Fate = lands, values?: Record<string, unknown>) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const delayed: Fate = (land, commit, nth) =>
      Deferred.succeed(reached, undefined).pipe(
        Effect.andThen(Deferred.await(gate)),
        Effect.andThen(Effect.suspend(() => then(land, commit, nth)))
      )
    once(watched, kind, delayed, values)
    return { reached: Deferred.await(reached), release: Effect.asVoid(Deferred.succeed(gate, undefined)) }
  })

/** Delays the next append, whatever it carries. */
export const holdNext = (watched: Watched, then: Fate = lands) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    watched.fate = (land, commit, nth) => {
      watched.fate = lands
      return Deferred.succeed(reached, undefined).pipe(
        Effect.andThen(Deferred.await(gate)),
        Effect.andThen(Effect.suspend(() => then(land, commit, nth)))
      )
    }
    return { reached: Deferred.await(reached), release: Effect.asVoid(Deferred.succeed(gate, undefined)) }
  })

/** Lets every fiber that has been rung take its turns. */
export const settle = Effect.forEach(Array.from({ length: 60 }), () => Effect.yieldNow, { discard: true })

/** A runtime of its own over the store: another process. */
export const runtimeOver = (store: Service): Effect.Effect<AgentRuntime.AgentRuntime["Service"], never, Scope.Scope> =>
  Effect.map(
    Layer.build(
      Layer.fresh(Layer.provide(Layer.fresh(AgentRuntime.layer), Layer.succeed(SessionStore.SessionStore, store)))
    ),
    Context.get(AgentRuntime.AgentRuntime)
  )

export const sessionId = Ids.SessionId.make("ses_law")

/** Runs a scene over a store, in a scope that is abandoned as a lost process abandons it. */
export const over = <A, E>(
  store: Service,
  scene: Effect.Effect<A, E, Scope.Scope | AgentRuntime.AgentRuntime>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const runtime = yield* Scope.provide(runtimeOver(store), scope)
    return yield* Scope.provide(Effect.provideService(scene, AgentRuntime.AgentRuntime, runtime), scope)
  })

export interface Process extends Harness {
  /** Ends the process in good order. Without it, it is lost. */
  readonly close: Effect.Effect<void>
}

/** Another process opens the session; its scope is abandoned unless it is closed. */
export const boot = (store: Service, options: Options): Effect.Effect<Process> => Effect.orDie(booting(store, options))

/** The same, with the error of an opening that fails. */
export const booting = (store: Service, options: Options): Effect.Effect<Process, SessionError.SessionError> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const runtime = yield* Scope.provide(runtimeOver(store), scope)
    const h = yield* opening({ id: sessionId, ...options }).pipe(
      Effect.provideService(AgentRuntime.AgentRuntime, runtime),
      Scope.provide(scope)
    )
    return { ...h, close: Scope.close(scope, Exit.void) }
  })

/** A scene over a store of its own, whose session has the id that `boot` opens. */
export const on = <A, E>(
  scene: (store: Watched) => Effect.Effect<A, E, Scope.Scope | AgentRuntime.AgentRuntime>
): Effect.Effect<A, E, Scope.Scope> =>
  Effect.flatMap(disk, (store) => {
    const watched = watch(store)
    return over(watched.service, scene(watched))
  })

/** The stored entries of the session, as text. */
export const stored = (store: Service): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const events = yield* store.events(sessionId, 0, 100_000)
    const kinds = ["input", "message", "write-begun", "resumed", "decision"]
    const records = yield* Effect.forEach(kinds, (kind) => store.kind(sessionId, kind, 1_000_000))
    return [...events, ...records.flat()]
      .sort((a, b) => a.position - b.position)
      .map(({ body, kind, position }) => `${position} ${kind} ${JSON.stringify(body)}`)
  }).pipe(Effect.orDie)
