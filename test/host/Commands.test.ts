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

  it("with more than its command takes is a mistake, not a control", () => {
    for (const name of ["stop", "cancel", "quit"]) assert.include(mistake(`/${name} now`), `/${name} takes nothing`)
  })
})

describe("the table", () => {
  it("has every command once, and reads each", () => {
    const names = Commands.table.map(({ name }) => name)
    assert.deepStrictEqual([...new Set(names)], names)
    for (const spec of Commands.table) {
      const line = spec.argument === undefined ? `/${spec.name}` : `/${spec.name} 1`
      assert.notStrictEqual(Commands.parse(line)._tag, "Mistake", line)
    }
  })

  it("is the help", () => {
    for (const spec of Commands.table) {
      assert.isTrue(Commands.help.some((line) => line.startsWith(Commands.usage(spec)) && line.includes(spec.summary)))
    }
  })

  it("completes what is being typed", () => {
    assert.deepStrictEqual(Commands.complete("/st"), ["/stop", "/status"])
    assert.deepStrictEqual(Commands.complete("/fo"), ["/follow "])
    assert.deepStrictEqual(Commands.complete("st"), [])
  })
})
