/** Sessions whose first response asks for several calls at once, each held until it is let go, and words for what became of them. */
import { Deferred, type Duration, Effect, Layer, Schema, type Scope } from "effect"
import { Tool, Toolkit } from "effect/ai"
import {
  Agent,
  AgentRuntime,
  Checkpointer,
  type Event,
  type Generation,
  type Ids,
  Input,
  type Receipt,
  type Session,
  type ToolCall,
  ToolPolicy,
  ToolReconciler,
  Uncancellable
} from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { toolResults } from "./harness.ts"
import { eventsOf, ofType, seen, start } from "./providers.ts"
import { isToolEnd } from "./truth.ts"

const parameters = Schema.Struct({ path: Schema.String })
const success = Schema.String
const Read = Tool.make("read", { parameters, success }).annotate(Tool.Readonly, true)
const Write = Tool.make("write", { parameters, success })
const Keep = Tool.make("keep", { parameters, success }).annotate(Uncancellable.Uncancellable, { grace: "30 seconds" })
const Careful = Tool.make("careful", { parameters, success, needsApproval: true })
const Choosy = Tool.make("choosy", { parameters, success, needsApproval: ({ path }) => path.startsWith("risky") })
const Asked = Tool.make("asked", {
  parameters,
  success,
  needsApproval: ({ path }) => Effect.succeed(path.startsWith("risky"))
})
const Broken = Tool.make("broken", { parameters, success, needsApproval: () => Effect.die(new Error("cannot say")) })
export const toolkit = Toolkit.make(Read, Write, Keep, Careful, Choosy, Asked, Broken)
type Tools = Toolkit.Tools<typeof toolkit>

type Progress = (result: string) => Effect.Effect<void>

export interface Options {
  /** The calls of the first response, `tool:path`; the path is the provider's id too. */
  readonly calls: ReadonlyArray<string>
  /** The paths of the calls that end at once; the others are held until released. */
  readonly free?: ReadonlyArray<string> | "all"
  /** How many calls run at once; one unless said. */
  readonly concurrency?: number
  /** The responses after the first; four texts follow them. */
  readonly rest?: ReadonlyArray<ScriptedModel.Step>
  /** What the first response waits for. */
  readonly after?: Effect.Effect<unknown>
  readonly agent?: Partial<Agent.Options<Tools>>
  /** Replaces what a call does when it is let go. */
  readonly body?: (path: string, progress: Progress) => Effect.Effect<string>
  readonly policy?: ToolPolicy.Service
  readonly reconciler?: ToolReconciler.Service
  readonly checkpointer?: Checkpointer.Service
  readonly grace?: Duration.Duration
}

export interface Batch {
  readonly session: Session.Session
  readonly model: ScriptedModel.ScriptedModel["Service"]
  /** The generation that asks for the calls. */
  readonly id: Ids.GenerationId
  /** Paths of the handlers that began, in order, and of those that ended, however they did. */
  readonly began: ReadonlyArray<string>
  readonly ended: ReadonlyArray<string>
  /** The most handlers that ran at the same time. */
  readonly most: () => number
  /** Waits until the handlers of these paths have begun. */
  readonly entered: (...paths: ReadonlyArray<string>) => Effect.Effect<void>
  /** Lets the calls of these paths end, and waits until each has its end in the journal. */
  readonly release: (...paths: ReadonlyArray<string>) => Effect.Effect<void>
  /** Lets the calls of these paths end, and waits for nothing. */
  readonly let: (...paths: ReadonlyArray<string>) => Effect.Effect<void>
  readonly steer: (content: string, options?: Input.Options) => Effect.Effect<Receipt.Receipt>
  readonly report: Effect.Effect<Generation.GenerationReport>
  readonly events: Effect.Effect<ReadonlyArray<Event.SessionEvent>>
  /** The runtime's id of the call with this path, once it is requested. */
  readonly callId: (path: string) => Effect.Effect<Ids.ToolCallId>
}

const texts = ["second", "third", "fourth", "fifth"].map((text) => ScriptedModel.text(text))

