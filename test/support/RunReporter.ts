// The last words of a test run: what was counted, what was left out and why, what was left running, and one plain line of
// totals that a script can read. A process that is left running fails the run; under ECHS_REQUIRE_ALL=1 a test that was
// left out does too.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Reporter, TestCase, TestModule } from "vitest/node"
import { type CountRecord, countsFileVariable } from "./counts.ts"
import { enterPlace, type Leftover, leavePlace } from "./Leftovers.ts"
import { writeDurations } from "./LongestFirst.ts"

export interface Totals {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export interface Skipped {
  readonly test: string
  readonly reason: string | undefined
}

const commandCharsMax = 300

export default class RunReporter implements Reporter {
  /** Workers start after this and inherit it. */
  readonly #place = enterPlace()
  readonly #countsFile = join(this.#place, "counts.jsonl")

  /** What to say at the end; nothing while a run goes on, or when it was broken off. */
  #closing: ((left: ReadonlyArray<Leftover>) => void) | undefined

  onInit(): void {
    process.env[countsFileVariable] = this.#countsFile
    // At exit, so that it stays the last word, and so that the workers are gone: coverage and the summary of vitest are
    // printed before. A run that is broken off leaves nothing behind either.
    process.once("exit", () => {
      const left = leavePlace(this.#place)
      this.#closing?.(left)
    })
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    const counts = existsSync(this.#countsFile) ? parseCounts(readFileSync(this.#countsFile, "utf8")) : []
    if (process.env["ECHS_DURATIONS"] === "write") writeDurations(modules)
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const requireAll = process.env["ECHS_REQUIRE_ALL"] === "1"
    // Without a reason: left out by a filter on the command line, which needs no explanation but is not allowed here.
    const skipped = tests.flatMap(skippedTest).filter(({ reason }) => requireAll || reason !== undefined)
    const failedOutsideTests = modules.filter(failedWithoutTest).length + unhandledErrors.length
    this.#closing = (left) => {
      const totals = totalsOf(tests, failedOutsideTests + left.length)
      if (left.length > 0 || (requireAll && totals.skipped > 0)) process.exitCode = 1
      process.stdout.write(closingText({ counts, skipped, left, totals, requireAll }))
    }
  }
}

/** One row per name, in the order of first appearance; records of the same name are summed. */
export const parseCounts = (lines: string): ReadonlyArray<CountRecord> => {
  const sums = new Map<string, number>()
  for (const line of lines.split("\n").filter((text) => text !== "")) {
    const record: CountRecord = JSON.parse(line)
    sums.set(record.name, (sums.get(record.name) ?? 0) + record.value)
  }
  return [...sums].map(([name, value]) => ({ name, value }))
}

export const closingText = (run: {
  readonly counts: ReadonlyArray<CountRecord>
  readonly skipped: ReadonlyArray<Skipped>
  /** Processes that the run started and did not end. */
  readonly left: ReadonlyArray<Leftover>
  readonly totals: Totals
  readonly requireAll: boolean
}): string => {
  const shown = run.counts.map(({ name, value }) => ({ name, value: value.toLocaleString("en-US") }))
  const width = Math.max(0, ...shown.map(({ name, value }) => name.length + value.length)) + 5
  const dots = (row: { name: string; value: string }) => ".".repeat(width - row.name.length - row.value.length - 2)
  const { passed, failed, skipped } = run.totals
  return [
    ...shown.map((row) => `counted: ${row.name} ${dots(row)} ${row.value}\n`),
    ...run.skipped.map(({ test, reason }) => `skipped: ${test}: ${reason ?? "no reason given"}\n`),
    ...reasonsOf(run.skipped).map(([reason, tests]) => `left out: ${tests} tests: ${reason}\n`),
    ...run.left.map(({ pid, command }) => `left running: ${pid} ${command.slice(0, commandCharsMax)}\n`),
    ...(run.requireAll && skipped > 0 ? ["ECHS_REQUIRE_ALL=1 allows no skipped test\n"] : []),
    `${passed} passed, ${failed} failed, ${skipped} skipped\n`
  ].join("")
}

/** How many tests were left out for each reason, most first. */
const reasonsOf = (skipped: ReadonlyArray<Skipped>): ReadonlyArray<readonly [string, number]> => {
  const sums = new Map<string, number>()
  for (const { reason = "no reason given" } of skipped) sums.set(reason, (sums.get(reason) ?? 0) + 1)
  return [...sums].sort(([, left], [, right]) => right - left)
}

const totalsOf = (tests: ReadonlyArray<TestCase>, failedOutsideTests: number): Totals => {
  const having = (state: string) => tests.filter((test) => test.result().state === state).length
  const passed = having("passed")
  const failed = having("failed")
  return { passed, failed: failed + failedOutsideTests, skipped: tests.length - passed - failed }
}

/** A file that does not load, or whose hooks fail, has no failed test to count. */
const failedWithoutTest = (module: TestModule): boolean =>
  module.state() === "failed" && ![...module.children.allTests("failed")].some(() => true)

const skippedTest = (test: TestCase): ReadonlyArray<Skipped> => {
  const result = test.result()
  if (result.state === "passed" || result.state === "failed") return []
  const reason = result.state === "skipped" ? result.note : undefined
  return [{ test: `${test.module.relativeModuleId} > ${test.fullName}`, reason }]
}
