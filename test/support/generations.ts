/** Generations held at their first request or first tool call, and what became of the inputs handed to them. */
import { Effect, Option } from "effect"
import { type Agent, Input, type Session } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Harness, inputId, open, type Tools } from "./harness.ts"
import { gate, ofType, scripted } from "./providers.ts"

/** A generation whose first request runs until it is let go, and then answers with the step. */
export const requesting = (step: ScriptedModel.Step, agent: Partial<Agent.Options<Tools>> = {}) =>
  Effect.gen(function* () {
    const request = yield* gate
    const harness = yield* open({ script: scripted(ScriptedModel.wait(request.pass(undefined), step)), agent })
    const id = yield* harness.prompt("go", "p1")
    yield* request.entered
    return { harness, session: harness.session, id, request }
  })

/** A generation whose `edit`, asked for by the step, runs until it is let go; `firm` withstands a cancel for the grace time. */
export const editing = (step: ScriptedModel.Step, firm = false) =>
  Effect.gen(function* () {
    const tool = yield* gate
    const body = tool.pass("edited")
    const harness = yield* open({ script: scripted(step), edit: () => (firm ? Effect.uninterruptible(body) : body) })
    const id = yield* harness.prompt("go", "p1")
    yield* tool.entered
    return { harness, session: harness.session, id, tool }
  })

export const twoCalls = ScriptedModel.calls([
  { name: "edit", id: "a", params: { path: "p" } },
  { name: "send", id: "b", params: { path: "p" } }
])

/** A generation whose first tool runs until it is let go, with a second call waiting behind it. */
export const working = (followUps: ReadonlyArray<string> = []) =>
  Effect.tap(editing(twoCalls), ({ session }) =>
    Effect.forEach(followUps, (name) => session.submit(Input.followUp(name, { id: name })))
  )

/** The same, with a tool that a cancel cannot end before the grace time. */
export const stubborn = editing(twoCalls, true)

/** How far an input has come. */
export const stage = (session: Session.Session, id: string) =>
  Effect.map(session.input(inputId(id)), Option.getOrUndefined)

/** What became of an accepted input, and why. */
export const receiptOf = (session: Session.Session, id: string) =>
  Effect.map(session.receipt(inputId(id)), (found) => {
    const receipt = Option.getOrUndefined(found)
    return receipt?.accepted === true ? [receipt.disposition, receipt.reason] : undefined
  })

/** What each generation so far was started with. */
export const started = (harness: Harness) =>
  Effect.map(harness.events, (events) => ofType(events, "generation.started").map((event) => event.input_ids))
