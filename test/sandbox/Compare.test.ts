// Goal: a sandbox that is not what was planned is told apart from one that is. Method: real sandboxes with one place
// mounted from another directory, writable, missing or too many, held against the plan.
// Verifies: INV-TOOL-SANDBOX
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { differenceOf } from "#src/sandbox/Compare.ts"
import { factsOf } from "#src/sandbox/Handle.ts"
import type { Mount } from "#src/sandbox/Places.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap } from "../support/sandbox.ts"

let base = ""
let child: ChildProcess | undefined

const place = (name: string): string => join(base, name)
const planned = (name: string, kind: Mount["kind"] = "readonly"): Mount => ({
  at: place(name),
  kind,
  file: factsOf(lstatSync(place(name), { bigint: true }))
})

beforeEach((context) => {
  requirePart(context, bubblewrap)
  base = realpathSync(mkdtempSync(join(tmpdir(), "echs-compare-")))
  for (const name of ["planned", "other"]) mkdirSync(place(name))
})
afterEach(async () => {
  if (child?.exitCode === null) {
    const ended = once(child, "exit")
    child.stdin?.end()
    await ended
  }
  child = undefined
  if (base !== "") rmSync(base, { recursive: true, force: true })
})

/** A sandbox that lives until its standard input ends. */
const sandbox = async (...mounts: ReadonlyArray<string>): Promise<number> => {
  const args = ["--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", ...mounts]
  child = spawn("bwrap", [...args, "sh", "-c", "echo up; cat"], { stdio: ["pipe", "pipe", "inherit"] })
  await once(child.stdout!, "data")
  return child.pid!
}

describe("a sandbox", () => {
  it("that is as planned has no difference", async () => {
    const pid = await sandbox("--ro-bind", place("planned"), place("planned"))
    expect(differenceOf([planned("planned")], pid)).toBeUndefined()
  })

  it("with another directory in a planned place is told by that place", async () => {
    const pid = await sandbox("--ro-bind", place("other"), place("planned"))
    expect(differenceOf([planned("planned")], pid)).toBe(`${place("planned")} is not what was planned`)
  })

  it("with a place that can be written to, or is not there, is told", async () => {
    const pid = await sandbox("--bind", place("planned"), place("planned"))
    expect(differenceOf([planned("planned")], pid)).toBe(`${place("planned")} can be written to`)
    expect(differenceOf([planned("planned", "writable"), planned("other")], pid)).toBe(
      `${place("other")} is not mounted`
    )
  })

  it("with a place that nobody planned is told", async () => {
    const pid = await sandbox("--ro-bind", place("planned"), place("planned"), "--tmpfs", place("other"))
    expect(differenceOf([planned("planned")], pid)).toBe(`${place("other")} was not planned`)
  })

  it("that is gone is told", async () => {
    expect(differenceOf([planned("planned")], 999_999_999)).toContain("cannot be looked at")
  })
})
