/** The plain loop as an Effect fiber with a queue, without effect/ai. */
import { Effect, Queue } from "effect"
import type { Running, Work } from "../adapter.ts"
import { ended } from "./fibers.ts"
import { waited } from "./provider.ts"

export const start = (work: Work): Running => {
  const inbox = Effect.runSync(Queue.unbounded<unknown>())
  const steer = (text: string) => void Queue.offerUnsafe(inbox, { role: "user", content: text })
  const messages: Array<unknown> = [{ role: "user", content: "hi" }]
  const provider = Effect.suspend(() => {
    const answer = work.provider(messages)
    return typeof answer === "function" ? waited(answer) : Effect.succeed(answer)
  })
  const tool = Effect.sync(() => {
    const text = work.tool()
    if (text !== undefined) steer(text)
    return "ok"
  })
  let calls = 0
  const loop = Effect.gen(function* () {
    while (true) {
      messages.push(...(yield* Queue.clear(inbox)))
      const answer = yield* provider
      if (answer === "tool") {
        const id = `c${++calls}`
        messages.push({ role: "assistant", content: [{ type: "tool-call", id, name: "noop", params: { x: 1 } }] })
        messages.push({ role: "tool", id, content: yield* tool })
        continue
      }
      messages.push({ role: "assistant", content: [{ type: "text", text: "ok" }] })
      if (Queue.sizeUnsafe(inbox) === 0) return "done" as const
    }
  })
  const fiber = Effect.runFork(loop)
  return { done: ended(fiber), steer, cancel: () => fiber.interruptUnsafe() }
}
