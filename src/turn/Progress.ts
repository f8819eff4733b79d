// Output of a running tool on its way to the log, gathered per stream. A tool cannot be held back, so a call that
// talks without end, or faster than the disk, stops making progress runes; the result still has its output.
import { tryCommand } from "../contract/TryCommand.ts"
import type { CallId } from "../rune/Ids.ts"
import type { ProgressStream } from "../rune/kinds/tool.ts"
import { Coalescer } from "./Coalescer.ts"
import type { Commands } from "./Commands.ts"
import { limits } from "./TurnLimits.ts"

export class Progress {
  private readonly commands: Commands
  private readonly callId: CallId
  private readonly streams = new Map<ProgressStream, Coalescer>()
  private room = limits.progressRunesMax * limits.deltaCharsMax
  private runes = 0
  private isOver = false

  constructor(commands: Commands, callId: CallId) {
    this.commands = commands
    this.callId = callId
  }

  readonly add = (stream: ProgressStream, chunk: string): void => {
    if (this.isOver || typeof chunk !== "string" || chunk === "" || this.runes >= limits.progressRunesMax) return
    const coalescer = this.coalescerOf(stream)
    if (coalescer.isFull || this.room <= 0) return
    const taken = chunk.slice(0, this.room).toWellFormed()
    this.room -= taken.length
    try {
      void coalescer.add(taken)
    } catch {
      // The log takes no more. The call ends by that, and not here inside the tool.
      this.isOver = true
    }
  }

  private coalescerOf(stream: ProgressStream): Coalescer {
    let coalescer = this.streams.get(stream)
    if (coalescer === undefined) {
      coalescer = new Coalescer({
        send: async (chunk) => {
          this.runes += 1
          await tryCommand(this.commands, { _tag: "AppendProgress", call_id: this.callId, stream, chunk })
        }
      })
      this.streams.set(stream, coalescer)
    }
    return coalescer
  }

  flush(): void {
    for (const coalescer of this.streams.values()) coalescer.flush()
  }

  /** Waits until what was gathered is durable; later output is ignored. */
  async finish(): Promise<void> {
    this.isOver = true
    for (const coalescer of this.streams.values()) await coalescer.finish()
  }

  discard(): void {
    this.isOver = true
    for (const coalescer of this.streams.values()) coalescer.discard()
  }
}
