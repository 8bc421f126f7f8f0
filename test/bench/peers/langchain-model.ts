/** The chat model, the tool and the inbox that LangGraph's and LangChain's agents are given. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager"
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages"
import type { ChatResult } from "@langchain/core/outputs"
import { tool } from "@langchain/core/tools"
import { z } from "zod"
import type { Work } from "../adapter.ts"

const schema = z.object({ x: z.number() })

export class BenchModel extends BaseChatModel {
  readonly #work: Work
  #calls = 0

  constructor(work: Work) {
    super({})
    this.#work = work
  }

  override _llmType(): string {
    return "bench"
  }

  override bindTools(): this {
    return this
  }

  override async _generate(
    messages: Array<BaseMessage>,
    options: this["ParsedCallOptions"],
    _run?: CallbackManagerForLLMRun
  ): Promise<ChatResult> {
    const asked = this.#work.provider(messages)
    const answer = typeof asked === "function" ? await asked(options.signal) : asked
    const message =
      answer === "tool"
        ? new AIMessage({
            content: "",
            tool_calls: [{ name: "noop", args: { x: 1 }, id: `c${++this.#calls}`, type: "tool_call" }]
          })
        : new AIMessage({ content: "ok" })
    return { generations: [{ text: "", message }], llmOutput: {} }
  }
}

/** What was steered, and a tool that steers. */
export const inboxed = (work: Work) => {
  const inbox: Array<HumanMessage> = []
  const steer = (text: string) => void inbox.push(new HumanMessage(text))
  const noop = tool(
    async () => {
      const text = work.tool()
      if (text !== undefined) steer(text)
      return "ok"
    },
    { name: "noop", description: "noop", schema }
  )
  return { inbox, steer, noop }
}
