// Subscribers in a process of their own, as cheap as they can be: raw sockets that count frames by their headers, and
// look into one frame of each chunk for the time at which it was sent. Tells its parent how far everybody is.
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

/** The longest header of a frame and the first letters of its payload. */
const FRONT_BYTES = 13

/** Counts the frames in the chunks of one connection, from their headers: payloads are jumped over. */
class Frames {
  private readonly number: number
  /** The beginning of a frame that the chunk before ended in. */
  private rest: Buffer | undefined
  /** Bytes that belong to a frame which was counted already. */
  private skip = 0

  constructor(number: number) {
    this.number = number
  }

  take(piece: Buffer): void {
    const chunk = this.rest === undefined ? piece : Buffer.concat([this.rest, piece])
    this.rest = undefined
    let at = this.skip
    let found = 0
    let lastStart = 0
    let lastEnd = 0
    while (at + FRONT_BYTES <= chunk.length) {
      const short = chunk[at + 1]! & 0x7f
      const header = short < 126 ? 2 : short === 126 ? 4 : 10
      const length =
        short < 126 ? short : short === 126 ? (chunk[at + 2]! << 8) | chunk[at + 3]! : chunk.readUInt32BE(at + 6)
      const start = at + header
      at = start + length
      // Runes begin with `{"sub"` and are long; answers begin with `{"id"`, and other pushed frames are short.
      if (chunk[start + 2] !== LETTER_S || length <= SHORT_FRAME) continue
      found += 1
      lastStart = start
      lastEnd = at
    }
    this.skip = Math.max(at - chunk.length, 0)
    // The chunk lies in memory that the next one overwrites.
    if (at < chunk.length) this.rest = Buffer.from(chunk.subarray(at))
    if (found > 0) this.note(chunk, found, lastStart, lastEnd)
  }

  private note(chunk: Buffer, found: number, lastStart: number, lastEnd: number): void {
    counts[this.number] = counts[this.number]! + found
    total += found
    if (lastEnd <= chunk.length) noteTime(chunk, lastStart, lastEnd)
  }
}

const upgradeOf = (port: number): string =>
  [
    "GET /ws HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Authorization: Bearer ${plan.token}`,
    "\r\n"
  ].join("\r\n")

/** All connections are read into the same memory, one after the other. */
const memory = Buffer.alloc(256 * 1024)

const open = (number: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const frames = new Frames(number)
    let isUpgraded = false
    const take = (piece: Buffer): void => {
      if (isUpgraded) {
        frames.take(piece)
        return
      }
      const head = piece.toString("latin1")
      const end = head.indexOf("\r\n\r\n")
      isUpgraded = head.startsWith("HTTP/1.1 101") && end > 0
      if (!isUpgraded) {
        reject(new Error(head))
        return
      }
      for (const frame of plan.frames) socket.write(masked(frame.replaceAll("{n}", String(number))))
      resolve()
      if (end + 4 < piece.length) frames.take(piece.subarray(end + 4))
    }
    const callback = (bytes: number): boolean => {
      take(memory.subarray(0, bytes))
      return true
    }
    const socket = connect({ host: "127.0.0.1", port: plan.port, onread: { buffer: memory, callback } })
    socket.write(upgradeOf(plan.port))
    socket.on("close", () => process.exit(0))
    socket.on("error", reject)
    opened.push(socket)
  })

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
