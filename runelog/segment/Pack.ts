// Packs the sealed segments of a log that is at rest: the same bytes in compressed blocks, put in place of the old file in
// one rename. Offsets, index, seal and digest stay as they are. A segment that would gain little is left alone.
import type { DiskFile } from "../disk/Disk.ts"
import type { LogState, SegmentState } from "../LogState.ts"
import { SegmentCorrupt } from "../RunelogErrors.ts"
import type { OpenLogOptions } from "./OpenSegment.ts"
import { packSegment } from "./PackedSegment.ts"
import { segmentDigest } from "./SegmentDigest.ts"
import { isPacked, SegmentFile } from "./SegmentFile.ts"

/** Packs those of the first `count` segments that are sealed and not packed yet; the log must be durable. */
export const packSegments = (options: OpenLogOptions, log: LogState, count: number): Promise<void> =>
  log.upkeep.exclusive(async () => {
    for (const segment of log.segments.slice(0, count)) {
      const isWorthATry = segment.seal !== undefined && segment.bytes > options.limits.packSavedBytesMin
      if (isWorthATry) await packOne(options, log, segment)
    }
  })

const packOne = async (options: OpenLogOptions, log: LogState, segment: SegmentState): Promise<void> => {
  const { disk, files, store } = options
  const path = store.segmentPath(log.name, segment)
  const temporary = `${path}.tmp`
  const isDone = await files.use(path, async (source) => {
    const bytes = segment.bytes + segment.sealBytes
    await source.size()
    return isPacked(source) || !(await writePacked(options, { log: log.name, path, temporary, segment }, source, bytes))
  })
  if (isDone) return
  await log.gate.exclusive(async () => {
    await files.forget(path)
    await disk.rename(temporary, path)
    await store.syncEntries(log, segment)
  })
}

interface Target {
  readonly log: string
  readonly path: string
  readonly temporary: string
  readonly segment: SegmentState
}

/** Writes the packed copy and reads it back; whether it is worth having. */
const writePacked = async (
  { disk, limits }: OpenLogOptions,
  { log, path, segment, temporary }: Target,
  source: DiskFile,
  bytes: number
): Promise<boolean> => {
  if (await disk.exists(temporary)) await disk.remove(temporary)
  const target = await SegmentFile.open(disk, temporary, "create")
  try {
    const isSmaller = (await packSegment(source, target, bytes)) <= bytes - limits.packSavedBytesMin
    if (isSmaller) {
      await target.sync()
      const { previousSha256, sha256 } = segment.seal!
      if ((await segmentDigest(target, segment.bytes, previousSha256)) !== sha256) {
        throw new SegmentCorrupt({ log, file: path, offset: segment.bytes, reason: "the digest does not match" })
      }
    }
    await target.close()
    if (!isSmaller) await disk.remove(temporary)
    return isSmaller
  } catch (error) {
    await target.close()
    await disk.remove(temporary)
    throw error
  }
}
