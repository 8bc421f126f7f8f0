/** What a host, a provider and tools may do to a session, as data: sequences of it are generated, run and shrunk. */
import type { ResumeCondition } from "../../src/index.ts"

export type Intent = "prompt" | "steer" | "follow-up" | "collect"
/** A generation as a caller may mean it: the live one (or the last that ended), the one before, or one that never was. */
export type Which = "live" | "ended" | "never"
export type Tool = "look" | "edit" | "send" | "nope"
export type Scope = ReadonlyArray<string>

export interface Submission {
  readonly id: string
  readonly intent: Intent
  readonly text: string
  readonly scope?: Scope
  readonly route?: string
}

/** What a repeat changes of the input it repeats. */
export type Change = "nothing" | "text" | "intent" | "scope" | "anchor" | "route"

/** An input as it was sent, and the generation it was sent to. */
export interface Tried<Anchor> {
  readonly input: Submission
  readonly anchor: Anchor | null
}

/** `path` says how the call fares: see `Behaviour` in the reference. */
export interface CallSpec {
  readonly tool: Tool
  readonly path: string
}

export type Until = ResumeCondition.ResumeCondition

export type Command =
  | { readonly do: "submit"; readonly input: Submission; readonly anchor?: Which }
  | { readonly do: "repeat"; readonly id: string; readonly change: Change }
  | { readonly do: "cancel" | "stop"; readonly which: Which; readonly followUps?: "hold" }
  | { readonly do: "pause"; readonly until: Until; readonly scope?: Scope }
  | { readonly do: "resume"; readonly signal?: string }
  /** Of the calls ever asked about, the newest that waits, or the `at`th. */
  | { readonly do: "decide"; readonly allow: boolean; readonly at?: number }
  | { readonly do: "withdraw"; readonly id: string }
  | { readonly do: "promote"; readonly id: string; readonly which: Which; readonly as: string }
  | { readonly do: "answer"; readonly with: Answer }
  /** One of the running calls ends. */
  | { readonly do: "tool"; readonly at: number; readonly how: "end" | "fail" | "die" }
  /** The next write of an input into a context of the host's hangs, and then lands or fails. */
  | { readonly do: "jam" }
  | { readonly do: "write"; readonly how: "land" | "fail" }
  | { readonly do: "tick"; readonly millis: number }
  /** From inside a listener, at the next event of that kind. */
  | { readonly do: "listen"; readonly on: "request" | "tool" | "end"; readonly act: Command }
  | { readonly do: "close" }

/** What the provider makes of the request that is under way. `hang` delivers its parts and then nothing more. */
export type Answer =
  | { readonly say: "text" | "pause" | "filter" | "no-finish" }
  | { readonly say: "calls" | "length" | "hang"; readonly calls: ReadonlyArray<CallSpec>; readonly repeats?: true }
  | { readonly say: "fail"; readonly retryable: boolean; readonly calls: ReadonlyArray<CallSpec> }

/** The settings one sequence runs under. */
export interface Setting {
  readonly concurrency: 1 | 2
  readonly onCorrection: "withhold" | "finish-batch"
  readonly maxRequests: number
  readonly steering: "request_boundary" | "unavailable"
  readonly identities: number
  readonly pendingSteering: number
  readonly queued: number
  readonly pauses: number
  /** Where the conversation is kept: in the journal, or by a host that can or cannot tell what it holds. */
  readonly store: "journal" | "tells" | "cannot-tell"
  /** Milliseconds. */
  readonly collectDebounce: number
  readonly collectCap: number
}

/** Milliseconds: the delay before a retry, of which there is one; and how long an interrupted call is waited for. */
export const retryDelay = 1000
export const retries = 1
export const grace = 5000

export interface Sequence {
  readonly setting: Setting
  readonly commands: ReadonlyArray<Command>
}

/** One line of a report, and JSON enough to run it again. */
export const describe = (command: Command): string => JSON.stringify(command)

/** What a repeat sends of what was tried, if there is anything; `live` is the anchor of an input that had none. */
export const repeated = <Anchor>(
  change: Change,
  tried: Tried<Anchor> | undefined,
  live: () => Anchor
): Tried<Anchor> | undefined => {
  if (tried === undefined) return undefined
  const { anchor, input } = tried
  switch (change) {
    case "nothing":
      return tried
    case "text":
      return { anchor, input: { ...input, text: `${input.text}!` } }
    case "intent":
      return { anchor: null, input: { ...input, intent: input.intent === "collect" ? "follow-up" : "collect" } }
    case "scope":
      return { anchor, input: { ...input, scope: [...(input.scope ?? []), "look", "x"] } }
    case "route":
      return { anchor, input: { ...input, route: `${input.route ?? ""}x` } }
    case "anchor":
      return input.intent === "steer" ? { input, anchor: anchor === null ? live() : null } : undefined
  }
}
