/** The kill tests on their own: they start many processes, and nothing else should run beside them. */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: { include: ["test/crash/**/*.test.ts"], testTimeout: 300_000, hookTimeout: 60_000, maxWorkers: 1 }
})
