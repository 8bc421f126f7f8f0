/** The pure rules of what starts the next generation (L-F2 to L-F5), for queues of every kind. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import * as Inbox from "../../src/boundary/Inbox.ts"
import { Input, Limits, ToolScope } from "../../src/index.ts"
import { Projection } from "../../src/ledger/Projection.ts"

const Waiting = Schema.Struct({
  intent: Schema.Literals(["steer", "follow-up", "collect", "collect", "collect"]),
  author: Schema.Literals(["ann", "ann", "ben"]),
  route: Schema.Literals(["", "", "mail"]),
  scope: Schema.Literals(["all", "all", "none", "edit", "edit,send", "send,edit"]),
  /** Milliseconds after the one before. */
  gap: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 400 }))
})
type Waiting = typeof Waiting.Type

const Settings = Schema.Struct({
  cap: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
  debounce: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600 })),
  /** Milliseconds since the last was accepted. */
  since: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 700 }))
})
type Settings = typeof Settings.Type

const scopes: Record<Waiting["scope"], ToolScope.ToolScope | undefined> = {
  all: undefined,
  none: ToolScope.none,
  edit: ToolScope.tools("edit"),
  "edit,send": ToolScope.tools("edit", "send"),
  "send,edit": ToolScope.tools("send", "edit")
}

/** What two collects must share to be merged. */
const keyOf = ({ author, route, scope }: Waiting): string =>
  JSON.stringify([author, route, scope === "send,edit" ? "edit,send" : scope])

const makes = { steer: Input.steer, "follow-up": Input.followUp, collect: Input.collect }

const project = (waiting: ReadonlyArray<readonly [string, Waiting, number]>): Projection => {
  const projection = new Projection([])
  for (const [id, { author, intent, route, scope }, time] of waiting) {
    const found = scopes[scope]
    const options = { id, author, ...(route === "" ? {} : { route }), ...(found === undefined ? {} : { scope: found }) }
    projection.apply({
      record: "input",
      input: makes[intent](id, options),
      anchor: null,
      generation_id: null,
      delivery: "new_turn",
      time
    })
  }
  return projection
}

/** A queue as drawn, each with its id and the time at which it was accepted, and a question asked of it. */
const scene = (drawn: ReadonlyArray<Waiting>, { cap, debounce, since }: Settings) =>
  Effect.runSync(
    Effect.map(Limits.Limits, (defaults) => {
      let time = 1000
      const waiting = drawn.map((each, index) => [`i${index}`, each, (time += each.gap)] as const)
      const limits = { ...defaults, collectCap: cap, collectDebounce: Duration.millis(debounce) }
      const turns = waiting.filter(([, { intent }]) => intent === "steer")
      const queue = waiting.filter(([, { intent }]) => intent !== "steer")
      const now = time + since
      const ask = (of = waiting, at = now) => Inbox.next(project(of), limits, at)
      return { waiting, turns, queue, limits, now, ask }
    })
  )

const ids = (of: ReadonlyArray<readonly [string, ...ReadonlyArray<unknown>]>) => of.map(([id]) => id)
const names = (next: Inbox.Next) => (next._tag === "Start" ? next.inputIds.map(String) : [])
const inputs = { drawn: Schema.Array(Waiting).check(Schema.isMaxLength(9)), settings: Settings }
const runs = { arbitrary: { runs: 400 } }

