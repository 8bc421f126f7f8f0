import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Prompt } from "effect/ai"
import * as Plan from "../../src/host/cli/Plan.ts"
import * as PlanGrammar from "../../src/host/cli/PlanGrammar.ts"
import * as Workspace from "../../src/host/cli/Workspace.ts"

type Files = Map<string, string>

const scratch = (): Files => new Map(Workspace.files)

interface Outcome {
  readonly isFailure: boolean
  readonly result: unknown
}

const fail = (reason: string): Outcome => ({
  isFailure: true,
  result: { _tag: "FileToolError", reason, path: "", detail: reason }
})

/** The four tools over a map of paths. */
const perform = (files: Files, call: Plan.Call): Outcome => {
  const at = (key: string): string => call.params[key] ?? ""
  switch (call.name) {
    case "list_files": {
      const prefix = at("directory") === "." ? "" : `${at("directory")}/`
      const paths = Array.from(files.keys()).filter(
        (path) => path.startsWith(prefix) && !path.slice(prefix.length).includes("/")
      )
      const isThere = paths.length > 0 || at("directory") === "inbox" || at("directory") === "archive/2025"
      return isThere
        ? {
            isFailure: false,
            result: {
              directory: at("directory"),
              files: paths.sort().map((path) => ({ path, bytes: 1 })),
              truncated: false
            }
          }
        : fail("not-found")
    }
    case "read_file": {
      const content = files.get(at("path"))
      return content === undefined
        ? fail("not-found")
        : { isFailure: false, result: { path: at("path"), content, bytes: content.length, truncated: false } }
    }
    case "write_file": {
      const replaced = files.has(at("path"))
      files.set(at("path"), at("content"))
      return { isFailure: false, result: { path: at("path"), bytes: at("content").length, replaced } }
    }
    case "move_file": {
      const content = files.get(at("from"))
      if (content === undefined) return fail("not-found")
      if (files.has(at("to"))) return fail("already-exists")
      files.delete(at("from"))
      files.set(at("to"), content)
      return { isFailure: false, result: { from: at("from"), to: at("to") } }
    }
  }
}

const person = (text: string, options?: { readonly intent?: string; readonly generation?: string }): Prompt.Message =>
  Prompt.userMessage({
    content: [Prompt.textPart({ text })],
    options: {
      midcourse: {
        input_id: "i",
        author: "user",
        intent: options?.intent ?? "steer",
        target_generation_id: options?.generation ?? "g1"
      }
    }
  })

const task = (text = Workspace.defaultTask, generation = "g1"): Prompt.Message =>
  person(text, { intent: "prompt", generation })

const notice = (text: string): Prompt.Message =>
  Prompt.userMessage({ content: [Prompt.textPart({ text })], options: { midcourse: { notice: true } } })

const respond = (next: Plan.Next): Prompt.Message =>
  Prompt.assistantMessage({
    content: [
      Prompt.textPart({ text: next.text }),
      ...next.calls.map((call) =>
        Prompt.toolCallPart({ id: call.id, name: call.name, params: call.params, providerExecuted: false })
      )
    ]
  })

const results = (
  calls: ReadonlyArray<Plan.Call>,
  outcome: (call: Plan.Call, index: number) => Outcome
): Prompt.Message =>
  Prompt.toolMessage({
    content: calls.map((call, index) =>
      Prompt.toolResultPart({ id: call.id, name: call.name, providerExecuted: false, ...outcome(call, index) })
    )
  })

/** A message that arrives while call `call` of a response is about to start, or, past the last, when all are done. */
interface Steer {
  readonly request: number
  readonly call: number
  readonly text: string
}

interface Run {
  readonly messages: Array<Prompt.Message>
  readonly texts: Array<string>
  readonly calls: Array<Plan.Call>
  readonly last: string
}

const limit = 120

