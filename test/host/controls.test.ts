import { describe, expect, it } from "vitest"
import { inbox, inOrder, names, row, run, start, workspace } from "./Program.ts"

describe("a piped pause", () => {
  it(
    "lets what runs finish, keeps inputs queued, refuses the wrong resume and ends with the right one",
    {
      timeout: 20_000
    },
    async () => {
      const input = "/pause\nskip drafts\n/wait\n/status\n/resume tea\n/resume\n/resume\n"
      const { code, error, out } = await run(input, { args: ["--pace", "2"] })
      expect({ code, error }).toEqual({ code: 0, error: "" })
      inOrder(out, [
        "pause accepted: what runs may finish; it lasts until /resume\n",
        "* in-2 queued (steer)\n",
        "pause in effect: nothing runs\n",
        "nothing goes on without /resume\n",
        "run 1 is running, request 1 (paused)\n",
        "pause in effect: it waits for /resume\n",
        "resume refused (condition-unmet); it still waits for /resume\n",
        "pause ended\n",
        "* in-2 applied in request 2\n",
        "run 1 finished"
      ])
      expect(out).toContain("resume refused (condition-unmet); nothing is paused\n")
    }
  )

  it("until a signal ends with that signal, and not by hand", { timeout: 20_000 }, async () => {
    const { code, out } = await run("/pause until tea\n/wait\n/resume\n/resume tea\n", { args: ["--pace", "2"] })
    expect(code).toBe(0)
    inOrder(out, [
      "resume refused (condition-unmet); it still waits for the signal tea (/resume tea)\n",
      "pause ended\n",
      "run 1 finished"
    ])
  })

  it("for some time ends by itself, after the end of the input too", { timeout: 20_000 }, async () => {
    const { code, out } = await run("/pause for 1\n/resume\n", { args: ["--pace", "1"] })
    expect(code).toBe(0)
    expect(out).toMatch(/resume refused \(condition-unmet\); it still waits for the time to be up \([\d.]+ s more\)\n/)
    inOrder(out, ["pause in effect", "pause ended\n", "run 1 finished"])
  })

  it("of one tool withholds its calls and no other", { timeout: 20_000 }, async () => {
    const where = workspace()
    const input = "/pause only shovel\n/pause only write_file\n"
    const { code, out } = await run(input, { args: ["--workspace", where, "--pace", "1"] })
    expect(code).toBe(0)
    expect(out).toContain("there is no tool shovel; the tools are list_files, read_file, write_file, move_file\n")
    expect(out).toContain("pause of write_file in effect: none of their calls runs\n")
    expect(out).toMatch(/write_file .* not started \(paused\)\n/)
    expect(names(where, "archive/2025")).toEqual(inbox)
  })

  it(
    "that the input ends in is said with what would end it, and its inputs are held",
    { timeout: 20_000 },
    async () => {
      const { code, error, out } = await run("skip drafts\n/follow what did you do?\n/pause until tea\n", {
        args: ["--pace", "2"]
      })
      expect({ code, error }).toEqual({ code: 0, error: "" })
      inOrder(out, [
        "run 1 goes on only with the signal tea (/resume tea), and the input has ended: the session ends with the input\n",
        "run 1 cancelled"
      ])
      expect(row(out, "in-2")).toBe("in-2 | steer | held (session-closed) | - | skip drafts")
      expect(row(out, "in-3")).toBe("in-3 | follow-up | held (session-closed) | - | what did you do?")
    }
  )
})

