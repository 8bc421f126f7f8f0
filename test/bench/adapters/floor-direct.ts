import { adapter } from "./loop.ts"

export const { start } = await adapter("direct", "call")
