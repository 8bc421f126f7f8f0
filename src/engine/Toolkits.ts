/**
 * Toolkits as they were resolved, with the coders of their tools: what sessions of one agent have in common is made once. A provider
 * that keeps a decoder for the newest toolkit keeps it over all of them.
 *
 * @since 0.1.0
 */
import { Context, Effect, Option, Schema } from "effect"
import { Tool, type Toolkit } from "effect/ai"
import type { Tools } from "../domain/Agent.ts"

/** @category models @since 0.1.0 */
export type Coder = (u: unknown) => Effect.Effect<unknown, Schema.SchemaError, unknown>

/**
 * How one tool's parameters are read and its results written.
 *
 * @category models
 * @since 0.1.0
 */
export class Coders {
  readonly decode: Coder
  readonly encodeSuccess: Coder
  readonly encodeFailure: Coder

  constructor(tool: Tool.Any) {
    // A tool of any kind has schemas of no type in particular.
    const parameters: unknown = tool.parametersSchema
    this.decode = Schema.isSchema(parameters)
      ? Schema.decodeUnknownEffect(parameters as Schema.Top)
      : (u) => Effect.succeed(u)
    this.encodeSuccess = Schema.encodeUnknownEffect(tool.successSchema as Schema.Top)
    this.encodeFailure = Schema.encodeUnknownEffect(Tool.failureResultSchema(tool) as Schema.Top)
  }
}

/**
 * A toolkit with the handlers it was resolved with.
 *
 * @category models
 * @since 0.1.0
 */
export class Resolved {
  readonly toolkit: Toolkit.WithHandler<Tools>
  readonly #coders = new Map<string, Coders>()

  constructor(toolkit: Toolkit.WithHandler<Tools>) {
    this.toolkit = toolkit
  }

  coders(tool: Tool.Any): Coders {
    const known = this.#coders.get(tool.name)
    if (known !== undefined) return known
    const made = new Coders(tool)
    this.#coders.set(tool.name, made)
    return made
  }
}

type Services = Context.Context<Tool.HandlersFor<Tools>>

/** @category models @since 0.1.0 */
export class Toolkits {
  readonly #known = new WeakMap<object, { readonly resolved: Resolved; readonly services: Services }>()

  /** The toolkit as these services resolve it: again only if a handler is another than before. */
  resolve(toolkit: Toolkit.Toolkit<Tools>, services: Services): Effect.Effect<Resolved> {
    const known = this.#known.get(toolkit)
    if (known !== undefined && hasSameHandlers(toolkit.tools, known.services, services)) {
      return Effect.succeed(known.resolved)
    }
    const handlers = handlersOf(toolkit.tools, services)
    return Effect.map(Effect.provideContext(toolkit, handlers), (made) => {
      const resolved = new Resolved(made)
      this.#known.set(toolkit, { resolved, services: handlers })
      return resolved
    })
  }
}

/** The handlers alone: what else a session was opened with is not kept for the next one. */
const handlersOf = (tools: Tools, services: Services): Services =>
  Context.makeUnsafe(
    new Map(Object.values(tools).map(({ id }) => [id, Option.getOrUndefined(serviceOf(services, id))] as const))
  )

const hasSameHandlers = (tools: Tools, a: Services, b: Services): boolean =>
  Object.values(tools).every(
    ({ id }) => Option.getOrUndefined(serviceOf(a, id)) === Option.getOrUndefined(serviceOf(b, id))
  )

/**
 * What is under a key of no type known here. Looked up: `mapUnsafe` would copy everything that a session was opened with.
 *
 * @category queries
 * @since 0.1.0
 */
export const serviceOf = <Given>(services: Context.Context<Given>, key: string): Option.Option<unknown> =>
  // A look-up reads nothing but the key.
  Context.getOption(services, { key } as Context.Key<never, unknown>)
