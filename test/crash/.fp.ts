import { Effect } from "effect"
import { join } from "node:path"
import * as Children from "./children.ts"
import * as F from "./failpoints.ts"
const [hosted="", modes="one"] = process.argv.slice(2)
const t=performance.now()
const r = await Effect.runPromise(Effect.scoped(Effect.gen(function*(){
  const children = yield* Children.make
  return yield* F.run({children, dialect:"sqlite", placeIn: (f)=>({dialect:"sqlite", where: join(f,"s.db")}), sides:["before","after"], modes: modes as "one", hosted: hosted==="hosted", progress: t=>console.log(t)})
})))
console.log(r, performance.now()-t)
