// Lines out of pieces of bytes, each with a limit. Memory holds one unfinished line at most.

export class Lines {
  private pieces: Array<Buffer> = []
  private bytes = 0
  private readonly bytesMax: number

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** The lines that are now complete; `too_long` when one is longer than it may be. */
  add(piece: Buffer): ReadonlyArray<string> | "too_long" {
    const lines: Array<string> = []
    let from = 0
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
      if (this.bytes + at - from > this.bytesMax) return "too_long"
      lines.push(this.finish(piece.subarray(from, at)))
      from = at + 1
    }
    const rest = piece.subarray(from)
    this.bytes += rest.length
    if (this.bytes > this.bytesMax) return "too_long"
    if (rest.length > 0) this.pieces.push(Buffer.from(rest))
    return lines
  }

  private finish(end: Buffer): string {
    const line = this.pieces.length === 0 ? end : Buffer.concat([...this.pieces, end])
    this.pieces = []
    this.bytes = 0
    return line.toString("utf8").trim()
  }
}
