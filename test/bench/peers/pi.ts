/** pi-agent-core: an agent of its own a generation, steered by `agent.steer`. */
import { Agent, type AgentTool } from "@earendil-works/pi-agent-core"
import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  createAssistantMessageEventStream,
  type Model
} from "@earendil-works/pi-ai"
import { num, obj } from "@earendil-works/pi-schema"
import type { Answer, Outcome, Running, Work } from "../adapter.ts"

const usage = {
  input: 1,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 2,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
}

const model: Model<string> = {
  id: "m",
  name: "m",
  api: "bench",
  provider: "bench",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1e9,
  maxTokens: 1000
}

const parameters = obj({ x: num() })

const message = (
  content: AssistantMessage["content"],
  stopReason: AssistantMessage["stopReason"]
): AssistantMessage => ({
  role: "assistant",
  content,
  api: "bench",
  provider: "bench",
  model: "m",
  usage,
  stopReason,
  timestamp: Date.now()
})

const respond = (events: AssistantMessageEventStream, answer: Answer, call: () => string): void => {
  if (answer === "tool") {
    const made = message([{ type: "toolCall", id: call(), name: "noop", arguments: { x: 1 } }], "toolUse")
    events.push({ type: "start", partial: made })
    events.push({ type: "done", reason: "toolUse", message: made })
    return
  }
  const text = { type: "text" as const, text: answer === "done" ? "ok" : "" }
  const made = message([text], "stop")
  events.push({ type: "start", partial: made })
  if (answer !== "done") {
    for (let delta = 0; delta < answer.deltas; delta++) {
      text.text += "ok"
      events.push({ type: "text_delta", contentIndex: 0, delta: "ok", partial: made })
    }
  }
  events.push({ type: "done", reason: "stop", message: made })
}

const user = (text: string) => ({
  role: "user" as const,
  content: [{ type: "text" as const, text }],
  timestamp: Date.now()
})

export const start = (work: Work): Running => {
  let calls = 0
  const call = () => `c${++calls}`
  const steer = (text: string) => agent.steer(user(text))
  const tool: AgentTool = {
    name: "noop",
    label: "noop",
    description: "noop",
    parameters,
    execute: async () => {
      const text = work.tool()
      if (text !== undefined) steer(text)
      return { content: [{ type: "text", text: "ok" }], details: {} }
    }
  }
  const agent = new Agent({
    initialState: { systemPrompt: "", model, tools: [tool], thinkingLevel: "off", messages: [] },
    steeringMode: "all",
    streamFn: (_model, context, options) => {
      const events = createAssistantMessageEventStream()
      const answer = work.provider(context.messages)
      if (typeof answer === "function") {
        answer(options?.signal).then(
          (answer) => respond(events, answer, call),
          () => events.push({ type: "error", reason: "aborted", error: message([], "aborted") })
        )
      } else respond(events, answer, call)
      return events
    }
  })
  let last: string | undefined
  for (let subscriber = 0; subscriber < (work.subscribers ?? 1); subscriber++) {
    agent.subscribe((event) => {
      if (event.type === "message_end" && event.message.role === "assistant") last = event.message.stopReason
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
        work.onDelta?.(event.assistantMessageEvent.delta)
      }
    })
  }
  const done = agent
    .prompt("hi")
    .then((): Outcome => (last === "stop" ? "done" : last === "aborted" ? "cancelled" : `failed: ${last}`))
  return { done, steer, cancel: () => agent.abort() }
}
