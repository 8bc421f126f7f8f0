import { generateText } from "ai"
import type { Running, Work } from "../adapter.ts"
import { settings } from "./ai-sdk.ts"
import { settled } from "./promise.ts"

export const start = (work: Work): Running => {
  const { cancel, options, signal, steer } = settings(work)
  return { done: settled(generateText(options), signal), steer, cancel }
}
