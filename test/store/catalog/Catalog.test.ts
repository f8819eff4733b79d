// Goal: the catalog follows the logs, survives every loss of itself, and is never trusted over them. Method: a store on
// the real disk; rows missing, ahead, behind; the file deleted, damaged, foreign; the machine dying in between.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { AnyRune } from "#src/rune/Rune.ts"
import { Catalog, type CatalogFault, type CatalogOptions, type CatalogSource } from "#src/store/catalog/Catalog.ts"
import { CatalogDatabase } from "#src/store/catalog/CatalogDatabase.ts"
import { emptyRow, type RowState } from "#src/store/catalog/CatalogRow.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { conversationIdOf, type Place, realPlace, Scribe } from "../support.ts"

/** Conversations as plain lists of runes. */
class Logs implements CatalogSource {
  readonly runes = new Map<string, ReadonlyArray<AnyRune>>()
  readonly rows = new Map<string, RowState>()
  readonly broken = new Set<string>()
  reads = 0

  unopenable = false
  readonly conversations = async () => this.runes.keys()
  readonly head = async (id: string) => {
    if (this.unopenable) throw new Error("foreign file")
    return this.runes.get(id)?.at(-1)?.event_id ?? 0
  }
  readonly archivedRow = async (id: string) => this.rows.get(id)

  async *pages(id: string, after: number) {
    this.reads += 1
    const runes = (this.runes.get(id) ?? []).filter((rune) => rune.event_id > after)
    const head = await this.head(id)
    const middle = Math.ceil(runes.length / 2)
    yield { runes: runes.slice(0, middle), gaps: [], next: runes[middle - 1]?.event_id ?? after, head }
    if (this.broken.has(id)) throw new Error("torn at byte 7")
    yield { runes: runes.slice(middle), gaps: [], next: head, head }
  }

  put(scribe: Scribe): Scribe {
    this.runes.set(scribe.conversationId, scribe.runes)
    return scribe
  }
}

let place: Place
let logs: Logs
let faults: Array<CatalogFault>
let catalog: Catalog
const path = () => `${place.directory}/catalog.sqlite`

const open = async (change: Partial<CatalogOptions> = {}): Promise<Catalog> => {
  catalog = await Catalog.open({
    source: logs,
    disk: place.disk,
    path: path(),
    directoryId: "here",
    onFault: (fault) => faults.push(fault),
    ...change
  })
  return catalog
}

beforeEach(async () => {
  place = realPlace()
  logs = new Logs()
  faults = []
})
afterEach(async () => {
  await catalog.close()
  place.dispose()
})

const heads = () => catalog.list().items.map((row) => [row.conversation_id, row.last_event_id])

