import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { directory, inbox, inOrder, names, row, run, start } from "./Program.ts"

const module = (text: string): ReadonlyArray<string> => ["--import", `data:text/javascript,${encodeURIComponent(text)}`]

/** Moving a file begins and never ends. */
const hanging = module(`import fs from "node:fs"
  import { syncBuiltinESMExports } from "node:module"
  fs.link = () => undefined
  syncBuiltinESMExports()`)

/** Loading SQLite warns, as it does in some versions of Node. */
const warning = module(`import { registerHooks } from "node:module"
  registerHooks({ resolve: (name, context, next) => {
    if (name === "node:sqlite") process.emitWarning("SQLite is an experimental feature", "ExperimentalWarning")
    return next(name, context)
  } })`)

const store = (pace = 2) => {
  const file = join(directory(), "work.db")
  return { file, args: ["--store", file, "--pace", `${pace}`] }
}

/** A process that ends, without a word, while a call runs, a correction is pending and a follow-up waits. */
const killed = async () => {
  const kept = store()
  const program = start({ args: kept.args, node: hanging })
  await program.until("move_file inbox/budget-q3.csv -> archive/2025/ ...")
  program.type("skip drafts\n/follow what did you do?\n")
  await program.until("* in-3 queued")
  program.signal("SIGKILL")
  await program.ended
  return kept
}

describe("after a kill -9 in the middle of a run", () => {
  it("the next start says what was interrupted and held, and runs what was queued", { timeout: 30_000 }, async () => {
    const { args, file } = await killed()
    const { code, error, out } = await run("/prompt Sort the files of inbox/ into archive/2025\n", { args })
    expect({ code, error }).toEqual({ code: 0, error: "" })
    expect(out).toMatch(/session {4}main in .*work\.db \(3 inputs and \d+ events so far\)\n/)
    expect(out).not.toContain("task  ")
    inOrder(out, [
      "move_file inbox/budget-q3.csv -> archive/2025/ ... interrupted (process-loss); effects: unknown\n",
      "* in-2 held (process-lost)\n",
      "run 1 failed: the process that ran this generation was lost\n",
      "the process that ran run 1 had ended in the middle of it\n",
      "held: in no context, and not sent again by itself\n",
      "  * in-2 held (process-lost): skip drafts\n",
      "  * in-3 queued (follow-up): what did you do?\n",
      "run 2 starts with in-3\n"
    ])
    expect(row(out, "in-2")).toBe("in-2 | steer | held (process-lost) | - | skip drafts")
    expect(row(out, "in-3")).toBe("in-3 | follow-up | applied | run 2, request 1 | what did you do?")
    expect(row(out, "in-4")).toMatch(/^in-4 \| prompt \| (?:refused \(busy\)|applied \| run 3)/)
    expect(out).not.toContain("run 1 starts")
    const again = await run("", { args: ["--store", file] })
    expect(again.out).toContain("* in-2 held (process-lost): skip drafts\n")
    expect(again.out).not.toContain("process-loss")
  })

  it("--resume goes on with the same run, its correction and its files", { timeout: 30_000 }, async () => {
    const { args, file } = await killed()
    const { code, error, out } = await run("", { args: [...args, "--resume"] })
    expect({ code, error }).toEqual({ code: 0, error: "" })
    inOrder(out, [
      "interrupted (process-loss); effects: unknown\n",
      "run 1 goes on after request 2\n",
      "  * in-2 queued (steer): skip drafts\n",
      "* in-2 applied in request 3\n",
      "run 1 finished",
      "run 2 starts with in-3\n"
    ])
    expect(out).not.toContain("held")
    expect(row(out, "in-1")).toContain("applied | run 1, request 1 | Sort the files")
    const moved = inbox.filter((name) => !name.startsWith("draft-"))
    expect(names(`${file}.workspace`, "archive/2025")).toEqual(["INDEX.md", ...moved])
  })

  it("a question is asked again by --resume, under its number", { timeout: 30_000 }, async () => {
    const { args } = store()
    const first = start({ args: [...args, "--approve"] })
    await first.until("question 2: ")
    first.signal("SIGKILL")
    await first.ended
    const { code, out } = await run("/approve 2\n/wait\n/quit\n", { args: [...args, "--approve", "--resume"] })
    expect(code).toBe(0)
    inOrder(out, [
      "run 1 goes on after request 2\n",
      "question 2: move_file inbox/call",
      "question 2 approved\n",
      "move_file inbox/call-with-supplier.md -> archive/2025/ ... done\n",
      "nothing goes on without an answer to question 1 (/approve or /deny)\n"
    ])
    expect(out).not.toContain("question 3")
  })
})

