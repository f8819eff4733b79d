// Who publishes to subscribers: the server as it is, durable; a bare loop that sends the same string to every client and
// keeps nothing; and that loop with one sync per message. All are driven alike: so many messages ahead of the slowest
// subscriber, or so many a second.
import { once } from "node:events"
import { fdatasyncSync, fsyncSync, openSync, writeFileSync, writeSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { type WebSocket, WebSocketServer } from "ws"
import { openDoor, token } from "./openDoor.ts"
import { Sink } from "./Sink.ts"

export interface Publisher {
  /** Sends one message to everybody; resolves when the publisher may forget it. */
  readonly publish: () => Promise<void> | void
  /** Resolves when nothing of what was published is still being worked on. */
  readonly settle: () => Promise<void>
  readonly close: () => Promise<void>
  readonly sink: Sink
}

export const conversationId = "conv_fanout00"
const padding = "a word or two of what a model says, ".repeat(3)

/** About 300 bytes, with the time in it. */
export const makeRune = (eventId: number, id: string = conversationId) => ({
  event_id: eventId,
  rune_id: `run_${eventId.toString(16).padStart(16, "0")}`,
  conversation_id: id,
  agent_id: "agt_0000",
  turn_id: "turn_1",
  kind: "turn.assistant_delta",
  visibility: "public",
  ts_ms: Date.now(),
  schema_version: 1,
  payload: { content: `@t=${String(process.hrtime.bigint()).padStart(16, "0").slice(-16)} ${padding}` }
})

const follow = [
  JSON.stringify({ id: "0", op: "hello", protocol: 1 }),
  JSON.stringify({ id: "1", op: "subscribe", conversation_id: conversationId })
]

/** The server as it is; runes go into its log as its own conversations put them there. */
export const openOurs = async (directory: string, connections: number): Promise<Publisher> => {
  const door = await openDoor(directory)
  let eventId = 0
  const publish = (): Promise<void> => {
    eventId += 1
    return door.store.runes.appendNow(conversationId, [makeRune(eventId) as never])
  }
  await publish()
  const { port } = door.server
  const sink = await Sink.open({ port, token, connections, frames: follow })
  await sink.until(() => sink.least >= 1)
  const close = async (): Promise<void> => {
    await sink.close()
    await door.close()
  }
  return { publish, settle: () => door.store.runelog.checkpoint(), close, sink }
}

const JOURNAL_BYTES = 64 * 1024 * 1024

/** Has every message on the disk before it is sent, in a file that was filled beforehand, as quick as this can be. */
const synced = (path: string): ((text: string) => void) => {
  writeFileSync(path, Buffer.alloc(JOURNAL_BYTES))
  const file = openSync(path, "r+")
  fsyncSync(file)
  let at = 0
  return (text) => {
    at = at + 2 * text.length > JOURNAL_BYTES ? 0 : at
    at += writeSync(file, text, at)
    fdatasyncSync(file)
  }
}

/** A loop over the clients with one string, as one would write it first; with a path, one that keeps what it sends. */
export const openBare = async (connections: number, path?: string): Promise<Publisher> => {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  const clients = new Set<WebSocket>()
  const keep = path === undefined ? () => undefined : synced(path)
  sockets.on("connection", (socket) => {
    clients.add(socket)
    socket.on("close", () => clients.delete(socket))
  })
  await once(http.listen(0, "127.0.0.1"), "listening")
  const { port } = http.address() as AddressInfo
  const sink = await Sink.open({ port, token: "none", connections, frames: [] })
  while (clients.size < connections) await sleep(5)
  let eventId = 0
  const publish = (): void => {
    eventId += 1
    const text = JSON.stringify({ sub: "s1", rune: makeRune(eventId) })
    keep(text)
    for (const client of clients) client.send(text)
  }
  const close = async (): Promise<void> => {
    await sink.close()
    for (const client of clients) client.terminate()
    http.closeAllConnections()
    http.close()
  }
  return { publish, settle: async () => undefined, close, sink }
}

/** Deliveries that may be ahead of the slowest subscriber, and messages at most. */
const DELIVERIES_AHEAD = 64_000
const MESSAGES_AHEAD = 512

/** Deliveries a second with as much under way as there may be. */
export const underLoad = async ({ publish, sink }: Publisher, seconds: number): Promise<number> => {
  let sent = 0
  const ahead = Math.min(MESSAGES_AHEAD, DELIVERIES_AHEAD / sink.connections)
  const base = sink.least
  const startTotal = sink.total
  const startedMs = performance.now()
  const untilMs = startedMs + seconds * 1000
  while (performance.now() < untilMs) {
    // Subscribers that keep up must not keep this going for ever.
    while (sent - (sink.least - base) < ahead && performance.now() < untilMs) {
      sent += 1
      void publish()
      if (sent % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await sink.news()
  }
  const delivered = sink.total - startTotal
  const tookSeconds = (performance.now() - startedMs) / 1000
  await sink.until(() => sink.least - base >= sent)
  return delivered / tookSeconds
}

/** Latency from publishing to receipt at so many messages a second. */
export const paced = async ({ publish, sink }: Publisher, perSecond: number, seconds: number) => {
  await sink.latencies()
  const startedMs = performance.now()
  for (let sent = 0; sent < perSecond * seconds; sent++) {
    const dueMs = startedMs + (sent * 1000) / perSecond
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    void publish()
  }
  await sleep(200)
  return sink.latencies()
}
