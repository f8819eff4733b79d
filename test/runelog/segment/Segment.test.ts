// Goal: a segment's header and file names say what they should and nothing else passes. Method: round trips, single faults.
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import {
  decodeSegmentHeader,
  encodeSegmentHeader,
  indexFileName,
  isLogName,
  parseLogFileName,
  SEGMENT_HEADER_BYTES,
  segmentFileName
} from "#runelog/segment/Segment.ts"

const header = { log: "conv_0123", firstEventId: 2 ** 33 + 5, previousHeadCrc: 0xdeadbeef }

describe("a segment header", () => {
  it("gives back what it was made with, and the start of the chain", () => {
    const { buffer, crc } = encodeSegmentHeader(header)
    expect(buffer).toHaveLength(SEGMENT_HEADER_BYTES)
    expect(decodeSegmentHeader(buffer)).toEqual({ _tag: "Header", header, crc })
    expect(crc).toBe(crc32c(buffer, 12, SEGMENT_HEADER_BYTES, 0))
  })

  it("differs for every log, place and predecessor", () => {
    const crcs = [
      header,
      { ...header, log: "conv_0124" },
      { ...header, firstEventId: 1 },
      { ...header, previousHeadCrc: 1 }
    ].map((each) => encodeSegmentHeader(each).crc)
    expect(new Set(crcs).size).toBe(4)
  })

  it("holds the longest name there is", () => {
    const log = "n".repeat(64)
    expect(decodeSegmentHeader(encodeSegmentHeader({ ...header, log }).buffer)).toMatchObject({ header: { log } })
  })

  it("names the fault of bytes that are none", () => {
    const { buffer } = encodeSegmentHeader(header)
    expect(decodeSegmentHeader(buffer.subarray(0, 127))).toEqual({
      _tag: "Fault",
      reason: "the segment header is cut short"
    })
    const magic = Buffer.from(buffer)
    magic.write("E", 1)
    expect(decodeSegmentHeader(magic)).toEqual({ _tag: "Fault", reason: "not a segment file" })
    const rotten = Buffer.from(buffer)
    rotten[100]! ^= 1
    expect(decodeSegmentHeader(rotten)).toEqual({ _tag: "Fault", reason: "segment header checksum mismatch" })
  })

  it("tells another version from damage", () => {
    const { buffer } = encodeSegmentHeader(header)
    buffer.writeUInt16LE(2, 12)
    buffer.writeUInt32LE(crc32c(buffer, 12, SEGMENT_HEADER_BYTES, 0), 8)
    expect(decodeSegmentHeader(buffer)).toEqual({ _tag: "Version", version: 2 })
  })
})

describe("names in a log's directory", () => {
  it("sort like their first events", () => {
    expect(segmentFileName(42)).toBe("0000000000000042.seg")
    expect(indexFileName(42)).toBe("0000000000000042.idx")
  })

  it.each([
    ["0000000000000042.seg", { _tag: "Segment", firstEventId: 42 }],
    ["0000000000000042.idx", { _tag: "Index", firstEventId: 42 }],
    ["0000000000000042.seg.tmp", { _tag: "Leftover" }],
    ["42.seg", { _tag: "Foreign" }],
    ["0000000000000042.seg.bak", { _tag: "Foreign" }],
    [".DS_Store", { _tag: "Foreign" }]
  ])("%s is understood", (name, parsed) => expect(parseLogFileName(name)).toEqual(parsed))
})

describe("a log name", () => {
  it.each(["a", "conv_01-Z", "9", "n".repeat(64)])("can be %s", (name) => expect(isLogName(name)).toBe(true))
  it.each(["", "_a", "-a", ".", "..", "a/b", "a.b", "a b", "ä", "n".repeat(65), "a\n"])("cannot be %j", (name) =>
    expect(isLogName(name)).toBe(false)
  )
})
