// A way to and from one MCP server. It ends once and says why; it is never used again after that.
import type { McpError } from "./McpErrors.ts"
import type { Json, Message, MessageId } from "./Message.ts"

export interface TransportListener {
  readonly onMessage: (message: Message) => void
  /** A request was handed over, and its answer will not come. */
  readonly onUnanswered: (id: MessageId, error: McpError) => void
  /** It is over, for this reason. Nothing comes after it. */
  readonly onClosed: (reason: string) => void
}

export interface Transport {
  /** Resolves when the message is handed over; rejects with McpError when it cannot be. */
  readonly send: (message: Json) => Promise<void>
  /** The protocol version that was agreed on. */
  readonly agreed: (version: string) => void
  readonly close: () => Promise<void>
}

export type OpenTransport = (listener: TransportListener) => Promise<Transport>
