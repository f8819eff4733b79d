// Goal: an index is given back whole or not at all. Method: round trips, every cut, every flipped bit.
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import { decodeIndex, encodeIndex } from "#runelog/segment/IndexFile.ts"
import { flipBit } from "../Fixture.ts"

const content = {
  index: { ids: [1, 5, 2 ** 33], offsets: [128, 900, 2 ** 34], crcs: [1, 0xffff_ffff, 3] },
  durableBytes: 2 ** 35
}

describe("an index file", () => {
  it("gives back what it was made with", () => {
    expect(decodeIndex(encodeIndex(content))).toEqual(content)
    const empty = { index: { ids: [], offsets: [], crcs: [] }, durableBytes: 128 }
    expect(decodeIndex(encodeIndex(empty))).toEqual(empty)
  })

  it("is found at the front of a file that once was longer", () => {
    expect(decodeIndex(Buffer.concat([encodeIndex(content), Buffer.alloc(100, 7)]))).toEqual(content)
  })

  it("is nothing when it is cut anywhere or any bit of it is flipped", () => {
    const buffer = encodeIndex(content)
    for (let cut = 0; cut < buffer.length; cut++) expect(decodeIndex(buffer.subarray(0, cut))).toBeUndefined()
    for (let bit = 0; bit < buffer.length * 8; bit++) expect(decodeIndex(flipBit(buffer, bit))).toBeUndefined()
  })

  it("is nothing when it is of another version", () => {
    const buffer = encodeIndex(content)
    buffer.writeUInt32LE(2, 12)
    buffer.writeUInt32LE(crc32c(buffer, 12, buffer.length, 0), 8)
    expect(decodeIndex(buffer)).toBeUndefined()
  })
})
