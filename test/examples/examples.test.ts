/** Every example keeps the promise it shows, and prints the lines a reader is to see. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { root } from "../support/sources.ts"
import * as Approval from "../../examples/approval.ts"
import * as CancelWithReconciliation from "../../examples/cancel-with-reconciliation.ts"
import * as CollectFromThree from "../../examples/collect-from-three.ts"
import * as DurableRestart from "../../examples/durable-restart.ts"
import * as HeldAndResent from "../../examples/held-and-resent.ts"
import * as InterruptedWrite from "../../examples/interrupted-write.ts"
import * as LateSteering from "../../examples/late-steering.ts"
import * as ParallelBoundary from "../../examples/parallel-boundary.ts"
import * as PauseUntilSignal from "../../examples/pause-until-signal.ts"
import * as QuickStart from "../../examples/quick-start.ts"
import * as ScopedCorrection from "../../examples/scoped-correction.ts"
import * as SequentialBoundary from "../../examples/sequential-boundary.ts"
import * as TwoOwners from "../../examples/two-owners.ts"

/** What a program prints, line by line. A promise that is not kept rejects. */
const printed = async (program: Effect.Effect<void, unknown>): Promise<ReadonlyArray<string>> => {
  const lines: Array<string> = []
  const recorder: Console.Console = {
    ...globalThis.console,
    log: (...words: ReadonlyArray<unknown>) => void lines.push(...words.map(String).join(" ").split("\n"))
  }
  await Effect.runPromise(Effect.provideService(program, Console.Console, recorder))
  return lines
}

