/** A life in which callers do anything at any time, and an agent whose answers follow from what it is asked. */
import { Effect, Option, Ref, Schedule, Stream } from "effect"
import { type Ids, type Receipt, type Session, ToolPolicy } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { generationId, inputId, journalled, type Options } from "../support/harness.ts"
import { passing } from "../support/scenes.ts"
import { asked, chance, type Config, type Deed, hash, inputOf, say, type Sent, turnOf } from "./world.ts"

/** An agent: its provider, its tools and what it may do. */
export interface Actor {
  readonly options: Options
  readonly policy: ToolPolicy.Service
}

const tools = ["look", "edit", "send"] as const

/** One more try, at once. */
const soon = Schedule.recurs(1)

const brief = (text: string, most: number) => Effect.sleep(hash(text) % (most + 1))

const script = (record: (deed: Deed) => void): ScriptedModel.Script => {
  const tried = new Set<string>()
  return ({ prompt }) => {
    record(asked(prompt))
    const { generation, steps } = turnOf(prompt)
    const key = `${generation}.${steps}`
    const dice = hash(key)
    const first = !tried.has(key)
    tried.add(key)
    if (first && dice % 7 === 0) return ScriptedModel.failAfter(ScriptedModel.text("half of it"), passing())
    const count = steps >= 4 ? 0 : dice % 4
    const answer =
      count === 0
        ? ScriptedModel.text("done ", key)
        : ScriptedModel.calls(
            Array.from({ length: count }, (_, n) => {
              const id = `${key}.${n}`
              return { name: tools[hash(id) % 3] ?? "look", params: { path: id }, id }
            })
          )
    return ScriptedModel.wait(brief(`${key} waits`, 4), answer)
  }
}

export const actor = ({ concurrency }: Pick<Config, "concurrency">, record: (deed: Deed) => void): Actor => {
  const handle = (path: string) =>
    Effect.gen(function* () {
      record({ deed: "began", call: path })
      yield* brief(`${path} works`, 5)
      if (hash(`${path} dies`) % 13 === 0) return yield* Effect.die(new Error("it broke"))
      record({ deed: "ended", call: path })
      return `did ${path}`
    })
  return {
    options: {
      script: script(record),
      agent: { tools: concurrency === 1 ? "sequential" : { concurrency }, retry: soon },
      look: handle,
      edit: handle,
      send: handle
    },
    policy: ({ name, providerId }) => {
      const dice = hash(`${providerId} asks`)
      if (name === "edit" && dice % 5 === 0) return Effect.succeed(ToolPolicy.ask("may it?"))
      return Effect.succeed(dice % 11 === 0 ? ToolPolicy.deny("it may not") : ToolPolicy.allow)
    }
  }
}

/** Answers every question about a call, after a moment. */
export const decides = (session: Session.Session, told: (call: string) => void) =>
  Stream.runForEach(journalled(session.events()), (event) =>
    event.type === "tool.approval_requested"
      ? brief(event.provider_call_id, 3).pipe(
          Effect.andThen(
            session.decide(
              event.call_id,
              hash(event.call_id) % 4 === 0 ? { _tag: "Deny", reason: "no" } : { _tag: "Allow" }
            )
          ),
          Effect.map((receipt) => (receipt.accepted ? told(event.call_id) : undefined)),
          Effect.forkDetach
        )
      : Effect.void
  )

/** Submits, and says what was sent and what came back. */
export const submits = (session: Session.Session) => (sent: Sent) =>
  Effect.gen(function* () {
    say({ line: "sent", sent })
    const receipt = yield* sent.anchor === null
      ? session.submit(inputOf(sent))
      : session.capability("live.steering").submit(inputOf(sent), generationId(sent.anchor))
    say({ line: "receipt", id: sent.id, asked: false, receipt })
    return receipt
  })

