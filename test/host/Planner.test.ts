import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Option, Stream } from "effect"
import { LanguageModel, Prompt, type Response } from "effect/ai"
import { TestClock } from "effect/testing"
import * as FileTools from "../../src/host/cli/FileTools.ts"
import * as Planner from "../../src/host/cli/Planner.ts"
import * as Workspace from "../../src/host/cli/Workspace.ts"

const offered = (root: string) => FileTools.toolkit.pipe(Effect.provide(FileTools.layer(root)))

const request = Effect.fnUntraced(function* (root: string, messages: ReadonlyArray<Prompt.Message>) {
  const toolkit = yield* offered(root)
  return yield* LanguageModel.streamText({
    prompt: Prompt.fromMessages(messages),
    toolkit,
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  }).pipe(Stream.runCollect)
})

type Parts = ReadonlyArray<Response.StreamPart<typeof FileTools.toolkit.tools, "deferred">>

const textOf = (parts: Parts): string =>
  parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join("")
const callsOf = (parts: Parts) => parts.flatMap((part) => (part.type === "tool-call" ? [part] : []))
const finishOf = (parts: Parts) => parts.flatMap((part) => (part.type === "finish" ? [part] : []))

const userMessage = (text: string): Prompt.Message => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

const instant = Planner.layer({ pace: 0 })

describe("Planner", () => {
  it.layer(NodeServices.layer)((it) => {
    it.effect("streams its words as deltas, then its calls, then one finish with usage counted from the text", () =>
      Effect.gen(function* () {
        const { root } = yield* Workspace.scratch()
        const parts = yield* request(root, [userMessage(Workspace.defaultTask)])
        assert.deepStrictEqual(
          parts.map((part) => part.type),
          ["text-start", "text-delta", "text-delta", "text-delta", "text-delta", "text-end", "tool-call", "finish"]
        )
        assert.strictEqual(textOf(parts), "I list inbox/ first.")
        const [finish] = finishOf(parts)
        assert.strictEqual(finish?.reason, "tool-calls")
        assert.isAbove(finish?.usage.inputTokens.total ?? 0, 10)
        assert.strictEqual(finish?.usage.outputTokens.text, 5)
      }).pipe(Effect.provide(instant))
    )

    it.effect("gives equal requests equal responses", () =>
      Effect.gen(function* () {
        const { root } = yield* Workspace.scratch()
        const messages = [userMessage(Workspace.defaultTask), userMessage("skip drafts")]
        assert.deepStrictEqual(yield* request(root, messages), yield* request(root, messages))
      }).pipe(Effect.provide(instant))
    )

    it.effect("with the real tools it sorts a real directory and obeys a correction on the way", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { root } = yield* Workspace.scratch()
        const toolkit = yield* offered(root)
        const messages: Array<Prompt.Message> = [userMessage(Workspace.defaultTask)]
        let last = ""
        for (let step = 1; step <= 30; step++) {
          const parts = yield* request(root, messages)
          messages.push(...Prompt.fromResponseParts(parts).content)
          last = textOf(parts)
          const calls = callsOf(parts)
          if (calls.length === 0) break
          const results = yield* Effect.forEach(calls, (call) =>
            // As a runtime does: the name and the parameters of a deferred call are not checked yet.
            toolkit.handle(call.name as keyof typeof toolkit.tools, call.params as never).pipe(
              Effect.flatMap(Stream.runLast),
              Effect.map(Option.getOrThrow),
              Effect.map(({ encodedResult, isFailure }) =>
                Prompt.toolResultPart({
                  id: call.id,
                  name: call.name,
                  isFailure,
                  result: encodedResult,
                  providerExecuted: false
                })
              )
            )
          )
          messages.push(Prompt.toolMessage({ content: results }))
          if (step === 3) messages.push(userMessage("skip drafts, use archive/2026 as the target"))
        }
        const inbox = yield* fs.readDirectory(`${root}/inbox`)
        const index = yield* fs.readFileString(`${root}/archive/2026/INDEX.md`)
        assert.strictEqual((yield* fs.readDirectory(`${root}/archive/2025`)).length, 4)
        assert.isTrue(inbox.length > 0 && inbox.every((name) => name.startsWith("draft-")))
        assert.strictEqual(index.split("\n").filter((line) => line.startsWith("- ")).length, 12 - inbox.length)
        assert.include(last, "Corrections obeyed: skip drafts (after 4 files); target archive/2026 (after 4 files).")
      }).pipe(Effect.provide(instant))
    )

    it.effect("waits its pace before each word and each call", () =>
      Effect.gen(function* () {
        const { root } = yield* Workspace.scratch()
        const toolkit = yield* offered(root)
        const seen: Array<string> = []
        const fiber = yield* LanguageModel.streamText({
          prompt: Workspace.defaultTask,
          toolkit,
          disableToolCallResolution: true,
          toolCallValidation: "deferred"
        }).pipe(
          Stream.runForEach((part) => Effect.sync(() => seen.push(part.type))),
          Effect.forkChild({ startImmediately: true })
        )
        const after: Array<number> = []
        for (let second = 0; second < 5; second++) {
          after.push(seen.filter((type) => type === "text-delta" || type === "tool-call").length)
          yield* TestClock.adjust("1 second")
        }
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(after, [0, 1, 2, 3, 4])
        assert.deepStrictEqual(seen.slice(-2), ["tool-call", "finish"])
      }).pipe(Effect.provide(Planner.layer({ pace: "1 second" })))
    )

    it.effect("calls no tool the request does not offer and says what it lacks", () =>
      Effect.gen(function* () {
        const response = yield* LanguageModel.generateText({ prompt: Workspace.defaultTask })
        assert.strictEqual(response.text, "I cannot go on: I may not use list_files here.")
        assert.deepStrictEqual([response.toolCalls.length, response.finishReason], [0, "stop"])
      }).pipe(Effect.provide(instant))
    )

    it.effect("generateText answers as streamText does", () =>
      Effect.gen(function* () {
        const { root } = yield* Workspace.scratch()
        const toolkit = yield* offered(root)
        const response = yield* LanguageModel.generateText({
          prompt: Workspace.defaultTask,
          toolkit,
          disableToolCallResolution: true
        })
        const parts = yield* request(root, Prompt.make(Workspace.defaultTask).content)
        assert.strictEqual(response.text, textOf(parts))
        assert.deepStrictEqual(
          response.toolCalls.map((call) => [call.id, call.name]),
          callsOf(parts).map((call) => [call.id, call.name])
        )
      }).pipe(Effect.provide(instant))
    )
  })
})
