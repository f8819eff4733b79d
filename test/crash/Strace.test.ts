// Goal: death at any single system call, and a device error at any single sync, leave a directory that recovers. Method:
// a scripted run whose calls are listed once by strace; then the same run again and again with SIGKILL, or EIO, at one
// of them, over an empty directory and over one that a killed writer left, so that recovery is hit as well.
// Verifies: G1, G2
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { count, lane, reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import type { ChildLines } from "../support/runelog/ChildLines.ts"
import {
  type CallPoint,
  failAt,
  killAt,
  recordPoints,
  runTraced,
  spread,
  straceAttaches,
  wasInjected
} from "../support/runelog/Strace.ts"
import { Witness } from "../support/runelog/Witness.ts"
import { writerLimits } from "../support/runelog/writerLimits.ts"

const timeoutMs = lane() === "soak" ? 3 * 3_600_000 : 300_000
/** Runs at once: strace makes the child wait more than it makes it work. */
const lanes = 3

interface Scenario {
  /** The directory that each run starts from; a copy is made of it. */
  readonly origin: string | undefined
  readonly said: ReadonlyArray<string>
}

const fresh: Scenario = { origin: undefined, said: [] }

/** What a writer leaves that is killed in the middle of the script. */
const leftByKill = async (scratch: string): Promise<Scenario> => {
  const origin = join(scratch, "left")
  const child = await runTraced(origin, 1, killAt({ call: "pwrite64", ordinal: 28 }, join(scratch, "left.calls")))
  expect(child.process.signalCode).toBe("SIGKILL")
  return { origin, said: child.lines }
}

const inspect = async (directory: string, lines: ReadonlyArray<string>): Promise<void> => {
  const witness = new Witness()
  for (const line of lines) witness.hear(line)
  const runelog = await Runelog.open({ directory, limits: writerLimits })
  try {
    await witness.check(runelog)
  } finally {
    await runelog.close()
  }
}

interface Experiment {
  readonly makeScenario: (scratch: string) => Promise<Scenario>
  readonly choose: (points: ReadonlyArray<CallPoint>) => ReadonlyArray<CallPoint>
  readonly faultAt: typeof killAt
  /** Looks at a run in which the fault came to pass. */
  readonly judge: (child: ChildLines, point: CallPoint) => void
}

const runOnce = async (
  { origin, said }: Scenario,
  directory: string,
  experiment: Experiment & { readonly point: CallPoint }
): Promise<boolean> => {
  const calls = `${directory}.calls`
  if (origin !== undefined) cpSync(origin, directory, { recursive: true })
  const child = await runTraced(directory, 2, experiment.faultAt(experiment.point, calls))
  const injected = wasInjected(calls) || child.process.signalCode === "SIGKILL"
  if (injected) experiment.judge(child, experiment.point)
  await inspect(directory, [...said, ...child.lines])
  rmSync(directory, { recursive: true, force: true })
  return injected
}

/** Runs the script once per chosen point with the fault there; returns how often it came to pass. */
const runExperiment = async (experiment: Experiment): Promise<number> => {
  const scratch = mkdtempSync(join(tmpdir(), "echs-strace-"))
  try {
    const scenario = await experiment.makeScenario(scratch)
    const recorded = join(scratch, "recorded")
    if (scenario.origin !== undefined) cpSync(scenario.origin, recorded, { recursive: true })
    const points = await recordPoints(recorded, 2, join(scratch, "recorded.calls"))
    const chosen = experiment.choose(points)
    const waiting = [...chosen.entries()]
    let injected = 0
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [index, point] = next
        if (await runOnce(scenario, join(scratch, `run-${index}`), { ...experiment, point })) injected += 1
      }
    }
    await Promise.all(Array.from({ length: lanes }, work))
    process.stdout.write(`${points.length} calls, ${chosen.length} chosen, ${injected} hit\n`)
    // Which call is whose k-th may shift a little with the scheduling of two threads; the last ones may not come at all.
    expect(injected).toBeGreaterThan(chosen.length * 0.9)
    return injected
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const judgeStop = (child: ChildLines, point: CallPoint): void => {
  const failure = child.lines.findIndex((line) => /^(poisoned|not opened)/.test(line))
  const told = child.lines.slice(failure)
  const where = `${point.call} ${point.ordinal}: ${told.join("; ")} ${child.errors}`
  expect(failure, where).toBeGreaterThan(0)
  expect(told[0], where).toMatch(/^(poisoned|not opened (WriterPoisoned|DiskFailed))$/)
  const acknowledged = told.filter((line) => line.startsWith("ack"))
  expect(acknowledged, where).toEqual([])
  if (told[1]?.startsWith("failed"))
    expect(told.slice(1, 3), where).toEqual(["failed WriterPoisoned", "again WriterPoisoned"])
}

const scenarios: ReadonlyArray<readonly [string, Experiment["makeScenario"]]> = [
  ["an empty directory", async () => fresh],
  ["what a killed writer left", leftByKill]
]

describe.each(scenarios)("over %s", (_name, makeScenario) => {
  it("a kill at any system call loses nothing", { timeout: timeoutMs }, async (context) => {
    requirePart(context, straceAttaches)
    const hit = await runExperiment({
      makeScenario,
      choose: (points) => spread(points, count("calls to be killed at", { fast: 75, soak: points.length })),
      faultAt: killAt,
      judge: (child) => expect(child.process.signalCode).toBe("SIGKILL")
    })
    reportCount("system calls at which a writer was killed", hit)
  })

  it("an error of any sync stops the writer and loses nothing", { timeout: timeoutMs }, async (context) => {
    requirePart(context, straceAttaches)
    const isSync = ({ call }: CallPoint): boolean => call === "fdatasync" || call === "fsync"
    const hit = await runExperiment({
      makeScenario,
      choose: (points) => {
        const syncs = points.filter(isSync)
        return spread(syncs, count("syncs to fail", { fast: 30, soak: syncs.length }))
      },
      faultAt: failAt,
      judge: judgeStop
    })
    reportCount("syncs that failed with EIO", hit)
  })
})