describe("Inbox.next", () => {
  it.prop(
    "L-F6 there is nothing to start exactly when nothing waits",
    inputs,
    ({ drawn, settings }) => {
      assert.strictEqual(scene(drawn, settings).ask()._tag === "Nothing", drawn.length === 0)
    },
    runs
  )

  it.prop(
    "L-F5 steers that wait start at once and together, in order, before anything queued",
    inputs,
    ({ drawn, settings }) => {
      const { ask, turns } = scene(drawn, settings)
      if (turns.length > 0) assert.deepStrictEqual(names(ask()), ids(turns))
    },
    runs
  )

  it.prop(
    "L-F2 what is queued starts first in, first out: a follow-up alone, or collects alone",
    inputs,
    ({ drawn, settings }) => {
      const { ask, queue, turns } = scene(drawn, settings)
      const next = names(ask())
      if (turns.length > 0 || next.length === 0) return
      assert.deepStrictEqual(next, ids(queue.slice(0, next.length)))
      const intents = queue.slice(0, next.length).map(([, { intent }]) => intent)
      assert.isTrue(intents.length === 1 || intents.every((intent) => intent === "collect"))
    },
    runs
  )

  it.prop(
    "L-F3 a group is of one author, scope and route, no greater than the cap, and leaves out no neighbour that fits",
    inputs,
    ({ drawn, settings }) => {
      const { ask, queue, turns } = scene(drawn, settings)
      const size = names(ask()).length
      const [first] = queue
      if (turns.length > 0 || size === 0 || first?.[1].intent !== "collect") return
      const key = keyOf(first[1])
      const fits = ([, each]: readonly [string, Waiting, number]) => each.intent === "collect" && keyOf(each) === key
      assert.isAtMost(size, settings.cap)
      assert.isTrue(queue.slice(0, size).every(fits))
      const after = queue[size]
      if (size < settings.cap && after !== undefined) assert.isFalse(fits(after))
    },
    runs
  )

  it.prop(
    "L-F3 a group waits only while it may still grow, until the debounce after its last, and then starts whole",
    inputs,
    ({ drawn, settings }) => {
      const { ask, now, queue, waiting } = scene(drawn, settings)
      const next = ask()
      if (next._tag !== "Later") return
      assert.strictEqual(new Set(queue.map(([, each]) => keyOf(each))).size, 1)
      assert.isBelow(queue.length, settings.cap)
      assert.strictEqual(next.instant, (queue.at(-1)?.[2] ?? 0) + settings.debounce)
      assert.isBelow(now, next.instant)
      assert.strictEqual(ask(waiting, next.instant - 1)._tag, "Later")
      assert.deepStrictEqual(names(ask(waiting, next.instant)), ids(queue))
    },
    runs
  )

  it.prop(
    "L-F3 a group that may still grow does not start before the debounce is over",
    inputs,
    ({ drawn, settings }) => {
      const collects = drawn.filter(({ intent }) => intent === "collect").slice(0, settings.cap - 1)
      const [first] = collects
      if (first === undefined) return
      const { ask, now, queue } = scene(
        collects.map((each) => ({ ...first, gap: each.gap })),
        settings
      )
      const due = now >= (queue.at(-1)?.[2] ?? 0) + settings.debounce
      assert.strictEqual(ask()._tag, due ? "Start" : "Later")
    },
    runs
  )

  it.prop(
    "L-F6 asked again and again, everything starts exactly once, each in its order",
    inputs,
    ({ drawn, settings }) => {
      const { ask, queue, turns, waiting } = scene(drawn, settings)
      const started: Array<string> = []
      let rest = waiting
      while (rest.length > 0) {
        const next = names(ask(rest, Number.MAX_SAFE_INTEGER))
        assert.isAbove(next.length, 0)
        started.push(...next)
        rest = rest.filter(([id]) => !next.includes(id))
      }
      assert.deepStrictEqual(started, [...ids(turns), ...ids(queue)])
    },
    runs
  )

  it.prop(
    "L-F6 asking changes nothing",
    inputs,
    ({ drawn, settings }) => {
      const { limits, now, waiting } = scene(drawn, settings)
      const projection = project(waiting)
      const before = [[...projection.turns], [...projection.queue]]
      const first = Inbox.next(projection, limits, now)
      assert.deepStrictEqual([projection.turns, projection.queue], before)
      assert.deepStrictEqual(Inbox.next(projection, limits, now), first)
    },
    runs
  )
})
