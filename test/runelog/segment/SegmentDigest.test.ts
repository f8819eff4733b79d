// Goal: the digest is the one that is written down, whatever the size. Method: an independent computation.
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { MIB } from "#runelog/RunelogLimits.ts"
import { segmentDigest } from "#runelog/segment/SegmentDigest.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { writeFileOf } from "../Fixture.ts"

const sha256 = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest()

const expected = (content: Buffer, previous: string): string => {
  const pieces: Array<Buffer> = [Buffer.from(previous, "hex")]
  for (let at = 0; at < content.length; at += MIB) pieces.push(sha256(content.subarray(at, at + MIB)))
  return sha256(Buffer.concat(pieces)).toString("hex")
}

describe("the digest of a segment", () => {
  it.each([128, 64 * 1024, MIB, 2 * MIB + 17])("covers %d bytes and the digest before", async (bytes) => {
    const disk = makeDiskMemory()
    const content = Buffer.alloc(bytes + 50, "digest me ")
    await writeFileOf(disk, "/file", content)
    const file = await disk.open("/file", "read")
    for (const previous of ["", "0f".repeat(32)]) {
      expect(await segmentDigest(file, bytes, previous)).toBe(expected(content.subarray(0, bytes), previous))
    }
  })
})
