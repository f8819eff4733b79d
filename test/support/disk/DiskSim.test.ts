// Goal: the simulated disk loses what a real one may lose, and nothing else. Method: short histories crashed under
// many seeds, where each outcome that is possible must occur and each that is not must never occur; random histories
// against an oracle that knows every value a byte ever had since its last sync.

import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { seedFor } from "../seed.ts"
import { DiskSim, type Operation, type Step } from "./DiskSim.ts"
import { sectorBytes } from "./DiskSimFile.ts"

const seeds = Array.from({ length: 400 }, (_, index) => index)

const code = (value: string) => expect.objectContaining({ code: value })

const filled = (length: number, value: number) => new Uint8Array(length).fill(value)

const put = (file: DiskFile, bytes: Uint8Array, position = 0) => file.write(bytes, 0, bytes.length, position)

const readAll = async (disk: Disk, path: string): Promise<Uint8Array> => {
  const file = await disk.open(path, "read")
  const bytes = new Uint8Array(await file.size())
  await file.read(bytes, 0, bytes.length, 0)
  await file.close()
  return bytes
}

const dump = async (disk: Disk, path = "/"): Promise<Record<string, string>> => {
  const found: Record<string, string> = {}
  for (const { name, kind } of await disk.list(path)) {
    const at = `${path === "/" ? "" : path}/${name}`
    if (kind === "directory") Object.assign(found, { [`${at}/`]: "" }, await dump(disk, at))
    else found[at] = Buffer.from(await readAll(disk, at)).toString("hex")
  }
  return found
}

/** Names of one directory after a crash, one text per seed. */
const namesAfter = async (disk: DiskSim, directory = "/") =>
  Promise.all(
    seeds.map(async (seed) => {
      const after = disk.crash(seed)
      if (!(await after.exists(directory))) return "gone"
      return (await after.list(directory)).map((entry) => entry.name).join(" ")
    })
  )

const bytesAfter = (disk: DiskSim, path: string) => Promise.all(seeds.map((seed) => readAll(disk.crash(seed), path)))

/** A file whose entry is durable, with `length` synced bytes of `value`. */
const synced = async (disk: DiskSim, path: string, length: number, value: number): Promise<DiskFile> => {
  const file = await disk.open(path, "create")
  await put(file, filled(length, value))
  await file.sync()
  await disk.syncDirectory("/")
  return file
}

const isAll = (bytes: Uint8Array, value: number) => bytes.every((byte) => byte === value)

const distinct = (values: ReadonlyArray<string>) => [...new Set(values)].sort()

