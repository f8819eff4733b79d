// Goal: the store opens, recovers and closes as one, and what is derived follows the log through every kind of end.
// Method: a store on the real disk, closed, killed, with files taken away; a simulated disk for power cuts.
// Verifies: G2
import { readdirSync, rmSync, statSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { DurableNotices, NoticeBus } from "#src/contract/DurableNotices.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { ServerReady } from "#src/contract/ServerReady.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { layer, StoreService } from "#src/store/Store.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { caughtUp, type OpenStore, openStore } from "../support/store/openStore.ts"
import { conversationIdOf, type Place, realPlace, Scribe, smallLimits } from "./support.ts"

const log = Layer.succeed(ServerLog, { level: "error", write: () => undefined })
const serviceOf = (directory: string) =>
  layer(options(directory)).pipe(Layer.provide([DurableNotices.layer, ServerReady.layer]), Layer.provideMerge(log))

const options = (directory: string) => ({ directory, snapshotShape: "1", runelog: { limits: smallLimits } })

let place: Place
let store: OpenStore
beforeEach(async () => {
  place = realPlace()
  store = await openStore(options(place.directory))
})
afterEach(async () => {
  await store.close()
  place.dispose()
})

const reopen = async (): Promise<OpenStore> => {
  await store.close()
  store = await openStore(options(place.directory))
  return store
}

const put = async (scribe: Scribe): Promise<Scribe> => {
  await store.runes.appendNow(scribe.conversationId, scribe.runes)
  return scribe
}

const archive = async (scribe: Scribe): Promise<void> => {
  const id = scribe.conversationId
  const prepared = await store.archive.prepare(id)
  await store.runes.appendNow(id, [scribe.add("session.archived", prepared)])
  await store.archive.commit(id)
}

describe("the store", () => {
  it("lists what was just appended", async () => {
    const scribe = await put(new Scribe(1).begin({ title: "first" }))
    const { items } = await Effect.runPromise(store.list({ q: "first" }))
    expect(items).toMatchObject([{ conversation_id: scribe.conversationId, last_event_id: 4 }])
    expect(await Effect.runPromise(Effect.flip(store.list({ limit: 0 })))).toMatchObject({ _tag: "ListInvalid" })
  })

  it("keeps the catalog over a clean close, and looks for what is missing", async () => {
    await put(new Scribe(1).begin())
    // One that is closed before it was held against the logs is not vouched for.
    await caughtUp(store)
    await reopen()
    expect(store.catalog.openState).toBe("clean")
    expect(store.catalog.count()).toBe(1)
    expect(await caughtUp(store)).toMatchObject({ doubted: 0 })
    await store.close()
    for (const name of readdirSync(place.directory))
      if (name.startsWith("catalog")) rmSync(`${place.directory}/${name}`)
    store = await openStore(options(place.directory))
    expect(store.catalog.openState).toBe("fresh")
    expect(await caughtUp(store)).toMatchObject({ doubted: 1 })
    expect((await store.listNow()).items).toHaveLength(1)
  })

  it("archives, reads, restores and forks across restarts", async () => {
    const scribe = await put(new Scribe(1).begin({ title: "kept" }).turn().close())
    const id = scribe.conversationId
    await store.snapshots.save(id, 4, { some: "state" })
    await archive(scribe)
    expect(await store.snapshots.list(id)).toEqual([])
    expect((await store.listNow({ state: "archived" })).items).toMatchObject([{ conversation_id: id, title: "kept" }])
    await reopen()
    await caughtUp(store)
    expect((await store.listNow()).items).toMatchObject([{ state: "archived", last_event_id: scribe.runes.length }])
    const copied = await store.fork({
      from: id,
      atEventId: 10,
      conversationId: conversationIdOf(2),
      ids: seededIdSource(1),
      nowMs: 5
    })
    expect((await store.listNow({ q: conversationIdOf(2) })).items).toMatchObject([
      { forked_from: id, last_event_id: copied.eventId }
    ])
    await store.restore(id)
    await store.runes.appendNow(id, [scribe.add("session.restored", {})])
    await store.archive.forget(id)
    expect((await store.listNow({ state: "closed" })).items).toMatchObject([{ conversation_id: id }])
    const imported = await store.importLines({
      lines: store.exportLines(id),
      conversationId: conversationIdOf(3),
      ids: seededIdSource(2),
      nowMs: 5
    })
    expect((await store.listNow()).items).toHaveLength(3)
    expect(imported.eventId).toBeGreaterThan(10)
  })

  it("fills the catalog of archived conversations without reading them", async () => {
    const scribe = await put(new Scribe(1).begin({ title: "kept" }).turn().close())
    await archive(scribe)
    await store.close()
    for (const name of readdirSync(place.directory))
      if (name.startsWith("catalog")) rmSync(`${place.directory}/${name}`)
    store = await openStore(options(place.directory))
    await caughtUp(store)
    expect(store.catalog.get(scribe.conversationId)).toMatchObject({ title: "kept", state: "archived", turns: 1 })
  })

  it("finishes archiving that was interrupted", async () => {
    const scribe = await put(new Scribe(1).begin().close())
    const id = scribe.conversationId
    await store.runes.appendNow(id, [scribe.add("session.archived", await store.archive.prepare(id))])
    await reopen()
    const { settled } = await caughtUp(store)
    expect([...settled]).toEqual([[id, { _tag: "Archived" }]])
    expect(await store.runelog.list()).toEqual([])
    expect(await store.runes.headNow(id)).toBe(scribe.runes.length)
  })

  it("catches up when what goes first is over, and not at all when it is closed before", async () => {
    await put(new Scribe(1).begin())
    for (const end of ["over", "closed"] as const) {
      await store.close()
      const ready = Latch.makeUnsafe(false)
      store = await openStore({ ...options(place.directory), ready })
      let isCaughtUp = false
      void caughtUp(store).then(() => {
        isCaughtUp = true
      })
      await store.listNow()
      await new Promise((resolve) => setImmediate(resolve))
      expect(isCaughtUp).toBe(false)
      if (end === "over") ready.openUnsafe()
      else await store.close()
      expect(await caughtUp(store)).toMatchObject({ doubted: 0 })
    }
  })

  it("keeps its files to its owner", async () => {
    await put(new Scribe(1).begin())
    await store.listNow()
    const modes = readdirSync(place.directory).map((name) => statSync(`${place.directory}/${name}`).mode & 0o077)
    expect(modes.every((mode) => mode === 0)).toBe(true)
  })

  it("is one at a time, and gives the directory back when it cannot open", async () => {
    await expect(openStore(options(place.directory))).rejects.toMatchObject({ _tag: "DirectoryLocked" })
    const exit = await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(serviceOf(place.directory)))))
    expect(exit).toMatchObject({ _tag: "DirectoryLocked" })
    await store.close()
    await store.close()
    const disk: Disk = { ...makeDiskNode(), removeTree: () => Promise.reject(new Error("no")) }
    await expect(openStore({ ...options(place.directory), disk })).rejects.toThrow("no")
    store = await openStore(options(place.directory))
  })

  it("is a service for as long as its scope", async () => {
    await store.close()
    const scribe = new Scribe(1).begin()
    const program = Effect.gen(function* () {
      const { runes } = yield* StoreService
      yield* runes.append(scribe.conversationId, scribe.runes)
      return yield* runes.head(scribe.conversationId)
    })
    expect(await Effect.runPromise(Effect.provide(program, serviceOf(place.directory)))).toBe(4)
    store = await openStore(options(place.directory))
    expect(await store.runes.headNow(scribe.conversationId)).toBe(4)
  })
})

