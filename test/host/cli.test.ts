import { readFileSync } from "node:fs"
import * as Http from "node:http"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Commands from "../../src/host/cli/Commands.ts"
import { directory, inbox, names, row, run, start, workspace } from "./Program.ts"

const drafts = inbox.filter((name) => name.startsWith("draft-"))
const others = inbox.filter((name) => !name.startsWith("draft-"))

/** How often, and that it is never more. */
const count = (text: string, what: string): number => text.split(what).length - 1

describe("the program, left alone", () => {
  it("does the task on real files and exits 0", { timeout: 20_000 }, async () => {
    const where = workspace()
    const { code, error, out } = await run("", { args: ["--workspace", where] })
    expect(error).toBe("")
    expect(code).toBe(0)
    expect(names(where, "inbox")).toEqual([])
    expect(names(where, "archive/2025")).toEqual(["INDEX.md", ...inbox])
    expect(readFileSync(join(where, "archive/2025/INDEX.md"), "utf8")).toContain("contacts.csv")
    expect(out).toContain("model      the embedded planner")
    expect(out).toContain(`workspace  ${where}`)
    expect(row(out, "in-1")).toBe(
      "in-1 | prompt | applied | request 1 | Sort the files of inbox/ into archive/2025 and write an index"
    )
    expect(out).not.toContain("\u001b")
  })

  it("removes its scratch directory, unless it is to keep it", { timeout: 20_000 }, async () => {
    const temporary = directory()
    const env = { TMPDIR: temporary }
    const removed = await run("/quit\n", { env })
    expect(removed.out).toContain("removed at the end")
    expect(names(temporary, ".")).toEqual([])
    await run("/quit\n", { args: ["--keep"], env })
    expect(names(temporary, ".")).toEqual([expect.stringMatching(/^midcourse-/)])
  })
})

describe("a piped correction", () => {
  it("is queued, then applied in a request that is named, and obeyed", { timeout: 20_000 }, async () => {
    const where = workspace()
    const { code, out } = await run("skip drafts\n", { args: ["--workspace", where] })
    expect(code).toBe(0)
    expect(names(where, "inbox")).toEqual(drafts)
    expect(names(where, "archive/2025")).toEqual(["INDEX.md", ...others])
    const story = [
      "request 1\n",
      "> skip drafts\n",
      "* in-2 queued",
      "came first\n",
      "request 2\n",
      "* in-2 applied in request 2\n"
    ]
    const places = story.map((what) => out.indexOf(what))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(row(out, "in-2")).toBe("in-2 | steer | applied | request 2 | skip drafts")
  })

  it("may change where the files go, and may be one of several", { timeout: 20_000 }, async () => {
    const where = workspace()
    const input = "use archive/2026 as the target\r\n\nskip drafts"
    const { code, out } = await run(input, { args: ["--workspace", where, "--pace", "1"] })
    expect(code).toBe(0)
    expect(names(where, "archive/2025")).toEqual([])
    expect(names(where, "archive/2026")).toEqual(["INDEX.md", ...others])
    expect(row(out, "in-2")).toContain("applied | request ")
    expect(row(out, "in-3")).toContain("applied | request ")
  })

  it("that comes too late is refused and starts nothing; /prompt does", { timeout: 30_000 }, async () => {
    const program = start({ args: ["--pace", "1"] })
    await program.until("run 1 finished")
    program.type("skip drafts\n")
    await program.until("in-2 refused (no-active-generation)")
    program.type("/prompt what did you do?\n")
    await program.until("run 2 finished")
    program.endInput()
    const { code, out } = await program.ended
    expect(code).toBe(0)
    expect(count(out, " starts with ")).toBe(2)
    expect(out).toContain("run 2 starts with in-3")
    expect(row(out, "in-2")).toBe("in-2 | steer | refused (no-active-generation) | - | skip drafts")
    expect(row(out, "in-3")).toBe("in-3 | prompt | applied | run 2, request 1 | what did you do?")
  })
})

