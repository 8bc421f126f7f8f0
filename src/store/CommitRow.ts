/**
 * How a commit is kept: its entries together in one row, a line each, since what a database takes for a row is what a commit costs.
 * Whatever is asked of single entries is answered from their rows.
 *
 * @since 0.1.0
 */
import type { StoredEntry } from "../ledger/SessionStore.ts"

/**
 * Consecutive entries of one commit. `position` is the last one's, `sequence` that of the last event, `null` without any. An entry with an
 * `inputId` begins a row, so that the row can be found by it.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommitRow {
  readonly position: number
  readonly sequence: number | null
  readonly input_id: string | null
  readonly body: string
}

/** Entries of one row, at most: who reads one of them reads them all. */
const limit = 100

/** Neither is in a printable text. An entry that was pruned leaves its line empty, so that the others stay in their places. */
const [between, within] = ["\n", "\t"] as const

const lineOf = ({ body, checksum, kind, sequence }: StoredEntry): string =>
  `${sequence === null ? "-" : "+"}${kind}${within}${checksum}${within}${body}`

/**
 * The rows of a commit.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromEntries = (entries: ReadonlyArray<StoredEntry>): ReadonlyArray<CommitRow> => {
  const rows: Array<CommitRow> = []
  let start = 0
  while (start < entries.length) {
    let end = start + 1
    while (end < entries.length && end - start < limit && entries[end]?.inputId === null) end++
    rows.push(rowOf(start === 0 && end === entries.length ? entries : entries.slice(start, end)))
    start = end
  }
  return rows
}

const rowOf = (entries: ReadonlyArray<StoredEntry>): CommitRow => {
  let body = ""
  let position = 0
  let sequence: number | null = null
  for (const entry of entries) {
    body = body === "" ? lineOf(entry) : `${body}${between}${lineOf(entry)}`
    position = entry.position
    sequence = entry.sequence ?? sequence
  }
  return { position, sequence, input_id: entries[0]?.inputId ?? null, body }
}

/**
 * What a row holds: the entries that are left of it, and the positions before its first and of its last.
 *
 * @category conversions
 * @since 0.1.0
 */
export const toEntries = (
  row: CommitRow
): { readonly after: number; readonly position: number; readonly entries: ReadonlyArray<StoredEntry> } => {
  const lines = row.body.split(between)
  const after = row.position - lines.length
  const entries: Array<StoredEntry> = []
  let sequence = (row.sequence ?? 0) - lines.filter(isEvent).length
  lines.forEach((line, index) => {
    if (line === "") return
    const checksum = line.indexOf(within) + 1
    const body = line.indexOf(within, checksum) + 1
    entries.push({
      position: after + 1 + index,
      sequence: isEvent(line) ? ++sequence : null,
      kind: line.slice(1, checksum - 1),
      inputId: index === 0 ? row.input_id : null,
      body: line.slice(body),
      checksum: line.slice(checksum, body - 1)
    })
  })
  return { after, position: row.position, entries }
}

const isEvent = (line: string): boolean => line.startsWith("+")

/**
 * The row without its events before a sequence up to and with a position, or `undefined` when nothing of it is left.
 *
 * @category conversions
 * @since 0.1.0
 */
export const pruned = (row: CommitRow, before: number, until: number): CommitRow | undefined => {
  const { after, entries } = toEntries(row)
  const kept = entries.filter(
    ({ position, sequence }) => sequence === null || sequence >= before || position > until
  )
  if (kept.length === 0) return undefined
  if (kept.length === entries.length) return row
  const lines = Array.from({ length: row.position - after }, () => "")
  for (const entry of kept) lines[entry.position - after - 1] = lineOf(entry)
  const { input_id, position, sequence } = row
  const isLeft = kept.some((entry) => entry.sequence !== null)
  return { position, sequence: isLeft ? sequence : null, input_id, body: lines.join(between) }
}
