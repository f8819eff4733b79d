// Goal: a log can leave a directory and come back, or come in from outside, byte for byte, and a crash at any step leaves
// either no log or the whole one. Method: the real disk and the one in memory for the facts, the simulated disk cut
// at every step for the crashes, altered bytes for the refusals.
// Verifies: INV-RUNE-IMMUTABLE, INV-SEGMENT-CONTIGUOUS
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import type { RunelogOptions } from "#runelog/Options.ts"
import { Runelog } from "#runelog/Runelog.ts"
import type { SealedFile, SegmentSource } from "#runelog/recovery/Import.ts"
import { count, reportCount } from "../../support/counts.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { seedFor } from "../../support/seed.ts"

const KIB = 1024
const small = {
  journalFileBytes: 256 * KIB,
  reserveBytes: 16 * KIB,
  batchBytesMax: 64 * KIB,
  bodyBytesMax: 1024 * KIB,
  segmentBytes: 2 * KIB,
  pendingBytesMax: 1024 * KIB
}

const directories: Array<string> = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const realDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "runelog-import-"))
  directories.push(directory)
  return directory
}

const open = (disk: Disk, directory: string, limits: RunelogOptions["limits"] = small) =>
  Runelog.open({ disk, directory, limits })

const bodyOf = (id: number): string => `{"event":${id},"text":"${"x".repeat((id * 37) % 200)}"}`

const entry = (id: number, more: Partial<Entry> = {}): Entry => ({
  body: bodyOf(id),
  family: 1 + (id % 3),
  visibility: id % 3,
  ...more
})

/** Deltas of two streams, finals that supersede them, and plain entries between. */
const history = (length: number): Array<Entry> =>
  Array.from({ length }, (_, index) => {
    const id = index + 1
    if (id % 10 === 0) return entry(id, { stream: 7, role: "supersedes" })
    return id % 3 === 0 ? entry(id) : entry(id, { stream: 7, role: "delta" })
  })

const fill = async (log: Runelog, name: string, entries: ReadonlyArray<Entry>): Promise<void> => {
  const head = await log.head(name)
  for (const [index, one] of entries.entries()) await log.append(name, head + index + 1, [one])
}

interface Seen {
  readonly eventId: number
  readonly lastEventId: number
  readonly text: string
  readonly header: string
}

const readAll = async (log: Runelog, name: string): Promise<ReadonlyArray<Seen>> => {
  const seen: Array<Seen> = []
  for (let after = 0; ; ) {
    const page = await log.read(name, { after, bytesMax: 700 })
    for (const { body, eventId, family, kind, lastEventId, stream, visibility } of page.frames) {
      const text = kind === "thinned" ? "" : body.toString("utf8")
      seen.push({ eventId, lastEventId, text, header: `${kind} ${family} ${stream} ${visibility}` })
    }
    if (page.next === after) return seen
    after = page.next
  }
}

const copyOf = async (files: ReadonlyArray<SealedFile>): Promise<ReadonlyArray<Buffer>> => {
  const copies: Array<Buffer> = []
  for (const file of files) copies.push(await file.read(0, file.bytes))
  return copies
}

async function* sources(files: ReadonlyArray<{ readonly firstEventId: number }>, copies: ReadonlyArray<Buffer>) {
  for (const [index, { firstEventId }] of files.entries()) {
    const bytes = copies[index]!
    const source: SegmentSource = { firstEventId, chunks: [bytes.subarray(0, 100), bytes.subarray(100)] }
    yield source
  }
}

async function* each<A>(items: ReadonlyArray<A>) {
  yield* items
}

const places: ReadonlyArray<readonly [string, () => { readonly disk: Disk; readonly directory: string }]> = [
  ["DiskNode", () => ({ disk: makeDiskNode(), directory: realDirectory() })],
  ["DiskMemory", () => ({ disk: makeDiskMemory(), directory: "/data" })]
]