describe("what a crash leaves of a file", () => {
  it("keeps synced bytes under every seed", async () => {
    const disk = new DiskSim()
    await synced(disk, "/a", 3000, 7)
    for (const bytes of await bytesAfter(disk, "/a")) expect([bytes.length, isAll(bytes, 7)]).toEqual([3000, true])
  })

  it("keeps bytes synced on the calling thread", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    file.writeNow(filled(700, 3), 0, 700, 0)
    file.syncNow()
    for (const bytes of await bytesAfter(disk, "/a")) expect([bytes.length, isAll(bytes, 3)]).toEqual([700, true])
  })

  it("loses unsynced sectors in any combination", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 3 * sectorBytes, 1)
    for (const sector of [0, 1, 2]) await put(file, filled(sectorBytes, 2), sector * sectorBytes)
    const states = (await bytesAfter(disk, "/a")).map((bytes) =>
      [0, 1, 2]
        .map((sector) => bytes.subarray(sector * sectorBytes, (sector + 1) * sectorBytes))
        .map((sector) => (isAll(sector, 1) ? "old" : isAll(sector, 2) ? "new" : "torn"))
    )
    const whole = states.filter((state) => !state.includes("torn")).map((state) => state.join(" "))
    expect(distinct(whole)).toEqual([
      "new new new",
      "new new old",
      "new old new",
      "new old old",
      "old new new",
      "old new old",
      "old old new",
      "old old old"
    ])
    const torn = states.map((state) => state.filter((sector) => sector === "torn").length)
    expect(Math.max(...torn)).toBe(1)
    expect(torn.filter((count) => count === 1).length).toBeGreaterThan(100)
    expect(torn.filter((count) => count === 0).length).toBeGreaterThan(100)
  })

  it("finds a sector in any state it went through, never in one it skipped", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 100, 0)
    await put(file, filled(10, 1), 0)
    await put(file, filled(10, 2), 10)
    await put(file, filled(10, 3), 20)
    const states = (await bytesAfter(disk, "/a")).map((bytes) => {
      const parts = [1, 2, 3].map((value) => bytes.subarray((value - 1) * 10, value * 10))
      return parts.map((part, index) => (isAll(part, 0) ? "-" : isAll(part, index + 1) ? "+" : "~")).join("")
    })
    const whole = states.filter((state) => !state.includes("~"))
    expect(distinct(whole)).toEqual(["+++", "++-", "+--", "---"])
  })

  it("does not touch the synced bytes of a sector beside unsynced ones", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 100, 9)
    await put(file, filled(300, 1), 100)
    for (const bytes of await bytesAfter(disk, "/a")) expect(isAll(bytes.subarray(0, 100), 9)).toBe(true)
  })

  it("garbles the whole rest of a sector when told so, and no other sector", async () => {
    const disk = new DiskSim({ garble: "sector" })
    const file = await synced(disk, "/a", 4 * sectorBytes, 9)
    await put(file, filled(10, 1), sectorBytes + 5)
    const found = await bytesAfter(disk, "/a")
    const behind = found.map((bytes) => isAll(bytes.subarray(sectorBytes + 15, 2 * sectorBytes), 9))
    expect(distinct(behind.map(String))).toEqual(["false", "true"])
    for (const bytes of found) {
      expect(isAll(bytes.subarray(0, sectorBytes + 5), 9)).toBe(true)
      expect(isAll(bytes.subarray(2 * sectorBytes), 9)).toBe(true)
    }
    const again = disk.crash(1)
    await put(await again.open("/a", "write"), filled(10, 1), sectorBytes + 5)
    const carried = (await bytesAfter(again, "/a")).some((bytes) => !isAll(bytes.subarray(sectorBytes + 15), 9))
    expect(carried).toBe(true)
  })

  it("may lose growth of the file, or keep its length without its data", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 600, 5)
    await put(file, filled(1000, 6), 600)
    await put(file, filled(1000, 7), 1600)
    const found = await bytesAfter(disk, "/a")
    expect(distinct(found.map((bytes) => String(bytes.length)))).toEqual(["1600", "2600", "600"])
    expect(found.some((bytes) => bytes.length === 2600 && isAll(bytes.subarray(1024), 0))).toBe(true)
    expect(found.some((bytes) => bytes.length === 2600 && isAll(bytes.subarray(1600), 7))).toBe(true)
    for (const bytes of found) expect(isAll(bytes.subarray(0, 600), 5)).toBe(true)
  })

  it("keeps or forgets an unsynced cut as one step", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 4 * sectorBytes, 5)
    await file.truncate(sectorBytes)
    const found = await bytesAfter(disk, "/a")
    expect(distinct(found.map((bytes) => String(bytes.length)))).toEqual(["2048", "512"])
    for (const bytes of found) expect(isAll(bytes, 5)).toBe(true)
  })

  it("does not mix bytes written behind a forgotten cut into the old data", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 4 * sectorBytes, 5)
    await file.truncate(0)
    await put(file, filled(4 * sectorBytes, 6))
    const found = (await bytesAfter(disk, "/a")).filter(
      (bytes) => bytes.filter((byte) => byte === 5).length >= sectorBytes
    )
    expect(found.length).toBeGreaterThan(50)
    for (const bytes of found) expect([bytes.length, isAll(bytes, 5)]).toEqual([4 * sectorBytes, true])
  })

  it("may clear the rest of the last sector although the cut is forgotten", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 2 * sectorBytes, 5)
    await file.truncate(100)
    const found = (await bytesAfter(disk, "/a")).filter((bytes) => bytes.length === 2 * sectorBytes)
    expect(found.some((bytes) => isAll(bytes.subarray(100, sectorBytes), 0))).toBe(true)
    expect(found.some((bytes) => isAll(bytes, 5))).toBe(true)
    for (const bytes of found) {
      expect(isAll(bytes.subarray(0, 100), 5)).toBe(true)
      expect(isAll(bytes.subarray(sectorBytes), 5)).toBe(true)
    }
  })

  it("makes a cut and an extension durable with a sync", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 1000, 5)
    await file.truncate(10)
    await file.truncate(20)
    await file.sync()
    for (const bytes of await bytesAfter(disk, "/a")) expect([...bytes]).toEqual([...filled(10, 5), ...filled(10, 0)])
  })

  it("covers by a sync only what had returned before it began", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await Promise.all([put(file, filled(100, 4)), file.sync()])
    const lengths = distinct((await bytesAfter(disk, "/a")).map((bytes) => String(bytes.length)))
    expect(lengths).toEqual(["0", "100"])
    await file.sync()
    for (const bytes of await bytesAfter(disk, "/a")) expect([bytes.length, isAll(bytes, 4)]).toEqual([100, true])
  })

  it("does not count a sync as done while it is under way", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 4))
    const syncing = file.sync()
    const lengths = distinct((await bytesAfter(disk, "/a")).map((bytes) => String(bytes.length)))
    expect(lengths).toContain("0")
    await syncing
    expect((await readAll(disk.crash(0), "/a")).length).toBe(100)
  })

  it("keeps what a later sync covered although an earlier write is still under way", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    const early = put(file, filled(1000, 1))
    file.writeNow(filled(1000, 2), 0, 1000, 1000)
    file.syncNow()
    const found = await bytesAfter(disk, "/a")
    for (const bytes of found) expect([bytes.length, isAll(bytes.subarray(1024), 2)]).toEqual([2000, true])
    expect(found.some((bytes) => isAll(bytes.subarray(0, 512), 0))).toBe(true)
    await early
  })

  it("takes two syncs at once as one", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 4))
    await Promise.all([file.sync(), file.sync()])
    for (const bytes of await bytesAfter(disk, "/a")) expect([bytes.length, isAll(bytes, 4)]).toEqual([100, true])
  })
})

