/**
 * A bare loop over `streamText`: no events, no admission, no steering but a list. With a plain call of the tool it is what no
 * runtime on effect/ai that asks in this way can go below; a runtime that does without `toolkit.handle` can go below the one with it.
 */
import { Context, Effect, Layer, Stream } from "effect"
import { LanguageModel, Prompt, type Response } from "effect/ai"
import type { Adapter, Running } from "../adapter.ts"
import { ended } from "./fibers.ts"
import { Current, drive, type Driven, layer, type Provider, toolkit } from "./provider.ts"

/** Who runs the tool: effect/ai's `toolkit.handle`, or the loop itself by a plain call. */
export type Tools = "handle" | "call"

const isCall = (part: Response.AnyPart) => part.type === "tool-call"

/** The loop, until an answer without a call; `inbox` is what was steered. */
export const loop = (driven: Driven, tools: Tools, inbox: Array<string>) =>
  Effect.gen(function* () {
    const model = yield* LanguageModel.LanguageModel
    const resolved = yield* toolkit
    const messages: Array<Prompt.Message> = [...Prompt.make("hi").content]
    while (true) {
      for (const text of inbox.splice(0)) messages.push(...Prompt.make(text).content)
      const parts: Array<Response.AnyPart> = []
      yield* Stream.runForEachArray(
        model.streamText({
          prompt: Prompt.fromMessages(messages),
          toolkit: resolved,
          disableToolCallResolution: true,
          toolCallValidation: "deferred"
        }),
        (chunk) =>
          Effect.sync(() => {
            for (const part of chunk) {
              parts.push(part)
              if (part.type === "text-delta") driven.work.onDelta?.(part.delta)
            }
          })
      )
      for (const message of Prompt.fromResponseParts(parts).content) messages.push(message)
      const call = parts.find(isCall)
      if (call === undefined) {
        if (inbox.length > 0) continue
        return "done" as const
      }
      let result: unknown = "ok"
      if (tools === "handle") {
        const results = yield* resolved.handle("noop", { x: 1 }, call.id)
        yield* Stream.runForEach(results, (each) => Effect.sync(() => (result = each.encodedResult)))
      } else {
        const text = driven.work.tool()
        if (text !== undefined) inbox.push(text)
      }
      const content = [
        Prompt.makePart("tool-result", { id: call.id, name: "noop", isFailure: false, result, providerExecuted: false })
      ]
      messages.push(Prompt.makeMessage("tool", { content }))
    }
  })

export const adapter = async (provider: Provider, tools: Tools): Promise<Adapter> => {
  const context = await Effect.runPromise(Effect.scoped(Layer.build(layer(provider))))
  return {
    start: (work): Running => {
      const inbox: Array<string> = []
      const driven = drive(work)
      const steer = (text: string) => void inbox.push(text)
      driven.steer = (text) => Effect.sync(() => steer(text))
      const fiber = Effect.runForkWith(Context.add(context, Current, driven))(Effect.orDie(loop(driven, tools, inbox)))
      return { done: ended(fiber), steer, cancel: () => fiber.interruptUnsafe() }
    }
  }
}
