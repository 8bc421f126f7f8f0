/**
 * The program's own words to a typed line and at the end: a refusal with what to do about it, the answer to a control, a
 * status, and the table of every input with what became of it. Pure.
 *
 * @since 0.1.0
 */
import type { SessionStatus } from "../../domain/Generation.ts"
import type { GenerationId } from "../../domain/Ids.ts"
import type { ControlReceipt, Receipt, Refusal } from "../../domain/Receipt.ts"
import * as Style from "./Style.ts"
import { note, runOf } from "./View.ts"

type Runs = ReadonlyArray<GenerationId>

/**
 * An input as the program submitted it, and its receipt as it stands.
 *
 * @category models
 * @since 0.1.0
 */
export interface Row {
  readonly id: string
  readonly kind: string
  readonly text: string
  readonly receipt: Receipt
}

/**
 * Says that an input was refused, why, and what would be accepted.
 *
 * @category rendering
 * @since 0.1.0
 */
export const refused = (palette: Style.Palette, runs: Runs, receipt: Refusal): string =>
  note(receipt.inputId, palette.bad(`refused (${receipt.reason})`) + `: ${remedy(runs, receipt)}`)

const remedy = (runs: Runs, { actual, detail, generationId, reason }: Refusal): string => {
  switch (reason) {
    case "no-active-generation":
      return generationId === null
        ? "nothing is running; /prompt TEXT starts a run"
        : `${runOf({ runs }, generationId)} has ended and nothing was started; /prompt TEXT starts a new run`
    case "admission-closed":
      return "the run is ending and takes nothing more; /follow TEXT is for after it"
    case "generation-mismatch":
      return `${typeof actual === "string" ? runOf({ runs }, actual) : "nothing"} is running now`
    case "busy":
      return "a run is going on; a line without a command corrects it, /follow TEXT is for after it"
    case "paused":
      return "the session is paused"
    case "session-closed":
      return "the session is closed"
    case "unavailable":
      return "this session takes no corrections while it runs"
    case "identity-conflict":
    case "identities-exhausted":
    case "queue-full":
    case "invalid-input":
    case "storage-unavailable":
    case "not-queued":
    case "unknown-id":
      return detail ?? "nothing was done"
  }
}

/**
 * Says that a control was refused and why. An accepted one is told by its event.
 *
 * @category rendering
 * @since 0.1.0
 */
export const controlled = (
  palette: Style.Palette,
  runs: Runs,
  what: string,
  receipt: ControlReceipt
): string | undefined => {
  if (receipt.accepted) return undefined
  const why = `${what} refused (${receipt.reason})`
  return palette.bad(typeof receipt.actual === "string" ? `${why}; ${runOf({ runs }, receipt.actual)} is running` : why)
}

/**
 * A receipt's disposition, with the reason of one that has one.
 *
 * @category formatting
 * @since 0.1.0
 */
export const disposition = (receipt: Receipt): string =>
  receipt.reason === undefined ? receipt.disposition : `${receipt.disposition} (${receipt.reason})`

/**
 * Where an input went: the first request that carried it, and its run when there was more than one.
 *
 * @category formatting
 * @since 0.1.0
 */
export const carrier = (runs: Runs, receipt: Receipt): string => {
  if (!receipt.accepted || receipt.request === undefined) return "-"
  const request = `request ${receipt.request}`
  return runs.length > 1 && receipt.generationId !== null
    ? `${runOf({ runs }, receipt.generationId)}, ${request}`
    : request
}

/**
 * Every input, in the order it was given: id, kind, disposition, the request that carried it, text.
 *
 * @category rendering
 * @since 0.1.0
 */
export const table = (palette: Style.Palette, runs: Runs, rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const cells = rows.map((row) => [row.id, row.kind, disposition(row.receipt), carrier(runs, row.receipt)])
  const head = ["input", "kind", "disposition", "carried by"]
  const widths = head.map((title, column) => Math.max(title.length, ...cells.map((cell) => cell[column]?.length ?? 0)))
  const align = (cell: ReadonlyArray<string>): string =>
    cell.map((text, column) => text.padEnd(widths[column] ?? 0)).join("  ")
  const paints = { applied: palette.good, queued: palette.waiting, held: palette.waiting }
  return [
    palette.strong(`${align(head)}  text`),
    ...rows.map(({ receipt, text }, index) => {
      const kind = receipt.disposition
      const paint = kind === "unknown" || kind === "refused" ? palette.bad : paints[kind]
      return `${paint(align(cells[index] ?? []))}  ${Style.clip(Style.clean(text), 72)}`
    })
  ]
}

/**
 * A session as it stands.
 *
 * @category rendering
 * @since 0.1.0
 */
export const status = (palette: Style.Palette, runs: Runs, now: SessionStatus): ReadonlyArray<string> => {
  const { generation, identities, queuedInputIds } = now
  const running =
    generation === null
      ? "nothing is running"
      : `${runOf({ runs }, generation.id)} is running, request ${generation.request} (${phaseOf(generation.phase)})`
  const pending = generation === null ? [] : generation.pendingInputIds
  return [
    palette.strong(running),
    `  corrections pending: ${pending.join(", ") || "none"}; waiting for a later run: ${queuedInputIds.join(", ") || "none"}`,
    palette.dim(`  ${identities.used} of ${identities.limit} input ids used; sequence ${now.sequence}`)
  ]
}

const phaseOf = (phase: NonNullable<SessionStatus["generation"]>["phase"]): string => {
  switch (phase._tag) {
    case "Starting":
      return "starting"
    case "Delivering":
      return "delivering inputs"
    case "Preparing":
      return "preparing"
    case "Requesting":
      return "the model is answering"
    case "RunningTools":
      return "tools are running"
    case "BackingOff":
      return "waiting to try again"
    case "Checkpointing":
      return "saving a checkpoint"
    case "Paused":
      return "paused"
    case "Ending":
      return `ending as ${phase.outcome}`
  }
}