describe("a piped command", () => {
  it("/cancel ends the run and holds what is pending", { timeout: 20_000 }, async () => {
    const where = workspace()
    const { code, out } = await run("skip drafts\n/cancel\nuse a/b as the target\n", {
      args: ["--workspace", where, "--pace", "40"]
    })
    expect(code).toBe(0)
    expect(count(out, "run 1 cancelled")).toBe(1)
    expect(row(out, "in-2")).toBe("in-2 | steer | held (generation-cancelled) | - | skip drafts")
    expect(row(out, "in-3")).toMatch(/refused \((admission-closed|no-active-generation)\)/)
    expect(names(where, "inbox")).toEqual(inbox)
  })

  it("/stop lets the request finish, starts nothing more and holds what is pending", { timeout: 20_000 }, async () => {
    const { code, out } = await run("skip drafts\n/stop\n", { args: ["--pace", "40"] })
    expect(code).toBe(0)
    expect(count(out, "run 1 stopped")).toBe(1)
    expect(out).not.toContain("request 2\n")
    expect(out).toContain("list_files inbox ... not started")
    expect(row(out, "in-2")).toContain("held (generation-stopped)")
  })

  it("/follow is a second run, /ask withholds nothing, /wait waits for both", { timeout: 30_000 }, async () => {
    const input = "/follow what did you do?\n/ask how far are you?\n/prompt no\n/wait\n/stop\n/etc\n/status\n"
    const { code, out } = await run(input, { args: ["--pace", "2"] })
    expect(code).toBe(0)
    expect(out).not.toContain("not started")
    expect(out).toContain("run 2 starts with in-2")
    expect(row(out, "in-2")).toBe("in-2 | follow-up | applied | run 2, request 1 | what did you do?")
    expect(row(out, "in-3")).toContain("ask | applied | run 1, request 2")
    expect(row(out, "in-4")).toContain("refused (busy)")
    expect(out.indexOf("> /stop")).toBeGreaterThan(out.indexOf("run 2 finished"))
    expect(out).toContain("stop refused (no-active-generation)")
    expect(out).toContain("there is no command /etc")
    expect(out).toContain("nothing is running\n")
  })

  it("/quit ends the run with the session, and colours are there when forced", { timeout: 20_000 }, async () => {
    const { code, out } = await run("skip drafts\n/quit\n", { env: { FORCE_COLOR: "1" } })
    expect(code).toBe(0)
    expect(out).toContain("the session closes")
    expect(out).toContain("held (session-closed)")
    expect(out).toContain("\u001b[")
  })
})

describe("a signal", () => {
  it("Ctrl-C ends the run, and once more the program, with 130", { timeout: 30_000 }, async () => {
    const temporary = directory()
    const program = start({ args: ["--pace", "100"], env: { TMPDIR: temporary } })
    await program.until("request 2\n")
    program.signal("SIGINT")
    await program.until("run 1 cancelled")
    program.signal("SIGINT")
    const { code, error, out } = await program.ended
    expect({ code, error }).toEqual({ code: 130, error: "" })
    expect(row(out, "in-1")).toContain("applied")
    expect(names(temporary, ".")).toEqual([])
  })

  it("Ctrl-C after the end of the input ends the program with the run, with 130", { timeout: 30_000 }, async () => {
    const program = start({ args: ["--pace", "100"] })
    program.type("/follow what did you do?\n")
    program.endInput()
    await program.until("request 2\n")
    program.signal("SIGINT")
    const { code, out } = await program.ended
    expect(code).toBe(130)
    expect(row(out, "in-2")).toContain("follow-up | held (generation-cancelled)")
    expect(count(out, " starts with ")).toBe(1)
  })

  it("that asks the process to end leaves no scratch directory", { timeout: 20_000 }, async () => {
    const temporary = directory()
    const program = start({ args: ["--pace", "100"], env: { TMPDIR: temporary } })
    await program.until("request 2\n")
    program.signal("SIGTERM")
    const { code, error } = await program.ended
    expect({ code, error }).toEqual({ code: 143, error: "" })
    expect(names(temporary, ".")).toEqual([])
  })
})

describe("the command line", () => {
  it("explains itself", { timeout: 20_000 }, async () => {
    const help = await run("", { args: ["--help"] })
    expect({ code: help.code, error: help.error }).toEqual({ code: 0, error: "" })
    const flags = ["--task", "--workspace", "--keep", "--model", "--pace", "--parallel", "--approve"]
    for (const flag of [...flags, "--store", "--session", "--resume", "--list"]) expect(help.out).toContain(flag)
    for (const line of Commands.help) expect(help.out).toContain(line)
    expect(help.out).not.toContain("\u001b")
    const { version }: { readonly version: string } = JSON.parse(readFileSync("package.json", "utf8"))
    expect((await run("", { args: ["--version"] })).out).toBe(`midcourse ${version}\n`)
  })

  it.each([
    [["--bogus"], /--bogus/],
    [["skip", "drafts"], /skip/],
    [["--pace", "soon"], /--pace/],
    [["--task", " "], /not blank/],
    [["--model", "small"], /OPENAI_API_KEY/],
    [["--parallel", "0"], /a number from 1 to 16/],
    [["--session", "tea"], /--session is about a store: name its file with --store FILE/],
    [["--list"], /--list is about a store/],
    [["--resume"], /--resume is about a store/],
    [["--store", "x.db", "--session", "caf\u00e9"], /printable ASCII/],
    [["--workspace", "/no/such/place"], /\/no\/such\/place cannot be the workspace: it does not exist/]
  ])("%j is one message on standard error, and 2", { timeout: 20_000 }, async (args, message) => {
    const { code, error, out } = await run("", { args })
    expect({ code, out }).toEqual({ code: 2, out: "" })
    expect(error).toMatch(message)
    expect(error).toMatch(/^midcourse: [^\n]+\n$/)
  })

  it("says what to install where the optional peer is missing", { timeout: 20_000 }, async () => {
    const hook = `import { registerHooks } from "node:module"
      registerHooks({ resolve: (name, context, next) => {
        if (name.startsWith("@effect/platform-node")) throw Object.assign(new Error("no"), { code: "ERR_MODULE_NOT_FOUND" })
        return next(name, context)
      } })`
    const node = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`]
    const { code, error, out } = await run("", { node })
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(error).toMatch(/^midcourse: [^\n]*npm install @effect\/platform-node@[^\n]*\n$/)
  })
})

interface Asked {
  readonly authorization: string | undefined
  readonly body: string
}

/** A server that speaks the OpenAI protocol: the n-th answer to the n-th request, the last for all that follow. */
const serve = async (...answers: ReadonlyArray<(response: Http.ServerResponse) => void>) => {
  const asked: Array<Asked> = []
  const server = Http.createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text
    })
    request.on("end", () => {
      asked.push({ authorization: request.headers.authorization, body })
      answers[Math.min(asked.length, answers.length) - 1]?.(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = address !== null && typeof address === "object" ? address.port : 0
  return {
    asked,
    env: { OPENAI_API_KEY: "sk-secret", OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` },
    host: `127.0.0.1:${port}`
  }
}

const streamed =
  (deltas: ReadonlyArray<object>, finish: string, pause = 0) =>
  (response: Http.ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    const chunks = [...deltas.map((delta) => [delta, null]), [{}, finish]]
    const data = chunks.map(([delta, finish_reason]) =>
      JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })
    )
    response.write(`data: ${data[0]}\n\n`)
    setTimeout(() => response.end([...data.slice(1), "[DONE]"].map((line) => `data: ${line}\n\n`).join("")), pause)
  }
