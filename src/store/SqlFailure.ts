/**
 * What a failure of the database means for a journal (L-A7, L-R5, L-R7): it certainly did not happen, it cannot be told, or what
 * is stored cannot be read; with the cause in words, whichever driver reported it.
 *
 * @since 0.1.0
 */
import { Predicate } from "effect"
import type { SqlError } from "effect/sql"
import { StoreError } from "../ledger/SessionStore.ts"

/** By SQLite's primary result code. */
const sqlite: Readonly<Record<number, readonly [name: string, words: string]>> = {
  5: ["SQLITE_BUSY", "the database is locked by another connection"],
  6: ["SQLITE_LOCKED", "the database is locked by another connection"],
  8: ["SQLITE_READONLY", "the database is read-only"],
  10: ["SQLITE_IOERR", "the medium could not be read or written"],
  11: ["SQLITE_CORRUPT", "the database file is damaged"],
  13: ["SQLITE_FULL", "the disk or the database is full"],
  14: ["SQLITE_CANTOPEN", "the database file cannot be opened"],
  26: ["SQLITE_NOTADB", "the file is not a database"]
}

/** By PostgreSQL's SQLSTATE, or its class. */
const postgres: Readonly<Record<string, string>> = {
  "08": "the connection to the database was lost",
  "28": "the database refused the login",
  "53100": "the disk of the database is full",
  "53": "the database is out of resources",
  "55P03": "the database is locked by another connection",
  "57P01": "the connection to the database was lost",
  "57": "the database is shutting down or cancelled the statement",
  "25006": "the database is read-only",
  "25": "the transaction was aborted",
  XX001: "the database is damaged",
  XX002: "the database is damaged"
}

const damaged = new Set<string | number>([11, 26, "XX001", "XX002"])

/**
 * A failure of which it is certain that nothing was written.
 *
 * @category constructors
 * @since 0.1.0
 */
export const certain = (error: SqlError.SqlError): StoreError => {
  const detail = describe(error)
  return new StoreError({
    reason: damaged.has(codeOf(error) ?? "") ? { _tag: "Corrupt", detail } : { _tag: "Unavailable", detail }
  })
}

/**
 * A failure of a commit itself. Only a lock that was not got is certain: the transaction was still open and was rolled back.
 *
 * @category constructors
 * @since 0.1.0
 */
export const uncertain = (error: SqlError.SqlError): StoreError =>
  error.reason._tag === "LockTimeoutError"
    ? certain(error)
    : new StoreError({ reason: { _tag: "Unconfirmed", detail: describe(error) } })

/**
 * A failure, not of data, of a statement that is a transaction by itself: certain where SQLite names what stopped it before its commit was
 * complete.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ofSingle = (error: SqlError.SqlError): StoreError =>
  stopped.has(codeOf(error) ?? "") ? certain(error) : uncertain(error)

/** SQLITE_READONLY, SQLITE_CORRUPT, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_NOTADB. */
const stopped = new Set<string | number>([8, 11, 13, 14, 26])

/**
 * The cause in words, and the driver's own.
 *
 * @category getters
 * @since 0.1.0
 */
export const describe = (error: SqlError.SqlError): string => {
  const told = messagesOf(error).join(": ")
  const words = wordsOf(error)
  return words === undefined ? told : `${words} (${told})`
}

const wordsOf = (error: SqlError.SqlError): string | undefined => {
  const code = codeOf(error)
  if (typeof code === "number") return sqlite[code]?.[1]
  if (code !== undefined) return postgres[code] ?? postgres[code.slice(0, 2)]
  return error.reason._tag === "ConnectionError" ? postgres["08"] : undefined
}

/** SQLite's primary result code or PostgreSQL's SQLSTATE; drivers give the former as a number or by its name. */
const codeOf = (error: SqlError.SqlError): number | string | undefined => {
  const { cause } = error.reason
  if (Predicate.hasProperty(cause, "errno") && typeof cause.errno === "number") return cause.errno & 0xff
  if (!Predicate.hasProperty(cause, "code")) return undefined
  const { code } = cause
  if (typeof code === "number") return code & 0xff
  if (typeof code !== "string") return undefined
  const named = Object.entries(sqlite).find(([, [name]]) => code === name || code.startsWith(`${name}_`))
  return named === undefined ? code : Number(named[0])
}

const messagesOf = ({ message, reason: { cause } }: SqlError.SqlError): ReadonlyArray<string> =>
  Predicate.hasProperty(cause, "message") && typeof cause.message === "string" && cause.message !== message
    ? [message, cause.message]
    : [message]

/**
 * Whether the failure is of what was to be written, so that other commits of the same group may still be written.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isOfData = (error: SqlError.SqlError): boolean => {
  const { _tag } = error.reason
  const code = codeOf(error)
  return (
    _tag === "ConstraintError" ||
    _tag === "UniqueViolation" ||
    (typeof code === "number" ? tooBig.has(code) : code !== undefined && /^(?:22|54)/.test(code))
  )
}

/**
 * Whether the failure is of what was to be written, or of a driver that names no cause.
 *
 * @category predicates
 * @since 0.1.0
 */
export const mayBeOfData = (error: SqlError.SqlError): boolean =>
  isOfData(error) || (error.reason._tag === "UnknownError" && codeOf(error) === undefined)

/**
 * Whether a transaction was to be ended and there was none.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isOfNone = (error: SqlError.SqlError): boolean =>
  messagesOf(error).some((message) => /no transaction/i.test(message))

/** SQLITE_TOOBIG and SQLITE_MISMATCH. */
const tooBig = new Set([18, 20])
