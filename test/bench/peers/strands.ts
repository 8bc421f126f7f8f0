/** Strands: no steering of its own; a hook before each model call is what a host has to add a message to the agent's. */
import {
  Agent,
  type BaseModelConfig,
  BeforeModelCallEvent,
  Message,
  Model,
  type ModelStreamEvent,
  type StreamOptions,
  TextBlock,
  tool
} from "@strands-agents/sdk"
import { z } from "zod"
import { failed, type Outcome, type Running, type Work } from "../adapter.ts"

const inputSchema = z.object({ x: z.number() })

class BenchModel extends Model {
  readonly #work: Work
  #calls = 0

  constructor(work: Work) {
    super()
    this.#work = work
  }

  override updateConfig(): void {}

  override getConfig(): BaseModelConfig {
    return { modelId: "m" }
  }

  override async *stream(messages: Array<Message>, options?: StreamOptions): AsyncIterable<ModelStreamEvent> {
    const asked = this.#work.provider(messages)
    const answer = typeof asked === "function" ? await asked(options?.cancelSignal) : asked
    yield { type: "modelMessageStartEvent", role: "assistant" }
    if (answer === "tool") {
      const toolUseId = `c${++this.#calls}`
      yield { type: "modelContentBlockStartEvent", start: { type: "toolUseStart", name: "noop", toolUseId } }
      yield { type: "modelContentBlockDeltaEvent", delta: { type: "toolUseInputDelta", input: '{"x":1}' } }
    } else {
      yield { type: "modelContentBlockStartEvent" }
      yield { type: "modelContentBlockDeltaEvent", delta: { type: "textDelta", text: "ok" } }
    }
    yield { type: "modelContentBlockStopEvent" }
    yield { type: "modelMessageStopEvent", stopReason: answer === "tool" ? "toolUse" : "endTurn" }
  }
}

export const start = (work: Work): Running => {
  const inbox: Array<string> = []
  const steer = (text: string) => void inbox.push(text)
  const noop = tool({
    name: "noop",
    description: "noop",
    inputSchema,
    callback: () => {
      const text = work.tool()
      if (text !== undefined) steer(text)
      return "ok"
    }
  })
  const agent = new Agent({ model: new BenchModel(work), printer: false, tools: [noop] })
  if (work.steerable === true) {
    agent.addHook(BeforeModelCallEvent, () => {
      for (const text of inbox.splice(0)) {
        agent.messages.push(new Message({ role: "user", content: [new TextBlock(text)] }))
      }
    })
  }
  let cancelled = false
  const outcome = (stopReason: string): Outcome =>
    stopReason === "endTurn" ? "done" : stopReason === "cancelled" ? "cancelled" : `failed: ${stopReason}`
  const done = agent.invoke("hi").then(
    (result) => outcome(result.stopReason),
    (error: unknown) => failed(cancelled, error)
  )
  const cancel = () => {
    cancelled = true
    agent.cancel()
  }
  return { done, steer, cancel }
}
