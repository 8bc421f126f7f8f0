/** What AI SDK's two functions share: a model of its version 4 interface, a tool and the experimental steering. */
import type { LanguageModelV4, LanguageModelV4FinishReason, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { experimental_createSteering, isStepCount, tool } from "ai"
import { z } from "zod"
import type { Answer, Work } from "../adapter.ts"

globalThis.AI_SDK_LOG_WARNINGS = false

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

const finish = (answer: Answer): LanguageModelV4FinishReason => ({
  unified: answer === "tool" ? "tool-calls" : "stop",
  raw: undefined
})

const inputSchema = z.object({ x: z.number() })

const toolCall = (call: number) =>
  ({ type: "tool-call", toolCallId: `c${call}`, toolName: "noop", input: '{"x":1}' }) as const

const streamed = (answer: Answer, call: number): ReadonlyArray<LanguageModelV4StreamPart> => {
  const deltas = typeof answer === "string" ? 1 : answer.deltas
  const said: ReadonlyArray<LanguageModelV4StreamPart> =
    answer === "tool"
      ? [toolCall(call)]
      : [
          { type: "text-start", id: "t" },
          ...Array.from({ length: deltas }, () => ({ type: "text-delta", id: "t", delta: "ok" }) as const),
          { type: "text-end", id: "t" }
        ]
  return [{ type: "stream-start", warnings: [] }, ...said, { type: "finish", finishReason: finish(answer), usage }]
}

/** The settings of one generation, and how it is steered and cancelled. */
export const settings = (work: Work) => {
  const abort = new AbortController()
  const steering = experimental_createSteering()
  // The outcome is a promise that never rejects; a host that only wants to correct does not wait for it.
  const steer = (text: string) => void steering.steer(text)
  let calls = 0
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "m",
    supportedUrls: {},
    doGenerate: async ({ abortSignal, prompt }) => {
      const asked = work.provider(prompt)
      const answer = typeof asked === "function" ? await asked(abortSignal) : asked
      const content = answer === "tool" ? [toolCall(++calls)] : [{ type: "text" as const, text: "ok" }]
      return { content, finishReason: finish(answer), usage, warnings: [] }
    },
    doStream: async ({ abortSignal, prompt }) => {
      const asked = work.provider(prompt)
      const answer = typeof asked === "function" ? await asked(abortSignal) : asked
      const parts = streamed(answer, ++calls)
      const stream = new ReadableStream<LanguageModelV4StreamPart>({
        start: (controller) => {
          for (const part of parts) controller.enqueue(part)
          controller.close()
        }
      })
      return { stream }
    }
  }
  const noop = tool({
    inputSchema,
    execute: async () => {
      const text = work.tool()
      if (text !== undefined) steer(text)
      return "ok"
    }
  })
  const options = {
    model,
    prompt: "hi",
    maxRetries: 0,
    abortSignal: abort.signal,
    stopWhen: isStepCount(1_000_000),
    experimental_steering: steering,
    tools: { noop }
  }
  return { options, signal: abort.signal, steer, cancel: () => abort.abort() }
}