/** Runs a turn to its end as a runtime that withholds the rest of a batch does. */
const run = (
  files: Files,
  start: ReadonlyArray<Prompt.Message>,
  steers: ReadonlyArray<Steer> = [],
  override?: (call: Plan.Call) => Outcome | undefined
): Run => {
  const messages = Array.from(start)
  const texts: Array<string> = []
  const calls: Array<Plan.Call> = []
  for (let request = 1; request <= limit; request++) {
    const next = Plan.next(messages)
    texts.push(next.text)
    messages.push(respond(next))
    const arriving = steers.filter((steer) => steer.request === request)
    if (next.calls.length > 0) {
      const from = Math.min(...arriving.map((steer) => steer.call), Number.POSITIVE_INFINITY)
      messages.push(
        results(next.calls, (call, index) => {
          if (index >= from) return { isFailure: true, result: "Not started: withheld by steering" }
          calls.push(call)
          return override?.(call) ?? perform(files, call)
        })
      )
    }
    for (const steer of arriving) messages.push(person(steer.text))
    if (next.calls.length === 0 && arriving.length === 0) return { messages, texts, calls, last: next.text }
  }
  throw new Error(`no end within ${limit} responses`)
}

const under = (files: Files, directory: string): Array<string> =>
  Array.from(files.keys())
    .filter((path) => path.startsWith(`${directory}/`))
    .map((path) => path.slice(directory.length + 1))
    .sort()

const inboxFiles = Workspace.files.map(([path]) => path.slice("inbox/".length))
const drafts = inboxFiles.filter((name) => name.startsWith("draft-"))

