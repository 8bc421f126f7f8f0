/**
 * Which model the program works with: one that an OpenAI-compatible server serves if the environment has a key, else the
 * embedded planner.
 *
 * @since 0.1.0
 */
import { Config, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { LanguageModel } from "effect/ai"
import { FetchHttpClient } from "effect/http"
import * as OpenAiCompatible from "../OpenAiCompatible.ts"
import * as Planner from "./Planner.ts"

/**
 * A model, and what to call it. `hint` says what to look at when it fails.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  readonly name: string
  readonly hint: string | undefined
  readonly layer: Layer.Layer<LanguageModel.LanguageModel>
}

/**
 * The command line or the environment asks for what cannot be.
 *
 * @category errors
 * @since 0.1.0
 */
export class Misuse extends Schema.TaggedError<Misuse>()("Misuse", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The model asked for from the server when the command line names none.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultName = "gpt-4.1-mini"

/**
 * The server when the environment names none.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultBaseUrl = "https://api.openai.com/v1"

const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(Config.String(name)), (value) =>
    Option.getOrUndefined(
      Option.filter(
        Option.map(value, (text) => text.trim()),
        (text) => text !== ""
      )
    )
  )

/**
 * Chooses the model. `pace` is the embedded planner's wait before each word and call, in milliseconds; `together` says that
 * the calls of a response may run at once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const choose = Effect.fn("Model.choose")(function* (options: {
  readonly name: string | undefined
  readonly pace: number
  readonly together: boolean
}): Effect.fn.Return<Model, Misuse> {
  const key = yield* variable("OPENAI_API_KEY")
  const address = yield* variable("OPENAI_BASE_URL")
  if (key === undefined) {
    if (options.name !== undefined) {
      const detail =
        "--model names a model of a server: set OPENAI_API_KEY (and OPENAI_BASE_URL for another server than " +
        `${defaultBaseUrl}), or leave --model out to use the embedded planner`
      return yield* new Misuse({ detail })
    }
    const unused = address === undefined ? "" : "; OPENAI_BASE_URL is not used without OPENAI_API_KEY"
    return {
      name: `the embedded planner, offline (OPENAI_API_KEY is not set${unused})`,
      hint: undefined,
      layer: Planner.layer({ pace: options.pace, together: options.together })
    }
  }
  const baseUrl = address ?? defaultBaseUrl
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? "")) {
    return yield* new Misuse({ detail: `OPENAI_BASE_URL is not an address like ${defaultBaseUrl}` })
  }
  const model = options.name ?? defaultName
  return {
    name: `${model} at ${URL.parse(baseUrl)?.host ?? baseUrl}`,
    hint: "the model is what OPENAI_API_KEY, OPENAI_BASE_URL and --model say; without a key the embedded planner is used",
    layer: OpenAiCompatible.layer({ model, baseUrl, apiKey: Redacted.make(key) }).pipe(
      Layer.provide(FetchHttpClient.layer)
    )
  }
})
