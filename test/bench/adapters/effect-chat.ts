/** effect/ai's `Chat`, which keeps the history and runs the tools: a host's loop around it is where steering goes in. */
import { Context, Effect, Layer } from "effect"
import { Chat, Prompt } from "effect/ai"
import type { Running, Work } from "../adapter.ts"
import { ended } from "./fibers.ts"
import { Current, drive, layer, toolkit } from "./provider.ts"

const context = await Effect.runPromise(Effect.scoped(Layer.build(layer("made"))))

export const start = (work: Work): Running => {
  const inbox: Array<string> = []
  const steer = (text: string) => void inbox.push(text)
  const driven = drive(work)
  driven.steer = (text) => Effect.sync(() => steer(text))
  const loop = Effect.gen(function* () {
    const chat = yield* Chat.empty
    let prompt = Prompt.make("hi")
    while (true) {
      const { finishReason } = yield* chat.generateText({ prompt, toolkit })
      const steered = inbox.splice(0)
      if (finishReason !== "tool-calls" && steered.length === 0) return "done" as const
      prompt = Prompt.fromMessages(steered.flatMap((text) => Prompt.make(text).content))
    }
  })
  const fiber = Effect.runForkWith(Context.add(context, Current, driven))(Effect.orDie(loop))
  return { done: ended(fiber), steer, cancel: () => fiber.interruptUnsafe() }
}
