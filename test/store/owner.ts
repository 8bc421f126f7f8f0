/**
 * A session's owner in a process of its own: it claims, says its epoch, and appends one event for each line it reads, saying what
 * became of it. `node owner.ts sqlite <file> <session>` or `node owner.ts pg <port> <session>`.
 */
import { Effect, Layer, Result } from "effect"
import { createInterface } from "node:readline"
import { SessionStore } from "../../src/ledger/SessionStore.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.ts"
import * as Postgres from "../support/postgres.ts"
import { commit, sessionId } from "./fixtures.ts"

const [dialect, place = "", session = ""] = process.argv.slice(2)
const client = dialect === "pg" ? Postgres.client({ port: Number(place) }) : SqliteClient.layer({ filename: place })

const owner = Effect.gen(function* () {
  const store = yield* SessionStore
  const id = sessionId(session)
  const { epoch, position } = yield* store.claim(id, "owner")
  console.log(`claimed ${epoch} at ${position}`)
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  let expected = position
  while (true) {
    const line = yield* Effect.promise(() => lines.next())
    if (line.done === true) return
    const body = JSON.stringify({ by: epoch, line: line.value })
    const appended = yield* Effect.result(store.append(commit(id, epoch, expected + 1, body)))
    if (Result.isSuccess(appended)) expected++
    console.log(Result.match(appended, { onSuccess: () => "written", onFailure: ({ reason }) => reason._tag }))
  }
})

await Effect.runPromise(owner.pipe(Effect.provide(SqlSessionStore.layer.pipe(Layer.provide(client))), Effect.scoped))
