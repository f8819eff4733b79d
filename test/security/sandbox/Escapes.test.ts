// Goal: no command gets out of the sandbox, whoever runs the server. Method: a list of real attempts in real processes,
// as root and as an ordinary user; the same attempts against sandboxes with one part left out, which they must notice.
// Verifies: G10, INV-TOOL-SANDBOX
import { spawn } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { reportCount } from "../../support/counts.ts"
import { parts, requirePart } from "../../support/require.ts"
import { bubblewrap } from "../../support/sandbox.ts"
import { attempts } from "./attempts.ts"
import type { EscapeReport } from "./child.ts"
import { keepsRoot, mutants, noticedBy, otherMounts } from "./mutants.ts"
import { asOrdinary, isRoot, ordinary, reachable } from "./users.ts"

const program = fileURLToPath(new URL("./child.ts", import.meta.url))

let base = ""

beforeEach(() => {
  // Outside the temporary directory, which a sandbox hides as a whole and so would hide what the attempts look for.
  const place = isRoot && existsSync("/srv") ? "/srv" : tmpdir()
  base = mkdtempSync(join(place, "echs-escapes-"))
  chmodSync(base, 0o755)
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

type Who = "root" | "user"

const commandFor = (who: Who): ReadonlyArray<string> => {
  if (who === "root" || !isRoot) return [process.execPath]
  chownSync(base, ordinary, ordinary)
  return asOrdinary()
}

interface Attack {
  readonly mutant?: string
  readonly only?: ReadonlyArray<string>
  /** In sandboxes that were ready before. */
  readonly isAhead?: boolean
  readonly isCompared?: boolean
}

const attack = (
  who: Who,
  { isAhead = false, isCompared = false, mutant = "", only = [] }: Attack = {}
): Promise<EscapeReport> =>
  new Promise((resolve, reject) => {
    const [file = "", ...args] = commandFor(who)
    const words = [isAhead ? "ahead" : "", isCompared ? "compared" : ""]
    const child = spawn(file, [...args, program, base, mutant, only.join("\n"), ...words], {
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

const escapesOf = (report: EscapeReport): ReadonlyArray<string> =>
  report.attempts.flatMap(({ escaped, name }) => (escaped === undefined ? [] : [`${name}: ${escaped}`]))

const expectHeld = (report: EscapeReport, who: Who): void => {
  expect(escapesOf(report)).toEqual([])
  expect(report.attempts.map(({ name }) => name)).toEqual(attempts.map(({ name }) => name))
  expect(report.level).toBe("bubblewrap")
  reportCount(
    `escape attempts that were held, server run by ${who === "root" ? "root" : "an ordinary user"}`,
    report.attempts.length
  )
}

describe("the sandbox", () => {
  it("has at least sixty attempts made on it", () => {
    expect(new Set(attempts.map(({ name }) => name)).size).toBeGreaterThanOrEqual(60)
    expect(Object.keys(noticedBy).sort()).toEqual(Object.keys(mutants).sort())
  })

  it("holds every attempt when the server is root", { timeout: 180_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.root)
    const report = await attack("root")
    expect(report.uid).toBe(0)
    expectHeld(report, "root")
  })

  it("holds every attempt when it was made before the call", { timeout: 180_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    const report = await attack("user", { isAhead: true })
    expect(escapesOf(report)).toEqual([])
    expect(report.ahead).toBe(attempts.length)
    reportCount("escape attempts that were held in sandboxes made ahead", report.ahead)
  })

  it("holds every attempt when an ordinary user runs the server", { timeout: 180_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    const report = await attack("user")
    expect(report.uid).not.toBe(0)
    expectHeld(report, "user")
  })
})

describe("the attempts", () => {
  it.for(Object.keys(mutants))("notice %s", { timeout: 120_000 }, async (mutant, context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    const noticing = noticedBy[mutant] ?? []
    const report = await attack("user", { mutant, only: noticing })
    expect(
      report.attempts
        .filter(({ escaped }) => escaped !== undefined)
        .map(({ name }) => name)
        .sort()
    ).toEqual([...noticing].sort())
    reportCount("weakened sandboxes that the attempts noticed", 1)
  })

  it.for(otherMounts)("are not even made on %s, which its plan does not know", async (mutant, context) => {
    requirePart(context, bubblewrap)
    requirePart(context, reachable)
    const noticing = noticedBy[mutant] ?? []
    const report = await attack("user", { mutant, only: noticing, isCompared: true })
    expect(report.attempts.map(({ violated }) => violated)).toEqual(noticing.map(() => true))
    reportCount("weakened sandboxes that differed from their plan", 1)
  })

  it("notice a root server whose commands stay root", { timeout: 120_000 }, async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.root)
    const noticing = ["read the passwords of the system"]
    const report = await attack("root", { mutant: keepsRoot, only: noticing })
    expect(report.level).toBe("bubblewrap_as_root")
    expect(escapesOf(report)).toHaveLength(1)
    reportCount("weakened sandboxes that the attempts noticed", 1)
  })
})
