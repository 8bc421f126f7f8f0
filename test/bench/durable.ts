/**
 * What being durable costs, beside the same work done by hand on the same database in the same run: `node test/bench/durable.ts`.
 * Both sides of a figure alternate, so that a busy machine slows both. `node test/bench/durable.ts receipt` runs only that figure;
 * `--json` prints what it measured and no more.
 */
import { Clock, Console, Context, Effect, Exit, Layer, Scope } from "effect"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { parseArgs } from "node:util"
import { Agent, AgentRuntime, Ids, Input, Limits, type Session, SessionStore } from "../../src/index.ts"
import * as Codec from "../../src/ledger/Codec.ts"
import type * as Entry from "../../src/ledger/Entry.ts"
import { Journal } from "../../src/ledger/Journal.ts"
import { Projection } from "../../src/ledger/Projection.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { toolkit } from "./adapters/provider.ts"
import { byHand, folder, stored, timed } from "./byHand.ts"
import { generation, services } from "./fixture.ts"
import { columns, type FigureName, type Kept } from "./kept.ts"
import { median } from "./measure.ts"

/** Receipts or steps before the first that is measured, as everywhere in this benchmark; of openings, a hundred. */
const warmUp = 10_000

const roomy = Layer.mergeAll(Limits.layer({ identities: 1_000_000, pendingSteering: 1_000_000 }))

/** Sessions over a store whose generation waits for an answer that never comes. */
const waiting = (store: SessionStore.SessionStore["Service"], count: number) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(() => ScriptedModel.hang)
    const context = yield* Layer.build(
      Layer.provide(Layer.fresh(AgentRuntime.layer), Layer.succeed(SessionStore.SessionStore, store))
    )
    const runtime = Context.get(context, AgentRuntime.AgentRuntime)
    const agent = Agent.make({ name: "bench", instructions: "" })
    return yield* Effect.forEach(
      Array.from({ length: count }, (_, n) => n),
      (n) =>
        Effect.gen(function* () {
          const opening = runtime.open(agent, { id: Ids.SessionId.make(`ses_${n}`) })
          const session = yield* Effect.provide(opening, [model.layer, roomy])
          const receipt = yield* session.submit(Input.prompt("go"))
          if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
          return { session, generation: receipt.generationId }
        })
    )
  })

const steers = ({
  generation,
  session
}: {
  readonly session: Session.Session
  readonly generation: Ids.GenerationId
}) => {
  const { submit } = session.capability("live.steering")
  return Effect.suspend(() => submit(Input.steer("the tests are in test/, not in spec/"), generation))
}

/** The store, with the last commit of a receipt that it was handed: what the raw side writes again. */
const watched = (store: SessionStore.SessionStore["Service"]) => {
  const seen: { receipt: SessionStore.Append | undefined; count: number } = { receipt: undefined, count: 0 }
  const service: SessionStore.SessionStore["Service"] = {
    ...store,
    append: (commit) =>
      Effect.suspend(() => {
        if (commit.entries.some(({ inputId }) => inputId !== null)) seen.receipt = commit
        seen.count++
        return store.append(commit)
      })
  }
  return { service, seen }
}

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = performance.now()
    yield* effect
    return performance.now() - before
  })

/** A store on a file, a database of the same tables beside it, and the rows that one receipt costs, written by hand for so many. */
const ground = (sessions: number, together: number) =>
  Effect.gen(function* () {
    const path = yield* folder
    yield* Effect.scoped(Layer.build(stored(join(path, "raw.db"), "FULL")))
    const context = yield* Layer.build(stored(join(path, "ours.db"), "FULL"))
    const { seen, service } = watched(Context.get(context, SessionStore.SessionStore))
    const live = yield* waiting(service, sessions)
    const [first] = live
    if (first === undefined) return yield* Effect.die("no session")
    yield* steers(first)
    if (seen.receipt === undefined) return yield* Effect.die("nothing was written")
    return { live, first, write: byHand(join(path, "raw.db"), "FULL", together, seen.receipt.entries).write }
  })