describe("the catalog", () => {
  it("follows durable runes without reading the log", async () => {
    await open()
    expect(catalog.openState).toBe("fresh")
    const { conversationId, runes } = logs.put(new Scribe(1).begin({ title: "a" }).turn())
    catalog.observe(conversationId, runes.slice(0, 6))
    catalog.observe(conversationId, runes.slice(6, 7))
    catalog.observe(conversationId, [])
    catalog.observe(conversationId, runes.slice(7))
    await catalog.flush()
    expect(logs.reads).toBe(0)
    expect(heads()).toEqual([[conversationId, runes.length]])
    expect(catalog.get(conversationId)).toMatchObject({ title: "a", turns: 1, unfinished: false })
    expect(catalog.get(conversationIdOf(9))).toBeUndefined()
    expect(catalog.count()).toBe(1)
  })

  it("writes by itself after a moment", async () => {
    await open({ flushMs: 1 })
    const { conversationId, runes } = logs.put(new Scribe(1).begin())
    catalog.observe(conversationId, runes)
    await vi.waitFor(() => expect(catalog.list().items).toHaveLength(1))
  })

  it("writes no row for fragments, and a row that changes all the time once a second", async () => {
    let monotonicMs = 0
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const later = async (): Promise<void> => {
      monotonicMs += 100
      await vi.advanceTimersByTimeAsync(100)
      for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    const saves = vi.spyOn(CatalogDatabase.prototype, "save")
    await open({ flushMs: 1, monotonicMs: () => monotonicMs })
    const scribe = logs.put(new Scribe(1).begin())
    const tell = (): void => catalog.observe(scribe.conversationId, scribe.runes.slice(told))
    let told = 0
    tell()
    await catalog.flush()
    expect(saves).toHaveBeenCalledTimes(1)
    for (let at = 0; at < 50; at++) {
      told = scribe.runes.length
      scribe.add("turn.assistant_delta", { content: "x" })
      tell()
      await catalog.flush()
      await later()
    }
    expect(saves).toHaveBeenCalledTimes(1)
    const head = scribe.runes.length
    expect(heads()).toEqual([[scribe.conversationId, head]])
    expect(catalog.get(scribe.conversationId)?.last_event_id).toBe(head)
    expect(catalog.changedSince(scribe.runes.at(-1)!.ts_ms)).toEqual([scribe.conversationId])
    for (let at = 0; at < 50; at++) {
      told = scribe.runes.length
      scribe.add("session.paused", { reason: "x" })
      tell()
      await later()
    }
    // Five seconds of changes.
    expect(saves.mock.calls.length - 1).toBeGreaterThanOrEqual(4)
    expect(saves.mock.calls.length - 1).toBeLessThanOrEqual(6)
    await catalog.close()
    saves.mockRestore()
    vi.useRealTimers()
    await open()
    expect(heads()).toEqual([[scribe.conversationId, scribe.runes.length]])
    expect(logs.reads).toBe(0)
  })

  it("reads from the log what it was not told", async () => {
    await open()
    const { conversationId, runes } = logs.put(new Scribe(1).begin().turn())
    catalog.observe(conversationId, runes.slice(3, 5))
    await catalog.flush()
    expect(heads()).toEqual([[conversationId, runes.length]])
    expect(logs.reads).toBe(1)
    const other = logs.put(new Scribe(2).begin().turn())
    catalog.observe(other.conversationId, other.runes.slice(0, 2))
    catalog.observe(other.conversationId, other.runes.slice(4, 6))
    catalog.observe(other.conversationId, other.runes.slice(6))
    await catalog.flush()
    expect(catalog.get(other.conversationId)?.last_event_id).toBe(other.runes.length)
    expect(logs.reads).toBe(2)
  })

  it("forgets runes rather than filling memory", async () => {
    await open()
    const scribe = logs.put(new Scribe(1).begin())
    while (scribe.runes.length < limits.catalogPendingRunes + 10) scribe.add("session.paused", { reason: "x" })
    for (let at = 0; at < scribe.runes.length; at += 1000) {
      catalog.observe(scribe.conversationId, scribe.runes.slice(at, at + 1000))
    }
    await catalog.flush()
    expect(logs.reads).toBe(1)
    expect(catalog.get(scribe.conversationId)?.last_event_id).toBe(scribe.runes.length)
  })

  it("keeps no more rows in memory than it may, and reads them again", async () => {
    await open()
    const scribes = Array.from({ length: limits.catalogResidentRows + 5 }, (_, at) => logs.put(new Scribe(at).begin()))
    for (const { conversationId, runes } of scribes) catalog.observe(conversationId, runes)
    await catalog.flush()
    const first = scribes[0]!
    first.turn()
    catalog.observe(first.conversationId, first.runes.slice(4))
    await catalog.flush()
    expect(catalog.get(first.conversationId)).toMatchObject({ turns: 1, last_event_id: first.runes.length })
    expect(logs.reads).toBe(0)
    expect(catalog.count()).toBe(scribes.length)
  })

  it("is trusted after a clean close and looked at after any other end", async () => {
    await open()
    const { conversationId, runes } = logs.put(new Scribe(1).begin())
    await catalog.check({ only: "presence" })
    expect(heads()).toEqual([[conversationId, runes.length]])
    await catalog.close()
    await catalog.close()
    expect((await open()).openState).toBe("clean")
    for (const suffix of ["", "-wal"]) copyFileSync(`${path()}${suffix}`, `${path()}.crashed${suffix}`)
    await catalog.close()
    for (const suffix of ["", "-wal"]) copyFileSync(`${path()}.crashed${suffix}`, `${path()}${suffix}`)
    expect((await open()).openState).toBe("unclean")
  })

  it("that could not finish looking is looked at again", async () => {
    await open()
    logs.put(new Scribe(1).begin())
    catalog.stop()
    await catalog.check({ only: "presence" })
    await catalog.close()
    expect((await open()).openState).toBe("unclean")
    await catalog.check({ only: "presence" })
    await catalog.close()
    expect((await open()).openState).toBe("unclean")
    await catalog.check({ only: "all" })
    await catalog.close()
    expect((await open()).openState).toBe("clean")
  })

  it("finds rows that are missing, behind, ahead or without a conversation", async () => {
    await open()
    const behind = logs.put(new Scribe(1).begin())
    const ahead = logs.put(new Scribe(2).begin().turn())
    const gone = logs.put(new Scribe(3).begin())
    const same = logs.put(new Scribe(4).begin())
    await catalog.check({ only: "presence" })
    behind.turn()
    logs.runes.set(ahead.conversationId, ahead.runes.slice(0, 5))
    logs.runes.delete(gone.conversationId)
    const missing = logs.put(new Scribe(5).begin())
    expect(await catalog.check({ only: "suspects", suspects: [behind.conversationId] })).toEqual({
      checked: 1,
      doubted: 1,
      surplus: 0
    })
    expect(await catalog.check({ only: "all" })).toEqual({ checked: 4, doubted: 2, surplus: 1 })
    const known = new Map(heads() as Array<[string, number]>)
    expect(known).toEqual(
      new Map([
        [behind.conversationId, behind.runes.length],
        [ahead.conversationId, 5],
        [same.conversationId, 4],
        [missing.conversationId, 4]
      ])
    )
    expect(catalog.get(ahead.conversationId)).toMatchObject({ turns: 1, unfinished: true })
    expect(await catalog.check({ only: "all" })).toMatchObject({ doubted: 0, surplus: 0 })
  })

  it("takes the row that an archive carries instead of reading it", async () => {
    await open()
    const archived = logs.put(new Scribe(1).begin().turn().close())
    const row = { ...emptyRow(archived.conversationId), title: "kept", last_event_id: archived.runes.length }
    logs.rows.set(archived.conversationId, row)
    await catalog.check({ only: "presence" })
    expect(catalog.get(archived.conversationId)?.title).toBe("kept")
  })

  it("shows what can be read of a damaged log, and why it is not more", async () => {
    await open()
    const { conversationId, runes } = logs.put(new Scribe(1).begin().turn())
    logs.broken.add(conversationId)
    await catalog.check({ only: "presence" })
    expect(catalog.get(conversationId)).toMatchObject({ damaged: "torn at byte 7", title: "run the tests" })
    expect(catalog.get(conversationId)?.last_event_id).toBeLessThan(runes.length)
    logs.broken.delete(conversationId)
    catalog.doubt(conversationId)
    await catalog.flush()
    expect(catalog.get(conversationId)).not.toHaveProperty("damaged")
    logs.unopenable = true
    await catalog.check({ only: "all" })
    expect(catalog.get(conversationId)).toMatchObject({ damaged: "foreign file" })
  })

  it("lists unfinished work and every conversation of a state", async () => {
    await open()
    const scribes = Array.from({ length: 2100 }, (_, at) => logs.put(new Scribe(at).begin()))
    scribes[3]?.startTurn("go")
    scribes[5]?.close()
    await catalog.check({ only: "presence" })
    expect(catalog.unfinished()).toEqual([conversationIdOf(3)])
    const active: Array<string> = []
    for await (const id of catalog.inState("active")) active.push(id)
    expect(active).toHaveLength(2099)
    expect(new Set(active).size).toBe(2099)
  })
})

describe("a database that cannot be used", () => {
  const filled = async (): Promise<Scribe> => {
    await open()
    const scribe = logs.put(new Scribe(1).begin({ title: "mine" }))
    await catalog.check({ only: "presence" })
    await catalog.close()
    return scribe
  }

  it.each<readonly [string, () => void]>([
    ["is no database", () => writeFileSync(path(), "not a database at all".repeat(100))],
    ["is of another format", () => alter("UPDATE meta SET value = '0.0 here' WHERE key = 'identity'")],
    ["is of another directory", () => alter("UPDATE meta SET value = '1.1 elsewhere' WHERE key = 'identity'")],
    ["has other tables", () => alter("DROP TABLE meta")]
  ])("because it %s is set aside and filled again", async (_why, damage) => {
    const { conversationId } = await filled()
    damage()
    await open()
    expect(catalog.openState).toBe("fresh")
    expect(faults).toEqual([expect.objectContaining({ path: path(), movedTo: `${path()}.old` })])
    expect(existsSync(`${path()}.old`)).toBe(true)
    await catalog.check({ only: "presence" })
    expect(heads()).toEqual([[conversationId, 4]])
    await catalog.close()
    damage()
    await open()
    expect(existsSync(`${path()}.old2`)).toBe(true)
  })

  it("because it is gone is filled again", async () => {
    const { conversationId } = await filled()
    for (const name of readdirSync(place.directory)) rmSync(`${place.directory}/${name}`)
    await open()
    expect(catalog.openState).toBe("fresh")
    await catalog.check({ only: "presence" })
    expect(heads()).toEqual([[conversationId, 4]])
    expect(faults).toEqual([])
  })

  it("because it was damaged under way is replaced while everything goes on", async () => {
    const { conversationId, runes } = await filled()
    await open()
    damagePages()
    const other = logs.put(new Scribe(2).begin())
    catalog.observe(other.conversationId, other.runes)
    await catalog.flush()
    await vi.waitFor(async () => {
      await catalog.flush()
      expect(heads()).toHaveLength(2)
    })
    expect(new Map(heads() as Array<[string, number]>)).toEqual(
      new Map([
        [conversationId, runes.length],
        [other.conversationId, 4]
      ])
    )
    expect(faults.some(({ movedTo }) => movedTo !== undefined)).toBe(true)
    await catalog.close()
    expect((await open()).openState).toBe("clean")
  })

  it("for a moment loses no row", async () => {
    await open()
    const { conversationId, runes } = logs.put(new Scribe(1).begin())
    const lock = new DatabaseSync(path())
    lock.exec("BEGIN EXCLUSIVE")
    catalog.observe(conversationId, runes)
    await catalog.flush()
    expect(faults).toHaveLength(1)
    lock.exec("COMMIT")
    lock.close()
    await catalog.flush()
    expect(heads()).toEqual([[conversationId, 4]])
  })

  it("because there is no place for it is kept in memory", async () => {
    await open({ path: `${place.directory}/no/such/place` })
    expect(catalog.openState).toBe("fresh")
    const { conversationId, runes } = logs.put(new Scribe(1).begin())
    catalog.observe(conversationId, runes)
    await catalog.flush()
    expect(heads()).toEqual([[conversationId, 4]])
    expect(faults.at(-1)?.reason).toContain("in memory")
  })

  it("because one row in it is not what was written is filled again", async () => {
    const { conversationId } = await filled()
    alter("UPDATE conversations SET fold = '{'")
    await open()
    expect(catalog.list()).toMatchObject({ items: [], rebuilding: true })
    await vi.waitFor(() => expect(catalog.list()).not.toHaveProperty("rebuilding"))
    expect(heads()).toEqual([[conversationId, 4]])
  })

  it("answers all the same while it is replaced, and says so", async () => {
    const { conversationId } = await filled()
    await open()
    expect(catalog.list()).not.toHaveProperty("rebuilding")
    damagePages()
    expect([catalog.list().rebuilding, catalog.count(), catalog.unfinished()]).toEqual([true, 0, []])
    expect([catalog.get(conversationId), catalog.needing(), catalog.changedSince(0)]).toEqual([undefined, [], []])
    await vi.waitFor(() => expect(catalog.list()).not.toHaveProperty("rebuilding"))
    expect(heads()).toEqual([[conversationId, 4]])
  })

  it("is replaced a few times, then kept in memory", async () => {
    await filled()
    await open()
    const { heads: real } = CatalogDatabase.prototype
    // A disk on which every file goes bad.
    const spoilt = vi.spyOn(CatalogDatabase.prototype, "heads").mockImplementation(function (
      this: CatalogDatabase,
      ...range
    ) {
      if (this.database.location() === null) return real.apply(this, range)
      throw Object.assign(new Error("disk I/O error"), { errcode: 10 })
    })
    await catalog.check({ only: "all" })
    await vi.waitFor(() => expect(catalog.list()).not.toHaveProperty("rebuilding"))
    expect(readdirSync(place.directory).filter((name) => name.includes(".old"))).toHaveLength(limits.catalogFilesMax)
    expect(heads()).toHaveLength(1)
    spoilt.mockRestore()
  })

  it("whatever was done to its bytes, at rest or under way, stops nobody and is true again", async () => {
    const scribes = Array.from({ length: 40 }, (_, at) => logs.put(new Scribe(at).begin({ title: `title ${at}` })))
    const { random, report } = damages("catalog")
    for (let round = 0; round < ROUNDS; round++) {
      await open()
      await catalog.check({ only: "all" })
      await catalog.close()
      const isUnderWay = random() < 0.5
      if (isUnderWay) await open()
      damageFile(random)
      if (!isUnderWay) await open()
      for (const { conversationId } of scribes) catalog.get(conversationId)
      const before = catalog.list({ limit: 200 })
      expect(before.rebuilding === true || before.items.length <= scribes.length).toBe(true)
      catalog.observe(scribes[0]!.conversationId, scribes[0]!.runes)
      await catalog.check({ only: "all" })
      await vi.waitFor(() => expect(catalog.list()).not.toHaveProperty("rebuilding"))
      expect(new Set(catalog.list({ limit: 200 }).items.map(({ conversation_id: id }) => id)).size).toBe(scribes.length)
      await catalog.close()
      for (const name of readdirSync(place.directory)) rmSync(`${place.directory}/${name}`, { recursive: true })
    }
    report(ROUNDS)
  })

  const alter = (sql: string): void => {
    const database = new DatabaseSync(path())
    database.exec(sql)
    database.close()
  }

  const ROUNDS = 60

  const damages = (name: string) => {
    const random = randomFrom(seedFor(name))
    return { random, report: (count: number) => reportCount("catalogs damaged at random", count) }
  }

  /** Flips, blanks, cuts, removes or replaces the file. */
  const damageFile = (random: () => number): void => {
    const bytes = readFileSync(path())
    const at = Math.floor(random() * bytes.length)
    const kind = Math.floor(random() * 5)
    if (kind === 0) for (let flip = 0; flip < 40; flip++) bytes[Math.floor(random() * bytes.length)]! ^= 0xff
    if (kind === 1) bytes.fill(0, at, Math.min(bytes.length, at + 4096))
    if (kind <= 1) writeFileSync(path(), bytes, { flag: "r+" })
    if (kind === 2) truncateSync(path(), at)
    if (kind >= 3) rmSync(path())
    if (kind === 4) mkdirSync(path())
  }

  /** Overwrites everything behind the first page, under the open database. */
  const damagePages = (): void => {
    const database = new DatabaseSync(path())
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    for (const suffix of ["-wal", "-shm"]) if (existsSync(`${path()}${suffix}`)) rmSync(`${path()}${suffix}`)
    writeFileSync(path(), Buffer.alloc(64 * 1024, 0x5a), { flag: "r+" })
  }
})
