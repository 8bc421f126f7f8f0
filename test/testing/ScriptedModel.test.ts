import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Latch, Schema, Stream } from "effect"
import { AiError, LanguageModel, Prompt, ResponseIdTracker, Tool, Toolkit } from "effect/ai"
import { Interleavings, ScriptedModel } from "../../src/testing/index.ts"

const Add = Tool.make("add", { parameters: Schema.Struct({ a: Schema.Finite }), success: Schema.Finite })
const kit = Toolkit.make(Add)
const handlers = kit.toLayer({ add: ({ a }) => Effect.succeed(a + 1) })

const ask = (prompt: Prompt.RawInput = "hi") =>
  LanguageModel.streamText({ prompt, toolkit: kit, disableToolCallResolution: true, toolCallValidation: "deferred" })

const defectOf = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "no failure"

for (const direct of [false, true]) {
  const run = <A, E>(
    script: ScriptedModel.Script,
    f: (
      scripted: ScriptedModel.ScriptedModel["Service"]
    ) => Effect.Effect<A, E, LanguageModel.LanguageModel | Tool.HandlersFor<{ add: typeof Add }>>,
    options: ScriptedModel.Options = {}
  ) =>
    Effect.gen(function* () {
      const scripted = yield* ScriptedModel.make(script, { direct, ...options })
      return yield* f(scripted).pipe(Effect.provide(Layer.merge(scripted.layer, handlers)))
    })

  describe(`ScriptedModel, ${direct ? "direct" : "made"}`, () => {
    it.effect("answers in order and records what it was asked", () =>
      run(
        [
          ScriptedModel.steps([
            ScriptedModel.reasoning("hm"),
            ScriptedModel.calls([{ name: "add", params: { a: 1 } }])
          ]),
          ScriptedModel.text("a", "b")
        ],
        Effect.fnUntraced(function* (scripted) {
          const live = [Prompt.userMessage({ content: [Prompt.makePart("text", { text: "one" })] })]
          const first = yield* Stream.runCollect(ask(Prompt.fromMessages(live)))
          live.push(Prompt.userMessage({ content: [Prompt.makePart("text", { text: "two" })] }))
          const second = yield* Stream.runCollect(ask(Prompt.fromMessages(live)))
          assert.deepStrictEqual(
            first.map((part) => part.type),
            ["reasoning-start", "reasoning-delta", "reasoning-end", "tool-call", "finish"]
          )
          const call = first.find((part) => part.type === "tool-call")
          assert.deepStrictEqual(call?.params, { a: 1 })
          assert.strictEqual(call?.id, "call_1_2")
          const finishes = [...first, ...second].flatMap((part) => (part.type === "finish" ? [part] : []))
          assert.deepStrictEqual(
            finishes.map((part) => part.reason),
            ["tool-calls", "stop"]
          )
          assert.strictEqual(finishes[0]?.usage.inputTokens.total, 10)
          assert.strictEqual(second.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join(""), "ab")
          assert.deepStrictEqual(
            scripted.requests.map((r) => [r.index, r.prompt.length, r.tools]),
            [
              [1, 1, ["add"]],
              [2, 2, ["add"]]
            ]
          )
          assert.deepStrictEqual(scripted.stats(), { started: 2, open: 0, completed: 2, failed: 0, interrupted: 0 })
        })
      )
    )

    it.effect("a script may be a function of the request", () =>
      run(
        (request) => ScriptedModel.text(`answer ${request.index}`),
        Effect.fnUntraced(function* () {
          yield* Stream.runDrain(ask())
          const parts = yield* Stream.runCollect(ask())
          assert.include(JSON.stringify(parts), "answer 2")
        })
      )
    )

    it.effect("sets finish reason and usage, or leaves the finish out", () =>
      run(
        [
          ScriptedModel.steps([ScriptedModel.text("a"), ScriptedModel.finish("length", ScriptedModel.usage(7, 3, 2))]),
          ScriptedModel.steps([ScriptedModel.text("a"), ScriptedModel.noFinish])
        ],
        Effect.fnUntraced(function* () {
          const last = (yield* Stream.runCollect(ask())).at(-1)
          assert.isTrue(last?.type === "finish" && last.reason === "length" && last.usage.inputTokens.cacheRead === 2)
          assert.strictEqual((yield* Stream.runCollect(ask())).at(-1)?.type, "text-end")
        })
      )
    )

    it.effect("fails at once, and after some parts", () =>
      run(
        [
          ScriptedModel.fail(new AiError.RateLimitError({})),
          ScriptedModel.failAfter(ScriptedModel.text("part"), new AiError.InternalProviderError({ description: "x" }))
        ],
        Effect.fnUntraced(function* (scripted) {
          const first = yield* Effect.flip(Stream.runDrain(ask()))
          assert.strictEqual(first.reason._tag, "RateLimitError")
          const seen: Array<string> = []
          const second = yield* Effect.flip(Stream.runForEach(ask(), (part) => Effect.sync(() => seen.push(part.type))))
          assert.strictEqual(second.reason._tag, "InternalProviderError")
          assert.deepStrictEqual(seen, ["text-start", "text-delta", "text-end"])
          assert.deepStrictEqual(scripted.stats(), { started: 2, open: 0, completed: 0, failed: 2, interrupted: 0 })
        })
      )
    )

    it.effect("a hanging request is open until it is interrupted", () =>
      run(
        [ScriptedModel.hang, ScriptedModel.hangAfter(ScriptedModel.text("part"))],
        Effect.fnUntraced(function* (scripted) {
          const first = yield* Effect.forkChild(Stream.runDrain(ask()), { startImmediately: true })
          const got = yield* Deferred.make<void>()
          const second = yield* Effect.forkChild(Stream.runForEach(ask(), () => Deferred.succeed(got, undefined)))
          yield* Deferred.await(got)
          assert.deepStrictEqual(scripted.stats(), { started: 2, open: 2, completed: 0, failed: 0, interrupted: 0 })
          yield* Fiber.interrupt(first)
          assert.deepStrictEqual(scripted.stats(), { started: 2, open: 1, completed: 0, failed: 0, interrupted: 1 })
          yield* Fiber.interrupt(second)
          assert.deepStrictEqual(scripted.stats(), { started: 2, open: 0, completed: 0, failed: 0, interrupted: 2 })
        })
      )
    )

    it.effect("waits for a latch, for an effect, and in the middle of a response", () =>
      Effect.gen(function* () {
        const latch = yield* Latch.make()
        const gate = yield* Deferred.make<void>()
        yield* run(
          [
            ScriptedModel.wait(latch, ScriptedModel.text("a")),
            ScriptedModel.steps([
              ScriptedModel.text("a"),
              ScriptedModel.wait(Deferred.await(gate), ScriptedModel.text("b"))
            ])
          ],
          Effect.fnUntraced(function* (scripted) {
            const first = yield* Effect.forkChild(Stream.runDrain(ask()), { startImmediately: true })
            assert.isUndefined(first.pollUnsafe())
            yield* latch.open
            yield* Fiber.join(first)
            const middle = yield* Deferred.make<void>()
            const second = yield* Effect.forkChild(Stream.runForEach(ask(), () => Deferred.succeed(middle, undefined)))
            yield* Deferred.await(middle)
            assert.strictEqual(scripted.stats().open, 1)
            yield* Deferred.succeed(gate, undefined)
            yield* Fiber.join(second)
            assert.strictEqual(scripted.stats().completed, 2)
          })
        )
      })
    )

    it.effect("a request past the script dies and says which", () =>
      run(
        [ScriptedModel.text("a")],
        Effect.fnUntraced(function* () {
          yield* Stream.runDrain(ask())
          const exit = yield* Effect.exit(Stream.runDrain(ask()))
          assert.include(defectOf(exit), "the script has 1 steps, but request 2 was made")
        })
      )
    )

    it.effect("a prompt no strict endpoint takes dies and is recorded", () =>
      run(
        [ScriptedModel.text("a"), ScriptedModel.text("b")],
        Effect.fnUntraced(function* (scripted) {
          const bad = Prompt.fromMessages([Prompt.userMessage({ content: [Prompt.makePart("text", { text: " " })] })])
          const exit = yield* Effect.exit(Stream.runDrain(ask(bad)))
          assert.include(defectOf(exit), "refuses request 1:\nmessage 0 blank-message")
          assert.strictEqual(scripted.violations.length, 1)
          assert.strictEqual(scripted.requests.length, 1)
          assert.strictEqual(scripted.stats().started, 0)
        })
      )
    )

    it.effect("lets a bad prompt through when told to, and the assistant's last word after a pause", () =>
      Effect.gen(function* () {
        const said = Prompt.fromMessages([
          Prompt.userMessage({ content: [Prompt.makePart("text", { text: "a" })] }),
          Prompt.assistantMessage({ content: [Prompt.makePart("text", { text: "b" })] })
        ])
        yield* run([ScriptedModel.text("a")], () => Stream.runDrain(ask(said)), { strict: false })
        yield* run(
          [ScriptedModel.steps([ScriptedModel.text("b"), ScriptedModel.finish("pause")]), ScriptedModel.text("c")],
          () => Effect.andThen(Stream.runDrain(ask()), Stream.runDrain(ask(said)))
        )
      })
    )

    it.effect("a part may be a chunk of its own", () =>
      run(
        [ScriptedModel.text("a", "b")],
        Effect.fnUntraced(function* () {
          const sizes: Array<number> = []
          yield* Stream.runForEachArray(ask(), (chunk) => Effect.sync(() => sizes.push(chunk.length)))
          assert.deepStrictEqual(sizes, [1, 1, 1, 1, 1])
        }),
        { chunks: "part" }
      )
    )

    it.effect("answers without suspending", () =>
      run([ScriptedModel.text("a")], () =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Stream.runDrain(ask()), { startImmediately: true })
          assert.isTrue(fiber.pollUnsafe() !== undefined && Exit.isSuccess(fiber.pollUnsafe() ?? Exit.void))
        })
      )
    )

    it.effect("a request interrupted at any operation is left open nowhere", () =>
      Effect.gen(function* () {
        const script = [ScriptedModel.text("a"), ScriptedModel.hangAfter(ScriptedModel.text("b"))]
        const scripted = yield* ScriptedModel.make(script, { direct, chunks: "part" })
        const result = yield* Interleavings.verify(
          {
            name: "abort",
            setup: (probe) => {
              scripted.reset()
              let timers = 0
              const request = Stream.runDrain(scripted.model.streamText({ prompt: "hi" }))
              return {
                main: Effect.andThen(request, Effect.timeoutOption(request, "1 minute")),
                actions: {
                  interrupt: () => {
                    timers++
                    probe.main()?.interruptUnsafe()
                  }
                },
                check: () => {
                  const { completed, interrupted, open, started } = scripted.stats()
                  return open === 0 && completed + interrupted === started ? [] : [`${open} open of ${started}`]
                },
                outcome: (exit) => `${exit._tag} ${JSON.stringify(scripted.stats())} ${Math.min(1, timers)}`
              }
            }
          },
          { random: 200, preemptions: 1 }
        )
        assert.isAbove(Object.keys(result.outcomes).length, 3)
      })
    )

    it.effect("works with a response id tracker", () =>
      run(
        [ScriptedModel.steps([ScriptedModel.metadata("resp_1"), ScriptedModel.text("b")]), ScriptedModel.text("d")],
        Effect.fnUntraced(function* (scripted) {
          const user = Prompt.userMessage({ content: [Prompt.makePart("text", { text: "a" })] })
          const more = [
            user,
            Prompt.assistantMessage({ content: [Prompt.makePart("text", { text: "b" })] }),
            Prompt.userMessage({ content: [Prompt.makePart("text", { text: "c" })] })
          ]
          const tracker = yield* ResponseIdTracker.make
          const tracked = Effect.provideService(ResponseIdTracker.ResponseIdTracker, tracker)
          yield* tracked(Stream.runDrain(ask(Prompt.fromMessages([user]))))
          yield* tracked(Stream.runDrain(ask(Prompt.fromMessages(more))))
          assert.strictEqual(scripted.requests[1]?.previousResponseId, "resp_1")
          assert.strictEqual(scripted.requests[1]?.incrementalPrompt?.length, 1)
        })
      )
    )

    it.effect("starts again after a reset; generateText folds the response", () =>
      run(
        [ScriptedModel.steps([ScriptedModel.text("a", "b"), ScriptedModel.call("add", { a: 1 }, "c1")])],
        Effect.fnUntraced(function* (scripted) {
          yield* Stream.runDrain(ask())
          scripted.reset()
          assert.strictEqual(scripted.requests.length, 0)
          const response = yield* LanguageModel.generateText({
            prompt: "hi",
            toolkit: kit,
            disableToolCallResolution: true
          })
          assert.strictEqual(response.text, "ab")
          assert.strictEqual(response.toolCalls[0]?.id, "c1")
          assert.strictEqual(scripted.stats().completed, 1)
        })
      )
    )
  })
}

it.effect("the layer gives the record with the model", () =>
  Effect.gen(function* () {
    yield* Stream.runDrain(ask())
    const scripted = yield* ScriptedModel.ScriptedModel
    assert.strictEqual(scripted.requests.length, 1)
  }).pipe(Effect.provide(Layer.merge(ScriptedModel.layer([ScriptedModel.text("a")]), handlers)))
)
