/** Where the engine and the reference disagree, in words: what a caller was told, and what stands at a rest. */
import { Effect, Option } from "effect"
import type { Receipt } from "../../src/index.ts"
import { inputId } from "../support/harness.ts"
import { type Answered, type Drive, words } from "./Drive.ts"
import type { Expected, Known, Model, Pause } from "./Reference.ts"

const show = (value: unknown): string => JSON.stringify(value)

const asked = (request: number | undefined) => (request === undefined ? {} : { request })

/** The receipt of an accepted identity, as the laws give it. */
const receiptOf = (id: string, { delivery, status }: Known) => {
  switch (status.tag) {
    case "Queued":
      return { inputId: id, generation: null, disposition: "queued", delivery }
    case "Admitted":
      return { inputId: id, generation: status.gen, disposition: "queued", delivery }
    case "Delivered":
    case "Completed":
      return { inputId: id, generation: status.gen, disposition: "applied", delivery, ...asked(status.request) }
    case "Unknown":
      return { inputId: id, generation: status.gen, disposition: "unknown", delivery, reason: status.reason }
    case "Held":
      return { inputId: id, generation: status.gen, disposition: "held", delivery, reason: status.reason }
  }
}

const receiptSeen = (drive: Drive, receipt: Receipt.Accepted) => ({
  inputId: receipt.inputId,
  generation: drive.number(receipt.generationId),
  disposition: receipt.disposition,
  delivery: receipt.delivery,
  ...(receipt.request === undefined ? undefined : { request: receipt.request }),
  ...(receipt.reason === undefined ? undefined : { reason: receipt.reason })
})

const equal = (what: string, got: unknown, wanted: unknown): ReadonlyArray<string> =>
  show(got) === show(wanted) ? [] : [`${what} is ${show(got)}, not ${show(wanted)}`]

/** What a caller was told. `before` are the receipts as they stood when it asked. */
export const told = (drive: Drive, before: Model, expected: Expected, got: Answered): ReadonlyArray<string> => {
  const wrong = [`was told ${show(got)}, not ${show(expected)}`]
  switch (expected.tag) {
    case "nothing":
      return got === undefined ? [] : wrong
    case "done":
      return got?.accepted === true ? [] : wrong
    case "either":
      return got !== undefined && (got.accepted || expected.reasons.includes(got.reason)) ? [] : wrong
    case "refused": {
      if (got === undefined || got.accepted || !expected.reasons.includes(got.reason)) return wrong
      const { actual } = expected
      return actual === undefined || (got.actual !== undefined && drive.number(got.actual) === actual) ? [] : wrong
    }
    case "fresh": {
      if (got?.accepted !== true || !("inputId" in got) || got.inputId !== expected.id) return wrong
      const bound = expected.gens.includes(drive.number(got.generationId))
      return bound && got.disposition === "queued" ? [] : wrong
    }
    case "current": {
      const known = before.known.get(expected.id)
      if (got?.accepted !== true || !("inputId" in got) || known === undefined) return wrong
      return equal("the repeated receipt", receiptSeen(drive, got), receiptOf(expected.id, known))
    }
  }
}

const pauseOf = ({ effective, scope, until }: Pause) => ({ until, scope: scope ?? "all", effective })

/** What stands at a rest. */
export const stands = (drive: Drive, model: Model): ReadonlyArray<string> => {
  const { session } = drive
  const wrong: Array<string> = []
  const check = (what: string, got: unknown, wanted: unknown) => wrong.push(...equal(what, got, wanted))
  for (const [id, known] of model.known) {
    const receipt = Effect.runSync(session.receipt(inputId(id)))
    if (Option.isNone(receipt) || !receipt.value.accepted) {
      wrong.push(`${id} was accepted and has no receipt`)
      continue
    }
    check(`the receipt of ${id}`, receiptSeen(drive, receipt.value), receiptOf(id, known))
    check(
      `the stage of ${id}`,
      Option.getOrUndefined(Effect.runSync(session.input(inputId(id))))?._tag,
      known.status.tag
    )
  }
  for (const id of model.tried.keys()) {
    if (!model.known.has(id) && Option.isSome(Effect.runSync(session.receipt(inputId(id))))) {
      wrong.push(`${id} was refused and has a receipt`)
    }
  }
  const status = Effect.runSync(session.status)
  const { live } = model
  check("used identities", status.identities.used, model.known.size)
  check("closed", status.closed, model.closed)
  check("queued", status.queuedInputIds, [...model.turns, ...model.queue])
  check(
    "the generation",
    status.generation && {
      n: drive.number(status.generation.id),
      initial: status.generation.initialInputId,
      request: status.generation.request,
      pending: status.generation.pendingInputIds
    },
    live === undefined ? null : { n: live.n, initial: live.initial[0], request: live.requests, pending: live.pending }
  )
  if (!model.closed) {
    check(
      "pauses",
      status.pauses.map(({ effective, scope, until }) => ({ until, scope: scope?.tools ?? "all", effective })),
      model.pauses.map(pauseOf)
    )
  }
  const calls = new Map([...drive.calls.values()].map((call) => [call.key, call.status]))
  for (const gen of model.gens) {
    for (const call of gen.calls) {
      check(`call ${call.key}`, calls.get(call.key), call.status)
      calls.delete(call.key)
    }
  }
  for (const [key, seen] of calls) wrong.push(`call ${key} is ${seen} and was not requested`)
  check("generations", drive.generations.length, model.gens.length)
  return wrong
}

/** What the report of an ended generation says (L-E4). */
export const reported = (drive: Drive, model: Model, n: number): ReadonlyArray<string> => {
  const gen = model.gens[n - 1]
  if (gen?.ended === undefined) return []
  const report = drive.report(n)
  const of = (...tags: ReadonlyArray<string>) =>
    gen.inputs.filter((id) => tags.includes(model.known.get(id)?.status.tag ?? ""))
  return [
    ...equal(`the outcome of generation ${n}`, report.outcome, gen.ended),
    ...equal(`the delivered of generation ${n}`, report.deliveredInputIds, of("Delivered", "Completed")),
    ...equal(`the undelivered of generation ${n}`, report.undeliveredInputIds, of("Held")),
    ...equal(`the unknown of generation ${n}`, report.unknownInputIds, of("Unknown")),
    ...equal(`the requests of generation ${n}`, report.requests, gen.requests),
    ...equal(
      `the calls of generation ${n}`,
      report.tools.map((call) => [call.providerId, words(call.status)]),
      gen.calls.map((call) => [call.providerId, call.status])
    )
  ]
}
