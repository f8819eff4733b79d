// Goal: what is appended is what is read, as runes and as bytes, and every refusal is typed. Method: conversations of
// typical shapes on the real disk and in memory, a disk that fails on command, and runes that should not be written.
// Verifies: INV-EVENTID-MONOTONIC, INV-RUNE-IMMUTABLE, INV-SECRET-PRIVACY
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { encode, type Rune } from "#src/rune/Rune.ts"
import { decodePage } from "#src/store/runes/Page.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { agent, conversationIdOf, KIB, type Place, places, Scribe, smallLimits } from "../support.ts"

const failureOf = async <A, E>(effect: Effect.Effect<A, E>): Promise<E> => Effect.runPromise(Effect.flip(effect))

/** Where entries are when they are read. */
const whereabouts: ReadonlyArray<[string, (runelog: Runelog) => Promise<void>]> = [
  ["in memory", async () => undefined],
  ["in a segment", (runelog) => runelog.checkpoint()]
]

const readAll = async (store: RuneStore, id: string) => {
  const runes: Array<unknown> = []
  for await (const page of store.pagesNow(id, { after: 0, bytesMax: 2000 })) runes.push(...page.runes)
  return runes
}

/** Turns with text of all kinds, one of them larger than a page. */
const scribe = new Scribe().begin()
for (let turn = 1; turn <= 20; turn++) {
  scribe.turn("täglich \u{1f600}", turn % 2 === 0 ? "plain words ".repeat(20 * turn) : 'wörter, "quoted" '.repeat(turn))
}
scribe.turn("x".repeat(300_000)).turn()

