/**
 * What a group of commits comes to, decided purely: each is checked against its session as the commits before it leave it, and one
 * that fails its check is left out without harming the others (L-R4).
 *
 * @since 0.1.0
 */
import { type Append, format, type StoredSnapshot, type StoreErrorReason } from "../ledger/SessionStore.ts"
import type * as CommitRow from "./CommitRow.ts"

/**
 * A session's row.
 *
 * @category models
 * @since 0.1.0
 */
export interface Head {
  readonly number: number
  readonly id: string
  readonly epoch: number
  readonly position: number
  readonly sequence: number
  readonly format: number
}

/**
 * A commit as it was when it was handed over.
 *
 * @category models
 * @since 0.1.0
 */
export interface Packed extends Pick<Append, "sessionId" | "epoch" | "expected" | "snapshot"> {
  readonly rows: ReadonlyArray<CommitRow.CommitRow>
}

/**
 * The verdicts, one a commit and `undefined` for one that is written, and what is to be written.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan {
  readonly verdicts: ReadonlyArray<StoreErrorReason | undefined>
  readonly rows: ReadonlyArray<{ readonly session: number; readonly row: CommitRow.CommitRow }>
  readonly snapshots: ReadonlyMap<string, StoredSnapshot>
}

/** @category constructors @since 0.1.0 */
export const plan = (found: ReadonlyArray<Head>, commits: ReadonlyArray<Packed>): Plan => {
  const heads = new Map<string, Head>(found.map((head) => [head.id, head]))
  const rows: Array<Plan["rows"][number]> = []
  const snapshots = new Map<string, StoredSnapshot>()
  const verdicts = commits.map((commit) => {
    const head = heads.get(commit.sessionId)
    const refused = check(head, commit)
    if (refused !== undefined || head === undefined) return refused
    let { position } = head
    for (const row of commit.rows) {
      rows.push({ session: head.number, row })
      position = row.position
    }
    if (commit.snapshot !== undefined) snapshots.set(head.id, commit.snapshot)
    heads.set(head.id, { ...head, position })
    return undefined
  })
  return { verdicts, rows, snapshots }
}

const check = (head: Head | undefined, commit: Packed): StoreErrorReason | undefined => {
  if (head === undefined) return { _tag: "Fenced" }
  if (head.format > format) return tooNew(head)
  if (head.epoch !== commit.epoch) return { _tag: "Fenced" }
  if (head.position !== commit.expected) return { _tag: "Conflict", position: head.position }
  return undefined
}

/** @category constructors @since 0.1.0 */
export const tooNew = (head: Pick<Head, "format">): StoreErrorReason => ({
  _tag: "TooNew",
  format: head.format,
  supported: format
})