describe("what a crash leaves of a directory", () => {
  it("may lose a file whose own bytes were synced", async () => {
    const disk = new DiskSim()
    const file = await disk.open("/a", "create")
    await put(file, filled(10, 1))
    await file.sync()
    expect(distinct(await namesAfter(disk))).toEqual(["", "a"])
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk))).toEqual(["a"])
    for (const bytes of await bytesAfter(disk, "/a")) expect([...bytes]).toEqual([...filled(10, 1)])
  })

  it("keeps an entry without the bytes of its file", async () => {
    const disk = new DiskSim()
    const file = await disk.open("/a", "create")
    await disk.syncDirectory("/")
    await put(file, filled(10, 1))
    const lengths = distinct((await bytesAfter(disk, "/a")).map((bytes) => String(bytes.length)))
    expect(lengths).toEqual(["0", "10"])
  })

  it("loses all below a directory whose own entry is lost", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory("/d/e")
    const file = await disk.open("/d/e/a", "create")
    await file.sync()
    await disk.syncDirectory("/d/e")
    await disk.syncDirectory("/d")
    expect(distinct(await namesAfter(disk, "/d/e"))).toEqual(["a", "gone"])
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk, "/d/e"))).toEqual(["a"])
  })

  it("finds creations in any combination", async () => {
    const disk = new DiskSim()
    for (const name of ["a", "b", "c"]) await disk.open(`/${name}`, "create")
    expect(distinct(await namesAfter(disk))).toEqual(["", "a", "a b", "a b c", "a c", "b", "b c", "c"])
  })

  it("keeps a rename whole and behind the creation it needs", async () => {
    const disk = new DiskSim()
    await synced(disk, "/final", 1, 1)
    const file = await disk.open("/temporary", "create")
    await put(file, filled(1, 2))
    await file.sync()
    await disk.rename("/temporary", "/final")
    const states = await Promise.all(
      seeds.map(async (seed) => {
        const after = disk.crash(seed)
        const names = (await after.list("/")).map((entry) => entry.name).join(" ")
        return `${names}=${(await readAll(after, "/final"))[0]}`
      })
    )
    expect(distinct(states)).toEqual(["final temporary=1", "final=1", "final=2"])
    await disk.syncDirectory("/")
    for (const bytes of await bytesAfter(disk, "/final")) expect([...bytes]).toEqual([2])
  })

  it("finds a file renamed twice under one of its three names", async () => {
    const disk = new DiskSim()
    await synced(disk, "/a", 1, 1)
    await disk.rename("/a", "/b")
    await disk.rename("/b", "/c")
    expect(distinct(await namesAfter(disk))).toEqual(["a", "b", "c"])
  })

  it("may bring back what was removed, with its synced bytes", async () => {
    const disk = new DiskSim()
    await synced(disk, "/a", 10, 1)
    await disk.remove("/a")
    expect(distinct(await namesAfter(disk))).toEqual(["", "a"])
    const back = await Promise.all(seeds.map((seed) => dump(disk.crash(seed))))
    for (const found of back) expect([undefined, "01".repeat(10)]).toContain(found["/a"])
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk))).toEqual([""])
  })

  it("may find a tree half removed", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory("/d")
    for (const name of ["a", "b"]) await disk.open(`/d/${name}`, "create")
    await disk.syncDirectory("/d")
    await disk.syncDirectory("/")
    await disk.removeTree("/d")
    expect(distinct(await namesAfter(disk, "/d"))).toEqual(["", "a", "a b", "b", "gone"])
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk, "/d"))).toEqual(["gone"])
  })

  it("moves between directories as one step, durable when both are synced", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory("/from")
    await disk.makeDirectory("/to")
    const file = await disk.open("/from/a", "create")
    await file.sync()
    for (const path of ["/from", "/"]) await disk.syncDirectory(path)
    await disk.rename("/from/a", "/to/a")
    const places = async () =>
      distinct(
        await Promise.all(
          seeds.map(async (seed) => {
            const found = await dump(disk.crash(seed))
            return Object.keys(found)
              .filter((path) => path.endsWith("a"))
              .join(" ")
          })
        )
      )
    expect(await places()).toEqual(["/from/a", "/to/a"])
    await disk.syncDirectory("/to")
    expect(await places()).toEqual(["/from/a", "/to/a"])
    await disk.syncDirectory("/from")
    expect(await places()).toEqual(["/to/a"])
  })

  it("makes the earlier changes of a name durable together with a later one", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory("/from")
    await disk.makeDirectory("/to")
    await (await disk.open("/from/a", "create")).sync()
    for (const path of ["/from", "/"]) await disk.syncDirectory(path)
    await disk.rename("/from/a", "/to/a")
    await disk.open("/from/a", "create")
    await disk.syncDirectory("/from")
    expect(distinct(await namesAfter(disk, "/from"))).toEqual(["a"])
    expect(distinct(await namesAfter(disk, "/to"))).toEqual(["a"])
  })

  it("covers by a directory sync only what had returned before it began", async () => {
    const disk = new DiskSim()
    await Promise.all([disk.open("/a", "create"), disk.syncDirectory("/")])
    expect(distinct(await namesAfter(disk))).toEqual(["", "a"])
  })
})

