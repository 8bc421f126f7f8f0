import { describe, expect, it } from "vitest"
import { knowsProcess } from "../support/architecture.ts"
import { filesUnder, impuritiesOf } from "../support/sources.ts"

const files = filesUnder("src", ".ts")

const silenced = (text: string): ReadonlyArray<string> =>
  text.match(/(?:oxlint|eslint)-disable|@ts-(?:ignore|nocheck|expect-error)/g) ?? []

describe("below host and testing", () => {
  it("no file reads the clock through Date, or keeps state of its own", () =>
    expect(files.filter((file) => !knowsProcess(file)).flatMap(impuritiesOf)).toEqual([]))

  it("no file silences a gate", () =>
    expect(
      files
        .filter((file) => !knowsProcess(file))
        .flatMap(({ path, text }) => silenced(text).map((directive) => `${path}: ${directive}`))
    ).toEqual([]))
})

describe("the tests", () => {
  const left = /\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo|fails)\b/g

  it("are all run, and none is expected to fail", () =>
    expect(
      filesUnder("test", ".ts").flatMap(({ path, text }) => (text.match(left) ?? []).map((what) => `${path}: ${what}`))
    ).toEqual([]))
})

describe("the rules", () => {
  it.for(["const a = new Date()", "const a = Date()", "let a = 1", "export let a = 1", "var a = 1"])(
    "refuse %s",
    (text) => expect(impuritiesOf({ path: "src/domain/A.ts", text })).toHaveLength(1)
  )

  it.for(["const a = new Date(0)", "const f = () => { let a = 1; return a }"])("let %s pass", (text) =>
    expect(impuritiesOf({ path: "src/domain/A.ts", text })).toEqual([])
  )
})
