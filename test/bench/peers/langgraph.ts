/** LangGraph's agent: a node before the model is what a host has to add a message to a run that goes on. */
import { HumanMessage } from "@langchain/core/messages"
import { createReactAgent } from "@langchain/langgraph/prebuilt"
import type { Running, Work } from "../adapter.ts"
import { BenchModel, inboxed } from "./langchain-model.ts"
import { settled } from "./promise.ts"

export const start = (work: Work): Running => {
  const abort = new AbortController()
  const { inbox, noop, steer } = inboxed(work)
  const agent = createReactAgent({
    llm: new BenchModel(work),
    tools: [noop],
    ...(work.steerable === true
      ? { preModelHook: () => (inbox.length === 0 ? {} : { messages: inbox.splice(0) }) }
      : undefined)
  })
  const input = { messages: [new HumanMessage("hi")] }
  const running = agent.invoke(input, { recursionLimit: 1_000_000_000, signal: abort.signal })
  return { done: settled(running, abort.signal), steer, cancel: () => abort.abort() }
}
