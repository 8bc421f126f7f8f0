/**
 * Packs the package as npm would publish it into `midcourse.tgz`, then loads what was packed the way a host does, with
 * nothing beside it but its required peer: every export must load, and the rooms behind them must stay closed.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
}

const manifest: Manifest = JSON.parse(readFileSync("package.json", "utf8"))
const tarball = `${manifest.name}.tgz`

const scratch = mkdtempSync(join(tmpdir(), "midcourse-pack-"))
try {
  execFileSync("npm", ["pack", "--pack-destination", scratch], {
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32"
  })
  const packed = join(scratch, `${manifest.name}-${manifest.version}.tgz`)
  const installed = join(scratch, "node_modules", manifest.name)
  mkdirSync(installed, { recursive: true })
  execFileSync("tar", ["-xzf", packed, "-C", installed, "--strip-components=1"])
  symlinkSync(resolve("node_modules/effect"), join(scratch, "node_modules/effect"), "junction")
  renameSync(packed, tarball)

  const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
    typeof target === "string" ? [] : [`${manifest.name}${path.slice(1)}`]
  )
  const host = [
    ...entries.map(
      (entry) => `if (Object.keys(await import("${entry}")).length === 0) throw new Error("${entry} is empty")`
    ),
    `const closed = await import("${manifest.name}/dist/index.js").then(() => false, (error) => error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED")`,
    `if (!closed) throw new Error("the package's inside is open")`
  ]
  writeFileSync(join(scratch, "host.mjs"), host.join("\n"))
  execFileSync(process.execPath, ["host.mjs"], { cwd: scratch, stdio: ["ignore", "inherit", "inherit"] })
  console.log(`${tarball}: ${entries.join(" and ")} load, the inside is closed`)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
