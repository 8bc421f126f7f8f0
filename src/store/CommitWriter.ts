/**
 * The one writer of a store: it takes every commit that is waiting and writes them in one transaction, whichever sessions they are
 * of, so that they share one wait for the medium. While it writes, the next group gathers.
 *
 * @since 0.1.0
 */
import { Cause, type Context, Effect, Exit, type Scheduler, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import * as Asked from "../ledger/Asked.ts"
import { type Append, StoreError } from "../ledger/SessionStore.ts"
import { tell } from "../ledger/Telling.ts"
import * as CommitGroup from "./CommitGroup.ts"
import * as CommitRow from "./CommitRow.ts"
import type { Body, Database } from "./Database.ts"
import * as SqlFailure from "./SqlFailure.ts"
import * as Statements from "./Statements.ts"

/** Commits of one transaction, at most. */
const groupLimit = 1024

/** Milliseconds into a turn after which no other group begins in it. */
const turnLimit = 4

interface Waiting extends CommitGroup.Packed {
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
    const writer = yield* Effect.withFiber(({ context, currentDispatcher }) =>
      Effect.succeed(new Writer(writing(database), context, currentDispatcher))
    )
    yield* Effect.addFinalizer(() => writer.close)
    return (commit) => {
      const defect = Asked.defectOf(commit)
      if (defect !== undefined) return Effect.die(defect)
      return Effect.callback<void, StoreError>((resume) => {
        const { entries, epoch, expected, sessionId, snapshot } = commit
        // Its rows are made now: what a caller does with its entries afterwards is not written.
        const rows = CommitRow.fromEntries(entries)
        if (!writer.take({ sessionId, epoch, expected, snapshot, rows, answer: resume })) resume(Effect.fail(closed))
      })
    }
  })

/** Both answer the group's commits. */
interface Writes {
  /** Writes the group in the calling step; `false` if that could not be done: nothing was written then, and nobody has an answer. */
  readonly now: (group: ReadonlyArray<Waiting>) => boolean
  readonly soon: (group: ReadonlyArray<Waiting>) => Effect.Effect<void>
}

/** Hands over one group at a time; no fiber waits for the next. */
class Writer {
  readonly #writes: Writes
  readonly #context: Context.Context<never>
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  #waiting: Array<Waiting> = []
  #busy = false
  #closed = false
  /** Until when a group may follow in this turn. */
  #until = 0
  #idle: (() => void) | undefined

  constructor(writes: Writes, context: Context.Context<never>, dispatcher: Scheduler.SchedulerDispatcher) {
    this.#writes = writes
    this.#context = context
    this.#dispatcher = dispatcher
  }

