/** A generation to listen to while its tool runs, and listeners that act. */
import { Effect, Stream } from "effect"
import type { Event, Session } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { editing } from "./generations.ts"

/** A response that says something and asks for one call. */
export const edit = ScriptedModel.steps([ScriptedModel.text("I edit"), ScriptedModel.call("edit", { path: "p" }, "a")])

/** A generation whose tool runs until it is let go. */
export const working = editing(edit)

/** Acts on every event, in the listener's own turn. */
export const listen = (session: Session.Session, act: (event: Event.SessionEvent) => Effect.Effect<unknown, unknown>) =>
  Effect.forkScoped(Stream.runForEach(session.events(), act), { startImmediately: true })
