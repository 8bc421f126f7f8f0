import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**", "test/crash/**"],
    maxWorkers: "100%",
    reporters: ["default"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false
  }
})
