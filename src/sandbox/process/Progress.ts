// Output on its way to people: in pieces of a bounded size, at a bounded pace, and bounded in all. What is too fast is
// left out and said to be; the result has it.

import { StringDecoder } from "node:string_decoder"
import { after, type Cancel } from "../../contract/Timers.ts"
import { processLimits } from "./ProcessLimits.ts"
import type { OutputStream } from "./ProcessPort.ts"

type Tell = (stream: OutputStream, text: string) => void

export class Progress {
  private readonly tell: Tell
  private readonly decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") }
  private waiting: Array<{ readonly stream: OutputStream; text: string }> = []
  private waitingChars = 0
  private leftOut = 0
  private told = 0
  private cancelTimer: Cancel | undefined

  constructor(tell: Tell) {
    this.tell = tell
  }

  add(stream: OutputStream, bytes: Buffer): void {
    if (this.told >= processLimits.progressTotalCharsMax) return
    const room = processLimits.progressCharsMax - this.waitingChars
    // Decoding what nobody will see would be most of the work.
    const text = this.decoders[stream].write(bytes.length > 4 * room ? bytes.subarray(0, 4 * room) : bytes)
    const shown = text.slice(0, room)
    this.leftOut += Math.max(0, bytes.length - Buffer.byteLength(shown))
    this.waitingChars += shown.length
    const last = this.waiting.at(-1)
    if (last?.stream === stream) last.text += shown
    else if (shown !== "") this.waiting.push({ stream, text: shown })
    this.cancelTimer ??= after(processLimits.progressMs, () => this.flush())
  }

  /** Tells what waits. */
  flush(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const [pieces, leftOut] = [this.waiting, this.leftOut]
    this.waiting = []
    this.waitingChars = 0
    this.leftOut = 0
    for (const { stream, text } of pieces) {
      this.told += text.length
      this.tell(stream, text)
    }
    const isOver = this.told >= processLimits.progressTotalCharsMax
    if (leftOut > 0 || isOver)
      this.tell(
        "stdout",
        isOver ? "\n… from here on only the result shows output …\n" : `\n… ${leftOut} bytes not shown …\n`
      )
  }
}
