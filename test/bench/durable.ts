/**
 * What being durable costs, beside the same work done by hand on the same database in the same run: `node test/bench/durable.ts`.
 * Both sides of a figure alternate, so that a busy machine slows both. `node test/bench/durable.ts receipt` runs only that figure.
 */
import { Console, Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Agent, AgentRuntime, Ids, Input, Limits, SessionStore, SqlSessionStore } from "../../src/index.ts"
import * as Codec from "../../src/ledger/Codec.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { median, services, stepping } from "./fixture.ts"
