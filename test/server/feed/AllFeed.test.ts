// Goal: a follower of all conversations gets every rune after its cursors once, and is told by name of what it does not
// get; nothing a follower claims, and no read that fails, stops anybody else. Method: logs in memory whose reads the test
// makes fail, sockets that the test opens and closes.
import { afterEach, describe, expect, it, vi } from "vitest"
import { CursorBeyondEnd, DiskFailed } from "#runelog/RunelogErrors.ts"
import type { Frame, Page } from "#src/conversation/Reading.ts"
import { AllFeed, type FollowAll } from "#src/server/feed/AllFeed.ts"
import { PageBuffers } from "#src/server/feed/PageBuffers.ts"
import type { ConversationStore } from "#src/server/operations/Context.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { FakeSink, turnOfLoop } from "../../support/server/FakeSink.ts"

const frameOf = (conversationId: string, eventId: number, isThinned: boolean): Frame => ({
  kind: isThinned ? "thinned" : "entry",
  eventId,
  lastEventId: eventId,
  visibility: 0,
  family: 0,
  stream: 0,
  body: Buffer.from(JSON.stringify({ event_id: eventId, conversation_id: conversationId, kind: "turn.started" }))
})

/** More reads than any of these tests needs: whoever makes them never lets others have their turn. */
const READS_MAX = 2_000

class FakeShelf {
  readonly heads = new Map<string, number>()
  readonly thinned = new Set<number>()
  /** Reads of a conversation that fail before the next one succeeds. */
  readonly failing = new Map<string, number>()
  readonly failingHeads = new Map<string, number>()
  /** Reads of a conversation wait for this. */
  readonly held = new Map<string, Promise<void>>()
  listFails = false
  reads = 0
  private readonly listeners = new Map<string, Set<() => void>>()

  private failNext(failing: Map<string, number>, conversationId: string): void {
    const left = failing.get(conversationId) ?? 0
    if (left === 0) return
    failing.set(conversationId, left - 1)
    throw new DiskFailed({ path: "segments", cause: new Error("input/output error") })
  }

  readonly conversationStore = {
    conversations: async function* (this: FakeShelf) {
      if (this.listFails) throw new Error("no list")
      yield* this.heads.keys()
    }.bind(this),
    changedSince: async () => [...this.heads.keys()],
    cursorSince: async () => 0,
    head: async (conversationId: string) => {
      this.failNext(this.failingHeads, conversationId)
      return this.heads.get(conversationId) ?? 0
    },
    read: async (conversationId: string, { after }: { readonly after: number }): Promise<Page> => {
      if (++this.reads > READS_MAX) throw new Error("nobody else gets a turn")
      await this.held.get(conversationId)
      this.failNext(this.failing, conversationId)
      const head = this.heads.get(conversationId) ?? 0
      if (after > head) throw new CursorBeyondEnd({ log: conversationId, after, head })
      const next = Math.min(head, after + 10)
      const ids = Array.from({ length: next - after }, (_, index) => after + 1 + index)
      return { frames: ids.map((id) => frameOf(conversationId, id, this.thinned.has(id))), next, head }
    },
    readRaw: async () => undefined,
    watch: (conversationId: string, listener: () => void) => {
      const all = this.listeners.get(conversationId) ?? new Set()
      this.listeners.set(conversationId, all.add(listener))
      return () => void all.delete(listener)
    }
  } as unknown as ConversationStore

  grow(conversationId: string): void {
    this.heads.set(conversationId, (this.heads.get(conversationId) ?? 0) + 1)
    for (const listener of this.listeners.get(conversationId) ?? []) listener()
  }
}

const newWorld = (heads: Readonly<Record<string, number>>) => {
  const fake = new FakeShelf()
  for (const [id, head] of Object.entries(heads)) fake.heads.set(id, head)
  const clock = { nowMs: 0 }
  const logged: Array<string> = []
  let names = 0
  const allFeed = new AllFeed({
    conversationStore: fake.conversationStore,
    buffers: new PageBuffers(),
    monotonicMs: () => clock.nowMs,
    newName: () => `s${++names}`,
    onFailure: (_error, conversationId) => logged.push(conversationId)
  })
  const follow = (request: Partial<FollowAll> = {}) => {
    const sink = new FakeSink()
    const ended: Array<unknown> = []
    const membership = allFeed.join({
      filter: { visibility: "internal", kinds: undefined },
      sink,
      cursors: {},
      others: "all",
      sinceMs: undefined,
      taken: new Set(),
      onFailure: (_sub, error) => ended.push(error),
      ...request
    })
    return { sink, ended, membership }
  }
  /** New durable runes, told as the server tells them. */
  const grow = (conversationId: string): void => {
    fake.grow(conversationId)
    allFeed.notice(conversationId, fake.heads.get(conversationId)!)
  }
  return { clock, allFeed, fake, follow, grow, logged }
}

