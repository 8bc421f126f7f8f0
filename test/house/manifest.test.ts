import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../support/sources.ts"

type Versions = Readonly<Record<string, string>>

const manifest: {
  readonly exports: Readonly<Record<string, unknown>>
  readonly peerDependencies: Versions
  readonly devDependencies: Versions
  readonly dependencies?: Versions
} = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const lock: {
  readonly packages: Readonly<Record<string, { readonly optionalDependencies?: Versions }>>
} = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))

describe("package-lock.json", () => {
  // npm ci refuses a lock without another platform's optional packages, which npm drops when it writes the lock
  // beside an installed node_modules, or where the registry in use does not carry them.
  it("names the packages of every platform", () => {
    const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies }]) =>
      Object.keys(optionalDependencies ?? {}).filter(
        (name) => !(`node_modules/${name}` in lock.packages || `${path}/node_modules/${name}` in lock.packages)
      )
    )
    expect(missing).toEqual([])
  })
})

describe("package.json", () => {
  it("opens the library, its testing tools and the SQLite client, and nothing inside", () =>
    expect(Object.keys(manifest.exports)).toEqual([".", "./testing", "./sqlite", "./package.json"]))

  it("names exact versions", () => {
    const versions = Object.entries({
      ...manifest.dependencies,
      ...manifest.peerDependencies,
      ...manifest.devDependencies
    })
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })

  it("brings no package of its own", () => expect(manifest.dependencies ?? {}).toEqual({}))
})
