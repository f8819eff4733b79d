// A socket as far as delivery is concerned: how much waits in it, and what becomes of a reader that takes nothing.

import type { Duplex } from "node:stream"
import { after } from "../../contract/Timers.ts"
import { limits } from "../../wire/WireLimits.ts"

export interface SocketSink {
  /** `onWritten` is called once, when nobody needs the bytes any more, also where they were not written. */
  readonly write: (bytes: Buffer, onWritten?: () => void) => void
  /** Bytes that wait for the other side. */
  readonly pendingBytes: () => number
  /** Resolves when nothing waits any more, or when the socket is gone. */
  readonly drained: () => Promise<void>
  readonly isOpen: () => boolean
  /** Ends a reader that takes nothing for too long. */
  readonly closeStalled: () => void
  /** How long is too long. */
  readonly stalledMs: () => number
}

/** A reader of its own pace gets the next page when the one before is on its way. */
export const hasRoom = (sink: SocketSink): boolean => sink.pendingBytes() <= limits.pageBytes

/** False when the reader is gone, or took nothing for too long and was sent away. */
export const waitForRoom = async (sink: SocketSink): Promise<boolean> => {
  let isStalled = false
  const cancel = after(sink.stalledMs(), () => {
    isStalled = true
    sink.closeStalled()
  })
  await sink.drained()
  cancel()
  return !isStalled && sink.isOpen()
}

/** Resolves when the stream has written everything, or is gone. */
export const streamDrained = (stream: Duplex): Promise<void> => {
  // Below the mark no drain is announced; and what is left then is on its way already.
  if (!stream.writableNeedDrain || stream.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const settle = (): void => {
      stream.off("drain", settle)
      stream.off("close", settle)
      resolve()
    }
    stream.on("drain", settle)
    stream.on("close", settle)
  })
}
