// Goal: the helpers that decide what a green run means cannot lie. Method: the pure parts directly; the reporter
// through a real vitest run over the files in fixture/, because only there its exit code can be seen.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it, vi } from "vitest"
import { count } from "./counts.ts"
import { findLeftovers } from "./Leftovers.ts"
import { durationsOf, longestFirst, measured } from "./LongestFirst.ts"
import { closingText, parseCounts } from "./RunReporter.ts"
import { PartMissing, requirePart } from "./require.ts"
import { randomFrom, seedFor } from "./seed.ts"

const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs")
const config = fileURLToPath(new URL("./fixture/vitest.config.ts", import.meta.url))

const runFixture = (files: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) => {
  const env = { ...process.env, ECHS_REQUIRE_ALL: "0", ...variables }
  const run = spawnSync(process.execPath, [vitest, "run", "--config", config, ...files], { encoding: "utf8", env })
  const lines = run.stdout.trimEnd().split("\n")
  return { status: run.status, lines, last: lines.at(-1) }
}

afterEach(() => vi.unstubAllEnvs())

describe("the order of test files", () => {
  it("begins with those that take long and leaves the others as they are", () => {
    const durations = { first: 60, second: 5 }
    expect(longestFirst(["b", "second", "a", "first"], (path) => path, durations)).toEqual([
      "first",
      "second",
      "b",
      "a"
    ])
    expect(longestFirst(["b", "a"], (path) => path)).toEqual(["b", "a"])
  })

  it("comes from what a run measured", () => {
    const runs = [
      { path: "short", ms: 900 },
      { path: "long", ms: 61_400 },
      { path: "longer", ms: 61_600 }
    ]
    expect(Object.entries(durationsOf(runs))).toEqual([
      ["longer", 62],
      ["long", 61]
    ])
  })

  it("was measured for files that exist", () => {
    const top = fileURLToPath(new URL("../..", import.meta.url))
    expect(Object.keys(measured).filter((path) => !existsSync(join(top, path)))).toEqual([])
    expect(Object.keys(measured).length).toBeGreaterThan(20)
  })
})

describe("count", () => {
  it("takes the number of the lane", () => {
    vi.stubEnv("ECHS_COUNT", "")
    vi.stubEnv("ECHS_LANE", "fast")
    expect(count("kills", { fast: 200, soak: 10_000 })).toBe(200)
    vi.stubEnv("ECHS_LANE", "soak")
    expect(count("kills", { fast: 200, soak: 10_000 })).toBe(10_000)
  })

  it("is overridden by ECHS_COUNT and refuses one that is no count", () => {
    vi.stubEnv("ECHS_COUNT", "3")
    expect(count("kills", { fast: 200, soak: 10_000 })).toBe(3)
    vi.stubEnv("ECHS_COUNT", "0")
    expect(() => count("kills", { fast: 200, soak: 10_000 })).toThrow(/whole number/)
  })
})

describe("requirePart", () => {
  const missing = { name: "unicorn", isThere: () => false, remedy: "catch one" }

  it("lets a test go on when the part is there", () => {
    const skip = vi.fn()
    requirePart({ skip: skip as never }, { name: "air", isThere: () => true, remedy: "breathe" })
    expect(skip).not.toHaveBeenCalled()
  })

  it("skips with the remedy when it is not", () => {
    vi.stubEnv("ECHS_REQUIRE_ALL", "")
    const skip = vi.fn()
    requirePart({ skip: skip as never }, missing)
    expect(skip).toHaveBeenCalledExactlyOnceWith("needs unicorn: catch one")
  })

  it("fails when everything is required", () => {
    vi.stubEnv("ECHS_REQUIRE_ALL", "1")
    expect(() => requirePart({ skip: vi.fn() as never }, missing)).toThrow(PartMissing)
  })
})

