// Goal: the disks cannot be told apart by their answers. Method: one suite of facts over each implementation,
// error codes included. What only the real file system does (modes, short writes) is in DiskNode.test.ts.
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"

interface Subject {
  readonly disk: Disk
  readonly base: string
  readonly dispose: () => void
}

const subjects: ReadonlyArray<readonly [string, () => Promise<Subject>]> = [
  [
    "DiskNode",
    async () => {
      const base = realpathSync(mkdtempSync(join(tmpdir(), "runelog-disk-")))
      return { disk: makeDiskNode(), base, dispose: () => rmSync(base, { recursive: true, force: true }) }
    }
  ],
  [
    "DiskMemory",
    async () => {
      const disk = makeDiskMemory()
      await disk.makeDirectory("/base")
      return { disk, base: "/base", dispose: () => {} }
    }
  ],
  [
    "DiskSim",
    async () => {
      const disk = new DiskSim()
      await disk.makeDirectory("/base")
      return { disk, base: "/base", dispose: () => {} }
    }
  ]
]

const bytesOf = (text: string) => new TextEncoder().encode(text)

const writeText = (file: DiskFile, text: string, position = 0) =>
  file.write(bytesOf(text), 0, bytesOf(text).length, position)

const readText = async (file: DiskFile, position = 0, length = 1000) => {
  const target = new Uint8Array(length)
  return new TextDecoder().decode(target.subarray(0, await file.read(target, 0, length, position)))
}

const put = async (disk: Disk, path: string, text: string) => {
  const file = await disk.open(path, "create")
  await writeText(file, text)
  await file.close()
}

const get = async (disk: Disk, path: string) => {
  const file = await disk.open(path, "read")
  const text = await readText(file)
  await file.close()
  return text
}

const code = (value: string) => expect.objectContaining({ code: value })