/** One caller: does one thing after another until it is interrupted. */
const caller = (session: Session.Session, config: Config, name: string) =>
  Effect.gen(function* () {
    const random = chance(hash(`${config.seed} ${config.life} ${name}`))
    const submit = submits(session)
    const mine = yield* Ref.make<ReadonlyArray<Sent>>([])
    let count = 0
    const send = (intent: Sent["intent"], anchor: string | null, scope: Sent["scope"] = null) =>
      Effect.gen(function* () {
        const id = `${config.life}-${name}-${++count}`
        const sent: Sent = { id, intent, content: `${intent} ${id}`, scope, anchor }
        yield* Ref.update(mine, (all) => [...all, sent])
        return yield* submit(sent)
      })
    const known = Effect.map(Ref.get(mine), (all) => all[Math.floor(random() * all.length)])
    const control = (how: "stop" | "cancel", id: Ids.GenerationId) =>
      Effect.map(session[how](id, random() < 0.3 ? { followUps: "hold" } : {}), ({ accepted }) => {
        if (accepted) say({ line: "control", how, generationId: id })
      })
    const queued = Effect.map(session.queued, (all) => all[Math.floor(random() * all.length)]?.id)
    const acts: ReadonlyArray<readonly [weight: number, (live: Ids.GenerationId | null) => Effect.Effect<unknown>]> = [
      [3, () => send("prompt", null)],
      [6, (live) => (live === null ? send("prompt", null) : send("steer", live))],
      [2, () => send("steer", null)],
      [1, (live) => send("steer", live, [])],
      [1, (live) => send("steer", live, ["edit"])],
      [2, () => send("follow-up", null)],
      [2, () => send("collect", null)],
      [0.5, (live) => (live === null ? Effect.void : control("stop", live))],
      [0.5, (live) => (live === null ? Effect.void : control("cancel", live))],
      [0.7, () => pauses(session, random)],
      [0.5, () => Effect.flatMap(queued, (id) => (id === undefined ? Effect.void : withdraws(session, id)))],
      [
        0.5,
        (live) =>
          Effect.flatMap(queued, (id) =>
            id === undefined || live === null ? Effect.void : promotes(session, id, live, `${id}+`)
          )
      ],
      [1, () => Effect.flatMap(known, (sent) => (sent === undefined ? Effect.void : submit(sent)))],
      [1, () => Effect.flatMap(known, (sent) => (sent === undefined ? Effect.void : looksUp(session, sent.id)))]
    ]
    const all = acts.reduce((sum, [weight]) => sum + weight, 0)
    while (true) {
      const live = Option.match(yield* session.generation, { onNone: () => null, onSome: ({ id }) => id })
      let left = random() * all
      const [, act] = acts.find(([weight]) => (left -= weight) < 0) ?? []
      if (act !== undefined) yield* act(live)
      yield* Effect.sleep(random() * 6)
    }
  })

const pauses = (session: Session.Session, random: () => number) =>
  Effect.gen(function* () {
    const paused = yield* session.pause(random() < 0.3 ? { scope: { tools: ["edit"] } } : {})
    if (paused.accepted) say({ line: "paused" })
    yield* Effect.sleep(random() * 8)
    const resumed = yield* session.resume()
    if (resumed.accepted) say({ line: "resumed" })
  })

const withdraws = (session: Session.Session, id: Ids.InputId) =>
  Effect.map(session.withdraw(id), ({ accepted }) => {
    if (accepted) say({ line: "withdrawn", id })
  })

const promotes = (session: Session.Session, id: Ids.InputId, live: Ids.GenerationId, as: string) =>
  Effect.map(session.promote(id, live, inputId(as)), ({ accepted }) => {
    if (accepted) say({ line: "promoted", id, as })
  })

const looksUp = (session: Session.Session, id: string) =>
  Effect.map(
    session.receipt(inputId(id)),
    Option.map((receipt: Receipt.Receipt) => say({ line: "receipt", id, asked: true, receipt }))
  )

/** Sends again what nobody has a receipt of, then lets the callers loose. */
export const live = (session: Session.Session, config: Config) =>
  Effect.gen(function* () {
    const callers = [
      Effect.forEach(config.again, submits(session), { discard: true }),
      caller(session, config, "a"),
      caller(session, config, "b")
    ]
    yield* Effect.timeoutOrElse(Effect.all(callers, { concurrency: "unbounded", discard: true }), {
      duration: config.lifetime,
      orElse: () => Effect.void
    })
  })
