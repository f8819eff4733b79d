// Goal: a walk over frames stops where it must and says why, however the reads fall. Method: small files by hand, chunks
// from a few bytes up.
import { describe, expect, it } from "vitest"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf, FRAME_HEADER_BYTES, flag, frameKind, sealFrame, sealThinned } from "#runelog/Frame.ts"
import { endsInSeal, findIntactFrame, type ScanStart, scanFrames } from "#runelog/segment/Scan.ts"
import { encodeSealFrame } from "#runelog/segment/SealFrame.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { writeFileOf } from "../Fixture.ts"

const headerCrc = 77

class Builder {
  readonly parts: Array<Buffer> = []
  crc = headerCrc
  next = 1

  entry(body: string, flags = 0, change: { eventId?: number; previousCrc?: number } = {}): this {
    const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + body.length))
    bytes.buffer.write(body, FRAME_HEADER_BYTES)
    const first = this.parts.length === 0 ? flag.segmentFirst : 0
    const fields = { flags: flags ^ first, kind: frameKind.entry, family: 0, stream: 0 }
    this.crc = sealFrame(bytes, 0, body.length, { ...fields, previousCrc: this.crc, eventId: this.next, ...change })
    this.next += 1
    this.parts.push(bytes.buffer)
    return this
  }

  thinned(to: number): this {
    const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + 8))
    const flags = this.parts.length === 0 ? flag.segmentFirst : 0
    this.crc = sealThinned(bytes, 0, { from: this.next, to, previousCrc: this.crc, flags })
    this.next = to + 1
    this.parts.push(bytes.buffer)
    return this
  }

  seal(body = "{}"): this {
    const seal = encodeSealFrame(
      { frames: 1, headCrc: 1, sha256: body, previousSha256: "" },
      { eventId: this.next - 1, previousCrc: this.crc }
    )
    this.parts.push(seal)
    return this
  }

  raw(bytes: Uint8Array): this {
    this.parts.push(Buffer.from(bytes))
    return this
  }

  async file(): Promise<{ readonly file: DiskFile; readonly size: number }> {
    const content = Buffer.concat([Buffer.alloc(SEGMENT_HEADER_BYTES), ...this.parts])
    const disk = makeDiskMemory()
    await writeFileOf(disk, "/file", content)
    return { file: await disk.open("/file", "read"), size: content.length }
  }

  async scan(from: Partial<ScanStart> = {}, chunkBytes?: number) {
    const { file, size } = await this.file()
    const start = { offset: SEGMENT_HEADER_BYTES, eventId: 1, previousCrc: headerCrc, ...from }
    const seen: Array<number> = []
    const end = await scanFrames(file, start, {
      endOffset: size,
      ...(chunkBytes !== undefined && { chunkBytes }),
      onFrame: (_, __, offset) => void seen.push(offset)
    })
    return { end, seen, size }
  }
}

const builder = (): Builder => new Builder()

