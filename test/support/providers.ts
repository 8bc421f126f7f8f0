/** What the law tests of tools, providers and control share: errors, models made by hand, and views of a session. */
import { Deferred, Duration, Effect, Layer, Schema, type Scope, Stream } from "effect"
import { AiError, LanguageModel, type Prompt, type Response, Tool, Toolkit } from "effect/ai"
import {
  Agent,
  AgentRuntime,
  type Event,
  type Generation,
  type Ids,
  Input,
  type Session,
  Uncancellable
} from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ToolProblem, type Tools, toolkit } from "./harness.ts"

/** An error the provider calls retryable. */
export const overloaded = new AiError.InternalProviderError({ description: "overloaded" })
export const rateLimited = (retryAfter: Duration.Input): AiError.RateLimitError =>
  new AiError.RateLimitError({ retryAfter: Duration.fromInputUnsafe(retryAfter) })
/** An error no retry mends. */
export const unauthorised = new AiError.AuthenticationError({ kind: "InvalidKey" })

/** A provider made by hand: the stream it gives, by the number of the request from 1. */
export const provider = (
  streamText: (
    request: number,
    options: LanguageModel.ProviderOptions
  ) => Stream.Stream<Response.StreamPartEncoded, AiError.AiError>
): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.suspend(() => {
      let requests = 0
      return LanguageModel.make({
        streamText: (options) => streamText(++requests, options),
        generateText: () => Effect.die(new Error("no test asks for a whole answer"))
      })
    })
  )

/** A whole answer, as a provider streams it. */
export const answer = (text: string): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: text },
  { type: "text-end", id: "t" },
  {
    type: "finish",
    reason: "stop",
    usage: {
      inputTokens: { uncached: 1, total: 1, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 1, text: 1, reasoning: undefined }
    }
  }
]

/** The steps in order, and after them an answer that names its request. */
export const scripted =
  (...steps: ReadonlyArray<ScriptedModel.Step>) =>
  (request: ScriptedModel.Request): ScriptedModel.Step =>
    steps[request.index - 1] ?? ScriptedModel.text(`answer ${request.index}`)

/** The fixture tools, each answering its name. */
export const handlers: Layer.Layer<Tool.HandlersFor<Tools>> = toolkit.toLayer({
  look: ({ path }) => Effect.succeed(`look ${path}`),
  edit: ({ path }) => Effect.succeed(`edit ${path}`),
  send: ({ path }) => Effect.succeed(`send ${path}`)
})

/** A session of the fixture agent over a model that is not scripted. */
export const openOver = (
  model: Layer.Layer<LanguageModel.LanguageModel>,
  agent: Partial<Agent.Options<Tools>> = {}
): Effect.Effect<Session.Session, never, Scope.Scope | AgentRuntime.AgentRuntime> =>
  Effect.flatMap(AgentRuntime.AgentRuntime, (runtime) =>
    runtime.open(Agent.make({ name: "fixture", instructions: "Be brief.", toolkit, ...agent }))
  ).pipe(Effect.provide(Layer.merge(model, handlers)), Effect.orDie)

/** Submits a prompt that must start a generation, and waits for nothing. */
export const start = (session: Session.Session, content: string, id?: string): Effect.Effect<Ids.GenerationId> =>
  Effect.flatMap(session.submit(Input.prompt(content, id === undefined ? {} : { id })), (receipt) =>
    receipt.accepted && receipt.generationId !== null
      ? Effect.succeed(receipt.generationId)
      : Effect.die(new Error(`the prompt was not started: ${JSON.stringify(receipt)}`))
  )

/** Runs a prompt to the report of its generation. */
export const ask = (session: Session.Session, content: string): Effect.Effect<Generation.GenerationReport> =>
  Effect.orDie(Effect.flatMap(start(session, content), (id) => session.await(id)))

/** The journalled events so far. */
export const eventsOf = (session: Session.Session): Effect.Effect<ReadonlyArray<Event.SessionEvent>> =>
  Effect.flatMap(session.status, ({ sequence }) =>
    sequence === 0
      ? Effect.succeed([])
      : session.events().pipe(
          Stream.filter((event) => event.live === undefined),
          Stream.take(sequence),
          Stream.runCollect,
          Effect.orDie
        )
  )

/** Waits for the first event, past or coming, that is meant. */
export const seen = (
  session: Session.Session,
  meant: (event: Event.SessionEvent) => boolean
): Effect.Effect<Event.SessionEvent> =>
  session.events().pipe(
    Stream.filter(meant),
    Stream.runHead,
    Effect.flatMap((found) => Effect.fromOption(found)),
    Effect.orDie
  )

/** Waits for the n-th event of a type. */
export const seenType = (session: Session.Session, type: Event.SessionEvent["type"], nth = 1) => {
  let count = 0
  return seen(session, (event) => event.type === type && ++count === nth)
}

export type Of<Type extends Event.SessionEvent["type"]> = Having<Event.SessionEvent, Type>
type Having<E, Type> = E extends { readonly type: infer T } ? (Type extends T ? E : never) : never

