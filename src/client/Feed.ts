/**
 * Frames of one subscription between the socket and its reader. Bounded: a reader that falls behind makes the feed end
 * as `overflowed`; what it holds is still read, and the rest is asked for again from the cursor.
 */
import { clientLimits } from "./ClientLimits.ts"
import type { PushedFrame } from "./Wire.ts"

export type FeedEnd = "lost" | "overflowed"

export class Feed {
  private frames: Array<{ readonly frame: PushedFrame; readonly chars: number }> = []
  private at = 0
  private chars = 0
  private end: FeedEnd | undefined
  private wake: (() => void) | undefined
  private readonly onOverflow: () => void

  constructor(onOverflow: () => void) {
    this.onOverflow = onOverflow
  }

  push(frame: PushedFrame, chars: number): void {
    if (this.end !== undefined) return
    const waiting = this.frames.length - this.at
    // What is not durable is the first to go.
    if (frame.live !== undefined && waiting > clientLimits.feedFramesMax / 2) return
    if (waiting >= clientLimits.feedFramesMax || this.chars + chars > clientLimits.feedCharsMax) {
      // A single frame larger than all the room is let in alone, or it would never arrive.
      if (waiting > 0) {
        this.finish("overflowed")
        this.onOverflow()
        return
      }
    }
    this.frames.push({ frame, chars })
    this.chars += chars
    this.wake?.()
  }

  finish(end: FeedEnd): void {
    this.end ??= end
    this.wake?.()
  }

  /** The next frame; how the feed ended when there is no more; `aborted` when the signal came first. */
  async next(signal: AbortSignal): Promise<PushedFrame | FeedEnd | "aborted"> {
    for (;;) {
      if (signal.aborted) return "aborted"
      const taken = this.take()
      if (taken !== undefined) return taken
      if (this.end !== undefined) return this.end
      await this.woken(signal)
    }
  }

  private take(): PushedFrame | undefined {
    const entry = this.frames[this.at]
    if (entry === undefined) return undefined
    this.at += 1
    this.chars -= entry.chars
    // A reader that never quite catches up must not keep what it has read.
    if (this.at === this.frames.length || this.at >= clientLimits.feedFramesMax) {
      this.frames = this.frames.slice(this.at)
      this.at = 0
    }
    return entry.frame
  }

  private woken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        this.wake = undefined
        signal.removeEventListener("abort", settle)
        resolve()
      }
      this.wake = settle
      signal.addEventListener("abort", settle)
    })
  }
}