describe("what becomes durable", () => {
  it("is announced on one bus, whether it was appended, forked, imported or restored", async () => {
    await store.close()
    const heard: Array<string> = []
    const notices = new NoticeBus()
    notices.subscribe({
      name: "test",
      appended: (id, runes) => void heard.push(`${id} appended ${runes.length}`),
      appeared: (id, how) => void heard.push(`${id} ${how}`)
    })
    store = await openStore({ ...options(place.directory), notices })
    const scribe = await put(new Scribe(1).begin().turn().close())
    const { conversationId: id, runes } = scribe
    const made = { ids: seededIdSource(1), nowMs: 5 }
    await store.fork({ from: id, atEventId: 4, conversationId: conversationIdOf(2), ...made })
    await store.importLines({ lines: store.exportLines(id), conversationId: conversationIdOf(3), ...made })
    await archive(scribe)
    await store.restore(id)
    expect(heard).toEqual([
      `${id} appended ${runes.length - 1}`,
      `${conversationIdOf(2)} forked`,
      `${conversationIdOf(3)} imported`,
      `${id} appended 1`,
      `${id} restored`
    ])
    const { items } = await store.listNow()
    expect(items.map((item) => item.conversation_id).sort()).toEqual([1, 2, 3].map(conversationIdOf).sort())
  })

  it("stays acknowledged when a listener throws, and the catalog has it", async () => {
    await store.close()
    const failed: Array<string> = []
    const notices = new NoticeBus((listener) => failed.push(listener))
    notices.subscribe({
      name: "broken",
      appended: () => {
        throw new Error("broken")
      }
    })
    store = await openStore({ ...options(place.directory), notices })
    const scribe = await put(new Scribe(1).begin())
    expect(failed).toEqual(["broken"])
    expect((await store.listNow()).items).toMatchObject([{ conversation_id: scribe.conversationId, last_event_id: 4 }])
  })
})

