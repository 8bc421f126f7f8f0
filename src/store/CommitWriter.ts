/**
 * The one writer of a store: it takes every commit that is waiting and writes them in one transaction, whichever sessions they are
 * of, so that they share one wait for the medium. While it writes, the next group gathers.
 *
 * @since 0.1.0
 */
import { type Cause, Effect, Exit, Fiber, Queue, type Scope } from "effect"
import { type Append, StoreError } from "../ledger/SessionStore.ts"
import * as CommitGroup from "./CommitGroup.ts"
import type { Body, Database, Query } from "./Database.ts"
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
  const checked = (commits: ReadonlyArray<Append>) =>
    Effect.fnUntraced(function* (query: Query) {
      const ids = new Set(commits.map(({ sessionId }) => sessionId))
      const plan = CommitGroup.plan(yield* statements.lock(query, Array.from(ids)), commits)
      yield* statements.insert(query, plan.entries)
      yield* statements.move(query, plan.heads)
      for (const [session, snapshot] of plan.snapshots) yield* statements.snapshot(query, session, snapshot)
      return plan.verdicts
    })
  const attempt = (
    group: ReadonlyArray<Waiting>,
    body: Body<CommitGroup.Plan["verdicts"]>,
    otherwise?: () => Effect.Effect<void>
  ): Effect.Effect<void> => {
    let ofData = false
    const transaction = database.transact((query) =>
      Effect.tapError(body(query), (error) =>
        Effect.sync(() => {
          ofData = error._tag === "SqlError" && SqlFailure.isOfData(error)
        })
      )
    )
    return Effect.matchCauseEffect(transaction, {
      onSuccess: (verdicts) =>
        Effect.sync(() => {
          for (const [index, { answer }] of group.entries()) answer(verdictOf(verdicts[index]))
        }),
      onFailure: (cause) =>
        ofData && otherwise !== undefined
          ? otherwise()
          : Effect.sync(() => {
              for (const { answer } of group) answer(Exit.failCause(cause))
            })
    })
  }
  const write = (group: ReadonlyArray<Waiting>): Effect.Effect<void> => {
    const [first, second] = group
    const all = checked(group.map(({ commit }) => commit))
    if (second !== undefined) {
      return attempt(group, all, () => Effect.forEach(group, (one) => write([one]), { discard: true }))
    }
    // Alone, a commit is checked by its own statements; only one that fails them goes the longer way, to learn why.
    return first === undefined || first.commit.snapshot !== undefined
      ? attempt(group, all)
      : attempt(
          group,
          (query) => Effect.as(statements.commit(query, first.commit), []),
          () => attempt(group, all)
        )
  }
  return write
}

const verdictOf = (reason: CommitGroup.Plan["verdicts"][number]): Exit.Exit<void, StoreError> =>
  reason === undefined ? Exit.void : Exit.fail(new StoreError({ reason }))
