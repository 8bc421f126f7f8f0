/**
 * A deterministic `LanguageModel`: a list of scripted responses, or a function of the request. It records every request
 * it was really sent, refuses a prompt that a strict endpoint would refuse, and counts which of its response streams
 * are open, were completed, failed or were cut short, so that a test can tell an aborted request from a forgotten one.
 * Without a `wait` it answers synchronously: no timer, no promise.
 *
 * @since 0.1.0
 */
import {
  Array as Arr,
  Cause,
  Channel,
  Context,
  Effect,
  type Latch,
  Layer,
  Option,
  type Pull,
  Scope,
  Stream
} from "effect"
import { type AiError, LanguageModel, Prompt, type Response, ResponseIdTracker, type Tool } from "effect/ai"
import { decode, type Encoded, type EncodedUsage, fold, plan, type Segment } from "./internal/script.ts"
import * as StrictPrompt from "../domain/StrictPrompt.ts"

/**
 * One scripted response. Made by the constructors of this module; opaque.
 *
 * @category models
 * @since 0.1.0
 */
export interface Step {
  readonly segments: ReadonlyArray<Segment>
}

/**
 * A request the model received. `prompt` is a copy, `index` counts from 1.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly index: number
  readonly prompt: ReadonlyArray<Prompt.Message>
  readonly tools: ReadonlyArray<string>
  readonly previousResponseId: string | undefined
  readonly incrementalPrompt: ReadonlyArray<Prompt.Message> | undefined
}

/**
 * The responses in order, or the response to a request.
 *
 * @category models
 * @since 0.1.0
 */
export type Script = ReadonlyArray<Step> | ((request: Request) => Step)

/**
 * How the response streams ended. `interrupted` counts those closed before their last part was delivered.
 *
 * @category models
 * @since 0.1.0
 */
export interface Stats {
  readonly started: number
  readonly open: number
  readonly completed: number
  readonly failed: number
  readonly interrupted: number
}

/**
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * Implement `streamText` directly: no decoder, no scan of the whole prompt, no span. Tool calls are not resolved:
   * a toolkit needs `disableToolCallResolution: true`. Default `false`: the provider is made by `LanguageModel.make`.
   */
  readonly direct?: boolean | undefined
  /**
   * Refuse a prompt that a strict endpoint would refuse: the violation is recorded and the request dies. A last
   * message of the assistant is let through after a response that finished with `pause`. Default `true`.
   */
  readonly strict?: boolean | StrictPrompt.Options | undefined
  /** Usage of a response that names none. Default: 10 tokens in, 5 out. */
  readonly usage?: EncodedUsage | undefined
  /** What one pull of a response gives: everything a step emits at once, or one part. Default `"step"`. */
  readonly chunks?: "step" | "part" | undefined
}

/**
 * The scripted model and what it has seen.
 *
 * @category services
 * @since 0.1.0
 */
export class ScriptedModel extends Context.Service<
  ScriptedModel,
  {
    readonly model: LanguageModel.LanguageModel
    readonly layer: Layer.Layer<LanguageModel.LanguageModel>
    /** Every request so far, in order. */
    readonly requests: ReadonlyArray<Request>
    /** The strict violations so far, each naming its request. */
    readonly violations: ReadonlyArray<string>
    readonly stats: () => Stats
    /** Starts the script again, with nothing recorded. Streams still open are forgotten. */
    readonly reset: () => void
  }
>()("midcourse/testing/ScriptedModel") {}

