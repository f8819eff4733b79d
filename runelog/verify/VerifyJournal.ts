// Reads what the journal holds, batch by batch and frame by frame, and what that means for each log: where the
// journal goes on from, and which logs it removes.
import type { Disk } from "../disk/Disk.ts"
import {
  type Bytes,
  checkFrame,
  flag,
  frameBytes,
  frameCrc,
  frameEventId,
  frameFlags,
  framePreviousCrc
} from "../Frame.ts"
import { BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, type GroupAt, groupKind, readGroups } from "../journal/JournalBatch.ts"
import { type FoundBatch, type JournalContent, listJournal, readPayload, scanJournal } from "../journal/JournalScan.ts"
import { ForeignFile, FormatUnsupported } from "../RunelogErrors.ts"
import type { MetaState } from "../recovery/MetaFile.ts"
import { encodeSegmentHeader } from "../segment/Segment.ts"
import type { Findings } from "./VerifyReport.ts"

/** What the journal says of one log. */
export interface JournalLog {
  /** The first event that the journal holds, and what it is chained to; nothing when it only removes the log. */
  readonly first:
    | { readonly eventId: number; readonly previousCrc: number; readonly startsSegment: boolean }
    | undefined
  /** The last event that the journal holds, and its checksum. */
  readonly last: { readonly head: number; readonly crc: number } | undefined
  /** Its files are from before a removal that the next start finishes. */
  readonly removed: boolean
  /** Where its frames lie. */
  readonly places: ReadonlyArray<JournalPlace>
}

export interface JournalPlace {
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

interface Walk {
  log: Omit<JournalLog, "places" | "last">
  places: Array<JournalPlace>
  nextEventId: number
  crc: number
}

export const verifyJournal = async (
  findings: Findings,
  disk: Disk,
  place: { readonly directory: string; readonly meta: MetaState }
): Promise<ReadonlyMap<string, JournalLog>> => {
  const { directory, meta } = place
  const walks = new Map<string, Walk>()
  try {
    const content = await scanJournal({ disk, directory, ...meta })
    noteContent(findings, directory, content)
    for (const name of (await listJournal(disk, directory)).leftovers) {
      findings.note({ file: `${directory}/${name}`, text: "an unfinished file; the next start removes it" })
    }
    for (const batch of content.batches) await verifyBatch(findings, disk, directory, batch, walks)
  } catch (error) {
    if (!(error instanceof ForeignFile || error instanceof FormatUnsupported)) throw error
    findings.problem({ file: error.file, offset: 0, reason: error.message })
  }
  return new Map(
    [...walks].map(([name, { crc, log, nextEventId, places }]) => {
      const last = log.first === undefined ? undefined : { head: nextEventId - 1, crc }
      return [name, { ...log, last, places }]
    })
  )
}

const noteContent = (findings: Findings, directory: string, content: JournalContent): void => {
  const { batches, damage, files, torn } = content
  for (const { bytes } of files) findings.bytes += bytes
  findings.batches = batches.length
  if (damage !== undefined) findings.problem({ file: damage.file, offset: damage.offset, reason: damage.reason })
  if (torn !== undefined) {
    const file = `${directory}/${torn.name}`
    findings.note({ file, text: `batch ${torn.sequence} at byte ${torn.offset} was never finished` })
  }
  if (batches.length > 0) findings.note({ file: directory, text: `the next start applies ${batches.length} batches` })
}

const verifyBatch = async (
  findings: Findings,
  disk: Disk,
  directory: string,
  batch: FoundBatch,
  walks: Map<string, Walk>
): Promise<undefined> => {
  const path = `${directory}/${batch.name}`
  const file = await disk.open(path, "read")
  const payload = await readPayload(file, batch.offset, batch).finally(() => file.close())
  const problem = (position: number, reason: string, log?: string): undefined => {
    const offset = batch.offset + BATCH_HEADER_BYTES + position
    return findings.problem({ file: path, offset, reason, ...(log === undefined ? {} : { log }) })
  }
  // Another writer may have written over it since the batches were found.
  if (payload === undefined) return problem(0, "the batch is cut short")
  const groups = checkedGroups(payload, batch)
  if (groups === undefined) return problem(0, "the groups of the batch do not fill it")
  for (const group of groups) {
    verifyGroup(payload, group, walks, (position, reason) => problem(position, reason, group.log))
    const offset = batch.offset + BATCH_HEADER_BYTES + group.start
    if (group.kind === groupKind.frames)
      walks.get(group.log)?.places.push({ file: path, offset, bytes: group.end - group.start })
  }
}

/** The groups, if they lie end to end in the payload. */
const checkedGroups = (payload: Bytes, { groups }: FoundBatch): ReadonlyArray<GroupAt> | undefined => {
  const { length } = payload.buffer
  let position = 0
  for (let index = 0; index < groups; index++) {
    if (position + GROUP_HEADER_BYTES > length) return undefined
    position += GROUP_HEADER_BYTES + payload.view.getUint8(position + 9) + payload.view.getUint32(position, true)
  }
  return position === length ? readGroups(payload, 0, groups) : undefined
}

const verifyGroup = (
  payload: Bytes,
  group: GroupAt,
  walks: Map<string, Walk>,
  problem: (position: number, reason: string) => undefined
): undefined => {
  if (group.kind === groupKind.removal) {
    walks.set(group.log, { log: { first: undefined, removed: true }, places: [], nextEventId: 1, crc: 0 })
    return
  }
  let frames = 0
  let continues = false
  for (let at = group.start; at < group.end; at += frameBytes(payload.view, at)) {
    const fault = checkFrame(payload, at, group.end) ?? walkFrame(payload.view, at, group.log, walks)
    if (fault !== undefined) return problem(at, fault)
    continues = (frameFlags(payload.view, at) & flag.batchContinues) !== 0
    frames += 1
  }
  if (frames !== group.frames) problem(group.start, `${frames} frames where ${group.frames} are announced`)
  if (continues) problem(group.start, "the group ends inside a batch")
}

/** Takes one frame behind the others of its log; returns what is wrong with its place. */
const walkFrame = (view: DataView, at: number, log: string, walks: Map<string, Walk>): string | undefined => {
  const eventId = frameEventId(view, at)
  const previousCrc = framePreviousCrc(view, at)
  const startsSegment = (frameFlags(view, at) & flag.segmentFirst) !== 0
  const walk = walks.get(log)
  if (walk !== undefined && walk.nextEventId !== eventId) return `event id ${eventId} where ${walk.nextEventId} belongs`
  const first = walk?.log.first ?? { eventId, previousCrc, startsSegment }
  walks.set(log, {
    log: { first, removed: walk?.log.removed ?? false },
    places: walk?.places ?? [],
    nextEventId: eventId + 1,
    crc: frameCrc(view, at)
  })
  if (walk === undefined) return undefined
  const expected = startsSegment ? headerCrcOf(log, eventId, walk.crc) : walk.crc
  return previousCrc === expected ? undefined : "the chain to the frame before is broken"
}

/** What the first frame of a segment is chained to, when the one before ends in `previousHeadCrc`. */
export const headerCrcOf = (log: string, firstEventId: number, previousHeadCrc: number): number =>
  encodeSegmentHeader({ log, firstEventId, previousHeadCrc }).crc