describe("a kept session", () => {
  it("that is paused when the input ends stays paused, and goes on with /resume", { timeout: 30_000 }, async () => {
    const { args } = store()
    const first = await run("skip drafts\n/follow what did you do?\n/pause until tea\n", { args })
    expect({ code: first.code, error: first.error }).toEqual({ code: 0, error: "" })
    inOrder(first.out, [
      "run 1 goes on only with the signal tea (/resume tea), and the input has ended: the session is kept as it stands\n",
      "run 1 is kept as it stands"
    ])
    expect(row(first.out, "in-2")).toContain("| steer | queued |")
    expect(row(first.out, "in-3")).toContain("| follow-up | queued |")
    const { code, out } = await run("/resume tea\n", { args })
    expect(code).toBe(0)
    inOrder(out, [
      "the session is open again\n",
      "pause in effect: it waits for the signal tea (/resume tea)\n",
      "pause ended\n",
      "* in-2 applied in request 2\n",
      "run 1 finished",
      "run 2 finished"
    ])
  })

  it("is ended by /quit but for what is queued, which the next start runs", { timeout: 30_000 }, async () => {
    const { args } = store()
    const first = await run("/follow what did you do?\n/quit\n", { args })
    expect(first.code).toBe(0)
    expect(first.out).toContain("run 1 cancelled")
    expect(row(first.out, "in-2")).toContain("| follow-up | queued |")
    const { out } = await run("", { args })
    expect(row(out, "in-2")).toContain("| follow-up | applied | run 2, request 1 |")
  })

  it("goes on where a signal ended its process", { timeout: 30_000 }, async () => {
    const { args } = store(20)
    const first = start({ args })
    await first.until("request 2\n")
    first.signal("SIGTERM")
    expect((await first.ended).code).toBe(143)
    const { code, out } = await run("", { args })
    expect(code).toBe(0)
    expect(out).toMatch(/run 1 goes on after request \d/)
    expect(out).toContain("run 1 finished")
  })

  it("takes a new task only when it is given one, under a new id", { timeout: 30_000 }, async () => {
    const { args } = store()
    await run("/quit\n", { args: [...args, "--task", "what did you do?"] })
    const idle = await run("skip drafts\n", { args })
    expect(idle.code).toBe(0)
    expect(row(idle.out, "in-2")).toContain("refused (no-active-generation)")
    const { code, out } = await run("", { args: [...args, "--task", "what did you do?"] })
    expect(code).toBe(0)
    expect(row(out, "in-2")).toMatch(/applied \| run \d, request 1 \| what did you do\?$/)
  })

  it("is one of several, by --session, and --list shows them", { timeout: 30_000 }, async () => {
    const { args, file } = store()
    const task = ["--task", "what did you do?"]
    expect((await run("", { args: [...args, ...task, "--session", "tea time"] })).out).toContain(
      "session    tea time in"
    )
    expect((await run("", { args: [...args, ...task] })).out).toContain("(new)\n")
    const { code, error, out } = await run("", { args: ["--store", file, "--list"] })
    expect({ code, error }).toEqual({ code: 0, error: "" })
    expect(out).toMatch(/^tea time {2}files {2}\d+ events\nmain {6}files {2}\d+ events\n$/)
  })

  it("belongs to whoever opened it last; the other ends with one line, and 1", { timeout: 30_000 }, async () => {
    const { args } = store(50)
    const first = start({ args })
    await first.until("request 1\n")
    const second = await run("/quit\n", { args })
    expect(second.code).toBe(0)
    const { code, error } = await first.ended
    expect(code).toBe(1)
    expect(error).toMatch(/^midcourse: Session main: another owner has opened this session[^\n]*\n$/)
  })

  it("says nothing of what Node thinks of its SQLite", { timeout: 20_000 }, async () => {
    const { code, error } = await run("", { args: [...store().args, "--task", "help"], node: warning })
    expect({ code, error }).toEqual({ code: 0, error: "" })
  })
})

describe("a store that cannot be used", () => {
  it("is one clear line, and 1, and is left as it was", { timeout: 30_000 }, async () => {
    const { args, file } = store()
    writeFileSync(file, "this is no database\n")
    const { code, error, out } = await run("", { args })
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(error).toMatch(/^midcourse: [^\n]*work\.db cannot be the store: the file is not a database[^\n]*\n$/)
    expect(readFileSync(file, "utf8")).toBe("this is no database\n")
    expect(names(file, "..")).toEqual(["work.db"])
    const missing = await run("", { args: ["--store", join(file, "..", "none.db"), "--list"] })
    expect(missing.code).toBe(1)
    expect(missing.error).toMatch(/none\.db cannot be the store: it does not exist\n$/)
    const nowhere = await run("", { args: ["--store", "/no/such/place/work.db"] })
    expect(nowhere.code).toBe(1)
    expect(nowhere.error).toMatch(/^midcourse: [^\n]* cannot be the store: the database file cannot be opened[^\n]*\n$/)
  })
})
