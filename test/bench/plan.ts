/** What is run: which cells, of which peers, how often. */

export const midcourse = ["midcourse", "midcourse-direct", "midcourse-durable"] as const
const floors = ["floor-js", "floor-effect", "floor-direct", "floor-stream", "floor-ai"]
const quickPeers = ["pi", "ai-sdk-generate"]
const slowPeers = ["ai-sdk-stream", "openai-agents", "langgraph", "langchain", "strands", "effect-chat"]

/** Every peer, in the order of the tables. */
export const peers: ReadonlyArray<string> = [...midcourse, ...floors, ...quickPeers, ...slowPeers]

/** What runs without the packages of peers/. */
export const needsInstall = (peer: string): boolean =>
  !floors.includes(peer) && peer !== "effect-chat" && !peer.startsWith("midcourse")

/** What a peer is, for those who read the tables. */
export const described: { readonly [peer: string]: string } = {
  midcourse: "Midcourse, provider of `LanguageModel.make`",
  "midcourse-direct": "Midcourse, provider implementing `LanguageModel`",
  "midcourse-durable": "Midcourse on SQLite, provider of `LanguageModel.make`",
  "floor-js": "a plain loop",
  "floor-effect": "a plain loop in an Effect fiber",
  "floor-direct": "the bare loop over the direct provider",
  "floor-stream": "the bare loop over `LanguageModel.make`",
  "floor-ai": "the loop with `toolkit.handle`, over `LanguageModel.make`",
  pi: "pi-agent-core",
  "ai-sdk-generate": "AI SDK `generateText`",
  "ai-sdk-stream": "AI SDK `streamText`",
  "openai-agents": "OpenAI Agents",
  langgraph: "LangGraph",
  langchain: "LangChain",
  strands: "Strands",
  "effect-chat": "effect/ai `Chat`"
}

/** One cell of one peer, in every round. */
export interface Task {
  readonly cell: string
  readonly args: ReadonlyArray<number>
  readonly peer: string
}

export interface Plan {
  readonly rounds: number
  readonly tasks: ReadonlyArray<Task>
}

/** Seconds a cell may take before it is given up. */
export const timeLimit = 180

interface Row {
  readonly cell: string
  readonly args: ReadonlyArray<number>
  readonly peers: ReadonlyArray<string>
}

const toTasks = (rows: ReadonlyArray<Row>): ReadonlyArray<Task> =>
  rows.flatMap(({ args, cell, peers }) => peers.map((peer) => ({ cell, args, peer })))

const durable = "midcourse-durable"
const direct = "midcourse-direct"

const without = (left: ReadonlyArray<string>): ReadonlyArray<string> => peers.filter((peer) => !left.includes(peer))

/** Each receipt waits for the disk, or the next request takes seconds to carry 10,000. */
const slowToAdmit = [durable, "ai-sdk-generate", "ai-sdk-stream"]

/** Every figure. */
export const full = (rounds: number): Plan => {
  const rows: ReadonlyArray<Row> = [
    { cell: "step", args: [50], peers },
    { cell: "step", args: [200], peers },
    { cell: "step", args: [1000], peers: without(slowPeers) },
    { cell: "step", args: [200, 10], peers: [direct, "pi"] },
    { cell: "step", args: [200, 100], peers: [direct, "pi"] },
    { cell: "stream", args: [10_000], peers: [...midcourse, "floor-direct", "floor-stream", "pi", "ai-sdk-stream"] },
    { cell: "latency", args: [1000, 1200], peers: without(floors) },
    { cell: "submits", args: [10_000], peers: without([...floors, ...slowToAdmit]) },
    { cell: "submits", args: [2000], peers: [direct, ...slowToAdmit] },
    { cell: "live", args: [1000], peers: without(floors) },
    { cell: "live", args: [10_000], peers: ["midcourse", direct, "pi"] },
    { cell: "cancel", args: [1000, 10_000], peers: without(floors) },
    { cell: "leftovers", args: [10_000], peers: ["midcourse", direct] }
  ]
  return { rounds, tasks: toTasks(rows) }
}

/** What a change of the runtime can move, in some minutes. */
export const quick = (rounds: number): Plan => {
  const compared = ["midcourse", "midcourse-direct", ...quickPeers]
  const rows: ReadonlyArray<Row> = [
    { cell: "step", args: [200], peers: [...midcourse, ...floors, ...quickPeers] },
    { cell: "step", args: [1000], peers: ["midcourse-direct", "pi"] },
    { cell: "step", args: [200, 100], peers: ["midcourse-direct"] },
    { cell: "stream", args: [10_000], peers: ["midcourse-direct", "pi"] },
    { cell: "latency", args: [300], peers: compared },
    { cell: "submits", args: [10_000], peers: ["midcourse", "midcourse-direct", "pi"] },
    { cell: "submits", args: [2000], peers: ["midcourse-direct", "ai-sdk-generate"] },
    { cell: "live", args: [1000], peers: compared },
    { cell: "cancel", args: [1000], peers: compared },
    { cell: "leftovers", args: [3000], peers: ["midcourse-direct"] }
  ]
  return { rounds, tasks: toTasks(rows) }
}
