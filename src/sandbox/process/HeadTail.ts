// The beginning and the end of a stream of bytes, in bounded memory, and how much is missing between them.

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Bytes without a character that was cut at their end. */
const wholeEnd = (bytes: Buffer): Buffer => {
  let start = bytes.length
  while (start > 0 && bytes.length - start < 4 && isContinuation(bytes[start - 1])) start -= 1
  const lead = bytes[start - 1] ?? 0
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  return length > 1 && bytes.length - start + 1 < length ? bytes.subarray(0, start - 1) : bytes
}

/** Bytes without the rest of a character that was cut at their beginning. */
const wholeBeginning = (bytes: Buffer): Buffer => {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start += 1
  return bytes.subarray(start)
}

export class HeadTail {
  /** All bytes that were added. */
  total = 0
  private head: Buffer = Buffer.alloc(0)
  private headUsed = 0
  private ring: Buffer | undefined
  private ringEnd = 0
  private ringUsed = 0
  private readonly half: number

  constructor(bytesMax: number) {
    this.half = Math.max(1, Math.floor(bytesMax / 2))
  }

  get dropped(): number {
    return this.total - this.headUsed - this.ringUsed
  }

  add(bytes: Buffer): void {
    this.total += bytes.length
    const room = Math.min(bytes.length, this.half - this.headUsed)
    if (room > 0) this.addHead(bytes.subarray(0, room))
    if (bytes.length > room) this.addTail(bytes.subarray(room))
  }

  /** All that was added, while nothing is dropped. */
  bytes(): Buffer {
    return Buffer.concat([this.head.subarray(0, this.headUsed), this.tail()])
  }

  toString(): string {
    const head = this.head.subarray(0, this.headUsed)
    if (this.dropped === 0) return Buffer.concat([head, this.tail()]).toString("utf8")
    const [first, last] = [wholeEnd(head), wholeBeginning(this.tail())]
    const missing = this.total - first.length - last.length
    return `${first.toString("utf8")}\n… ${missing} bytes left out …\n${last.toString("utf8")}`
  }

  private addHead(bytes: Buffer): void {
    const needed = this.headUsed + bytes.length
    if (needed > this.head.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.half, Math.max(256, 2 * needed)))
      this.head.copy(larger, 0, 0, this.headUsed)
      this.head = larger
    }
    bytes.copy(this.head, this.headUsed)
    this.headUsed = needed
  }

  private addTail(bytes: Buffer): void {
    this.ring ??= Buffer.allocUnsafe(this.half)
    const last = bytes.length > this.half ? bytes.subarray(bytes.length - this.half) : bytes
    const first = Math.min(last.length, this.half - this.ringEnd)
    last.copy(this.ring, this.ringEnd, 0, first)
    last.copy(this.ring, 0, first)
    this.ringEnd = (this.ringEnd + last.length) % this.half
    this.ringUsed = Math.min(this.half, this.ringUsed + last.length)
  }

  private tail(): Buffer {
    if (this.ring === undefined) return Buffer.alloc(0)
    if (this.ringUsed < this.half) return this.ring.subarray(0, this.ringUsed)
    return Buffer.concat([this.ring.subarray(this.ringEnd), this.ring.subarray(0, this.ringEnd)])
  }
}
