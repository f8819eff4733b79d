// A second copy of the batch that a writer left last, in a journal file of its own. The sync of that batch may have
// failed before the process ended: then the batch is in memory, no later sync writes it, and nothing tells it from one
// that is durable. Writing over it could tear what was acknowledged, so recovery builds on the copy.
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { isFull, syncFailed } from "../RunelogErrors.ts"
import { journalFileName } from "./Journal.ts"
import { alignPage, BATCH_HEADER_BYTES, encodeJournalFileHeader, JOURNAL_PAGE_BYTES } from "./JournalBatch.ts"
import type { FoundBatch, FoundFile, JournalContent } from "./JournalScan.ts"

export interface JournalCopyOptions {
  readonly disk: Disk
  readonly directory: string
  readonly directoryId: string
}

/**
 * Makes the last batch durable whatever became of its sync; returns the file that was made for that, if one was.
 * In a damaged journal others follow the batch, which were written after its sync: it is durable, and nothing is changed.
 */
export const copyLastBatch = async (
  options: JournalCopyOptions,
  { batches, damage, files }: JournalContent
): Promise<FoundFile | undefined> => {
  const last = batches[batches.length - 1]
  if (last === undefined || damage !== undefined) return undefined
  const { disk, directory } = options
  if (last.copyName !== undefined) {
    // The copy was synced before it got its name; the name itself may be in memory only.
    await disk.syncDirectory(directory).catch(syncFailed(directory))
    return undefined
  }
  const content = await encodeCopy(options, last)
  const number = files.reduce((highest, { name }) => Math.max(highest, Number.parseInt(name, 10)), 0) + 1
  const name = journalFileName(number)
  const path = `${directory}/${name}`
  const isMade = await writeCopy(disk, path, content)
  if (!isMade) return undefined
  await disk.syncDirectory(directory).catch(syncFailed(directory))
  return { name, path, bytes: content.length }
}

const encodeCopy = async (
  { directory, directoryId, disk }: JournalCopyOptions,
  { name, offset, payloadBytes }: FoundBatch
): Promise<Buffer> => {
  const batchBytes = BATCH_HEADER_BYTES + payloadBytes
  const content = Buffer.alloc(JOURNAL_PAGE_BYTES + alignPage(batchBytes))
  encodeJournalFileHeader({ directoryId, bytes: content.length }).copy(content)
  const file = await disk.open(`${directory}/${name}`, "read")
  try {
    await file.read(content, JOURNAL_PAGE_BYTES, batchBytes, offset)
  } finally {
    await file.close()
  }
  return content
}

/** Whether there was room: a full disk is no reason not to start, the batch most likely is where it belongs. */
const writeCopy = async (disk: Disk, path: string, content: Buffer): Promise<boolean> => {
  const temporary = `${path}.tmp`
  if (await disk.exists(temporary)) await disk.remove(temporary)
  try {
    await fill(await disk.open(temporary, "create"), temporary, content)
  } catch (error) {
    if (!isFull(error)) throw error
    await disk.remove(temporary).catch(() => undefined)
    return false
  }
  await disk.rename(temporary, path)
  return true
}

const fill = async (file: DiskFile, path: string, content: Buffer): Promise<void> => {
  try {
    await file.write(content, 0, content.length, 0)
    await file.sync().catch(syncFailed(path))
  } finally {
    await file.close()
  }
}
