/** With every receipt on the disk first: SQLite in a temporary file. */
import { Effect, Exit, Layer, Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AgentRuntime, SqlSessionStore } from "../../../src/index.ts"
import * as SqliteClient from "../../../src/store/SqliteClient.ts"
import { adapter, services } from "./session.ts"

const folder = mkdtempSync(join(tmpdir(), "midcourse-bench-"))
const scope = Scope.makeUnsafe()
const runtime = AgentRuntime.layer.pipe(
  Layer.provide(SqlSessionStore.layer),
  Layer.provide(SqliteClient.layer({ filename: join(folder, "sessions.db") }))
)

export const { start } = adapter(await Effect.runPromise(Scope.provide(services("made", runtime), scope)), "in time")

export const close = async (): Promise<void> => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true, force: true })
}
