/**
 * The chunks of a streamed `/chat/completions` response. Every field may be absent or null: servers differ.
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming
 * @since 0.1.0
 */
import { Schema } from "effect"
import type { AiError } from "effect/ai"

/** @category models @since 0.1.0 */
export type Reason = AiError.AiErrorReason

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optional(Schema.NullOr(schema))

/**
 * What a server says went wrong: words alone, or with a kind.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Problem = Schema.Union([
  Schema.String,
  Schema.Struct({
    message: maybe(Schema.String),
    type: maybe(Schema.String),
    code: maybe(Schema.Union([Schema.String, Schema.Finite]))
  })
])
/** @category models @since 0.1.0 */
export type Problem = typeof Problem.Type

/**
 * One piece of a tool call.
 *
 * @category schemas
 * @since 0.1.0
 */
export const CallDelta = Schema.Struct({
  index: maybe(Schema.Int),
  id: maybe(Schema.String),
  function: maybe(Schema.Struct({ name: maybe(Schema.String), arguments: maybe(Schema.String) }))
})

/**
 * Tokens as the server counted them.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TokenUsage = Schema.Struct({
  prompt_tokens: maybe(Schema.Int),
  completion_tokens: maybe(Schema.Int),
  prompt_tokens_details: maybe(Schema.Struct({ cached_tokens: maybe(Schema.Int) })),
  completion_tokens_details: maybe(Schema.Struct({ reasoning_tokens: maybe(Schema.Int) }))
})

/**
 * One chunk of the stream.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Chunk = Schema.Struct({
  id: maybe(Schema.String),
  model: maybe(Schema.String),
  created: maybe(Schema.Finite),
  error: maybe(Problem),
  choices: maybe(
    Schema.Array(
      Schema.Struct({
        delta: maybe(
          Schema.Struct({
            content: maybe(Schema.String),
            refusal: maybe(Schema.String),
            reasoning_content: maybe(Schema.String),
            reasoning: maybe(Schema.String),
            tool_calls: maybe(Schema.Array(CallDelta))
          })
        ),
        finish_reason: maybe(Schema.String)
      })
    )
  ),
  usage: maybe(TokenUsage)
})
/** @category models @since 0.1.0 */
export type Chunk = typeof Chunk.Type

/**
 * The data of the event that ends a stream.
 *
 * @category constants
 * @since 0.1.0
 */
export const end = "[DONE]"
/**
 * Reads one event's data.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeChunk = Schema.decodeResult(Schema.fromJsonString(Chunk))