const until = async (isMet: () => boolean, sinks: ReadonlyArray<FakeSink>): Promise<void> => {
  while (!isMet()) {
    for (const sink of sinks) sink.drain()
    await turnOfLoop()
  }
}

const idsOf = ({ frames }: FakeSink, conversationId: string) =>
  frames.flatMap(({ rune }) => (rune?.conversation_id === conversationId ? [rune.event_id] : []))
const upTo = (head: number) => Array.from({ length: head }, (_, index) => index + 1)
const isCaughtUp = ({ frames }: FakeSink): boolean => frames.some(({ caught_up }) => caught_up !== undefined)
const errorsIn = ({ frames }: FakeSink) =>
  frames.flatMap(({ conversation_id, error }) => (error === undefined ? [] : [{ conversation_id, code: error.code }]))

afterEach(() => {
  vi.useRealTimers()
})

describe("a cursor beyond the head", () => {
  it("of a slow follower stops nobody, is told, and brings what is new from there on", async () => {
    const { fake, follow, grow } = newWorld({ one: 3, two: 30 })
    const slow = follow({ cursors: { one: 1_000_000 } })
    // Its socket is full, so its backfill does not end.
    slow.sink.pending = limits.socketBytesMax + 1
    await turnOfLoop()
    const other = follow()
    grow("one")
    await until(() => idsOf(other.sink, "one").length === 4 && isCaughtUp(other.sink), [other.sink])
    grow("one")
    await until(() => idsOf(other.sink, "one").length === 5, [other.sink])
    await until(() => isCaughtUp(slow.sink) && idsOf(slow.sink, "two").length === 30, [slow.sink])
    grow("one")
    await until(() => idsOf(slow.sink, "one").includes(6), [slow.sink, other.sink])
    expect(idsOf(other.sink, "one")).toEqual(upTo(6))
    expect(errorsIn(slow.sink)).toEqual([{ conversation_id: "one", code: "bad_request" }])
    const told = slow.sink.frames.find(({ error }) => error !== undefined)
    const { head } = (told?.error?.data ?? {}) as { readonly head?: number }
    expect(idsOf(slow.sink, "one")).toEqual(upTo(6).slice(head))
    expect(fake.reads).toBeLessThan(100)
  })

  it.each(["first", "second"])(
    "of the %s follower is told once, however often there is something new",
    async (which) => {
      const { follow, grow } = newWorld({ one: 3 })
      const cursors = { one: 1_000_000 }
      const wrong = which === "first" ? follow({ cursors }) : undefined
      const right = follow()
      const follower = wrong ?? follow({ cursors })
      for (let round = 0; round < 5; round++) {
        grow("one")
        await turnOfLoop()
      }
      const sinks = [right.sink, follower.sink]
      await until(() => sinks.every(isCaughtUp) && idsOf(follower.sink, "one").includes(8), sinks)
      expect(idsOf(right.sink, "one")).toEqual(upTo(8))
      expect(errorsIn(follower.sink)).toHaveLength(1)
    }
  )

  it("of a conversation that is not there is told, and what begins under its name later comes from its beginning", async () => {
    const { follow, grow } = newWorld({ one: 1 })
    const { sink } = follow({ cursors: { gone: 7 }, others: "new" })
    await until(() => isCaughtUp(sink), [sink])
    expect(errorsIn(sink)).toEqual([{ conversation_id: "gone", code: "not_found" }])
    grow("gone")
    await until(() => idsOf(sink, "gone").length === 1, [sink])
    grow("gone")
    await until(() => idsOf(sink, "gone").length === 2, [sink])
    expect(idsOf(sink, "gone")).toEqual([1, 2])
  })
})

