// Lies in the guards of the log engine: what is checked before bytes are trusted, acknowledged, freed or served.
import type { Mutant } from "../Mutant.ts"

const test = (name: string): string => `test/runelog/${name}.test.ts`

export const runelogMutants: ReadonlyArray<Mutant> = [
  {
    name: "takes an append whose event id is not the next one",
    file: "runelog/Committer.ts",
    find: "if (firstEventId !== log.nextEventId) {",
    replace: "if (firstEventId < log.nextEventId) {",
    tests: [test("Runelog"), test("Committer")]
  },
  {
    name: "acknowledges a batch whose sync failed",
    file: "runelog/Committer.ts",
    find: "if (cause === undefined) this.settle(batch)",
    replace: "if (cause === undefined || cause !== undefined) this.settle(batch)",
    tests: [test("Committer"), test("Runelog")]
  },
  {
    name: "commits the next batch while one is being synced",
    file: "runelog/Committer.ts",
    find: "return this.syncing.isUnderWay || this.waitingForRoom",
    replace: "return this.waitingForRoom",
    tests: [test("Committer"), test("Runelog")]
  },
  {
    name: "writes on after the writer was poisoned",
    file: "runelog/Committer.ts",
    find: "if (this.poison !== undefined) return this.poison\n",
    replace: "",
    tests: [test("Committer"), test("Runelog")]
  },
  {
    name: "takes appends after it was closed",
    file: "runelog/Committer.ts",
    find: "if (this.closed) return new WriterClosed",
    replace: "if (false) return new WriterClosed",
    tests: [test("Committer"), test("Runelog")]
  },
  {
    name: "lets ordinary appends use the reserve",
    file: "runelog/Journal.ts",
    find: "if (!options.mayUseReserve && left < this.options.limits.reserveBytes) return undefined",
    replace: "",
    tests: [test("Journal"), test("CommitterFull")]
  },
  {
    name: "frees a journal whose last batch is not below the floor",
    file: "runelog/Journal.ts",
    find: "if (journal.lastSequence >= floor) continue",
    replace: "if (journal.lastSequence > floor) continue",
    tests: [test("Journal"), test("Maintenance")]
  },
  {
    name: "takes a journal batch whose header checksum is wrong",
    file: "runelog/JournalBatch.ts",
    find: "if (crc32c(buffer, start + at.payloadBytes, start + BATCH_HEADER_BYTES, 0) !== headerCrc) return undefined",
    replace: "",
    tests: [test("JournalBatch"), test("JournalScan")]
  },
  {
    name: "opens a journal of another data directory",
    file: "runelog/JournalScan.ts",
    find: "if (header.directoryId !== directoryId) throw new ForeignFile({ file: path })",
    replace: "",
    tests: [test("JournalScan"), test("Misplaced")]
  },
  {
    name: "skips a batch that is missing from the journal",
    file: "runelog/JournalScan.ts",
    find: "if (sequence > expected) return",
    replace: "if (false) return",
    tests: [test("JournalScan"), test("Recovery")]
  },
  {
    name: "does not ask whether a batch continues the one before it",
    file: "runelog/JournalScan.ts",
    find: "return follows ? undefined : `batch",
    replace: "return follows || true ? undefined : `batch",
    tests: [test("JournalScan"), test("Recovery")]
  },
  {
    name: "adds frames in recovery that do not follow the end of the log",
    file: "runelog/Adopt.ts",
    find: "if (!fits) {\n",
    replace: "if (segment === undefined) {\n",
    tests: [test("Recovery"), test("Open"), test("Misplaced")]
  },
  {
    name: "frees the journal of logs that were left to it",
    file: "runelog/Maintenance.ts",
    find: "Math.min(this.committer.sequence, this.options.journalLogs.lowestSequence)",
    replace: "this.committer.sequence",
    tests: [test("JournalLogs")]
  },
  {
    name: "overwrites what a failed change of meta may name",
    file: "runelog/Manifest.ts",
    find: "if (this.isDoubtful) await this.settleDoubt()",
    replace: "",
    tests: [test("Manifest")]
  },
  {
    name: "repairs while logs are left to the journal",
    file: "runelog/Repair.ts",
    find: 'logs: "settled"',
    replace: 'logs: "on demand"',
    tests: [test("Repair")]
  },
  {
    name: "serves frames whose chain is broken when a segment is scanned",
    file: "runelog/Scan.ts",
    find: 'if (framePreviousCrc(view, start) !== walk.crc) return "the chain to the frame before is broken"',
    replace: "",
    tests: [test("Scan"), test("Misplaced")]
  },
  {
    name: "serves frames whose event id does not follow",
    file: "runelog/Scan.ts",
    find: "if (eventId !== expected) return `event id",
    replace: "if (false) return `event id",
    tests: [test("Scan"), test("Misplaced")]
  },
  {
    name: "does not see bytes behind a seal",
    file: "runelog/Scan.ts",
    find: 'if (endOffset < options.endOffset) walk.fault = { offset: endOffset, reason: "bytes behind the seal" }',
    replace: "",
    tests: [test("Scan"), test("Seal"), test("Verify")]
  },
  {
    name: "serves a frame with a wrong checksum",
    file: "runelog/Frame.ts",
    find: 'if (crc32cOf(bytes, start + CRC_FROM, frameEnd, 0) !== frameCrc(view, start)) return "checksum mismatch"',
    replace: "",
    tests: [test("Frame"), test("Scan")]
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
    file: "runelog/SealedSegment.ts",
    find: "if ((await segmentDigest(file, end.offset, seal.previousSha256)) !== seal.sha256) {",
    replace: "if (false) {",
    tests: [test("SealedSegment"), test("Seal"), test("Import")]
  },
  {
    name: "does not compare a seal with the segment before it",
    file: "runelog/SealedSegment.ts",
    find: 'if (seal.previousSha256 !== (place.previous?.sha256 ?? "")) {',
    replace: "if (false) {",
    tests: [test("SealedSegment"), test("Import")]
  },
  {
    name: "takes a segment that belongs to another log",
    file: "runelog/SealedSegment.ts",
    find: "if (header.log !== log) return refuse",
    replace: "if (false) return refuse",
    tests: [test("SealedSegment"), test("Import")]
  },
  {
    name: "serves secret frames to readers below that visibility",
    file: "runelog/Reader.ts",
    find: "(frameFlags(view, start) & flag.visibilityMask) > filter.visibilityMax)",
    replace: "(frameFlags(view, start) & flag.visibilityMask) > filter.visibilityMax + 1)",
    tests: [test("Reader"), test("Runelog")]
  },
  {
    name: "answers a cursor beyond the head as if it were at the head",
    file: "runelog/Reader.ts",
    find: "if (after > head) throw new CursorBeyondEnd({ log: log.name, after, head })",
    replace: "if (after > head) return undefined as never",
    tests: [test("Reader"), test("Runelog")]
  },
  {
    name: "takes a meta slot with a wrong checksum",
    file: "runelog/MetaFile.ts",
    find: "if (crc32c(buffer, at.version, USED_BYTES, 0) !== view.getUint32(at.crc, true)) return undefined",
    replace: "",
    tests: [test("MetaFile")]
  },
  {
    name: "gives the data directory to a second writer while the first lives",
    file: "runelog/NodeLock.ts",
    find: "if (owner !== undefined && !leftover && this.#processes.isAlive(owner)) return false",
    replace: "",
    tests: [test("NodeLock")]
  },
  {
    name: "takes entries larger than the limit",
    file: "runelog/Entry.ts",
    find: "return bytes > bodyBytesMax ? new EntryTooLarge({ log, bytes, bytesMax: bodyBytesMax }) : undefined",
    replace: "return undefined",
    tests: [test("Runelog"), test("Committer")]
  },
  {
    name: "does not tell the last frame of a batch from the others",
    file: "runelog/Encode.ts",
    find: "(index < last ? flag.batchContinues : 0) |",
    replace: "0 |",
    tests: [test("Batch"), test("Runelog"), test("Cut")]
  }
]
