/**
 * Prints the closing line of a test run, `N passed, N failed`, from the report of Vitest's JSON reporter. A file that
 * failed before it could name a test counts as one failure.
 */
import { readFileSync } from "node:fs"

interface Report {
  readonly success: boolean
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: ReadonlyArray<{
    readonly status: string
    readonly assertionResults: ReadonlyArray<{ readonly status: string }>
  }>
}

const [path] = process.argv.slice(2)
if (path === undefined) {
  throw new Error("usage: countTests.ts <vitest's JSON report>")
}

const report: Report = JSON.parse(readFileSync(path, "utf8"))
const broken = report.testResults.filter(
  ({ assertionResults, status }) => status === "failed" && assertionResults.every(({ status }) => status !== "failed")
)
const failed = report.numFailedTests + broken.length
console.log(`${report.numPassedTests} passed, ${failed} failed`)
process.exitCode = report.success && failed === 0 && report.numPassedTests > 0 ? 0 : 1