describe("a conversation that cannot be read", () => {
  /** Lets the pauses between two tries pass. */
  const withoutPauses = () =>
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldClearNativeTimers: true })
  const pass = async (isMet: () => boolean, sinks: ReadonlyArray<FakeSink>): Promise<void> => {
    while (!isMet()) {
      for (const sink of sinks) sink.drain()
      vi.advanceTimersByTime(limits.followAllRetryMs)
      await turnOfLoop()
    }
  }

  it.each([
    ["while catching up", 1],
    ["as often as it is tried but once", limits.followAllTriesMax - 1]
  ])("%s is tried again, and nothing is missing or repeated", async (_name, failures) => {
    withoutPauses()
    const { fake, follow } = newWorld({ one: 25, two: 5 })
    fake.failing.set("one", failures)
    const { sink } = follow()
    await pass(() => isCaughtUp(sink), [sink])
    expect(idsOf(sink, "one")).toEqual(upTo(25))
    expect(idsOf(sink, "two")).toEqual(upTo(5))
    expect(errorsIn(sink)).toEqual([])
  })

  it("once, at the head, loses nothing of what came since", async () => {
    withoutPauses()
    const { fake, follow, grow } = newWorld({ one: 2 })
    const { sink } = follow()
    await pass(() => isCaughtUp(sink), [sink])
    fake.failing.set("one", 1)
    grow("one")
    await pass(() => fake.failing.get("one") === 0, [sink])
    grow("one")
    await pass(() => idsOf(sink, "one").includes(4), [sink])
    expect(idsOf(sink, "one")).toEqual(upTo(4))
    expect(errorsIn(sink)).toEqual([])
  })

  it("whatever is tried is told by its name, the others come, and its next sign of life brings all that is missing", async () => {
    withoutPauses()
    const { fake, follow, grow, logged } = newWorld({ one: 12, two: 5 })
    fake.failing.set("one", limits.followAllTriesMax)
    const { sink } = follow()
    await pass(() => isCaughtUp(sink), [sink])
    expect(errorsIn(sink)).toEqual([{ conversation_id: "one", code: "read_only" }])
    expect(logged).toEqual(["one"])
    expect(idsOf(sink, "two")).toEqual(upTo(5))
    grow("one")
    await pass(() => idsOf(sink, "one").length === 13, [sink])
    expect(idsOf(sink, "one")).toEqual(upTo(13))
  })

  it("when its head is looked up is tried again too", async () => {
    withoutPauses()
    const { fake, follow } = newWorld({ one: 5 })
    fake.failingHeads.set("one", 2)
    const { sink } = follow({ cursors: { one: 2 }, others: "new" })
    await pass(() => isCaughtUp(sink), [sink])
    expect(idsOf(sink, "one")).toEqual([3, 4, 5])
  })

  it("ends the subscription where it is not even known which conversations there are", async () => {
    const { fake, follow } = newWorld({ one: 5 })
    fake.listFails = true
    const { ended } = follow()
    while (ended.length === 0) await turnOfLoop()
    expect(ended).toEqual([expect.objectContaining({ message: "no list" })])
  })
})

describe("a follower of everything", () => {
  it("is told which conversation a gap is in", async () => {
    const { fake, follow } = newWorld({ one: 4, two: 4 })
    fake.thinned.add(2)
    const { sink } = follow()
    await until(() => isCaughtUp(sink), [sink])
    const gaps = sink.frames.flatMap(({ gap }) => (gap === undefined ? [] : [gap]))
    expect(gaps.map(({ conversation_id: id, from, to }) => [id, from, to])).toEqual([
      ["one", 2, 2],
      ["two", 2, 2]
    ])
  })

  it("gets no rune twice of a conversation that was quiet while the rest of it was caught up with", async () => {
    const { clock, allFeed, fake, follow, grow } = newWorld({ one: 3, two: 30 })
    const rest = Promise.withResolvers<void>()
    fake.held.set("two", rest.promise)
    const { sink } = follow()
    await until(() => idsOf(sink, "one").length === 3, [sink])
    // The rest takes longer than a quiet conversation is remembered.
    clock.nowMs += limits.followAllQuietMs + 1
    allFeed.sweep()
    grow("one")
    await until(() => idsOf(sink, "one").includes(4), [sink])
    rest.resolve()
    await until(() => isCaughtUp(sink), [sink])
    expect(idsOf(sink, "one")).toEqual(upTo(4))
    expect(idsOf(sink, "two")).toEqual(upTo(30))
    // Afterwards a quiet one is let go of, and begins where its next rune is.
    clock.nowMs += limits.followAllQuietMs + 1
    allFeed.sweep()
    grow("one")
    await until(() => idsOf(sink, "one").includes(5), [sink])
    expect(idsOf(sink, "one")).toEqual(upTo(5))
  })
})