describe("determinism", () => {
  const history = async () => {
    const disk = new DiskSim()
    await disk.makeDirectory("/d")
    const files = await Promise.all(["/a", "/d/b"].map((path) => disk.open(path, "create")))
    for (const file of files) await put(file, filled(3000, 1))
    await files[0]!.sync()
    for (const file of files) await put(file, filled(3000, 2), 1500)
    await disk.rename("/a", "/c")
    return disk
  }

  it("gives the same disk for the same seed and history", async () => {
    const [one, two] = [await history(), await history()]
    for (const seed of seeds.slice(0, 100)) {
      const found = await dump(one.crash(seed))
      expect(await dump(one.crash(seed))).toEqual(found)
      expect(await dump(two.crash(seed))).toEqual(found)
    }
  })

  it("gives many different disks for different seeds", async () => {
    const disk = await history()
    const found = await Promise.all(seeds.map(async (seed) => JSON.stringify(await dump(disk.crash(seed)))))
    expect(new Set(found).size).toBeGreaterThan(100)
  })

  it("leaves nothing unsynced on the disk that is found", async () => {
    const disk = await history()
    const after = disk.crash(3)
    const found = await dump(after)
    for (const seed of seeds.slice(0, 100)) expect(await dump(after.crash(seed))).toEqual(found)
  })

  it("leaves the disk that crashed as it was", async () => {
    const disk = await history()
    const before = await dump(disk)
    for (const seed of seeds.slice(0, 20)) disk.crash(seed)
    expect(await dump(disk)).toEqual(before)
  })
})

