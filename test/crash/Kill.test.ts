// Goal: kill -9 of a real writer at any moment loses nothing acknowledged. Method: a child process appends to a real
// directory and says what was acknowledged; it is killed after a drawn number of words or a drawn while, during start
// and recovery too; then either this process opens the directory and reads every event, or the next child goes on in
// it. The same with a recovery that drops the last batch must be caught.
// Verifies: G2
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { count, lane, reportCount } from "../support/counts.ts"
import { ChildLines } from "../support/runelog/ChildLines.ts"
import { Violation } from "../support/runelog/LogModel.ts"
import { Witness } from "../support/runelog/Witness.ts"
import { writerLimits } from "../support/runelog/writerLimits.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const timeoutMs = lane() === "soak" ? 3 * 3_600_000 : 300_000

interface KillRun {
  readonly directory: string
  readonly witness: Witness
  readonly chance: () => number
  readonly childArgs: ReadonlyArray<string>
}

const spawnWriter = ({ directory, childArgs }: KillRun): ChildLines =>
  new ChildLines("writerChild.ts", [directory, ...childArgs])

/** Lets the child work until a drawn moment, kills it and takes in all it said. */
const killOnce = async (run: KillRun, child: ChildLines, number: number): Promise<void> => {
  await child.heard(1)
  child.say(`go ${number}`)
  // By receipts when it works, by time when it starts: nothing is said before it is open.
  if (run.chance() < 0.25) await sleep(run.chance() * 40)
  else await child.heard(2 + Math.floor(run.chance() ** 2 * 600))
  await child.kill()
  if (child.errors !== "") throw new Violation(`the writer failed: ${child.errors}`)
  for (const line of child.lines) run.witness.hear(line)
}

const inspect = async ({ directory, witness }: KillRun): Promise<number> => {
  const runelog = await Runelog.open({ directory, limits: writerLimits })
  try {
    return await witness.check(runelog)
  } finally {
    await runelog.close()
  }
}

const killMany = async (run: KillRun, kills: number): Promise<void> => {
  let next = spawnWriter(run)
  try {
    for (let number = 1; number <= kills; number++) {
      const child = next
      // The next one starts up meanwhile; it does not touch the directory before it is told to.
      next = spawnWriter(run)
      await killOnce(run, child, number)
      if (run.chance() < 0.5 || number === kills) await inspect(run)
    }
  } finally {
    await next.kill()
  }
}

const withRun = async (
  name: string,
  childArgs: ReadonlyArray<string>,
  body: (run: KillRun) => Promise<void>
): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "echs-kill-"))
  try {
    await body({ directory, witness: new Witness(), chance: randomFrom(seedFor(name)), childArgs })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

describe("a writer killed with SIGKILL", () => {
  it("has lost nothing that it acknowledged", { timeout: timeoutMs }, async () => {
    const kills = count("kills of a real writer", { fast: 200, soak: 10_000 })
    await withRun("kills of a real writer", [], async (run) => {
      await killMany(run, kills)
      expect(run.witness.acknowledged).toBeGreaterThan(10 * kills)
      reportCount("kill -9 of a real writer", kills)
      reportCount("events acknowledged before a kill -9", run.witness.acknowledged)
    })
  })

  it("is caught when recovery drops the last batch", { timeout: timeoutMs }, async () => {
    await withRun("kills of a broken writer", ["defect"], async (run) => {
      // It stops at the first loss; a kill often hits before the batch in question was acknowledged, hence so many.
      const outcome = await killMany(run, 400).catch((error: unknown) => error)
      expect(outcome).toBeInstanceOf(Violation)
      reportCount("mutants caught by kill -9", 1)
    })
  })
})
