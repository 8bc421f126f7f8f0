import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Ids, Receipt } from "../../src/index.ts"

const roundTrip = <A, E>(schema: Schema.Codec<A, E>, value: A) =>
  Effect.gen(function* () {
    const json: unknown = JSON.parse(JSON.stringify(yield* Schema.encodeEffect(schema)(value)))
    return yield* Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })(json)
  })

/** As JSON has it, which knows no negative zero. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const disposition = {
  Queued: "queued",
  Admitted: "queued",
  Delivered: "applied",
  Completed: "applied",
  Held: "held",
  Unknown: "unknown"
} as const satisfies Record<Receipt.InputStatus["_tag"], Receipt.Accepted["disposition"]>

describe("Receipt", () => {
  it.effect.prop(
    "L-A1 a receipt is plain JSON: it survives being written and read",
    [Receipt.Receipt],
    ([receipt]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual<unknown>(yield* roundTrip(Receipt.Receipt, receipt), plain(receipt))
      }),
    { arbitrary: { runs: 1_000 } }
  )

  it.effect.prop(
    "a control receipt is plain JSON",
    [Receipt.ControlReceipt],
    ([receipt]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual<unknown>(yield* roundTrip(Receipt.ControlReceipt, receipt), plain(receipt))
      }),
    { arbitrary: { runs: 1_000 } }
  )

  it.effect.prop(
    "L-F7 a status is plain JSON",
    [Receipt.InputStatus],
    ([status]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual<unknown>(yield* roundTrip(Receipt.InputStatus, status), plain(status))
      }),
    { arbitrary: { runs: 1_000 } }
  )

  it.effect.prop("a receipt is either accepted or refused, and orFail says which", [Receipt.Receipt], ([receipt]) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Receipt.orFail(receipt))
      assert.strictEqual(Exit.isSuccess(exit), receipt.accepted)
      if (Exit.isSuccess(exit)) assert.deepStrictEqual<Receipt.Receipt>(exit.value, receipt)
      else {
        const refused = yield* Effect.flip(Receipt.orFail(receipt))
        assert.deepStrictEqual<Receipt.Receipt>(refused.receipt, receipt)
        assert.include(refused.message, refused.receipt.reason)
      }
    })
  )

  it.effect("an accepted receipt without a disposition, or a refusal with one, is neither", () =>
    Effect.gen(function* () {
      const decode = Schema.decodeUnknownExit(Receipt.Receipt)
      const bad = [
        { accepted: true, inputId: "i", generationId: null },
        { accepted: true, inputId: "i", generationId: null, disposition: "refused" },
        { accepted: false, inputId: "i", generationId: null, disposition: "queued", reason: "busy" },
        { accepted: false, inputId: "i", generationId: null, disposition: "refused", reason: "generation-stopped" }
      ]
      assert.deepStrictEqual(
        yield* Effect.succeed(bad.map((json) => Exit.isFailure(decode(json)))),
        bad.map(() => true)
      )
    })
  )
})

describe("Receipt.ofStatus", () => {
  const properties = [Ids.InputId, Receipt.InputStatus, Schema.UndefinedOr(Receipt.Delivery)] as const

  it.prop("L-D1 every status is one of the four dispositions", [...properties], ([id, status, delivery]) => {
    assert.strictEqual(Receipt.ofStatus(id, status, delivery).disposition, disposition[status._tag])
  })

  it.prop(
    "L-D2 only what is applied names a request, and just the one its status names",
    [...properties],
    ([id, status, delivery]) => {
      const { request } = Receipt.ofStatus(id, status, delivery)
      assert.strictEqual(request, "request" in status ? status.request : undefined)
    }
  )

  it.prop(
    "L-D3 L-D4 a reason is there when it is held or unknown, and only then",
    [...properties],
    ([id, status, delivery]) => {
      assert.strictEqual(Receipt.ofStatus(id, status, delivery).reason, "reason" in status ? status.reason : undefined)
    }
  )

  it.prop(
    "L-A1 it is a receipt of the schema, with no key that has no value",
    [...properties],
    ([id, status, delivery]) => {
      const receipt = Receipt.ofStatus(id, status, delivery)
      assert.isTrue(Schema.is(Receipt.Receipt)(receipt))
      assert.isTrue(Object.values(receipt).every((value) => value !== undefined))
      assert.strictEqual(receipt.inputId, id)
      assert.strictEqual(receipt.generationId, "generationId" in status ? status.generationId : null)
      assert.strictEqual(receipt.delivery, delivery)
    }
  )
})