describe.each(subjects)("%s", (_name, make) => {
  let subject: Subject
  let disk: Disk
  let at: (name: string) => string

  beforeEach(async () => {
    subject = await make()
    disk = subject.disk
    at = (name) => `${subject.base}/${name}`
  })
  afterEach(() => subject.dispose())

  describe("open", () => {
    it("creates an empty file that did not exist", async () => {
      const file = await disk.open(at("a"), "create")
      expect(await file.size()).toBe(0)
      await file.close()
      expect(await disk.exists(at("a"))).toBe(true)
    })

    it("refuses to create over a file or a directory", async () => {
      await put(disk, at("a"), "kept")
      await disk.makeDirectory(at("d"))
      await expect(disk.open(at("a"), "create")).rejects.toEqual(code("EEXIST"))
      await expect(disk.open(at("d"), "create")).rejects.toEqual(code("EEXIST"))
      expect(await get(disk, at("a"))).toBe("kept")
    })

    it("names a missing file, a missing parent and a parent that is a file", async () => {
      await put(disk, at("a"), "x")
      for (const mode of ["read", "write"] as const) {
        await expect(disk.open(at("none"), mode)).rejects.toEqual(code("ENOENT"))
        await expect(disk.open(at("none/b"), mode)).rejects.toEqual(code("ENOENT"))
        await expect(disk.open(at("a/b"), mode)).rejects.toEqual(code("ENOTDIR"))
        await expect(disk.open(at("a/b/c"), mode)).rejects.toEqual(code("ENOTDIR"))
      }
      await expect(disk.open(at("none/b"), "create")).rejects.toEqual(code("ENOENT"))
    })

    it("does not give a directory as a file", async () => {
      await disk.makeDirectory(at("d"))
      await expect(disk.open(at("d"), "write")).rejects.toEqual(code("EISDIR"))
      const readDirectory = async () => readText(await disk.open(at("d"), "read"))
      await expect(readDirectory()).rejects.toEqual(code("EISDIR"))
    })
  })

  describe("read and write", () => {
    it("gives back what was written, through another descriptor too", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "hello world")
      expect(await readText(file)).toBe("hello world")
      expect(await get(disk, at("a"))).toBe("hello world")
      await file.close()
    })

    it("writes and reads a part of the array given, and nothing beside it", async () => {
      const file = await disk.open(at("a"), "create")
      await file.write(bytesOf("..middle.."), 2, 6, 0)
      expect(await file.size()).toBe(6)
      const target = bytesOf("##########")
      expect(await file.read(target, 3, 4, 1)).toBe(4)
      expect(new TextDecoder().decode(target)).toBe("###iddl###")
      await file.close()
    })

    it("writes on the calling thread at once", async () => {
      const file = await disk.open(at("a"), "create")
      file.writeNow(bytesOf("abc"), 0, 3, 0)
      file.writeNow(bytesOf("XY"), 0, 2, 1)
      expect(await readText(file)).toBe("aXY")
      await file.close()
    })

    it("overwrites in place and fills a gap with zeros", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "abcdef")
      await writeText(file, "XY", 2)
      await writeText(file, "end", 8)
      expect(await readText(file)).toBe("abXYef\0\0end")
      await file.close()
    })

    it("reads fewer bytes only at the end, none behind it", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "abcdef")
      expect(await file.read(new Uint8Array(10), 0, 10, 4)).toBe(2)
      expect(await file.read(new Uint8Array(10), 0, 10, 6)).toBe(0)
      expect(await file.read(new Uint8Array(10), 0, 10, 600)).toBe(0)
      expect(await file.read(new Uint8Array(10), 0, 0, 0)).toBe(0)
      await file.close()
    })

    it("takes an empty write as nothing", async () => {
      const file = await disk.open(at("a"), "create")
      await file.write(new Uint8Array(0), 0, 0, 100)
      file.writeNow(new Uint8Array(4), 4, 0, 100)
      expect(await file.size()).toBe(0)
      await file.close()
    })

    it("keeps its own copy of what was written", async () => {
      const file = await disk.open(at("a"), "create")
      const source = bytesOf("before")
      await file.write(source, 0, 6, 0)
      source.set(bytesOf("after!"))
      expect(await readText(file)).toBe("before")
      await file.close()
    })

    it("holds a megabyte written in uneven pieces", async () => {
      const whole = Uint8Array.from({ length: 1 << 20 }, (_, index) => (index * 2654435761) >>> 13)
      const file = await disk.open(at("a"), "create")
      for (let from = 0, step = 1; from < whole.length; from += step, step = (step * 7 + 3) % 60_000) {
        await file.write(whole, from, Math.min(step, whole.length - from), from)
      }
      const target = new Uint8Array(whole.length)
      expect(await file.read(target, 0, target.length, 0)).toBe(whole.length)
      expect(Buffer.compare(target, whole)).toBe(0)
      await file.close()
    })

    it("refuses a range outside of the array and a position before the file", async () => {
      const file = await disk.open(at("a"), "create")
      const four = new Uint8Array(4)
      for (const [offset, length, position] of [
        [0, 5, 0],
        [4, 1, 0],
        [-1, 1, 0],
        [0, -1, 0],
        [0.5, 1, 0],
        [0, 1.5, 0],
        [0, 1, -1],
        [0, 1, 0.5]
      ] as const) {
        await expect(file.read(four, offset, length, position)).rejects.toBeInstanceOf(RangeError)
        await expect(file.write(four, offset, length, position)).rejects.toBeInstanceOf(RangeError)
        expect(() => file.writeNow(four, offset, length, position)).toThrow(RangeError)
      }
      expect(await file.size()).toBe(0)
      await file.close()
    })

    it("writes nothing through a descriptor opened for reading", async () => {
      await put(disk, at("a"), "kept")
      const file = await disk.open(at("a"), "read")
      await expect(writeText(file, "lost")).rejects.toEqual(code("EBADF"))
      expect(() => file.writeNow(bytesOf("lost"), 0, 4, 0)).toThrow(code("EBADF"))
      await expect(file.truncate(0)).rejects.toEqual(code("EINVAL"))
      await file.sync()
      await file.close()
      expect(await get(disk, at("a"))).toBe("kept")
    })

    it("reaches a removed file through a descriptor that is still open", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "ghost")
      await disk.remove(at("a"))
      await writeText(file, "!", 5)
      expect(await readText(file)).toBe("ghost!")
      await file.close()
      expect(await disk.exists(at("a"))).toBe(false)
    })
  })

  describe("truncate, sync and close", () => {
    it("cuts and extends; what comes back is zeros, not the old bytes", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "abcdef")
      await file.truncate(2)
      expect(await file.size()).toBe(2)
      await file.truncate(5)
      expect(await readText(file)).toBe("ab\0\0\0")
      await writeText(file, "z", 6)
      expect(await readText(file)).toBe("ab\0\0\0\0z")
      await file.close()
    })

    it("refuses a length that is not one", async () => {
      const file = await disk.open(at("a"), "create")
      await expect(file.truncate(-1)).rejects.toBeInstanceOf(RangeError)
      await expect(file.truncate(0.5)).rejects.toBeInstanceOf(RangeError)
      await file.close()
    })

    it("syncs in both ways", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "abc")
      await file.sync()
      file.syncNow()
      expect(await readText(file)).toBe("abc")
      await file.close()
    })

    it("closes more than once without harm and does nothing afterwards", async () => {
      const file = await disk.open(at("a"), "create")
      await writeText(file, "abc")
      await Promise.all([file.close(), file.close()])
      await file.close()
      await expect(readText(file)).rejects.toEqual(code("EBADF"))
      await expect(writeText(file, "x")).rejects.toEqual(code("EBADF"))
      await expect(file.sync()).rejects.toEqual(code("EBADF"))
      await expect(file.truncate(0)).rejects.toEqual(code("EBADF"))
      await expect(file.size()).rejects.toEqual(code("EBADF"))
      expect(() => file.writeNow(bytesOf("x"), 0, 1, 0)).toThrow(code("EBADF"))
      expect(() => file.syncNow()).toThrow(code("EBADF"))
    })

    it("finishes what is under way before it closes", async () => {
      const file = await disk.open(at("a"), "create")
      const block = new Uint8Array(1 << 16).fill(7)
      const writes = Array.from({ length: 16 }, (_, index) => file.write(block, 0, block.length, index * block.length))
      await file.close()
      await Promise.all(writes)
      const again = await disk.open(at("a"), "read")
      expect(await again.size()).toBe(16 * block.length)
      await again.close()
    })
  })

  describe("directories", () => {
    it("makes a directory with its parents and names the topmost one made", async () => {
      expect(await disk.makeDirectory(at("a/b/c"))).toBe(at("a"))
      expect(await disk.makeDirectory(at("a/b/d"))).toBe(at("a/b/d"))
      expect(await disk.makeDirectory(at("a/b"))).toBeUndefined()
    })

    it("makes the same directories for many at once", async () => {
      for (let round = 0; round < 50; round++) {
        const path = at(`many/${round}/of/them`)
        const made = await Promise.all(Array.from({ length: 6 }, () => disk.makeDirectory(path)))
        expect(await disk.exists(path)).toBe(true)
        // Whoever made something is told where it begins, and has to make that durable.
        expect(made.filter((top) => top !== undefined).length).toBeGreaterThan(0)
      }
    })

    it("does not make a directory where a file is", async () => {
      await put(disk, at("a"), "x")
      await expect(disk.makeDirectory(at("a"))).rejects.toEqual(code("EEXIST"))
      await expect(disk.makeDirectory(at("a/b"))).rejects.toEqual(code("ENOTDIR"))
    })

    it("lists entries by name in code unit order", async () => {
      for (const name of ["b", "a10", "Z", "a9", "é", "_"]) await put(disk, at(name), name)
      await disk.makeDirectory(at("m"))
      expect(await disk.list(subject.base)).toEqual([
        { name: "Z", kind: "file" },
        { name: "_", kind: "file" },
        { name: "a10", kind: "file" },
        { name: "a9", kind: "file" },
        { name: "b", kind: "file" },
        { name: "m", kind: "directory" },
        { name: "é", kind: "file" }
      ])
      expect(await disk.list(at("m"))).toEqual([])
    })

    it("lists only directories that exist", async () => {
      await put(disk, at("a"), "x")
      await expect(disk.list(at("none"))).rejects.toEqual(code("ENOENT"))
      await expect(disk.list(at("a"))).rejects.toEqual(code("ENOTDIR"))
    })

    it("knows what exists, below a file too", async () => {
      await put(disk, at("a"), "x")
      expect(await disk.exists(subject.base)).toBe(true)
      expect(await disk.exists(at("a"))).toBe(true)
      expect(await disk.exists(at("b"))).toBe(false)
      expect(await disk.exists(at("a/b"))).toBe(false)
      expect(await disk.exists(at("b/c"))).toBe(false)
    })

    it("syncs a directory, not a file and not nothing", async () => {
      await put(disk, at("a"), "x")
      await disk.syncDirectory(subject.base)
      await expect(disk.syncDirectory(at("a"))).rejects.toEqual(code("ENOTDIR"))
      await expect(disk.syncDirectory(at("none"))).rejects.toEqual(code("ENOENT"))
    })
  })

  describe("rename and remove", () => {
    it("renames within and across directories, replacing a file", async () => {
      await put(disk, at("a"), "one")
      await put(disk, at("b"), "two")
      await disk.makeDirectory(at("d"))
      await disk.rename(at("a"), at("b"))
      expect(await get(disk, at("b"))).toBe("one")
      await disk.rename(at("b"), at("d/c"))
      expect(await get(disk, at("d/c"))).toBe("one")
      expect((await disk.list(subject.base)).map((entry) => entry.name)).toEqual(["d"])
    })

    it("renames onto itself without loss", async () => {
      await put(disk, at("a"), "one")
      await disk.rename(at("a"), at("a"))
      expect(await get(disk, at("a"))).toBe("one")
    })

    it("renames a directory with all below it, also over an empty one", async () => {
      await disk.makeDirectory(at("d/e"))
      await put(disk, at("d/e/f"), "deep")
      await disk.makeDirectory(at("empty"))
      await disk.rename(at("d"), at("empty"))
      expect(await get(disk, at("empty/e/f"))).toBe("deep")
      expect(await disk.exists(at("d"))).toBe(false)
    })

    it("keeps a descriptor on the renamed file", async () => {
      const file = await disk.open(at("a"), "create")
      await disk.rename(at("a"), at("b"))
      await writeText(file, "followed")
      await file.close()
      expect(await get(disk, at("b"))).toBe("followed")
    })

    it("refuses renames that make no sense", async () => {
      await put(disk, at("a"), "x")
      await disk.makeDirectory(at("d/e"))
      await disk.makeDirectory(at("other"))
      await expect(disk.rename(at("none"), at("b"))).rejects.toEqual(code("ENOENT"))
      await expect(disk.rename(at("a"), at("none/b"))).rejects.toEqual(code("ENOENT"))
      await expect(disk.rename(at("a"), at("d"))).rejects.toEqual(code("EISDIR"))
      await expect(disk.rename(at("d"), at("a"))).rejects.toEqual(code("ENOTDIR"))
      await expect(disk.rename(at("other"), at("d"))).rejects.toEqual(code("ENOTEMPTY"))
      await expect(disk.rename(at("d"), at("d/e/x"))).rejects.toEqual(code("EINVAL"))
      expect((await disk.list(subject.base)).map((entry) => entry.name)).toEqual(["a", "d", "other"])
    })

    it("removes a file once, and no directory", async () => {
      await put(disk, at("a"), "x")
      await disk.makeDirectory(at("d"))
      await disk.remove(at("a"))
      await expect(disk.remove(at("a"))).rejects.toEqual(code("ENOENT"))
      await expect(disk.remove(at("d"))).rejects.toEqual(code("EISDIR"))
    })

    it("removes a tree, a single file, or nothing", async () => {
      await disk.makeDirectory(at("d/e/f"))
      await put(disk, at("d/e/a"), "x")
      await put(disk, at("b"), "x")
      await disk.removeTree(at("d"))
      await disk.removeTree(at("b"))
      await disk.removeTree(at("none"))
      expect(await disk.list(subject.base)).toEqual([])
    })
  })

  describe("lock", () => {
    const take = async (directory: string) => {
      const outcome = await disk.lock(directory)
      if (outcome._tag === "Held") throw new Error(`${directory} is held`)
      return outcome.lock
    }

    it("has one holder at a time, per directory", async () => {
      await disk.makeDirectory(at("x"))
      const first = await take(subject.base)
      expect((await disk.lock(subject.base))._tag).toBe("Held")
      const other = await take(at("x"))
      await first.release()
      const next = await take(subject.base)
      await Promise.all([next.release(), other.release()])
    })

    it("is released once: a late second release does not free the next holder", async () => {
      const first = await take(subject.base)
      await first.release()
      const second = await take(subject.base)
      await first.release()
      expect((await disk.lock(subject.base))._tag).toBe("Held")
      await second.release()
    })

    it("needs a directory", async () => {
      await put(disk, at("a"), "x")
      await expect(disk.lock(at("none"))).rejects.toEqual(code("ENOENT"))
      await expect(disk.lock(at("a"))).rejects.toEqual(code("ENOTDIR"))
    })
  })
})