describe.each(places)("a log that comes back, on %s", (_name, place) => {
  it("has the same frames, gaps and ids, and goes on from there", async () => {
    const { directory, disk } = place()
    const log = await open(disk, directory)
    await fill(log, "a", history(60))
    const files = await log.sealedFiles("a")
    expect(files.length).toBeGreaterThan(2)
    expect(files.at(-1)?.lastEventId).toBe(60)
    const copies = await copyOf(files)
    const before = await readAll(log, "a")
    expect(before.some(({ header }) => header.startsWith("thinned"))).toBe(true)
    await log.remove("a")
    expect(await log.head("a")).toBe(0)

    const imported = await log.importSegments("a", sources(files, copies))
    expect(imported).toMatchObject({ head: 60, sha256: files.at(-1)?.sha256 })
    expect(await readAll(log, "a")).toEqual(before)
    await fill(log, "a", [entry(61), entry(62)])
    await log.close()

    const again = await open(disk, directory)
    expect((await readAll(again, "a")).slice(0, before.length)).toEqual(before)
    expect(await again.head("a")).toBe(62)
    expect(await copyOf((await again.sealedFiles("a")).slice(0, files.length))).toEqual(copies)
    await again.close()
  })

  it("survives a restart without a clean close, also when its removal is still in the journal", async () => {
    const { directory, disk } = place()
    const log = await open(disk, directory)
    await fill(log, "a", history(20))
    const files = await log.sealedFiles("a")
    const copies = await copyOf(files)
    const before = await readAll(log, "a")
    await log.remove("a")
    await log.importSegments("a", sources(files, copies))
    await log.append("a", 21, [entry(21)])
    await log.close()
    const again = await open(disk, directory)
    expect((await readAll(again, "a")).slice(0, before.length)).toEqual(before)
    await again.close()
  })
})

describe("the sealed files of a log", () => {
  it("end where something was appended after the seal", async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    await fill(log, "a", [entry(1), entry(2)])
    let late: Promise<void> | undefined
    disk.onOperation = ({ operation, path }) => {
      if (operation === "sync" && path.endsWith(".seg")) late ??= log.append("a", 3, [entry(3)])
    }
    const files = await log.sealedFiles("a")
    await late
    expect(files.map(({ firstEventId, lastEventId }) => [firstEventId, lastEventId])).toEqual([[1, 2]])
    expect(await log.head("a")).toBe(3)
    disk.onOperation = () => {}
    await log.close()
  })
})

describe("a removal that names the newest event", () => {
  it("does not take what was appended meanwhile", async () => {
    const log = await open(new DiskSim(), "/data")
    await fill(log, "a", [entry(1), entry(2)])
    const late = log.append("a", 3, [entry(3)])
    await expect(log.remove("a", { head: 2 })).rejects.toThrow(
      'log "a" has gone on to event 3; it was to be removed at 2'
    )
    await late
    await log.append("a", 4, [entry(4)])
    expect(await log.head("a")).toBe(4)
    await log.remove("a", { head: 4 })
    expect(await log.head("a")).toBe(0)
    await log.close()
  })
})

