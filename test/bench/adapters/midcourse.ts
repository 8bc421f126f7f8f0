import { inMemory } from "./session.ts"

export const { start } = await inMemory("made")
