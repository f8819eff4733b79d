// Goal: every reader of a topic gets every rune after its cursor once, in order, or a gap; a reader that takes nothing
// gets nothing more and is sent away. Method: a log in memory whose pages and sockets the test opens and closes at random.
import { describe, expect, it } from "vitest"
import { bytesOf, sealFrame, sealThinned } from "#runelog/Frame.ts"
import type { Frame, Page, RawPage } from "#src/conversation/Reading.ts"
import { ConversationFeed } from "#src/server/feed/ConversationFeed.ts"
import { acceptsFrame, acceptsKind, kindOf } from "#src/server/feed/Filter.ts"
import { PageBuffers } from "#src/server/feed/PageBuffers.ts"
import { makeWrapInPlace } from "#src/server/feed/WirePage.ts"
import { frameAll, textFrame } from "#src/server/socket/WebSocketFrame.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { count, reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { FakeSink, payloads, turnOfLoop } from "../../support/server/FakeSink.ts"

const frameOf = (eventId: number): Frame => ({
  kind: eventId % 17 === 0 ? "thinned" : "entry",
  eventId,
  lastEventId: eventId,
  visibility: 0,
  family: 0,
  stream: 0,
  body: Buffer.from(JSON.stringify({ event_id: eventId, kind: "turn.started", payload: "x".repeat(eventId % 300) }))
})

const HEADER_BYTES = 32
const chain = { stream: 0, previousCrc: 0, family: 0 }

/** Puts a frame where it would lie in a segment; returns where it ends. */
const lay = (buffer: Buffer, start: number, { body, eventId, kind, lastEventId, visibility }: Frame): number => {
  const bytes = bytesOf(buffer)
  if (kind === "thinned") {
    sealThinned(bytes, start, { from: eventId, to: lastEventId, previousCrc: 0, flags: 0 })
    return start + HEADER_BYTES + 8
  }
  body.copy(buffer, start + HEADER_BYTES)
  sealFrame(bytes, start, body.length, { ...chain, flags: visibility, kind: 0, eventId })
  return start + HEADER_BYTES + body.length
}

/** What is given back is nobody's any more: whoever still sends it sends rubbish. */
class SpoilingBuffers extends PageBuffers {
  override giveBack(buffer: Buffer): void {
    super.giveBack(buffer.fill(0x2a))
  }
}

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

  /** The newest runes are in no segment yet. */
  async readRaw(after: number, into: Buffer): Promise<RawPage | undefined> {
    for (let turns = Math.floor(this.random() * 3); turns > 0; turns--) await turnOfLoop()
    const last = Math.min(this.head - 5, after + 1 + Math.floor(this.random() * 20))
    if (after >= last) return undefined
    const start = Math.floor(this.random() * 100)
    let end = start
    let next = after
    for (; next < last && end + 500 < into.length; next++) end = lay(into, end, frameOf(next + 1))
    return { ...bytesOf(into), start, end, wanted: after + 1, next, head: this.head }
  }
}

const upTo = (after: number, head: number) => Array.from({ length: head - after }, (_, index) => after + 1 + index)

const without17 = (ids: ReadonlyArray<number>) => ids.filter((id) => id % 17 !== 0)

const topicOf = (
  log: { readonly read: (after: number) => Promise<Page> },
  onFailure: (error: unknown) => void = () => undefined
): ConversationFeed =>
  new ConversationFeed({
    name: "s1",
    read: (after) => log.read(after),
    visibilityMax: 1,
    buffers: new PageBuffers(),
    monotonicMs: () => performance.now(),
    accepts: () => true,
    onFailure
  })

/** Everybody who drains has everything; one may stay behind. */
const settledIn = async (
  topic: ConversationFeed,
  sinks: ReadonlyArray<FakeSink>,
  { isOneBehind = false }: { readonly isOneBehind?: boolean } = {}
): Promise<void> => {
  for (let quietTurns = 0; quietTurns < 5; ) {
    for (const sink of sinks) sink.drain()
    await turnOfLoop()
    quietTurns = isOneBehind || topic.isQuiet ? quietTurns + 1 : 0
  }
}

