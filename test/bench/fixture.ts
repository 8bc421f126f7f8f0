/** What the benchmarks share: a provider that answers at once, one tool that does nothing, and the two ways through them. */
import { Context, Effect, Exit, Layer, Schema, Scope, Stream } from "effect"
import { LanguageModel, Prompt, type Response, Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input } from "../../src/index.ts"

const Noop = Tool.make("noop", { parameters: Schema.Struct({ x: Schema.Finite }), success: Schema.String })
export const toolkit = Toolkit.make(Noop)

/** How many of the requests so far have been answered; the one after `steps` ends the generation. */
class Counter extends Context.Service<Counter, { count: number; readonly steps: number }>()("test/bench/Counter") {}

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}
const finish = (reason: "tool-calls" | "stop"): Response.StreamPartEncoded => ({ type: "finish", reason, usage })
const call = (n: number): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "tool-call", id: `c${n}`, name: "noop", params: { x: 1 } },
  finish("tool-calls")
]
const answer: ReadonlyArray<Response.StreamPartEncoded> = [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "ok" },
  { type: "text-end", id: "t" },
  finish("stop")
]
const next = Effect.map(Counter, (counter) => (++counter.count > counter.steps ? answer : call(counter.count)))

/** Built by `LanguageModel.make`, as most providers are. */
const made = Layer.effect(
  LanguageModel.LanguageModel,
  Effect.flatMap(Effect.context<Counter>(), () =>
    LanguageModel.make({
      generateText: () => Effect.succeed([]),
      streamText: () =>
        // The counter is in the fiber's own context: one layer serves every generation.
        Stream.unwrap(Effect.map(next, Stream.fromIterable)) as Stream.Stream<Response.StreamPartEncoded>
    })
  )
)

const handlers = toolkit.toLayer({ noop: () => Effect.succeed("ok") })

export type Services = Layer.Success<typeof made> | Layer.Success<typeof handlers> | AgentRuntime.AgentRuntime

/** Everything that does not change from one generation to the next. */
export const services: Effect.Effect<Context.Context<Services>> = Effect.scoped(
  Layer.build(
    Layer.mergeAll(
      Layer.provide(made, Layer.succeed(Counter, { count: 0, steps: 0 })),
      handlers,
      AgentRuntime.layerMemory
    )
  )
)

const agent = Agent.make({ name: "bench", instructions: "", toolkit, maxRequests: 1_000_000 })

const counted = <A, E, R>(steps: number, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Counter, { count: 0, steps })

/** One generation of so many steps in a session of its own, with one subscriber, or none. */
export const generation = (steps: number, subscribed: boolean) =>
  counted(
    steps,
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const runtime = yield* AgentRuntime.AgentRuntime
      const session = yield* Effect.provideService(runtime.open(agent), Scope.Scope, scope)
      if (subscribed) {
        yield* Effect.forkIn(Effect.ignore(Stream.runDrain(session.events())), scope, { startImmediately: true })
      }
      const receipt = yield* session.submit(Input.prompt("go"))
      if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
      const report = yield* session.await(receipt.generationId)
      yield* Scope.close(scope, Exit.void)
      return report
    })
  )

/** The same requests with nothing around them: what the provider's own path costs. */
export const bare = (steps: number) =>
  counted(
    steps,
    Effect.gen(function* () {
      const resolved = yield* toolkit
      const model = yield* LanguageModel.LanguageModel
      const messages: Array<Prompt.Message> = [...Prompt.make("go").content]
      for (let step = 0; step <= steps; step++) {
        const parts: Array<Response.AnyPart> = []
        yield* Stream.runForEachArray(
          model.streamText({
            prompt: Prompt.fromMessages(messages),
            toolkit: resolved,
            disableToolCallResolution: true,
            toolCallValidation: "deferred"
          }),
          (chunk) => Effect.sync(() => void parts.push(...chunk))
        )
        for (const message of Prompt.fromResponseParts(parts).content) messages.push(message)
        messages.push(
          Prompt.toolMessage({
            content: [
              Prompt.makePart("tool-result", {
                id: `c${step + 1}`,
                name: "noop",
                isFailure: false,
                result: "ok",
                providerExecuted: false
              })
            ]
          })
        )
      }
    })
  )

/** CPU microseconds an effect takes in this process. */
export const cpu = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = process.cpuUsage()
    yield* effect
    const spent = process.cpuUsage(before)
    return spent.user + spent.system
  })

export const median = (numbers: ReadonlyArray<number>): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN
