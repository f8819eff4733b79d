// What outside agents need of the server: the conversations that they are recorded in, and the mask of what is secret.
import type { ConversationPort } from "../contract/ConversationAccess.ts"
import type { Log } from "../contract/ServerLog.ts"

export interface HarnessHost extends ConversationPort {
  readonly dataDirectory: string
  /** Where programs report to. */
  readonly serverUrl: () => string
  /** Replaces secrets that the server knows. */
  readonly mask: (text: string) => string
  readonly nowMs: () => number
  readonly log: Pick<Log, "write">
}