describe.each(places)("runes on %s", (_name, makePlace) => {
  let place: Place
  let runelog: Runelog
  let store: RuneStore

  beforeEach(async () => {
    place = makePlace()
    runelog = await Runelog.open({ ...place, limits: smallLimits })
    store = new RuneStore({ runelog })
  })
  afterEach(async () => {
    await runelog.close()
    place.dispose()
  })

  it("come back as they were appended, page by page and after a restart", async () => {
    const { conversationId, runes } = new Scribe().begin({ title: "a" }).turn().turn()
    for (const rune of runes) await store.appendNow(conversationId, [rune])
    expect(await readAll(store, conversationId)).toEqual(runes)
    expect(await store.headNow(conversationId)).toBe(runes.length)
    await runelog.close()
    runelog = await Runelog.open({ ...place, limits: smallLimits })
    store = new RuneStore({ runelog })
    expect(await readAll(store, conversationId)).toEqual(runes)
  })

  it("are stored as the bytes that go over the wire", async () => {
    const { conversationId, runes } = new Scribe().begin().turn()
    await store.appendNow(conversationId, runes)
    const page = await store.readBytesNow(conversationId, { after: 0, bytesMax: 1_000_000 })
    expect(page.frames.map(({ body }) => body.toString("utf8"))).toEqual(runes.map(encode))
  })

  it("keep their order when many are appended without waiting", async () => {
    const { conversationId, runes } = new Scribe().begin().turn().turn().turn()
    await Promise.all(runes.map((rune) => store.appendNow(conversationId, [rune])))
    expect(await readAll(store, conversationId)).toEqual(runes)
  })

  it("are told of in their order, whatever detour the answer to some takes", async () => {
    const { conversationId, runes } = new Scribe().begin().turn().turn().turn()
    const told: Array<number> = []
    const telling = new RuneStore({
      runelog,
      notices: { appended: (_id, durable) => void told.push(...durable.map((rune) => rune.event_id)) }
    })
    const answered: Array<number> = []
    const appends = runes.map((rune, at) =>
      telling.appendNow(conversationId, [rune], { terminal: at % 3 === 1 }).then(() => answered.push(rune.event_id))
    )
    await Promise.all(appends)
    const ids = runes.map((rune) => rune.event_id)
    expect(told).toEqual(ids)
    expect(answered).toEqual(ids)
  })

  it("are filtered by family and visibility without being parsed", async () => {
    const { conversationId, runes } = new Scribe().begin().turn()
    await store.appendNow(conversationId, runes)
    const tools = await store.readNow(conversationId, { after: 0, families: ["tool"] })
    expect(new Set(tools.runes.map(({ kind }) => kind.split(".")[0]))).toEqual(new Set(["tool"]))
    expect(tools.next).toBe(runes.length)
    const seen = await store.readNow(conversationId, { after: 0, visibilityMax: "public" })
    expect(seen.runes.every(({ visibility }) => visibility === "public")).toBe(true)
    expect(seen.runes.length).toBe(runes.filter(({ visibility }) => visibility === "public").length)
    expect(seen.runes.length).toBeLessThan(runes.length)
  })

  it("lose their superseded deltas at the seal, and the gaps are told", async () => {
    const { conversationId, runes } = new Scribe().begin().turn()
    await store.appendNow(conversationId, runes)
    await runelog.seal(conversationId)
    const page = await store.readNow(conversationId, { after: 0, bytesMax: 1_000_000 })
    const deltas = runes.filter(({ kind }) => kind.endsWith("_delta") || kind === "tool.progress")
    expect(page.runes).toEqual(runes.filter((rune) => !deltas.includes(rune)))
    const told = page.gaps.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
    expect(told).toEqual(deltas.map(({ event_id: id }) => id))
  })

  it("are the same whether a page is decoded where it was read or entry by entry", async () => {
    const limits = {
      ...smallLimits,
      journalFileBytes: 4096 * KIB,
      batchBytesMax: 1024 * KIB,
      pendingBytesMax: 8192 * KIB
    }
    const log = await Runelog.open({ ...place, directory: `${place.directory}/large`, limits })
    const large = new RuneStore({ runelog: log })
    const { conversationId, runes } = scribe
    for (const rune of runes.slice(0, -4)) await large.appendNow(conversationId, [rune])
    await log.seal(conversationId)
    for (const rune of runes.slice(-4)) await large.appendNow(conversationId, [rune])
    for (let after = 0; after < runes.length; after += 7) {
      const page = await large.readNow(conversationId, { after })
      const bytes = await large.readBytesNow(conversationId, { after })
      expect(page).toEqual(decodePage(conversationId, bytes))
      expect(page.gaps.length + page.runes.length).toBeGreaterThan(0)
    }
    await log.close()
  })

  it("are read ahead, and yet end where the log does when the reader gets there", async () => {
    const scribe = new Scribe().begin()
    for (let turn = 0; turn < 40; turn++) scribe.turn("again", "words and words ".repeat(300))
    for (const rune of scribe.runes) await store.appendNow(scribe.conversationId, [rune])
    await runelog.checkpoint()
    const read: Array<Rune> = []
    let pages = 0
    for await (const page of store.pagesNow(scribe.conversationId, { after: 0 })) {
      read.push(...(page.runes as Array<Rune>))
      pages += 1
      // Appended while what follows may have been read already.
      if (pages <= 4) await store.appendNow(scribe.conversationId, [scribe.add("session.resumed", {})])
    }
    expect(pages).toBeGreaterThan(3)
    // Deltas may be gone: full segments are sealed meanwhile.
    const lasting = (runes: ReadonlyArray<Rune>) => runes.filter(({ kind }) => !/delta|progress/.test(kind))
    expect(lasting(read)).toEqual(lasting(scribe.runes))
  })

  it("end before damage in their last segment, however many pages there are", async () => {
    for (const turns of [2, 40]) {
      const told = new Scribe(turns).begin()
      for (let turn = 0; turn < turns; turn++) told.turn("again", "words and words ".repeat(300))
      const { conversationId } = told
      for (const rune of told.runes) await store.appendNow(conversationId, [rune])
      await runelog.close()
      const directory = `${place.directory}/runelog/${conversationId}`
      const name = (await place.disk.list(directory)).map((entry) => entry.name).filter((each) => each.endsWith(".seg"))
      const file = await place.disk.open(`${directory}/${name.sort().at(-1)!}`, "write")
      const at = (await file.size()) - 40
      await file.write(Buffer.from([0xff]), 0, 1, at)
      await file.close()
      runelog = await Runelog.open({ ...place, limits: smallLimits })
      store = new RuneStore({ runelog })
      let next = 0
      for await (const page of store.pagesNow(conversationId, { after: 0 })) next = page.next
      expect(next).toBe(await store.headNow(conversationId))
      expect(next).toBeLessThan(told.runes.length)
    }
  })

  it("can be left in the middle, also when the next page cannot be read", async () => {
    const scribe = new Scribe().begin()
    for (let turn = 0; turn < 40; turn++) scribe.turn("again", "words and words ".repeat(300))
    for (const rune of scribe.runes) await store.appendNow(scribe.conversationId, [rune])
    await runelog.ready()
    await runelog.append(scribe.conversationId, scribe.runes.length + 1, [{ body: "no rune" }])
    await runelog.checkpoint()
    const first = await store.readNow(scribe.conversationId, { after: 0 })
    for await (const page of store.pagesNow(scribe.conversationId, { after: first.next })) {
      if (page.next >= scribe.runes.length) break
    }
    const all = async (): Promise<number> => {
      let read = 0
      for await (const page of store.pagesNow(scribe.conversationId, { after: 0 })) read += page.runes.length
      return read
    }
    await expect(all()).rejects.toMatchObject({ _tag: "RuneUnreadable", eventId: scribe.runes.length + 1 })
  })

  it("keep deltas that nothing repeats yet", async () => {
    const scribe = new Scribe().begin()
    const turn = scribe.startTurn("hello")
    scribe.answer(turn, "one two three", 3)
    const callId = scribe.call(turn, "abc", 3)
    scribe.add("turn.assistant_delta", { content: "and now" }, turn)
    scribe.add("tool.progress", { call_id: `${callId}9` as typeof callId, stream: "stdout", chunk: "open" }, turn)
    await store.appendNow(scribe.conversationId, scribe.runes)
    await runelog.seal(scribe.conversationId)
    const kept = await readAll(store, scribe.conversationId)
    expect(kept.slice(-2)).toEqual(scribe.runes.slice(-2))
    expect(kept.filter((rune) => /delta|progress/.test((rune as Rune).kind))).toHaveLength(2)
  })

  it("can be followed: what is there, then what comes", async () => {
    const { conversationId, runes } = new Scribe().begin().turn()
    await store.appendNow(conversationId, runes.slice(0, 5))
    const collected = Effect.runFork(
      store.follow(conversationId, { after: 0 }).pipe(
        Stream.map((page) => page.runes),
        Stream.flattenIterable,
        Stream.take(runes.length),
        Stream.runCollect
      )
    )
    for (const rune of runes.slice(5)) await store.appendNow(conversationId, [rune])
    expect(await Effect.runPromise(Fiber.join(collected))).toEqual(runes)
  })

  it("of an unknown conversation are a typed error, as is a cursor beyond the end", async () => {
    const missing = conversationIdOf(99)
    expect(await failureOf(store.read(missing, { after: 0 }))).toMatchObject({ _tag: "ConversationUnknown" })
    expect(await failureOf(store.readBytes("../x", { after: 0 }))).toMatchObject({ _tag: "LogNameInvalid" })
    expect(await Effect.runPromise(store.head(missing))).toBe(0)
    const { conversationId, runes } = new Scribe().begin()
    await store.appendNow(conversationId, runes)
    expect(await failureOf(store.read(conversationId, { after: 50 }))).toMatchObject({ _tag: "CursorBeyondEnd" })
    const followed = Stream.runDrain(store.follow(missing, { after: 0 }))
    expect(await failureOf(followed)).toMatchObject({ _tag: "ConversationUnknown" })
  })
})

