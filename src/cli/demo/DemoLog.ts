// What the demo needs of a log, and the entries it writes. An entry follows from its log and its number alone, so the
// process that checks can tell a wrong byte without having seen what the killed one wrote.
import { createHash } from "node:crypto"

export interface DemoLog {
  /** Resolves when the entries are on stable storage. */
  readonly append: (log: string, firstEventId: number, entries: ReadonlyArray<Uint8Array>) => Promise<void>
  /** The event id of the newest entry, 0 when there is none. */
  readonly head: (log: string) => Promise<number>
  /** All entries of a log, in order. */
  readonly read: (log: string) => AsyncIterable<Uint8Array>
  readonly close: () => Promise<void>
}

export type OpenDemoLog = (directory: string) => Promise<DemoLog>

export const demoLogs: ReadonlyArray<string> = ["conv_ada", "conv_bea", "conv_cleo", "conv_dora"]

export const demoEntry = (log: string, eventId: number): Uint8Array => {
  const digest = createHash("sha256").update(`${log} ${eventId}`).digest()
  const words = digest.toString("hex").repeat(1 + (digest[0] ?? 0) / 16)
  return Buffer.from(JSON.stringify({ event_id: eventId, conversation_id: log, words }))
}

/** How a writer tells its parent that everything up to this event id is durable. */
export const showReceipt = (log: string, eventId: number): string => `durable ${log} ${eventId}\n`

export const parseReceipt = (line: string): { readonly log: string; readonly eventId: number } | undefined => {
  const [, log, eventId] = /^durable (\S+) (\d+)$/.exec(line) ?? []
  return log === undefined || eventId === undefined ? undefined : { log, eventId: Number(eventId) }
}