/** Opens a session and prompts it. */
export const open = (options: Options): Effect.Effect<Batch, never, Scope.Scope | AgentRuntime.AgentRuntime> =>
  Effect.gen(function* () {
    const began: Array<string> = []
    const ended: Array<string> = []
    let running = 0
    let most = 0
    const doors = new Map<string, { readonly entered: Deferred.Deferred<void>; readonly go: Deferred.Deferred<void> }>()
    const door = (path: string) => {
      const known = doors.get(path)
      if (known !== undefined) return known
      const made = { entered: Deferred.makeUnsafe<void>(), go: Deferred.makeUnsafe<void>() }
      doors.set(path, made)
      return made
    }
    const isFree = (path: string) => options.free === "all" || options.free?.includes(path) === true
    const body = options.body ?? ((path: string) => Effect.succeed(`did ${path}`))
    const handler = ({ path }: { readonly path: string }, { preliminary }: { readonly preliminary: Progress }) =>
      Effect.suspend(() => {
        began.push(path)
        most = Math.max(most, ++running)
        const { entered, go } = door(path)
        return Deferred.succeed(entered, undefined).pipe(
          Effect.andThen(isFree(path) ? Effect.yieldNow : Deferred.await(go)),
          Effect.andThen(Effect.suspend(() => body(path, preliminary))),
          Effect.ensuring(
            Effect.sync(() => {
              running--
              ended.push(path)
            })
          )
        )
      })
    const names = { read: handler, write: handler, keep: handler, careful: handler, choosy: handler }
    const handlers = toolkit.toLayer({ ...names, asked: handler, broken: handler })
    const requested = ScriptedModel.calls(
      options.calls.map((call) => {
        const [name = "", path = ""] = call.split(":")
        return { name, id: path, params: { path } }
      })
    )
    const first = options.after === undefined ? requested : ScriptedModel.wait(options.after, requested)
    const model = yield* ScriptedModel.make([first, ...(options.rest ?? []), ...texts])
    const tools = options.concurrency === undefined ? "sequential" : { concurrency: options.concurrency }
    const agent = Agent.make({ name: "batches", instructions: "Be brief.", toolkit, tools, ...options.agent })
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime
      .open(agent)
      .pipe(
        Effect.provide(Layer.merge(model.layer, handlers)),
        Effect.provideService(ToolPolicy.ToolPolicy, options.policy ?? (yield* ToolPolicy.ToolPolicy)),
        Effect.provideService(
          ToolReconciler.ToolReconciler,
          options.reconciler ?? (yield* ToolReconciler.ToolReconciler)
        ),
        Effect.provideService(Checkpointer.Checkpointer, options.checkpointer ?? (yield* Checkpointer.Checkpointer)),
        Effect.provideService(Uncancellable.GraceTime, options.grace ?? (yield* Uncancellable.GraceTime)),
        Effect.orDie
      )
    const id = yield* start(session, "go", "p")
    const letGo = (...paths: ReadonlyArray<string>) =>
      Effect.forEach(paths, (path) => Deferred.succeed(door(path).go, undefined), { discard: true })
    const find = (path: string) =>
      seen(session, (event) => event.type === "tool.requested" && event.provider_call_id === path)
    return {
      session,
      model,
      id,
      began,
      ended,
      most: () => most,
      entered: (...paths) => Effect.forEach(paths, (path) => Deferred.await(door(path).entered), { discard: true }),
      let: letGo,
      release: (...paths) =>
        Effect.andThen(
          letGo(...paths),
          Effect.forEach(
            paths,
            (path) => seen(session, (event) => isToolEnd(event) && event.provider_call_id === path),
            { discard: true }
          )
        ),
      steer: (content, input) => session.capability("live.steering").submit(Input.steer(content, input), id),
      report: Effect.orDie(session.await(id)),
      events: eventsOf(session),
      callId: (path) =>
        Effect.map(find(path), (event) => {
          if (event.type !== "tool.requested") throw new Error(`call ${path} was not requested`)
          return event.call_id
        })
    }
  })

/** A status in words: `Completed`, `NotStarted steering s1`, `Interrupted unknown cancel`, `Denied too late`. */
export const word = (status: ToolCall.ToolCallStatus): string => {
  switch (status._tag) {
    case "NotStarted":
      return ["NotStarted", status.reason, ...(status.inputIds ?? [])].join(" ")
    case "Interrupted":
      return `Interrupted ${status.effects} ${status.cause}`
    case "Denied":
      return `Denied ${status.reason}`
    case "Failed":
      return `Failed ${status.error}`
    case "Requested":
    case "Admitted":
    case "Started":
    case "Completed":
      return status._tag
  }
}

/** What became of each call, in the order requested: `a Completed`. */
export const told = (report: Generation.GenerationReport): ReadonlyArray<string> =>
  report.tools.map(({ providerId, status }) => `${providerId} ${word(status)}`)

/** The waves, each the paths that `tools.admitted` lists. */
export const waves = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyArray<ReadonlyArray<string>> => {
  const paths = new Map(ofType(events, "tool.requested").map((event) => [event.call_id, event.provider_call_id]))
  return ofType(events, "tools.admitted").map((event) => event.call_ids.map((id) => paths.get(id) ?? id))
}

/** The results a request carries: `a did a`. */
export const answers = (request: ScriptedModel.Request | undefined): ReadonlyArray<string> =>
  toolResults(request).map(({ id, result }) => `${id} ${result}`)

/** The paths of the calls that ended, in the order in which they did. */
export const endings = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyArray<string> =>
  events.filter(isToolEnd).map((event) => event.provider_call_id)
