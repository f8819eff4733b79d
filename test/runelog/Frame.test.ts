// Goal: a frame says what it was made with, and anything else is told apart. Method: round trips and single faults.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import {
  bytesOf,
  checkFrame,
  FRAME_BODY_BYTES_MAX,
  FRAME_HEADER_BYTES,
  flag,
  frameBodyBytes,
  frameBytes,
  frameCrc,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  framePreviousCrc,
  frameStream,
  sealFrame,
  sealThinned
} from "#runelog/Frame.ts"

const frameOf = (body: Uint8Array, fields: Partial<Parameters<typeof sealFrame>[3]> = {}) => {
  const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + body.length))
  bytes.buffer.set(body, FRAME_HEADER_BYTES)
  const crc = sealFrame(bytes, 0, body.length, {
    flags: 0,
    kind: frameKind.entry,
    family: 0,
    stream: 0,
    previousCrc: 0,
    eventId: 1,
    ...fields
  })
  return { bytes, crc }
}

const resealed = (change: (buffer: Buffer, view: DataView) => void) => {
  const { bytes } = frameOf(Buffer.from("body"))
  change(bytes.buffer, bytes.view)
  bytes.view.setUint32(4, crc32c(bytes.buffer, 8, bytes.buffer.length, 0), true)
  return checkFrame(bytes, 0, bytes.buffer.length)
}

describe("a frame", () => {
  it("gives back every field it was made with", () => {
    const word = fc.nat(0xffff_ffff)
    const byte = fc.nat(0xff)
    fc.assert(
      fc.property(
        fc.uint8Array(),
        byte,
        byte,
        word,
        word,
        fc.maxSafeNat(),
        (body, flags, family, stream, previousCrc, eventId) => {
          const { bytes, crc } = frameOf(body, { flags, family, stream, previousCrc, eventId })
          const { view } = bytes
          expect(checkFrame(bytes, 0, bytes.buffer.length)).toBeUndefined()
          expect([frameFlags(view, 0), frameFamily(view, 0), frameStream(view, 0)]).toEqual([flags, family, stream])
          expect([framePreviousCrc(view, 0), frameEventId(view, 0), frameCrc(view, 0)]).toEqual([
            previousCrc,
            eventId,
            crc
          ])
          expect([frameKindOf(view, 0), frameBodyBytes(view, 0), frameLastId(view, 0)]).toEqual([
            0,
            body.length,
            eventId
          ])
          expect(frameBytes(view, 0)).toBe(bytes.buffer.length)
        }
      )
    )
  })

  it("has the layout that is written down", () => {
    const { bytes } = frameOf(Buffer.from("hi"), {
      flags: 0b101,
      family: 7,
      stream: 0x01020304,
      previousCrc: 5,
      eventId: 2 ** 32 + 9
    })
    expect(bytes.buffer.subarray(0, 4).toString("latin1")).toBe("RUNE")
    expect(bytes.buffer.subarray(8).toString("hex")).toBe(
      `02000000${"01050007"}${"04030201"}${"05000000"}${"0900000001000000"}${Buffer.from("hi").toString("hex")}`
    )
    expect(bytes.view.getUint32(4, true)).toBe(crc32c(bytes.buffer, 8, bytes.buffer.length, 0))
  })

  it("is short when its bytes end before it does", () => {
    const { bytes } = frameOf(Buffer.from("body"))
    expect(checkFrame(bytes, 0, FRAME_HEADER_BYTES - 1)).toBe("short")
    expect(checkFrame(bytes, 0, bytes.buffer.length - 1)).toBe("short")
  })

  it("names the fault of bytes that are none", () => {
    expect(resealed((buffer) => buffer.write("ENUR", 0, "latin1"))).toBe("not a frame")
    expect(resealed((_, view) => view.setUint8(12, 2))).toBe("unknown frame version")
    expect(resealed((_, view) => view.setUint32(8, FRAME_BODY_BYTES_MAX + 1, true))).toBe("length out of range")
    expect(resealed((_, view) => view.setUint8(14, 3))).toBe("unknown frame kind")
    expect(resealed((_, view) => view.setUint8(14, frameKind.thinned))).toBe("unknown frame kind")
    const { bytes } = frameOf(Buffer.from("body"))
    bytes.buffer[FRAME_HEADER_BYTES]! ^= 1
    expect(checkFrame(bytes, 0, bytes.buffer.length)).toBe("checksum mismatch")
  })

  it("marks a dropped range with its two ends", () => {
    const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + 8))
    sealThinned(bytes, 0, { from: 3, to: 2 ** 32 + 1, previousCrc: 4, flags: flag.batchContinues })
    expect(checkFrame(bytes, 0, bytes.buffer.length)).toBeUndefined()
    expect([frameEventId(bytes.view, 0), frameLastId(bytes.view, 0)]).toEqual([3, 2 ** 32 + 1])
    expect([frameKindOf(bytes.view, 0), frameFlags(bytes.view, 0)]).toEqual([frameKind.thinned, flag.batchContinues])
  })
})
