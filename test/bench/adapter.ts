/** The one shape every peer is driven through: the same provider, the same tool, the same ways to steer and to cancel. */

/** What the provider answers to a request: a call of the one tool, a last word, or so many deltas of text and then the end. */
export type Answer = "tool" | "done" | { readonly deltas: number }

/** What one generation is given to do. */
export interface Work {
  /** Asked at every request, with its messages. The signal is the peer's own, where it hands one to its provider. */
  readonly provider: (messages: ReadonlyArray<unknown>, signal?: AbortSignal) => Answer | Promise<Answer>
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
  /** The end, as soon as the host knows it; what the host then tidies up is done in the next turn of the event loop. */
  readonly done: Promise<Outcome>
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
