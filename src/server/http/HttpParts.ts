// What the handlers of endpoints may use of the server.
import type { Duplex } from "node:stream"
import * as Context from "effect/Context"
import type { OutsideAgents } from "../../contract/OutsideAgents.ts"
import type { Log } from "../../contract/ServerLog.ts"
import type { Auth } from "../Auth.ts"
import type { AttachmentPort, ConversationStore } from "../operations/Context.ts"
import type { Operator } from "../operations/Operate.ts"
import type { Gauge, Metrics } from "../telemetry/Metrics.ts"
import type { BlobReader } from "./BlobDownload.ts"
import type { PageFiles } from "./Page.ts"

/** `ok` is the one status with which everything can be asked for. */
export interface Health {
  readonly status: "ok" | "closing" | "read_only"
  readonly version: string
  readonly reason?: string
}

export interface HttpOptions {
  readonly auth: Auth
  readonly operator: Operator
  readonly metrics: Metrics
  /** Figures as they are now. */
  readonly gauges: () => ReadonlyArray<Gauge>
  readonly conversationStore: ConversationStore
  readonly attachments?: AttachmentPort
  /** Bytes that runes name; absent where there are none. */
  readonly blobs?: BlobReader
  /** The files of the page; absent where there is none. */
  readonly page?: PageFiles
  /** Programs of outside agents report here, each with a token of its own. */
  readonly outsideAgents?: OutsideAgents
  readonly log: Log
  readonly stalledMs: number
  readonly health: () => Health
  /** The socket belongs to somebody who is known. */
  readonly onKnown: (socket: Duplex) => void
}

export class HttpParts extends Context.Service<HttpParts, HttpOptions>()("echs/http/HttpParts") {}
