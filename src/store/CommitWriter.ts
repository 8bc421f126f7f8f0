/**
 * The one writer of a store: it takes every commit that is waiting and writes them in one transaction, whichever sessions they are
 * of, so that they share one wait for the medium. While it writes, the next group gathers.
 *
 * @since 0.1.0
 */
import { Cause, Clock, type Context, Effect, Exit, type Scheduler, type Scope } from "effect"
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

/** Nanoseconds into a turn after which no other group begins in it: four milliseconds. */
const turnLimit = 4_000_000n

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
    const clock = yield* Clock.Clock
    const writer = yield* Effect.withFiber(({ context, currentDispatcher }) =>
      Effect.succeed(new Writer(writing(database), context, currentDispatcher, clock))
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

/** Answers the group's commits: in the calling step, or in the effect that is left to be run. */
type Write = (group: ReadonlyArray<Waiting>) => Effect.Effect<void> | undefined

/** Hands over one group at a time; no fiber waits for the next. */
class Writer {
  readonly #write: Write
  readonly #context: Context.Context<never>
  readonly #dispatcher: Scheduler.SchedulerDispatcher
  readonly #clock: Clock.Clock
  #waiting: Array<Waiting> = []
  #busy = false
  #closed = false
  /** Until when a group may follow in this turn. */
  #until = 0n
  #idle: (() => void) | undefined

  constructor(
    write: Write,
    context: Context.Context<never>,
    dispatcher: Scheduler.SchedulerDispatcher,
    clock: Clock.Clock
  ) {
    this.#write = write
    this.#context = context
    this.#dispatcher = dispatcher
    this.#clock = clock
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
    if (!this.#busy) return tell(() => this.#idle?.())
    if (follows && this.#clock.monotonicTimeNanosUnsafe() < this.#until) return queueMicrotask(() => this.#round())
    this.#dispatcher.scheduleTask(() => {
      this.#until = this.#clock.monotonicTimeNanosUnsafe() + turnLimit
      this.#round()
    }, 0)
  }

  #round(): void {
    const group = this.#waiting.splice(0, groupLimit)
    const left = this.#begin(group)
    if (left === undefined) return this.#next(true)
    Effect.runForkWith(this.#context)(left).addObserver((exit) => {
      // Nobody is left waiting, whatever went wrong here: who has an answer takes no other.
      if (Exit.isFailure(exit)) answerAll(group, exit)
      this.#next(true)
    })
  }

  #begin(group: ReadonlyArray<Waiting>): Effect.Effect<void> | undefined {
    try {
      return this.#write(group)
    } catch (defect) {
      return Effect.die(defect)
    }
  }
}

const closed = new StoreError({ reason: { _tag: "Unavailable", detail: "the store is closed" } })

const writing = (database: Database): Write => {
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
  const { dialect, runNow } = database
  return (group) => {
    const [commit] = group
    if (commit === undefined || group.length > 1) {
      // Where each statement is a round trip, one that reads all their sessions is cheaper than a check of each.
      return dialect === "pg" ? planned(group) : trusted(group)
    }
    if (runNow === undefined || commit.rows.length !== 1 || commit.snapshot !== undefined) return trusted(group)
    const done = statements.lone(commit, runNow)
    if (done === "not now") return trusted(group)
    if (done !== "done" && SqlFailure.isOfData(done)) return planned(group)
    tell(() => commit.answer(done === "done" ? Exit.void : Exit.fail(SqlFailure.ofSingle(done))))
    return undefined
  }
}

const answerAll = (group: ReadonlyArray<Waiting>, exit: Exit.Exit<void, StoreError>): void => {
  for (const { answer } of group) tell(() => answer(exit))
}

const isUnconfirmed = (cause: Cause.Cause<StoreError>): boolean => {
  const error = Cause.findErrorOption(cause)
  return error._tag === "Some" && error.value.reason._tag === "Unconfirmed"
}

const verdictOf = (reason: CommitGroup.Plan["verdicts"][number]): Exit.Exit<void, StoreError> =>
  reason === undefined ? Exit.void : Exit.fail(new StoreError({ reason }))