/**
 * Makes a scripted model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (script: Script, options: Options = {}): Effect.Effect<ScriptedModel["Service"]> =>
  Effect.gen(function* () {
    let log = emptyLog()
    const stream = <A>(method: string, input: Input, convert: (parts: Chunk<Encoded>) => Chunk<A>) =>
      open(script, options, () => log, method, input, convert)
    const provider = yield* LanguageModel.make({
      streamText: (o) => stream("streamText", fromProvider(o), (parts) => parts),
      generateText: (o) =>
        Effect.map(Stream.runCollect(stream("generateText", fromProvider(o), (parts) => parts)), fold)
    })
    const direct = (o: DirectOptions) =>
      Stream.fromChannel(
        Channel.fromTransform((_, scope) =>
          Effect.flatMap(directInput(o), ({ input, mark }) =>
            start(script, options, log, "streamText", input, scope, (parts) => {
              const decoded = Arr.map(parts, decode)
              for (const part of decoded) if (part.type === "response-metadata" && part.id) mark(part.id)
              return decoded
            })
          )
        )
      )
    const model: LanguageModel.LanguageModel =
      options.direct === true
        ? // the interface types its parts by the caller's toolkit, which a script cannot know
          { ...provider, streamText: direct as unknown as LanguageModel.LanguageModel["streamText"] }
        : provider
    return {
      model,
      layer: Layer.succeed(LanguageModel.LanguageModel, model),
      get requests() {
        return log.requests
      },
      get violations() {
        return log.violations
      },
      stats: () => ({ ...log.stats }),
      reset: () => {
        log = emptyLog()
      }
    }
  })

/**
 * The scripted model as a layer, with the record of what it has seen.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (script: Script, options?: Options): Layer.Layer<LanguageModel.LanguageModel | ScriptedModel> =>
  Layer.effectContext(
    Effect.map(make(script, options), (scripted) =>
      Context.add(Context.make(ScriptedModel, scripted), LanguageModel.LanguageModel, scripted.model)
    )
  )

/**
 * A text answer. Several strings are several deltas of one text.
 *
 * @category steps
 * @since 0.1.0
 */
export const text = (...deltas: ReadonlyArray<string>): Step => emit((fresh) => block("text", fresh("text"), deltas))

/**
 * Reasoning, before whatever follows it.
 *
 * @category steps
 * @since 0.1.0
 */
export const reasoning = (...deltas: ReadonlyArray<string>): Step =>
  emit((fresh) => block("reasoning", fresh("reasoning"), deltas))

/**
 * One tool call. Without an id it gets one that no other call of the script has.
 *
 * @category steps
 * @since 0.1.0
 */
export const call = (name: string, params: unknown, id?: string): Step => calls([{ name, params, id }])

/**
 * Several tool calls of one response.
 *
 * @category steps
 * @since 0.1.0
 */
export const calls = (
  list: ReadonlyArray<{ readonly name: string; readonly params: unknown; readonly id?: string | undefined }>
): Step =>
  emit((fresh) =>
    list.map(({ id, name, params }) => ({
      type: "tool-call",
      id: id ?? fresh("call"),
      name,
      params,
      providerExecuted: false
    }))
  )

/**
 * Encoded parts as they are.
 *
 * @category steps
 * @since 0.1.0
 */
export const parts = (list: ReadonlyArray<Response.StreamPartEncoded>): Step => emit(() => list)

/**
 * Response metadata: the id that a `ResponseIdTracker` remembers.
 *
 * @category steps
 * @since 0.1.0
 */
export const metadata = (id: string, modelId = "scripted"): Step => parts([{ type: "response-metadata", id, modelId }])

/**
 * Sets the finish reason and the usage of the response it is part of. Without it the reason is `tool-calls` or `stop`.
 *
 * @category steps
 * @since 0.1.0
 */
export const finish = (reason: Response.FinishReason, tokens?: EncodedUsage): Step => ({
  segments: [{ _tag: "Finish", reason, usage: tokens }]
})

/**
 * The response it is part of ends without a finish part.
 *
 * @category steps
 * @since 0.1.0
 */
export const noFinish: Step = { segments: [{ _tag: "NoFinish" }] }

/**
 * The request fails here. A reason is wrapped in an `AiError`.
 *
 * @category steps
 * @since 0.1.0
 */
export const fail = (error: AiError.AiError | AiError.AiErrorReason): Step => ({ segments: [{ _tag: "Fail", error }] })

