/**
 * The file that sessions are kept in, as an SQLite database. It is opened only when the command line names one, so that
 * nothing of SQLite is loaded without.
 *
 * @since 0.1.0
 */
import { Context, Effect, FileSystem, Layer, Path, Schema } from "effect"
import type { PlatformError, Scope } from "effect"
import type * as Ids from "../../domain/Ids.ts"
import * as Codec from "../../ledger/Codec.ts"
import * as Entry from "../../ledger/Entry.ts"
import { SessionStore, type StoreError } from "../../ledger/SessionStore.ts"
import * as Past from "./Past.ts"
import * as Terminal from "./Terminal.ts"

/**
 * The file cannot be used, and was left as it is.
 *
 * @category errors
 * @since 0.1.0
 */
export class StoreFailure extends Schema.TaggedError<StoreFailure>()("StoreFailure", {
  file: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.file} cannot be the store: ${this.detail}`
  }
}

/** @category models @since 0.1.0 */
export interface Store {
  /** Its absolute path. */
  readonly file: string
  readonly sessions: SessionStore["Service"]
}

/**
 * Opens a store, which is made if there is none unless it `mustExist`, and closes it with the scope.
 *
 * @category constructors
 * @since 0.1.0
 */
export const open = Effect.fn("Store.open")(function* (
  name: string,
  options?: { readonly mustExist?: boolean }
): Effect.fn.Return<
  Store,
  StoreFailure | PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.resolve(name)
  if (options?.mustExist === true && !(yield* fs.exists(file))) {
    return yield* new StoreFailure({ file, detail: "it does not exist" })
  }
  const { client, store } = yield* Effect.mapError(
    driver,
    () => new StoreFailure({ file, detail: "this Node.js comes without SQLite; version 22.19 or newer has it" })
  )
  const layer = Layer.provide(store.layer, client.layer({ filename: file }))
  const services = yield* Effect.mapError(Layer.build(layer), (error) =>
    failure(file, error._tag === "SqlError" ? store.fromSqlError(error) : error)
  )
  return { file, sessions: Context.get(services, SessionStore) }
})

const driver = Effect.tryPromise(() =>
  Terminal.withoutExperimentalWarning(async () => {
    const [client, store] = await Promise.all([
      import("../../store/SqliteClient.ts"),
      import("../../store/SqlSessionStore.ts")
    ])
    return { client, store }
  })
)

const failure = (file: string, { message, reason }: StoreError): StoreFailure =>
  new StoreFailure({
    file,
    detail: reason._tag === "Corrupt" || reason._tag === "Unavailable" ? reason.detail : message
  })

/**
 * The sessions in it, the oldest first.
 *
 * @category queries
 * @since 0.1.0
 */
export const list = ({ file, sessions }: Store) => Effect.mapError(sessions.list, (error) => failure(file, error))

/**
 * What is in a session before it is opened.
 *
 * @category queries
 * @since 0.1.0
 */
export const past = Effect.fn("Store.past")(function* (
  store: Store,
  id: Ids.SessionId
): Effect.fn.Return<Past.Past, StoreFailure> {
  const found = (yield* list(store)).find((session) => session.id === id)
  if (found === undefined) return Past.none
  return yield* store.sessions.kind(id, "input", found.position).pipe(
    Effect.flatMap((entries) => Effect.forEach(entries, Codec.decode)),
    Effect.mapBoth({
      onFailure: (error) => failure(store.file, error),
      onSuccess: (entries) => ({
        sequence: found.sequence,
        inputs: entries.flatMap((entry) => (Entry.isRecord(entry) && entry.record === "input" ? [entry.input] : []))
      })
    })
  )
})