describe("random histories", () => {
  type Act = readonly ["write" | "truncate" | "sync", number, number, number]
  const act = fc.tuple(
    fc.constantFrom("write", "write", "write", "truncate", "sync"),
    fc.nat(2500),
    fc.integer({ min: 1, max: 1500 }),
    fc.integer({ min: 1, max: 255 })
  ) as fc.Arbitrary<Act>

  /** Every value each byte, and the length, may be found with. */
  const makeOracle = () => {
    const live = new Uint8Array(5000)
    let size = 0
    let values = Array.from(live, (byte) => new Set([byte]))
    let sizes = new Set([0])
    const written = new Set<number>()
    const set = (from: number, bytes: Uint8Array) => {
      live.set(bytes, from)
      bytes.forEach((byte, index) => {
        values[from + index]!.add(byte)
        written.add(from + index)
      })
    }
    const resize = (to: number) => {
      if (to < size) set(to, new Uint8Array(size - to))
      size = to
      sizes.add(size)
    }
    return {
      write: (position: number, bytes: Uint8Array) => {
        if (position + bytes.length > size) resize(position + bytes.length)
        set(position, bytes)
      },
      resize,
      sync: () => {
        values = Array.from(live, (byte) => new Set([byte]))
        sizes = new Set([size])
        written.clear()
      },
      /** Bytes that never had the value found, by sector. */
      strange: (found: Uint8Array) => {
        expect(sizes).toContain(found.length)
        const offsets = [...found.keys()].filter((at) => !values[at]!.has(found[at]!) && found[at] !== 0)
        for (const at of offsets) expect(written).toContain(at)
        // A byte that no sync covered may read as zero only if its file was shorter once, or was cleared.
        const cleared = [...found.keys()].filter((at) => !values[at]!.has(found[at]!) && found[at] === 0)
        for (const at of cleared) expect(written).toContain(at)
        return new Set(offsets.map((at) => Math.floor(at / sectorBytes)))
      }
    }
  }

  it("only ever show values a byte had, but for one sector", async () => {
    const seed = seedFor("DiskSim random histories")
    let garbled = 0
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 12 }), fc.nat(), async (acts, crashSeed) => {
        const disk = new DiskSim()
        const file = await synced(disk, "/a", 0, 0)
        const oracle = makeOracle()
        for (const [kind, position, length, value] of acts) {
          if (kind === "write") await put(file, filled(length, value), position)
          if (kind === "write") oracle.write(position, filled(length, value))
          if (kind === "truncate") await file.truncate(position)
          if (kind === "truncate") oracle.resize(position)
          if (kind === "sync") await file.sync()
          if (kind === "sync") oracle.sync()
        }
        const strange = oracle.strange(await readAll(disk.crash(crashSeed), "/a"))
        expect(strange.size).toBeLessThanOrEqual(1)
        garbled += strange.size
      }),
      { seed, numRuns: 1000 }
    )
    expect(garbled).toBeGreaterThan(100)
  })
})

