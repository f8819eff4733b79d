// Goal: nobody gets out of a sandbox by exchanging the names that it protects while it is made. Method: real races in
// real processes, for every protected name, as root and as an ordinary user, in sandboxes made ahead and not; and the
// same races against a sandbox that follows names, which they must win.
// Verifies: G10, INV-TOOL-SANDBOX
import { spawn } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { count, reportCount } from "../../support/counts.ts"
import { parts, requirePart } from "../../support/require.ts"
import { bubblewrap } from "../../support/sandbox.ts"
import type { RaceReport } from "./raceChild.ts"
import { racers } from "./racers.ts"
import { asOrdinary, isRoot, ordinary, reachable } from "./users.ts"

const program = fileURLToPath(new URL("./raceChild.ts", import.meta.url))
let base = ""

beforeEach(() => {
  const place = isRoot && existsSync("/srv") ? "/srv" : tmpdir()
  base = mkdtempSync(join(place, "echs-race-"))
  chmodSync(base, 0o755)
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const race = (who: "root" | "user", calls: number, mutant = ""): Promise<RaceReport> =>
  new Promise((resolve, reject) => {
    if (who === "user" && isRoot) chownSync(base, ordinary, ordinary)
    const [file = "", ...args] = who === "user" ? asOrdinary() : [process.execPath]
    const child = spawn(file, [...args, program, base, String(calls), mutant], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], HOME: "/nonexistent" }
    })
    const said = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].on("data", (bytes: Buffer) => {
        said[stream] += bytes.toString("utf8")
      })
    child.on("error", reject)
    child.on("close", (code) =>
      code === 0 ? resolve(JSON.parse(said.stdout)) : reject(new Error(`ended with ${code}: ${said.stderr}`))
    )
  })

const names = racers({ data: "/d", home: "/h", outside: "/o" }).length
const callsEach = (): number =>
  Math.ceil(count("racing calls for each kind of server", { fast: 1_050, soak: 50_000 }) / names)

const expectHeld = (report: RaceReport, who: string): void => {
  expect(report.escapes).toEqual([])
  expect(report).toMatchObject({ level: "bubblewrap", names })
  expect(report.calls).toBeGreaterThanOrEqual(1_050)
  // Both sides of the race were met.
  expect(report.ran).toBeGreaterThan(0)
  expect(report.refused + report.violated).toBeGreaterThan(0)
  reportCount(`calls raced for a protected name, none got out, server run by ${who}`, report.calls)
  reportCount("racing calls that were refused by their plan", report.refused)
  reportCount("racing calls whose sandbox was found to be another", report.violated)
  reportCount("racing calls in sandboxes made ahead", report.ahead)
}

describe("a name that is exchanged while a sandbox is made", () => {
  it("leads nowhere when the server is root", { timeout: 300_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.root)
    expectHeld(await race("root", callsEach()), "root")
  })

  it("leads nowhere when an ordinary user runs the server", { timeout: 300_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    expectHeld(await race("user", callsEach()), "an ordinary user")
  })

  it("leads out of a sandbox that goes by names", { timeout: 300_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    const report = await race("user", 200, "names")
    expect(report.escapes).not.toEqual([])
    reportCount("weakened sandboxes that the races noticed", 1)
  })
})
