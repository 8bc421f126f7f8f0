import { assert, describe, it } from "@effect/vitest"
import * as Screen from "../../src/host/cli/Screen.ts"
import { Piece } from "../../src/host/cli/View.ts"

const columns = 20
const prompt = "> "

/** As much of a terminal as is written to it: text that wraps, `\r`, `\n`, up, and wiping down. */
const terminal = () => {
  const rows: Array<string> = [""]
  let row = 0
  let column = 0
  const put = (character: string): void => {
    if (column === columns) line()
    rows[row] = `${(rows[row] ?? "").padEnd(column).slice(0, column)}${character}${(rows[row] ?? "").slice(column + 1)}`
    column++
  }
  const line = (): void => {
    row++
    column = 0
    rows[row] ??= ""
  }
  const write = (text: string): void => {
    for (const token of text.match(/\u001b\[\d*[A-Z]|[^]/gu) ?? []) {
      const up = /^\u001b\[(\d*)A$/.exec(token)
      if (up !== null) row = Math.max(0, row - Number(up[1]))
      else if (token === "\u001b[J") rows.splice(row, rows.length, (rows[row] ?? "").slice(0, column))
      else if (token === "\r") column = 0
      else if (token === "\n") line()
      else put(token)
    }
  }
  return { write, rows: () => rows.map((text) => text.trimEnd()) }
}

/** A screen above an editor in which `typed` is being typed. */
const open = () => {
  const { rows, write } = terminal()
  let typed = ""
  const screen = Screen.above({
    write,
    columns: () => columns,
    prompt,
    editor: {
      row: () => Math.floor((prompt + typed).length / columns),
      redraw: () => write(`\r\u001b[J${prompt}${typed}`)
    }
  })
  write(prompt)
  return {
    rows,
    show: (...pieces: ReadonlyArray<Piece>) => pieces.forEach(screen.show),
    type: (text: string) => {
      typed += text
      write(text)
    },
    enter: () => {
      const line = typed
      typed = ""
      write("\n")
      screen.entered(line)
    },
    end: screen.end
  }
}

const text = (text: string) => Piece.Text({ text })
const line = (text: string) => Piece.Line({ text })

describe("above the line being typed", () => {
  it("a sentence grows while the line stays whole", () => {
    const at = open()
    at.type("skip dr")
    at.show(text("  I list"))
    assert.deepStrictEqual(at.rows(), ["  I list", "> skip dr"])
    at.type("afts")
    at.show(text(" it."), Piece.Close())
    assert.deepStrictEqual(at.rows(), ["  I list it.", "> skip drafts"])
  })

  it("a line that comes into a sentence stands above it", () => {
    const at = open()
    at.show(text("  I list"), line("* in-2 queued"), text(" it."))
    assert.deepStrictEqual(at.rows(), ["* in-2 queued", "  I list it.", ">"])
  })

  it("an entered line stays to be read, and the sentence goes on", () => {
    const at = open()
    at.show(text("  I list"))
    at.type("skip drafts")
    at.enter()
    at.show(text(" it."))
    assert.deepStrictEqual(at.rows(), ["> skip drafts", "  I list it.", ">"])
  })

  it("a blank line leaves no trace", () => {
    const at = open()
    at.show(line("one"))
    at.enter()
    assert.deepStrictEqual(at.rows(), ["one", ">"])
  })

  it("lines longer than the screen lose nothing and leave nothing behind", () => {
    const at = open()
    const typed = ["> a line that is lon", "ger than the screen", "is wide"]
    at.type("a line that is longer than the screen is wide")
    at.show(text("  a sentence that is too long for it"), line("a piece that is longer than a row"))
    const above = ["  a sentence that", "  is too long for", "a piece that is long", "er than a row"]
    assert.deepStrictEqual(at.rows(), [...above, "  it", ...typed])
    at.enter()
    assert.deepStrictEqual(at.rows(), [...above, ...typed, "  it", ">"])
  })

  it("a call's line ends where it began", () => {
    const at = open()
    at.show(text("  move a ..."), Piece.Finish({ rest: " done", whole: "  move a ... done" }))
    at.show(Piece.Finish({ rest: " done", whole: "  move b ... done" }))
    assert.deepStrictEqual(at.rows(), ["  move a ... done", "  move b ... done", ">"])
  })

  it("the end takes the prompt away and leaves the rest", () => {
    const at = open()
    at.type("half a li")
    at.show(text("  I list"))
    at.end()
    assert.deepStrictEqual(at.rows(), ["  I list", ""])
  })
})

describe("wrapping", () => {
  it("breaks at spaces, under the indent, and cuts a word that is too long", () => {
    assert.deepStrictEqual(Screen.wrap("  one two three", 10), [["  one two"], "  three"])
    assert.deepStrictEqual(Screen.wrap("  abcdefghijkl", 8), [["  abcdef"], "  ghijkl"])
    assert.deepStrictEqual(Screen.wrap("short", 10), [[], "short"])
    assert.deepStrictEqual(Screen.wrap("  日本日本", 6), [["  日本"], "  日本"])
  })

  it("ends, however narrow the screen", () => {
    for (const width of [-1, 0, 1, 2, 3]) assert.isArray(Screen.wrap("  one two three", width)[0])
  })
})
