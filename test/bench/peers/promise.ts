/** How a generation that runs in a promise is handed to a cell. */
import { failed, type Outcome } from "../adapter.ts"

/** What a promise comes to, when an abort makes it reject. */
export const settled = (running: Promise<unknown>, signal: AbortSignal): Promise<Outcome> =>
  running.then(
    () => (signal.aborted ? "cancelled" : "done"),
    (error: unknown) => failed(signal.aborted, error)
  )
