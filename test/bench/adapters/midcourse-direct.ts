import { inMemory } from "./midcourse.ts"

export const { start } = await inMemory("direct")