describe("faults", () => {
  const calls: Record<Operation, (disk: DiskSim, file: DiskFile) => Promise<unknown>> = {
    create: (disk) => disk.open("/new", "create"),
    open: (disk) => disk.open("/a", "read"),
    openDirectory: (disk) => disk.syncDirectory("/"),
    read: (_disk, file) => file.read(new Uint8Array(1), 0, 1, 0),
    write: (_disk, file) => put(file, filled(4, 1)),
    sync: (_disk, file) => file.sync(),
    truncate: (_disk, file) => file.truncate(1),
    size: (_disk, file) => file.size(),
    close: (_disk, file) => file.close(),
    makeDirectory: (disk) => disk.makeDirectory("/x"),
    list: (disk) => disk.list("/"),
    rename: (disk) => disk.rename("/a", "/b"),
    remove: (disk) => disk.remove("/a"),
    removeTree: (disk) => disk.removeTree("/d"),
    exists: (disk) => disk.exists("/a"),
    syncDirectory: (disk) => disk.syncDirectory("/"),
    lock: (disk) => disk.lock("/")
  }

  it.each(Object.entries(calls))("lets %s fail once, without effect", async (operation, call) => {
    const disk = new DiskSim()
    await disk.makeDirectory("/d")
    const file = await disk.open("/a", "create")
    const before = await dump(disk)
    disk.failNext(operation as Operation, { code: "EIO" })
    await expect(call(disk, file)).rejects.toEqual(code("EIO"))
    expect(await dump(disk)).toEqual(before)
    await call(disk, file)
  })

  it("lets operations pass first, then fails as often as told, one fault behind the other", async () => {
    const disk = new DiskSim()
    const file = await disk.open("/a", "create")
    disk.failNext("write", { code: "EIO", after: 2, times: 2 })
    disk.failNext("write", { code: "ENOSPC", after: 1 })
    const outcomes: Array<unknown> = []
    for (let round = 0; round < 7; round++) {
      const outcome = put(file, filled(1, 1)).then(
        () => "ok",
        (error: NodeJS.ErrnoException) => error.code
      )
      outcomes.push(await outcome)
    }
    expect(outcomes).toEqual(["ok", "ok", "EIO", "EIO", "ok", "ENOSPC", "ok"])
  })

  it("fails for ever until the faults are cleared", async () => {
    const disk = new DiskSim()
    disk.failNext("list", { code: "EIO", times: Number.POSITIVE_INFINITY })
    for (let round = 0; round < 5; round++) await expect(disk.list("/")).rejects.toEqual(code("EIO"))
    disk.clearFaults()
    expect(await disk.list("/")).toEqual([])
  })

  it("leaves a part of a failed write in the file", async () => {
    const disk = new DiskSim()
    const file = await disk.open("/a", "create")
    disk.failNext("write", { code: "ENOSPC", partialBytes: 300 })
    await expect(put(file, filled(1000, 1))).rejects.toEqual(code("ENOSPC"))
    expect(await file.size()).toBe(300)
    disk.failNext("write", { code: "EIO", partialBytes: 5000 })
    expect(() => file.writeNow(filled(10, 2), 0, 10, 300)).toThrow(code("EIO"))
    expect(await file.size()).toBe(310)
    await file.sync()
    await disk.syncDirectory("/")
    for (const bytes of await bytesAfter(disk, "/a")) expect(bytes.length).toBe(310)
  })

  it("never writes what a failed sync had to write, although the next sync succeeds", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 1))
    disk.failNext("sync", { code: "EIO" })
    await expect(file.sync()).rejects.toEqual(code("EIO"))
    expect(isAll(await readAll(disk, "/a"), 1)).toBe(true)
    await put(file, filled(100, 2), 4096)
    await file.sync()
    const found = await bytesAfter(disk, "/a")
    for (const bytes of found) expect(isAll(bytes.subarray(4096, 4196), 2)).toBe(true)
    expect(found.some((bytes) => isAll(bytes.subarray(0, 100), 0))).toBe(true)
    expect(found.some((bytes) => isAll(bytes.subarray(0, 100), 1))).toBe(true)
  })

  it("writes it after all when its sector is written again", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 1))
    disk.failNext("sync", { code: "EIO" })
    expect(() => file.syncNow()).toThrow(code("EIO"))
    await put(file, filled(100, 2), 100)
    await file.sync()
    for (const bytes of await bytesAfter(disk, "/a")) {
      expect([...bytes]).toEqual([...filled(100, 1), ...filled(100, 2)])
    }
  })

  it("has nothing to do with what was still under way when the sync failed", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    disk.failNext("sync", { code: "EIO" })
    disk.failNext("syncDirectory", { code: "EIO" })
    const writing = put(file, filled(100, 1))
    const creating = disk.open("/b", "create")
    for (const outcome of await Promise.allSettled([file.sync(), disk.syncDirectory("/")])) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "EIO" } })
    }
    await Promise.all([writing, creating])
    await file.sync()
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk))).toEqual(["a b"])
    for (const bytes of await bytesAfter(disk, "/a")) expect([bytes.length, isAll(bytes, 1)]).toEqual([100, true])
  })

  it("leaves entries in doubt after a failed directory sync", async () => {
    const disk = new DiskSim()
    await disk.open("/a", "create")
    disk.failNext("syncDirectory", { code: "EIO" })
    await expect(disk.syncDirectory("/")).rejects.toEqual(code("EIO"))
    await disk.open("/b", "create")
    await disk.syncDirectory("/")
    expect(distinct(await namesAfter(disk))).toEqual(["a b", "b"])
  })
})