describe("a scan", () => {
  it("walks every frame once, whatever the size of its chunks", async () => {
    const whole = builder().entry("one").entry("x".repeat(300)).thinned(9).entry("last")
    const expected = await whole.scan()
    expect(expected.end).toMatchObject({ lastEventId: 10, fault: undefined, openBatch: undefined, seal: undefined })
    expect(expected.end.offset).toBe(expected.size)
    expect(expected.seen).toHaveLength(4)
    for (const chunk of [1, 16, 33, 40, 64, 350, 1000]) expect(await whole.scan({}, chunk)).toEqual(expected)
  })

  it("stops behind the frame it is told to", async () => {
    const { file, size } = await builder().entry("one").entry("two").file()
    const start = { offset: SEGMENT_HEADER_BYTES, eventId: 1, previousCrc: headerCrc }
    const end = await scanFrames(file, start, { endOffset: size, onFrame: () => "stop" })
    expect(end).toMatchObject({ lastEventId: 1, fault: undefined })
  })

  it("ends with the seal, and finds what must not be behind it", async () => {
    const sealed = await builder().entry("one").seal("ab").scan()
    expect(sealed.end.seal?.body).toContain('"sha256":"ab"')
    expect(sealed.end.offset + sealed.end.seal!.bytes).toBe(sealed.size)
    const behind = await builder().entry("one").seal().raw(Buffer.from("x")).scan()
    expect(behind.end.fault).toEqual({ offset: behind.size - 1, reason: "bytes behind the seal" })
  })

  it("tells where a batch began that the file ends inside of", async () => {
    const { end } = await builder()
      .entry("one")
      .entry("two", flag.batchContinues)
      .entry("three", flag.batchContinues)
      .scan()
    expect(end).toMatchObject({ lastEventId: 3, fault: undefined, openBatch: { lastEventId: 1 } })
    expect(end.openBatch!.offset).toBe(SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES + 3)
    const closed = await builder().entry("one", flag.batchContinues).entry("two").scan()
    expect(closed.end.openBatch).toBeUndefined()
  })

  it("names what is wrong with the place of a frame", async () => {
    const reason = async (built: Builder) => (await built.scan()).end.fault?.reason
    expect(await reason(builder().entry("one").entry("two", 0, { eventId: 5 }))).toBe("event id 5 where 2 belongs")
    expect(await reason(builder().entry("one").entry("two", 0, { previousCrc: 5 }))).toBe(
      "the chain to the frame before is broken"
    )
    expect(await reason(builder().entry("one", flag.segmentFirst))).toBe("a frame of another place")
    expect(await reason(builder().entry("one").entry("two", flag.segmentFirst))).toBe("a frame of another place")
    expect(await reason(builder().entry("one").thinned(0))).toBe("a range that ends before it starts")
    expect(await reason(builder().entry("one").raw(Buffer.from("RUN")))).toBe("the file ends inside a frame")
    expect(await reason(builder().entry("one").raw(Buffer.alloc(40)))).toBe("not a frame")
    expect(await reason(builder().entry("one"))).toBeUndefined()
  })

  it("checks the chain of the first frame too, wherever it starts", async () => {
    const { end } = await builder().entry("one").scan({ previousCrc: 5 })
    expect(end).toMatchObject({
      crc: 5,
      fault: { offset: SEGMENT_HEADER_BYTES, reason: "the chain to the frame before is broken" }
    })
  })

  it("ends where the file ends, though it was told more", async () => {
    const { file, size } = await builder().entry("one").file()
    const start = { offset: SEGMENT_HEADER_BYTES, eventId: 1, previousCrc: headerCrc }
    expect(await scanFrames(file, start, { endOffset: size + 1000 })).toMatchObject({ offset: size, fault: undefined })
    expect(await scanFrames(file, { ...start, offset: size }, { endOffset: size })).toMatchObject({ lastEventId: 0 })
  })
})

describe("an intact frame", () => {
  it("is found behind garbage, and not where there is none", async () => {
    const garbage = Buffer.from("RUNE and then some RUNE".padEnd(100, "."))
    const { file, size } = await builder().raw(garbage).entry("one").file()
    const end = { endOffset: size }
    expect(await findIntactFrame(file, SEGMENT_HEADER_BYTES, end)).toBe(SEGMENT_HEADER_BYTES + garbage.length)
    const none = await builder().raw(garbage).file()
    expect(await findIntactFrame(none.file, 0, { endOffset: none.size })).toBeUndefined()
    expect(await findIntactFrame(none.file, none.size, { endOffset: none.size })).toBeUndefined()
  })
})

describe("a seal at the end of a file", () => {
  const seen = async (built: Builder): Promise<boolean> => {
    const { file, size } = await built.file()
    return endsInSeal(file, size)
  }

  it("is seen whatever lies before it, and only where nothing is behind it", async () => {
    expect(await seen(builder().entry("RUNE is no frame").seal())).toBe(true)
    expect(await seen(builder().raw(Buffer.alloc(2000, 7)).seal())).toBe(true)
    expect(await seen(builder().entry("one").entry("two"))).toBe(false)
    expect(await seen(builder().entry("one").seal().raw(Buffer.from("x")))).toBe(false)
  })

  it("is not seen in a file of nothing", async () => {
    const { file } = await builder().file()
    expect(await endsInSeal(file, 0)).toBe(false)
  })
})
