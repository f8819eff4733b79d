// Recovery: a process is killed in the midst of many turns; the next one opens the directory and everything goes on by
// itself. Measured from the opening until all turns were taken up, and until all have ended.
import { join } from "node:path"
import type { Row } from "../Bench.ts"
import { startChild } from "../runelog/child.ts"
import { median } from "../runelog/sampling.ts"
import { BenchRuntime } from "./openRuntime.ts"

const scenario = (...play: ReadonlyArray<object>) => ({ work: { name: "work", replies: [{ play }] } })

export const unfinishedScenarios = {
  stalled: scenario({ text: "It begins well, " }, { stall: true }),
  finishing: scenario({ text: "It begins well, and it ends well." })
} as const

interface Recovery {
  readonly resumedMs: number
  readonly finishedMs: number
}

const recoverOnce = async (directory: string, turns: number): Promise<Recovery> => {
  const child = await startChild("../runtime/unfinishedChild.ts", [directory, String(turns)])
  await child.kill()
  const startedMs = performance.now()
  const runtime = await BenchRuntime.open(directory, { scenarios: unfinishedScenarios.finishing })
  const finished = runtime.untilCompleted(turns)
  const { failed, loaded } = await runtime.recover()
  const resumedMs = performance.now() - startedMs
  if (failed.length > 0) throw failed[0]
  if (loaded < turns) throw new Error(`${loaded} of ${turns} conversations were recovered`)
  await finished
  const finishedMs = performance.now() - startedMs
  await runtime.close()
  return { resumedMs, finishedMs }
}

export const measureRecovery = async (
  directory: string,
  turns: number,
  rounds: number
): Promise<ReadonlyArray<Row>> => {
  const taken: Array<Recovery> = []
  for (let round = 0; round < rounds; round++) {
    taken.push(await recoverOnce(join(directory, `recovery-${round}`), turns))
  }
  const name = `recovery of ${turns} unfinished turns after kill −9`
  return [
    { name: `${name}: all taken up`, value: median(taken.map(({ resumedMs }) => resumedMs)), unit: "ms" },
    { name: `${name}: all complete and durable`, value: median(taken.map(({ finishedMs }) => finishedMs)), unit: "ms" }
  ]
}
