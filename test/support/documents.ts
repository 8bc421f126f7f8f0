/**
 * README.md and docs/ as the gates read them: code blocks, links and laws, each with the line it stands on.
 */
import { existsSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"
import { filesUnder, root } from "./sources.ts"
import type { SourceFile } from "./sources.ts"

/** How a block says what it is: an HTML comment on the line before it, a path or `compile`. */
export interface CodeBlock {
  readonly document: string
  readonly line: number
  readonly language: string
  readonly marker: string | undefined
  readonly text: string
}

export const readDocument = (path: string): SourceFile => ({ path, text: readFileSync(join(root, path), "utf8") })

export const documents = (): ReadonlyArray<SourceFile> => [readDocument("README.md"), ...filesUnder("docs", ".md")]

/** Files a block may quote. */
export const quotable = (): ReadonlyArray<SourceFile> => [...filesUnder("examples", ".ts"), ...filesUnder("src", ".ts")]

export const codeBlocksOf = ({ path, text }: SourceFile): ReadonlyArray<CodeBlock> => {
  const blocks: Array<CodeBlock> = []
  let open: { readonly fence: string; readonly language: string; readonly line: number } | undefined
  let marker: string | undefined
  let lines: Array<string> = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const fence = /^\s*(`{3,}|~{3,})\s*(\S*)/.exec(line)
    if (open === undefined && fence !== null) {
      open = { fence: fence[1] ?? "", language: (fence[2] ?? "").toLowerCase(), line: index + 1 }
      lines = []
    } else if (open !== undefined && line.trim().startsWith(open.fence) && /^[`~]+$/.test(line.trim())) {
      blocks.push({ document: path, line: open.line, language: open.language, marker, text: lines.join("\n") })
      open = undefined
      marker = undefined
    } else if (open !== undefined) {
      lines.push(line)
    } else if (line.trim() !== "") {
      marker = /^\s*<!--\s*(.*?)\s*-->\s*$/.exec(line)?.[1]
    }
  }
  if (open !== undefined) {
    throw new Error(`${path}:${open.line} opens a code block and never closes it`)
  }
  return blocks
}

const placeOf = (block: CodeBlock): string => `${block.document}:${block.line}`

/** One space for any space, and imports by the names a reader uses. */
const normalise = (text: string): string =>
  ` ${text
    .replaceAll(/"(?:\.\.?\/)+(?:src\/)?testing\/index\.ts"/g, `"midcourse/testing"`)
    .replaceAll(/"(?:\.\.?\/)+(?:src\/)?index\.ts"/g, `"midcourse"`)
    .replaceAll(/\s+/g, " ")
    .trim()} `

/** The pieces of a block; a line `// ...` stands for what it leaves out. */
const piecesOf = (text: string): ReadonlyArray<string> => text.split(/^\s*\/\/ (?:\.\.\.|…)\s*$/m).map(normalise)

const quotes = (source: SourceFile, block: CodeBlock): boolean => {
  const text = normalise(source.text)
  let from = 0
  for (const piece of piecesOf(block.text)) {
    const at = text.indexOf(piece, from)
    if (at < 0) {
      return false
    }
    from = at + piece.length - 1
  }
  return true
}

/** Blocks of TypeScript that quote no file, or are fenced under a name the gates would overlook. */
export const unfounded = (
  blocks: ReadonlyArray<CodeBlock>,
  sources: ReadonlyArray<SourceFile>
): ReadonlyArray<string> =>
  blocks.flatMap((block) => {
    if (/^(typescript|tsx|mts|javascript|js|jsx|mjs)$/.test(block.language)) {
      return [`${placeOf(block)} is fenced ${block.language}: write ts`]
    }
    if (block.language !== "ts" || block.marker === "compile") {
      return []
    }
    if (block.text.trim() === "") {
      return [`${placeOf(block)} is empty`]
    }
    const named = block.marker?.endsWith(".ts") === true ? block.marker : undefined
    const candidates = named === undefined ? sources : sources.filter(({ path }) => path === named)
    return candidates.some((source) => quotes(source, block))
      ? []
      : [`${placeOf(block)} is no excerpt of ${named ?? "any file in examples/ or src/"}`]
  })

/** Complete programs, to be compiled. */
export const programs = (blocks: ReadonlyArray<CodeBlock>): ReadonlyArray<CodeBlock> =>
  blocks.filter(({ language, marker }) => language === "ts" && marker === "compile")

