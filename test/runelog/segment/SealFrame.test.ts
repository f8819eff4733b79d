// Goal: a seal can be read back, and only a seal can. Method: round trip and bodies of other shapes.
import { describe, expect, it } from "vitest"
import {
  bytesOf,
  checkFrame,
  FRAME_HEADER_BYTES,
  frameEventId,
  frameKind,
  frameKindOf,
  framePreviousCrc
} from "#runelog/Frame.ts"
import { encodeSealFrame, parseSeal } from "#runelog/segment/SealFrame.ts"

const seal = { frames: 12, headCrc: 0xffff_ffff, sha256: "ab".repeat(32), previousSha256: "" }

describe("a seal", () => {
  it("is a frame behind the last one, and gives back what it was made with", () => {
    const bytes = bytesOf(encodeSealFrame(seal, { eventId: 40, previousCrc: 9 }))
    expect(checkFrame(bytes, 0, bytes.buffer.length)).toBeUndefined()
    expect(frameKindOf(bytes.view, 0)).toBe(frameKind.seal)
    expect([frameEventId(bytes.view, 0), framePreviousCrc(bytes.view, 0)]).toEqual([40, 9])
    expect(parseSeal(bytes.buffer.toString("utf8", FRAME_HEADER_BYTES))).toEqual(seal)
  })

  it.each([
    ["not JSON", "{"],
    ["no object", "null"],
    ["another kind of frames", JSON.stringify({ frames: "12", head_crc: 1, sha256: "a", previous_sha256: "" })],
    ["no checksum", JSON.stringify({ frames: 12, sha256: "a", previous_sha256: "" })],
    ["no digest", JSON.stringify({ frames: 12, head_crc: 1, previous_sha256: "" })],
    ["no previous digest", JSON.stringify({ frames: 12, head_crc: 1, sha256: "a" })]
  ])("is not read from a body with %s", (_, body) => expect(parseSeal(body)).toBeUndefined())
})