describe("a log built from entries", () => {
  it("reads back as if it had been appended, over several segments", async () => {
    const disk = makeDiskMemory()
    const log = await open(disk, "/data")
    const entries = Array.from({ length: 50 }, (_, index) => entry(index + 1, { stream: index }))
    await log.importEntries("built", each(entries))
    await fill(log, "appended", entries)
    expect(await readAll(log, "built")).toEqual(await readAll(log, "appended"))
    expect((await disk.list("/data/runelog/built")).filter(({ name }) => name.endsWith(".seg")).length).toBeGreaterThan(
      2
    )
    await log.append("built", 51, [entry(51)])
    await log.close()
    const again = await open(disk, "/data")
    expect(await again.head("built")).toBe(51)
    await again.close()
  })

  it("holds entries larger than its buffer, bytes as well as text", async () => {
    const log = await open(makeDiskMemory(), "/data", {
      journalFileBytes: 8192 * KIB,
      segmentBytes: 4096 * KIB
    })
    const text = "€".repeat(300 * KIB)
    const bytes = Buffer.alloc(900 * KIB, 7)
    await log.importEntries("large", each([entry(1), { body: text }, { body: bytes }, entry(4)]))
    const page = await log.read("large", { after: 0, bytesMax: 8192 * KIB })
    expect(page.frames.map(({ body }) => body.length)).toEqual([
      Buffer.byteLength(bodyOf(1)),
      900 * KIB,
      900 * KIB,
      Buffer.byteLength(bodyOf(4))
    ])
    expect(page.frames[1]?.body.toString("utf8")).toBe(text)
    expect(page.frames[2]?.body.equals(bytes)).toBe(true)
    await log.close()
  })

  it("keeps the roles of its entries", async () => {
    const disk = makeDiskMemory()
    const log = await open(disk, "/data", { ...small, segmentBytes: 64 * KIB })
    await log.importEntries("a", each(history(20)))
    const [file] = await log.sealedFiles("a")
    const bytes = await file!.read(0, file!.bytes)
    const flagsAt = (id: number) => {
      let at = 128
      for (let skipped = 1; skipped < id; skipped++) at += 32 + bytes.readUInt32LE(at + 8)
      return bytes[at + 13]! & 0b11_0000
    }
    expect([1, 3, 10].map(flagsAt)).toEqual([0b01_0000, 0, 0b10_0000])
    await log.close()
  })

  it("does not come to be when one of its entries is refused", async () => {
    const disk = makeDiskMemory()
    const log = await open(disk, "/data")
    const entries = [entry(1), { body: "x", family: 300 }]
    await expect(log.importEntries("bad", each(entries))).rejects.toMatchObject({ _tag: "EntryInvalid" })
    expect(await log.list()).toEqual([])
    expect(await disk.list("/data/import")).toEqual([])
    await log.importEntries("bad", each([entry(1)]))
    expect(await log.head("bad")).toBe(1)
    await log.close()
  })

  it("does not come to be when its source fails, and the writer goes on", async () => {
    const log = await open(makeDiskMemory(), "/data")
    async function* failing(error: Error) {
      yield entry(1)
      throw error
    }
    await expect(log.importEntries("a", failing(new Error("gone")))).rejects.toThrow("gone")
    const fromAnotherDisk = systemError("EIO", "read", "elsewhere")
    await expect(log.importEntries("a", failing(fromAnotherDisk))).rejects.toMatchObject({ _tag: "ImportRefused" })
    expect(log.poisoned).toBeUndefined()
    await log.append("a", 1, [entry(1)])
    await log.close()
  })

  it("is unknown to everybody until it is there", async () => {
    const log = await open(makeDiskMemory(), "/data")
    const seen: Array<unknown> = []
    async function* watching() {
      yield entry(1)
      await log.append("a", 1, [entry(1)]).catch((error) => seen.push(error._tag))
      await log.read("a", { after: 0 }).catch((error) => seen.push(error._tag))
      await log.importEntries("a", each([entry(1)])).catch((error) => seen.push(error._tag))
      yield entry(2)
    }
    await log.importEntries("a", watching())
    expect(seen).toEqual(["LogUnknown", "LogUnknown", "LogExists"])
    expect(await log.head("a")).toBe(2)
    await log.close()
  })
})

