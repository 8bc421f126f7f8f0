/**
 * Fails when a step, a submit or a cancel has become dearer: `npm run bench:guard`, under a minute, without the peers. Each is
 * measured in CPU time beside a step of the bare loop over the direct provider, in short blocks in turn, and only the median of
 * the blocks' ratios counts: a busy machine slows both sides of every block.
 */
import type { Adapter } from "./adapter.ts"
import { adapter as bare } from "./adapters/loop.ts"
import { inMemory } from "./adapters/session.ts"
import { expectEnd } from "./cells/cell.ts"
import { park } from "./cells/cancel.ts"
import { generation } from "./cells/step.ts"
import { cpuTime, median, now, percentile } from "./measure.ts"

/**
 * What each may cost at most, in steps of the bare loop over the direct provider: half above what it costs. Both sides of a block are
 * CPU time within the same tenths of a second, so that what else the machine does weighs on both, and what it adds to one side more
 * than to the other stays within the half. When the runtime becomes cheaper, lower them.
 */
const limits = { step: 5, submit: 0.6, cancel: 17.5 }

const midcourse = await inMemory("direct")
const floor = await bare("direct", "call")

/** CPU microseconds of one of so many, all done by `run`. */
const each = async (count: number, run: () => Promise<unknown>): Promise<number> => {
  const before = cpuTime()
  await run()
  return (cpuTime() - before) / count
}

const steps = async (adapter: Adapter): Promise<number> => {
  const [generations, length] = [4, 50]
  return each(generations * length, async () => {
    for (let count = 0; count < generations; count++) await generation(adapter, length)
  })
}

const texts = Array.from({ length: 500 }, (_, index) => `s${index}`)

const paths: { readonly [Path in keyof typeof limits]: () => Promise<number> } = {
  step: () => steps(midcourse),
  submit: async () => {
    const { expectAborts, generations } = await park(midcourse, 1)
    const [running] = generations
    if (running?.steerAll === undefined) throw new Error("nothing to steer")
    const { steerAll } = running
    const cost = await each(texts.length, () => steerAll(texts))
    running.cancel()
    await expectEnd(running, "cancelled")
    await expectAborts()
    return cost
  },
  cancel: async () => {
    const { expectAborts, generations } = await park(midcourse, 40)
    return each(generations.length, async () => {
      for (const running of generations) {
        running.cancel()
        await expectEnd(running, "cancelled")
      }
      await expectAborts()
    })
  }
}

/** The ratios of alternating blocks, for so many seconds. */
const blocks = async (path: () => Promise<number>, seconds: number): Promise<ReadonlyArray<number>> => {
  const ratios: Array<number> = []
  const end = now() + seconds * 1_000_000
  while (now() < end || ratios.length < 5) {
    const before = await steps(floor)
    const cost = await path()
    const after = await steps(floor)
    ratios.push((2 * cost) / (before + after))
  }
  return ratios
}

for (const path of Object.values(paths)) await blocks(path, 5)

const dearer: Array<string> = []
for (const [name, limit] of Object.entries(limits) as ReadonlyArray<[keyof typeof limits, number]>) {
  const ratios = await blocks(paths[name], 10)
  const ratio = median(ratios)
  const spread = `${percentile(ratios, 0.25).toFixed(2)} to ${percentile(ratios, 0.75).toFixed(2)} of ${ratios.length} blocks`
  console.log(
    `${name.padEnd(8)} ${ratio.toFixed(2)} steps of the bare loop over the direct provider (${spread}); at most ${limit}`
  )
  if (ratio > limit) dearer.push(`a ${name} costs ${(ratio / limit).toFixed(2)} times its limit`)
}
if (dearer.length > 0) {
  console.error(`Dearer than they may be: ${dearer.join("; ")}.`)
  process.exit(1)
}
process.exit(0)
