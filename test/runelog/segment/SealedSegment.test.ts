// Goal: only a whole, unaltered segment in its place passes. Method: segments made by hand whose checksums are right and
// whose story is wrong, one fault each.
import { beforeEach, describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf, FRAME_HEADER_BYTES, flag, frameKind, sealFrame } from "#runelog/Frame.ts"
import { checkSealedSegment, type SegmentPlace } from "#runelog/segment/SealedSegment.ts"
import { encodeSealFrame, type Seal } from "#runelog/segment/SealFrame.ts"
import { encodeSegmentHeader } from "#runelog/segment/Segment.ts"
import { segmentDigest } from "#runelog/segment/SegmentDigest.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"

const frame = (eventId: number, previousCrc: number, flags: number, kind: number = frameKind.entry) => {
  const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + 8))
  bytes.buffer.writeBigUInt64LE(BigInt(eventId), FRAME_HEADER_BYTES)
  const crc = sealFrame(bytes, 0, 8, { flags, kind, family: 0, stream: 0, previousCrc, eventId })
  return { buffer: bytes.buffer, crc }
}

interface Shape {
  readonly log?: string
  readonly previousHeadCrc?: number
  readonly lastFlags?: number
  readonly lastKind?: number
  readonly seal?: Partial<Seal>
  readonly sealBody?: string
}

let file: DiskFile

beforeEach(async () => {
  file = await makeDiskMemory().open("/segment", "create")
})

/** Three frames and a seal, right but for what the shape says. */
const write = async (shape: Shape): Promise<number> => {
  const header = encodeSegmentHeader({
    log: shape.log ?? "a",
    firstEventId: 1,
    previousHeadCrc: shape.previousHeadCrc ?? 0
  })
  const first = frame(1, header.crc, flag.segmentFirst)
  const second = frame(2, first.crc, 0)
  const third = frame(3, second.crc, shape.lastFlags ?? 0, shape.lastKind)
  const content = Buffer.concat([header.buffer, first.buffer, second.buffer, third.buffer])
  await file.write(content, 0, content.length, 0)
  const previousSha256 = shape.seal?.previousSha256 ?? ""
  const sha256 = await segmentDigest(file, content.length, previousSha256)
  const seal = { frames: 3, headCrc: third.crc, sha256, previousSha256, ...shape.seal }
  const sealed = encodeSealFrame(seal, { eventId: 3, previousCrc: third.crc })
  if (shape.sealBody !== undefined) {
    sealed.fill(0x20, FRAME_HEADER_BYTES)
    sealed.write(shape.sealBody, FRAME_HEADER_BYTES)
    const fields = { flags: 0, kind: frameKind.seal, family: 0, stream: 0, previousCrc: third.crc, eventId: 3 }
    sealFrame(bytesOf(sealed), 0, sealed.length - FRAME_HEADER_BYTES, fields)
  }
  await file.write(sealed, 0, sealed.length, content.length)
  return content.length + sealed.length
}

const place: SegmentPlace = { log: "a", firstEventId: 1, previous: undefined }
const check = async (shape: Shape, at: SegmentPlace = place) => checkSealedSegment(file, await write(shape), at)

describe("a sealed segment", () => {
  it("passes when everything is as it was sealed", async () => {
    expect(await check({})).toMatchObject({ _tag: "Sealed", content: { firstEventId: 1, lastEventId: 3 } })
  })

  it("passes behind the segment that it names", async () => {
    const previous: Seal = { frames: 1, headCrc: 77, sha256: "ab".repeat(32), previousSha256: "" }
    const shape = { previousHeadCrc: 77, seal: { previousSha256: "ab".repeat(32) } }
    expect(await check(shape, { ...place, previous })).toMatchObject({ _tag: "Sealed" })
    const other = { ...previous, sha256: "cd".repeat(32) }
    expect(await check(shape, { ...place, previous: other })).toMatchObject({
      reason: "the digest of the segment before is another"
    })
  })

  it("may end in another checksum than it was appended with once it was thinned", async () => {
    expect(await check({ lastKind: frameKind.thinned, seal: { headCrc: 5 } })).toMatchObject({ _tag: "Sealed" })
  })

  it.each<readonly [Shape, string]>([
    [{ log: "b" }, 'the segment belongs to log "b"'],
    [{ previousHeadCrc: 9 }, "the chain to the segment before is broken"],
    [{ sealBody: "no seal" }, "the seal cannot be read"],
    [{ lastFlags: flag.batchContinues }, "the segment ends inside a batch"],
    [{ seal: { frames: 4 } }, "3 frames where the seal counts 4"],
    [{ seal: { headCrc: 5 } }, "the seal names another last frame"],
    [{ seal: { sha256: "00".repeat(32) } }, "the digest does not match"]
  ])("is refused for %j", async (shape, reason) => {
    expect(await check(shape)).toMatchObject({ _tag: "Fault", reason })
  })

  it("is refused in another place, in another format and without its seal", async () => {
    expect(await check({}, { ...place, firstEventId: 4 })).toMatchObject({
      reason: "the segment starts at event 1, not 4"
    })
    const size = await write({})
    expect(await checkSealedSegment(file, 128 + 3 * (FRAME_HEADER_BYTES + 8), place)).toMatchObject({
      reason: "the segment is not sealed"
    })
    const header = Buffer.alloc(128)
    await file.read(header, 0, 128, 0)
    header.writeUInt16LE(9, 12)
    header.writeUInt32LE(crc32c(header, 12, 128, 0), 8)
    await file.write(header, 0, 128, 0)
    expect(await checkSealedSegment(file, size, place)).toMatchObject({ reason: "format version 9 is not known" })
    await file.truncate(60)
    expect(await checkSealedSegment(file, size, place)).toMatchObject({ reason: "the segment header is cut short" })
  })
})
