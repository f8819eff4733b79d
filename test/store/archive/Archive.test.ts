// Goal: archiving and restoring lose nothing, not a byte and not an id, and a crash at any step leaves the log or the
// archive whole. Method: both disks for the facts, the simulated disk cut at every step, altered bytes for the refusals.
// Verifies: INV-RUNE-IMMUTABLE, INV-EVENTID-MONOTONIC
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { Archive } from "#src/store/archive/Archive.ts"
import { readManifest } from "#src/store/archive/ArchiveFile.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { withCalls } from "../../runelog/Fixture.ts"
import { count, reportCount } from "../../support/counts.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { seedFor } from "../../support/seed.ts"
import { KIB, type Place, places, Scribe, smallLimits } from "../support.ts"

interface Subject {
  readonly runelog: Runelog
  readonly archive: Archive
  readonly store: RuneStore
  readonly archived: Array<string>
}

const open = async (disk: Disk, directory: string): Promise<Subject> => {
  const archived: Array<string> = []
  const runelog = await Runelog.open({ disk, directory, limits: { ...smallLimits, segmentBytes: 8 * KIB } })
  const archive = new Archive({ runelog, disk, directory, onArchived: async (id) => void archived.push(id) })
  return { runelog, archive, store: new RuneStore({ runelog, archive }), archived }
}

/** Everything a reader sees: bytes, ids and gaps. */
const readAll = async (store: RuneStore, id: string, bytesMax = 3000): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  for (let after = 0; ; ) {
    const page = await store.readBytesNow(id, { after, bytesMax })
    for (const { body, eventId, kind, lastEventId } of page.frames) {
      seen.push(`${eventId}-${lastEventId} ${kind === "thinned" ? "" : body.toString("utf8")}`)
    }
    if (page.next === after) return seen
    after = page.next
  }
}

/** A closed conversation in the log, its last rune appended as its actor would. */
const closed = async ({ archive, store }: Subject, scribe: Scribe): Promise<void> => {
  const { conversationId, runes } = scribe.close()
  await store.appendNow(conversationId, runes)
  const prepared = await archive.prepare(conversationId)
  await store.appendNow(conversationId, [scribe.add("session.archived", prepared)])
}

const longLife = (number = 1): Scribe => {
  const scribe = new Scribe(number).begin({ title: "long" })
  for (let turn = 0; turn < 8; turn++) scribe.turn("again", `${turn} words and more words `.repeat(30))
  return scribe
}

