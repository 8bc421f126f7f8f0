/**
 * Entries as JSON values, snapshots as text, and back (L-R8). Messages are kept as effect/ai's encoded Prompt messages, options
 * included; inputs as their schema encodes them; events as they are. What cannot have been written here is refused, not guessed
 * at (L-R5).
 *
 * @since 0.1.0
 */
import { Effect, Predicate, Schema } from "effect"
import { Prompt } from "effect/ai"
import { SessionEvent } from "../domain/Event.ts"
import { Input } from "../domain/Input.ts"
import * as Digest from "./Digest.ts"
import * as EncodedPrompt from "./EncodedPrompt.ts"
import * as Entry from "./Entry.ts"
import { StoreError, type StoredEntry, type StoredSnapshot } from "./SessionStore.ts"

const decodeInput = Schema.decodeUnknownSync(Input)
const decodeMessage = Schema.decodeUnknownSync(Prompt.Message)

/** By type: the union of them all tries one after the other. */
const events: ReadonlyMap<unknown, (body: unknown) => SessionEvent> = new Map(
  SessionEvent.members.flatMap((member) => {
    const decode = Schema.decodeUnknownSync<Schema.ConstraintDecoder<SessionEvent>>(member)
    return member.fields.type.literals.map((type) => [type, decode] as const)
  })
)

const decodeEvent = (body: unknown): SessionEvent => {
  const type = Predicate.hasProperty(body, "type") ? body.type : undefined
  const decode = events.get(type)
  if (decode === undefined) throw new Error(`an event of the unknown type ${String(type)}`)
  return decode(body)
}

const bodyOf = (entry: Entry.Committed): unknown => {
  if (!Entry.isRecord(entry)) return entry
  switch (entry.record) {
    case "input":
      return { ...entry, input: EncodedPrompt.ofInput(entry.input) }
    case "message":
      return { ...entry, message: EncodedPrompt.ofMessage(entry.message) }
    case "write-begun":
    case "resumed":
    case "decision":
      return entry
  }
}

/**
 * An entry as it is stored at a position.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encode = (entry: Entry.Committed, position: number): StoredEntry => {
  const isRecord = Entry.isRecord(entry)
  return {
    position,
    sequence: isRecord ? null : entry.sequence,
    kind: isRecord ? entry.record : "event",
    inputId: isRecord && entry.record === "input" ? entry.input.id : null,
    body: bodyOf(entry)
  }
}

const corrupt = (detail: string): StoreError => new StoreError({ reason: { _tag: "Corrupt", detail } })

const parse = ({ body, kind }: StoredEntry): Entry.Committed => {
  switch (kind) {
    case "event":
      return decodeEvent(body)
    case "input": {
      const record = body as Entry.InputRecord
      return { ...record, input: decodeInput(record.input) }
    }
    case "message": {
      const record = body as Entry.MessageRecord
      return { ...record, message: decodeMessage(record.message) }
    }
    case "write-begun":
    case "resumed":
    case "decision":
      // Written by this codec, and what a store gives back is what was written.
      return body as Entry.Record
    default:
      throw new Error(`an entry of the unknown kind ${kind}`)
  }
}

/**
 * A stored entry as it was committed, or `Corrupt` with what is wrong.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decode = (stored: StoredEntry): Effect.Effect<Entry.Committed, StoreError> =>
  Effect.try({
    try: () => parse(stored),
    catch: (error) => corrupt(`entry ${stored.position}: ${error instanceof Error ? error.message : String(error)}`)
  })

/**
 * A snapshot as it is stored.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodeSnapshot = (position: number, snapshot: object): StoredSnapshot => {
  const body = JSON.stringify(snapshot)
  return { position, body, checksum: Digest.short(`${position} snapshot ${body}`) }
}

/**
 * A stored snapshot's JSON, or `Corrupt`.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeSnapshot = ({ body, checksum, position }: StoredSnapshot): Effect.Effect<unknown, StoreError> =>
  Digest.short(`${position} snapshot ${body}`) === checksum
    ? Effect.try({ try: () => JSON.parse(body) as unknown, catch: () => corrupt("the snapshot is not JSON") })
    : Effect.fail(corrupt("the snapshot was changed after it was written"))
