/** Kills at random moments, several of one session, each judged. */
import { Effect } from "effect"
import * as Chaos from "./chaos.ts"
import { type Children, type Kill, temporary } from "./children.ts"
import { type Case, judge, unanswered } from "./judge.ts"
import { chance, type Config, type Mode, type Place, recorder } from "./world.ts"

export interface Campaign {
  readonly children: Children
  readonly dialect: Place["dialect"]
  /** The database of a session that is kept in a folder. */
  readonly placeIn: (folder: string) => Place
  readonly kills: number
  readonly seed: number
  /** The first session's number, to begin where a run before found something. */
  readonly from?: number
  /** Told of a session that lied, before its folder is removed. */
  readonly keep?: (one: Case) => void
  readonly progress?: (tally: Tally) => void
}

export interface Tally {
  kills: number
  sessions: number
  /** Lives that were over before they were killed. */
  closed: number
  accepted: number
  readonly lies: Array<string>
}

const maxKillsOfOne = 10

/** One session, whose processes are killed until chance says that it was enough. */
const session = (campaign: Campaign, nth: number, tally: Tally) =>
  Effect.gen(function* () {
    const { children, dialect, kills, placeIn, seed } = campaign
    const random = chance(seed * 100_003 + nth)
    const folder = yield* temporary(random() < 0.15 ? "disk" : "memory")
    const hosted = random() < 0.25
    const concurrency = random() < 0.5 ? 1 : 3
    const place = placeIn(folder)
    const actor = Chaos.actor({ concurrency }, recorder(folder))
    const one: Case = { place, session: `crash_${seed}_${nth}`, folder, hosted, actor, lines: [] }
    const target = 1 + Math.floor(random() * maxKillsOfOne)
    const lies = tally.lies.length
    let mine = 0
    for (let life = 1; mine < target && tally.kills < kills && life <= 2 * maxKillsOfOne; life++) {
      const mode: Mode = life % 2 === 0 ? "settle" : "resume"
      const lifetime = 100 + random() * 500
      const config: Config = {
        place,
        session: one.session,
        mode: random() < 0.5 ? "settle" : "resume",
        onClose: random() < 0.5 ? "cancel" : "detach",
        scene: "chaos",
        life,
        seed: seed + nth,
        folder,
        hosted,
        concurrency,
        lifetime: lifetime + 20,
        failpoint: undefined,
        again: unanswered(one.lines)
      }
      const dice = random()
      const kill: Kill =
        dice < 0.15
          ? { from: "told", after: random() * 250 }
          : dice < 0.5
            ? { from: "opened", after: random() * lifetime }
            : { from: "commit", nth: 1 + Math.floor(random() * 60), after: random() * 3 }
      const outcome = yield* children.live(config, kill)
      one.lines.push(...outcome.lines)
      const name = `${dialect} session ${nth} (${hosted ? "host's context, " : ""}concurrency ${concurrency}) life ${life} ${mode}`
      if (outcome.killed) {
        mine++
        tally.kills++
      } else {
        tally.closed++
        if (outcome.code !== 0)
          tally.lies.push(`${name}: it ended with ${outcome.code}: ${outcome.complaint.slice(0, 800)}`)
      }
      tally.accepted += outcome.lines.filter((line) => line.line === "receipt" && line.receipt.accepted).length
      // The next process is sometimes the one that recovers, and is killed over it.
      if (random() < 0.3 && mine < target) continue
      for (const lie of yield* judge(one, mode, life)) tally.lies.push(`${name}: ${lie}`)
      campaign.progress?.(tally)
      if (tally.lies.length > lies) return campaign.keep?.(one)
    }
    for (const lie of yield* judge(one, "settle", 1000)) tally.lies.push(`${dialect} session ${nth} at the end: ${lie}`)
    if (tally.lies.length > lies) campaign.keep?.(one)
  }).pipe(Effect.scoped)

export const run = (campaign: Campaign): Effect.Effect<Tally> =>
  Effect.gen(function* () {
    const tally: Tally = { kills: 0, sessions: 0, closed: 0, accepted: 0, lies: [] }
    while (tally.kills < campaign.kills && tally.lies.length < 5) {
      yield* session(campaign, (campaign.from ?? 1) + tally.sessions++, tally)
    }
    return tally
  })
