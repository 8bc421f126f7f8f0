import { streamText } from "ai"
import { failed, type Outcome, type Running, type Work } from "../adapter.ts"
import { settings } from "./ai-sdk.ts"

export const start = (work: Work): Running => {
  const { cancel, options, signal, steer } = settings(work)
  let error: unknown
  const result = streamText({ ...options, onError: (event) => void (error = event.error) })
  const consume = async (): Promise<Outcome> => {
    for await (const part of result.stream) {
      if (part.type === "text-delta") work.onDelta?.(part.text)
      if (part.type === "abort") return "cancelled"
    }
    return error === undefined && !signal.aborted ? "done" : failed(signal.aborted, error)
  }
  return { done: consume().catch((error: unknown) => failed(signal.aborted, error)), steer, cancel }
}
