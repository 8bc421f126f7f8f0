/** How a commit is packed into rows: what comes out is what went in, or is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import type { StoredEntry } from "../../src/ledger/SessionStore.ts"
import * as CommitRow from "../../src/store/CommitRow.ts"

/** Entries from position 11, events from sequence 6, of so many kinds. */
const entriesOf = (kinds: ReadonlyArray<"event" | "message" | "input">, body: unknown = "x"): Array<StoredEntry> => {
  let sequence = 5
  return kinds.map((kind, index) => ({
    position: 11 + index,
    sequence: kind === "event" ? ++sequence : null,
    kind,
    inputId: kind === "input" ? `in_${index}` : null,
    body
  }))
}

const opened = (rows: ReadonlyArray<CommitRow.CommitRow>) => Effect.runSync(Effect.forEach(rows, CommitRow.open))

const kinds = Arbitrary.schema(Schema.Array(Schema.Literals(["event", "message", "input"])))

describe("the rows of a commit", () => {
  it.prop(
    "hold its entries, in places that follow one another",
    [kinds, Arbitrary.schema(Schema.Json)],
    ([kinds, json]) => {
      const body: unknown = JSON.parse(JSON.stringify(json))
      const entries = entriesOf(kinds, body)
      const rows = opened(CommitRow.fromEntries(entries))
      assert.deepStrictEqual(
        rows.flatMap(({ entries }) => entries),
        entries
      )
      let end = 10
      for (const { after, position } of rows) {
        assert.strictEqual(after, end)
        end = position
      }
      assert.strictEqual(end, 10 + entries.length)
    }
  )

  it("are one, unless it has several inputs or more entries than one row holds", () => {
    const count = (kinds: Parameters<typeof entriesOf>[0]) => CommitRow.fromEntries(entriesOf(kinds)).length
    assert.strictEqual(count(["event", "message", "event"]), 1)
    assert.strictEqual(count(["input", "event"]), 1)
    assert.strictEqual(count(["input", "event", "input", "event"]), 2)
    assert.strictEqual(count(["event", "input"]), 2)
    assert.strictEqual(count(Array.from({ length: 250 }, () => "event" as const)), 3)
  })

  it("are shorter when one would be too long, or longer than a string can be", () => {
    const rowsOf = (bodies: ReadonlyArray<unknown>) =>
      CommitRow.fromEntries(
        entriesOf(bodies.map(() => "event")).map((entry, index) => ({ ...entry, body: bodies[index] }))
      )
    const counts = (rows: ReadonlyArray<CommitRow.CommitRow>) => opened(rows).map(({ entries }) => entries.length)
    assert.deepStrictEqual(counts(rowsOf(Array.from({ length: 5 }, () => "x".repeat(20_000)))), [3, 2])
    assert.deepStrictEqual(counts(rowsOf(["x".repeat(100_000)])), [1])
    let asked = 0
    const toJSON = () => {
      if (++asked === 1) throw new RangeError("Invalid string length")
      return "long"
    }
    assert.deepStrictEqual(counts(rowsOf([{ toJSON }, "short"])), [1, 1])
    assert.throws(() => rowsOf([1n, 1n]), TypeError)
  })

  it("say their last position, their last event and their input", () => {
    const [first, second] = CommitRow.fromEntries(entriesOf(["event", "event", "message", "input"]))
    assert.deepInclude(first, { position: 13, sequence: 7, input_id: null })
    assert.deepInclude(second, { position: 14, sequence: null, input_id: "in_3" })
  })

  it("L-R5 are refused when anything of them was changed", () => {
    const [row] = CommitRow.fromEntries(entriesOf(["input", "event"], { text: "abc" }))
    if (row === undefined) return assert.fail("no row")
    const refused = (changed: CommitRow.CommitRow) => {
      const { message, reason } = Effect.runSync(Effect.flip(CommitRow.open(changed)))
      assert.strictEqual(reason._tag, "Corrupt")
      assert.include(message, "changed after it was written")
    }
    for (let at = 0; at < row.body.length; at++) {
      refused({ ...row, body: `${row.body.slice(0, at)}${row.body[at] === "x" ? "y" : "x"}${row.body.slice(at + 1)}` })
    }
    refused({ ...row, body: row.body.slice(1) })
    refused({ ...row, position: row.position + 1 })
    refused({ ...row, sequence: null })
    refused({ ...row, input_id: "in_1" })
    refused({ ...row, input_id: null })
    const [other] = CommitRow.fromEntries(entriesOf(["event"]))
    if (other !== undefined) refused({ ...other, input_id: "null" })
    refused({ ...row, checksum: "" })
  })

  it("without events before a sequence keep their records, and every place", () => {
    const [row] = CommitRow.fromEntries(entriesOf(["event", "message", "event", "event"]))
    if (row === undefined) return assert.fail("no row")
    const pruned = (before: number, until: number) => {
      const { first, row: left } = Effect.runSync(CommitRow.prune(row, before, until))
      const positions =
        left === undefined ? [] : opened([left]).flatMap(({ entries }) => entries.map((e) => e.position))
      return [first, positions]
    }
    assert.deepStrictEqual(pruned(6, 100), [6, [11, 12, 13, 14]])
    assert.deepStrictEqual(pruned(7, 100), [7, [12, 13, 14]])
    assert.deepStrictEqual(pruned(100, 13), [8, [12, 14]])
    assert.deepStrictEqual(pruned(100, 100), [undefined, [12]])
    const [events] = CommitRow.fromEntries(entriesOf(["event", "event"]))
    if (events === undefined) return assert.fail("no row")
    assert.isUndefined(Effect.runSync(CommitRow.prune(events, 100, 100)).row)
  })
})