describe("seedFor", () => {
  it("takes SEED and gives the same numbers for it", () => {
    vi.stubEnv("SEED", "42")
    const [first, second] = [randomFrom(seedFor("a test")), randomFrom(seedFor("a test"))]
    const numbers = [first(), first(), first()]
    expect([second(), second(), second()]).toEqual(numbers)
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
    expect(randomFrom(43)()).not.toBe(randomFrom(42)())
  })

  it("refuses a SEED that is no number", () => {
    vi.stubEnv("SEED", "lucky")
    expect(() => seedFor("a test")).toThrow(/whole number/)
  })
})

describe("the report of a run", () => {
  it("sums counts of the same name and aligns them", () => {
    const counts = parseCounts('{"name":"a","value":1}\n{"name":"longer","value":2000}\n{"name":"a","value":2}\n')
    const totals = { passed: 3, failed: 0, skipped: 0 }
    expect(closingText({ counts, skipped: [], left: [], totals, requireAll: false })).toBe(
      ["counted: a ............ 3", "counted: longer ... 2,000", "3 passed, 0 failed, 0 skipped", ""].join("\n")
    )
  })

  it("ends with counts and totals", () => {
    const run = runFixture(["counting"], {})
    expect(run.status).toBe(0)
    expect(run.lines).toContain("counted: kills ............ 1,200")
    expect(run.last).toBe("1 passed, 0 failed, 0 skipped")
  })

  it("names a skipped test and its remedy, and still passes", () => {
    const run = runFixture(["missing"], {})
    expect(run.status).toBe(0)
    expect(run.lines).toContain("skipped: missing.check.ts > wants a unicorn: needs unicorn: catch one")
    expect(run.lines).toContain("left out: 1 tests: needs unicorn: catch one")
    expect(run.last).toBe("0 passed, 0 failed, 1 skipped")
  })

  it("fails for a missing part when everything is required", () => {
    const run = runFixture(["missing", "counting"], { ECHS_REQUIRE_ALL: "1" })
    expect(run.status).toBe(1)
    expect(run.last).toBe("1 passed, 1 failed, 0 skipped")
  })

  it("names a process that the run left behind, whichever way it is known, ends it, and fails", async () => {
    const run = runFixture(["leaving"], {})
    const left = run.lines.filter((line) => line.startsWith("left running: "))
    expect(left.map((line) => line.replace(/\d+/, "PID"))).toEqual(
      ["by-environment", "by-folder"].map((name) => expect.stringMatching(new RegExp(`^left running: PID .*${name}`)))
    )
    expect(run.status).toBe(1)
    expect(run.last).toBe("1 passed, 2 failed, 0 skipped")
    const pids = left.map((line) => Number(line.split(" ")[2]))
    const alive = () =>
      pids.filter((pid) => existsSync(`/proc/${pid}/environ`) && readFileSync(`/proc/${pid}/cmdline`).length > 0)
    // A signal is delivered when the kernel next runs the process.
    await expect.poll(alive, { timeout: 10_000 }).toEqual([])
  })

  it("ends what it started and removes its folder when it is broken off", async () => {
    const env = { ...process.env, ECHS_REQUIRE_ALL: "0" }
    const run = spawn(process.execPath, [vitest, "run", "--config", config, "endless"], { env, stdio: "pipe" })
    let said = ""
    run.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text
    })
    await expect.poll(() => /place: (\S+)\n/.exec(said)?.[1], { timeout: 30_000 }).toBeDefined()
    const place = /place: (\S+)\n/.exec(said)![1]!
    expect(findLeftovers(place)).not.toEqual([])
    run.kill("SIGTERM")
    await once(run, "exit")
    expect(findLeftovers(place)).toEqual([])
    expect(existsSync(place)).toBe(false)
  })

  it("counts a file that does not load as a failure", () => {
    const run = runFixture(["broken", "counting"], {})
    expect(run.status).toBe(1)
    expect(run.last).toBe("1 passed, 1 failed, 0 skipped")
  })
})
