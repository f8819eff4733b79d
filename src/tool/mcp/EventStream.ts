// Server-sent events out of a body of bytes, with a limit on each. Reads no faster than it is allowed to.

import { Lines } from "./Lines.ts"
import { McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import type { Rate } from "./Rate.ts"
import { sleep } from "./Sleep.ts"

export interface ServerEvent {
  readonly id: string | undefined
  readonly data: string
  /** How long the server wants us to wait before we come back. */
  readonly retryMs: number | undefined
}

const fieldOf = (line: string): readonly [string, string] => {
  const colon = line.indexOf(":")
  return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /u, "")]
}

/** Puts lines together to events. */
class Assembly {
  private data: Array<string> = []
  private chars = 0
  private id: string | undefined
  private retryMs: number | undefined

  add(line: string): ServerEvent | undefined {
    if (line === "") return this.finish()
    const [field, value] = fieldOf(line)
    if (field === "data") {
      this.chars += value.length
      if (this.chars > mcpLimits.messageBytesMax) throw new McpError("mcp_protocol_error", "an event is too long")
      this.data.push(value)
    } else if (field === "id" && !value.includes("\0")) this.id = value
    else if (field === "retry" && /^\d{1,9}$/u.test(value)) this.retryMs = Number(value)
    return undefined
  }

  private finish(): ServerEvent | undefined {
    const { data, id, retryMs } = this
    this.data = []
    this.chars = 0
    this.retryMs = undefined
    return data.length === 0 && id === undefined && retryMs === undefined
      ? undefined
      : { id, data: data.join("\n"), retryMs }
  }
}

export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  rate: Rate,
  signal: AbortSignal
): AsyncGenerator<ServerEvent, void, void> {
  const lines = new Lines(mcpLimits.messageBytesMax)
  const assembly = new Assembly()
  for await (const piece of body) {
    const found = lines.add(Buffer.from(piece))
    if (found === "too_long") throw new McpError("mcp_protocol_error", "a line of an event is too long")
    const waitMs = rate.take(piece.length)
    if (waitMs > 0) await sleep(waitMs, signal)
    for (const line of found) {
      const event = assembly.add(line)
      if (event !== undefined) yield event
    }
  }
}

/** The whole of a body that is one message. */
export const bodyText = async (body: ReadableStream<Uint8Array>): Promise<string> => {
  const pieces: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > mcpLimits.messageBytesMax) throw new McpError("mcp_protocol_error", "an answer is too long")
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString("utf8")
}
