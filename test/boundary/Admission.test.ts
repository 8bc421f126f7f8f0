import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import * as Admission from "../../src/boundary/Admission.ts"
import { Input, ToolScope } from "../../src/index.ts"

const finished: Admission.Closing = { outcome: "finished", cause: "finish", held: "budget-exhausted" }
const stopped: Admission.Closing = { outcome: "stopped", cause: "stop", held: "generation-stopped" }
const cancelled: Admission.Closing = { outcome: "cancelled", cause: "cancel", held: "generation-cancelled" }

const Operation = Schema.Union([
  Schema.TaggedStruct("Admit", { scope: Schema.Literals(["all", "none", "edit"]) }),
  Schema.TaggedStruct("Take", { count: Schema.Literals([1, 2, Number.MAX_SAFE_INTEGER]) }),
  Schema.TaggedStruct("Reserve", {}),
  Schema.TaggedStruct("Release", {}),
  Schema.TaggedStruct("CloseIfEmpty", {}),
  Schema.TaggedStruct("Close", { closing: Schema.Literals(["stopped", "cancelled"]) })
])
type Operation = typeof Operation.Type

const operations = Arbitrary.array(Arbitrary.schema(Operation), { maxLength: 40 })

const scopeOf = { all: undefined, none: ToolScope.none, edit: ToolScope.tools("edit") } as const

/** The same as a plain list: what is in line, how many are reserved, and why it is closed. */
interface Model {
  readonly line: Array<Input.Input>
  reserved: number
  closed: Admission.Closing | undefined
}

const ids = (inputs: ReadonlyArray<Input.Input>) => inputs.map((input) => input.id)

/** Performs an operation on both and gives what each answered. */
const perform = (self: Admission.Admission, model: Model, operation: Operation, n: number) => {
  switch (operation._tag) {
    case "Admit": {
      const scope = scopeOf[operation.scope]
      const input = Input.steer("x", { id: `s${n}`, ...(scope === undefined ? undefined : { scope }) })
      if (model.closed === undefined) model.line.push(input)
      return [Admission.admit(self, input), model.closed === undefined]
    }
    case "Take":
      return [ids(Admission.take(self, operation.count)), ids(model.line.splice(0, operation.count))]
    case "Reserve": {
      Admission.reserve(self, 1)
      model.reserved++
      return []
    }
    case "Release": {
      if (model.reserved === 0) return []
      Admission.reserve(self, -1)
      model.reserved--
      return []
    }
    case "CloseIfEmpty": {
      const may = model.closed === undefined && model.line.length === 0 && model.reserved === 0
      if (may) model.closed = finished
      return [Admission.closeIfEmpty(self, finished), may]
    }
    case "Close": {
      model.closed = operation.closing === "stopped" ? stopped : cancelled
      return [ids(Admission.close(self, model.closed)), ids(model.line.splice(0))]
    }
  }
}

const make = Effect.withFiber((fiber) => Effect.succeed(Admission.make(fiber.currentDispatcher)))

const closingOf = (state: Admission.State) => (state._tag === "Closed" ? state.closing : undefined)

describe("Admission", () => {
  it.effect.prop(
    "L-A5 L-E2 L-B2 behaves as a plain list that can be closed",
    [operations],
    ([steps]) =>
      Effect.gen(function* () {
        const self = yield* make
        const model: Model = { line: [], reserved: 0, closed: undefined }
        for (const [n, operation] of steps.entries()) {
          const [got, expected] = perform(self, model, operation, n)
          assert.deepStrictEqual(got, expected)
          const state = Admission.get(self)
          assert.deepStrictEqual(ids(Admission.pending(self)), ids(model.line))
          assert.deepStrictEqual(
            Admission.affecting(self, "edit"),
            ids(model.line.filter((input) => input.scope === undefined || input.scope.tools.includes("edit")))
          )
          assert.deepStrictEqual(closingOf(state), model.closed)
          assert.strictEqual(state.reserved, model.reserved)
        }
      }),
    { arbitrary: { runs: 500 } }
  )

  it.effect.prop("L-A5 every admission, and every close, rings", [operations], ([steps]) =>
    Effect.gen(function* () {
      const self = yield* make
      const model: Model = { line: [], reserved: 0, closed: undefined }
      for (const [n, operation] of steps.entries()) {
        yield* self.bell.hear
        const open = model.closed === undefined
        perform(self, model, operation, n)
        const rings = (operation._tag === "Admit" && open) || operation._tag === "Close"
        if (rings) assert.isTrue(self.bell.isRung)
      }
    })
  )

  it.effect.prop(
    "L-B1 what is taken, in whatever portions, is what was admitted, in that order",
    [operations],
    ([steps]) =>
      Effect.gen(function* () {
        const self = yield* make
        const admitted: Array<string> = []
        const taken: Array<string> = []
        for (const [n, operation] of steps.entries()) {
          if (operation._tag === "Admit" && Admission.admit(self, Input.steer("x", { id: `s${n}` })))
            admitted.push(`s${n}`)
          if (operation._tag === "Take") taken.push(...ids(Admission.take(self, operation.count)))
        }
        taken.push(...ids(Admission.close(self, stopped)))
        assert.deepStrictEqual(taken, admitted)
      })
  )
})
