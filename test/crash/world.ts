/** What a process that may be killed and the one that judges it share: where a session is kept, and what is said on the way. */
import { Effect, type Layer, Schema } from "effect"
import { Prompt } from "effect/ai"
import type { SqlClient, SqlError } from "effect/sql"
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { type ContextStore, type Event, Input, type Receipt } from "../../src/index.ts"
import * as SqliteClient from "../../src/store/SqliteClient.ts"
import * as Postgres from "../support/postgres.ts"

export type Mode = "settle" | "resume"

/** A database: an SQLite file, or the port of a PostgreSQL cluster. */
export interface Place {
  readonly dialect: "sqlite" | "pg"
  readonly where: string
}

/** The SQLite file of a session that is kept in a folder. */
export const inFile = (folder: string): Place => ({ dialect: "sqlite", where: join(folder, "sessions.db") })

export const client = (place: Place): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  place.dialect === "pg"
    ? Postgres.client({ port: Number(place.where) }, { maxConnections: 1 })
    : SqliteClient.layer({ filename: place.where })

/**
 * Where a process kills itself: right before a commit is handed to the store, before the transaction that holds it commits, or
 * when it is written and nobody knows.
 */
export type Side = "before" | "inside" | "after"

/** The `nth` commit that carries an event or record of the kind. */
export interface Failpoint {
  readonly side: Side
  readonly kind: string
  readonly nth: number
}

/** What one process is to do. */
export interface Config {
  readonly place: Place
  readonly session: string
  readonly mode: Mode
  readonly onClose: "cancel" | "detach"
  readonly scene: "chaos" | "life" | "rest"
  readonly life: number
  readonly seed: number
  /** Where the log of side effects is, and the context where the host keeps it. */
  readonly folder: string
  readonly hosted: boolean
  readonly concurrency: number
  /** Milliseconds after which a chaotic life closes in good order. */
  readonly lifetime: number
  readonly failpoint: Failpoint | undefined
  /** Inputs that earlier processes sent and that nobody was given a receipt of: they are sent again. */
  readonly again: ReadonlyArray<Sent>
}

export interface Sent {
  readonly id: string
  readonly intent: Input.Intent
  readonly content: string
  readonly scope: ReadonlyArray<string> | null
  readonly anchor: string | null
}

export const inputOf = ({ content, id, intent, scope }: Sent): Input.Input => {
  const options = { id, ...(scope === null ? {} : { scope: { tools: scope } }) }
  switch (intent) {
    case "prompt":
      return Input.prompt(content, options)
    case "steer":
      return Input.steer(content, options)
    case "follow-up":
      return Input.followUp(content, options)
    case "collect":
      return Input.collect(content, options)
  }
}

/** What a process says, a JSON line each; what it has said stands, whenever it is killed. */
export type Line =
  | { readonly line: "opened" | "done" }
  | { readonly line: "sent"; readonly sent: Sent }
  /** `asked`: somebody looked the receipt up. */
  | { readonly line: "receipt"; readonly id: string; readonly asked: boolean; readonly receipt: Receipt.Receipt }
  | { readonly line: "control"; readonly how: "stop" | "cancel"; readonly generationId: string }
  | { readonly line: "paused" | "resumed" }
  | { readonly line: "withdrawn"; readonly id: string }
  | { readonly line: "promoted"; readonly id: string; readonly as: string }
  | { readonly line: "decided"; readonly call: string }
  | { readonly line: "event"; readonly event: Event.SessionEvent }
  | { readonly line: "commit"; readonly kinds: ReadonlyArray<string> }
  | { readonly line: "dies"; readonly side: Side; readonly kinds: ReadonlyArray<string> }
  | { readonly line: "wrong"; readonly what: string }

/** What a process says on its standard error: that it waits to be told, that its session is open, and each commit. */
export const signs = { ready: "<ready>", opened: "<opened>", commit: "<commit>" }

/** Written at once, past every buffer of this process. */
export const say = (line: Line): void => void writeSync(1, `${JSON.stringify(line)}\n`)

const linesOf = <A>(file: string): ReadonlyArray<A> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as A]))
    : []

export const saidIn = (file: string): ReadonlyArray<Line> => linesOf<Line>(file)

/** What the world outside saw: a handler began or ended, or a provider was sent a request. */
export type Deed =
  | { readonly deed: "began"; readonly call: string }
  | { readonly deed: "ended"; readonly call: string }
  | { readonly deed: "asked"; readonly inputs: ReadonlyArray<string>; readonly results: ReadonlyArray<string> }

const logIn = (folder: string): string => join(folder, "deeds.jsonl")

export const deedsIn = (folder: string): ReadonlyArray<Deed> => linesOf<Deed>(logIn(folder))

/** A deed is on the medium when it is done. */
export const recorder = (folder: string) => {
  const file = openSync(logIn(folder), "a")
  return (deed: Deed): void => {
    writeSync(file, `${JSON.stringify(deed)}\n`)
    fsyncSync(file)
  }
}

/** The request as the world outside sees it: whose inputs and whose successful results it carries. */
export const asked = (prompt: ReadonlyArray<Prompt.Message>): Deed => ({
  deed: "asked",
  inputs: prompt.flatMap((message) => Input.idOfMessage(message) ?? []),
  results: prompt.flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) => (part.type === "tool-result" && !part.isFailure ? [part.id] : []))
      : []
  )
})

/** The generation that a prompt is for, what it began with, and how many of its steps are done. */
export const turnOf = (prompt: ReadonlyArray<Prompt.Message>) => {
  const generationOf = (message: Prompt.Message): unknown => {
    const own: unknown = message.role === "user" ? message.options["midcourse"] : undefined
    return typeof own === "object" && own !== null && "target_generation_id" in own
      ? own.target_generation_id
      : undefined
  }
  const generation = prompt.map(generationOf).findLast((id) => id !== undefined)
  const start = prompt.findIndex((message) => generationOf(message) === generation)
  const first = prompt[start]
  const steps = prompt.slice(start).filter(({ role }) => role === "tool").length
  return { generation: String(generation), first: first === undefined ? "" : (Input.idOfMessage(first) ?? ""), steps }
}

const encodeMessage = Schema.encodeSync(Prompt.Message)
const decodeMessage = Schema.decodeUnknownSync(Prompt.Message)

/** A host's context in a file: each append is one write of one line. `around` runs before and after it. */
export const contextIn = (folder: string, around: (side: Side) => void): ContextStore.Service => {
  const file = join(folder, "context.jsonl")
  const all = () =>
    linesOf<ReadonlyArray<unknown>>(file).flatMap((messages) => messages.map((each) => decodeMessage(each)))
  return {
    append: (messages) =>
      Effect.sync(() => {
        around("before")
        appendFileSync(file, `${JSON.stringify(messages.map((message) => encodeMessage(message)))}\n`)
        around("after")
      }),
    messages: Effect.sync(all),
    has: (id) => Effect.sync(() => (all().some((message) => Input.idOfMessage(message) === id) ? "present" : "absent"))
  }
}

/** Numbers from 0 to below 1, the same ones for a seed. */
export const chance = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A number from a text, the same one always. */
export const hash = (text: string): number => {
  let state = 2166136261
  for (const char of text) state = Math.imul(state ^ char.charCodeAt(0), 16777619) >>> 0
  return Math.floor(chance(state)() * 2 ** 30)
}

/** Makes sure that a file exists and says its descriptor, for a process to write to. */
export const appending = <A>(file: string, use: (descriptor: number) => A): A => {
  const descriptor = openSync(file, "a")
  try {
    return use(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
