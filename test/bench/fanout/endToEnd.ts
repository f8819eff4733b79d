// From a stream of a model to a subscriber: scripted streams in many conversations at once, every piece decided, durable
// and delivered, beside servers that only store and send.
import { once } from "node:events"
import { appendFileSync, mkdirSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as sleep } from "node:timers/promises"
import { type WebSocket, WebSocketServer } from "ws"
import { openDoor, token } from "./openDoor.ts"
import { Sink } from "./Sink.ts"
import { makeRune } from "./subjects.ts"

const idOf = (number: number): string => `conv_end2end${number}`
const LANES = 64

const inLanes = async (count: number, body: (number: number) => Promise<unknown>): Promise<void> => {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await body(next++)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** Runes a second, from the model to the subscriber of each conversation. */
export const measureOurs = async (directory: string, conversations: number): Promise<number> => {
  const door = await openDoor(directory)
  await inLanes(conversations, (number) =>
    door.conversations.create({
      _tag: "CreateConversation",
      conversation_id: idOf(number) as never,
      config: { model: "scripted/stream" },
      root: { agent_id: `agt_end2end${number}` as never, role: "root", model: "scripted/stream" }
    })
  )
  const frames = [
    JSON.stringify({ id: "0", op: "hello", protocol: 1 }),
    JSON.stringify({ id: "1", op: "subscribe", conversation_id: idOf(0).replace(/0$/, "{n}"), after: "tail" })
  ]
  const sink = await Sink.open({ port: door.server.port, token, connections: conversations, frames })
  await sleep(1_000)
  const perSecond: Array<number> = []
  for (let round = 0; round < 2; round++) {
    const before = sink.total
    const startedMs = performance.now()
    const post = { _tag: "PostMessage", content: "go", mode: "queue" } as const
    await inLanes(conversations, (number) => door.conversations.submit(idOf(number), post))
    const isBusy = (): boolean => door.conversations.residentStates().some(({ agents }) => agents[0]?.turn != null)
    while (isBusy()) await sink.news()
    let still = -1
    while (still !== sink.total) {
      still = sink.total
      await sleep(20)
      await sink.news()
    }
    perSecond.push((sink.total - before) / ((performance.now() - startedMs - 70) / 1000))
  }
  await sink.close()
  await door.close()
  return Math.max(...perSecond)
}

type Keep = (number: number, text: string) => void

const jsonLines = (directory: string): Keep => {
  mkdirSync(directory, { recursive: true })
  return (number, text) => appendFileSync(join(directory, `${idOf(number)}.jsonl`), `${text}\n`)
}

const sqlite = (directory: string): Keep => {
  mkdirSync(directory, { recursive: true })
  const database = new DatabaseSync(join(directory, "runes.sqlite"))
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
  database.exec("CREATE TABLE runes (conversation INTEGER, body TEXT)")
  const insert = database.prepare("INSERT INTO runes VALUES (?, ?)")
  return (number, text) => void insert.run(number, text)
}

/** A server that makes a message, stores it in the given way and sends it to its one subscriber. */
const measureBare = async (conversations: number, seconds: number, keep: Keep): Promise<number> => {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  const clients: Array<WebSocket> = []
  sockets.on("connection", (socket) => clients.push(socket))
  await once(http.listen(0, "127.0.0.1"), "listening")
  const { port } = http.address() as AddressInfo
  const sink = await Sink.open({ port, token: "none", connections: conversations, frames: [] })
  while (clients.length < conversations) await sleep(5)
  const startedMs = performance.now()
  let sent = 0
  while (performance.now() < startedMs + seconds * 1000) {
    for (let at = 0; at < 64; at++) {
      const number = sent % conversations
      const text = JSON.stringify(makeRune(1 + Math.floor(sent / conversations), idOf(number)))
      keep(number, text)
      clients[number]!.send(`{"sub":"s1","rune":${text}}`)
      sent += 1
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  await sink.until(() => sink.total >= sent)
  const perSecond = sent / ((performance.now() - startedMs) / 1000)
  await sink.close()
  for (const client of clients) client.terminate()
  http.closeAllConnections()
  http.close()
  return perSecond
}

export const measureJsonLines = (directory: string, conversations: number, seconds: number): Promise<number> =>
  measureBare(conversations, seconds, jsonLines(directory))

export const measureSqlite = (directory: string, conversations: number, seconds: number): Promise<number> =>
  measureBare(conversations, seconds, sqlite(directory))
