// Goal: a power cut on a real file system loses nothing acknowledged, and the test would see it if it did. Method:
// pictures of an ext4 disk taken while a writer works on it, each mounted and recovered; the same with a writer that
// never syncs must lose.
// Verifies: G1, G2
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { count, lane, reportCount } from "../support/counts.ts"
import { type Part, programRuns, requirePart } from "../support/require.ts"
import { ChildLines } from "../support/runelog/ChildLines.ts"
import { seedFor } from "../support/seed.ts"

const timeoutMs = lane() === "soak" ? 3 * 3_600_000 : 120_000

const tryMount = (makeFileSystem: string): string =>
  `image=$(mktemp) && truncate -s 128M $image && ${makeFileSystem} $image && mount -o loop $image /mnt; ` +
  "status=$?; umount -l /mnt; rm -f $image; exit $status"

const loopMounts: Part = {
  name: "loop mounts of btrfs and ext4",
  isThere: () =>
    ["mkfs.btrfs -q", "mkfs.ext4 -q"].every((makeFileSystem) =>
      programRuns("unshare", ["--mount", "--propagation", "private", "sh", "-c", tryMount(makeFileSystem)])
    ),
  remedy: "apt-get install btrfs-progs e2fsprogs and run the tests as root, where loop devices are allowed"
}

interface Outcome {
  readonly acknowledged: number
  readonly events?: number
  readonly error?: string
}

const cutPower = async (pictures: number, flaw: string): Promise<ReadonlyArray<Outcome>> => {
  const scratch = mkdtempSync(join(tmpdir(), "echs-power-"))
  try {
    const args = [scratch, String(pictures), flaw, String(seedFor(`power cuts (${flaw})`))]
    const child = new ChildLines("powerCutChild.ts", args, {
      program: "unshare",
      programArgs: ["--mount", "--propagation", "private"]
    })
    await child.ended()
    const outcomes = child.lines.map((line) => JSON.parse(line) as Outcome)
    expect(outcomes.length, child.errors).toBe(pictures)
    return outcomes
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

describe("a power cut on ext4", () => {
  it("loses nothing acknowledged", { timeout: timeoutMs }, async (context) => {
    requirePart(context, loopMounts)
    const pictures = count("power cuts on ext4", { fast: 20, soak: 500 })
    const outcomes = await cutPower(pictures, "none")
    expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([])
    expect(outcomes.at(-1)!.acknowledged).toBeGreaterThan(pictures)
    reportCount("power cuts on ext4", pictures)
  })

  it("loses what a writer without syncs acknowledged", { timeout: timeoutMs }, async (context) => {
    requirePart(context, loopMounts)
    const outcomes = await cutPower(6, "unsynced")
    expect(outcomes.filter(({ error }) => error !== undefined).length).toBeGreaterThan(0)
    reportCount("mutants caught by power cuts on ext4", 1)
  })
})