/**
 * The request fails after some of its response was delivered.
 *
 * @category steps
 * @since 0.1.0
 */
export const failAfter = (
  before: Step | ReadonlyArray<Response.StreamPartEncoded>,
  error: AiError.AiError | AiError.AiErrorReason
): Step => steps([toStep(before), fail(error)])

/**
 * Never answers. Interruptible.
 *
 * @category steps
 * @since 0.1.0
 */
export const hang: Step = { segments: [{ _tag: "Hang" }] }

/**
 * Delivers some of the response, then nothing more.
 *
 * @category steps
 * @since 0.1.0
 */
export const hangAfter = (before: Step | ReadonlyArray<Response.StreamPartEncoded>): Step =>
  steps([toStep(before), hang])

/**
 * Waits for a latch to open, or for an effect to end, before the step. Use `Deferred.await(d)` for a `Deferred`.
 *
 * @category steps
 * @since 0.1.0
 */
export const wait = (gate: Latch.Latch | Effect.Effect<unknown>, step: Step): Step => ({
  segments: [{ _tag: "Wait", effect: Effect.isEffect(gate) ? gate : gate.await }, ...step.segments]
})

/**
 * One response made of several steps, each delivered as a chunk of its own.
 *
 * @category steps
 * @since 0.1.0
 */
export const steps = (list: ReadonlyArray<Step>): Step => ({ segments: list.flatMap((step) => step.segments) })

/**
 * Usage in tokens: input, output, and how much of the input came from a cache.
 *
 * @category constructors
 * @since 0.1.0
 */
export const usage = (input: number, output: number, cacheRead?: number): EncodedUsage => ({
  inputTokens: { uncached: input - (cacheRead ?? 0), total: input, cacheRead, cacheWrite: undefined },
  outputTokens: { total: output, text: output, reasoning: undefined }
})

type Chunk<A> = Arr.NonEmptyReadonlyArray<A>
type DirectOptions = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>

interface Input {
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<string>
  readonly previousResponseId: string | undefined
  readonly incrementalPrompt: Prompt.Prompt | undefined
}

interface Log {
  readonly requests: Array<Request>
  readonly violations: Array<string>
  readonly stats: { -readonly [K in keyof Stats]: Stats[K] }
  finish: Response.FinishReason | undefined
}

const emptyLog = (): Log => ({
  requests: [],
  violations: [],
  stats: { started: 0, open: 0, completed: 0, failed: 0, interrupted: 0 },
  finish: undefined
})

const emit = (make: (fresh: (kind: string) => string) => ReadonlyArray<Encoded>): Step => ({
  segments: [{ _tag: "Emit", parts: make }]
})

const toStep = (step: Step | ReadonlyArray<Encoded>): Step => ("segments" in step ? step : parts(step))

const block = (kind: "text" | "reasoning", id: string, deltas: ReadonlyArray<string>): ReadonlyArray<Encoded> => [
  { type: `${kind}-start`, id },
  ...deltas.map((delta): Encoded => ({ type: `${kind}-delta`, id, delta })),
  { type: `${kind}-end`, id }
]

const fromProvider = (options: LanguageModel.ProviderOptions): Input => ({
  prompt: options.prompt,
  tools: options.tools.map((tool) => tool.name),
  previousResponseId: options.previousResponseId,
  incrementalPrompt: options.incrementalPrompt
})

const directInput = Effect.fnUntraced(function* (options: DirectOptions) {
  const tracker = yield* Effect.serviceOption(ResponseIdTracker.ResponseIdTracker)
  const prompt = Prompt.make(options.prompt)
  let tools: ReadonlyArray<string> = []
  if (options.toolkit !== undefined) {
    if (options.disableToolCallResolution !== true) {
      return yield* Effect.die(new Error("ScriptedModel: the direct form resolves no tool calls"))
    }
    const toolkit = "tools" in options.toolkit ? options.toolkit : yield* options.toolkit
    tools = Object.values(toolkit.tools).map((tool) => tool.name)
    const choice = options.toolChoice
    if (typeof choice === "object" && "oneOf" in choice) tools = tools.filter((name) => choice.oneOf.includes(name))
  }
  const prepared = Option.getOrUndefined(Option.flatMap(tracker, (t) => t.prepareUnsafe(prompt)))
  const input: Input = {
    prompt,
    tools,
    previousResponseId: prepared?.previousResponseId,
    incrementalPrompt: prepared?.prompt
  }
  const mark = (id: string) => Option.map(tracker, (t) => t.markParts(prompt.content, id))
  return { input, mark }
})