describe("a topic", () => {
  it("gives every reader everything after its cursor, once and in order, however slow", async () => {
    const rounds = count("random topics", { fast: 200, soak: 20_000 })
    const random = randomFrom(seedFor("random topics"))
    for (let round = 0; round < rounds; round++) {
      const log = new FakeLog(random)
      const failures: Array<unknown> = []
      const buffers = new SpoilingBuffers({ buffersMax: 3, idleMax: 2, bytes: 4096 })
      const topic = new ConversationFeed({
        name: "s1",
        read: (after) => log.read(after),
        ...(random() < 0.8 ? { readRaw: (after: number, into: Buffer) => log.readRaw(after, into) } : {}),
        visibilityMax: 1,
        buffers,
        monotonicMs: () => random() * 10,
        accepts: () => true,
        onFailure: (error) => failures.push(error)
      })
      const readers: Array<{ readonly sink: FakeSink; readonly after: number }> = []
      for (let step = 0; step < 60; step++) {
        log.head += Math.floor(random() * 12)
        topic.wake()
        if (random() < 0.15) {
          const sink = new FakeSink()
          const after = Math.floor(random() * (log.head + 1))
          topic.join(sink, after, () => undefined)
          readers.push({ sink, after })
        }
        for (const { sink } of readers) if (random() < 0.1) sink.pending += limits.socketBytesMax + 1
        for (const { sink } of readers) if (random() < 0.5) sink.drain()
        if (random() < 0.7) await turnOfLoop()
      }
      const isDone = () => readers.every(({ after, sink }) => sink.seen.length + sink.gaps.length >= log.head - after)
      while (!isDone()) {
        for (const { sink } of readers) sink.drain()
        await turnOfLoop()
      }
      expect(failures).toEqual([])
      expect(buffers.inUse).toBe(0)
      for (const { after, sink } of readers) {
        const expected = upTo(after, log.head)
        expect(sink.seen).toEqual(expected.filter((id) => id % 17 !== 0))
        expect(sink.gaps).toEqual(expected.filter((id) => id % 17 === 0))
      }
    }
    reportCount("random topics whose readers got exactly the log", rounds)
  })

  it("sends away a reader that takes nothing, and tells readers when the log cannot be read", async () => {
    const log = new FakeLog(() => 0.99)
    log.head = 10
    const told: Array<unknown> = []
    const topic = new ConversationFeed({
      name: "s1",
      visibilityMax: 1,
      buffers: new PageBuffers(),
      monotonicMs: () => performance.now(),
      read: (after) => (after >= 10 && log.head > 10 ? Promise.reject(new Error("gone")) : log.read(after)),
      accepts: () => true,
      onFailure: (error, readers) => told.push([error, readers.length])
    })
    const stalled = new FakeSink()
    stalled.pending = limits.socketBytesMax + 1
    stalled.stalledMs = () => 1
    topic.join(stalled, 0, () => undefined)
    const reader = new FakeSink()
    topic.join(reader, 0, () => undefined)
    while (!stalled.closed || reader.seen.length < 10) {
      reader.drain()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(stalled.seen).toEqual([])
    expect(topic.readers).toBe(1)
    log.head = 11
    topic.wake()
    while (told.length === 0) await turnOfLoop()
    expect(told).toEqual([[expect.any(Error), 1]])
    expect(topic.readers).toBe(0)
  })

  it("writes nothing more to a reader at the head whose socket is full, and all of it once there is room", async () => {
    const log = new FakeLog(() => 0)
    const topic = topicOf(log)
    const [slow, quick] = [new FakeSink(), new FakeSink()]
    for (const sink of [slow, quick]) topic.join(sink, 0, () => undefined)
    await settledIn(topic, [slow, quick])
    slow.pending = limits.socketBytesMax + 1
    for (let step = 0; step < 10; step++) {
      log.head += 3
      topic.wake()
      await settledIn(topic, [quick], { isOneBehind: true })
    }
    expect(quick.seen).toEqual(without17(upTo(0, log.head)))
    expect(slow.unsentBytes).toBe(0)
    await settledIn(topic, [slow, quick])
    expect(slow.seen).toEqual(quick.seen)
  })

  it("counts a reader as full only beyond the limit", async () => {
    const log = new FakeLog(() => 0)
    const topic = topicOf(log)
    const reader = new FakeSink()
    topic.join(reader, 0, () => undefined)
    await settledIn(topic, [reader])
    reader.pending = limits.socketBytesMax
    log.head += 1
    topic.wake()
    while (!topic.isQuiet) await turnOfLoop()
    expect(reader.unsentBytes).toBeGreaterThan(0)
  })

  it("ends with an error, and lets others have their turn, when reading brings nothing although there is more", async () => {
    const failures: Array<unknown> = []
    let reads = 0
    const read = async (after: number): Promise<Page> => {
      // So many only where nobody else gets a turn.
      if (++reads > 1_000) throw new Error("read a thousand times")
      return { frames: [], next: after, head: after + 1 }
    }
    const topic = topicOf({ read }, (error) => failures.push(error))
    topic.join(new FakeSink(), 5, () => undefined)
    while (failures.length === 0) await turnOfLoop()
    expect(failures).toEqual([expect.objectContaining({ _tag: "FeedStuck", after: 5, head: 6 })])
    expect(reads).toBeLessThan(20)
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

describe("pages of the log that become pages of the wire", () => {
  const gap = (from: number, to: number) => textFrame(JSON.stringify({ gap: { from, to } }))
  const bodyOf = (bytes: number): Buffer => Buffer.from(JSON.stringify("r".repeat(bytes - 2)))
  const entry = (eventId: number, bytes: number, visibility = 0): Frame => ({
    ...frameOf(1),
    eventId,
    lastEventId: eventId,
    visibility,
    body: bodyOf(bytes)
  })

  const wrapped = (frames: ReadonlyArray<Frame>, options: { prefix: string; spare: number }) => {
    const length = frames.reduce((sum, { body, kind }) => sum + HEADER_BYTES + (kind === "entry" ? body.length : 8), 0)
    const buffer = Buffer.alloc(length + options.spare, 0x2a)
    let end = 0
    for (const frame of frames) end = lay(buffer, end, frame)
    const wrap = makeWrapInPlace({ prefix: Buffer.from(options.prefix), visibilityMax: 1, gap })
    const pieces = wrap({ ...bytesOf(buffer), start: 0, end, wanted: 1, next: 9, head: 9 })
    return { pieces: pieces.length, values: payloads(Buffer.concat(pieces)).map((text) => JSON.parse(text) as unknown) }
  }

  const lengths = [2, 40, 94, 95, 96, 97, 98, 99, 100, 300, 65_505, 65_506, 65_507, 65_508, 65_509, 65_530, 70_000]

  it.each(lengths)("hold runes of %i bytes as they are, in short frames and in long ones", (bytes) => {
    for (const name of ["s1", "s123456789", "s123456789012345"]) {
      for (const spare of [0, 1]) {
        const frames = [entry(1, 200), entry(2, bytes), entry(3, bytes), entry(4, 200)]
        const { values } = wrapped(frames, { prefix: `{"sub":"${name}","rune":`, spare })
        expect(values).toEqual(frames.map(({ body }) => ({ sub: name, rune: JSON.parse(String(body)) as unknown })))
      }
    }
  })

  it("leave out what is too private, and say where runes are no more", () => {
    const thinned: Frame = { ...frameOf(17), eventId: 5, lastEventId: 8 }
    const frames = [entry(1, 200), entry(2, 210, 2), entry(3, 220, 1), entry(4, 230), thinned, entry(9, 240)]
    const { pieces, values } = wrapped(frames, { prefix: '{"rune":', spare: 8 })
    const rune = (bytes: number) => ({ rune: JSON.parse(String(bodyOf(bytes))) as unknown })
    expect(values).toEqual([rune(200), rune(220), rune(230), { gap: { from: 5, to: 8 } }, rune(240)])
    // What lies side by side goes out in one piece.
    expect(pieces).toBe(4)
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
