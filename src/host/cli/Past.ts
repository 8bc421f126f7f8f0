/**
 * What was in a kept session before this start of the program opened it.
 *
 * @since 0.1.0
 */
import { Effect, Option } from "effect"
import type { SessionEvent } from "../../domain/Event.ts"
import type { Input } from "../../domain/Input.ts"
import type { Receipt } from "../../domain/Receipt.ts"
import type { Session } from "../../runtime/Session.ts"
import type { Row } from "./Answer.ts"

/**
 * `sequence` is that of its last event, 0 for a session that is new; `inputs` are all that were ever accepted.
 *
 * @category models
 * @since 0.1.0
 */
export interface Past {
  readonly sequence: number
  readonly inputs: ReadonlyArray<Input>
}

/**
 * Of a session that is new.
 *
 * @category constants
 * @since 0.1.0
 */
export const none: Past = { sequence: 0, inputs: [] }

/**
 * Whether an earlier start has shown the event.
 *
 * @category predicates
 * @since 0.1.0
 */
export const includes = ({ sequence }: Past, event: SessionEvent): boolean =>
  event.live === undefined && event.sequence <= sequence

/**
 * The highest number of an input, so that the next one is not taken.
 *
 * @category queries
 * @since 0.1.0
 */
export const lastNumber = ({ inputs }: Past): number =>
  Math.max(0, ...inputs.map(({ id }) => Number(/^in-(\d{1,9})$/.exec(id)?.[1] ?? 0)))

/**
 * The inputs that are still to be spoken of: those of the run that goes on, and those that are not in any run's context,
 * but for what a person took back or gave to a run.
 *
 * @category queries
 * @since 0.1.0
 */
export const unfinished = Effect.fnUntraced(function* ({ inputs }: Past, session: Session) {
  const live = Option.getOrUndefined(yield* session.generation)?.id
  const rows: Array<Row> = []
  for (const input of inputs) {
    const receipt = Option.getOrUndefined(yield* session.receipt(input.id))
    if (receipt === undefined) continue
    const lives = live !== undefined && receipt.generationId === live
    if (!lives && !isUnfinished(receipt)) continue
    rows.push({ id: input.id, kind: kindOf(input), text: textOf(input), receipt })
  }
  return rows
})

const isUnfinished = ({ disposition, reason }: Receipt): boolean =>
  disposition !== "applied" && reason !== "withdrawn" && reason !== "promoted"

const kindOf = ({ intent, scope }: Input): string => (intent === "steer" && scope?.tools.length === 0 ? "ask" : intent)

const textOf = ({ content }: Input): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : `(${part.type})`)).join(" ")