const receipt = Effect.gen(function* () {
  const each = 1000
  const { first, live, write } = yield* ground(1 + warmUp / each, 1)
  // In sessions of their own: a session that ten thousand corrections wait in is nobody's.
  for (const other of live.slice(1)) yield* Effect.replicateEffect(steers(other), each, { discard: true })
  for (let n = 0; n < warmUp; n++) write()
  const ours: Array<number> = []
  const hand: Array<number> = []
  // In blocks: what waits for the medium right after another file's wait does not wait as long.
  for (let block = 0; block < 30; block++) {
    for (let n = 0; n < 40; n++) ours.push(yield* elapsed(steers(first)))
    for (let n = 0; n < 40; n++) hand.push(timed(write))
  }
  const [mine, byHand] = [median(ours), median(hand)]
  return {
    name: "a receipt's p50, SQLite FULL",
    unit: "µs" as const,
    ours: mine * 1000,
    beside: byHand * 1000,
    than: "a raw commit",
    ratio: mine / byHand,
    bound: "at most" as const,
    limit: 1.5
  }
}).pipe(Effect.scoped)

const throughput = Effect.gen(function* () {
  const sessions = 100
  const rounds = 10
  const { live, write } = yield* ground(sessions, sessions)
  let ours = 0
  let hand = 0
  const cold = warmUp / (sessions * rounds)
  const blocks = 10
  for (let block = 0; block < cold + blocks; block++) {
    const mine = yield* elapsed(
      Effect.forEach(live, (one) => Effect.replicateEffect(steers(one), rounds, { discard: true }), {
        concurrency: "unbounded",
        discard: true
      })
    )
    let byHand = 0
    for (let round = 0; round < rounds; round++) byHand += timed(write)
    if (block < cold) continue
    ours += mine
    hand += byHand
  }
  const rate = (millis: number) => (sessions * rounds * blocks * 1000) / millis
  return {
    name: "receipts of 100 sessions at once, SQLite FULL",
    unit: "a second" as const,
    ours: rate(ours),
    beside: rate(hand),
    than: "raw, 100 sessions a commit",
    ratio: hand / ours,
    bound: "at least" as const,
    limit: 0.5
  }
}).pipe(Effect.scoped)

const step = Effect.gen(function* () {
  const path = yield* folder
  const store = Context.get(yield* Layer.build(stored(join(path, "steps.db"), "NORMAL")), SessionStore.SessionStore)
  const context = yield* Layer.build(
    Layer.provide(Layer.fresh(AgentRuntime.layer), Layer.succeed(SessionStore.SessionStore, store))
  )
  const shared = yield* services
  const steps = 100
  const over = (runtime: AgentRuntime.AgentRuntime["Service"]) =>
    Effect.suspend(() =>
      Effect.provideContext(generation(steps), Context.add(shared, AgentRuntime.AgentRuntime, runtime))
    )
  const inMemory = over(Context.get(shared, AgentRuntime.AgentRuntime))
  const onDisk = over(Context.get(context, AgentRuntime.AgentRuntime))
  const ours: Array<number> = []
  const beside: Array<number> = []
  const cold = warmUp / steps
  for (let round = 0; round < cold + 30; round++) {
    const mine = yield* elapsed(onDisk)
    const other = yield* elapsed(inMemory)
    if (round < cold) continue
    ours.push(mine)
    beside.push(other)
  }
  const [mine, other] = [median(ours), median(beside)]
  return {
    name: "a step of a generation, SQLite NORMAL",
    unit: "µs" as const,
    ours: (mine / steps) * 1000,
    beside: (other / steps) * 1000,
    than: "in memory",
    ratio: mine / other,
    bound: "at most" as const,
    limit: 3
  }
}).pipe(Effect.scoped)

