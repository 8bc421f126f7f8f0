/** OpenAI Agents: no steering of its own; its filter of each request's input is what a host has to add a message there. */
import { Agent, type AgentInputItem, type Model, Runner, setTracingDisabled, tool, Usage } from "@openai/agents"
import { z } from "zod"
import type { Running, Work } from "../adapter.ts"
import { settled } from "./promise.ts"

setTracingDisabled(true)

const parameters = z.object({ x: z.number() })

const runner = new Runner({ tracingDisabled: true })

export const start = (work: Work): Running => {
  const abort = new AbortController()
  const inbox: Array<AgentInputItem> = []
  const steer = (text: string) => void inbox.push({ role: "user", content: text })
  let calls = 0
  const model: Model = {
    getResponse: async ({ input, signal }) => {
      const messages = typeof input === "string" ? [input] : input
      const asked = work.provider(messages)
      const answer = typeof asked === "function" ? await asked(signal) : asked
      const id = ++calls
      return answer === "tool"
        ? {
            usage: new Usage(),
            output: [
              {
                type: "function_call",
                id: `f${id}`,
                callId: `c${id}`,
                name: "noop",
                status: "completed",
                arguments: '{"x":1}'
              }
            ]
          }
        : {
            usage: new Usage(),
            output: [
              {
                type: "message",
                role: "assistant",
                id: `m${id}`,
                status: "completed",
                content: [{ type: "output_text", text: "ok" }]
              }
            ]
          }
    },
    getStreamedResponse: () => {
      throw new Error("not asked for")
    }
  }
  const noop = tool({
    name: "noop",
    description: "noop",
    parameters,
    execute: async () => {
      const text = work.tool()
      if (text !== undefined) steer(text)
      return "ok"
    }
  })
  const agent = new Agent({ name: "bench", instructions: "", model, tools: [noop] })
  const running = runner.run(agent, "hi", {
    maxTurns: 1_000_000,
    signal: abort.signal,
    ...(work.steerable === true
      ? {
          callModelInputFilter: ({ modelData }) =>
            inbox.length === 0 ? modelData : { ...modelData, input: [...modelData.input, ...inbox] }
        }
      : undefined)
  })
  return { done: settled(running, abort.signal), steer, cancel: () => abort.abort() }
}
