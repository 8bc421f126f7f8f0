/** A plain loop: an array of messages, and an array of what was steered. */
import { failed, type Outcome, type Work } from "../adapter.ts"

export const start = (work: Work) => {
  const messages: Array<unknown> = [{ role: "user", content: "hi" }]
  const inbox: Array<unknown> = []
  const abort = new AbortController()
  const steer = (text: string) => void inbox.push({ role: "user", content: text })
  let calls = 0
  const run = async (): Promise<Outcome> => {
    while (true) {
      messages.push(...inbox.splice(0))
      const asked = work.provider(messages)
      const answer = await (typeof asked === "function" ? asked(abort.signal) : asked)
      if (answer === "tool") {
        const id = `c${++calls}`
        messages.push({ role: "assistant", content: [{ type: "tool-call", id, name: "noop", params: { x: 1 } }] })
        const text = work.tool()
        if (text !== undefined) steer(text)
        messages.push({ role: "tool", id, content: "ok" })
        continue
      }
      if (answer !== "done") for (let delta = 0; delta < answer.deltas; delta++) work.onDelta?.("ok")
      messages.push({ role: "assistant", content: [{ type: "text", text: "ok" }] })
      if (inbox.length === 0) return "done"
    }
  }
  const done = run().catch((error: unknown) => failed(abort.signal.aborted, error))
  return { done, steer, cancel: () => abort.abort() }
}
