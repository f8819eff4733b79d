// A short scripted run: 200 events over two logs with rotations, a seal, a checkpoint and a clean close, always the same
// calls in the same order, so that a fault can be put at the k-th of them. On "go RUN" it goes on where the logs end.
// Says what was acknowledged, and how it ended.
import { writeSync } from "node:fs"
import { Runelog } from "#runelog/Runelog.ts"
import { witnessBatch } from "./Witness.ts"
import { writerLimits } from "./writerLimits.ts"

const logs = ["alpha", "beta"]
const perLog = 100

const say = (line: string): void => void writeSync(1, `${line}\n`)

const tagOf = (error: unknown): string => (error as { readonly _tag?: string } | undefined)?._tag ?? String(error)

interface Batch {
  readonly log: string
  readonly run: number
  readonly batchFirst: number
  readonly batchSize: number
}

const append = async (runelog: Runelog, batch: Batch): Promise<void> => {
  await runelog.append(batch.log, batch.batchFirst, witnessBatch(batch))
  say(`ack ${batch.log} ${batch.batchFirst} ${batch.batchSize} ${batch.run}`)
}

const script = async (runelog: Runelog, run: number): Promise<void> => {
  const heads = await Promise.all(logs.map((log) => runelog.head(log)))
  for (let step = 0; step < perLog / 2; step++) {
    const batches = logs.map((log, at) => ({ log, run, batchFirst: heads[at]! + 1 + 2 * step, batchSize: 2 }))
    await Promise.all(batches.filter(({ batchFirst }) => batchFirst <= perLog).map((batch) => append(runelog, batch)))
    if (step === 20) await runelog.seal("beta")
    if (step === 30) await runelog.checkpoint()
  }
}

/** What a client would try next. */
const tryAgain = async (runelog: Runelog, run: number): Promise<void> => {
  const batchFirst = (await runelog.head("alpha")) + 1
  const outcome = await append(runelog, { log: "alpha", run, batchFirst, batchSize: 1 }).then(() => "taken", tagOf)
  say(`again ${outcome}`)
}

const start = async (directory: string, run: number): Promise<void> => {
  const limits = { ...writerLimits, journalFileBytes: 64 * 1024, segmentBytes: 6 * 1024 }
  // On the calling thread: the order of calls must not depend on how fast the disk is.
  const runelog = await Runelog.open({ directory, limits, sync: "inline", onPoison: () => say("poisoned") })
  say("opened")
  try {
    await script(runelog, run)
    say("done")
  } catch (error) {
    say(`failed ${tagOf(error)}`)
    await tryAgain(runelog, run)
  }
  await runelog.close().catch((error: unknown) => say(`close failed ${tagOf(error)}`))
}

process.stdin.once("data", (chunk) => {
  process.stdin.unref()
  const run = Number(String(chunk).split(" ")[1])
  void start(process.argv[2]!, run).catch((error: unknown) => say(`not opened ${tagOf(error)}`))
})
say("ready")