/** The lines a reader is to see, in the order in which they are to be seen; others may stand between them. */
const shown: Readonly<Record<string, readonly [Effect.Effect<void, unknown>, ReadonlyArray<string>]>> = {
  "approval.ts": [
    Approval.program,
    [
      "policy   asks about deploy(staging): may this be deployed?",
      "policy   asks about deploy(production): may this be deployed?",
      'tool     check(database) completed: "database: ok"',
      "runtime  does not start deploy(production): denied, not on a Friday",
      'tool     deploy(staging) completed: "staging: ok"',
      "runtime  generation finished"
    ]
  ],
  "cancel-with-reconciliation.ts": [
    CancelWithReconciliation.program,
    [
      "runtime  launches pay(A-17)",
      "host     cancel requested",
      'runtime  interrupted pay(A-17): effects verified, {"booked":true}',
      "runtime  generation cancelled",
      "runtime  request 1 → carries [paid]",
      "context  Interrupted because the run was cancelled after it had started. " +
        'What it did was established: {"booked":true}'
    ]
  ],
  "collect-from-three.ts": [
    CollectFromThree.program,
    [
      'cleo     collect [cleo-2] "The bill."',
      "runtime  generation finished",
      "runtime  generation started by [ann-1], [ann-2]",
      "runtime  generation started by [bob-1]",
      "runtime  generation started by [cleo-1], [cleo-2]",
      "receipt  [bob-1] applied, first carried by request 1"
    ]
  ],
  "held-and-resent.ts": [
    HeldAndResent.program,
    [
      'ann      steer [holiday] "Friday is a holiday."',
      "runtime  holds [holiday]: generation-cancelled",
      "runtime  generation cancelled",
      'ann      prompt [holiday-again] "Friday is a holiday."',
      "runtime  request 1 → carries [holiday-again]",
      "receipt  [holiday] held (generation-cancelled)",
      "receipt  [holiday-again] applied, first carried by request 1"
    ]
  ],
  "interrupted-write.ts": [
    InterruptedWrite.program,
    [
      'user     steer [title] "Keep the title."',
      "host     cancel requested",
      "runtime  cannot tell what became of [title]: write-interrupted",
      "runtime  request 1 → carries [next]",
      "receipt  [title] unknown (write-interrupted)"
    ]
  ],
  "late-steering.ts": [
    LateSteering.program,
    [
      'model    says "The budget was agreed."',
      'user     steer [absent] "Name who was absent."',
      "runtime  checkpoint saved after request 1",
      "runtime  request 2 → carries [absent]",
      'model    says "The budget was agreed. Absent: Kim."',
      "runtime  generation finished",
      "host     stop requested",
      "runtime  generation stopped",
      "receipt  [absent] applied, first carried by request 2",
      "receipt  [date] refused (no-active-generation)",
      "receipt  [date] refused (admission-closed)"
    ]
  ],
  "parallel-boundary.ts": [
    ParallelBoundary.program,
    [
      "runtime  launches translate(Danish), translate(Finnish)",
      'user     steer [changed] "The text has changed: stop and read it again."',
      "runtime  does not start translate(Norwegian): steering [changed]",
      "runtime  does not start translate(Swedish): steering [changed]",
      'tool     translate(Danish) completed: "translated into Danish"',
      'tool     translate(Finnish) completed: "translated into Finnish"',
      "runtime  request 2 → carries [changed]"
    ]
  ],
  "pause-until-signal.ts": [
    PauseUntilSignal.program,
    [
      "host     pause requested",
      'tool     build(all) completed: "all built"',
      'runtime  paused until {"_tag":"Signal","name":"review-done"}',
      "runtime  pause ended",
      "runtime  request 2 → carries nothing new",
      'resume   by hand: {"accepted":false,"reason":"condition-unmet",' +
        '"unmet":[{"_tag":"Signal","name":"review-done"}]}',
      'resume   with the signal: {"accepted":true}'
    ]
  ],
  "durable-restart.ts": [
    DurableRestart.program,
    [
      "the process is lost",
      "receipt  [bergen] held (process-lost)",
      "receipt  [back] applied, first carried by request 1"
    ]
  ],
  "two-owners.ts": [
    TwoOwners.program,
    [
      "the newer owner finds the run failed",
      "receipt  [bergen] refused (storage-unavailable)",
      "Session trip: another owner has opened this session; this one has stopped and changed nothing since"
    ]
  ],
  "quick-start.ts": [
    QuickStart.program,
    [
      "finished: For Bergen: a raincoat.",
      "bergen: queued, then applied",
      "runtime  launches forecast(Oslo)",
      'user     steer [bergen] "Sorry: Bergen, not Oslo."',
      "runtime  request 2 → carries [bergen]",
      "receipt  [bergen] applied, first carried by request 2"
    ]
  ],
  "scoped-correction.ts": [
    ScopedCorrection.program,
    [
      "runtime  launches search(venues)",
      'user     steer [how-far] "How far are you?"',
      "runtime  does not start mail(the venue): steering [no-mail]",
      "runtime  launches search(caterers)",
      "runtime  request 2 → carries [how-far], [no-mail]"
    ]
  ],
  "sequential-boundary.ts": [
    SequentialBoundary.program,
    [
      "runtime  launches publish(website)",
      'user     steer [no-mail] "Not to the mailing list!"',
      "runtime  does not start publish(mailing list): steering [no-mail]",
      'tool     publish(website) completed: "published to the website"',
      "runtime  request 2 → carries [no-mail]",
      "receipt  [no-mail] applied, first carried by request 2"
    ]
  ]
}

const files = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))

describe("examples/", () => {
  it("holds no program whose lines are not looked at here", () => {
    expect(files.toSorted()).toEqual(Object.keys(shown).toSorted())
  })

  for (const [file, [program, expected]] of Object.entries(shown)) {
    it(`${file} keeps its promise and shows it, line by line`, async () => {
      const lines = await printed(program)
      let from = 0
      const found = lines.filter((line) => from < expected.length && line === expected[from] && ++from > 0)
      expect(found, lines.join("\n")).toEqual(expected)
    })

    it(`${file} prints the same when it is run again`, async () => {
      expect(await printed(program)).toEqual(await printed(program))
    })
  }
})
