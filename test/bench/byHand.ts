/** A journal in a file, and the same rows written into the same tables by prepared statements: what durability costs is beside it. */
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { DatabaseSync } from "node:sqlite"
import type { StoredEntry } from "../../src/ledger/SessionStore.ts"
import * as CommitRow from "../../src/store/CommitRow.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"

export type Synchronous = "FULL" | "NORMAL"

/** Milliseconds in microseconds, in tenths of one below a hundred. */
export const micros = (millis: number): string => `${(millis * 1000).toFixed(millis < 0.1 ? 1 : 0)} µs`

/** A folder on the disk that temporary files are on. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "midcourse-durable-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const stored = (filename: string, synchronous: Synchronous) =>
  SqlSessionStore.layer.pipe(Layer.provide(SqliteClient.layer({ filename, synchronous })))

/**
 * One commit by hand, for so many sessions in one transaction, in a database of its own whose tables the store made: the rows, of
 * which each moves where its journal ends. A single row needs no BEGIN and COMMIT around it.
 */
export const byHand = (
  filename: string,
  synchronous: Synchronous,
  sessions: number,
  entries: ReadonlyArray<StoredEntry>
) => {
  const database = new DatabaseSync(filename)
  database.exec(`PRAGMA synchronous = ${synchronous}`)
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")
  const insert = database.prepare(
    "INSERT INTO midcourse_commits (session, position, sequence, input_id, checksum, body) VALUES (?, ?, ?, ?, ?, ?)"
  )
  const make = database.prepare(
    "INSERT INTO midcourse_sessions (id, agent, epoch, position, sequence, format) VALUES (?, 'bench', 1, 0, 0, 1)"
  )
  for (let session = 1; session <= sessions; session++) make.run(`ses_${session}`)
  const rows = CommitRow.fromEntries(entries)
  const isOneRow = sessions === 1 && rows.length === 1
  let position = 0
  const write = (): void => {
    if (!isOneRow) begin.run()
    for (let session = 1; session <= sessions; session++) {
      rows.forEach(({ body, checksum, input_id, sequence }, index) => {
        const at = position + 1 + index
        const id = input_id === null ? null : `${input_id}${at}`
        insert.run(session, at, sequence === null ? null : at, id, checksum, body)
      })
    }
    position += rows.length
    if (!isOneRow) commit.run()
  }
  return { write, close: () => database.close() }
}

export const timed = (run: () => void): number => {
  const before = performance.now()
  run()
  return performance.now() - before
}