const open = <A>(
  script: Script,
  options: Options,
  log: () => Log,
  method: string,
  input: Input,
  convert: (parts: Chunk<Encoded>) => Chunk<A>
): Stream.Stream<A, AiError.AiError> =>
  Stream.fromChannel(Channel.fromTransform((_, scope) => start(script, options, log(), method, input, scope, convert)))

const record = (options: Options, log: Log, input: Input): Request => {
  const request: Request = {
    index: log.requests.length + 1,
    prompt: input.prompt.content.slice(),
    tools: input.tools,
    previousResponseId: input.previousResponseId,
    incrementalPrompt: input.incrementalPrompt?.content.slice()
  }
  log.requests.push(request)
  if (options.strict !== false) {
    const given = typeof options.strict === "object" ? options.strict.allowLastAssistant : undefined
    const found = StrictPrompt.violations(request.prompt, { allowLastAssistant: given ?? log.finish === "pause" })
    if (found.length > 0) {
      for (const violation of found) log.violations.push(`request ${request.index}, ${violation}`)
      throw new Error(
        `ScriptedModel: a strict endpoint refuses request ${request.index}:\n${StrictPrompt.format(found)}`
      )
    }
  }
  return request
}

const select = (script: Script, request: Request): Step => {
  if (typeof script === "function") return script(request)
  const step = script[request.index - 1]
  if (step !== undefined) return step
  throw new Error(`ScriptedModel: the script has ${script.length} steps, but request ${request.index} was made`)
}

const defaultUsage: EncodedUsage = usage(10, 5)

const start = <A>(
  script: Script,
  options: Options,
  log: Log,
  method: string,
  input: Input,
  scope: Scope.Scope,
  convert: (parts: Chunk<Encoded>) => Chunk<A>
): Effect.Effect<Pull.Pull<Chunk<A>, AiError.AiError>> =>
  // an interruption between the count and the finalizer would leave the stream open for ever
  Effect.uninterruptible(
    Effect.suspend(() => {
      const request = record(options, log, input)
      const { finish, moves } = plan(select(script, request).segments, {
        index: request.index,
        usage: options.usage ?? defaultUsage,
        chunks: options.chunks ?? "step",
        method
      })
      // An attempt that failed left nothing in the context, so what came before it is still the last.
      log.finish = finish ?? log.finish
      log.stats.started++
      log.stats.open++
      let live = true
      const settle = (how: "completed" | "failed" | "interrupted") => {
        if (!live) return
        live = false
        log.stats.open--
        log.stats[how]++
      }
      let at = 0
      const pull: Pull.Pull<Chunk<A>, AiError.AiError> = Effect.suspend(() => {
        const move = moves[at++]
        if (at >= moves.length && move?._tag !== "Fail" && move?._tag !== "Hang" && move?._tag !== "Wait") {
          settle("completed")
        }
        if (move === undefined) return Cause.done()
        switch (move._tag) {
          case "Emit":
            return Effect.succeed(convert(move.parts))
          case "Wait":
            return Effect.flatMap(move.effect, () => pull)
          case "Fail": {
            settle("failed")
            return Effect.fail(move.error)
          }
          case "Hang":
            return Effect.never
        }
      })
      return Effect.as(
        Scope.addFinalizer(
          scope,
          Effect.sync(() => settle("interrupted"))
        ),
        pull
      )
    })
  )
