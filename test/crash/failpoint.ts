/** Moments at which a process kills itself: nothing of it runs after the one that is named. */
import { Context, Effect, Layer, type Scope } from "effect"
import { writeSync } from "node:fs"
import { SessionStore, SqlSessionStore } from "../../src/index.ts"
import { intercepted } from "../support/commits.ts"
import { bodies } from "../support/stores.ts"
import { client, type Config, say, type Side, signs } from "./world.ts"

const kindsOf = (commit: SessionStore.Append): ReadonlyArray<string> =>
  bodies(commit).map((body) => String(body["type"] ?? body["record"]))

const die = (side: Side, kinds: ReadonlyArray<string>): void => {
  say({ line: "dies", side, kinds })
  process.kill(process.pid, "SIGKILL")
}

export interface Guarded {
  readonly store: SessionStore.SessionStore["Service"]
  /** Told before and after each write into a context of the host's. */
  readonly aroundContext: (side: Side) => void
}

/** The kind under which writes into a context of the host's are counted. */
export const contextWrite = "context"

/** The store of a process, with its failpoint. Every commit is said once it is written. */
export const guard = ({ failpoint, place }: Config): Effect.Effect<Guarded, never, Scope.Scope> =>
  Effect.gen(function* () {
    const seen = new Map<string, number>()
    const meets = (kinds: ReadonlyArray<string>): boolean => {
      if (failpoint === undefined || !kinds.includes(failpoint.kind)) return false
      const nth = (seen.get(failpoint.kind) ?? 0) + 1
      seen.set(failpoint.kind, nth)
      return nth === failpoint.nth
    }
    let inside: ReadonlyArray<string> | undefined
    const onCommit = () => {
      if (inside !== undefined) die("inside", inside)
    }
    const store = Context.get(
      yield* Effect.orDie(
        Layer.build(SqlSessionStore.layer.pipe(Layer.provide(beforeCommits(onCommit, client(place)))))
      ),
      SessionStore.SessionStore
    )
    let met = false
    return {
      store: {
        ...store,
        append: (commit) =>
          Effect.suspend(() => {
            const kinds = kindsOf(commit)
            const here = meets(kinds)
            if (here && failpoint?.side === "before") die("before", kinds)
            if (here && failpoint?.side === "inside") inside = kinds
            return Effect.tap(store.append(commit), () =>
              Effect.sync(() => {
                if (here) die("after", kinds)
                say({ line: "commit", kinds })
                writeSync(2, signs.commit)
              })
            )
          })
      },
      aroundContext: (side) => {
        if (side === "before") met = meets([contextWrite])
        if (met && failpoint?.side === side) die(side, [contextWrite])
        if (side === "after") say({ line: "commit", kinds: [contextWrite] })
      }
    }
  })

/** The client, with something done right before each statement that commits. */
const beforeCommits = (act: () => void, underlying: ReturnType<typeof client>) =>
  intercepted(underlying, (_statement, run, commits) => {
    if (commits) act()
    return run
  })
