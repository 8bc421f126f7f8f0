import { assert, describe, it } from "@effect/vitest"
import * as Commands from "../../src/host/cli/Commands.ts"

const { Command } = Commands
const mistake = (line: string): string => {
  const command = Commands.parse(line)
  assert.strictEqual(command._tag, "Mistake")
  return command._tag === "Mistake" ? command.message : ""
}

describe("a typed line", () => {
  it.each([
    ["skip drafts", Command.Steer({ text: "skip drafts" })],
    ["  skip drafts \r", Command.Steer({ text: "skip drafts" })],
    ["use a/b as the target", Command.Steer({ text: "use a/b as the target" })],
    ["//etc is off limits", Command.Steer({ text: "/etc is off limits" })],
    ["/ask how far are you?", Command.Ask({ text: "how far are you?" })],
    ["/follow  write a report", Command.FollowUp({ text: "write a report" })],
    ["/prompt sort again", Command.Prompt({ text: "sort again" })],
    ["/stop", Command.Stop()],
    ["/Cancel ", Command.Cancel()],
    ["/status", Command.Status()],
    ["/wait", Command.Wait()],
    ["/now 3", Command.Now({ input: "in-3" })],
    ["/now in-3", Command.Now({ input: "in-3" })],
    ["/drop 12", Command.Drop({ input: "in-12" })],
    ["/pause", Command.Pause({ until: { _tag: "Hand" }, tools: undefined })],
    ["/pause until tea", Command.Pause({ until: { _tag: "Signal", name: "tea" }, tools: undefined })],
    ["/pause for 2.5", Command.Pause({ until: { _tag: "Time", seconds: 2.5 }, tools: undefined })],
    ["/pause only a, b", Command.Pause({ until: { _tag: "Hand" }, tools: ["a", "b"] })],
    ["/pause only a until tea", Command.Pause({ until: { _tag: "Signal", name: "tea" }, tools: ["a"] })],
    ["/resume", Command.Resume({ signal: undefined })],
    ["/resume tea", Command.Resume({ signal: "tea" })],
    ["/approve", Command.Approve({ question: undefined })],
    ["/approve 2", Command.Approve({ question: 2 })],
    ["/deny", Command.Deny({ question: undefined, reason: "the user denied it" })],
    ["/deny 2", Command.Deny({ question: 2, reason: "the user denied it" })],
    ["/deny 2 keep it here", Command.Deny({ question: 2, reason: "keep it here" })],
    ["/deny keep it here", Command.Deny({ question: undefined, reason: "keep it here" })],
    ["/help", Command.Help()],
    ["/quit", Command.Quit()],
    ["", Command.Blank()],
    [" \t ", Command.Blank()]
  ])("%j is understood", (line, command) => assert.deepStrictEqual(Commands.parse(line), command))

  it("that is no command is sent nowhere, and says how to send it", () => {
    assert.include(mistake("/etc/passwd"), "there is no command /etc/passwd")
    assert.include(mistake("/etc/passwd"), "//etc/passwd")
    assert.include(mistake("/"), "/help")
  })

  it("without the text its command wants is a mistake", () => {
    for (const name of ["ask", "follow", "prompt"]) assert.include(mistake(`/${name}  `), `/${name} TEXT`)
  })

  it("with an argument its command does not understand is a mistake that says how to write it", () => {
    for (const line of ["/now", "/drop drafts", "/now 0"]) assert.match(mistake(line), /\/(?:now|drop) /, line)
    for (const argument of [
      "tea",
      "until",
      "for soon",
      "for 0",
      "for 1e9",
      "only ,",
      "until a for 2",
      "until a until b"
    ]) {
      assert.include(mistake(`/pause ${argument}`), "nothing was paused", argument)
    }
    assert.include(mistake("/approve all"), "nothing was approved")
  })

  it("with more than its command takes is a mistake, not a control", () => {
    for (const name of ["stop", "cancel", "quit"]) assert.include(mistake(`/${name} now`), `/${name} takes nothing`)
  })
})

describe("the table", () => {
  it("has every command once, and reads each", () => {
    const names = Commands.table.map(({ name }) => name)
    assert.deepStrictEqual([...new Set(names)], names)
    for (const spec of Commands.table) {
      const bare = spec.argument === undefined || spec.argument.startsWith("[")
      const line = bare ? `/${spec.name}` : `/${spec.name} 1`
      assert.notStrictEqual(Commands.parse(line)._tag, "Mistake", line)
    }
  })

  it("is the help", () => {
    for (const spec of Commands.table) {
      const at = Commands.help.findIndex((line) => line.startsWith(Commands.usage(spec)))
      assert.include(Commands.help.slice(at, at + 2).join("\n"), spec.summary)
    }
  })

  it("completes what is being typed", () => {
    assert.deepStrictEqual(Commands.complete("/p"), ["/prompt ", "/pause "])
    assert.deepStrictEqual(Commands.complete("/st"), ["/stop", "/status"])
    assert.deepStrictEqual(Commands.complete("/fo"), ["/follow "])
    assert.deepStrictEqual(Commands.complete("st"), [])
  })
})