describe("with --approve", () => {
  it("a call runs when it is approved and not when it is denied", { timeout: 20_000 }, async () => {
    const where = workspace()
    const input = "/approve\n/deny 2 keep it here\n/approve 1\n/approve 99\n/status\n"
    const { code, error, out } = await run(input, { args: ["--workspace", where, "--approve", "--pace", "2"] })
    expect({ code, error }).toEqual({ code: 0, error: "" })
    const call = "move_file inbox/budget-q3.csv -> archive/2025/"
    inOrder(out, [`question 1: ${call}: may it run? /approve 1 or /deny 1 REASON\n`, `  ${call} ... done\n`])
    inOrder(out, ["question 2: ", "question 2 denied\n"])
    expect(out).toContain("call-with-supplier.md -> archive/2025/ ... denied: keep it here\n")
    inOrder(out, [
      "question 1 waits for no answer any more\n",
      "there is no question 99\n",
      "question 3 waits: move_file",
      "run 1 goes on only with an answer to question 3 and 4 (/approve or /deny), and the input has ended"
    ])
    expect(names(where, "archive/2025")).toEqual(["budget-q3.csv"])
  })

  it("enough approvals do the whole task, each waiting for its question", { timeout: 30_000 }, async () => {
    const where = workspace()
    const args = ["--workspace", where, "--approve", "--pace", "1"]
    const { code, out } = await run("/approve\n".repeat(inbox.length + 2), { args })
    expect(code).toBe(0)
    expect(names(where, "archive/2025")).toEqual(["INDEX.md", ...inbox])
    expect(out).toMatch(/question 13: write_file .*\n {4}content: # Index /)
    expect(out).toContain("no question waits for an answer\n")
  })

  it("a correction takes the question back", { timeout: 20_000 }, async () => {
    const program = start({ args: ["--approve", "--pace", "2"] })
    await program.until("question 2: ")
    program.type("skip *.csv\n")
    await program.until("came first\n")
    program.type("/approve 1\n")
    program.endInput()
    const { code, out } = await program.ended
    expect(code).toBe(0)
    expect(out).toContain(
      "move_file inbox/budget-q3.csv -> archive/2025/ ... not started (steering): in-2 came first\n"
    )
    expect(out).toContain("question 1 waits for no answer any more\n")
  })
})

describe("a waiting follow-up", () => {
  it("is brought forward with /now, taken back with /drop, and each says why not", { timeout: 20_000 }, async () => {
    const program = start({ args: ["--pace", "2", "--approve"] })
    await program.until("question 2: ")
    program.type(
      "/follow what did you do?\n/follow how far are you?\n/status\n/now 2\n/now 2\n/drop 3\n/drop 3\n/now 9\n"
    )
    await program.until("> /now 9")
    program.type("/drop 9\n/quit\n")
    const { code, out } = await program.ended
    expect(code).toBe(0)
    inOrder(out, [
      "in-2: what did you do? /now 2 /drop 2\n",
      "* in-2 held (promoted)\n",
      "* in-4 queued (steer)\n",
      "in-2 goes on as in-4\n",
      "in-2 goes on as in-4 already\n",
      "* in-3 held (withdrawn)\n",
      "drop in-3 refused (not-queued); it does not wait for a run of its own\n",
      "* now in-9 refused (unknown-id): there is no such input\n",
      "drop in-9 refused (unknown-id)"
    ])
    expect(row(out, "in-2")).toBe("in-2 | follow-up | held (promoted) | - | what did you do?")
    expect(row(out, "in-3")).toBe("in-3 | follow-up | held (withdrawn) | - | how far are you?")
    expect(row(out, "in-4")).toMatch(/^in-4 \| steer \| .* \| what did you do\?$/)
  })

  it("cannot be brought forward when nothing is running", { timeout: 20_000 }, async () => {
    const { code, out } = await run("/wait\n/pause\n/follow what did you do?\n/now 2\n", { args: ["--pace", "1"] })
    expect(code).toBe(0)
    expect(out).toContain("now: nothing is running that in-2 could be given to")
    expect(out).toContain("what is queued goes on only with /resume, and the input has ended")
    expect(row(out, "in-2")).toContain("held (session-closed)")
  })
})

describe("with --parallel", () => {
  it("calls are launched together, and the task is done as well", { timeout: 20_000 }, async () => {
    const where = workspace()
    const { code, out } = await run("", { args: ["--workspace", where, "--parallel", "2", "--pace", "1"] })
    expect(code).toBe(0)
    expect(out).toContain("  launched together: read_file inbox/budget-q3.csv; read_file inbox/call-with-supplier.md\n")
    expect(out).not.toContain("failed")
    expect(names(where, "archive/2025")).toEqual(["INDEX.md", ...inbox])
  })
})
