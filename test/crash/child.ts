/** A session's process, made to be killed: `node child.ts`, with what it is to do as JSON on its standard input. */
import { Effect, Exit, Scope, Stream } from "effect"
import { readFileSync, writeSync } from "node:fs"
import { flushCompileCache } from "node:module"
import { AgentRuntime, Ids } from "../../src/index.ts"
import { journalled, opening, type Harness } from "../support/harness.ts"
import * as Stores from "../support/stores.ts"
import * as Chaos from "./chaos.ts"
import * as Failpoint from "./failpoint.ts"
import * as Life from "./life.ts"
import { configured, rest } from "./rest.ts"
import { type Config, contextIn, recorder, say, signs } from "./world.ts"

const tells = (h: Harness) =>
  Effect.gen(function* () {
    const { sequence } = yield* h.session.status
    const after = Math.max(0, sequence - 60)
    yield* Stream.runForEach(journalled(h.session.events({ after })), (event) =>
      Effect.sync(() => say({ line: "event", event }))
    )
  })

const run = (config: Config) =>
  Effect.gen(function* () {
    const { aroundContext, store } = yield* Failpoint.guard(config)
    const runtime = yield* Stores.runtimeOver(store)
    const record = recorder(config.folder)
    const gates = config.scene === "life" ? yield* Life.gated : undefined
    const actor =
      config.scene === "chaos" ? Chaos.actor(config, record) : Life.actor(gates?.closed ?? Life.open, record)
    const scope = yield* Scope.make()
    const h = yield* opening({
      ...actor.options,
      id: Ids.SessionId.make(config.session),
      open: { recovery: config.mode, onClose: config.onClose }
    }).pipe(
      Effect.provideService(AgentRuntime.AgentRuntime, runtime),
      Scope.provide(scope),
      configured(actor, config.hosted ? contextIn(config.folder, aroundContext) : undefined)
    )
    say({ line: "opened" })
    writeSync(2, signs.opened)
    yield* Effect.forkDetach(tells(h))
    if (gates === undefined) {
      yield* Effect.forkDetach(Chaos.decides(h.session, (call) => say({ line: "decided", call })))
    }
    switch (config.scene) {
      case "chaos":
        yield* Chaos.live(h.session, config)
        break
      case "life":
        yield* Life.live(h, gates?.open ?? (() => Effect.void))
        break
      case "rest":
        yield* rest(h)
    }
    for (const what of h.model.violations) say({ line: "wrong", what })
    yield* Scope.close(scope, Exit.void)
  })

flushCompileCache()
// Nobody may be left to end it.
setTimeout(() => process.exit(1), 60_000).unref()
writeSync(2, signs.ready)
const config = JSON.parse(readFileSync(0, "utf8")) as Config
await Effect.runPromise(Effect.scoped(run(config)))
say({ line: "done" })
process.exit(0)
