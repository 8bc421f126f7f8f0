/**
 * How a commit is kept: its entries together in one row, as one text with one checksum, since what a database takes for a row is what a
 * commit costs. Whatever is asked of single entries is answered from their rows.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import * as Digest from "../ledger/Digest.ts"
import { StoreError, type StoredEntry } from "../ledger/SessionStore.ts"

/**
 * Consecutive entries of one commit. `position` is the last one's, `sequence` that of the last event, `null` without any. An entry with an
 * `inputId` begins a row, so that the row can be found by it. `body` is JSON text, and so of printable characters only.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommitRow {
  readonly position: number
  readonly sequence: number | null
  readonly input_id: string | null
  readonly checksum: string
  readonly body: string
}

/**
 * A row that was read: the entries that are left of it, and the positions before its first and of its last.
 *
 * @category models
 * @since 0.1.0
 */
export interface Opened {
  readonly after: number
  readonly position: number
  readonly entries: ReadonlyArray<StoredEntry>
}

/** Entries of one row, and characters of several in one, at most: who reads one of them reads them all. */
const limits = { entries: 100, characters: 65_536 }

/** An entry that was pruned leaves its place. */
type Place = readonly [kind: string, sequence: number | null, body: unknown] | null

const sealed = (row: Omit<CommitRow, "checksum">): CommitRow => ({ ...row, checksum: checksumOf(row) })

const checksumOf = ({ body, input_id, position, sequence }: Omit<CommitRow, "checksum">): string =>
  Digest.short(`${position} ${sequence} ${JSON.stringify(input_id)} ${body}`)

const placeOf = ({ body, kind, sequence }: StoredEntry): Place => [kind, sequence, body]

/**
 * The rows of a commit.
 *
 * @category conversions
 * @since 0.1.0
 */
export const fromEntries = (entries: ReadonlyArray<StoredEntry>): ReadonlyArray<CommitRow> => {
  const rows: Array<CommitRow> = []
  let start = 0
  for (let end = 1; end <= entries.length; end++) {
    if (end < entries.length && end - start < limits.entries && entries[end]?.inputId === null) continue
    pack(entries.slice(start, end), rows)
    start = end
  }
  return rows
}

/** Adds them as one row, or as several where one would be too long. */
const pack = (entries: ReadonlyArray<StoredEntry>, rows: Array<CommitRow>): void => {
  const body = textOf(entries)
  if (body === undefined || (entries.length > 1 && body.length > limits.characters)) {
    const half = Math.ceil(entries.length / 2)
    pack(entries.slice(0, half), rows)
    return pack(entries.slice(half), rows)
  }
  const position = entries.at(-1)?.position ?? 0
  const sequence = entries.findLast((entry) => entry.sequence !== null)?.sequence ?? null
  rows.push(sealed({ position, sequence, input_id: entries[0]?.inputId ?? null, body }))
}

/** The text of entries, `undefined` if that of several is longer than a string can be. */
const textOf = (entries: ReadonlyArray<StoredEntry>): string | undefined => {
  try {
    return JSON.stringify(entries.map(placeOf))
  } catch (error) {
    if (entries.length > 1 && error instanceof RangeError) return undefined
    throw error
  }
}

/**
 * What a row holds. Fails `Corrupt` if it is not as it was written (L-R5).
 *
 * @category conversions
 * @since 0.1.0
 */
export const open = (row: CommitRow): Effect.Effect<Opened, StoreError> => {
  const { body, checksum, input_id, position } = row
  if (checksumOf(row) !== checksum) {
    const detail = `the commit that ends with entry ${position} was changed after it was written`
    return Effect.fail(new StoreError({ reason: { _tag: "Corrupt", detail } }))
  }
  return Effect.sync(() => {
    const places: ReadonlyArray<Place> = JSON.parse(body)
    const after = position - places.length
    const entries = places.flatMap((place, index): ReadonlyArray<StoredEntry> => {
      if (place === null) return []
      const [kind, sequence, body] = place
      return [{ position: after + 1 + index, sequence, kind, inputId: index === 0 ? input_id : null, body }]
    })
    return { after, position, entries }
  })
}

/**
 * The row without its events before a sequence up to and with a position, `undefined` if nothing of it is left; and the sequence of the
 * first event that is left.
 *
 * @category conversions
 * @since 0.1.0
 */
export const prune = (
  row: CommitRow,
  before: number,
  until: number
): Effect.Effect<{ readonly row: CommitRow | undefined; readonly first: number | undefined }, StoreError> =>
  Effect.map(open(row), ({ after, entries, position }) => {
    const kept = entries.filter((one) => one.sequence === null || one.sequence >= before || one.position > until)
    if (kept.length === 0) return { row: undefined, first: undefined }
    const first = kept.find(({ sequence }) => sequence !== null)?.sequence ?? undefined
    if (kept.length === entries.length) return { row, first }
    const places: Array<Place> = Array.from({ length: position - after }, () => null)
    for (const entry of kept) places[entry.position - after - 1] = placeOf(entry)
    const { input_id, sequence } = row
    const body = JSON.stringify(places)
    return { row: sealed({ position, sequence: first === undefined ? null : sequence, input_id, body }), first }
  })
