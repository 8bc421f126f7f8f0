/** Clocks, memory and the statistics of the benchmarks. */
import { readFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Microseconds on the wall. */
export const now = (): number => performance.now() * 1000

/** Microseconds of CPU this process has used, all its threads. */
export const cpuTime = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

export const percentile = (numbers: ReadonlyArray<number>, share: number): number =>
  [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? Number.NaN

export const median = (numbers: ReadonlyArray<number>): number => percentile(numbers, 0.5)

/** Everything that waits for the event loop has had its turn. */
export const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits, a turn of the event loop at a time, until it holds. */
export const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await idle()
}

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

/** Collects garbage until nothing more comes of it. */
export const collect = async (): Promise<void> => {
  for (let round = 0; round < 3; round++) {
    gc()
    await idle()
  }
}

/** Bytes the process holds of the machine's memory; the heap's where the system does not say. */
export const residentSet = (): number => {
  try {
    const found = /VmRSS:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))
    if (found !== null) return Number(found[1]) * 1024
  } catch {
    // No such file on this system.
  }
  return process.memoryUsage().rss
}

export const heapUsed = (): number => process.memoryUsage().heapUsed
