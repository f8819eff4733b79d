// Goal: figures can be trusted by a script: pure JSON, honest exit codes, no row that measured nothing. Method: the
// runner as a process over the benchmarks in fixture/.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { checkRows, listBenches, type Options } from "./run.ts"
import { formatNumber } from "./table.ts"

const fixture = fileURLToPath(new URL("./fixture", import.meta.url))
const runner = new URL("./run.ts", import.meta.url).href

const runFixture = (options: Partial<Options>) => {
  const full = { name: undefined, json: false, gate: false, ...options }
  const script = `const { runBench } = await import(${JSON.stringify(runner)})
    process.exitCode = await runBench(${JSON.stringify(fixture)}, ${JSON.stringify(full)})`
  return spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })
}

describe("npm run bench", () => {
  it("lists what there is when no name is given", () => {
    expect(listBenches(fixture)).toEqual(["good", "hollow"])
    expect(runFixture({}).stdout).toBe("good\nhollow\n")
  })

  it("prints one JSON object and nothing else with --json", () => {
    const run = runFixture({ name: "good", json: true })
    expect(run.status).toBe(0)
    expect(run.stdout.trimEnd().split("\n")).toHaveLength(1)
    const report = JSON.parse(run.stdout)
    expect(Object.keys(report)).toEqual(["bench", "commit", "node", "rows"])
    expect(report).toMatchObject({ bench: "good", node: process.versions.node })
    expect(report.commit).toMatch(/^([0-9a-f]{7,}(\+changes)?|unknown)$/)
    expect(report.rows[1]).toEqual({
      name: "ours",
      value: 66_000,
      unit: "appends/s",
      baseline: "the limit",
      ratio: 0.55,
      target: 0.5,
      met: true
    })
    expect(run.stderr).toContain("measuring")
  })

  it("aligns a table for people", () => {
    const run = runFixture({ name: "good" })
    expect(run.status).toBe(0)
    expect(run.stdout.split("\n").slice(2, 6)).toEqual([
      "name         value  unit       baseline   ratio  target  met",
      "the limit  120,000  appends/s",
      "ours        66,000  appends/s  the limit   0.55     0.5  yes",
      "too slow        12  ms                               10  no"
    ])
    expect(run.stdout).toContain("1 of 2 targets met")
  })

  it("fails a missed target only when asked to", () => {
    expect(runFixture({ name: "good", gate: true }).status).toBe(1)
  })

  it("answers an unknown name with 2 and the known ones", () => {
    const run = runFixture({ name: "nothing" })
    expect(run.status).toBe(2)
    expect(run.stderr).toContain("good, hollow")
    expect(run.stdout).toBe("")
  })

  it("refuses rows that measured nothing or compare with nothing", () => {
    expect(runFixture({ name: "hollow", json: true })).toMatchObject({ status: 1, stdout: "" })
    expect(() => checkRows([])).toThrow(/no row/)
    expect(() => checkRows([{ name: "ours", value: 1, unit: "ms", baseline: "theirs" }])).toThrow(/did not measure/)
  })

  it("keeps the digits that matter", () => {
    expect([1234567.8, 999.94, 12.345, 0.123456, 0].map(formatNumber)).toEqual([
      "1,234,568",
      "999.9",
      "12.3",
      "0.123",
      "0"
    ])
  })
})
