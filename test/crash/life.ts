/** One life in which everything that is journalled happens, in an order of its own: the scene of the named failpoints. */
import { Deferred, Effect, Option, Schedule } from "effect"
import { type Ids, type Session, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, type Harness, inputId } from "../support/harness.ts"
import { passing, seen } from "../support/scenes.ts"
import { type Actor, submits } from "./chaos.ts"
import { asked, type Deed, say, type Sent, turnOf } from "./world.ts"

const names = ["send", "answer", "hold"] as const
type Name = (typeof names)[number]

/** What the life waits for before it goes on; a process that only brings it to rest waits for nothing. */
export type Gates = Readonly<Record<Name, Effect.Effect<void>>> & { readonly hangs: boolean }

export const open: Gates = { send: Effect.void, answer: Effect.void, hold: Effect.void, hangs: false }

const script = (gates: Gates, record: (deed: Deed) => void): ScriptedModel.Script => {
  let failed = false
  return ({ prompt }) => {
    record(asked(prompt))
    const { first, generation, steps } = turnOf(prompt)
    const call = (name: string, nth = 1) => {
      const id = `${first}.${generation.slice(-6)}.${steps}.${nth}`
      return { name, params: { path: `${name} ${first} ${id}` }, id }
    }
    const answer = ScriptedModel.text(`${first} is done`)
    switch (`${first} ${steps}`) {
      case "p1 0":
        return ScriptedModel.calls([call("look"), call("edit", 2)])
      case "p1 1":
        return ScriptedModel.calls([call("send"), call("edit", 2)])
      case "p1 2": {
        if (failed || !gates.hangs) return ScriptedModel.wait(gates.answer, answer)
        failed = true
        return ScriptedModel.failAfter(ScriptedModel.text("half"), passing())
      }
      case "f1 0":
        return ScriptedModel.calls([call("edit"), call("send", 2), call("look", 3)])
      case "c1 0":
        return ScriptedModel.calls([call("send"), call("look", 2)])
      case "p3 0":
        return gates.hangs ? ScriptedModel.hang : answer
      default:
        return answer
    }
  }
}

export const actor = (gates: Gates, record: (deed: Deed) => void): Actor => {
  const handle = (path: string) =>
    Effect.gen(function* () {
      const [tool, turn, id = path] = path.split(" ")
      record({ deed: "began", call: id })
      if (turn === "f1" && tool === "edit") return yield* Effect.die(new Error("it broke"))
      if (turn === "p1" && tool === "send") yield* gates.send
      if (turn === "f1" && tool === "look") yield* gates.hold
      if (turn === "c1" && tool === "send" && gates.hangs) return yield* Effect.never
      record({ deed: "ended", call: id })
      return `did ${id}`
    })
  return {
    options: {
      script: script(gates, record),
      agent: { retry: Schedule.recurs(1) },
      look: handle,
      edit: handle,
      send: handle
    },
    policy: ({ name, providerId }) =>
      Effect.succeed(
        name === "edit" && providerId.startsWith("p1") && providerId.includes(".0.")
          ? ToolPolicy.ask("may it?")
          : name === "send" && providerId.startsWith("f1")
            ? ToolPolicy.deny("it may not")
            : ToolPolicy.allow
      )
  }
}

/** Gates that the life opens. */
export const gated = Effect.gen(function* () {
  const gates = {
    send: yield* Deferred.make<void>(),
    answer: yield* Deferred.make<void>(),
    hold: yield* Deferred.make<void>()
  }
  const closed: Gates = {
    send: Deferred.await(gates.send),
    answer: Deferred.await(gates.answer),
    hold: Deferred.await(gates.hold),
    hangs: true
  }
  return { closed, open: (name: Name) => Effect.asVoid(Deferred.succeed(gates[name], undefined)) }
})

export const live = (h: Harness, release: (name: Name) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { session } = h
    const submit = submits(session)
    const send = (intent: Sent["intent"], id: string, anchor: string | null = null, scope: Sent["scope"] = null) =>
      submit({ id, intent, content: `${intent} ${id}`, anchor, scope })
    const running = Effect.map(session.generation, (found) =>
      Option.match(found, { onNone: () => generationId("none"), onSome: ({ id }) => id })
    )
    yield* send("prompt", "p1")
    const p1 = yield* running
    yield* seen(h, "tool.approval_requested")
    yield* send("steer", "a1", p1, [])
    yield* allowsAll(h)
    yield* seen(h, "tool.started", 3)
    yield* send("steer", "s1", p1)
    yield* Effect.forEach(["f1", "f2", "f3"], (id) => send("follow-up", id))
    yield* Effect.forEach(["c1", "c2"], (id) => send("collect", id))
    if ((yield* session.pause()).accepted) say({ line: "paused" })
    yield* release("send")
    yield* seen(h, "pause.effective")
    if ((yield* session.resume()).accepted) say({ line: "resumed" })
    // The third request fails, and is tried again as the fourth.
    yield* seen(h, "request.started", 4)
    yield* send("steer", "s2", p1)
    yield* send("steer", "s3")
    const promoted = yield* session.promote(inputId("f2"), p1, inputId("f2+"))
    if (promoted.accepted) say({ line: "promoted", id: "f2", as: "f2+" })
    if ((yield* session.withdraw(inputId("f3"))).accepted) say({ line: "withdrawn", id: "f3" })
    yield* release("answer")
    yield* seen(h, "generation.finished")
    yield* seen(h, "tool.started", 5)
    yield* control(session, "stop", yield* running)
    yield* release("hold")
    yield* seen(h, "generation.stopped")
    yield* seen(h, "tool.started", 6)
    const last = yield* running
    yield* send("steer", "s4", last)
    yield* control(session, "cancel", last)
    yield* seen(h, "generation.cancelled")
    yield* send("prompt", "p2")
    yield* seen(h, "generation.finished", 2)
    yield* send("prompt", "p3")
    yield* seen(h, "request.started", 9)
  })

const control = (session: Session.Session, how: "stop" | "cancel", id: Ids.GenerationId) =>
  Effect.map(session[how](id), ({ accepted }) => {
    if (accepted) say({ line: "control", how, generationId: id })
  })

const allowsAll = (h: Harness) =>
  Effect.gen(function* () {
    for (const event of yield* h.events) {
      if (event.type !== "tool.approval_requested") continue
      const { accepted } = yield* h.session.decide(event.call_id, { _tag: "Allow" })
      if (accepted) say({ line: "decided", call: event.call_id })
    }
  })