describe.each(places)("an archived conversation on %s", (_name, makePlace) => {
  let place: Place
  let subject: Subject

  beforeEach(async () => {
    place = makePlace()
    subject = await open(place.disk, place.directory)
  })
  afterEach(async () => {
    await subject.runelog.close()
    place.dispose()
  })

  it("reads as it did before, from every cursor and through every filter", async () => {
    const { archive, archived, runelog, store } = subject
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    await runelog.seal(id)
    const before = await readAll(store, id)
    expect(before.some((line) => / $/.test(line))).toBe(true)
    const page = { after: 3, visibilityMax: "public", families: ["turn", "tool"] } as const
    const filtered = await store.readNow(id, page)
    const outcome = await archive.commit(id)
    expect(outcome).toMatchObject({ location: `archive/${id}.arc`, head: scribe.runes.length })
    expect(archived).toEqual([id])
    expect(await runelog.list()).toEqual([])
    expect(await readAll(store, id)).toEqual(before)
    for (let after = 0; after < scribe.runes.length; after += 7) {
      const { frames } = await store.readBytesNow(id, { after, bytesMax: 100 })
      expect(before.some((line) => line.endsWith(` ${frames[0]?.kind === "thinned" ? "" : frames[0]?.body}`))).toBe(
        true
      )
      expect(frames[0]?.eventId).toBe(after + 1)
    }
    const again = await store.readNow(id, { ...page, bytesMax: 10_000_000 })
    expect(again.runes.slice(0, 10)).toEqual(filtered.runes.slice(0, 10))
    expect(await store.headNow(id)).toBe(scribe.runes.length)
    await expect(store.readNow(id, { after: 9999 })).rejects.toMatchObject({ _tag: "CursorBeyondEnd" })
    expect((await store.readNow(id, { after: scribe.runes.length })).runes).toEqual([])
    expect(await archive.verify(id)).toMatchObject({ conversation_id: id, head: scribe.runes.length })
    expect(await archive.row(id)).toMatchObject({ title: "long", view: { session: "archived" }, turns: 8 })
  })

  it("comes back byte for byte with its ids and goes on", async () => {
    const { archive, runelog, store } = subject
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    await runelog.seal(id)
    const before = await readAll(store, id)
    await archive.commit(id)
    expect(await archive.restore(id)).toEqual({ head: scribe.runes.length })
    expect(await archive.restore(id)).toEqual({ head: scribe.runes.length })
    expect(await runelog.list()).toEqual([id])
    expect(await readAll(store, id)).toEqual(before)
    // The archive stays until the conversation has gone on.
    await archive.forget(id)
    expect(await archive.has(id)).toBe(true)
    await store.appendNow(id, [scribe.add("session.restored", {})])
    await archive.forget(id)
    await archive.forget(id)
    expect(await archive.has(id)).toBe(false)
    expect((await readAll(store, id)).slice(0, -1)).toEqual(before)
    await subject.runelog.close()
    subject = await open(place.disk, place.directory)
    expect((await readAll(subject.store, id)).slice(0, -1)).toEqual(before)
    await closedAgain(subject, scribe)
    expect(await subject.archive.row(id)).toMatchObject({
      view: { session: "archived" },
      last_event_id: scribe.runes.length
    })
  })

  it("proves that nothing before its last rune was altered", async () => {
    const { archive, store } = subject
    const scribe = longLife()
    await closed(subject, scribe)
    const last = scribe.runes.at(-1)
    const manifest = await archive.commit(scribe.conversationId).then(() => archive.verify(scribe.conversationId))
    expect(last).toMatchObject({
      payload: { hash: manifest.segments.at(-2)?.sha256, location: `archive/${scribe.conversationId}.arc` }
    })
    expect(await store.headNow(scribe.conversationId)).toBe(scribe.runes.length)
  })

  it("is not made of one that is open, unknown or being written to", async () => {
    const { archive, store } = subject
    const scribe = new Scribe(1).begin()
    const { conversationId: id } = scribe
    await expect(archive.commit(id)).rejects.toMatchObject({ _tag: "ConversationUnknown" })
    await expect(archive.restore(id)).rejects.toMatchObject({ _tag: "ConversationUnknown" })
    await expect(archive.verify(id)).rejects.toMatchObject({ _tag: "ConversationUnknown" })
    await expect(archive.prepare(id)).rejects.toMatchObject({ _tag: "LogUnknown" })
    await store.appendNow(id, scribe.runes)
    await expect(archive.commit(id)).rejects.toThrow("its last rune is session.activated")
    expect(await archive.row("../x")).toBeUndefined()
    expect(await archive.has("../x")).toBe(false)
    expect(await archive.list()).toEqual([])
  })
})

const closedAgain = async ({ archive, store }: Subject, scribe: Scribe): Promise<void> => {
  const id = scribe.conversationId
  await store.appendNow(id, [scribe.add("session.archived", await archive.prepare(id))])
  await archive.commit(id)
}

