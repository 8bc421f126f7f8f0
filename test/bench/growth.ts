/** How the runtime's own part of a step grows with the conversation: a step less the same `streamText` alone, in one run. */
import { Console, Effect } from "effect"
import { bare, cpu, generation, median, services } from "./fixture.ts"

const own = (steps: number, rounds: number) =>
  Effect.gen(function* () {
    const wholes: Array<number> = []
    const floors: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      wholes.push((yield* cpu(generation(steps, true))) / steps)
      floors.push((yield* cpu(bare(steps))) / steps)
    }
    const whole = median(wholes)
    const floor = median(floors)
    return { steps, whole, floor, own: whole - floor }
  })

const program = Effect.gen(function* () {
  // Steady state first: the compiler is done with both paths.
  for (let round = 0; round < 40; round++) {
    yield* generation(200, true)
    yield* bare(200)
  }
  const short = yield* own(200, 61)
  const long = yield* own(1000, 21)
  for (const { floor, own, steps, whole } of [short, long]) {
    const line = [whole, floor, own].map((micros) => micros.toFixed(1)).join("   ")
    yield* Console.log(`${String(steps).padStart(5)} requests: step, streamText alone, own part (CPU µs)   ${line}`)
  }
  const ratio = long.own / short.own
  yield* Console.log(`own part at 1,000 over 200: ${ratio.toFixed(2)} (goal: at most 1.15)`)
})

await Effect.runPromise(Effect.provideContext(program, await Effect.runPromise(services)))
