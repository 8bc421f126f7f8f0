/**
 * Where pieces go. On a terminal the line being typed stays whole at the bottom: what is said while a person types is
 * written above it, and a line that comes in the middle of a sentence above the sentence. Anywhere else the pieces are
 * written one after the other.
 *
 * @since 0.1.0
 */
import * as Style from "./Style.ts"
import type { Piece } from "./View.ts"

/** @category models @since 0.1.0 */
export interface Screen {
  readonly show: (piece: Piece) => void
  /** Ends an open line; nothing is shown after it but whole lines. */
  readonly end: () => void
}

/**
 * Pieces one after the other. After another screen has ended in the middle of a sentence, `goesOn` says so.
 *
 * @category constructors
 * @since 0.1.0
 */
export const sequential = (write: (text: string) => void, goesOn = false): Screen => {
  let line: "none" | "open" | "broken" = goesOn ? "broken" : "none"
  const end = (): void => {
    if (line === "open") write("\n")
    line = "none"
  }
  return {
    end,
    show: (piece) => {
      switch (piece._tag) {
        case "Line": {
          const broken = line !== "none"
          end()
          if (broken) line = "broken"
          return write(`${piece.text}\n`)
        }
        case "Text":
          // A sentence that a line came into goes on below it.
          write(line === "broken" ? `  ${piece.text.trimStart()}` : piece.text)
          line = "open"
          return
        case "Close":
          return end()
        case "Finish":
          write(line === "open" ? `${piece.rest}\n` : `${piece.whole}\n`)
          line = "none"
      }
    }
  }
}

/**
 * The part of a line editor this needs: where its cursor is, counted from the first row of the prompt, and to be drawn again.
 *
 * @category models
 * @since 0.1.0
 */
export interface Editor {
  readonly row: () => number
  readonly redraw: () => void
}

/** @category models @since 0.1.0 */
export interface Interactive extends Screen {
  /** A line has been entered: the cursor is below it, on a fresh row. */
  readonly entered: (line: string) => void
}

/**
 * Pieces above the line of an editor. `columns` is asked each time, as a window may change its size.
 *
 * @category constructors
 * @since 0.1.0
 */
export const above = (options: {
  readonly write: (text: string) => void
  readonly columns: () => number
  readonly editor: Editor
  readonly prompt: string
}): Interactive => {
  const { columns, editor, prompt, write } = options
  let open = ""
  const rowsOf = (text: string): number =>
    text === "" ? 0 : Math.max(1, Math.ceil(Style.widthOf(text) / Math.max(1, columns())))

  /** Replaces the open line and the editor's by whole lines, a new open line and the editor's. */
  const replace = (committed: ReadonlyArray<string>, next: string, rows: number): void => {
    write(`${up(rows)}\r\u001b[J${[...committed, ...(next === "" ? [] : [next])].map(ended).join("")}`)
    open = next
    editor.redraw()
  }
  const update = (committed: ReadonlyArray<string>, next: string): void =>
    replace(committed, next, editor.row() + rowsOf(open))

  return {
    show: (piece) => {
      switch (piece._tag) {
        case "Line":
          return update([piece.text], open)
        case "Text": {
          const [committed, next] = wrap(open + piece.text, columns() - 1)
          return update(committed, next)
        }
        case "Close":
          return open === "" ? undefined : update([open], "")
        case "Finish":
          return update([open === "" ? piece.whole : open + piece.rest], "")
      }
    },
    end: () => {
      write(`${up(editor.row() + rowsOf(open))}\r\u001b[J${open === "" ? "" : ended(open)}`)
      open = ""
    },
    entered: (line) => {
      const typed = Math.floor(Style.widthOf(prompt + line) / Math.max(1, columns())) + 1
      replace(line.trim() === "" ? [] : [prompt + line], open, typed + rowsOf(open))
    }
  }
}

const ended = (line: string): string => `${line}\n`

const up = (rows: number): string => (rows > 0 ? `\u001b[${rows}A` : "")

/**
 * Breaks a line at spaces into those that are full and the rest; what begins with spaces goes on under them. Words too long
 * for a line are cut. A line with colours is left as it is.
 *
 * @category wrapping
 * @since 0.1.0
 */
export const wrap = (line: string, width: number): readonly [full: ReadonlyArray<string>, rest: string] => {
  const full: Array<string> = []
  const indent = /^ */.exec(line)?.[0] ?? ""
  let rest = line
  while (width > indent.length && !rest.includes("\u001b") && Style.widthOf(rest) > width) {
    const fits = fitting(rest, width)
    const space = rest.lastIndexOf(" ", fits)
    const at = space > indent.length ? space : fits
    full.push(rest.slice(0, at).trimEnd())
    rest = `${indent}${rest.slice(at).trimStart()}`
  }
  return [full, rest]
}

/** How many characters from the start fit the width: one at least after the indent, so that wrapping ends. */
const fitting = (line: string, width: number): number => {
  const least = (/^ */.exec(line)?.[0] ?? "").length + 1
  let fits = 0
  for (const character of line) {
    if (fits >= least && Style.widthOf(line.slice(0, fits) + character) > width) break
    fits += character.length
  }
  return fits
}
