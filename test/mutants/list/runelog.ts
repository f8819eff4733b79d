// Lies in the guards of the log engine: what is checked before bytes are trusted, acknowledged, freed or served.
import type { Mutant } from "../Mutant.ts"

const test = (name: string): string => `test/runelog/${name}.test.ts`

export const runelogMutants: ReadonlyArray<Mutant> = [
  {
    name: "takes an append whose event id is not the next one",
    file: "runelog/commit/Committer.ts",
    find: "if (firstEventId !== log.nextEventId) {",
    replace: "if (firstEventId < log.nextEventId) {",
    tests: [test("Runelog"), test("commit/Committer")]
  },
  {
    name: "acknowledges a batch whose sync failed",
    file: "runelog/commit/Committer.ts",
    find: "if (cause === undefined) this.settle(batch)",
    replace: "if (cause === undefined || cause !== undefined) this.settle(batch)",
    tests: [test("commit/Committer"), test("Runelog")]
  },
  {
    name: "commits the next batch while one is being synced",
    file: "runelog/commit/Committer.ts",
    find: "return this.syncing.isUnderWay || this.waitingForRoom",
    replace: "return this.waitingForRoom",
    tests: [test("commit/Committer"), test("Runelog")]
  },
  {
    name: "writes on after the writer was poisoned",
    file: "runelog/commit/Committer.ts",
    find: "if (this.poison !== undefined) return this.poison\n",
    replace: "",
    tests: [test("commit/Committer"), test("Runelog")]
  },
  {
    name: "takes appends after it was closed",
    file: "runelog/commit/Committer.ts",
    find: "if (this.closed) return new WriterClosed",
    replace: "if (false) return new WriterClosed",
    tests: [test("commit/Committer"), test("Runelog")]
  },
  {
    name: "lets ordinary appends use the reserve",
    file: "runelog/journal/Journal.ts",
    find: "if (!options.mayUseReserve && left < this.options.limits.reserveBytes) return undefined",
    replace: "",
    tests: [test("journal/Journal"), test("commit/CommitterFull")]
  },
  {
    name: "frees a journal whose last batch is not below the floor",
    file: "runelog/journal/Journal.ts",
    find: "if (journal.lastSequence >= floor) continue",
    replace: "if (journal.lastSequence > floor) continue",
    tests: [test("journal/Journal"), test("Maintenance")]
  },
  {
    name: "takes a journal batch whose header checksum is wrong",
    file: "runelog/journal/JournalBatch.ts",
    find: "if (crc32c(buffer, start + at.payloadBytes, start + BATCH_HEADER_BYTES, 0) !== headerCrc) return undefined",
    replace: "",
    tests: [test("journal/JournalBatch"), test("journal/JournalScan")]
  },
  {
    name: "opens a journal of another data directory",
    file: "runelog/journal/JournalScan.ts",
    find: "if (header.directoryId !== directoryId) throw new ForeignFile({ file: path })",
    replace: "",
    tests: [test("journal/JournalScan"), test("Misplaced")]
  },
  {
    name: "skips a batch that is missing from the journal",
    file: "runelog/journal/JournalScan.ts",
    find: "if (sequence > expected) return",
    replace: "if (false) return",
    tests: [test("journal/JournalScan"), test("recovery/Recovery")]
  },
  {
    name: "does not ask whether a batch continues the one before it",
    file: "runelog/journal/JournalScan.ts",
    find: "return follows ? undefined : `batch",
    replace: "return follows || true ? undefined : `batch",
    tests: [test("journal/JournalScan"), test("recovery/Recovery")]
  },
  {
    name: "adds frames in recovery that do not follow the end of the log",
    file: "runelog/recovery/AdoptFrames.ts",
    find: "if (!fits) {\n",
    replace: "if (segment === undefined) {\n",
    tests: [test("recovery/Recovery"), test("recovery/Open"), test("Misplaced")]
  },
  {
    name: "frees the journal of logs that were left to it",
    file: "runelog/Maintenance.ts",
    find: "Math.min(this.committer.sequence, this.options.journalLogs.lowestSequence)",
    replace: "this.committer.sequence",
    tests: [test("journal/JournalLogs")]
  },
  {
    name: "overwrites what a failed change of meta may name",
    file: "runelog/recovery/Manifest.ts",
    find: "if (this.isDoubtful) await this.settleDoubt()",
    replace: "",
    tests: [test("recovery/Manifest")]
  },
  {
    name: "repairs while logs are left to the journal",
    file: "runelog/verify/Repair.ts",
    find: 'logs: "settled"',
    replace: 'logs: "on demand"',
    tests: [test("verify/Repair")]
  },
  {
    name: "serves frames whose chain is broken when a segment is scanned",
    file: "runelog/segment/Scan.ts",
    find: 'if (framePreviousCrc(view, start) !== walk.crc) return "the chain to the frame before is broken"',
    replace: "",
    tests: [test("segment/Scan"), test("Misplaced")]
  },
  {
    name: "serves frames whose event id does not follow",
    file: "runelog/segment/Scan.ts",
    find: "if (eventId !== expected) return `event id",
    replace: "if (false) return `event id",
    tests: [test("segment/Scan"), test("Misplaced")]
  },
  {
    name: "does not see bytes behind a seal",
    file: "runelog/segment/Scan.ts",
    find: 'if (endOffset < options.endOffset) walk.fault = { offset: endOffset, reason: "bytes behind the seal" }',
    replace: "",
    tests: [test("segment/Scan"), test("segment/Seal"), test("verify/Verify")]
  },
  {
    name: "serves a frame with a wrong checksum",
    file: "runelog/Frame.ts",
    find: 'if (crc32cOf(bytes, start + CRC_FROM, frameEnd, 0) !== frameCrc(view, start)) return "checksum mismatch"',
    replace: "",
    tests: [test("Frame"), test("segment/Scan")]
  },
  {
    name: "reads a frame of an unknown version",
    file: "runelog/Frame.ts",
    find: 'if (view.getUint8(start + offset.version) !== FRAME_VERSION) return "unknown frame version"',
    replace: "",
    tests: [test("Frame")]
  },
  {
    name: "does not compare a seal with the digest of its segment",
    file: "runelog/segment/SealedSegment.ts",
    find: "if ((await segmentDigest(file, end.offset, seal.previousSha256)) !== seal.sha256) {",
    replace: "if (false) {",
    tests: [test("segment/SealedSegment"), test("segment/Seal"), test("recovery/Import")]
  },
  {
    name: "does not compare a seal with the segment before it",
    file: "runelog/segment/SealedSegment.ts",
    find: 'if (seal.previousSha256 !== (place.previous?.sha256 ?? "")) {',
    replace: "if (false) {",
    tests: [test("segment/SealedSegment"), test("recovery/Import")]
  },
  {
    name: "takes a segment that belongs to another log",
    file: "runelog/segment/SealedSegment.ts",
    find: "if (header.log !== log) return refuse",
    replace: "if (false) return refuse",
    tests: [test("segment/SealedSegment"), test("recovery/Import")]
  },
  {
    name: "serves secret frames to readers below that visibility",
    file: "runelog/segment/Reader.ts",
    find: "(frameFlags(view, start) & flag.visibilityMask) > filter.visibilityMax)",
    replace: "(frameFlags(view, start) & flag.visibilityMask) > filter.visibilityMax + 1)",
    tests: [test("segment/Reader"), test("Runelog")]
  },
  {
    name: "answers a cursor beyond the head as if it were at the head",
    file: "runelog/segment/Reader.ts",
    find: "if (after > head) throw new CursorBeyondEnd({ log: log.name, after, head })",
    replace: "if (after > head) return undefined as never",
    tests: [test("segment/Reader"), test("Runelog")]
  },
  {
    name: "takes a meta slot with a wrong checksum",
    file: "runelog/recovery/MetaFile.ts",
    find: "if (crc32c(buffer, at.version, USED_BYTES, 0) !== view.getUint32(at.crc, true)) return undefined",
    replace: "",
    tests: [test("recovery/MetaFile")]
  },
  {
    name: "gives the data directory to a second writer while the first lives",
    file: "runelog/disk/NodeLock.ts",
    find: "if (owner !== undefined && !leftover && this.#processes.isAlive(owner)) return false",
    replace: "",
    tests: [test("disk/NodeLock")]
  },
  {
    name: "takes entries larger than the limit",
    file: "runelog/commit/Entry.ts",
    find: "return bytes > bodyBytesMax ? new EntryTooLarge({ log, bytes, bytesMax: bodyBytesMax }) : undefined",
    replace: "return undefined",
    tests: [test("Runelog"), test("commit/Committer")]
  },
  {
    name: "does not tell the last frame of a batch from the others",
    file: "runelog/commit/Encode.ts",
    find: "(index < last ? flag.batchContinues : 0) |",
    replace: "0 |",
    tests: [test("commit/Batch"), test("Runelog"), test("Cut")]
  }
]