describe("an append", () => {
  let runelog: Runelog
  let store: RuneStore
  let disk: DiskSim
  const durable: Array<number> = []

  beforeEach(async () => {
    disk = new DiskSim()
    runelog = await Runelog.open({ disk, directory: "/data", limits: smallLimits })
    durable.length = 0
    store = new RuneStore({
      runelog,
      notices: { appended: (_id, runes) => void durable.push(...runes.map((rune) => rune.event_id)) }
    })
  })
  afterEach(async () => {
    disk.clearFaults()
    await runelog.close().catch(() => undefined)
  })

  const { conversationId, runes } = new Scribe().begin().turn()
  const [first, second] = runes as [Rune, Rune]

  it("is refused when it is not a rune, belongs elsewhere or is out of place", async () => {
    const cases: ReadonlyArray<readonly [ReadonlyArray<unknown>, string]> = [
      [[{ ...first, payload: { config: { title: 7 } } }], "RuneInvalid"],
      [[{ ...first, rune_id: "run_1" }], "RuneInvalid"],
      [[{ ...first, conversation_id: conversationIdOf(2) }], "RuneInvalid"],
      [[first, { ...second, event_id: 3 }], "RuneInvalid"],
      [[second], "EventIdOutOfOrder"],
      [[], "BatchEmpty"],
      [[{ ...first, payload: { config: { extra: { big: 1n } } } }], "RuneInvalid"]
    ]
    for (const [given, tag] of cases) {
      const error = await failureOf(store.append(conversationId, given as ReadonlyArray<Rune>))
      expect(error, JSON.stringify(tag)).toMatchObject({ _tag: tag })
    }
    expect(await store.headNow(conversationId)).toBe(0)
    expect(await failureOf(store.append("no/name", [{ ...first, conversation_id: "no/name" } as never]))).toMatchObject(
      {
        _tag: "RuneInvalid"
      }
    )
  })

  it("of a rune beyond the size of a frame is refused with its size", async () => {
    const large = { ...first, payload: { config: { instructions: "x".repeat(1024 * 1024) } } } as Rune
    expect(await failureOf(store.append(conversationId, [large]))).toMatchObject({ _tag: "EntryTooLarge" })
  })

  it("tells of durable runes only", async () => {
    await Effect.runPromise(store.append(conversationId, runes.slice(0, 4)))
    expect(durable).toEqual([1, 2, 3, 4])
    disk.failNext("sync", { code: "EIO" })
    expect(await failureOf(store.append(conversationId, runes.slice(4, 6)))).toMatchObject({ _tag: "WriterPoisoned" })
    expect(durable).toEqual([1, 2, 3, 4])
  })

  it("that is interrupted is finished first", async () => {
    const fiber = Effect.runFork(store.append(conversationId, [first]))
    await Effect.runPromise(Fiber.interrupt(fiber))
    expect(await store.headNow(conversationId)).toBe(1)
  })

  it("on a full disk is refused and leaves no trace; a last word still has room", async () => {
    await store.appendNow(conversationId, runes.slice(0, 4))
    disk.capacityBytes = disk.usedBytes
    const filler = (): Rune => {
      const id = durable.length + 1
      return { ...first, event_id: id, payload: { config: { instructions: "x".repeat(60_000) } } } as Rune
    }
    let error: unknown
    for (let tries = 0; tries < 100 && error === undefined; tries++) {
      await store.appendNow(conversationId, [filler()]).catch((thrown) => {
        error = thrown
      })
    }
    expect(error).toMatchObject({ _tag: "DiskFull" })
    const next = durable.length + 1
    const closing = {
      ...runes[3],
      event_id: next,
      kind: "session.closing",
      payload: { reason: "full" }
    } as unknown as Rune
    await store.appendNow(conversationId, [closing])
    expect(await store.headNow(conversationId)).toBe(next)
  })

  it("waits while the engine is busy, and order is kept", async () => {
    const tight = await Runelog.open({
      disk: new DiskSim(),
      directory: "/tight",
      limits: { ...smallLimits, inFlightBytesMax: 4096 }
    })
    const waiting = new RuneStore({ runelog: tight })
    const big = new Scribe(7).begin()
    for (let turn = 0; turn < 12; turn++) big.turn("again", "words and words ".repeat(200))
    await Promise.all(big.runes.map((rune) => waiting.appendNow(big.conversationId, [rune])))
    expect(await readAll(waiting, big.conversationId)).toEqual(big.runes)
    await tight.close()
  })

  it.each(whereabouts)(
    "of an entry that is no rune is an error of the reader, after the good ones, %s",
    async (_where, settle) => {
      await store.appendNow(conversationId, runes.slice(0, 3))
      await runelog.append(conversationId, 4, [{ body: "{}" }])
      await runelog.append(conversationId, 5, [{ body: encode({ ...first, event_id: 9 } as Rune) }])
      await settle(runelog)
      const page = await store.readNow(conversationId, { after: 0 })
      expect(page.runes).toEqual(runes.slice(0, 3))
      expect(page.next).toBe(3)
      expect(await failureOf(store.read(conversationId, { after: 3 }))).toMatchObject({
        _tag: "RuneUnreadable",
        eventId: 4
      })
      const displaced = await failureOf(store.read(conversationId, { after: 4 }))
      expect(displaced).toMatchObject({ _tag: "RuneUnreadable", reason: `it says it is event 9 of ${conversationId}` })
    }
  )

  it.each(whereabouts)(
    "of entries that only together look like runes is not fooled by how pages are parsed, %s",
    async (_where, settle) => {
      const [one, two, three] = runes.slice(0, 3).map(encode) as [string, string, string]
      await runelog.append(conversationId, 1, [{ body: `${one},${two}` }, { body: three }])
      await settle(runelog)
      expect(await failureOf(store.read(conversationId, { after: 0 }))).toMatchObject({
        _tag: "RuneUnreadable",
        eventId: 1
      })
      const other = conversationIdOf(8)
      await runelog.append(other, 1, [{ body: "[1" }, { body: "2]" }, { body: "3,4" }])
      await settle(runelog)
      expect(await failureOf(store.read(other, { after: 0 }))).toMatchObject({ _tag: "RuneUnreadable", eventId: 1 })
    }
  )

  it.each(whereabouts)("of a rune of an older version is read as the current one, %s", async (_where, settle) => {
    const old = {
      ...runes.find(({ kind }) => kind === "tool.result"),
      event_id: 1,
      schema_version: 1,
      payload: { call_id: "call_1", status: "timeout", error: "too slow", duration_ms: 5 },
      agent_id: agent
    }
    await runelog.append(conversationId, 1, [{ body: JSON.stringify(old) }])
    await settle(runelog)
    const { runes: read } = await store.readNow(conversationId, { after: 0 })
    expect(read[0]).toMatchObject({
      schema_version: 2,
      payload: { error: { code: "tool_timeout", message: "too slow" } }
    })
  })
})
