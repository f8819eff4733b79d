// Goal: batches, groups and file headers of the journal say what they were made with. Method: round trips, single faults.
import { describe, expect, it } from "vitest"
import { bytesOf } from "#runelog/Frame.ts"
import {
  alignPage,
  BATCH_HEADER_BYTES,
  closeGroup,
  decodeJournalFileHeader,
  encodeJournalFileHeader,
  groupFacts,
  groupKind,
  JOURNAL_PAGE_BYTES,
  openGroup,
  readBatchHeader,
  readGroups,
  sealBatch
} from "#runelog/journal/JournalBatch.ts"
import { flipBit } from "../Fixture.ts"

describe("a batch", () => {
  it("gives back header and groups", () => {
    const bytes = bytesOf(Buffer.alloc(JOURNAL_PAGE_BYTES, 0xff))
    const first = openGroup(bytes, BATCH_HEADER_BYTES, groupKind.frames, Buffer.from("log"))
    bytes.buffer.fill(7, first, first + 20)
    closeGroup(bytes, BATCH_HEADER_BYTES, 20, 2)
    const second = openGroup(bytes, first + 20, groupKind.removal, Buffer.from("other"))
    closeGroup(bytes, first + 20, 0, 0)
    const header = {
      payloadBytes: second - BATCH_HEADER_BYTES,
      sequence: 2 ** 34,
      nonce: 2n ** 63n,
      previousHeaderCrc: 3,
      groups: 2
    }
    const headerCrc = sealBatch(bytes, 0, header)
    expect(readBatchHeader(bytes, 0)).toMatchObject({ ...header, headerCrc })
    expect(readGroups(bytes, BATCH_HEADER_BYTES, 2)).toEqual([
      { log: "log", kind: groupKind.frames, frames: 2, frameBytes: 20, start: first, end: first + 20 },
      { log: "other", kind: groupKind.removal, frames: 0, frameBytes: 0, start: second, end: second }
    ])
  })

  it("names the logs it removes, and none behind a group that does not lie in it", () => {
    const bytes = bytesOf(Buffer.alloc(200))
    const first = openGroup(bytes, 0, groupKind.removal, Buffer.from("gone"))
    closeGroup(bytes, 0, 0, 0)
    const second = openGroup(bytes, first, groupKind.frames, Buffer.from("kept"))
    closeGroup(bytes, first, 20, 1)
    const end = openGroup(bytes, second + 20, groupKind.removal, Buffer.from("too"))
    closeGroup(bytes, second + 20, 0, 0)
    expect(groupFacts(bytes, 0, { groups: 3, payloadBytes: end }).removals).toEqual(["gone", "too"])
    expect(groupFacts(bytes, 0, { groups: 1, payloadBytes: end }).removals).toEqual(["gone"])
    closeGroup(bytes, first, 2 ** 32 - 1, 1)
    expect(groupFacts(bytes, 0, { groups: 3, payloadBytes: end }).removals).toEqual(["gone"])
  })

  it("has no header when any bit of it is flipped, or when there is no room for one", () => {
    const bytes = bytesOf(Buffer.alloc(BATCH_HEADER_BYTES))
    sealBatch(bytes, 0, { payloadBytes: 0, sequence: 1, nonce: 1n, previousHeaderCrc: 0, groups: 0 })
    for (let bit = 0; bit < BATCH_HEADER_BYTES * 8; bit++) {
      expect(readBatchHeader(bytesOf(flipBit(bytes.buffer, bit)), 0)).toBeUndefined()
    }
    expect(readBatchHeader(bytes, 1)).toBeUndefined()
  })

  it("starts on a page", () => {
    expect([0, 1, 4096, 4097].map(alignPage)).toEqual([0, 4096, 4096, 8192])
  })
})

describe("the header of a journal file", () => {
  const header = { directoryId: "0123456789abcdef".repeat(2), bytes: 2 ** 33 }

  it("gives back what it was made with", () => {
    const buffer = encodeJournalFileHeader(header)
    expect(buffer).toHaveLength(JOURNAL_PAGE_BYTES)
    expect(decodeJournalFileHeader(buffer)).toEqual({ _tag: "Header", version: 1, ...header })
  })

  it("names the fault of bytes that are none", () => {
    const buffer = encodeJournalFileHeader(header)
    const fault = (reason: string) => ({ _tag: "Fault", reason })
    expect(decodeJournalFileHeader(buffer.subarray(0, 63))).toEqual(fault("the journal header is cut short"))
    expect(decodeJournalFileHeader(flipBit(buffer, 3))).toEqual(fault("not a journal file"))
    expect(decodeJournalFileHeader(flipBit(buffer, 20 * 8))).toEqual(fault("journal header checksum mismatch"))
  })
})