/** What one real generation of 20 steps journals, as text in which its ids can be replaced. */
const template = Effect.gen(function* () {
  const store = Context.get(yield* Layer.build(Layer.fresh(SessionStore.layerMemory)), SessionStore.SessionStore)
  const context = yield* Layer.build(
    Layer.provide(Layer.fresh(AgentRuntime.layer), Layer.succeed(SessionStore.SessionStore, store))
  )
  const model = yield* ScriptedModel.make(({ index }) =>
    index <= 20 ? ScriptedModel.call("noop", { x: 1 }) : ScriptedModel.text("ok")
  )
  const id = Ids.SessionId.make("ses_template")
  const handlers = toolkit.toLayer({ noop: () => Effect.succeed("ok") })
  const agent = Agent.make({ name: "bench", instructions: "", toolkit })
  return yield* Effect.gen(function* () {
    const runtime = Context.get(context, AgentRuntime.AgentRuntime)
    const session = yield* Effect.provide(runtime.open(agent, { id }), [model.layer, handlers])
    const prompt = Input.prompt("go", { id: "in_template" })
    const receipt = yield* session.submit(prompt)
    if (!receipt.accepted || receipt.generationId === null) return yield* Effect.die("not started")
    yield* session.await(receipt.generationId)
    const { position } = yield* store.position(id)
    const events = yield* store.events(id, 0, 100_000)
    const records = yield* Effect.forEach(["input", "message"], (kind) => store.kind(id, kind, position))
    const entries = [...events, ...records.flat()].sort((a, b) => a.position - b.position)
    return { entries, events: events.length, generation: receipt.generationId, input: prompt.id }
  })
})

/** Writes a session of at least so many events, as its journal would have. */
const build = (store: SessionStore.SessionStore["Service"], name: string, events: number) =>
  Effect.gen(function* () {
    const { entries, events: each, generation, input } = yield* template
    const id = Ids.SessionId.make(name)
    const { epoch, position } = yield* store.claim(id, "bench")
    const journal = new Journal({
      sessionId: id,
      clock: yield* Clock.Clock,
      dispatcher: yield* Effect.withFiber((fiber) => Effect.succeed(fiber.currentDispatcher)),
      services: Context.empty(),
      projection: new Projection([]),
      stored: { store, epoch, position, snapshot: 0 }
    })
    for (let n = 0; n * each < events; n++) {
      const commit = yield* Effect.forEach(entries, (entry) => {
        const text = JSON.stringify(entry.body)
        const body: unknown = JSON.parse(
          text.replaceAll(generation, `${generation}_${n}`).replaceAll(input, `${input}_${n}`)
        )
        return Codec.decode({ ...entry, body })
      })
      yield* journal.commit(commit.map((entry): Entry.Entry => entry))
    }
    return id
  })

const opening = Effect.gen(function* () {
  const path = yield* folder
  const context = yield* Layer.build(stored(join(path, "long.db"), "NORMAL"))
  const store = Context.get(context, SessionStore.SessionStore)
  const short = yield* build(store, "ses_short", 1000)
  const long = yield* build(store, "ses_long", 100_000)
  const model = yield* ScriptedModel.make([])
  const handlers = toolkit.toLayer({ noop: () => Effect.succeed("ok") })
  const agent = Agent.make({ name: "bench", instructions: "", toolkit })
  const open = (id: Ids.SessionId) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.build(
        Layer.provide(Layer.fresh(AgentRuntime.layer), Layer.succeed(SessionStore.SessionStore, store))
      )
      const opened = Context.get(context, AgentRuntime.AgentRuntime).open(agent, { id })
      const spent = yield* elapsed(Scope.provide(Effect.provide(opened, [model.layer, handlers]), scope))
      yield* Scope.close(scope, Exit.void)
      return spent
    })
  const ours: Array<number> = []
  const beside: Array<number> = []
  for (let round = 0; round < 130; round++) {
    const mine = yield* open(long)
    const other = yield* open(short)
    if (round < 100) continue
    ours.push(mine)
    beside.push(other)
  }
  const [mine, other] = [median(ours), median(beside)]
  return {
    name: "opening a session of 100,000 events",
    unit: "µs" as const,
    ours: mine * 1000,
    beside: other * 1000,
    than: "one of 1,000",
    ratio: mine / other,
    bound: "at most" as const,
    limit: 3
  }
}).pipe(Effect.scoped)

const figures = { receipt, throughput, step, opening } satisfies { [Name in FigureName]: Effect.Effect<Kept, unknown> }

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } }
})
const widths = [46, 16, 42, 6, 0]
const program = Effect.gen(function* () {
  for (const [name, figure] of Object.entries(figures)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    const kept: Kept = yield* figure
    const line = columns(kept).map((text, index) => text.padEnd(widths[index] ?? 0))
    yield* Console.log(values.json ? JSON.stringify(kept) : line.join("  "))
  }
})
await Effect.runPromise(program)
