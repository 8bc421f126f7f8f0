import { Effect } from "effect"
import { Interleavings, ScriptedModel } from "/work/main/src/testing/index.ts"
import { AgentRuntime } from "/work/main/src/index.ts"
import * as S from "/work/main/test/support/scenarios.ts"
const [name, replay] = process.argv.slice(2) as [string, string]
const { readFileSync } = await import("node:fs")
const src = readFileSync("/work/main/test/laws/exploration.test.ts", "utf8")
const body = src.slice(src.indexOf("const one ="), src.indexOf("const say")).replace(": ReadonlyArray<Explored>", "")
const explored = new Function(body + "; return explored")()
const shape = explored.find((e: any) => e.shape.name === name).shape
console.log(JSON.stringify(await Effect.runPromise(S.replay(shape, replay, (rest: any) => { for (const e of rest.told.events) { const { session_id, time, generation_id, ...r } = e; console.log(JSON.stringify(r)) } }))))
