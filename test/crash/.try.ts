import { Effect } from "effect"
import { join } from "node:path"
import * as Children from "./children.ts"
import * as Kills from "./kills.ts"
const [kills="5", seed="1"] = process.argv.slice(2)
const t=performance.now()
const tally = await Effect.runPromise(Effect.scoped(Effect.gen(function*(){
  const children = yield* Children.make
  return yield* Kills.run({children, dialect:"sqlite", placeIn: (f)=>({dialect:"sqlite", where: join(f,"s.db")}), kills:Number(kills), seed:Number(seed), progress: t=>console.log(t.kills,t.sessions,t.closed,t.accepted)})
})))
console.log(tally, performance.now()-t)