describe("a power cut", () => {
  it("leaves a catalog that agrees with the log once the store is open", async () => {
    const disk = new DiskSim()
    const sim = { directory: "/data", disk, snapshotShape: "1", runelog: { limits: smallLimits } }
    const before = await openStore(sim)
    const scribes = Array.from({ length: 20 }, (_, number) => new Scribe(number).begin().turn())
    for (const { conversationId, runes } of scribes) {
      for (let at = 0; at < runes.length; at += 5) await before.runes.appendNow(conversationId, runes.slice(at, at + 5))
    }
    const rest = disk.crash(7)
    const after = await openStore({ ...sim, disk: rest })
    expect([...after.runelog.recovered.logs].sort()).toEqual(scribes.map(({ conversationId }) => conversationId).sort())
    for (const { conversationId, runes } of scribes) {
      expect(after.catalog.get(conversationId)?.last_event_id).toBe(runes.length)
    }
    expect(await caughtUp(after)).toMatchObject({ doubted: 0 })
    await after.close()
    await before.close()
  })

  it("with very many conversations touched is no reason to wait: lists say that they are not up to date until they are", async () => {
    const disk = new DiskSim()
    const sim = { directory: "/data", disk, snapshotShape: "1" }
    const before = await openStore(sim)
    const scribes = Array.from({ length: 1001 }, (_, number) => new Scribe(number).begin())
    await Promise.all(scribes.map(({ conversationId, runes }) => before.runes.appendNow(conversationId, runes)))
    const after = await openStore({ ...sim, disk: disk.killProcess() })
    expect(after.isBehind).toBe(true)
    expect(after.runelog.stats.journalLogs).toBeGreaterThan(900)
    expect(after.catalog.list()).toMatchObject({ rebuilding: true })
    expect(await after.runes.headNow(scribes[500]!.conversationId)).toBe(scribes[500]!.runes.length)
    await caughtUp(after)
    expect(after.catalog.list()).not.toHaveProperty("rebuilding")
    expect(after.catalog.count()).toBe(1001)
    await after.close()
    await before.close().catch(() => undefined)
  })

  it("during a close is a power cut like any other", async () => {
    const disk = new DiskSim()
    const sim = { directory: "/data", disk, snapshotShape: "1", runelog: { limits: smallLimits } }
    const before = await openStore(sim)
    const scribe = new Scribe(1).begin()
    await before.runes.appendNow(scribe.conversationId, scribe.runes)
    disk.powerOff()
    await before.close().catch(() => undefined)
    const after = await openStore({ ...sim, disk: disk.crash(3) })
    const { runes } = await after.runes.readNow(scribe.conversationId, { after: 0 })
    expect(runes as ReadonlyArray<Rune>).toEqual(scribe.runes)
    await after.close()
  })
})
