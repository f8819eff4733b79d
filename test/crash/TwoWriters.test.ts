// Goal: one writer per data directory, always, and the next one gets in at once when it dies. Method: real processes race
// for the same directory through Runelog.open; exactly one becomes the writer and appends, the others are told that it
// is locked; then it closes, or is killed with SIGKILL and somebody else takes over. In the end the log holds the
// events of all owners in the order of their terms.
// Verifies: G4
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { lockFileName } from "#runelog/disk/NodeLock.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { count, lane, reportCount } from "../support/counts.ts"
import { ChildLines } from "../support/runelog/ChildLines.ts"
import { Witness } from "../support/runelog/Witness.ts"
import { writerLimits } from "../support/runelog/writerLimits.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const timeoutMs = lane() === "soak" ? 3_600_000 : 120_000

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!

/** Asks and resolves with the answer: the first new line that is no acknowledgement. */
const ask = async (child: ChildLines, question: string): Promise<string> => {
  let known = child.lines.length
  child.say(question)
  for (;;) {
    await child.heard(known + 1)
    const line = child.lines[known++]
    if (line === undefined) throw new Error(`the contender ended: ${child.errors}`)
    if (!line.startsWith("ack")) return line
  }
}

const spawnContender = async (directory: string): Promise<ChildLines> => {
  const child = new ChildLines("raceChild.ts", [directory])
  await child.heard(1)
  return child
}

class Race {
  readonly directory: string
  readonly witness = new Witness()
  contenders: Array<ChildLines> = []
  readonly takeoversMs: Array<number> = []
  readonly attemptsMs: Array<number> = []

  constructor(directory: string) {
    this.directory = directory
  }

  /** All try at once; returns the one that got in. */
  async attempt(run: number, tookMs = this.attemptsMs): Promise<ChildLines> {
    const startedMs = performance.now()
    const answers = await Promise.all(this.contenders.map((child) => ask(child, `go ${run}`)))
    tookMs.push(performance.now() - startedMs)
    expect(answers.toSorted()).toEqual([...this.contenders.slice(1).map(() => "locked"), "owner"])
    return this.contenders[answers.indexOf("owner")]!
  }

  /** The owner dies, and another gets in at once. */
  async takeOver(owner: ChildLines, run: number): Promise<ChildLines> {
    await owner.kill()
    this.retire(owner)
    const next = await this.attempt(run, this.takeoversMs)
    this.contenders.push(await spawnContender(this.directory))
    return next
  }

  retire(child: ChildLines): void {
    for (const line of child.lines) this.witness.hear(line)
    this.contenders = this.contenders.filter((other) => other !== child)
  }
}

const runRace = async (race: Race, attempts: number): Promise<void> => {
  const chance = randomFrom(seedFor("two writers"))
  for (let index = 0; index < 3; index++) race.contenders.push(await spawnContender(race.directory))
  try {
    for (let run = 1; run <= attempts; run += 1) {
      let owner = await race.attempt(run)
      if (chance() < 0.2 && run < attempts) owner = await race.takeOver(owner, ++run)
      expect(await ask(owner, "close")).toBe("closed")
    }
  } finally {
    for (const child of [...race.contenders]) {
      await child.kill()
      race.retire(child)
    }
  }
}

describe("writers that race for one directory", () => {
  it("are told apart: one gets in, and the next one at once after its death", { timeout: timeoutMs }, async () => {
    const attempts = count("races for a directory", { fast: 200, soak: 1000 })
    const race = new Race(mkdtempSync(join(tmpdir(), "echs-race-")))
    try {
      await runRace(race, attempts)
      expect(race.takeoversMs.length).toBeGreaterThan(attempts / 20)
      // Medians: a busy machine may hold up any single one, a lock that waits for a timeout would hold up all.
      expect(median(race.takeoversMs)).toBeLessThan(10 * median(race.attemptsMs))
      const runelog = await Runelog.open({ directory: race.directory, limits: writerLimits })
      const events = await race.witness.check(runelog)
      await runelog.close()
      expect(events).toBe(attempts)
      reportCount("races of writers for one directory", attempts)
      reportCount("takeovers after kill -9", race.takeoversMs.length)
    } finally {
      rmSync(race.directory, { recursive: true, force: true })
    }
  })

  it("do not mistake a lock file that names a running process of another start for an owner", async () => {
    const directory = mkdtempSync(join(tmpdir(), "echs-race-"))
    try {
      const stale = { pid: process.pid, startTicks: "1", bootId: "another boot" }
      writeFileSync(join(directory, lockFileName), JSON.stringify(stale))
      const runelog = await Runelog.open({ directory, limits: writerLimits })
      await expect(Runelog.open({ directory, limits: writerLimits })).rejects.toMatchObject({ _tag: "DirectoryLocked" })
      await runelog.close()
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
