import { defineConfig } from "vitest/config"

// One configuration for every lane. Heavy suites read their counts from the
// environment (see test/support/counts.ts), so the same files serve both
// `npm test` and `npm run soak`.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    coverage: {
      provider: "v8",
      include: ["runelog/**/*.ts"],
      reporter: ["text", "json-summary"]
    }
  }
})