describe("Plan", () => {
  describe("the task", () => {
    it("is done whole: every file moved, one index line each, and a summary that says so", () => {
      const files = scratch()
      const done = run(files, [task()])
      assert.deepStrictEqual(under(files, "inbox"), [])
      assert.deepStrictEqual(under(files, "archive/2025"), [...inboxFiles, "INDEX.md"].sort())
      const index = files.get("archive/2025/INDEX.md") ?? ""
      assert.strictEqual(index.split("\n").filter((line) => line.startsWith("- ")).length, inboxFiles.length)
      assert.include(index, "- archive/2025/room-booking.md: Room booking (from inbox/room-booking.md)")
      assert.include(done.last, "Done: 12 files moved to archive/2025.")
      assert.include(done.last, "The index is archive/2025/INDEX.md.")
      assert.isBelow(done.texts.length, 12)
    })

    it("starts with the listing and then reads and moves several files in one response", () => {
      const files = scratch()
      const first = Plan.next([task()])
      assert.deepStrictEqual(first.calls, [{ id: "call_1", name: "list_files", params: { directory: "inbox" } }])
      const second = Plan.next([task(), respond(first), results(first.calls, (call) => perform(files, call))])
      assert.deepStrictEqual(
        second.calls.map((call) => [call.id, call.name]),
        [
          ["call_2", "read_file"],
          ["call_3", "move_file"],
          ["call_4", "read_file"],
          ["call_5", "move_file"]
        ]
      )
    })

    it("gives each call of a prompt its own id", () => {
      const done = run(scratch(), [task()], [{ request: 3, call: 1, text: "skip drafts" }])
      const ids = done.messages.flatMap((message) =>
        message.role === "assistant"
          ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
          : []
      )
      assert.strictEqual(new Set(ids).size, ids.length)
    })

    it("writes no index unless asked and obeys corrections in its own text", () => {
      const files = scratch()
      run(files, [task("Sort the files of inbox/ into done, but skip drafts and *.txt")])
      assert.deepStrictEqual(under(files, "inbox"), [...drafts, "printer-settings.txt", "reading-list.txt"].sort())
      assert.notInclude(under(files, "done"), "INDEX.md")
    })

    it("extends an index that is there and keeps its lines", () => {
      const files = scratch().set("archive/2025/INDEX.md", "# Index\n\n- archive/2025/old.md: Old\n")
      run(files, [task()])
      const index = files.get("archive/2025/INDEX.md") ?? ""
      assert.include(index, "# Index\n\n- archive/2025/old.md: Old\n- archive/2025/budget-q3.csv")
    })

    it("ignores the system message", () => {
      const system = Prompt.systemMessage({ content: "skip drafts. Sort the files of x/ into y" })
      assert.deepStrictEqual(Plan.next([system, task()]).calls, Plan.next([task()]).calls)
    })

    it("says what it can do when there is no task, and calls nothing", () => {
      const next = Plan.next([task("hello")])
      assert.deepStrictEqual(next.calls, [])
      assert.include(next.text, "I sort the files")
    })
  })

  describe("a correction at any point", () => {
    const everywhere = [1, 2, 3, 4, 5, 6].flatMap((request) => [0, 1, 2, 9].map((call) => ({ request, call })))

    const eachPoint = (text: string, law: (files: Files, before: Files, done: Run) => void): void => {
      for (const point of everywhere) {
        const files = scratch()
        const done = run(files, [task()], [{ ...point, text }])
        const until = done.messages.findIndex((message) => message.role === "user" && message !== done.messages[0])
        const before = replay(done.messages.slice(0, until))
        law(files, before, done)
        assert.include(done.texts[point.request] ?? "", "Understood:", JSON.stringify(point))
      }
    }

    /** The files as they were when the messages so far had been carried out. */
    const replay = (messages: ReadonlyArray<Prompt.Message>): Files => {
      const files = scratch()
      for (const message of messages) {
        if (message.role !== "tool") continue
        for (const part of message.content) {
          if (part.type !== "tool-result" || part.isFailure || part.name !== "move_file") continue
          const { from, to } = Schema.decodeUnknownSync(Schema.Struct({ from: Schema.String, to: Schema.String }))(
            part.result
          )
          files.set(to, files.get(from) ?? "")
          files.delete(from)
        }
      }
      return files
    }

    it("skip drafts: no draft is moved after it", () =>
      eachPoint("skip drafts", (files, before) =>
        assert.deepStrictEqual(
          under(files, "inbox"),
          under(before, "inbox").filter((name) => name.startsWith("draft-"))
        )
      ))

    it("skip *.txt: no .txt is moved after it", () =>
      eachPoint("skip *.txt", (files, before) =>
        assert.deepStrictEqual(
          under(files, "inbox"),
          under(before, "inbox").filter((name) => name.endsWith(".txt"))
        )
      ))

    it("skip NAME: that file stays if it is still there", () =>
      eachPoint("skip reading-list.txt", (files) =>
        assert.deepStrictEqual(under(files, "inbox"), ["reading-list.txt"])
      ))

    it("only *.md: nothing else is moved after it", () =>
      eachPoint("only *.md", (files, before) =>
        assert.deepStrictEqual(
          under(files, "inbox"),
          under(before, "inbox").filter((name) => !name.endsWith(".md"))
        )
      ))

    it("only notes: neither drafts nor tables are moved after it", () =>
      eachPoint("only notes", (files, before) =>
        assert.deepStrictEqual(
          under(files, "inbox"),
          under(before, "inbox").filter((name) => !name.endsWith(".md") || name.startsWith("draft-"))
        )
      ))

    it("use PATH as the target: what was moved stays, the rest and the index go there", () =>
      eachPoint("use archive/2026 as the target", (files, before) => {
        assert.deepStrictEqual(under(files, "archive/2025"), under(before, "archive/2025"))
        assert.deepStrictEqual(under(files, "archive/2026"), [...under(before, "inbox"), "INDEX.md"].sort())
        const lines = (files.get("archive/2026/INDEX.md") ?? "").split("\n").filter((line) => line.startsWith("- "))
        assert.strictEqual(lines.length, inboxFiles.length)
      }))

    it("stop after N files: no more than N, or none after those already moved", () =>
      eachPoint("stop after 3 files", (files, before, done) => {
        assert.strictEqual(
          inboxFiles.length - under(files, "inbox").length,
          Math.max(3, inboxFiles.length - under(before, "inbox").length)
        )
        assert.include(done.last, "Not moved because I was to stop")
      }))

    it("several in one message are all obeyed and named in the summary with the time they came", () => {
      const files = scratch()
      const text = "skip drafts, use archive/2026 as the target and stop after 5 files"
      const done = run(files, [task()], [{ request: 2, call: 2, text }])
      assert.deepStrictEqual(under(files, "archive/2026").length, 5)
      assert.include(
        done.last,
        "skip drafts (after 1 file); target archive/2026 (after 1 file); stop after 5 files (after 1 file)."
      )
    })

    it("withheld calls are asked for again only if they are still wanted", () => {
      const files = scratch()
      const done = run(files, [task()], [{ request: 3, call: 0, text: "skip draft-newsletter.md" }])
      const asked = done.calls.filter((call) => call.name === "move_file").map((call) => call.params["from"])
      assert.notInclude(asked, "inbox/draft-newsletter.md")
      assert.deepStrictEqual(under(files, "inbox"), ["draft-newsletter.md"])
      assert.strictEqual(new Set(asked).size, asked.length)
    })

    it("tells that a skipped file was moved already", () => {
      const done = run(scratch(), [task()], [{ request: 2, call: 9, text: "skip *.csv" }])
      assert.include(done.texts[2] ?? "", "budget-q3.csv is moved already.")
    })
  })

  describe("a remark", () => {
    it("is answered in the next response and changes no plan", () => {
      const plain = scratch()
      run(plain, [task()])
      const files = scratch()
      const done = run(files, [task()], [{ request: 2, call: 9, text: "how is it going?" }])
      assert.include(done.texts[2] ?? "", "So far 2 of 12 files are moved.")
      assert.deepStrictEqual(files, plain)
    })

    it("outside the grammar is acknowledged honestly and changes no plan", () => {
      const plain = scratch()
      run(plain, [task()])
      for (const text of ["undo that", "use the other path", "move faster", "put *.csv in tables"]) {
        const files = scratch()
        const done = run(files, [task()], [{ request: 2, call: 1, text }])
        assert.include(done.texts[2] ?? "", `I do not know how to do this: "${text}". I go on.`)
        assert.deepStrictEqual(files, plain)
      }
    })

    it("asking for a target outside the workspace or the source itself is refused", () => {
      for (const text of ["use /etc as the target", "target ../x", "use inbox as the target"]) {
        const files = scratch()
        const done = run(files, [task()], [{ request: 2, call: 1, text }])
        assert.include(done.texts[2] ?? "", "I cannot do that:")
        assert.strictEqual(under(files, "archive/2025").length, 13)
      }
    })

    it("after the summary is answered without a second summary", () => {
      const files = scratch()
      const done = run(files, [task()])
      assert.strictEqual(
        Plan.next([...done.messages, person("how is it going?")]).text,
        "So far 12 of 12 files are moved."
      )
    })
  })

  describe("a tool result", () => {
    it("that failed is reported in the summary and the call is not made again", () => {
      const files = scratch().set("archive/2025/room-booking.md", "another")
      const done = run(files, [task()])
      assert.include(done.last, "room-booking.md could not be moved: already-exists.")
      assert.strictEqual(done.calls.filter((call) => call.params["from"] === "inbox/room-booking.md").length, 1)
      assert.strictEqual(files.get("archive/2025/room-booking.md"), "another")
    })

    it("that says the listing failed ends the turn with the reason", () => {
      const done = run(new Map(), [task("Sort the files of nowhere/ into archive/2025")])
      assert.strictEqual(done.last, "I could not list nowhere/: not-found.")
    })

    it("that is never there is not waited for for ever", () => {
      const refused: Outcome = { isFailure: true, result: "Not started: the work is paused" }
      const done = run(scratch(), [task()], [], (call) => (call.name === "move_file" ? refused : undefined))
      assert.include(done.last, "Asked for and not carried out:")
    })

    it("that was interrupted makes it look again before it goes on", () => {
      const files = scratch()
      let first = true
      const done = run(files, [task()], [], (call) => {
        if (call.name !== "move_file" || !first) return undefined
        first = false
        perform(files, call)
        return { isFailure: true, result: "Interrupted: what it did is not known" }
      })
      assert.strictEqual(
        done.calls.filter((call) => call.name === "list_files" && call.params["directory"] === "inbox").length,
        2
      )
      assert.include(done.last, "No longer in inbox/, though no move of mine reported success: budget-q3.csv.")
    })
  })

  describe("a later turn", () => {
    it("what did you do? is answered from the history without a call", () => {
      const done = run(scratch(), [task()])
      const next = Plan.next([...done.messages, task("What did you do?", "g2")])
      assert.deepStrictEqual(next.calls, [])
      assert.include(next.text, "I moved 12 files to archive/2025:")
      assert.include(next.text, "I wrote archive/2025/INDEX.md.")
    })

    it("does not take up a cut task on its own, but does when asked to go on", () => {
      const files = scratch()
      const first = Plan.next([task()])
      const cut = [
        task(),
        respond(first),
        results(first.calls, () => ({ isFailure: true, result: "Not started: the generation was cancelled" })),
        notice("Sort the files of inbox/ into elsewhere. skip drafts")
      ]
      assert.strictEqual(Plan.next([...cut, task("what did you do?", "g2")]).text, "So far I have changed no file.")
      assert.deepStrictEqual(Plan.next([...cut, task("what did you do?", "g2")]).calls, [])
      const done = run(files, [...cut, task("continue", "g2")])
      assert.strictEqual(under(files, "archive/2025").length, 13)
      assert.include(done.last, "Done: 12 files moved")
    })

    it("a notice is neither a task nor a correction", () => {
      const next = Plan.next([task(), notice("skip drafts, use x/y as the target")])
      assert.deepStrictEqual(next, Plan.next([task()]))
    })

    it("a repeated sort goes on with what is left and loses no index line", () => {
      const files = scratch()
      const done = run(files, [task(`${Workspace.defaultTask}, stop after 4 files`)])
      assert.strictEqual(under(files, "inbox").length, 8)
      const again = run(files, [...done.messages, task(Workspace.defaultTask, "g2")])
      assert.deepStrictEqual(under(files, "inbox"), [])
      const lines = (files.get("archive/2025/INDEX.md") ?? "").split("\n").filter((line) => line.startsWith("- "))
      assert.strictEqual(lines.length, 12)
      assert.include(again.last, "Done: 8 files moved")
    })

    it("a correction on its own takes the last task up again under it", () => {
      const files = scratch()
      const done = run(files, [task(`${Workspace.defaultTask}, skip drafts and stop after 4 files`)])
      run(files, [...done.messages, task("use archive/2026 as the target", "g2")])
      assert.deepStrictEqual(under(files, "inbox"), drafts)
      assert.strictEqual(under(files, "archive/2025").length, 5)
      assert.strictEqual(under(files, "archive/2026").length, 6)
    })

    it("works on plain prompts too, without any marks on the messages", () => {
      const files = scratch()
      const plain = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })
      const done = run(files, [plain(`${Workspace.defaultTask}, only *.csv`)])
      assert.strictEqual(Plan.next([...done.messages, plain("what is left?")]).text, "No file is left to move.")
      run(files, [...done.messages, plain("Sort the files again")])
      assert.deepStrictEqual(under(files, "inbox"), [])
    })
  })

  const words = Schema.Literals([
    "skip drafts",
    "skip *.txt",
    "skip reading-list.txt",
    "only *.md",
    "only notes",
    "include drafts",
    "don't skip drafts",
    "use archive/2026 as the target",
    "target done",
    "use inbox as the target",
    "target /etc",
    "stop after 3 files",
    "stop after 0 files",
    "stop after 2 more",
    "stop",
    "continue",
    "no index",
    "write an index",
    "how is it going?",
    "what did you do?",
    "what is left?",
    "undo",
    "thanks",
    "Sort the files of archive/2025 into inbox",
    "Sort the files of inbox/ into archive/2025 and write an index",
    "skip drafts and only *.csv; stop after 9 files"
  ])
  const steers = Schema.Array(
    Schema.Struct({
      request: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 15 })),
      call: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })),
      text: words
    })
  ).check(Schema.isMaxLength(8))

  it.prop(
    "always ends, loses no file, never answers blank, and is a function of the prompt",
    { steers: Arbitrary.schema(steers) },
    ({ steers }) => {
      const files = scratch()
      const contents = Array.from(files.values()).sort()
      const done = run(files, [task()], steers)
      assert.isBelow(done.texts.length, 20 + 14 * (steers.length + 1))
      assert.isTrue(done.texts.every((text) => text.trim() !== ""))
      const kept = Array.from(files).flatMap(([path, content]) => (path.endsWith("INDEX.md") ? [] : [content]))
      assert.deepStrictEqual(kept.sort(), contents)
      const prefix = done.messages.slice(0, -1)
      assert.deepStrictEqual(Plan.next(prefix), Plan.next(prefix))
    },
    { arbitrary: { runs: 200 } }
  )

  it.prop(
    "never throws on what a person may type, and takes nothing unsaid from it",
    { text: Schema.String },
    ({ text }) => {
      assert.isTrue(Plan.next([task(), person(text)]).calls.length === 1)
      assert.strictEqual(PlanGrammar.parse(text).length > 0, text.trim() !== "")
    }
  )
})
