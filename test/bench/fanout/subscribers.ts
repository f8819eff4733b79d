// Subscribers in a process of their own, as cheap as they can be: raw sockets that count frames by their headers, and
// look into one frame of each chunk for the time at which it was sent. Tells its parent how far everybody is.
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { Latency } from "../runelog/latency.ts"

export interface SinkPlan {
  readonly port: number
  readonly connections: number
  /** Frames that each connection sends after the upgrade, as JSON; `{n}` is the number of the connection. */
  readonly frames: ReadonlyArray<string>
  readonly token: string
}

export type SinkReport =
  | { readonly type: "ready" }
  | { readonly type: "progress"; readonly least: number; readonly total: number }
  | { readonly type: "latency"; readonly p50Ms: number; readonly p99Ms: number; readonly count: number }

const plan = JSON.parse(process.argv[2]!) as SinkPlan
const counts = new Float64Array(plan.connections)
const LETTER_S = 0x73
const SHORT_FRAME = 120
const timeMark = Buffer.from("@t=")
const opened: Array<Socket> = []
let latency = new Latency()
let total = 0
let reported = -1

const tell = (report: SinkReport): void => void process.send!(report)

const masked = (text: string): Buffer => {
  const body = Buffer.from(text)
  const head = body.length < 126 ? [0x81, 0x80 | body.length] : [0x81, 0xfe, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), body])
}

const noteTime = (chunk: Buffer, start: number, end: number): void => {
  const at = chunk.subarray(start, end).lastIndexOf(timeMark)
  if (at < 0) return
  const sentNs = Number(chunk.toString("latin1", start + at + timeMark.length, start + at + timeMark.length + 16))
  latency.record((Number(process.hrtime.bigint()) - sentNs) / 1e6)
}

/** Counts the frames in the chunks of one connection. */
class Frames {
  private readonly number: number
  private rest: Buffer = Buffer.alloc(0)

  constructor(number: number) {
    this.number = number
  }

  take(piece: Buffer): void {
    const chunk = this.rest.length === 0 ? piece : Buffer.concat([this.rest, piece])
    let at = 0
    let found = 0
    let lastStart = 0
    let lastEnd = 0
    while (at + 2 <= chunk.length) {
      const short = chunk[at + 1]! & 0x7f
      const header = short < 126 ? 2 : short === 126 ? 4 : 10
      if (at + header > chunk.length) break
      const length = short < 126 ? short : short === 126 ? chunk.readUInt16BE(at + 2) : chunk.readUInt32BE(at + 6)
      const end = at + header + length
      if (end > chunk.length) break
      // Runes begin with `{"sub"` and are long; answers begin with `{"id"`, and other pushed frames are short.
      if (chunk[at + header + 2] === LETTER_S && length > SHORT_FRAME) {
        found += 1
        lastStart = at + header
        lastEnd = end
      }
      at = end
    }
    this.rest = chunk.subarray(at)
    if (found === 0) return
    counts[this.number] = counts[this.number]! + found
    total += found
    noteTime(chunk, lastStart, lastEnd)
  }
}

const open = async (number: number): Promise<Socket> => {
  const socket = connect({ host: "127.0.0.1", port: plan.port })
  const lines = [
    "GET /ws HTTP/1.1",
    `Host: 127.0.0.1:${plan.port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Authorization: Bearer ${plan.token}`
  ]
  socket.write(`${lines.join("\r\n")}\r\n\r\n`)
  const [head] = (await once(socket, "data")) as [Buffer]
  if (!head.toString("latin1").startsWith("HTTP/1.1 101")) throw new Error(head.toString("latin1"))
  for (const frame of plan.frames) socket.write(masked(frame.replaceAll("{n}", String(number))))
  const frames = new Frames(number)
  socket.on("data", (piece: Buffer) => frames.take(piece))
  socket.on("close", () => process.exit(0))
  opened.push(socket)
  return socket
}

const report = (): void => {
  if (total === reported) return
  reported = total
  let least = Number.POSITIVE_INFINITY
  for (const count of counts) least = Math.min(least, count)
  tell({ type: "progress", least, total })
}

process.on("message", (command: string) => {
  if (command.startsWith("{")) for (const socket of opened) socket.write(masked(command))
  if (command === "latency") {
    tell({ type: "latency", p50Ms: latency.percentileMs(0.5), p99Ms: latency.percentileMs(0.99), count: latency.count })
    latency = new Latency()
  }
})
process.on("disconnect", () => process.exit(0))

for (let at = 0; at < plan.connections; at += 100) {
  const size = Math.min(100, plan.connections - at)
  await Promise.all(Array.from({ length: size }, (_, index) => open(at + index)))
}
setInterval(report, 1)
tell({ type: "ready" })
