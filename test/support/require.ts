// Tests that need a part of the machine (strace, root, a browser) ask for it here. Where the part is missing the
// test is left out with a line that says how to get it; under ECHS_REQUIRE_ALL=1 it fails instead, so that a
// machine that is meant to have everything cannot pass by having nothing.
import { spawnSync } from "node:child_process"
import type { TestContext } from "vitest"

export class PartMissing extends Error {
  override readonly name = "PartMissing"
}

export interface Part {
  readonly name: string
  readonly isThere: () => boolean
  /** What a person does to get it, as an instruction. */
  readonly remedy: string
}

/** True when the program starts and ends well with these arguments. */
export const programRuns = (program: string, args: ReadonlyArray<string>): boolean =>
  spawnSync(program, args, { stdio: "ignore", timeout: 10_000 }).status === 0

/** The parts known so far; a suite may bring its own. */
export const parts = {
  strace: {
    name: "strace",
    isThere: () => programRuns("strace", ["-o", "/dev/null", "true"]),
    remedy: "apt-get install strace, on a system that allows ptrace"
  },
  ripgrep: {
    name: "ripgrep",
    isThere: () => programRuns("rg", ["--version"]),
    remedy: "apt-get install ripgrep"
  },
  pty: {
    name: "a terminal for programs",
    isThere: () => programRuns(process.execPath, ["-e", "require('@lydell/node-pty')"]),
    remedy: "npm ci on a platform that @lydell/node-pty has a binary for"
  },
  root: { name: "root", isThere: () => process.getuid?.() === 0, remedy: "run the tests as root" },
  tmpfs: {
    name: "tmpfs",
    isThere: () => programRuns("unshare", ["--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"]),
    remedy: "run the tests as root on Linux, where mounting is allowed"
  }
} as const satisfies Readonly<Record<string, Part>>

export const requirePart = (context: Pick<TestContext, "skip">, part: Part): void => {
  if (probe(part)) return
  const reason = `needs ${part.name}: ${part.remedy}`
  if (process.env["ECHS_REQUIRE_ALL"] === "1") throw new PartMissing(`${reason} (ECHS_REQUIRE_ALL=1)`)
  context.skip(reason)
}

const probed = new Map<Part, boolean>()

const probe = (part: Part): boolean => {
  const known = probed.get(part)
  if (known !== undefined) return known
  const found = part.isThere()
  probed.set(part, found)
  return found
}
