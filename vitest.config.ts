// One configuration for every lane. Heavy suites ask test/support/counts.ts how often to repeat themselves, so the
// same files serve `npm test` and `npm run soak`.
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import LongestFirst from "./test/support/LongestFirst.ts"

const hourMs = 3_600_000

/** Half of what the files take is waiting, for processes, disks and clocks: one worker more than cores uses it. */
const maxWorkers = Math.min(availableParallelism() + 1, 4)

export default defineConfig(({ mode }) => ({
  test: {
    include: [mode === "clients" ? "test/clients/**/*.client.ts" : "test/**/*.test.ts"],
    env: { ECHS_LANE: mode === "soak" ? "soak" : "fast" },
    testTimeout: mode === "soak" ? 3 * hourMs : 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/RunReporter.ts"],
    coverage: {
      provider: "v8",
      include: ["runelog/**/*.ts", "src/machine/**/*.ts"],
      reporter: ["text", "json-summary"],
      reportOnFailure: true,
      thresholds: { "runelog/**": { branches: 100 }, "src/machine/**": { branches: 100 } }
    }
  }
}))