  /** Whether the commit was handed over: not once the writer is closed. */
  take(waiting: Waiting): boolean {
    if (this.#closed) return false
    this.#waiting.push(waiting)
    if (!this.#busy) this.#next(false)
    return true
  }

  /** Takes no more, and waits for what was taken. */
  readonly close: Effect.Effect<void> = Effect.callback((resume) => {
    this.#closed = true
    if (!this.#busy) return resume(Effect.void)
    this.#idle = () => resume(Effect.void)
  })

  /**
   * A group that begins with a commit out of nothing waits for a turn, so that whoever is ready to append joins it. What the answers to a
   * group gave rise to is a group already, and is written in the turn of that one, until others have waited for the thread long enough.
   */
  #next(follows: boolean): void {
    this.#busy = this.#waiting.length > 0
    if (!this.#busy) return this.#idle?.()
    if (follows && performance.now() < this.#until) return queueMicrotask(() => this.#round())
    this.#dispatcher.scheduleTask(() => {
      this.#until = performance.now() + turnLimit
      this.#round()
    }, 0)
  }

  #round(): void {
    const group = this.#waiting.splice(0, groupLimit)
    // Nobody is left waiting, whatever went wrong here: who has an answer takes no other.
    const end = (exit: Exit.Exit<void>): void => {
      if (Exit.isFailure(exit)) answerAll(group, exit)
      this.#next(true)
    }
    try {
      if (this.#writes.now(group)) return end(Exit.void)
    } catch (defect) {
      return end(Exit.die(defect))
    }
    Effect.runForkWith(this.#context)(this.#writes.soon(group)).addObserver(end)
  }
}

const closed = new StoreError({ reason: { _tag: "Unavailable", detail: "the store is closed" } })

const writing = (database: Database): Writes => {
  const statements = Statements.make(database.dialect)
  /** `otherwise` follows on a body that failed, and certainly wrote nothing, if it may do better. */
  const attempt = (
    group: ReadonlyArray<Waiting>,
    body: Body<CommitGroup.Plan["verdicts"]>,
    mayDoBetter: (error: SqlError.SqlError) => boolean,
    otherwise: () => Effect.Effect<void>
  ): Effect.Effect<void> => {
    let again = false
    const transaction = database.transact((query) =>
      Effect.tapError(body(query), (error) =>
        Effect.sync(() => {
          again = error._tag === "SqlError" && mayDoBetter(error)
        })
      )
    )
    return Effect.matchCauseEffect(transaction, {
      onSuccess: (verdicts) => {
        for (const [index, { answer }] of group.entries()) tell(() => answer(verdictOf(verdicts[index])))
        return Effect.void
      },
      onFailure: (cause) => {
        if (again && !isUnconfirmed(cause)) return otherwise()
        answerAll(group, Exit.failCause(cause))
        return Effect.void
      }
    })
  }
  /** Each commit is checked by its own statements: what fails is decided again, and told apart, by `planned`. */
  const trusted = (group: ReadonlyArray<Waiting>): Effect.Effect<void> =>
    attempt(
      group,
      (query) =>
        Effect.as(
          Effect.forEach(group, (commit) => statements.commit(query, commit), { discard: true }),
          []
        ),
      SqlFailure.mayBeOfData,
      () => planned(group)
    )
  /** What to write is decided from the sessions' rows, read first. One that the database will not have is told from the others alone. */
  const planned = (group: ReadonlyArray<Waiting>): Effect.Effect<void> =>
    attempt(
      group,
      (query) =>
        Effect.gen(function* () {
          const ids = new Set(group.map(({ sessionId }) => sessionId))
          const plan = CommitGroup.plan(yield* statements.lock(query, Array.from(ids)), group)
          yield* statements.insert(query, plan.rows)
          for (const [id, snapshot] of plan.snapshots) yield* statements.snapshot(query, id, snapshot)
          return plan.verdicts
        }),
      (error) => group.length > 1 && SqlFailure.isOfData(error),
      () => Effect.forEach(group, (one) => planned([one]), { discard: true })
    )
  const now: Writes["now"] = (group) => {
    const [commit] = group
    if (database.runNow === undefined || commit === undefined || group.length > 1) return false
    if (commit.rows.length !== 1 || commit.snapshot !== undefined) return false
    const done = statements.lone(commit, database.runNow)
    if (done === undefined) return false
    // What it was that the database would not have is told the other way.
    if (Exit.isFailure(done) && isOfData(done.cause)) return false
    const answer = Exit.isSuccess(done) ? Exit.void : Exit.asVoid(Exit.mapError(done, SqlFailure.ofSingle))
    tell(() => commit.answer(answer))
    return true
  }
  // Where each statement is a round trip, one that reads all their sessions is cheaper than a check of each.
  const soon: Writes["soon"] = (group) =>
    group.length > 1 && database.dialect === "pg" ? planned(group) : trusted(group)
  return { now, soon }
}

const answerAll = (group: ReadonlyArray<Waiting>, exit: Exit.Exit<void, StoreError>): void => {
  for (const { answer } of group) tell(() => answer(exit))
}

const isOfData = (cause: Cause.Cause<SqlError.SqlError>): boolean => {
  const error = Cause.findErrorOption(cause)
  return error._tag === "Some" && SqlFailure.isOfData(error.value)
}

const isUnconfirmed = (cause: Cause.Cause<StoreError>): boolean => {
  const error = Cause.findErrorOption(cause)
  return error._tag === "Some" && error.value.reason._tag === "Unconfirmed"
}

const verdictOf = (reason: CommitGroup.Plan["verdicts"][number]): Exit.Exit<void, StoreError> =>
  reason === undefined ? Exit.void : Exit.fail(new StoreError({ reason }))
