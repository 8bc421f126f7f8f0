/** The one shape every peer is driven through: the same provider, the same tool, the same ways to steer and to cancel. */

/** What the provider answers to a request: a call of the one tool, a last word, or so many deltas of text and then the end. */
export type Answer = "tool" | "done" | { readonly deltas: number }

/**
 * An answer that takes time. The signal is the one the peer hands its provider with the request, on Effect the one of the
 * interruption; only the plain loop, which calls its provider itself, hands on its host's.
 */
export type Waiting = (signal: AbortSignal | undefined) => Promise<Answer>

/** What one generation is given to do. */
export interface Work {
  /** Asked at every request, with its messages: answers at once, or says what to wait for. */
  readonly provider: (messages: ReadonlyArray<unknown>) => Answer | Waiting
  /** Asked in every tool call. A text is steered from in there, the way the peer's hosts do, before the call returns. */
  readonly tool: () => string | undefined
  /** Whether the peer's way of steering is to be set up, where that costs something. */
  readonly steerable?: boolean
  /** Live subscribers, for a peer that has them; one unless said. */
  readonly subscribers?: number
  /** Called by every subscriber with every delta of text. */
  readonly onDelta?: (text: string) => void
}

export type Outcome = "done" | "cancelled" | `failed: ${string}`

/** A generation that runs. */
export interface Running {
  /** The end, as soon as the host knows it. */
  readonly done: Promise<Outcome>
  /** When what the host tidies up after the end is done too, where there is something. */
  readonly settled?: Promise<void>
  /** Steers from outside, by a plain call; a promise is a receipt that takes time. */
  readonly steer: (text: string) => void | Promise<void>
  /** Steers from inside the peer's own world, one after the other, where that is not the plain call. */
  readonly steerAll?: (texts: ReadonlyArray<string>) => Promise<void>
  readonly cancel: () => void
}

export interface Adapter {
  readonly start: (work: Work) => Running
  /** Removes what the adapter keeps outside the process. */
  readonly close?: () => Promise<void>
}

/** What a peer answered with, as an outcome: an error is a cancellation if that was asked for. */
export const failed = (cancelled: boolean, error: unknown): Outcome =>
  cancelled ? "cancelled" : `failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
