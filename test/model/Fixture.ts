/** A provider and tools that do nothing until they are told to: no timers, no promises. */
import { Context, Deferred, Effect, Layer, Option, Schema, Stream } from "effect"
import { AiError, LanguageModel, type Prompt, Tool, Toolkit } from "effect/ai"
import { type ContextStore, Input, ToolPolicy, type ToolReconciler } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ToolProblem } from "../support/harness.ts"
import type { Answer, CallSpec } from "./Command.ts"
import { behaviour } from "./Tools.ts"

const options = { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String, failure: ToolProblem }
export const toolkit = Toolkit.make(
  Tool.make("look", options).annotate(Tool.Readonly, true),
  Tool.make("edit", options),
  Tool.make("send", { ...options, failureMode: "return" })
)

export type End = "end" | "fail" | "die"

/** One run's tools: what began, by the provider's call id, and how each is told to end. */
export interface Running {
  readonly began: Array<string>
  readonly gates: Map<string, Deferred.Deferred<End>>
}
export const Running = Context.Reference<Running>("test/model/Running", {
  defaultValue: () => ({ began: [], gates: new Map() })
})

const handle = (params: { readonly path: string }, call: { readonly toolCallId?: string | undefined }) =>
  Effect.flatMap(Running, ({ began, gates }) => {
    const id = call.toolCallId ?? "none"
    const gate = Deferred.makeUnsafe<End>()
    began.push(id)
    gates.set(id, gate)
    const ended = Effect.flatMap(Deferred.await(gate), (how) => {
      switch (how) {
        case "end":
          return Effect.succeed(`did ${params.path}`)
        case "fail":
          return Effect.fail(new ToolProblem({ why: "it did not work" }))
        case "die":
          return Effect.die(new Error("a defect of the tool"))
      }
    })
    return behaviour(params.path) === "deaf" ? Effect.uninterruptible(ended) : ended
  })

export const handlers = toolkit.toLayer({ look: handle, edit: handle, send: handle })

const pathOf = (params: unknown): string =>
  typeof params === "object" && params !== null && "path" in params ? String(params.path) : ""

export const policy: ToolPolicy.Service = ({ params }) => {
  const how = behaviour(pathOf(params))
  return Effect.succeed(
    how === "denied" ? ToolPolicy.deny("not here") : how === "asked" ? ToolPolicy.ask("may it?") : ToolPolicy.allow
  )
}

export const reconciler: ToolReconciler.Service = ({ name, params }) =>
  Effect.succeed(name === "edit" && behaviour(pathOf(params)) === "verified" ? Option.some("half done") : Option.none())

/** A context of the host's whose writes are done at once, but for one that was told to hang. */
export interface Store {
  readonly service: ContextStore.Service
  readonly jam: () => void
  /** Ends the write that hangs; `false` when none does. */
  readonly end: (how: "land" | "fail") => boolean
}

export const makeStore = (tells: boolean): Store => {
  const messages: Array<Prompt.Message> = []
  let jammed = false
  let gate: Deferred.Deferred<"land" | "fail"> | undefined
  return {
    jam: () => {
      jammed = true
    },
    end: (how) => {
      const hanging = gate
      gate = undefined
      if (hanging !== undefined) Deferred.doneUnsafe(hanging, Effect.succeed(how))
      return hanging !== undefined
    },
    service: {
      append: (added) =>
        Effect.suspend(() => {
          if (!jammed || Input.idOfMessage(added[0]) === undefined) {
            messages.push(...added)
            return Effect.void
          }
          jammed = false
          const hanging = Deferred.makeUnsafe<"land" | "fail">()
          gate = hanging
          return Effect.flatMap(Deferred.await(hanging), (how) => {
            if (how === "fail") return Effect.fail("the disk is full")
            messages.push(...added)
            return Effect.void
          })
        }),
      messages: Effect.sync(() => [...messages]),
      has: (id) =>
        Effect.sync(() => {
          if (!tells) return "cannot-tell"
          return messages.some((message) => Input.idOfMessage(message) === id) ? "present" : "absent"
        })
    }
  }
}

const callsOf = (prefix: string, calls: ReadonlyArray<CallSpec>, repeats?: true) => {
  const made = calls.map(({ path, tool }, index) => ({
    name: tool,
    params: { path: behaviour(path) === "invalid" ? 7 : path },
    id: `${prefix}.${index + 1}`
  }))
  const [first] = made
  return ScriptedModel.calls(repeats === true && first !== undefined ? [...made, first] : made)
}

const transient = new AiError.InternalProviderError({ description: "overloaded" })
const fatal = new AiError.AuthenticationError({ kind: "InvalidKey" })

/** The response; `prefix` makes the provider's call ids. */
export const stepOf = (how: Answer, prefix: string): ScriptedModel.Step => {
  switch (how.say) {
    case "text":
      return ScriptedModel.text("an answer")
    case "pause":
      return ScriptedModel.steps([ScriptedModel.text("so far"), ScriptedModel.finish("pause")])
    case "filter":
      return ScriptedModel.steps([ScriptedModel.text("unspeakable"), ScriptedModel.finish("content-filter")])
    case "no-finish":
      return ScriptedModel.steps([ScriptedModel.text("cut of"), ScriptedModel.noFinish])
    case "calls":
      return callsOf(prefix, how.calls, how.repeats)
    case "length":
      return ScriptedModel.steps([callsOf(prefix, how.calls, how.repeats), ScriptedModel.finish("length")])
    case "hang":
      return ScriptedModel.hangAfter(callsOf(prefix, how.calls, how.repeats))
    case "fail": {
      const error = how.retryable ? transient : fatal
      return how.calls.length === 0
        ? ScriptedModel.fail(error)
        : ScriptedModel.failAfter(callsOf(prefix, how.calls), error)
    }
  }
}

/** A provider whose every answer waits until it is given. */
export interface Provider {
  readonly scripted: ScriptedModel.ScriptedModel["Service"]
  readonly layer: Layer.Layer<LanguageModel.LanguageModel>
  /** Answers the request under way; `false` when there is none. */
  readonly answer: (step: ScriptedModel.Step) => boolean
  readonly reset: () => void
}

export const makeProvider: Effect.Effect<Provider> = Effect.gen(function* () {
  let waiting: Deferred.Deferred<ScriptedModel.Step> | undefined
  let next = ScriptedModel.hang
  const scripted = yield* ScriptedModel.make(() => next, { direct: true })
  // The interface types its parts by the caller's toolkit, which a provider made by hand cannot know.
  const streamOf = scripted.model.streamText as (asked: unknown) => Stream.Stream<never, AiError.AiError>
  const later = (asked: unknown) =>
    Stream.unwrap(
      Effect.suspend(() => {
        const gate = Deferred.makeUnsafe<ScriptedModel.Step>()
        waiting = gate
        return Effect.map(Deferred.await(gate), (step) => {
          next = step
          return streamOf(asked)
        })
      })
    )
  const streamText = later as LanguageModel.LanguageModel["streamText"]
  return {
    scripted,
    layer: Layer.succeed(LanguageModel.LanguageModel, { ...scripted.model, streamText }),
    answer: (step) => {
      const gate = waiting
      waiting = undefined
      if (gate === undefined) return false
      Deferred.doneUnsafe(gate, Effect.succeed(step))
      return true
    },
    reset: () => {
      waiting = undefined
      scripted.reset()
    }
  }
})
