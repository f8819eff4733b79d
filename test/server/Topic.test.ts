// Goal: every reader of a topic gets every rune after its cursor once, in order, or a gap; a reader that takes nothing
// gets nothing more and is sent away. Method: a log in memory whose pages and sockets the test opens and closes at random.
import { describe, expect, it } from "vitest"
import type { Frame, Page } from "#src/conversation/Reading.ts"
import { acceptsFrame, acceptsKind, kindOf } from "#src/server/Filter.ts"
import type { Outlet } from "#src/server/Outlet.ts"
import { Topic } from "#src/server/Topic.ts"
import { frameAll, textFrame } from "#src/server/WebSocketFrame.ts"
import { limits } from "#src/wire/Limits.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const frameOf = (eventId: number): Frame => ({
  kind: eventId % 17 === 0 ? "thinned" : "entry",
  eventId,
  lastEventId: eventId,
  visibility: 0,
  family: 0,
  stream: 0,
  body: Buffer.from(JSON.stringify({ event_id: eventId, kind: "turn.started", payload: "x".repeat(eventId % 300) }))
})

/** The payloads of the frames in some bytes, by RFC 6455. */
const payloads = (bytes: Buffer): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== 0x81) throw new Error(`no text frame at ${at}`)
    const short = bytes[at + 1]!
    const header = short < 126 ? 2 : short === 126 ? 4 : 10
    const length =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    found.push(bytes.toString("utf8", at + header, at + header + length))
    at += header + length
  }
  return found
}

class FakeOutlet implements Outlet {
  readonly seen: Array<number> = []
  readonly gaps: Array<number> = []
  pending = 0
  closed = false
  private waiters: Array<() => void> = []

  write(bytes: Buffer): void {
    this.pending += bytes.length
    for (const text of payloads(bytes)) {
      const { gap, rune } = JSON.parse(text) as { rune?: { event_id: number }; gap?: { from: number } }
      if (rune !== undefined) this.seen.push(rune.event_id)
      if (gap !== undefined) this.gaps.push(gap.from)
    }
  }

  pendingBytes(): number {
    return this.pending
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  drain(): void {
    this.pending = 0
    for (const wake of this.waiters.splice(0)) wake()
  }

  isOpen(): boolean {
    return !this.closed
  }

  closeStalled(): void {
    this.closed = true
    this.drain()
  }

  stalledMs(): number {
    return 60_000
  }
}

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

class FakeLog {
  head = 1
  private readonly random: () => number

  constructor(random: () => number) {
    this.random = random
  }

  async read(after: number): Promise<Page> {
    for (let turns = Math.floor(this.random() * 3); turns > 0; turns--) await turnOfLoop()
    const next = Math.min(this.head, after + 1 + Math.floor(this.random() * 20))
    const frames = Array.from({ length: next - after }, (_, index) => frameOf(after + 1 + index))
    return { frames, next, head: this.head }
  }
}

const upTo = (after: number, head: number) => Array.from({ length: head - after }, (_, index) => after + 1 + index)

describe("a topic", () => {
  it("gives every reader everything after its cursor, once and in order, however slow", async () => {
    const rounds = count("random topics", { fast: 200, soak: 20_000 })
    const random = randomFrom(seedFor("random topics"))
    for (let round = 0; round < rounds; round++) {
      const log = new FakeLog(random)
      const failures: Array<unknown> = []
      const topic = new Topic(
        {
          name: "s1",
          read: (after) => log.read(after),
          accepts: () => true,
          onFailure: (error) => failures.push(error)
        },
        0
      )
      const readers: Array<{ readonly outlet: FakeOutlet; readonly after: number }> = []
      for (let step = 0; step < 60; step++) {
        log.head += Math.floor(random() * 12)
        topic.wake()
        if (random() < 0.15) {
          const outlet = new FakeOutlet()
          const after = Math.floor(random() * (log.head + 1))
          topic.join(outlet, after, () => undefined)
          readers.push({ outlet, after })
        }
        for (const { outlet } of readers) if (random() < 0.1) outlet.pending += limits.socketBytesMax + 1
        for (const { outlet } of readers) if (random() < 0.5) outlet.drain()
        if (random() < 0.7) await turnOfLoop()
      }
      const isDone = () =>
        readers.every(({ after, outlet }) => outlet.seen.length + outlet.gaps.length >= log.head - after)
      while (!isDone()) {
        for (const { outlet } of readers) outlet.drain()
        await turnOfLoop()
      }
      expect(failures).toEqual([])
      for (const { after, outlet } of readers) {
        const expected = upTo(after, log.head)
        expect(outlet.seen).toEqual(expected.filter((id) => id % 17 !== 0))
        expect(outlet.gaps).toEqual(expected.filter((id) => id % 17 === 0))
      }
    }
    reportCount("random topics whose readers got exactly the log", rounds)
  })

  it("sends away a reader that takes nothing, and tells readers when the log cannot be read", async () => {
    const log = new FakeLog(() => 0.99)
    log.head = 10
    const told: Array<unknown> = []
    const topic = new Topic(
      {
        name: "s1",
        read: (after) => (after >= 10 && log.head > 10 ? Promise.reject(new Error("gone")) : log.read(after)),
        accepts: () => true,
        onFailure: (error, readers) => told.push([error, readers.length])
      },
      0
    )
    const stalled = new FakeOutlet()
    stalled.pending = limits.socketBytesMax + 1
    stalled.stalledMs = () => 1
    topic.join(stalled, 0, () => undefined)
    const reader = new FakeOutlet()
    topic.join(reader, 0, () => undefined)
    while (!stalled.closed || reader.seen.length < 10) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(stalled.seen).toEqual([])
    expect(topic.readers).toBe(1)
    log.head = 11
    topic.wake()
    while (told.length === 0) await turnOfLoop()
    expect(told).toEqual([[expect.any(Error), 1]])
    expect(topic.readers).toBe(0)
  })
})

describe("frames", () => {
  it.each([0, 1, 125, 126, 127, 65_535, 65_536, 200_000])("of %i bytes are framed by the standard", (length) => {
    const text = "y".repeat(length)
    expect(payloads(textFrame(text))).toEqual([text])
    const all = frameAll(Buffer.from("<"), [Buffer.from(text), Buffer.from("z")], Buffer.from(">"))
    expect(payloads(all)).toEqual([`<${text}>`, "<z>"])
  })
})

describe("filters", () => {
  it("know a kind by its bytes, and families", () => {
    expect(kindOf(frameOf(1).body)).toBe("turn.started")
    expect(kindOf(Buffer.from("{}"))).toBe("")
    const accepts = acceptsKind(["tool.call", "turn.*"])
    expect(["turn.started", "tool.call", "tool.result", "turnx.y"].map(accepts)).toEqual([true, true, false, false])
    expect(acceptsFrame({ visibility: "public", kinds: undefined })(frameOf(1))).toBe(true)
    expect(acceptsFrame({ visibility: "public", kinds: ["tool.*"] })(frameOf(1))).toBe(false)
  })
})
