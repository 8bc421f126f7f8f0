import { Effect } from "effect"
import * as C from "./children.ts"
import { mkdtempSync } from "node:fs"
import * as Chaos from "./chaos.ts"
import { judge } from "./judge.ts"
import { recorder } from "./world.ts"
const f = mkdtempSync("/dev/shm/mc-")
const now = () => performance.now().toFixed(0)
await Effect.runPromise(Effect.scoped(Effect.gen(function*(){
  const children = yield* C.make
  yield* Effect.sleep(1500)
  for (let life=1; life<4; life++) {
  console.log("go", now())
  const o = yield* children.live({place:{dialect:"sqlite",where:f+"/s.db"},session:"s",mode:"settle",onClose:"cancel",scene:"chaos",life,seed:1,folder:f,hosted:false,concurrency:1,lifetime:300,failpoint:undefined,again:[]}, {from:"opened",after:200})
  console.log("dead", now(), o.lines.length, o.killed, o.lines.filter(l=>l.line==="commit").length)
  const bad = yield* judge({place:{dialect:"sqlite",where:f+"/s.db"},session:"s",folder:f,hosted:false,actor:Chaos.actor({concurrency:1},recorder(f)),lines:[...o.lines]},"resume",life)
  console.log("judged", now(), bad)
  }
})))