describe("an archive", () => {
  const path = (id: string) => `/data/archive/${id}.arc`
  let disk: DiskSim
  let subject: Subject

  beforeEach(async () => {
    disk = new DiskSim()
    subject = await open(disk, "/data")
  })
  afterEach(async () => {
    await subject.runelog.close()
  })

  it("of a long conversation is read block by block", async () => {
    const scribe = new Scribe(1).begin()
    const lines = Array.from({ length: 40 }, (_, at) => `${at} ${"line ".repeat(9000)}`)
    for (const line of lines) scribe.turn(line, line)
    for (const rune of scribe.close().runes) await subject.store.appendNow(scribe.conversationId, [rune])
    await closedAgain(subject, scribe)
    const manifest = await readManifest(disk, path(scribe.conversationId), scribe.conversationId)
    const blocks = manifest.segments.flatMap((segment) => segment.blocks)
    expect(blocks.length).toBeGreaterThan(limits.archiveBlocksCached * 2)
    expect(blocks.every(({ bytes }) => bytes <= limits.archiveBlockBytes + 200 * KIB)).toBe(true)
    const finals: Array<number> = []
    for await (const page of subject.store.pagesNow(scribe.conversationId, { after: 0, families: ["session"] })) {
      finals.push(...page.runes.map((rune) => rune.event_id))
    }
    expect(finals).toEqual(scribe.runes.filter(({ kind }) => kind.startsWith("session.")).map((rune) => rune.event_id))
  })

  it("whose bytes changed is refused, whatever they were", async () => {
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    await subject.archive.commit(id)
    const file = await disk.open(path(id), "write")
    const size = await file.size()
    let refused = 0
    for (let at = 0; at < size; at += Math.max(1, Math.floor(size / 150))) {
      const byte = Buffer.alloc(1)
      await file.read(byte, 0, 1, at)
      await file.write(Buffer.from([byte[0]! ^ 0x40]), 0, 1, at)
      const fresh = new Archive({ runelog: subject.runelog, disk, directory: "/data" })
      const error = await fresh.verify(id).catch((thrown) => thrown)
      expect(["ArchiveDamaged", "ArchiveUnsupported"], `byte ${at}`).toContain(error._tag)
      const restored = await fresh.restore(id).catch((thrown) => thrown)
      expect(["ArchiveDamaged", "ArchiveUnsupported"], `byte ${at}`).toContain(restored._tag)
      refused += 1
      await file.write(byte, 0, 1, at)
    }
    for (const length of [0, 10, 40, size - 1]) {
      const fresh = new Archive({ runelog: subject.runelog, disk, directory: "/data" })
      const tail = Buffer.alloc(size - length)
      await file.read(tail, 0, tail.length, length)
      await file.truncate(length)
      await expect(fresh.readPage(id, { after: 0, bytesMax: 100 })).rejects.toMatchObject({ _tag: "ArchiveDamaged" })
      await file.write(tail, 0, tail.length, length)
    }
    await file.close()
    expect(refused).toBeGreaterThan(100)
    expect(subject.runelog.poisoned).toBeUndefined()
    await subject.archive.verify(id)
  })

  it("under the name of another conversation, or of a newer build, is refused", async () => {
    const scribe = longLife()
    await closed(subject, scribe)
    await subject.archive.commit(scribe.conversationId)
    const other = new Scribe(2).conversationId
    await disk.rename(path(scribe.conversationId), path(other))
    await expect(subject.archive.verify(other)).rejects.toThrow(`it belongs to ${scribe.conversationId}`)
    expect(await new Archive({ runelog: subject.runelog, disk, directory: "/data" }).has(scribe.conversationId)).toBe(
      false
    )
  })

  it("is read back before its log goes: bytes that the disk wrote wrong leave the log", async () => {
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    const before = await readAll(subject.store, id)
    let isWrong = true
    const openFile: Disk["open"] = async (name, mode) => {
      const file = await disk.open(name, mode)
      if (!isWrong || !name.endsWith(".arc.tmp") || mode !== "create") return file
      const write: typeof file.write = (buffer, offset, length, position) => {
        const bytes = Buffer.from(buffer.subarray(offset, offset + length))
        // The header is whole; one bit of what follows it is not.
        if (position === 16) bytes[length >> 1]! ^= 1
        return file.write(bytes, 0, length, position)
      }
      return new Proxy(file, {
        get: (target, member) => {
          if (member === "write") return write
          const value = Reflect.get(target, member) as unknown
          return typeof value === "function" ? value.bind(target) : value
        }
      })
    }
    const lying = withCalls(disk, { open: openFile })
    const archive = new Archive({ runelog: subject.runelog, disk: lying, directory: "/data" })
    await expect(archive.commit(id)).rejects.toMatchObject({ _tag: "ArchiveDamaged" })
    expect(await subject.runelog.list()).toEqual([id])
    expect(await disk.list("/data/archive")).toEqual([])
    isWrong = false
    await archive.commit(id)
    expect(await subject.runelog.list()).toEqual([])
    expect((await readAll(subject.store, id)).length).toBeLessThanOrEqual(before.length)
  })

  it("that finds no room leaves the log, and can be made later", async () => {
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    const before = await readAll(subject.store, id)
    disk.onOperation = ({ operation, path: changed }) => {
      if (operation === "write" && changed.endsWith(".arc.tmp")) throw systemError("ENOSPC", "write", changed)
    }
    await expect(subject.archive.commit(id)).rejects.toMatchObject({ _tag: "DiskFull" })
    expect(await subject.runelog.list()).toEqual([id])
    expect(await disk.list("/data/archive")).toEqual([])
    disk.onOperation = () => {}
    await subject.archive.commit(id)
    expect((await readAll(subject.store, id)).length).toBeLessThanOrEqual(before.length)
  })

  it("is not committed over an append that came meanwhile", async () => {
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    let late: Promise<void> | undefined
    disk.onOperation = ({ operation, path: changed }) => {
      if (operation === "sync" && changed.endsWith(".seg")) {
        late ??= subject.store.appendNow(id, [scribe.add("session.restored", {})])
      }
    }
    await expect(subject.archive.commit(id)).rejects.toThrow("something was appended meanwhile")
    await late
    disk.onOperation = () => {}
    expect(await subject.store.headNow(id)).toBe(scribe.runes.length)
    expect(await subject.archive.has(id)).toBe(false)
  })

  it("can be read while it comes and goes", async () => {
    const scribe = longLife()
    const { conversationId: id } = scribe
    await closed(subject, scribe)
    await subject.runelog.seal(id)
    const before = await readAll(subject.store, id)
    let reading = true
    const reader = (async () => {
      let reads = 0
      for (; reading; reads++) {
        expect(await readAll(subject.store, id)).toEqual(before)
        await new Promise((resolve) => setImmediate(resolve))
      }
      return reads
    })()
    for (let round = 0; round < 3; round++) {
      await subject.archive.commit(id)
      await subject.archive.restore(id)
    }
    reading = false
    expect(await reader).toBeGreaterThan(1)
  })
})

