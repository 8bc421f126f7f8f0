/**
 * The project's TypeScript files, parsed: what each imports, and what of it the gates in test/house look at.
 */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, posix } from "node:path"
import { fileURLToPath } from "node:url"
import { parseSync, Visitor } from "oxc-parser"

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** A file by its path from the project's root, with `/` on every system. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

export const filesUnder = (folder: string, extension: string): ReadonlyArray<SourceFile> =>
  readdirSync(posix.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(extension) && !entry.parentPath.includes("node_modules"))
    .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
    .map((path) => ({ path: posix.relative(root.replaceAll("\\", "/"), path), text: readFileSync(path, "utf8") }))
    .toSorted((left, right) => (left.path < right.path ? -1 : 1))

const parse = ({ path, text }: SourceFile) => {
  const parsed = parseSync(path, text, { lang: "ts", sourceType: "module" })
  const [error] = parsed.errors
  if (error !== undefined) {
    throw new Error(`${path}: ${error.message}`)
  }
  return parsed.program
}

/** Every module a file names: imports and re-exports, of types too, `import()` and `import("…")` in a type. */
export const importsOf = (file: SourceFile): ReadonlyArray<string> => {
  const found = new Set<string>()
  new Visitor({
    ImportDeclaration: (node) => void found.add(node.source.value),
    ExportAllDeclaration: (node) => void found.add(node.source.value),
    ExportNamedDeclaration: (node) => void (node.source !== null && found.add(node.source.value)),
    ImportExpression: ({ source }) =>
      void found.add(source.type === "Literal" && typeof source.value === "string" ? source.value : "(computed)"),
    TSImportType: (node) => void found.add(node.source.value)
  }).visit(parse(file))
  return [...found]
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length

/** What no lint rule here can see: the clock read through `Date` itself, and state that outlives every layer. */
export const impuritiesOf = (file: SourceFile): ReadonlyArray<string> => {
  const found: Array<string> = []
  const report = (offset: number, what: string) => found.push(`${file.path}:${lineAt(file.text, offset)} ${what}`)
  const program = parse(file)
  for (const statement of program.body) {
    const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement
    if (declaration?.type === "VariableDeclaration" && declaration.kind !== "const" && declaration.declare !== true) {
      report(declaration.start, `module-level ${declaration.kind}`)
    }
  }
  new Visitor({
    NewExpression: ({ arguments: given, callee, start }) => {
      if (callee.type === "Identifier" && callee.name === "Date" && given.length === 0) {
        report(start, "new Date() reads the clock")
      }
    },
    CallExpression: ({ callee, start }) => {
      if (callee.type === "Identifier" && callee.name === "Date") {
        report(start, "Date() reads the clock")
      }
    }
  }).visit(program)
  return found
}

/** Lines that are neither blank nor the start of a comment or of one of a comment's lines. */
export const codeLinesOf = ({ text }: SourceFile): number =>
  text.split("\n").filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line)).length
