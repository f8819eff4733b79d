// Goal: few files are open at once, none is closed in use, and a replaced one is opened anew. Method: a disk that counts.
import { describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { FileCache } from "#runelog/segment/FileCache.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { errorOf, readFileOf, writeFileOf } from "../Fixture.ts"

const counting = async (files: ReadonlyArray<string>) => {
  const disk = makeDiskMemory()
  for (const path of files) await writeFileOf(disk, path, Buffer.from(path))
  const open = new Map<string, number>()
  const counted: Disk = {
    ...disk,
    open: async (path, mode) => {
      const file = await disk.open(path, mode)
      open.set(path, (open.get(path) ?? 0) + 1)
      return {
        ...file,
        close: async () => {
          open.set(path, open.get(path)! - 1)
          await file.close()
        }
      }
    }
  }
  const opened = () => [...open.values()].reduce((sum, count) => sum + count, 0)
  return { disk, counted, opened }
}

describe("open files", () => {
  it("are shared, and few", async () => {
    const paths = ["/a", "/b", "/c", "/d"]
    const { counted, opened } = await counting(paths)
    const cache = new FileCache(counted, 2)
    for (const path of [...paths, ...paths]) {
      expect(await cache.use(path, (file) => file.size())).toBe(2)
      expect(opened()).toBeLessThanOrEqual(2)
    }
    await cache.closeAll()
    expect(opened()).toBe(0)
  })

  it("stay open while they are used, however many", async () => {
    const paths = ["/a", "/b", "/c"]
    const { counted, opened } = await counting(paths)
    const cache = new FileCache(counted, 1)
    const { promise, resolve } = Promise.withResolvers<void>()
    const uses = paths.map((path) =>
      cache.use(path, async (file) => {
        await promise
        return file.size()
      })
    )
    await cache.use("/a", (file) => file.size())
    expect(opened()).toBe(3)
    resolve()
    expect(await Promise.all(uses)).toEqual([2, 2, 2])
    await cache.closeAll()
    expect(opened()).toBe(0)
  })

  it("are created and used as one", async () => {
    const { counted, disk, opened } = await counting([])
    const cache = new FileCache(counted, 4)
    await cache.create("/new")
    await cache.use("/new", (file) => file.write(Buffer.from("x"), 0, 1, 0))
    expect(opened()).toBe(1)
    expect((await readFileOf(disk, "/new")).toString()).toBe("x")
  })

  it("that were forgotten are opened anew, and closed when their last user is done", async () => {
    const { counted, disk, opened } = await counting(["/a"])
    const cache = new FileCache(counted, 4)
    await cache.forget("/never")
    const { promise, resolve } = Promise.withResolvers<void>()
    const old = cache.use("/a", async (file) => {
      await promise
      return file.size()
    })
    await cache.use("/a", async () => cache.forget("/a"))
    await writeFileOf(disk, "/b", Buffer.from("longer"))
    await disk.rename("/b", "/a")
    expect(await cache.use("/a", (file) => file.size())).toBe(6)
    resolve()
    expect(await old).toBe(2)
    await cache.forget("/a")
    expect(opened()).toBe(0)
  })

  it("that cannot be opened are tried again", async () => {
    const { counted, disk } = await counting([])
    const cache = new FileCache(counted, 4)
    const uses = [1, 2].map(() => errorOf(cache.use("/later", (file) => file.size())))
    for (const error of await Promise.all(uses)) expect(error).toMatchObject({ code: "ENOENT" })
    await writeFileOf(disk, "/later", Buffer.from("now"))
    expect(await cache.use("/later", (file) => file.size())).toBe(3)
  })

  it("that nobody uses are closed when descriptors run out, and the one that is wanted is opened", async () => {
    const paths = ["/a", "/b", "/c", "/d"]
    const { counted, disk, opened } = await counting(paths)
    const short = (): NodeJS.ErrnoException => systemError("EMFILE", "open", "/")
    const cache = new FileCache(
      { ...counted, open: (path, mode) => (opened() >= 2 ? Promise.reject(short()) : counted.open(path, mode)) },
      10
    )
    for (const path of paths) expect(await cache.use(path, (file) => file.size())).toBe(2)
    await cache.create("/e")
    expect(opened()).toBeLessThanOrEqual(2)
    // Those in use stay, so there is nothing left to give.
    await cache.use("/a", () =>
      cache.use("/b", async () => {
        expect(await errorOf(cache.use("/c", (file) => file.size()))).toMatchObject({ code: "EMFILE" })
        expect(opened()).toBe(2)
      })
    )
    await cache.closeAll()
    expect(opened()).toBe(0)
    expect(await disk.exists("/e")).toBe(true)
  })
})
