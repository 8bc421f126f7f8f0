import { describe, expect, it } from "vitest"
import { cycles, emptyNames, foreignPackages, oversized, strays, wrongArrows } from "../support/architecture.ts"
import { filesUnder } from "../support/sources.ts"
import type { SourceFile } from "../support/sources.ts"

const files = filesUnder("src", ".ts")

const planted = (sources: Readonly<Record<string, string>>): ReadonlyArray<SourceFile> =>
  Object.entries(sources).map(([path, text]) => ({ path: `src/${path}`, text }))

describe("the rooms of src/", () => {
  it("hold something", () => expect(files).not.toEqual([]))
  it("hold every file", () => expect(strays(files)).toEqual([]))
  it("import along the arrows only", () => expect(wrongArrows(files)).toEqual([]))
  it("import no package but effect, outside host, store and testing", () => expect(foreignPackages(files)).toEqual([]))
  it("have no cycle between files", () => expect(cycles(files)).toEqual([]))
  it("have no file of more than 400 lines of code", () => expect(oversized(files)).toEqual([]))
  it("give files names that say what they hold", () => expect(emptyNames(files)).toEqual([]))
})

describe("the rules", () => {
  const arrow = (from: string, to: string) =>
    wrongArrows(planted({ [from]: `import "${"../".repeat(from.split("/").length - 1)}${to}"`, [to]: "" }))

  it.for([
    ["ledger/A.ts", "domain/B.ts"],
    ["runtime/A.ts", "domain/B.ts"],
    ["host/cli/A.ts", "index.ts"],
    ["host/A.ts", "boundary/B.ts"],
    ["store/A.ts", "ledger/B.ts"],
    ["testing/A.ts", "runtime/B.ts"]
  ] as const)("let %s import %s", ([from, to]) => expect(arrow(from, to)).toEqual([]))

  it.for([
    ["domain/A.ts", "ledger/B.ts"],
    ["engine/A.ts", "runtime/B.ts"],
    ["runtime/A.ts", "index.ts"],
    ["runtime/A.ts", "store/B.ts"],
    ["runtime/A.ts", "testing/B.ts"],
    ["store/A.ts", "boundary/B.ts"],
    ["host/A.ts", "store/B.ts"],
    ["host/A.ts", "testing/B.ts"],
    ["testing/A.ts", "host/B.ts"],
    ["testing/A.ts", "index.ts"]
  ] as const)("keep %s from importing %s", ([from, to]) => expect(arrow(from, to)).toHaveLength(1))

  it("let src/index.ts export SqlSessionStore and nothing else of store", () => {
    const index = planted({
      "index.ts": `export * as S from "./store/SqlSessionStore.ts"\nexport * as M from "./store/Migrations.ts"`,
      "store/SqlSessionStore.ts": "",
      "store/Migrations.ts": ""
    })
    expect(wrongArrows(index)).toEqual(["src/index.ts imports src/store/Migrations.ts: index may not see store"])
  })

  it.for([
    `import type { B } from "../ledger/B.ts"`,
    `export type * from "../ledger/B.ts"`,
    `export { b } from "../ledger/B.ts"`,
    `export const b = import("../ledger/B.ts")`,
    `export type B = import("../ledger/B.ts").B`
  ])("see through %s", (text) =>
    expect(wrongArrows(planted({ "domain/A.ts": text, "ledger/B.ts": "" }))).toHaveLength(1)
  )

  it("are blind to what a comment or a string says", () => {
    const text = `// import "../ledger/B.ts"\nexport const a = 'import "../ledger/B.ts"'`
    expect(wrongArrows(planted({ "domain/A.ts": text, "ledger/B.ts": "" }))).toEqual([])
  })

  it("refuse an import that leaves src/", () =>
    expect(wrongArrows(planted({ "domain/A.ts": `import "../../test/a.ts"` }))).toHaveLength(1))

  it("refuse a file in no room", () => expect(strays(planted({ "Lost.ts": "", "attic/A.ts": "" }))).toHaveLength(2))

  it("refuse another package below host", () => {
    const text = `import "node:fs"\nimport "effect"\nimport "effect/Schema"`
    expect(foreignPackages(planted({ "domain/A.ts": text, "host/A.ts": text, "store/A.ts": text }))).toEqual([
      "src/domain/A.ts imports node:fs"
    ])
  })

  it("find a cycle made of type imports", () => {
    const loop = planted({
      "domain/A.ts": `import type { B } from "./B.ts"`,
      "domain/B.ts": `import type { C } from "./C.ts"`,
      "domain/C.ts": `import type { A } from "./A.ts"`
    })
    expect(cycles(loop)).toEqual(["src/domain/A.ts -> src/domain/B.ts -> src/domain/C.ts -> src/domain/A.ts"])
  })

  it("count lines of code, not comments or blanks", () => {
    const comments = "/**\n * words\n */\n// words\n\n".repeat(100)
    const code = (lines: number) => planted({ "domain/A.ts": comments + "void 0\n".repeat(lines) })
    expect(oversized(code(400))).toEqual([])
    expect(oversized(code(401))).toHaveLength(1)
  })

  it("refuse names that say nothing", () =>
    expect(emptyNames(planted({ "domain/utils.ts": "", "domain/Common.ts": "", "domain/Input.ts": "" }))).toHaveLength(
      2
    ))
})
