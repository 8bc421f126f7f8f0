/** What 10,000 finished generations leave behind, each in a session of its own that is closed. Run with `--expose-gc`. */
import { Console, Effect } from "effect"
import { generation, services } from "./fixture.ts"

const heap = Effect.gen(function* () {
  for (let round = 0; round < 3; round++) {
    yield* Effect.sleep("20 millis")
    globalThis.gc?.()
  }
  return process.memoryUsage().heapUsed
})

const program = Effect.gen(function* () {
  if (globalThis.gc === undefined) return yield* Effect.die("run node with --expose-gc")
  const many = (count: number) => Effect.forEach(Array.from({ length: count }), () => generation(3, true))
  yield* many(1000)
  const after1000 = yield* heap
  yield* many(9000)
  const after10000 = yield* heap
  const ratio = after10000 / after1000
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(2)
  yield* Console.log(`heap after 1,000: ${mib(after1000)} MiB, after 10,000: ${mib(after10000)} MiB`)
  yield* Console.log(`ratio ${ratio.toFixed(3)} (goal: at most 1.10)`)
})

await Effect.runPromise(Effect.provideContext(program, await Effect.runPromise(services)))
