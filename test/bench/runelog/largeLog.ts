// One large log, written quickly in big batches: what scans, point reads, reopening and the memory of a reader are
// measured on.
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Runelog } from "#runelog/Runelog.ts"
import { appendWhenReady } from "./appendWhenReady.ts"
import { body } from "./settings.ts"

export const largeLogName = "conv_large"

const BATCH_RUNES = 1_000
const entries = Array.from({ length: BATCH_RUNES }, () => ({ body }))
const BATCHES_OUTSTANDING = 16

/** Appends until the log holds `runes`, leaves the directory clean. */
export const writeLargeLog = async (directory: string, runes: number): Promise<void> => {
  const log = await Runelog.open({ directory })
  let next = (await log.head(largeLogName)) + 1
  while (next <= runes) {
    const appends: Array<Promise<void>> = []
    for (; appends.length < BATCHES_OUTSTANDING && next <= runes; ) {
      const count = Math.min(BATCH_RUNES, runes - next + 1)
      appends.push(appendWhenReady(log, largeLogName, next, entries.slice(0, count)))
      next += count
    }
    await Promise.all(appends)
  }
  await log.close()
}

export const segmentDirectory = (directory: string): string => join(directory, "runelog", largeLogName)

/** Bytes of the log's files with this ending. */
export const fileBytes = (directory: string, ending: string): number => {
  const folder = segmentDirectory(directory)
  const names = readdirSync(folder).filter((name) => name.endsWith(ending))
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

/** Reads all of it by pages of the default size; returns how many runes that were. */
export const scanAll = async (log: Runelog): Promise<number> => {
  let after = 0
  let runes = 0
  for (;;) {
    const page = await log.read(largeLogName, { after })
    if (page.frames.length === 0) return runes
    runes += page.frames.length
    after = page.next
  }
}
