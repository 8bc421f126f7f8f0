/**
 * Where the engine's own messages enter the context: with the events they belong to in one commit where the journal is the
 * context, after them where it is the host's.
 *
 * @since 0.1.0
 */
import { Effect, Exit, Option } from "effect"
import type { Prompt } from "effect/ai"
import * as Supervised from "../boundary/Supervised.ts"
import type { SessionError } from "../domain/SessionError.ts"
import type { Entry } from "../ledger/Entry.ts"
import type { Engine, Run } from "./Engine.ts"
import { after } from "./Immediate.ts"

/**
 * Commits the entries and appends the messages, all or none. Answers why a host's context did not take it, or `undefined`.
 *
 * @category operations
 * @since 0.1.0
 */
export const append = (
  engine: Engine,
  run: Run,
  entries: ReadonlyArray<Entry>,
  messages: ReadonlyArray<Prompt.Message>,
  restore: Supervised.Restore
): Effect.Effect<string | undefined, SessionError> => {
  const { context, grace, journal } = engine
  const [first, ...rest] = messages
  if (first === undefined) return done(journal.commit(entries))
  if (context === undefined) {
    return done(journal.commit([...entries, ...messages.map((message) => recorded(run, message))]))
  }
  return Effect.flatMap(journal.commit(entries), () =>
    Effect.map(
      Supervised.finish(
        Effect.suspend(() => context.append([first, ...rest])),
        restore,
        grace
      ),
      faultOf
    )
  )
}

/** Where the journal is the context, what is written is there. */
const done = (written: Effect.Effect<void, SessionError>): Effect.Effect<undefined, SessionError> =>
  after(written, () => Effect.undefined)

/**
 * A message as the journal keeps it.
 *
 * @category entries
 * @since 0.1.0
 */
export const recorded = (run: Run, message: Prompt.Message): Entry => ({
  record: "message",
  generation_id: run.id,
  message
})

/** Why a write that was waited for no longer than the grace time did not land, or `undefined`. */
const faultOf = Option.match({
  onNone: (): string | undefined => "the context store did not finish a write within the grace time",
  onSome: (exit: Exit.Exit<unknown, unknown>) =>
    Exit.isSuccess(exit) ? undefined : `the context store failed: ${String(exit.cause)}`
})

/**
 * Appends the message that answers a response. If a host's context does not take it, it is owed (L-T2).
 *
 * @category operations
 * @since 0.1.0
 */
export const appendResults = (
  engine: Engine,
  run: Run,
  message: Prompt.ToolMessage,
  restore: Supervised.Restore
): Effect.Effect<string | undefined, SessionError> =>
  Effect.map(append(engine, run, [], [message], restore), (fault) => {
    if (fault !== undefined) engine.debt.results = message
    return fault
  })

/**
 * Gives a host's context the results it did not take, if the calls they answer are there and unanswered. Answers why it could not
 * be done, or `undefined`.
 *
 * @category operations
 * @since 0.1.0
 */
export const settleDebt = (engine: Engine): Effect.Effect<string | undefined> => {
  const { context, debt, grace } = engine
  const { notice, results } = debt
  if (context === undefined || (results === undefined && notice === undefined)) return Effect.undefined
  const owed =
    results === undefined
      ? Effect.succeed([])
      : Effect.map(
          Effect.suspend(() => context.messages),
          (messages) => (isUnanswered(messages, results) ? [results] : [])
        )
  const paid = Effect.flatMap(owed, (answers) => {
    const [first, ...rest] = notice === undefined ? answers : [...answers, notice]
    return first === undefined ? Effect.void : context.append([first, ...rest])
  })
  return Effect.map(Supervised.within(paid, grace), (answer) => {
    const fault = faultOf(answer)
    if (fault === undefined) {
      debt.results = undefined
      debt.notice = undefined
    }
    return fault
  })
}

/** Whether the conversation ends with calls that these results answer. */
const isUnanswered = (messages: ReadonlyArray<Prompt.Message>, results: Prompt.ToolMessage): boolean => {
  const at = messages.findLastIndex(({ role }) => role === "assistant")
  const asked = messages[at]
  return (
    asked?.role === "assistant" &&
    messages[at + 1]?.role !== "tool" &&
    asked.content.some((part) => owes(part, results))
  )
}

const owes = (part: Prompt.AssistantMessagePart, message: Prompt.ToolMessage): boolean =>
  part.type === "tool-call" && message.content.some((each) => each.type === "tool-result" && each.id === part.id)

/**
 * Whether a host's context ends with the response that asked for these calls.
 *
 * @category queries
 * @since 0.1.0
 */
export const hasAsked = (
  engine: Engine,
  calls: ReadonlyArray<{ readonly providerId: string }>
): Effect.Effect<boolean> => {
  const { context, grace } = engine
  if (context === undefined) return Effect.succeed(true)
  return Effect.map(
    Supervised.within(
      Effect.suspend(() => context.messages),
      grace
    ),
    (answer) => {
      if (Option.isNone(answer) || Exit.isFailure(answer.value)) return false
      const last = answer.value.value.findLast(({ role }) => role === "assistant")
      return (
        last?.role === "assistant" &&
        calls.every((call) => last.content.some((part) => part.type === "tool-call" && part.id === call.providerId))
      )
    }
  )
}

/**
 * The conversation as the next request would carry it, or why the host's context could not be read.
 *
 * @category operations
 * @since 0.1.0
 */
export const read = (
  engine: Engine,
  restore: Supervised.Restore
): Effect.Effect<Supervised.Supervised<ReadonlyArray<Prompt.Message>, unknown>> => {
  const { context, grace, journal } = engine
  if (context === undefined) {
    const { messages } = journal.projection
    return journal.isWarm
      ? Effect.succeed({ _tag: "Ended", exit: Exit.succeed(messages) })
      : Supervised.run(Effect.as(journal.warm, messages), restore, grace)
  }
  return Supervised.run(
    Effect.map(
      Effect.suspend(() => context.messages),
      (messages) => [...journal.projection.messages, ...messages]
    ),
    restore,
    grace
  )
}