describe("an import is refused", () => {
  const prepared = async () => {
    const disk = makeDiskMemory()
    const log = await open(disk, "/data")
    await fill(log, "a", history(40))
    const files = await log.sealedFiles("a")
    const copies = await copyOf(files)
    await log.remove("a")
    return { disk, log, files, copies }
  }

  it("where a log of that name is", async () => {
    const { copies, files, log } = await prepared()
    await log.append("a", 1, [entry(1)])
    await expect(log.importSegments("a", sources(files, copies))).rejects.toThrow('there is a log "a" already')
    await expect(log.importSegments("../a", sources(files, copies))).rejects.toMatchObject({ _tag: "LogNameInvalid" })
    await log.close()
  })

  it("with a byte that is not as it was, wherever it is", async () => {
    const { copies, disk, files, log } = await prepared()
    let refused = 0
    for (let segment = 0; segment < copies.length; segment++) {
      for (let at = 0; at < copies[segment]!.length; at += 7) {
        const altered = copies.map((bytes) => Buffer.from(bytes))
        altered[segment]![at]! ^= 1
        const outcome = await log.importSegments("a", sources(files, altered)).catch((error) => error)
        expect(outcome).toMatchObject({ _tag: "ImportRefused", segment, log: "a" })
        refused += 1
      }
    }
    expect(refused).toBeGreaterThan(100)
    expect(await disk.list("/data/import")).toEqual([])
    await log.importSegments("a", sources(files, copies))
    await log.close()
  })

  it("when there is nothing to import", async () => {
    const log = await open(makeDiskMemory(), "/data")
    await expect(log.importEntries("a", each([]))).rejects.toThrow("there is nothing in it")
    await log.close()
  })

  it.each([
    ["without a segment", (all: ReadonlyArray<Buffer>) => all.slice(0, 0), "there is nothing in it"],
    ["cut short", (all: ReadonlyArray<Buffer>) => [all[0]!.subarray(0, 600)], "the file ends inside a frame"],
    ["without its seal", (all: ReadonlyArray<Buffer>) => [withoutSeal(all[0]!)], "the segment is not sealed"],
    [
      "with bytes behind its seal",
      (all: ReadonlyArray<Buffer>) => [Buffer.concat([all[0]!, Buffer.alloc(3)])],
      "bytes behind the seal"
    ],
    ["without its header", (all: ReadonlyArray<Buffer>) => [all[0]!.subarray(0, 20)], "the segment header is cut short"]
  ])("%s", async (_what, change, reason) => {
    const { copies, files, log } = await prepared()
    const changed = change(copies)
    const outcome = log.importSegments("a", sources(files.slice(0, changed.length), changed))
    await expect(outcome).rejects.toMatchObject({ _tag: "ImportRefused", reason })
    await log.close()
  })

  it("under another name, in another order, or as a mixture of two logs", async () => {
    const { copies, files, log } = await prepared()
    await expect(log.importSegments("b", sources(files, copies))).rejects.toThrow('belongs to log "a"')
    const swapped = log.importSegments("a", sources(files, [copies[1]!, copies[0]!, ...copies.slice(2)]))
    await expect(swapped).rejects.toThrow("starts at event")
    await fill(
      log,
      "a",
      history(40).map((one) => ({ ...one, visibility: 0 }))
    )
    const others = await log.sealedFiles("a")
    const otherCopies = await copyOf(others)
    await log.remove("a")
    const mixed = log.importSegments("a", sources(files, [copies[0]!, ...otherCopies.slice(1)]))
    await expect(mixed).rejects.toMatchObject({ _tag: "ImportRefused" })
    await log.close()
  })

  it("on a log with recorded damage, on a poisoned writer and on a closed one", async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    await fill(log, "a", history(5))
    const files = await log.sealedFiles("a")
    const copies = await copyOf(files)
    await log.remove("a")
    await log.close()
    await disk.makeDirectory("/data/quarantine")
    const record = await disk.open("/data/quarantine/a.json", "create")
    await record.close()
    const again = await open(disk, "/data")
    await expect(again.importSegments("a", sources(files, copies))).rejects.toMatchObject({ _tag: "LogDamaged" })
    disk.failNext("sync", { code: "EIO" })
    await expect(again.append("b", 1, [entry(1)])).rejects.toMatchObject({ _tag: "WriterPoisoned" })
    await expect(again.importSegments("c", sources(files, copies))).rejects.toMatchObject({ _tag: "WriterPoisoned" })
    await again.close()
    await expect(again.importSegments("c", sources(files, copies))).rejects.toMatchObject({ _tag: "WriterClosed" })
  })

  it("into a directory whose journal is damaged", async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    for (let id = 1; id <= 3; id++) await log.append("a", id, [entry(id)])
    const rest = disk.killProcess()
    const [journal] = await rest.list("/data/journal")
    const file = await rest.open(`/data/journal/${journal?.name}`, "write")
    await file.write(Buffer.alloc(64), 0, 64, 4096)
    await file.close()
    const again = await open(rest, "/data")
    await expect(again.importEntries("b", each([entry(1)]))).rejects.toMatchObject({ _tag: "JournalCorrupt" })
    await again.close()
  })

  it("with the room or the disk gone, and nothing of it remains", async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    await log.append("other", 1, [entry(1)])
    await log.checkpoint()
    disk.failNext("create", { code: "ENOSPC" })
    await expect(log.importEntries("a", each(history(9)))).rejects.toMatchObject({ _tag: "DiskFull" })
    disk.failNext("create", { code: "EIO" })
    disk.failNext("removeTree", { code: "EIO", after: 1 })
    await expect(log.importEntries("a", each(history(9)))).rejects.toMatchObject({ _tag: "DiskFailed" })
    expect(await log.head("a")).toBe(0)
    await log.importEntries("a", each(history(9)))
    expect(log.poisoned).toBeUndefined()
    await log.close()
  })

  it("and stops the writer when its place in the directory cannot be made durable", async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    await log.importEntries("first", each(history(3)))
    const steps: Array<string> = []
    disk.onOperation = ({ operation, path }) => {
      steps.push(operation)
      if (operation === "syncDirectory" && path === "/data/runelog") throw systemError("ENOSPC", "fsync", path)
    }
    await expect(log.importEntries("second", each(history(3)))).rejects.toMatchObject({ _tag: "WriterPoisoned" })
    expect(steps).toContain("rename")
    disk.onOperation = () => {}
    await log.close()
  })
})

