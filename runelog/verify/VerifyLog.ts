// Verifies one log: what lies in its directory, every segment, that they continue each other without a gap, and that
// the journal continues them.
import type { Disk } from "../disk/Disk.ts"
import {
  type Bytes,
  bytesOf,
  checkFrame,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  frameStream
} from "../Frame.ts"
import { headFault, type LogHead } from "../recovery/Manifest.ts"
import { decodeIndex } from "../segment/IndexFile.ts"
import { parseLogFileName, segmentFileName } from "../segment/Segment.ts"
import { headerCrcOf, type JournalLog } from "./VerifyJournal.ts"
import type { EventInspector, Findings } from "./VerifyReport.ts"
import { type SegmentEnd, verifySegment } from "./VerifySegment.ts"

export interface LogPlace {
  readonly disk: Disk
  readonly log: string
  /** The directory of the log; it may be missing when only the journal has frames. */
  readonly directory: string
  readonly journal: JournalLog | undefined
  /** What the manifest says of it. */
  readonly expected: LogHead | undefined
  /** The writer closed in order: the log ends where the manifest says. */
  readonly isClean: boolean
  readonly inspect: EventInspector | undefined
}

interface LogFiles {
  readonly segments: ReadonlyArray<number>
  readonly indexes: ReadonlyMap<number, string>
}

export const verifyLog = async (findings: Findings, place: LogPlace): Promise<void> => {
  const { directory, journal, log } = place
  const files = await listFiles(findings, place)
  if (journal?.removed) {
    await inspectJournal(findings, place, 0)
    const text = "the next start finishes the removal of what the log was before"
    if (files.segments.length > 0) findings.note({ file: directory, log, text })
    if (journal.first !== undefined) findings.logs += 1
    return
  }
  findings.logs += 1
  const seen = { lastEventId: 0 }
  const end = await verifySegments(findings, place, files, seen)
  verifyBorder(findings, place, end)
  await inspectJournal(findings, place, seen.lastEventId)
  verifyHead(findings, place, end)
}

/** The log reaches as far as manifest and journal say. */
const verifyHead = (findings: Findings, place: LogPlace, end: LogEnd): void => {
  const { directory, expected, journal, log } = place
  // What a damaged segment does not say is told already.
  if (end.hasSegments && end.segment === undefined && journal?.last === undefined) return
  const inSegments = { head: end.segment?.lastEventId ?? 0, crc: end.segment?.headCrc ?? 0 }
  const found = journal?.last ?? inSegments
  const isLonger = place.isClean && expected !== undefined && expected.head > 0 && found.head > expected.head
  const reason = isLonger
    ? `the log goes on to event ${found.head}, the manifest knows of ${expected.head}`
    : headFault(expected, found)
  if (reason === undefined) return
  const { offset = 0, path = directory } = end.segment ?? {}
  findings.problem({ file: path, log, offset, reason })
}

const inspectFrame = (
  findings: Findings,
  place: LogPlace,
  {
    at,
    bytes,
    file,
    offset
  }: { readonly bytes: Bytes; readonly at: number; readonly file: string; readonly offset: number }
): void => {
  const { buffer, view } = bytes
  const event = {
    kind: frameKindOf(view, at) === frameKind.thinned ? ("thinned" as const) : ("entry" as const),
    eventId: frameEventId(view, at),
    lastEventId: frameLastId(view, at),
    visibility: frameFlags(view, at) & flag.visibilityMask,
    family: frameFamily(view, at),
    stream: frameStream(view, at),
    body: buffer.subarray(at + FRAME_HEADER_BYTES, at + frameBytes(view, at))
  }
  for (const reason of place.inspect!(event, { file, offset })) {
    findings.problem({ file, log: place.log, offset, reason })
  }
}

/** What only the journal has, in its order. */
const inspectJournal = async (findings: Findings, place: LogPlace, after: number): Promise<void> => {
  if (place.inspect === undefined) return
  for (const { bytes: length, file: path, offset } of place.journal?.places ?? []) {
    const file = await place.disk.open(path, "read")
    const bytes = bytesOf(Buffer.alloc(length))
    await file.read(bytes.buffer, 0, length, offset).finally(() => file.close())
    for (let at = 0; at < length; at += frameBytes(bytes.view, at)) {
      // What is not a frame was told of when the journal was read.
      if (checkFrame(bytes, at, length) !== undefined) return
      if (frameEventId(bytes.view, at) > after)
        inspectFrame(findings, place, { bytes, at, file: path, offset: offset + at })
    }
  }
}