/** The events of one type. */
export const ofType = <Type extends Event.SessionEvent["type"]>(
  events: ReadonlyArray<Event.SessionEvent>,
  type: Type
): ReadonlyArray<Of<Type>> => events.filter((event): event is Of<Type> => event.type === type)

/** What became of each call, by the provider's id. */
export const statuses = (report: Generation.GenerationReport) =>
  report.tools.map((tool) => [tool.providerId, tool.status] as const)

/** A handler's body that says when it began and waits to be let go. */
export const gate = Effect.map(Effect.all([Deferred.make<void>(), Deferred.make<void>()]), ([entered, release]) => ({
  /** Ends when the handler has begun. */
  entered: Deferred.await(entered),
  open: Effect.asVoid(Deferred.succeed(release, undefined)),
  pass: <A>(value: A): Effect.Effect<A> =>
    Deferred.succeed(entered, undefined).pipe(Effect.andThen(Deferred.await(release)), Effect.as(value))
}))

/** For each assistant message with calls of ours: the ids asked for, and the ids the very next message answers. */
export const pairs = (request: ScriptedModel.Request | undefined) => pairsOf(request?.prompt ?? [])

export const pairsOf = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap((message, index) => {
    if (message.role !== "assistant") return []
    const calls = message.content.flatMap((part) =>
      part.type === "tool-call" && !part.providerExecuted ? [part.id] : []
    )
    if (calls.length === 0) return []
    const next = messages[index + 1]
    const results =
      next?.role === "tool" ? next.content.flatMap((part) => (part.type === "tool-result" ? [part.id] : [])) : []
    return [{ calls, results }]
  })

/** The parts of the assistant messages of a request, each as its type and what it says. */
export const said = (request: ScriptedModel.Request | undefined) =>
  (request?.prompt ?? []).flatMap((message) =>
    message.role === "assistant"
      ? [
          {
            interrupted: isMarked(message.options["midcourse"]),
            parts: message.content.map((part) =>
              "text" in part ? `${part.type} ${part.text}` : `${part.type} ${"id" in part ? part.id : ""}`
            )
          }
        ]
      : []
  )

const isMarked = (options: unknown): boolean =>
  typeof options === "object" && options !== null && "interrupted" in options && options.interrupted === true

/** The notices of the runtime in a request. */
export const notices = (request: ScriptedModel.Request | undefined): ReadonlyArray<string> =>
  (request?.prompt ?? []).flatMap((message) => {
    const own: unknown = message.role === "user" ? message.options["midcourse"] : undefined
    if (typeof own !== "object" || own === null || !("notice" in own) || message.role !== "user") return []
    return message.content.flatMap((part) => (part.type === "text" ? [part.text] : []))
  })

/** Tools for every way a call may end. */
const parameters = Schema.Struct({ path: Schema.String })
const success = Schema.String
const Strict = Tool.make("strict", { parameters, success, failure: ToolProblem, failureMode: "error" })
const Lenient = Tool.make("lenient", { parameters, success, failure: ToolProblem, failureMode: "return" })
const Fussy = Tool.make("fussy", { parameters, success: Schema.String.check(Schema.isMinLength(3)) })
const Shown = Tool.make("shown", {
  parameters,
  success,
  toModelOutput: () => {
    throw new Error("cannot show it")
  }
})
const Firm = Tool.make("firm", { parameters, success }).annotate(Uncancellable.Uncancellable, { grace: "30 seconds" })
const Soft = Tool.make("soft", { parameters, success })
const Reader = Tool.make("reader", { parameters, success }).annotate(Tool.Readonly, true)
const kit = Toolkit.make(Strict, Lenient, Fussy, Shown, Firm, Soft, Reader)
export type ToolBody = () => Effect.Effect<string, ToolProblem>
export type OutcomeTool = keyof Toolkit.Tools<typeof kit>

/** A session of these tools: the calls named are asked for at once, and every later request is answered. */
export const openTools = (names: ReadonlyArray<OutcomeTool>, bodies: { readonly [name in OutcomeTool]?: ToolBody }) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make((request) =>
      request.index === 1
        ? ScriptedModel.calls(names.map((name) => ({ name, id: name, params: { path: "p" } })))
        : ScriptedModel.text("done")
    )
    const body = (name: OutcomeTool): Effect.Effect<string, ToolProblem> =>
      bodies[name]?.() ?? Effect.succeed(`${name} ok`)
    const safe = (name: OutcomeTool) => () => Effect.orDie(body(name))
    const handlers = kit.toLayer({
      strict: () => body("strict"),
      lenient: () => body("lenient"),
      fussy: safe("fussy"),
      shown: safe("shown"),
      firm: safe("firm"),
      soft: safe("soft"),
      reader: safe("reader")
    })
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* runtime
      .open(Agent.make({ name: "outcomes", instructions: "Be brief.", toolkit: kit }))
      .pipe(Effect.provide(Layer.merge(model.layer, handlers)))
    return { model, session }
  })
