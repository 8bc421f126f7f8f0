/**
 * The one writer of a store: it takes every commit that is waiting and writes them in one transaction, whichever sessions they are
 * of, so that they share one wait for the medium. While it writes, the next group gathers.
 *
 * @since 0.1.0
 */
import { type Cause, Effect, Exit, Fiber, Queue, type Scope } from "effect"
import { type Append, StoreError } from "../ledger/SessionStore.ts"
import * as CommitGroup from "./CommitGroup.ts"
import type { Database, Query } from "./Database.ts"
import * as SqlFailure from "./SqlFailure.ts"
import * as Statements from "./Statements.ts"

/** Commits of one transaction, at most. */
const groupLimit = 1024

interface Waiting {
  readonly commit: Append
  readonly answer: (exit: Exit.Exit<void, StoreError>) => void
}

/**
 * Makes the effect of an append. Its commit is handed over in the calling step and goes on when the caller is interrupted. Closing
 * the scope waits for what was handed over.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  database: Database
): Effect.Effect<(commit: Append) => Effect.Effect<void, StoreError>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.unbounded<Waiting, Cause.Done>()
    const write = writing(database)
    // The queue wakes its taker in a turn of its own: whoever is ready to append joins the group.
    const round = Effect.flatMap(Queue.takeBetween(queue, 1, groupLimit), write)
    const writer = yield* Effect.forkDetach(Effect.forever(round, { disableYield: true }), { uninterruptible: true })
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), Fiber.await(writer)))
    return (commit) =>
      CommitGroup.isGapless(commit)
        ? Effect.callback<void, StoreError>((resume) => {
            if (!Queue.offerUnsafe(queue, { commit, answer: resume })) resume(Effect.fail(closed))
          })
        : Effect.die(new Error(`a commit of ${commit.sessionId} has a gap after ${commit.expected}`))
  })

const closed = new StoreError({ reason: { _tag: "Unavailable", detail: "the store is closed" } })

const writing = (database: Database) => {
  const statements = Statements.make(database.dialect)
  const act = Effect.fnUntraced(function* (query: Query, commits: ReadonlyArray<Append>) {
    const ids = new Set(commits.map(({ sessionId }) => sessionId))
    const plan = CommitGroup.plan(yield* statements.lock(query, Array.from(ids)), commits)
    yield* statements.insert(query, plan.entries)
    yield* statements.move(query, plan.heads)
    for (const [session, snapshot] of plan.snapshots) yield* statements.snapshot(query, session, snapshot)
    return plan.verdicts
  })
  /** The check and the move in one statement; a commit that fails the check goes the long way to learn why. */
  const actAlone = Effect.fnUntraced(function* (query: Query, commit: Append) {
    const [advanced] = yield* statements.advance(query, commit)
    if (advanced === undefined) return yield* act(query, [commit])
    const session = advanced.number
    yield* statements.insert(
      query,
      commit.entries.map((entry) => ({ session, entry }))
    )
    if (commit.snapshot !== undefined) yield* statements.snapshot(query, session, commit.snapshot)
    return [undefined]
  })
  const write = (group: ReadonlyArray<Waiting>): Effect.Effect<void> => {
    let separable = false
    const commits = group.map(({ commit }) => commit)
    const [first, second] = commits
    const transaction = database.transact((query) =>
      Effect.tapError(
        first !== undefined && second === undefined ? actAlone(query, first) : act(query, commits),
        (error) =>
          Effect.sync(() => {
            separable = second !== undefined && error._tag === "SqlError" && SqlFailure.isOfData(error)
          })
      )
    )
    return Effect.matchCauseEffect(transaction, {
      onSuccess: (verdicts) =>
        Effect.sync(() => {
          for (const [index, { answer }] of group.entries()) answer(verdictOf(verdicts[index]))
        }),
      onFailure: (cause) =>
        separable
          ? Effect.forEach(group, (one) => write([one]), { discard: true })
          : Effect.sync(() => {
              for (const { answer } of group) answer(Exit.failCause(cause))
            })
    })
  }
  return write
}

const verdictOf = (reason: CommitGroup.Plan["verdicts"][number]): Exit.Exit<void, StoreError> =>
  reason === undefined ? Exit.void : Exit.fail(new StoreError({ reason }))
