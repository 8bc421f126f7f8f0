/** Moments of a session that law tests begin at, and words for what they find there. */
import { Deferred, Effect, type Scope, Stream } from "effect"
import { AiError } from "effect/ai"
import { AgentRuntime, type Event, type Generation, type Ids, Limits, type Receipt } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, journalled, open, type Options } from "./harness.ts"

/** Runs a test over a runtime of its own. */
export const run = <A, E>(
  effect: Effect.Effect<A, E, Scope.Scope | AgentRuntime.AgentRuntime>
): Effect.Effect<A, E, Scope.Scope> => effect.pipe(Effect.scoped, Effect.provide(AgentRuntime.layerMemory))

/** Waits for the `count`th journalled event of a type. */
export const seen = (h: Harness, type: Event.SessionEvent["type"], count = 1): Effect.Effect<void> =>
  journalled(h.session.events()).pipe(
    Stream.filter((event) => event.type === type),
    Stream.take(count),
    Stream.runDrain,
    Effect.orDie
  )

export const report = (h: Harness, id: Ids.GenerationId): Effect.Effect<Generation.GenerationReport> =>
  Effect.orDie(h.session.await(id))

/** A receipt in words: `queued`, `applied in 2`, `held generation-stopped`, `refused busy`. */
export const words = (receipt: Receipt.Receipt | undefined): string => {
  if (receipt === undefined) return "none"
  if (!receipt.accepted) return `refused ${receipt.reason}`
  const reason = receipt.reason === undefined ? "" : ` ${receipt.reason}`
  return `${receipt.disposition}${reason}${receipt.request === undefined ? "" : ` in ${receipt.request}`}`
}

/** The receipts of these ids, in words. */
export const receipts = (h: Harness, ...ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.forEach(ids, (id) => Effect.map(h.receipt(id), words))

export interface Gated extends Harness {
  readonly id: Ids.GenerationId
  /** What the first response, or the first tool call, waits for. */
  readonly gate: Deferred.Deferred<void>
  readonly go: Effect.Effect<void>
}

const gated = (h: Harness, id: Ids.GenerationId, gate: Deferred.Deferred<void>): Gated => ({
  ...h,
  id,
  gate,
  go: Effect.asVoid(Deferred.succeed(gate, undefined))
})

type Rest = Omit<Options, "script" | "edit"> & { readonly after?: ReadonlyArray<ScriptedModel.Step> }

const more = [ScriptedModel.text("second"), ScriptedModel.text("third"), ScriptedModel.text("fourth")]

/** A generation `p` whose first request is under way; it answers `first` when let go. */
export const duringRequest = ({ after = more, ...options }: Rest & { readonly first?: ScriptedModel.Step } = {}) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const first = ScriptedModel.wait(Deferred.await(gate), options.first ?? ScriptedModel.text("first"))
    const h = yield* open({ script: [first, ...after], ...options })
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, "request.started")
    return gated(h, id, gate)
  })

/** A generation `p` whose first response asked for calls, of which the first, `edit`, is running. */
export const duringTool = ({ after = more, ...options }: Rest & { readonly calls?: ReadonlyArray<string> } = {}) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const calls = options.calls ?? ["edit"]
    const first = ScriptedModel.calls(calls.map((name, i) => ({ name, params: { path: name }, id: `call-${i + 1}` })))
    const edit = (path: string) => Effect.as(Deferred.await(gate), `edited ${path}`)
    const h = yield* open({ script: [first, ...after], edit, ...options })
    const id = yield* h.prompt("do it", "p")
    yield* seen(h, "tool.started")
    return gated(h, id, gate)
  })

/** A failure that the provider calls worth another try. */
export const passing = (): AiError.AiErrorReason =>
  new AiError.InternalProviderError({ description: "a passing fault" })

/** A failure that is not. */
export const lasting = (): AiError.AiErrorReason => new AiError.AuthenticationError({ kind: "InvalidKey" })

/** Opens sessions in the effect under these limits, the others as they are. */
export const withLimits = <A, E, R>(
  limits: Partial<Limits.Limits>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Limits.Limits, (defaults) => Effect.provideService(effect, Limits.Limits, { ...defaults, ...limits }))

/** Everything a submission under this id could have left behind. */
export const trace = (h: Harness, id: string) =>
  Effect.gen(function* () {
    const status = yield* h.session.status
    return {
      receipt: yield* h.session.receipt(inputId(id)),
      input: yield* h.session.input(inputId(id)),
      held: yield* h.session.held,
      used: status.identities.used,
      queued: status.queuedInputIds,
      pending: status.generation?.pendingInputIds,
      sequence: status.sequence
    }
  })
