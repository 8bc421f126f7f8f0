/**
 * Reads the JSON report of `effect-tsgo diagnostics` from stdin. Fails on an error or a warning, and when the report
 * is missing or covers no file, which is what a lost plugin entry in tsconfig.json looks like.
 */
import { text } from "node:stream/consumers"

interface Report {
  readonly diagnostics: ReadonlyArray<{
    readonly file: string
    readonly line: number
    readonly column: number
    readonly severity: string
    readonly name: string
    readonly message: string
  }>
  readonly summary: {
    readonly filesChecked: number
    readonly totalFiles: number
    readonly errors: number
    readonly warnings: number
  }
}

const source = await text(process.stdin)
if (source.trim() === "") {
  console.error("effect-tsgo wrote no report")
  process.exit(1)
}

const { diagnostics, summary }: Report = JSON.parse(source)
for (const { column, file, line, message, name, severity } of diagnostics) {
  console.log(`${file}:${line}:${column} ${severity} ${name}: ${message}`)
}
console.log(
  `Checked ${summary.filesChecked} of ${summary.totalFiles} files: ${summary.errors} errors, ${summary.warnings} warnings`
)

const covered = summary.filesChecked > 0 && summary.filesChecked === summary.totalFiles
if (!covered) {
  console.error("Not every file was checked: is the @effect/language-service plugin still in tsconfig.json?")
}
process.exitCode = covered && summary.errors === 0 && summary.warnings === 0 ? 0 : 1