describe("capacity", () => {
  it("stops a write in the middle when the disk is full", async () => {
    const disk = new DiskSim({ capacityBytes: 1000 })
    const one = await disk.open("/one", "create")
    const two = await disk.open("/two", "create")
    await put(one, filled(700, 1))
    await expect(put(two, filled(400, 2))).rejects.toEqual(code("ENOSPC"))
    expect([await two.size(), disk.usedBytes]).toEqual([300, 1000])
    await expect(put(two, filled(1, 2), 5000)).rejects.toEqual(code("ENOSPC"))
    await expect(two.truncate(301)).rejects.toEqual(code("ENOSPC"))
    expect(await two.size()).toBe(300)
  })

  it("lets bytes be overwritten and cut on a full disk", async () => {
    const disk = new DiskSim({ capacityBytes: 100 })
    const file = await disk.open("/a", "create")
    await put(file, filled(100, 1))
    await put(file, filled(100, 2))
    await file.truncate(10)
    await put(file, filled(90, 3), 10)
    expect(disk.usedBytes).toBe(100)
  })

  it("counts what lies in directories and frees what is removed", async () => {
    const disk = new DiskSim({ capacityBytes: 100 })
    await disk.makeDirectory("/d/e")
    await put(await disk.open("/d/e/a", "create"), filled(100, 1))
    const file = await disk.open("/b", "create")
    await expect(put(file, filled(1, 1))).rejects.toEqual(code("ENOSPC"))
    await disk.remove("/d/e/a")
    await put(file, filled(100, 1))
  })

  it("can shrink and grow while in use, and is kept by a crash", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 100, 1)
    disk.capacityBytes = 50
    await expect(put(file, filled(1, 1), 100)).rejects.toEqual(code("ENOSPC"))
    await put(file, filled(1, 1), 99)
    disk.capacityBytes = 101
    await put(file, filled(1, 1), 100)
    expect(disk.crash(1).capacityBytes).toBe(101)
  })
})