describe("a crash", () => {
  const prepare = async () => {
    const disk = new DiskSim()
    const log = await open(disk, "/data")
    await fill(log, "a", history(30))
    const files = await log.sealedFiles("a")
    const copies = await copyOf(files)
    const before = await readAll(log, "a")
    await log.remove("a")
    return { before, copies, disk, files, log }
  }

  it("at any step of an import leaves no log or all of it", async () => {
    const seed = seedFor("Import crash")
    const { copies, disk: probe, files, log: probing } = await prepare()
    const first = probe.operationCount
    await probing.importSegments("a", sources(files, copies))
    const steps = probe.operationCount - first
    const seeds = count("import crash seeds", { fast: 3, soak: 40 })
    let whole = 0
    let none = 0
    for (let step = 0; step <= steps; step++) {
      const { before, copies: bytes, disk, files: segments, log } = await prepare()
      const from = disk.operationCount
      disk.onOperation = ({ index }) => {
        if (index - from === step) disk.powerOff()
      }
      const acknowledged = await log.importSegments("a", sources(segments, bytes)).then(
        () => true,
        () => false
      )
      await log.close().catch(() => undefined)
      for (let draw = 0; draw < seeds; draw++) {
        const found = await open(disk.crash(seed + step * 1000 + draw), "/data")
        const head = await found.head("a")
        if (acknowledged) expect(head, `step ${step}`).toBe(30)
        if (head === 0) none += 1
        else {
          expect(await readAll(found, "a"), `step ${step} draw ${draw}`).toEqual(before)
          await found.append("a", 31, [entry(31)])
          whole += 1
        }
        await found.close()
      }
    }
    expect(whole).toBeGreaterThan(0)
    expect(none).toBeGreaterThan(0)
    reportCount("import crashes", whole + none)
  })
})

const withoutSeal = (segment: Buffer): Buffer => segment.subarray(0, segment.lastIndexOf("RUNE"))
