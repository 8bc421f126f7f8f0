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

/**
 * Commits the entries and appends the message, if any. Answers why a host's context did not take it, or `undefined`.
 *
 * @category operations
 * @since 0.1.0
 */
export const append = (
  engine: Engine,
  run: Run,
  entries: ReadonlyArray<Entry>,
  message: Prompt.Message | undefined,
  restore: Supervised.Restore
): Effect.Effect<string | undefined, SessionError> => {
  const { context, grace, journal } = engine
  if (message === undefined) return Effect.as(journal.commit(entries), undefined)
  if (context === undefined) {
    return Effect.as(journal.commit([...entries, { record: "message", generation_id: run.id, message }]), undefined)
  }
  return Effect.flatMap(journal.commit(entries), () =>
    Effect.map(
      Supervised.finish(
        Effect.suspend(() => context.append([message])),
        restore,
        grace
      ),
      Option.match({
        onNone: () => "the context store did not finish a write within the grace time",
        onSome: (exit) => (Exit.isSuccess(exit) ? undefined : `the context store failed: ${String(exit.cause)}`)
      })
    )
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
