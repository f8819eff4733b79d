// Goal: what only the real file system shows: modes, short reads and writes, descriptors, errors in the middle.
// Method: the real disk in a temporary directory; where a healthy kernel does not misbehave, node:fs with one call
// replaced.

import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { codeOf } from "#runelog/disk/DiskFault.ts"
import { type FileSystem, makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { type Part, requirePart } from "../../support/require.ts"

const fullDevice: Part = {
  name: "/dev/full",
  isThere: () => fs.existsSync("/dev/full"),
  remedy: "run the tests on Linux"
}

let base: string
const at = (name: string) => join(base, name)
const code = (value: string) => expect.objectContaining({ code: value })
const failure = (value: string) => Object.assign(new Error(value), { code: value })

beforeEach(() => {
  base = fs.mkdtempSync(join(tmpdir(), "runelog-node-"))
})
afterEach(() => fs.rmSync(base, { recursive: true, force: true }))

/** node:fs with some calls replaced. */
const changed = (calls: { readonly [K in keyof FileSystem]?: unknown }) => ({ ...fs, ...calls }) as FileSystem

const bytes = Uint8Array.from({ length: 100 }, (_, index) => index)

describe("files and directories", () => {
  it("belong to their owner alone, whatever the mask allows", async () => {
    const before = process.umask(0)
    try {
      const disk = makeDiskNode()
      await disk.makeDirectory(at("one/two"))
      await (await disk.open(at("one/file"), "create")).close()
      const modes = ["one", "one/two", "one/file"].map((name) => fs.statSync(at(name)).mode & 0o777)
      expect(modes).toEqual([0o700, 0o700, 0o600])
    } finally {
      process.umask(before)
    }
  })

  it("are told from what is neither", async () => {
    fs.symlinkSync("nowhere", at("link"))
    const disk = makeDiskNode()
    expect(await disk.list(base)).toEqual([{ name: "link", kind: "other" }])
    expect(await disk.exists(at("link"))).toBe(true)
    await expect(disk.open(at("link"), "create")).rejects.toEqual(code("EEXIST"))
  })

  it("are listed by name in whatever order the kernel gives them", async () => {
    for (const name of ["a", "b", "c"]) fs.writeFileSync(at(name), "")
    for (const order of [1, -1]) {
      const readdir = (path: string, options: { withFileTypes: true }, done: (error: null, found: unknown) => void) => {
        const entries = fs.readdirSync(path, options)
        done(
          null,
          entries.sort((left, right) => (left.name < right.name ? -order : order))
        )
      }
      const disk = makeDiskNode({ fileSystem: changed({ readdir }) })
      expect((await disk.list(base)).map((entry) => entry.name)).toEqual(["a", "b", "c"])
    }
  })

  it("whose existence cannot be known are not taken for missing", async () => {
    await expect(makeDiskNode().exists(at("x".repeat(5000)))).rejects.toEqual(code("ENAMETOOLONG"))
  })
})

describe("reads and writes", () => {
  it("are finished when the kernel does only a part at a time", async () => {
    const calls = { read: 0, write: 0, writeSync: 0 }
    const disk = makeDiskNode({
      fileSystem: changed({
        read: (fd: number, target: Uint8Array, offset: number, length: number, position: number, done: never) => {
          calls.read++
          fs.read(fd, target, offset, Math.min(length, 7), position, done)
        },
        write: (fd: number, source: Uint8Array, offset: number, length: number, position: number, done: never) => {
          calls.write++
          fs.write(fd, source, offset, Math.min(length, 7), position, done)
        },
        writeSync: (fd: number, source: Uint8Array, offset: number, length: number, position: number) => {
          calls.writeSync++
          return fs.writeSync(fd, source, offset, Math.min(length, 7), position)
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    await file.write(bytes, 0, 50, 0)
    file.writeNow(bytes, 50, 50, 50)
    const target = new Uint8Array(120)
    expect(await file.read(target, 10, 110, 0)).toBe(100)
    await file.close()
    expect(target.subarray(10, 110)).toEqual(bytes)
    expect(fs.readFileSync(at("a"))).toEqual(Buffer.from(bytes))
    expect(calls).toEqual({ read: 16, write: 8, writeSync: 8 })
  })

  it("fail when they make no progress", async () => {
    const stuck = (...given: ReadonlyArray<unknown>) => (given.at(-1) as (error: null, count: number) => void)(null, 0)
    const disk = makeDiskNode({ fileSystem: changed({ write: stuck, writeSync: () => 0 }) })
    const file = await disk.open(at("a"), "create")
    await expect(file.write(bytes, 0, 10, 0)).rejects.toEqual(code("EIO"))
    expect(() => file.writeNow(bytes, 0, 10, 0)).toThrow(code("EIO"))
    await file.close()
  })

  it("tell the error that follows a part", async () => {
    let calls = 0
    const disk = makeDiskNode({
      fileSystem: changed({
        write: (fd: number, source: Uint8Array, offset: number, _length: number, position: number, done: never) => {
          if (calls++ === 0) fs.write(fd, source, offset, 30, position, done)
          else (done as (error: Error) => void)(failure("ENOSPC"))
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    await expect(file.write(bytes, 0, 100, 0)).rejects.toEqual(code("ENOSPC"))
    expect(await file.size()).toBe(30)
    await file.close()
  })

  it("tell that the device is full", async (context) => {
    requirePart(context, fullDevice)
    const file = await makeDiskNode().open("/dev/full", "write")
    await expect(file.write(bytes, 0, 100, 0)).rejects.toEqual(code("ENOSPC"))
    expect(() => file.writeNow(bytes, 0, 100, 0)).toThrow(code("ENOSPC"))
    await file.close()
  })
})

describe("descriptors", () => {
  it("stay open until what is under way has ended", async () => {
    const order: Array<string> = []
    let finish: (() => void) | undefined
    const disk = makeDiskNode({
      fileSystem: changed({
        fdatasync: (_fd: number, done: fs.NoParamCallback) => {
          finish = () => {
            order.push("synced")
            done(null)
          }
        },
        close: (fd: number, done: fs.NoParamCallback) => {
          order.push("closed")
          fs.close(fd, done)
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    const syncing = file.sync()
    const sizing = file.size()
    const closing = file.close()
    await sizing
    await expect(file.size()).rejects.toEqual(code("EBADF"))
    expect(order).toEqual([])
    finish!()
    await Promise.all([syncing, closing])
    expect(order).toEqual(["synced", "closed"])
  })

  it("are not leaked by a directory sync that fails", async () => {
    const opened: Array<number> = []
    const closed: Array<number> = []
    const disk = makeDiskNode({
      fileSystem: changed({
        open: (path: string, flags: number, done: (error: Error | null, fd: number) => void) =>
          fs.open(path, flags, (error, fd) => {
            opened.push(fd)
            done(error, fd)
          }),
        fsync: (_fd: number, done: fs.NoParamCallback) => done(failure("EIO")),
        close: (fd: number, done: fs.NoParamCallback) => {
          closed.push(fd)
          fs.close(fd, done)
        }
      })
    })
    await expect(disk.syncDirectory(base)).rejects.toEqual(code("EIO"))
    expect(closed).toEqual(opened)
    expect(opened).toHaveLength(1)
  })

  it("are closed once", async () => {
    let closes = 0
    const disk = makeDiskNode({
      fileSystem: changed({
        close: (fd: number, done: fs.NoParamCallback) => {
          closes++
          fs.close(fd, done)
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    await Promise.all([file.close(), file.close()])
    expect(closes).toBe(1)
  })
})

describe("syncs", () => {
  it("go to the kernel each time: data by fdatasync, a directory by fsync", async () => {
    const calls: Array<string> = []
    const disk = makeDiskNode({
      fileSystem: changed({
        fdatasync: (fd: number, done: fs.NoParamCallback) => {
          calls.push("fdatasync")
          fs.fdatasync(fd, done)
        },
        fdatasyncSync: (fd: number) => {
          calls.push("fdatasyncSync")
          fs.fdatasyncSync(fd)
        },
        fsync: (fd: number, done: fs.NoParamCallback) => {
          calls.push(fs.fstatSync(fd).isDirectory() ? "fsync of a directory" : "fsync of a file")
          fs.fsync(fd, done)
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    await file.sync()
    await file.sync()
    file.syncNow()
    await file.close()
    await disk.syncDirectory(base)
    expect(calls).toEqual(["fdatasync", "fdatasync", "fdatasyncSync", "fsync of a directory"])
  })

  it("that fail are told, in both ways", async () => {
    const disk = makeDiskNode({
      fileSystem: changed({
        fdatasync: (_fd: number, done: fs.NoParamCallback) => done(failure("EIO")),
        fdatasyncSync: () => {
          throw failure("EIO")
        }
      })
    })
    const file = await disk.open(at("a"), "create")
    await expect(file.sync()).rejects.toEqual(code("EIO"))
    expect(() => file.syncNow()).toThrow(code("EIO"))
    await file.close()
  })

  it("of a directory only look where the platform has none", async () => {
    const disk = makeDiskNode({
      platform: "win32",
      fileSystem: changed({
        open: () => {
          throw failure("EPERM")
        }
      })
    })
    await disk.syncDirectory(base)
    await expect(disk.syncDirectory(at("none"))).rejects.toEqual(code("ENOENT"))
  })
})

describe("the lock", () => {
  it("can be replaced", async () => {
    const disk = makeDiskNode({ lock: async () => ({ _tag: "Held", owner: undefined }) })
    expect(await disk.lock(base)).toEqual({ _tag: "Held", owner: undefined })
  })
})

describe("the code of an error", () => {
  it("is known for errors of a disk only", () => {
    expect(codeOf(failure("EIO"))).toBe("EIO")
    for (const other of [new Error("plain"), Object.assign(new Error("odd"), { code: 5 }), "EIO", undefined]) {
      expect(codeOf(other)).toBeUndefined()
    }
  })
})
