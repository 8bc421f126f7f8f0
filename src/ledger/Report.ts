/**
 * What a generation came to, read from the fold (L-E4).
 *
 * @since 0.1.0
 */
import type { GenerationReport } from "../domain/Generation.ts"
import type * as Ids from "../domain/Ids.ts"
import type { ToolCallReport } from "../domain/ToolCall.ts"
import type { CallState, GenerationState, Projection } from "./Projection.ts"

/**
 * The ids of a generation's inputs by what became of them: delivered, accepted and undelivered, unknown (L-E4).
 *
 * @category queries
 * @since 0.1.0
 */
export const partition = (projection: Projection, generation: GenerationState) => {
  const delivered: Array<Ids.InputId> = []
  const undelivered: Array<Ids.InputId> = []
  const unknown: Array<Ids.InputId> = []
  for (const id of generation.inputIds) {
    const status = projection.inputs.get(id)?.status
    if (status?._tag === "Delivered" || status?._tag === "Completed") delivered.push(id)
    else if (status?._tag === "Unknown") unknown.push(id)
    else undelivered.push(id)
  }
  return { delivered, undelivered, unknown }
}

/**
 * The report of a generation that has ended, with the calls it made.
 *
 * @category queries
 * @since 0.1.0
 */
export const make = (
  projection: Projection,
  generation: GenerationState,
  calls: GenerationState["calls"]
): GenerationReport => {
  const { error, outcome } = generation.ended ?? { error: undefined, outcome: "failed" }
  const { delivered, undelivered, unknown } = partition(projection, generation)
  return {
    id: generation.id,
    outcome,
    text: generation.text,
    deliveredInputIds: delivered,
    undeliveredInputIds: undelivered,
    unknownInputIds: unknown,
    tools: calls.map(toReport),
    requests: generation.request,
    usage: { inputTokens: generation.inputTokens, outputTokens: generation.outputTokens },
    ...(error === undefined ? undefined : { error })
  }
}

const toReport = ({ id, name, providerId, request, status }: CallState): ToolCallReport => ({
  id,
  providerId,
  name,
  request,
  status
})
