/** A session of the real runtime over a scripted provider and three fixture tools, with every event recorded. */
import { Context, Effect, Fiber, Layer, Option, Schema, type Scope, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import {
  Agent,
  AgentRuntime,
  type Event,
  type Ids,
  Input,
  type Receipt,
  type Session,
  type SessionError
} from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

const parameters = Schema.Struct({ path: Schema.String })
export class ToolProblem extends Schema.TaggedError<ToolProblem>()("ToolProblem", { why: Schema.String }) {}

export const Look = Tool.make("look", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
export const Edit = Tool.make("edit", { parameters, success: Schema.String })
export const Send = Tool.make("send", {
  parameters,
  success: Schema.String,
  failure: ToolProblem,
  failureMode: "return"
})
export const toolkit = Toolkit.make(Look, Edit, Send)
export type Tools = Toolkit.Tools<typeof toolkit>

type Handler = (path: string) => Effect.Effect<string, ToolProblem>

export interface Options {
  readonly script: ScriptedModel.Script
  readonly model?: ScriptedModel.Options
  readonly agent?: Partial<Agent.Options<Tools>>
  readonly look?: Handler
  readonly edit?: Handler
  readonly send?: Handler
  readonly id?: Ids.SessionId
  readonly open?: AgentRuntime.OpenOptions
}

export interface Harness {
  readonly session: Session.Session
  readonly model: ScriptedModel.ScriptedModel["Service"]
  /** Journalled events so far. */
  readonly events: Effect.Effect<ReadonlyArray<Event.SessionEvent>>
  /** Names of the handlers that really began, in order. */
  readonly began: ReadonlyArray<string>
  /** Submits a prompt that must start a generation. */
  readonly prompt: (content: string, id?: string) => Effect.Effect<Ids.GenerationId>
  /** Submits an anchored steer. */
  readonly steer: (
    generation: Ids.GenerationId,
    content: string,
    options?: Input.Options
  ) => Effect.Effect<Receipt.Receipt>
  readonly receipt: (id: string) => Effect.Effect<Receipt.Receipt | undefined>
}

/** Begins an effect at once, in no scope. */
export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkDetach(effect, { startImmediately: true })

export const inputId = (id: string): Ids.InputId => id as Ids.InputId
export const generationId = (id: string): Ids.GenerationId => id as Ids.GenerationId

/** Opens a session in the caller's scope. References provided around it (limits, ports) apply to it. */
export const open = (options: Options): Effect.Effect<Harness, never, Scope.Scope | AgentRuntime.AgentRuntime> =>
  Effect.orDie(opening(options))

/** The same, with the error of an opening that fails. */
export const opening = (
  options: Options
): Effect.Effect<Harness, SessionError.SessionError, Scope.Scope | AgentRuntime.AgentRuntime> =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(options.script, options.model)
    const began: Array<string> = []
    const handled = (name: string, handler: Handler | undefined) => (params: { readonly path: string }) =>
      Effect.suspend(() => {
        began.push(name)
        return handler === undefined ? Effect.succeed(`${name} ${params.path}`) : handler(params.path)
      })
    const handlers = toolkit.toLayer({
      look: (params) => Effect.orDie(handled("look", options.look)(params)),
      edit: (params) => Effect.orDie(handled("edit", options.edit)(params)),
      send: handled("send", options.send)
    })
    const agent = Agent.make({ name: "fixture", instructions: "Be brief.", toolkit, ...options.agent })
    const services = yield* Layer.build(Layer.merge(model.layer, handlers))
    const runtime = yield* AgentRuntime.AgentRuntime
    const session = yield* Effect.provideContext(
      runtime.open(agent, { ...(options.id === undefined ? {} : { id: options.id }), ...options.open }),
      Context.merge(yield* Effect.context<Scope.Scope>(), services)
    )
    const steering = session.capability("live.steering")
    return {
      session,
      model,
      began,
      events: Effect.gen(function* () {
        const { sequence } = yield* session.status
        return sequence === 0
          ? []
          : yield* Stream.runCollect(Stream.take(journalled(session.events()), sequence)).pipe(Effect.orDie)
      }),
      prompt: (content, id) =>
        Effect.gen(function* () {
          const receipt = yield* session.submit(Input.prompt(content, id === undefined ? {} : { id }))
          if (!receipt.accepted || receipt.generationId === null) {
            return yield* Effect.die(new Error(`the prompt was not started: ${JSON.stringify(receipt)}`))
          }
          return receipt.generationId
        }),
      steer: (generation, content, input) => steering.submit(Input.steer(content, input), generation),
      receipt: (id) => Effect.map(session.receipt(inputId(id)), Option.getOrUndefined)
    }
  })

/** Journalled events only: no `live` key. */
export const journalled = <E>(stream: Stream.Stream<Event.SessionEvent, E>): Stream.Stream<Event.SessionEvent, E> =>
  Stream.filter(stream, (event) => event.live === undefined)

export const types = (events: ReadonlyArray<Event.SessionEvent>): ReadonlyArray<string> =>
  events.map((event) => event.type)

/** The user texts of a recorded request, in order. */
export const userTexts = (request: ScriptedModel.Request | undefined): ReadonlyArray<string> =>
  (request?.prompt ?? []).flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
  )

/** The tool results of a recorded request: provider id, whether it failed, and what it says. */
export const toolResults = (request: ScriptedModel.Request | undefined) =>
  (request?.prompt ?? []).flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) =>
          part.type === "tool-result" ? [{ id: part.id, isFailure: part.isFailure, result: String(part.result) }] : []
        )
      : []
  )

/** Collects what a stream gives until the scope closes. */
export const record = <E>(stream: Stream.Stream<Event.SessionEvent, E>) =>
  Effect.gen(function* () {
    const got: Array<Event.SessionEvent> = []
    const fiber = yield* Effect.forkScoped(
      Stream.runForEach(stream, (event) => Effect.sync(() => void got.push(event))),
      { startImmediately: true }
    )
    return { got, ended: Fiber.await(fiber) }
  })
