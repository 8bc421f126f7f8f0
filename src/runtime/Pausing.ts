/**
 * What ends a session's pauses: every change of their facts, and the clock at the nearest instant one of them waits for (L-C3).
 *
 * @since 0.1.0
 */
import { Effect, type Fiber } from "effect"
import * as Admission from "../boundary/Admission.ts"
import { instants } from "../domain/ResumeCondition.ts"
import type { Engine, Run } from "../engine/Engine.ts"
import * as Gate from "../engine/Gate.ts"
import type { PauseState } from "../ledger/Projection.ts"

/**
 * The session whose pauses these are.
 *
 * @category models
 * @since 0.1.0
 */
export interface Paused {
  readonly engine: Engine
  readonly live: Run | undefined
  readonly closed: boolean
  readonly wake: () => void
  readonly later: (instant: number, act: Effect.Effect<void>) => Fiber.Fiber<unknown>
}

const none: ReadonlyArray<never> = []

/** @category models @since 0.1.0 */
export class Pausing {
  readonly #core: Paused
  /** Pauses whose end is handed to the journal and not yet written. */
  #ending: ReadonlyArray<PauseState> = none
  /** By the sequences that name them: until it is written, whoever rests must not save and say it again. */
  #saving: ReadonlyArray<number> = none
  #alarm: { readonly instant: number; readonly fiber: Fiber.Fiber<unknown> } | undefined

  constructor(core: Paused) {
    this.#core = core
  }

  /** Whether the pause's end is handed to the journal. */
  isEnding(pause: PauseState): boolean {
    return this.#ending.includes(pause)
  }

  /** Whether the checkpoint of a pause not yet in effect is being saved. */
  isSaving({ requested }: PauseState): boolean {
    return this.#saving.includes(requested)
  }

  /** The checkpoint of these pauses is being saved; the function returned says that it no longer is. */
  save(pauses: ReadonlyArray<PauseState>): () => void {
    const requested = pauses.map((each) => each.requested)
    this.#saving = [...this.#saving, ...requested]
    return () => {
      this.#saving = this.#saving.filter((each) => !requested.includes(each))
    }
  }

  /** Ends the pauses whose conditions hold, and lets what they held back go on. Answers whether there was one. */
  settle(): boolean {
    const { engine } = this.#core
    const { projection } = engine.journal
    if (projection.pauses.length === 0) return false
    this.#setAlarm()
    const ending = Gate.ending(projection, engine.journal.now).filter((each) => !this.isEnding(each))
    if (ending.length === 0) return false
    this.#ending = [...this.#ending, ...ending]
    const over = () => {
      this.#ending = this.#ending.filter((each) => !ending.includes(each))
    }
    const applied = () => {
      over()
      const run = this.#core.live
      if (run !== undefined) Admission.ring(run.admission)
      this.#core.wake()
    }
    const written = engine.journal.commit(ending.map(Gate.ended), { applied, failed: over })
    Effect.runForkWith(engine.services)(Effect.ignore(written))
    return true
  }

  /** One timer a session, for the nearest instant that is still to come. */
  #setAlarm(): void {
    const { now, projection } = this.#core.engine.journal
    const nearest = Math.min(...projection.pauses.flatMap(({ until }) => instants(until)).filter((each) => each > now))
    if (nearest === this.#alarm?.instant) return
    this.#alarm?.fiber.interruptUnsafe()
    this.#alarm = undefined
    if (!Number.isFinite(nearest)) return
    const act = Effect.sync(() => {
      this.#alarm = undefined
      if (!this.#core.closed) this.settle()
    })
    this.#alarm = { instant: nearest, fiber: this.#core.later(nearest, act) }
  }
}
