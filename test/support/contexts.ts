/** Contexts as a host might keep them: slow, failing or in doubt on command, with what was written and asked recorded. */
import { Effect } from "effect"
import type { Prompt } from "effect/ai"
import { ContextStore, type Ids, Input } from "../../src/index.ts"

export interface Behaviour {
  /** Replaces a write; `land` is what it would have done. `id` is the first message's input, if it is an input's. */
  readonly append?: (land: Effect.Effect<void>, id: string | undefined) => Effect.Effect<void, unknown>
  /** Replaces a read; `all` is everything that has landed, `read` counts from 1. */
  readonly messages?: (
    all: ReadonlyArray<Prompt.Message>,
    read: number
  ) => Effect.Effect<ReadonlyArray<Prompt.Message>, unknown>
  /** Replaces the answer; `present` is the truth. */
  readonly has?: (id: Ids.InputId, present: boolean) => Effect.Effect<ContextStore.Presence, unknown>
}

export interface HostContext {
  readonly service: ContextStore.Service
  /** Ids of the inputs that have landed, in order. */
  readonly landed: () => ReadonlyArray<string>
  /** Ids of the inputs whose write was begun, in order. */
  readonly begun: ReadonlyArray<string>
  /** Ids that were asked for, in order. */
  readonly asked: ReadonlyArray<string>
}

const idsOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> =>
  messages.flatMap((message) => Input.idOfMessage(message) ?? [])

export const make = (behaviour: Behaviour = {}): HostContext => {
  const all: Array<Prompt.Message> = []
  const begun: Array<string> = []
  const asked: Array<string> = []
  let reads = 0
  return {
    landed: () => idsOf(all),
    begun,
    asked,
    service: {
      append: (messages) => {
        const ids = idsOf(messages)
        begun.push(...ids)
        const land = Effect.sync(() => void all.push(...messages))
        return behaviour.append === undefined ? land : behaviour.append(land, ids[0])
      },
      messages: Effect.suspend(() => {
        reads++
        return behaviour.messages === undefined ? Effect.succeed([...all]) : behaviour.messages([...all], reads)
      }),
      has: (id) => {
        asked.push(id)
        const present = idsOf(all).includes(id)
        return behaviour.has === undefined ? Effect.succeed(present ? "present" : "absent") : behaviour.has(id, present)
      }
    }
  }
}

/** A context in which the write of this input never ends, and that cannot tell what it holds. */
export const doubtful = (id: string): HostContext =>
  make({
    append: (land, other) => (other === id ? Effect.never : land),
    has: () => Effect.succeed("cannot-tell")
  })

/** Sessions opened in the effect keep their conversation in this context. */
export const keptIn =
  (context: HostContext) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, ContextStore.ContextStore, context.service)
