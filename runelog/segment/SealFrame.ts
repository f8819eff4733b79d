// The seal of a segment: its last frame, after which the file never changes. It carries a digest over all
// bytes before it and over the seal of the segment before, so a log of sealed segments can be shown to be
// whole and unaltered from its newest digest alone.
import { type Bytes, bytesOf, FRAME_HEADER_BYTES, frameKind, sealFrame } from "../Frame.ts"

export interface Seal {
  /** Frames before the seal, thinned markers included. */
  readonly frames: number
  /** Checksum of the segment's last frame as it was appended: what the next segment's header is chained to. */
  readonly headCrc: number
  /** Hex SHA-256 over the previous seal's digest and all bytes of the file before the seal. */
  readonly sha256: string
  /** The digest of the seal before; empty for the first segment. */
  readonly previousSha256: string
}

export const encodeSealFrame = (
  seal: Seal,
  place: { readonly eventId: number; readonly previousCrc: number }
): Buffer => {
  const body = JSON.stringify({
    frames: seal.frames,
    head_crc: seal.headCrc,
    sha256: seal.sha256,
    previous_sha256: seal.previousSha256
  })
  const bytes: Bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + Buffer.byteLength(body)))
  bytes.buffer.write(body, FRAME_HEADER_BYTES, "utf8")
  sealFrame(bytes, 0, bytes.buffer.length - FRAME_HEADER_BYTES, {
    flags: 0,
    kind: frameKind.seal,
    family: 0,
    stream: 0,
    previousCrc: place.previousCrc,
    eventId: place.eventId
  })
  return bytes.buffer
}

/** The seal in a body whose frame was intact; nothing when a writer of another mind wrote it. */
export const parseSeal = (body: string): Seal | undefined => {
  try {
    const { frames, head_crc, sha256, previous_sha256 } = JSON.parse(body) as Record<string, unknown>
    const valid =
      Number.isInteger(frames) &&
      Number.isInteger(head_crc) &&
      typeof sha256 === "string" &&
      typeof previous_sha256 === "string"
    return valid
      ? { frames: frames as number, headCrc: head_crc as number, sha256, previousSha256: previous_sha256 }
      : undefined
  } catch {
    return undefined
  }
}