const calls = (name: string, params: object) => ({
  tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name, arguments: JSON.stringify(params) } }]
})
const refused = (status: number, message: string) => (response: Http.ServerResponse) => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ error: { message } }))
}

describe("with OPENAI_API_KEY", () => {
  it("asks the server, runs its tools and steers it", { timeout: 20_000 }, async () => {
    const where = workspace()
    const server = await serve(
      streamed(
        [{ content: "I move " }, { content: "one." }, calls("move_file", { from: "inbox/a", to: "b" })],
        "tool_calls",
        300
      ),
      streamed([calls("move_file", { from: "inbox/contacts.csv", to: "people.csv" })], "tool_calls"),
      streamed([{ content: "Done." }], "stop")
    )
    const args = ["--workspace", where, "--model", "small"]
    const { code, error, out } = await run("only the contacts\n", { args, env: server.env })
    expect({ code, error }).toEqual({ code: 0, error: "" })
    expect(out).toContain(`model      small at ${server.host}`)
    expect(out).toContain("  I move one.\n")
    expect(out).toContain("not started (steering): in-2 came first")
    expect(row(out, "in-2")).toBe("in-2 | steer | applied | request 2 | only the contacts")
    expect(names(where, ".")).toContain("people.csv")
    expect(server.asked.map(({ authorization }) => authorization)).toEqual(Array(3).fill("Bearer sk-secret"))
    expect(server.asked[0]?.body).toContain(`"model":"small"`)
    expect(server.asked[0]?.body).not.toContain("only the contacts")
    expect(server.asked[1]?.body).toContain("only the contacts")
  })

  it.each([
    ["a wrong key", 401, "Incorrect API key provided"],
    ["a model that is not there", 404, "The model does not exist"]
  ])("%s is one clear failure, and 1", { timeout: 20_000 }, async (_, status, message) => {
    const server = await serve(refused(status, message))
    const { code, error, out } = await run("", { env: server.env })
    expect({ code, error }).toEqual({ code: 1, error: "" })
    expect(server.asked).toHaveLength(1)
    expect(count(out, message)).toBe(1)
    expect(out).toMatch(new RegExp(`run 1 failed: .*${message}`))
    expect(out).toContain("OPENAI_API_KEY, OPENAI_BASE_URL and --model")
    expect(out).not.toContain("sk-secret")
    expect(out).not.toMatch(/\n\s+at /)
  })

  it("a rate limit is waited out", { timeout: 20_000 }, async () => {
    const server = await serve(refused(429, "slow down"), streamed([{ content: "Nothing to do." }], "stop"))
    const { code, out } = await run("", { env: server.env })
    expect(code).toBe(0)
    expect(out).toMatch(/request 1 failed: Rate limit exceeded.*; trying again/)
    expect(out).toContain("run 1 finished")
  })

  it("a server that cannot be reached is a failure that names it", { timeout: 20_000 }, async () => {
    const server = await serve()
    const gone = Http.createServer()
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve))
    const address = gone.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    await new Promise((resolve) => gone.close(resolve))
    const env = { ...server.env, OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` }
    const { code, error, out } = await run("", { env })
    expect({ code, error }).toEqual({ code: 1, error: "" })
    expect(out).toMatch(new RegExp(`run 1 failed: .*127.0.0.1:${port}/v1 could not be reached`))
    expect(out).not.toMatch(/\n\s+at /)
  })
})
