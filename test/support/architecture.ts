/**
 * The rooms of src/ and the arrows between them, as rules over parsed files. A change of the architecture is a change
 * of the tables here and of docs/architecture.md together.
 */
import { posix } from "node:path"
import { codeLinesOf, importsOf } from "./sources.ts"
import type { SourceFile } from "./sources.ts"

const ledger = ["domain"]
const boundary = ["ledger", ...ledger]
const engine = ["boundary", ...boundary]
const runtime = ["engine", ...engine]
const belowHost = ["runtime", ...runtime]

/** What each room may import beside itself; `index` is src/index.ts. */
const arrows = new Map<string, ReadonlyArray<string>>([
  ["domain", []],
  ["ledger", ledger],
  ["boundary", boundary],
  ["engine", engine],
  ["runtime", runtime],
  ["store", boundary],
  ["host", ["index", ...belowHost]],
  ["testing", belowHost],
  ["index", belowHost]
])

/** Single files that may be imported from outside where their room may not. */
const openFiles = new Map<string, ReadonlyArray<string>>([
  ["index", ["src/store/SqlSessionStore.ts"]],
  ["host", ["src/store/SqlSessionStore.ts", "src/store/SqliteClient.ts"]]
])

/** Rooms that may import more than Effect. */
const outward = new Set(["host", "store", "testing"])

const codeLineLimit = 400

const roomOf = (path: string): string => {
  const [, room, ...inside] = path.split("/")
  return path === "src/index.ts" ? "index" : room !== undefined && inside.length > 0 ? room : "none"
}

const targetOf = (file: SourceFile, specifier: string): string =>
  posix.normalize(posix.join(posix.dirname(file.path), specifier))

const isRelative = (specifier: string): boolean => specifier.startsWith(".")

const isEffect = (specifier: string): boolean => specifier === "effect" || specifier.startsWith("effect/")

/** Files outside every room. */
export const strays = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.filter(({ path }) => !arrows.has(roomOf(path))).map(({ path }) => `${path} is in no room`)

/** Imports against the arrows, or of a file that does not exist in src/. */
export const wrongArrows = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const paths = new Set(files.map(({ path }) => path))
  return files.flatMap((file) => {
    const from = roomOf(file.path)
    return importsOf(file)
      .filter(isRelative)
      .map((specifier) => targetOf(file, specifier))
      .flatMap((target) => {
        const to = roomOf(target)
        if (!paths.has(target)) {
          return [`${file.path} imports ${target}, which is no file of src/`]
        }
        return to === from || arrows.get(from)?.includes(to) === true || openFiles.get(from)?.includes(target) === true
          ? []
          : [`${file.path} imports ${target}: ${from} may not see ${to}`]
      })
  })
}

/** Imports of packages other than Effect where a room may see nothing else. */
export const foreignPackages = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files
    .filter(({ path }) => !outward.has(roomOf(path)))
    .flatMap((file) =>
      importsOf(file)
        .filter((specifier) => !isRelative(specifier) && !isEffect(specifier))
        .map((specifier) => `${file.path} imports ${specifier}`)
    )

/** Cycles between files, type imports included; each once, as the path that closes it. */
export const cycles = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const graph = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(isRelative)
        .map((specifier) => targetOf(file, specifier))
    ])
  )
  const found: Array<string> = []
  const settled = new Set<string>()
  const walk = (path: string, trail: ReadonlyArray<string>): void => {
    if (trail.includes(path)) {
      found.push([...trail.slice(trail.indexOf(path)), path].join(" -> "))
      return
    }
    if (settled.has(path)) {
      return
    }
    for (const next of graph.get(path) ?? []) {
      walk(next, [...trail, path])
    }
    settled.add(path)
  }
  for (const path of graph.keys()) {
    walk(path, [])
  }
  return found
}

/** Files with too many lines of code. */
export const oversized = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files
    .map((file) => ({ path: file.path, lines: codeLinesOf(file) }))
    .filter(({ lines }) => lines > codeLineLimit)
    .map(({ lines, path }) => `${path} has ${lines} lines of code, more than ${codeLineLimit}`)

/** Names that say nothing about what a file holds. */
export const emptyNames = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.filter(({ path }) => /\b(utils?|helpers?|common|misc|managers?)\b/i.test(path)).map(({ path }) => path)

/** Rooms that may know the process, its clock and its console. */
export const knowsProcess = ({ path }: SourceFile): boolean => ["host", "testing"].includes(roomOf(path))