describe("steps", () => {
  it("are announced in order before they happen", async () => {
    const steps: Array<Step> = []
    const disk = new DiskSim({ onOperation: (step) => steps.push(step) })
    await disk.makeDirectory("/d")
    const file = await disk.open("/d/a", "create")
    await put(file, filled(1, 1))
    await file.size()
    await file.sync()
    await file.truncate(0)
    await file.close()
    await disk.syncDirectory("/d")
    await disk.rename("/d/a", "/d/b")
    await disk.list("/d")
    await disk.remove("/d/b")
    await disk.removeTree("/d")
    const names = ["makeDirectory", "create", "write", "sync", "truncate", "syncDirectory", "rename", "remove"]
    expect(steps.map((step) => step.operation)).toEqual([...names, "removeTree"])
    expect(steps.map((step) => step.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    expect(steps[2]).toEqual({ index: 2, operation: "write", path: "/d/a" })
    expect(disk.operationCount).toBe(9)
  })

  it("do not happen when the listener throws", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    disk.onOperation = () => {
      throw new Error("stop here")
    }
    await expect(put(file, filled(1, 1))).rejects.toThrow("stop here")
    await expect(disk.remove("/a")).rejects.toThrow("stop here")
    await expect(disk.syncDirectory("/")).rejects.toThrow("stop here")
    expect(await dump(disk)).toEqual({ "/a": "" })
  })

  it("let a test crash before any of them", async () => {
    const disk = new DiskSim()
    const found: Array<Record<string, string>> = []
    const crashes: Array<DiskSim> = []
    disk.onOperation = () => crashes.push(disk.crash(8))
    const file = await disk.open("/a", "create")
    await put(file, filled(1, 1))
    await file.sync()
    await disk.syncDirectory("/")
    await disk.remove("/a")
    await disk.syncDirectory("/")
    for (const crash of crashes) found.push(await dump(crash))
    expect(found).toHaveLength(6)
    expect([found[0], found[4]]).toEqual([{}, { "/a": "01" }])
  })
})

describe("the root", () => {
  it("is there and stays", async () => {
    const disk = new DiskSim()
    expect(await disk.makeDirectory("/")).toBeUndefined()
    expect(await disk.exists("/")).toBe(true)
    await expect(disk.removeTree("/")).rejects.toEqual(code("EBUSY"))
    await expect(disk.rename("/", "/a")).rejects.toEqual(code("EBUSY"))
    await expect(disk.open("/", "read")).rejects.toEqual(code("EBUSY"))
  })
})

describe("power and processes", () => {
  it("does nothing without power, not even what was under way", async () => {
    const disk = new DiskSim()
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 1))
    const pending = [file.sync(), put(file, filled(1, 1)), disk.remove("/a"), disk.syncDirectory("/")]
    disk.powerOff()
    for (const outcome of await Promise.allSettled(pending)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "EIO" } })
    }
    for (const call of [file.size(), file.sync(), disk.list("/"), disk.syncDirectory("/"), disk.lock("/")]) {
      await expect(call).rejects.toEqual(code("EIO"))
    }
    expect(() => file.syncNow()).toThrow(code("EIO"))
    const found = await Promise.all(seeds.map((seed) => dump(disk.crash(seed))))
    expect(found.some((entries) => entries["/a"] === "")).toBe(true)
  })

  it("tells of no sync whose bytes a power cut at that very moment would take", async () => {
    const ends = new Set<string>()
    for (let microtasks = 0; microtasks < 8; microtasks++) {
      const disk = new DiskSim()
      const file = await synced(disk, "/a", 100, 1)
      file.writeNow(filled(100, 2), 0, 100, 0)
      const sync = file.sync().then(
        () => "done",
        () => "failed"
      )
      for (let passed = 0; passed < microtasks; passed++) await undefined
      const successors = seeds.map((seed) => disk.crash(seed))
      disk.powerOff()
      const end = await sync
      ends.add(end)
      if (end === "failed") continue
      for (const after of successors) expect(isAll(await readAll(after, "/a"), 2)).toBe(true)
    }
    expect([...ends].sort()).toEqual(["done", "failed"])
  })

  it("frees the lock with a crash", async () => {
    const disk = new DiskSim()
    expect((await disk.lock("/"))._tag).toBe("Acquired")
    expect((await disk.lock("/"))._tag).toBe("Held")
    expect((await disk.crash(1).lock("/"))._tag).toBe("Acquired")
  })

  it("keeps the bytes of a killed process, yet a power cut may still take them", async () => {
    const disk = new DiskSim({ capacityBytes: 1000 })
    await disk.lock("/")
    const file = await synced(disk, "/a", 0, 0)
    await put(file, filled(100, 1))
    const underWay = put(file, filled(100, 2), 100)
    const next = disk.killProcess()
    await expect(underWay).rejects.toEqual(code("EIO"))
    await expect(file.size()).rejects.toEqual(code("EIO"))
    expect((await next.lock("/"))._tag).toBe("Acquired")
    expect(next.capacityBytes).toBe(1000)
    expect((await readAll(next, "/a")).length).toBe(200)
    const lengths = distinct((await bytesAfter(next, "/a")).map((bytes) => String(bytes.length)))
    expect(lengths).toEqual(["0", "100", "200"])
    await (await next.open("/a", "write")).sync()
    for (const bytes of await bytesAfter(next, "/a")) expect(bytes.length).toBe(200)
  })
})
