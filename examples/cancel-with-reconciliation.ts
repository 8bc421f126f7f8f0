/**
 * A cancel cannot recall a payment that has left. A reconciler looks up what the interrupted call really did, and the
 * report and the next generation's context say that, instead of "unknown" or "not started".
 */
import assert from "node:assert/strict"
import { Console, Effect, Latch, Layer, Option, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Agent, AgentRuntime, Input, Receipt, ToolReconciler } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import * as Timeline from "./support/timeline.ts"

const pay = Tool.make("pay", { parameters: Schema.Struct({ invoice: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(pay)
const agent = Agent.make({ name: "accounts", instructions: "Pay what is due.", toolkit })
const prompt = Input.prompt("Pay the invoice.", { id: "pay" })
const next = Input.prompt("Was it paid?", { id: "paid" })

// A real LanguageModel layer goes here.
const model = ScriptedModel.layer([ScriptedModel.call("pay", { invoice: "A-17" }), ScriptedModel.text("It was.")])

export const program = Effect.gen(function* () {
  const sent = yield* Latch.make()
  const bank = new Map<string, { readonly booked: boolean }>()
  const handlers = toolkit.toLayer({
    // The bank has the payment, and its answer never comes.
    pay: ({ invoice }) =>
      Effect.sync(() => bank.set(invoice, { booked: true })).pipe(
        Effect.andThen(sent.open),
        Effect.andThen(Effect.never)
      )
  })
  const decodePay = Schema.decodeUnknownOption(pay.parametersSchema)
  const reconciler = Layer.succeed(ToolReconciler.ToolReconciler, (call) =>
    Effect.sync(() =>
      Option.flatMap(decodePay(call.params), ({ invoice }) => Option.fromUndefinedOr(bank.get(invoice)))
    )
  )

  const host = Effect.gen(function* () {
    const runtime = yield* AgentRuntime.AgentRuntime
    const scripted = yield* ScriptedModel.ScriptedModel
    const session = yield* runtime.open(agent)
    const started = yield* Receipt.orFail(yield* session.submit(prompt))
    const generation = yield* Effect.fromNullishOr(started.generationId)

    yield* sent.await
    yield* session.cancel(generation)
    const report = yield* session.await(generation)

    yield* session.submit(next)
    yield* session.awaitIdle
    const results = (scripted.requests[1]?.prompt ?? []).flatMap((message) =>
      message.role === "tool"
        ? message.content.flatMap((part) => (part.type === "tool-result" ? [String(part.result)] : []))
        : []
    )
    yield* Timeline.print(session, [prompt, next])
    yield* Console.log(`context  ${results.join("\n")}`)

    assert.equal(report.outcome, "cancelled")
    assert.deepEqual(report.tools[0]?.status, {
      _tag: "Interrupted",
      effects: "verified",
      cause: "cancel",
      outcome: { booked: true }
    })
    assert.equal(results.length, 1, "the interrupted call has its one result in the next generation's context")
    assert.match(results[0] ?? "", /Interrupted because the run was cancelled.*established: \{"booked":true\}/)
  })
  yield* host.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(AgentRuntime.layerMemory, model, handlers, reconciler)))
})

if (process.argv[1] === import.meta.filename) await Effect.runPromise(program)
