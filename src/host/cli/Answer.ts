/**
 * The program's own words to a typed line and at the end: a refusal with what to do about it, the answer to a control, a
 * status, and the table of every input with what became of it. Pure.
 *
 * @since 0.1.0
 */
import type { SessionStatus } from "../../domain/Generation.ts"
import type { GenerationId } from "../../domain/Ids.ts"
import type { ControlReceipt, Receipt, Refusal } from "../../domain/Receipt.ts"
import * as Pauses from "./Pauses.ts"
import * as Style from "./Style.ts"
import { note, type Question, runOf } from "./View.ts"

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
export const refused = (palette: Style.Palette, runs: Runs, receipt: Refusal, what: string = receipt.inputId): string =>
  note(what, palette.bad(`refused (${receipt.reason})`) + `: ${remedy(runs, receipt)}`)

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
      return "the session is paused; /status says what for, /follow TEXT is for after it"
    case "session-closed":
      return "the session is closed"
    case "unavailable":
      return "this session takes no corrections while it runs"
    case "identity-conflict":
    case "identities-exhausted":
    case "queue-full":
    case "invalid-input":
    case "storage-unavailable":
      return detail ?? "nothing was done"
    case "not-queued":
      return "it does not wait for a run of its own, so there is nothing to bring forward"
    case "unknown-id":
      return "there is no such input"
  }
}

/**
 * Says that a control was refused and why. An accepted one is told by its event. `now` is in milliseconds since the Unix epoch.
 *
 * @category rendering
 * @since 0.1.0
 */
export const controlled = (
  palette: Style.Palette,
  runs: Runs,
  what: string,
  receipt: ControlReceipt,
  now = 0
): string | undefined => {
  if (receipt.accepted) return undefined
  const why = what === "pause" ? pauseRefusal(receipt) : reasonOf(runs, receipt, now)
  return palette.bad(`${what} refused (${receipt.reason})${why === undefined ? "" : `; ${why}`}`)
}

/** The conditions the program makes can all come: what is refused is one pause more than there may be. */
const pauseRefusal = ({ reason }: Refused): string | undefined =>
  reason === "condition-unmet" ? "there are as many pauses as there may be" : undefined

type Refused = Extract<ControlReceipt, { readonly accepted: false }>

const reasonOf = (runs: Runs, { actual, reason, unmet }: Refused, now: number): string | undefined => {
  if (typeof actual === "string") return `${runOf({ runs }, actual)} is running`
  switch (reason) {
    case "condition-unmet":
      return unmet === undefined || unmet.length === 0
        ? "nothing is paused"
        : `it still waits for ${Pauses.conditions(unmet, now)}`
    case "unknown-id":
      return "there is no such input or call"
    case "not-queued":
      return "it does not wait for a run of its own"
    case "already-decided":
      return "it waits for no answer any more"
    case "session-closed":
      return "the session is closed"
    case "storage-unavailable":
      return "it could not be written; nothing was done"
    case "no-active-generation":
    case "generation-mismatch":
    case "admission-closed":
      return undefined
  }
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
  if (rows.length === 0) return [palette.dim("no input was given this time")]
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
 * What of an earlier start of the program is still to be said: what is in no context, or may be, and what waits.
 *
 * @category rendering
 * @since 0.1.0
 */
export const leftOver = (
  palette: Style.Palette,
  rows: ReadonlyArray<Row>,
  pauses: SessionStatus["pauses"],
  now: number
): ReadonlyArray<string> => {
  const some = (title: string, of: Receipt["disposition"], paint: (text: string) => string): ReadonlyArray<string> => {
    const found = rows.filter(({ receipt }) => receipt.disposition === of)
    return found.length === 0 ? [] : [title, ...found.map((row) => `  ${lineOf(row, paint)}`)]
  }
  return [
    ...some("held: in no context, and not sent again by itself", "held", palette.waiting),
    ...some("unknown: it may have been delivered or not, and is not sent again by itself", "unknown", palette.bad),
    ...some("waiting: kept from before", "queued", palette.waiting),
    ...pauses.map((pause) => palette.waiting(pauseLine(pause, now)))
  ]
}

const lineOf = ({ id, kind, receipt, text }: Row, paint: (text: string) => string): string => {
  const what = receipt.reason === undefined ? `${receipt.disposition} (${kind})` : disposition(receipt)
  return `${note(id, paint(what))}: ${Style.clip(Style.clean(text), 100)}`
}

const pauseLine = (pause: SessionStatus["pauses"][number], now: number): string =>
  `pause${Pauses.about(pause.scope)} ${pause.effective ? "in effect" : "accepted, not yet in effect"}: it waits for ${Pauses.unmet(pause, now)}`

/**
 * A session as it stands: what runs, what is paused, asked about and waiting. `now` is in milliseconds since the Unix epoch.
 *
 * @category rendering
 * @since 0.1.0
 */
export const status = (
  palette: Style.Palette,
  known: {
    readonly runs: Runs
    readonly questions: ReadonlyArray<Question>
    readonly rows: ReadonlyArray<Row>
    readonly now: number
  },
  status: SessionStatus
): ReadonlyArray<string> => {
  const { runs } = known
  const { generation, identities, pauses, queuedInputIds } = status
  const running =
    generation === null
      ? "nothing is running"
      : `${runOf({ runs }, generation.id)} is running, request ${generation.request} (${phaseOf(generation.phase)})`
  const pending = generation === null ? [] : generation.pendingInputIds
  const textOf = (id: string): string => known.rows.find((row) => row.id === id)?.text ?? ""
  return [
    palette.strong(running),
    ...pauses.map((pause) => `  ${palette.waiting(pauseLine(pause, known.now))}`),
    ...known.questions.map(({ label, number }) => `  ${palette.waiting(`question ${number} waits`)}: ${label}`),
    `  corrections pending: ${pending.join(", ") || "none"}; waiting for a later run: ${queuedInputIds.join(", ") || "none"}`,
    ...queuedInputIds.map(
      (id) => `    ${id}: ${Style.clip(Style.clean(textOf(id)), 100)} ${palette.dim(controlsOf(id, generation))}`
    ),
    palette.dim(`  ${identities.used} of ${identities.limit} input ids used; sequence ${status.sequence}`)
  ]
}

const controlsOf = (id: string, generation: SessionStatus["generation"]): string => {
  const number = id.replace(/^in-/, "")
  return `${generation === null ? "" : `/now ${number} `}/drop ${number}`
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