const withoutCode = (text: string): string =>
  text.replaceAll(/^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1\s*$/gm, "").replaceAll(/`[^`\n]*`/g, "")

const linksOf = (text: string): ReadonlyArray<string> =>
  [
    ...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g),
    ...text.matchAll(/^\s*\[[^\]]+\]:\s*<?([^\s>]+)/gm),
    ...text.matchAll(/\b(?:href|src)="([^"]+)"/g)
  ].map((match) => match[1] ?? "")

const isAbsolute = (link: string): boolean => /^(?:[a-z][a-z+.-]*:|\/\/)/i.test(link)

/** Where a relative link leads: a path from the root, and a heading in it. */
const targetOf = (
  document: SourceFile,
  link: string
): { readonly path: string; readonly anchor: string | undefined } => {
  const [path = "", anchor] = decodeURI(link).split("#")
  return {
    path: path === "" ? document.path : posix.normalize(posix.join(posix.dirname(document.path), path)),
    anchor
  }
}

const anchorsOf = (text: string): ReadonlySet<string> => {
  const code = /^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1\s*$/gm
  const headings = [...text.replaceAll(code, "").matchAll(/^#{1,6}\s+(.*?)\s*#*$/gm)].map((match) =>
    (match[1] ?? "")
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-")
  )
  const named = [...text.matchAll(/\b(?:id|name)="([^"]+)"/g)].map((match) => match[1] ?? "")
  return new Set([...headings, ...named])
}

/** Relative links to a file or a heading that does not exist. */
export const brokenLinks = (document: SourceFile): ReadonlyArray<string> =>
  linksOf(withoutCode(document.text))
    .filter((link) => !isAbsolute(link))
    .flatMap((link) => {
      const { anchor, path } = targetOf(document, link)
      if (path !== document.path && (path.startsWith("..") || !existsSync(join(root, path)))) {
        return [`${document.path} links to ${link}, which does not exist`]
      }
      const checkable = anchor !== undefined && path.endsWith(".md")
      const anchors = checkable
        ? anchorsOf(path === document.path ? document.text : readDocument(path).text)
        : undefined
      return anchors === undefined || anchor === undefined || anchors.has(anchor)
        ? []
        : [`${document.path} links to ${link}, and ${path} has no such heading`]
    })

/** A law as docs/laws.md lists it: a list item, table row or heading that begins with its id. */
export interface Law {
  readonly id: string
  readonly tests: ReadonlyArray<string>
}

const lawStart = /^\s*(?:[-*]\s+|\|\s*|#{1,6}\s+)(?:<a [^>]*>\s*<\/a>\s*)?[*`[]*(?:L-)?([A-Z]\d+)\b/

export const lawsOf = (document: SourceFile): ReadonlyArray<Law> => {
  const laws: Array<{ readonly id: string; text: string }> = []
  let inside = false
  for (const line of document.text.split(/\r?\n/)) {
    const id = lawStart.exec(line)?.[1]
    inside = id !== undefined || (inside && !/^#{1,6}\s/.test(line))
    const last = laws.at(-1)
    if (id !== undefined) {
      laws.push({ id, text: line })
    } else if (inside && last !== undefined) {
      last.text += `\n${line}`
    }
  }
  return laws.map(({ id, text }) => ({
    id,
    tests: linksOf(text)
      .filter((link) => !isAbsolute(link))
      .map((link) => targetOf(document, link).path)
      .filter(
        (path) => path.endsWith(".test.ts") && existsSync(join(root, path)) && statSync(join(root, path)).isFile()
      )
  }))
}

const names = (text: string, id: string): boolean => new RegExp(`\\bL-${id}\\b`).test(text)

/** Laws listed twice, and laws with no link to a test that names them. */
export const unkeptLaws = (laws: ReadonlyArray<Law>, read: (path: string) => string): ReadonlyArray<string> =>
  laws.flatMap(({ id, tests }, index) => [
    ...(laws.findIndex((law) => law.id === id) === index ? [] : [`${id} is listed twice`]),
    ...(tests.some((path) => names(read(path), id)) ? [] : [`${id} has no link to a test that names L-${id}`])
  ])

/** Laws that files name and docs/laws.md does not list. */
export const unlistedLaws = (laws: ReadonlyArray<Law>, files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const listed = new Set(laws.map(({ id }) => id))
  return files.flatMap(({ path, text }) =>
    [...new Set(text.match(/\bL-[A-Z]\d+\b/g))]
      .filter((name) => !listed.has(name.slice(2)))
      .map((name) => `${path} names ${name}`)
  )
}