const listFiles = async (findings: Findings, { directory, disk, log }: LogPlace): Promise<LogFiles> => {
  const segments: Array<number> = []
  const indexes = new Map<number, string>()
  if (!(await disk.exists(directory))) return { segments, indexes }
  for (const { kind, name } of await disk.list(directory)) {
    const file = `${directory}/${name}`
    const parsed = kind === "file" ? parseLogFileName(name) : ({ _tag: "Foreign" } as const)
    if (parsed._tag === "Foreign") findings.problem({ file, log, offset: 0, reason: "not a file of the runelog" })
    if (parsed._tag === "Leftover") findings.note({ file, log, text: "an unfinished file; the next open removes it" })
    if (parsed._tag === "Segment") segments.push(parsed.firstEventId)
    if (parsed._tag === "Index") indexes.set(parsed.firstEventId, file)
  }
  return { segments, indexes }
}

/** What is known behind the last segment. */
interface LogEnd {
  /** Nothing when a segment was too damaged to say. */
  readonly segment: SegmentEnd | undefined
  readonly hasSegments: boolean
  readonly borderCrc: number | undefined
}

const verifySegments = async (
  findings: Findings,
  place: LogPlace,
  files: LogFiles,
  seen: { lastEventId: number }
): Promise<LogEnd> => {
  const { directory, disk, log } = place
  const { indexes, segments } = files
  const journalFirstId = place.journal?.first?.eventId ?? Number.POSITIVE_INFINITY
  await verifyOrphans(findings, place, files, journalFirstId)
  verifyStart(findings, place, segments[0], journalFirstId)
  let segment: SegmentEnd | undefined
  let borderCrc: number | undefined
  for (const [at, firstEventId] of segments.entries()) {
    const next = segments[at + 1]
    const path = `${directory}/${segmentFileName(firstEventId)}`
    segment = await verifySegment(findings, {
      disk,
      log,
      path,
      inspect: inspectorOf(findings, place, { path, seen }),
      indexPath: indexes.get(firstEventId),
      firstEventId,
      lastEventId: next === undefined ? undefined : next - 1,
      journalFirstId,
      before: segment
    })
    borderCrc ??= segment?.borderCrc
  }
  return { segment, hasSegments: segments.length > 0, borderCrc }
}

const inspectorOf = (
  findings: Findings,
  place: LogPlace,
  { path, seen }: { readonly path: string; readonly seen: { lastEventId: number } }
): ((bytes: Bytes, at: number, offset: number) => void) | undefined =>
  place.inspect === undefined
    ? undefined
    : (bytes, at, offset) => {
        const eventId = frameEventId(bytes.view, at)
        // A power cut can keep a segment and lose the one before it: the journal has both, and is read in order.
        const isAfterGap = eventId !== seen.lastEventId + 1
        if (isAfterGap && eventId >= (place.journal?.first?.eventId ?? Number.POSITIVE_INFINITY)) return
        seen.lastEventId = frameLastId(bytes.view, at)
        inspectFrame(findings, place, { bytes, at, file: path, offset })
      }

const verifyStart = (
  findings: Findings,
  { directory, log }: LogPlace,
  first: number | undefined,
  journalFirstId: number
): void => {
  if (first === undefined || first === 1 || journalFirstId === 1) return
  const file = `${directory}/${segmentFileName(first)}`
  findings.problem({ file, log, offset: 0, reason: `events 1 to ${first - 1} are missing` })
}

/** An index is written after its segment is durable: alone, it speaks of a loss. */
const verifyOrphans = async (
  findings: Findings,
  { directory, disk, log }: LogPlace,
  { indexes, segments }: LogFiles,
  journalFirstId: number
): Promise<void> => {
  for (const [firstEventId, path] of indexes) {
    if (segments.includes(firstEventId)) continue
    const file = await disk.open(path, "read")
    const buffer = Buffer.alloc(await file.size())
    await file.read(buffer, 0, buffer.length, 0).finally(() => file.close())
    const isEvidence = decodeIndex(buffer) !== undefined && firstEventId < journalFirstId
    const segment = `${directory}/${segmentFileName(firstEventId)}`
    if (isEvidence)
      findings.problem({ file: segment, log, offset: 0, reason: "the file is missing, its index is there" })
    else findings.note({ file: path, log, text: "an index without a segment" })
  }
}

/** The journal goes on where the segments end, or before. */
const verifyBorder = (findings: Findings, { directory, journal, log }: LogPlace, end: LogEnd): undefined => {
  if (journal?.first === undefined) return
  const { eventId, previousCrc, startsSegment } = journal.first
  const problem = (reason: string): undefined => findings.problem({ file: directory, log, offset: 0, reason })
  if (eventId > 1) {
    if (end.hasSegments && end.segment === undefined) return
    const lastEventId = end.segment?.lastEventId ?? 0
    if (lastEventId < eventId - 1) {
      return problem(`events ${lastEventId + 1} to ${eventId - 1} are missing before the journal goes on`)
    }
    if (end.borderCrc === undefined) return
  }
  const before = eventId === 1 ? 0 : end.borderCrc!
  const expected = startsSegment ? headerCrcOf(log, eventId, before) : before
  if (previousCrc !== expected) problem(`the journal does not continue the log at event ${eventId}`)
}
