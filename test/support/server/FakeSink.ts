// A socket in memory for tests of delivery: the test says how much waits in it, and when what was written leaves.
import type { SocketSink } from "#src/server/socket/SocketSink.ts"

export interface FakeFrame {
  readonly sub: string
  readonly rune?: { readonly event_id: number; readonly conversation_id?: string }
  readonly gap?: { readonly from: number; readonly to: number; readonly conversation_id?: string }
  readonly conversation_id?: string
  readonly error?: { readonly code: string; readonly message: string; readonly data?: unknown }
  readonly caught_up?: { readonly head: number }
  readonly attention?: Readonly<Record<string, unknown>>
}

/** The payloads of the frames in some bytes, by RFC 6455. */
export const payloads = (bytes: Buffer): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== 0x81) throw new Error(`no text frame at ${at}`)
    const short = bytes[at + 1]!
    const header = short < 126 ? 2 : short === 126 ? 4 : 10
    const length =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    found.push(bytes.toString("utf8", at + header, at + header + length))
    at += header + length
  }
  return found
}

export class FakeSink implements SocketSink {
  readonly seen: Array<number> = []
  readonly gaps: Array<number> = []
  readonly frames: Array<FakeFrame> = []
  pending = 0
  closed = false
  private waiters: Array<() => void> = []
  private unsent: Array<{ readonly bytes: Buffer; readonly onWritten: (() => void) | undefined }> = []

  /** What was written is looked at when it leaves: until then its bytes must stay what they are. */
  write(bytes: Buffer, onWritten?: () => void): void {
    this.pending += bytes.length
    this.unsent.push({ bytes, onWritten })
  }

  private leave(bytes: Buffer): void {
    for (const text of payloads(bytes)) {
      const frame = JSON.parse(text) as FakeFrame
      this.frames.push(frame)
      const { gap, rune } = frame
      if (rune !== undefined) this.seen.push(rune.event_id)
      if (gap !== undefined) this.gaps.push(gap.from)
    }
  }

  /** Bytes that were written and have not left. */
  get unsentBytes(): number {
    return this.unsent.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  pendingBytes(): number {
    return this.pending
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  drain(): void {
    this.pending = 0
    for (const { bytes, onWritten } of this.unsent.splice(0)) {
      this.leave(bytes)
      onWritten?.()
    }
    for (const wake of this.waiters.splice(0)) wake()
  }

  isOpen(): boolean {
    return !this.closed
  }

  closeStalled(): void {
    this.closed = true
    this.drain()
  }

  stalledMs(): number {
    return 60_000
  }
}

export const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
