// Text frames of RFC 6455 as a server sends them: unmasked, unfragmented. A page of runes is framed once and the same
// bytes go to every socket, so this is written here and not left to a send call per rune and socket.

/** Bytes in front of a payload of this length. */
export const headerBytes = (payloadBytes: number): number => (payloadBytes < 126 ? 2 : payloadBytes < 65_536 ? 4 : 10)

const FINAL_TEXT = 0x81

/** Writes the header of a text frame; returns where its payload starts. */
export const writeHeader = (target: Buffer, offset: number, payloadBytes: number): number => {
  target[offset] = FINAL_TEXT
  if (payloadBytes < 126) {
    target[offset + 1] = payloadBytes
    return offset + 2
  }
  if (payloadBytes < 65_536) {
    target[offset + 1] = 126
    target.writeUInt16BE(payloadBytes, offset + 2)
    return offset + 4
  }
  target[offset + 1] = 127
  target.writeUInt32BE(Math.floor(payloadBytes / 2 ** 32), offset + 2)
  target.writeUInt32BE(payloadBytes % 2 ** 32, offset + 6)
  return offset + 10
}

/** One whole text frame. */
export const textFrame = (text: string): Buffer => {
  const payloadBytes = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(headerBytes(payloadBytes) + payloadBytes)
  frame.write(text, writeHeader(frame, 0, payloadBytes), "utf8")
  return frame
}

/** Payloads made of a prefix, a body and a suffix, each framed, in one buffer. */
export const frameAll = (prefix: Buffer, bodies: ReadonlyArray<Uint8Array>, suffix: Buffer): Buffer => {
  const around = prefix.length + suffix.length
  let bytes = 0
  for (const body of bodies) bytes += headerBytes(body.length + around) + body.length + around
  const target = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const body of bodies) {
    at = writeHeader(target, at, body.length + around)
    at += prefix.copy(target, at)
    target.set(body, at)
    at += body.length
    at += suffix.copy(target, at)
  }
  return target
}
