// How long a data directory with one large log takes to open: after an orderly close, and after kill −9 of a writer
// whose last runes are only in the journal. Opening ends when the newest page of the log was read.
import { Runelog } from "#runelog/Runelog.ts"
import { startChild } from "./child.ts"
import { largeLogName, scanAll } from "./largeLog.ts"
import { median } from "./sampling.ts"

/** Runes that the killed writer appends, and how many it has outstanding. */
const killedLoads = { grouped: { runes: 65_536, outstanding: 256 }, single: { runes: 4_096, outstanding: 1 } } as const

export interface Reopened {
  readonly scanMs: number
  readonly cleanMs: number
  readonly groupedMs: number
  readonly groupedRecovered: number
  readonly singleMs: number
  readonly singleRecovered: number
}

interface Opening {
  readonly ms: number
  readonly recovered: number
  readonly log: Runelog
}

const openTimed = async (directory: string, head: number): Promise<Opening> => {
  const startedMs = performance.now()
  const log = await Runelog.open({ directory })
  const found = await log.head(largeLogName)
  const page = await log.read(largeLogName, { after: found - 1 })
  const ms = performance.now() - startedMs
  if (log.readOnly !== undefined) throw log.readOnly
  if (found < head) throw new Error(`${head} events were acknowledged, ${found} are there`)
  if (page.frames.length !== 1) throw new Error("the newest event was not read")
  return { ms, recovered: log.recovered.frames, log }
}

const afterKill = async (directory: string, load: keyof typeof killedLoads): Promise<Opening> => {
  const { outstanding, runes } = killedLoads[load]
  const writer = await startChild("killedWriter.ts", [directory, String(runes), String(outstanding)])
  await writer.kill()
  const opening = await openTimed(directory, Number(writer.line))
  if (opening.recovered === 0) throw new Error("the killed writer left nothing in the journal")
  await opening.log.close()
  return opening
}

const scanTimed = async (log: Runelog, runes: number): Promise<number> => {
  const startedMs = performance.now()
  const found = await scanAll(log)
  const ms = performance.now() - startedMs
  if (found < runes) throw new Error(`${runes} runes were written, ${found} were read`)
  return (ms * runes) / found
}

export const measureReopening = async (directory: string, runes: number, rounds: number): Promise<Reopened> => {
  const clean: Array<Opening> = []
  const grouped: Array<Opening> = []
  const single: Array<Opening> = []
  const scansMs: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const opening = await openTimed(directory, runes)
    clean.push(opening)
    scansMs.push(await scanTimed(opening.log, runes))
    await opening.log.close()
    grouped.push(await afterKill(directory, "grouped"))
    single.push(await afterKill(directory, "single"))
  }
  const middleMs = (openings: ReadonlyArray<Opening>): number => median(openings.map(({ ms }) => ms))
  return {
    scanMs: median(scansMs),
    cleanMs: middleMs(clean),
    groupedMs: middleMs(grouped),
    groupedRecovered: median(grouped.map(({ recovered }) => recovered)),
    singleMs: middleMs(single),
    singleRecovered: median(single.map(({ recovered }) => recovered))
  }
}
