/**
 * A PostgreSQL cluster of the tests' own, where PostgreSQL's programs are installed: made in a temporary folder, started on a free
 * port of the loopback as a user that is not root, stopped and removed with the scope. It ends with this process at the latest.
 */
import { Effect, type Layer, Redacted, type Scope } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { PgClient } from "@effect/sql-pg"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Cluster {
  readonly port: number
}

const versions = "/usr/lib/postgresql"

/** Where the newest installed version has its programs; `undefined` where there is none. */
export const programs: string | undefined = (existsSync(versions) ? readdirSync(versions) : [])
  .sort((a, b) => Number(b) - Number(a))
  .map((version) => join(versions, version, "bin"))
  .find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")))

/** Starts the cluster and waits until it accepts connections. */
export const start: Effect.Effect<Cluster, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "midcourse-postgres-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const user = unprivileged()
  if (user !== undefined) yield* Effect.sync(() => chownSync(folder, user.uid, user.gid))
  const data = join(folder, "data")
  yield* Effect.sync(() => {
    const [program, args] = as(user, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
    execFileSync(program, [...args, "--no-sync"], { stdio: "pipe" })
  })
  const port = yield* freePort
  yield* Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const settings = {
        listen_addresses: "127.0.0.1",
        unix_socket_directories: folder,
        fsync: "on",
        shared_buffers: "16MB",
        max_connections: "40"
      }
      const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
      const [program, args] = as(user, "postgres", "-D", data, "-p", String(port), ...flags)
      const server = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] })
      let log = ""
      server.stderr.on("data", (chunk: Buffer) => {
        log += chunk.toString()
        if (log.includes("ready to accept connections")) resume(Effect.succeed(server))
      })
      server.once("exit", () => resume(Effect.die(new Error(`PostgreSQL did not start:\n${log}`))))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        if (server.exitCode !== null || server.signalCode !== null) return resume(Effect.void)
        server.once("exit", () => resume(Effect.void))
        // An immediate shutdown: nothing in the folder is needed any more.
        server.kill("SIGQUIT")
      })
  )
  return { port }
})

/** A client of the cluster, over TCP as a host's would be. */
export const client = (
  { port }: Cluster,
  options: { readonly maxConnections?: number } = {}
): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  PgClient.layer({
    url: Redacted.make(`postgres://postgres@127.0.0.1:${port}/postgres`),
    maxConnections: options.maxConnections ?? 4
  })

interface User {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL refuses to run as root. */
const unprivileged = (): User | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

const as = (
  user: User | undefined,
  program: string,
  ...args: ReadonlyArray<string>
): readonly [program: string, args: ReadonlyArray<string>] => {
  const path = join(programs ?? "", program)
  if (user === undefined) return [path, args]
  const rights = [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", "--pdeathsig=QUIT"]
  return ["setpriv", [...rights, "--", path, ...args]]
}

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})
