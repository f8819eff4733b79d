// A writer that lives until it is killed. On "go RUN" it opens the directory and appends to a few logs without a pause,
// seals, checkpoints and now and then removes one, and says on standard output what was acknowledged. Lines are
// written at once, on this thread: what the parent does not read was not acknowledged.
import { writeSync } from "node:fs"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { withoutDirectorySync, withoutSync } from "../disk/DiskMutant.ts"
import { randomFrom } from "../seed.ts"
import { witnessBatch } from "./Witness.ts"
import { writerLimits } from "./writerLimits.ts"

const directory = process.argv[2]!
/** Ways to be broken: "defect" in recovery, "unsynced" on the disk. */
const flaw = process.argv[3]
const logs = ["alpha", "beta", "gamma"]

const say = (line: string): void => void writeSync(1, `${line}\n`)

const writeLog = async (
  runelog: Runelog,
  log: string,
  options: { readonly run: number; readonly chance: () => number }
): Promise<never> => {
  const { run, chance } = options
  let next = (await runelog.head(log)) + 1
  const flying = new Set<Promise<void>>()
  for (;;) {
    const batchSize = chance() < 0.7 ? 1 : 1 + Math.floor(chance() * 5)
    const batchFirst = next
    next += batchSize
    const flight: Promise<void> = runelog
      .append(log, batchFirst, witnessBatch({ log, run, batchFirst, batchSize }))
      .then(() => say(`ack ${log} ${batchFirst} ${batchSize} ${run}`))
      .finally(() => flying.delete(flight))
    flying.add(flight)
    if (flying.size > 8 || chance() < 0.2) await Promise.race(flying)
    if (chance() < 0.01) await runelog.seal(log)
    if (chance() < 0.01) await runelog.checkpoint()
    if (next > 1500) {
      await Promise.all(flying)
      say(`removing ${log}`)
      await runelog.remove(log)
      say(`removed ${log}`)
      next = 1
    }
  }
}

const start = async (run: number): Promise<void> => {
  const runelog = await Runelog.open({
    directory,
    limits: writerLimits,
    ...(flaw === "defect" && { defect: "recovery drops the last batch" as const }),
    ...(flaw === "unsynced" && { disk: withoutSync(withoutDirectorySync(makeDiskNode())) })
  })
  say(`opened`)
  const chance = randomFrom(run)
  await Promise.all(logs.map((log) => writeLog(runelog, log, { run, chance })))
}

process.stdin.once("data", (chunk) => void start(Number(String(chunk).split(" ")[1])))
say("ready")
