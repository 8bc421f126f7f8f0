/** LangChain's agent: a middleware before the model is what a host has to add a message to a run that goes on. */
import { createAgent, createMiddleware, HumanMessage } from "langchain"
import type { Running, Work } from "../adapter.ts"
import { BenchModel, inboxed } from "./langchain-model.ts"
import { settled } from "./promise.ts"

export const start = (work: Work): Running => {
  const abort = new AbortController()
  const { inbox, noop, steer } = inboxed(work)
  const steering = createMiddleware({
    name: "steer",
    beforeModel: () => (inbox.length === 0 ? undefined : { messages: inbox.splice(0) })
  })
  const agent = createAgent({
    model: new BenchModel(work),
    tools: [noop],
    middleware: work.steerable === true ? [steering] : []
  })
  const input = { messages: [new HumanMessage("hi")] }
  const running = agent.invoke(input, { recursionLimit: 1_000_000_000, signal: abort.signal })
  return { done: settled(running, abort.signal), steer, cancel: () => abort.abort() }
}
