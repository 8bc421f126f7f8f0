/** F1, F2, F5 and F6 at every moment: a session under the explorer of interleavings, with an input sent at any step. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { AgentRuntime, Input, type Receipt } from "../../src/index.ts"
import { Interleavings, ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, open, userTexts } from "../support/harness.ts"
import { ofType } from "../support/providers.ts"

const script = (request: ScriptedModel.Request): ScriptedModel.Step => ScriptedModel.text(`answer ${request.index}`)

interface Told {
  readonly started: ReadonlyArray<string>
  readonly overlaps: ReadonlyArray<string>
  readonly receipt: Receipt.Receipt | undefined
  readonly harness: Harness
}

/** A prompt with a follow-up behind it; another input is sent once, at any moment after. */
const racing = (
  name: string,
  input: Input.Input,
  judge: (told: Told) => ReadonlyArray<string>
): Interleavings.Scenario<void, never, never> => ({
  name,
  arm: "manual",
  setup: (probe) => {
    let harness: Harness | undefined
    let receipt: Receipt.Receipt | undefined
    const told = (own: Harness) =>
      Effect.map(own.events, (events) => {
        const overlaps: Array<string> = []
        let live: string | undefined
        for (const event of events) {
          if (event.type === "generation.started") {
            if (live !== undefined) overlaps.push(`${event.generation_id} started while ${live} lived`)
            live = event.generation_id
          } else if (event.type.startsWith("generation.")) live = undefined
        }
        const started = ofType(events, "generation.started").map((event) => event.input_ids.join("+"))
        return { started, overlaps, receipt, harness: own }
      })
    return {
      main: Effect.gen(function* () {
        const own = yield* Scope.provide(open({ script }), yield* Scope.make()).pipe(
          Effect.provide(AgentRuntime.layerMemory)
        )
        harness = own
        yield* own.prompt("go", "p1")
        yield* own.session.submit(Input.followUp("later", { id: "f1" }))
        probe.arm()
        yield* Effect.orDie(own.session.awaitIdle)
      }),
      actions: {
        submit: () =>
          harness === undefined || receipt !== undefined
            ? Effect.void
            : Effect.map(harness.session.submit(input), (answer) => void (receipt = answer))
      },
      check: () =>
        harness === undefined
          ? ["the session was not opened"]
          : Effect.map(told(harness), (found) => [...found.overlaps, ...judge(found)]),
      outcome: () =>
        harness === undefined
          ? "none"
          : Effect.map(told(harness), (found) =>
              [found.receipt === undefined ? "not sent" : found.receipt.disposition, ...found.started].join(" ")
            ),
      stateKey: () => `${harness?.model.requests.length ?? 0} ${receipt?.disposition ?? "-"}`
    }
  }
})

const explored = { preemptions: 1, random: 50 } as const
const expect = (told: Told, ...allowed: ReadonlyArray<string>) => {
  const found = told.started.join(" ")
  return allowed.includes(found) ? [] : [`generations started with ${found}`]
}
const accepted = (told: Told) => told.receipt?.accepted === true

describe("races of inputs", () => {
  it.effect("L-F1 a prompt starts only an idle session: never beside a generation, never before what is queued", () =>
    Effect.gen(function* () {
      const prompts = racing("a prompt at any moment", Input.prompt("now", { id: "p2" }), (told) => [
        ...expect(told, accepted(told) ? "p1 f1 p2" : "p1 f1"),
        ...(told.receipt?.accepted === false && told.receipt.reason !== "busy"
          ? [`refused ${told.receipt.reason}`]
          : [])
      ])
      const result = yield* Interleavings.verify(prompts, explored)
      assert.isTrue(result.deterministic)
      assert.includeMembers(Object.keys(result.outcomes), ["refused p1 f1"])
    })
  )

  it.effect("L-F2 a follow-up always waits its turn and is always answered", () =>
    Effect.gen(function* () {
      const followUps = racing("a follow-up at any moment", Input.followUp("then", { id: "f2" }), (told) => [
        ...expect(told, told.receipt === undefined ? "p1 f1" : "p1 f1 f2"),
        ...(told.receipt === undefined || userTexts(told.harness.model.requests.at(-1)).at(-1) === "then"
          ? []
          : ["the follow-up was not answered"])
      ])
      const result = yield* Interleavings.verify(followUps, explored)
      assert.isTrue(result.deterministic)
      assert.includeMembers(Object.keys(result.outcomes), ["queued p1 f1 f2"])
    })
  )

  it.effect(
    "L-F5 an ordinary steer joins what lives or starts a generation before what is queued; it is never lost",
    () =>
      Effect.gen(function* () {
        const steers = racing("an ordinary steer at any moment", Input.steer("so", { id: "s1" }), (told) => {
          const joined = told.receipt?.accepted === true && told.receipt.delivery === "request_boundary"
          const carried = told.harness.model.requests.some((request) => userTexts(request).includes("so"))
          return [
            ...(joined || told.receipt === undefined ? expect(told, "p1 f1") : expect(told, "p1 s1 f1", "p1 f1 s1")),
            ...(told.receipt === undefined || carried ? [] : ["the steer is in no request"])
          ]
        })
        const result = yield* Interleavings.verify(steers, explored)
        assert.isTrue(result.deterministic)
        assert.includeMembers(Object.keys(result.outcomes), ["queued p1 f1"])
      })
  )
})
