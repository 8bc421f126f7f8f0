/** Generations that end while a write into a host's context is in doubt. */
import { Effect } from "effect"
import * as contexts from "./contexts.ts"
import { duringTool, report, seen } from "./scenes.ts"

/** A generation steered by `s1`, `s2` and `s3` and cancelled when the first is applied and the write of the second under way. */
export const cancelledInDoubt = Effect.gen(function* () {
  const context = contexts.doubtful("s2")
  const h = yield* contexts.keptIn(context)(duringTool())
  for (const id of ["s1", "s2", "s3"]) yield* h.steer(h.id, id, { id })
  yield* h.go
  yield* seen(h, "steering.applied")
  yield* h.session.cancel(h.id)
  return { ...h, context, report: yield* report(h, h.id) }
})