describe("what a crash interrupted", () => {
  it("is finished: archived where the last rune says so, restored where the log went on", async () => {
    const disk = new DiskSim()
    let subject = await open(disk, "/data")
    const archiving = longLife(1)
    const restoring = longLife(2)
    const restored = longLife(3)
    const shorter = longLife(4)
    const open5 = new Scribe(5).begin()
    await closed(subject, archiving)
    for (const scribe of [restoring, restored, shorter]) {
      await closed(subject, scribe)
      await subject.archive.commit(scribe.conversationId)
    }
    await subject.archive.restore(restoring.conversationId)
    await subject.archive.restore(restored.conversationId)
    await subject.store.appendNow(restored.conversationId, [restored.add("session.restored", {})])
    await subject.store.appendNow(shorter.conversationId, shorter.runes.slice(0, 5))
    await subject.store.appendNow(open5.conversationId, open5.runes)
    const leftover = await disk.open("/data/archive/conv_x.arc.tmp", "create")
    await leftover.close()
    const bad = await disk.open("/data/archive/conv_bad.arc", "create")
    await bad.close()
    await subject.runelog.append("conv_bad", 1, [{ body: "{}" }])
    await subject.runelog.close()
    subject = await open(disk, "/data")
    const settled = await subject.archive.settle([
      archiving.conversationId,
      restoring.conversationId,
      open5.conversationId
    ])
    expect(Object.fromEntries([...settled].map(([id, outcome]) => [id, outcome._tag]))).toEqual({
      [archiving.conversationId]: "Archived",
      [restoring.conversationId]: "Archived",
      [restored.conversationId]: "Restored",
      [shorter.conversationId]: "Kept",
      conv_bad: "Kept"
    })
    expect(await disk.exists("/data/archive/conv_x.arc.tmp")).toBe(false)
    expect(await subject.archive.has(restored.conversationId)).toBe(false)
    expect((await subject.runelog.list()).includes(restoring.conversationId)).toBe(false)
    expect(await subject.store.headNow(archiving.conversationId)).toBe(archiving.runes.length)
    await subject.runelog.close()
  })

  it("lets an archive that is being written alone", async () => {
    const disk = new DiskSim()
    const held = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const slow: Disk = {
      open: async (path, mode) => {
        const file = await disk.open(path, mode)
        if (mode !== "create" || !path.endsWith(".arc.tmp")) return file
        begun.resolve()
        await held.promise
        return file
      },
      makeDirectory: (path) => disk.makeDirectory(path),
      list: (path) => disk.list(path),
      rename: (from, to) => disk.rename(from, to),
      remove: (path) => disk.remove(path),
      removeTree: (path) => disk.removeTree(path),
      exists: (path) => disk.exists(path),
      syncDirectory: (path) => disk.syncDirectory(path),
      lock: (path) => disk.lock(path)
    }
    const subject = await open(slow, "/data")
    const scribe = longLife(1)
    await closed(subject, scribe)
    const archived = subject.archive.commit(scribe.conversationId)
    await begun.promise
    const settled = subject.archive.settle([])
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    held.resolve()
    expect((await archived).head).toBe(scribe.runes.length)
    await settled
    expect(await subject.archive.verify(scribe.conversationId)).toMatchObject({ head: scribe.runes.length })
    await subject.runelog.close()
  })

  it("does not touch what this process just brought back", async () => {
    const subject = await open(new DiskSim(), "/data")
    const scribe = longLife()
    await closed(subject, scribe)
    await subject.archive.commit(scribe.conversationId)
    await subject.archive.restore(scribe.conversationId)
    expect(await subject.archive.settle([scribe.conversationId])).toEqual(new Map())
    expect(await subject.runelog.list()).toEqual([scribe.conversationId])
    await subject.archive.commit(scribe.conversationId)
    await subject.runelog.close()
  })

  type Work = (subject: Subject, id: string) => Promise<unknown>
  const works: ReadonlyArray<readonly [string, (subject: Subject, scribe: Scribe) => Promise<void>, Work]> = [
    ["archiving", closed, ({ archive }, id) => archive.commit(id)],
    [
      "restoring",
      async (subject, scribe) => {
        await closed(subject, scribe)
        await subject.archive.commit(scribe.conversationId)
      },
      ({ archive }, id) => archive.restore(id)
    ],
    [
      "forgetting the archive",
      async (subject, scribe) => {
        await closed(subject, scribe)
        await subject.archive.commit(scribe.conversationId)
        await subject.archive.restore(scribe.conversationId)
        await subject.store.appendNow(scribe.conversationId, [scribe.add("session.restored", {})])
      },
      ({ archive }, id) => archive.forget(id)
    ]
  ]

  it.each(works)("at any step of %s leaves every rune in the log or in the archive", async (name, prepare, work) => {
    const seed = seedFor(`${name} crash`)
    const run = async (step: number) => {
      const disk = new DiskSim()
      const subject = await open(disk, "/data")
      const scribe = new Scribe(1).begin().turn()
      await prepare(subject, scribe)
      await subject.runelog.seal(scribe.conversationId).catch(() => undefined)
      // The journal would bring back deltas that the seal has dropped.
      await subject.runelog.checkpoint()
      const before = await readAll(subject.store, scribe.conversationId)
      const from = disk.operationCount
      disk.onOperation = ({ index }) => {
        if (index - from === step) disk.powerOff()
      }
      await work(subject, scribe.conversationId).catch(() => undefined)
      const steps = disk.operationCount - from
      await subject.runelog.close().catch(() => undefined)
      return { before, disk, id: scribe.conversationId, steps }
    }
    const { steps } = await run(Number.POSITIVE_INFINITY)
    const draws = count(`${name} crash draws`, { fast: 2, soak: 30 })
    let crashes = 0
    for (let step = 0; step <= steps; step++) {
      const { before, disk, id } = await run(step)
      for (let draw = 0; draw < draws; draw++) {
        const found = disk.crash(seed + step * 1000 + draw)
        const after = await open(found, "/data")
        expect(await readAll(after.store, id), `step ${step} draw ${draw}`).toEqual(before)
        await after.archive.settle([id])
        expect(await readAll(after.store, id), `settled, step ${step} draw ${draw}`).toEqual(before)
        if (await after.archive.has(id)) await after.archive.verify(id)
        await after.runelog.close()
        crashes += 1
      }
    }
    reportCount(`${name} crashes`, crashes)
  })
})
