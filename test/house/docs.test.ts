import { describe, expect, it } from "vitest"
import {
  brokenLinks,
  codeBlocksOf,
  documents,
  lawsOf,
  programs,
  quotable,
  readDocument,
  unfounded,
  unkeptLaws,
  unlistedLaws
} from "../support/documents.ts"
import type { Law } from "../support/documents.ts"
import { filesUnder } from "../support/sources.ts"

const document = (text: string) => ({ path: "docs/planted.md", text })

describe("README.md and docs/", () => {
  it("quote only code that exists", () => expect(unfounded(documents().flatMap(codeBlocksOf), quotable())).toEqual([]))
  it("link only to what exists", () => expect(documents().flatMap(brokenLinks)).toEqual([]))
})

describe("docs/laws.md", () => {
  const laws = () => lawsOf(readDocument("docs/laws.md"))

  it("lists laws", () => expect(laws()).not.toEqual([]))

  it("links each law to a test that names it", () =>
    expect(unkeptLaws(laws(), (path) => readDocument(path).text)).toEqual([]))

  it("lists every law that the code and its tests name", () => {
    const files = [...filesUnder("src", ".ts"), ...filesUnder("test", ".ts")]
    const outside = files.filter(({ path }) => !path.startsWith("test/house/"))
    expect(unlistedLaws(laws(), outside)).toEqual([])
  })
})

describe("the rules for code blocks", () => {
  const sources = [
    { path: "examples/one.ts", text: `import { Agent } from "../src/index.ts"\n\nconst one = 1\nconst two = 2\n` },
    { path: "src/domain/A.ts", text: "export const a = 10\n" }
  ]
  const check = (text: string) => unfounded(codeBlocksOf(document(text)), sources)
  const block = (text: string, marker = "") => `${marker}\n\`\`\`ts\n${text}\n\`\`\`\n`

  it.for([
    block("const one = 1\n  const two = 2"),
    block(`import { Agent } from "midcourse"\n\nconst one = 1`),
    block("export const a = 10", "<!-- src/domain/A.ts -->"),
    block(`import { Agent } from "midcourse"\n// ...\nconst two = 2`),
    block("anything", "<!-- compile -->"),
    "```sh\nnpm test\n```\n"
  ])("let %j pass", (text) => expect(check(text)).toEqual([]))

  it.for([
    block("const three = 3"),
    block("export const a = 1"),
    block("const one = 1", "<!-- src/domain/A.ts -->"),
    block("const one = 1", "<!-- examples/gone.ts -->"),
    block("const two = 2\n// ...\nconst one = 1"),
    block("anything", "<!-- compile -->\n\nOther words."),
    block(""),
    "```typescript\nconst one = 1\n```\n",
    "- item\n\n  ```ts\n  const three = 3\n  ```\n"
  ])("refuse %j", (text) => expect(check(text)).toHaveLength(1))

  it("find the programs to compile", () =>
    expect(programs(codeBlocksOf(document(block("a", "<!-- compile -->") + block("b"))))).toMatchObject([
      { text: "a" }
    ]))
})

describe("the rules for links", () => {
  it.for(["[a](../package.json)", "[a](https://example.com/x)", "`[a](gone.md)`", "# A `b`, c!\n[a](#a-b-c)"])(
    "let %j pass",
    (text) => expect(brokenLinks(document(text))).toEqual([])
  )

  it.for(["[a](gone.md)", "![a](gone.png)", "[a]: gone.md", `<a href="gone.md">`, "[a](#gone)", "[a](../../out.md)"])(
    "refuse %j",
    (text) => expect(brokenLinks(document(text))).toHaveLength(1)
  )
})

describe("the rules for laws", () => {
  const self = "../test/house/docs.test.ts"

  it.for([
    `- **A1** words\n  [test](${self})`,
    `| A1 | words | [test](${self}) |`,
    `### L-A1 words\n\n[test](${self})`
  ])("read %j", (text) => expect(lawsOf(document(text))).toEqual([{ id: "A1", tests: ["test/house/docs.test.ts"] }]))

  it("give a link to the law it stands under", () =>
    expect(lawsOf(document(`- **A1** words\n- **A2** words [test](${self})\n\n## B\n\n[test](${self})`))).toEqual([
      { id: "A1", tests: [] },
      { id: "A2", tests: ["test/house/docs.test.ts"] }
    ]))

  const law: Law = { id: "A1", tests: ["a.test.ts"] }

  it("let a law pass whose test names it", () => expect(unkeptLaws([law], () => `it("L-A1 ...`)).toEqual([]))

  it("refuse a test that names another law", () => expect(unkeptLaws([law], () => `it("L-A10 ...`)).toHaveLength(1))

  it("refuse a law without a test, or listed twice", () => {
    expect(unkeptLaws([{ id: "A1", tests: [] }], () => "L-A1")).toHaveLength(1)
    expect(unkeptLaws([law, law], () => "L-A1")).toEqual(["A1 is listed twice"])
  })

  it("refuse a law that is named and not listed", () =>
    expect(unlistedLaws([law], [{ path: "a.test.ts", text: "L-A1 L-A2 L-A2" }])).toEqual(["a.test.ts names L-A2"]))
})
