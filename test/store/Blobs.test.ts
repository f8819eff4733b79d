// Goal: bytes come back as they went in, are durable when named, and are never served altered. Method: both disks, pages
// at every border, altered files, and the simulated disk cut at every step of a write.

import { createHash } from "node:crypto"
import { statSync } from "node:fs"
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Blobs } from "#src/store/Blobs.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { seedFor } from "../support/seed.ts"
import { type Place, places, realPlace } from "./support.ts"

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex")

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const flip = async (place: { readonly disk: Place["disk"] }, path: string, at: number) => {
  const file = await place.disk.open(path, "write")
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, at)
  byte[0]! ^= 1
  await file.write(byte, 0, 1, at)
  await file.close()
}

describe.each(places)("blobs on %s", (_name, makePlace) => {
  let place: Place
  let blobs: Blobs
  const pathOf = (hash: string) => `${place.directory}/blobs/${hash.slice(0, 2)}/${hash}`
  const limited = (keptBytesMax: number) =>
    new Blobs({ disk: place.disk, directory: `${place.directory}/blobs`, keptBytesMax })
  const open = (bytesMax?: number) =>
    new Blobs({
      disk: place.disk,
      directory: `${place.directory}/blobs`,
      ...(bytesMax === undefined ? {} : { bytesMax })
    })

  it("have a limit together, also for those that are written side by side, and what must be kept is kept", async () => {
    const full = limited(1_000)
    await full.keep(Buffer.alloc(400, "a"))
    await full.keep(Buffer.alloc(400, "a"))
    expect(await full.counted()).toBe(400)
    const both = await Promise.allSettled([full.keep(Buffer.alloc(500, "b")), full.keep(Buffer.alloc(500, "c"))])
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
    await expect(full.keep(pieces(Buffer.alloc(5_000, "d"), 50))).rejects.toMatchObject({ _tag: "BlobsFull" })
    expect(await full.counted()).toBe(900)
    await full.put(Buffer.alloc(300, "e"))
    // The next life counts what is there.
    const next = limited(1_250)
    expect(await next.counted()).toBe(1_200)
    await expect(next.keep(Buffer.alloc(100, "f"))).rejects.toMatchObject({ _tag: "BlobsFull" })
    await next.keep(Buffer.alloc(50, "g"))
  })

  beforeEach(() => {
    place = makePlace()
    blobs = open()
  })
  afterEach(() => place.dispose())

  it("that are the first, many at once, are all kept", async () => {
    const texts = Array.from({ length: 200 }, (_, at) => `text ${at}`)
    const kept = await Promise.all(texts.map((text) => blobs.put(text)))
    expect(kept.map((one) => one.sha256)).toEqual(texts.map((text) => sha256(text)))
  })

  it("are named by their hash and come back", async () => {
    const text = "größer als gedacht"
    const ref = await blobs.put(text, { mediaType: "text/plain" })
    expect(ref).toEqual({ sha256: sha256(text), bytes: Buffer.byteLength(text), media_type: "text/plain" })
    expect((await blobs.readAll(ref.sha256, { bytesMax: 100 })).toString("utf8")).toBe(text)
    expect(await blobs.has(ref.sha256)).toBe(true)
    expect(await blobs.put(Buffer.alloc(0))).toEqual({ sha256: sha256(""), bytes: 0 })
    expect(await blobs.readAll(sha256(""), { bytesMax: 0 })).toHaveLength(0)
  })

  it("are streamed in and paged out, however the pieces fall", async () => {
    const bytes = Buffer.alloc(2_500_000, "0123456789abcdef")
    const ref = await blobs.put(pieces(bytes, 70_001))
    expect(ref).toEqual({ sha256: sha256(bytes), bytes: bytes.length })
    const found: Array<Buffer> = []
    for await (const page of blobs.stream(ref.sha256)) found.push(page)
    expect(found.length).toBe(Math.ceil(bytes.length / limits.blobPageBytes))
    expect(Buffer.concat(found).equals(bytes)).toBe(true)
    const page = await blobs.read(ref.sha256, { offset: 17, bytesMax: 5 })
    expect(page).toEqual({ bytes: bytes.subarray(17, 22), next: 22, size: bytes.length })
    expect(await blobs.read(ref.sha256, { offset: bytes.length - 3 })).toMatchObject({ next: undefined })
    expect(await blobs.read(ref.sha256, { offset: bytes.length + 3 })).toMatchObject({
      next: undefined,
      size: bytes.length
    })
  })

  it("are kept once", async () => {
    const first = await blobs.put("same")
    const second = await blobs.put(pieces(Buffer.from("same"), 1))
    expect(second.sha256).toBe(first.sha256)
    const files = await place.disk.list(`${place.directory}/blobs/${first.sha256.slice(0, 2)}`)
    expect(files).toHaveLength(1)
  })

  it("that are unknown or not named by a hash are a typed error", async () => {
    await expect(blobs.read(sha256("nobody"))).rejects.toMatchObject({ _tag: "BlobUnknown" })
    await expect(blobs.read("../../etc/passwd")).rejects.toMatchObject({ _tag: "BlobUnknown" })
    expect(await blobs.has("../../token")).toBe(false)
    expect(await blobs.has(sha256("nobody"))).toBe(false)
  })

  it("beyond the limit are refused and leave nothing", async () => {
    const tight = open(10)
    await expect(tight.put("eleven byte")).rejects.toMatchObject({ _tag: "BlobTooLarge", bytesMax: 10 })
    await expect(tight.put(pieces(Buffer.alloc(50), 7))).rejects.toMatchObject({ _tag: "BlobTooLarge" })
    expect(await place.disk.list(`${place.directory}/blobs/incoming`)).toEqual([])
    const ref = await blobs.put("x".repeat(100))
    await expect(blobs.readAll(ref.sha256, { bytesMax: 99 })).rejects.toMatchObject({
      _tag: "BlobTooLarge",
      bytes: 100
    })
  })

  it("are not served once a byte has changed", async () => {
    const ref = await blobs.put("x".repeat(1000))
    await flip(place, pathOf(ref.sha256), 500)
    const fresh = open()
    await expect(fresh.read(ref.sha256, { offset: 0, bytesMax: 10 })).rejects.toMatchObject({ _tag: "BlobDamaged" })
    await expect(fresh.readAll(ref.sha256, { bytesMax: 9999 })).rejects.toThrow("hash to something else")
    await blobs.verify(ref.sha256).catch(() => undefined)
    await expect(blobs.verify(ref.sha256, { again: true })).rejects.toMatchObject({ _tag: "BlobDamaged" })
    // Storing the same bytes again heals it.
    await fresh.put("x".repeat(1000))
    expect((await fresh.readAll(ref.sha256, { bytesMax: 9999 })).toString()).toBe("x".repeat(1000))
  })

  it("that were cut after they were checked are reported", async () => {
    const ref = await blobs.put("x".repeat(1000))
    await blobs.verify(ref.sha256)
    const file = await place.disk.open(pathOf(ref.sha256), "write")
    await file.truncate(100)
    await file.close()
    await expect(blobs.read(ref.sha256)).rejects.toThrow("it was cut short")
    await expect(blobs.read(ref.sha256)).rejects.toMatchObject({ _tag: "BlobDamaged" })
  })

  it("that were half written are swept away", async () => {
    await place.disk.makeDirectory(`${place.directory}/blobs/incoming`)
    await (await place.disk.open(`${place.directory}/blobs/incoming/abc`, "create")).close()
    await blobs.sweep()
    expect(await place.disk.exists(`${place.directory}/blobs/incoming`)).toBe(false)
    await blobs.put("goes on")
  })
})

describe("a blob", () => {
  it("can be read by its owner alone", async () => {
    const place = realPlace()
    const blobs = new Blobs({ disk: place.disk, directory: `${place.directory}/blobs` })
    const { sha256: hash } = await blobs.put("private")
    expect(statSync(`${place.directory}/blobs/${hash.slice(0, 2)}/${hash}`).mode & 0o777).toBe(0o600)
    expect(statSync(`${place.directory}/blobs/${hash.slice(0, 2)}`).mode & 0o777).toBe(0o700)
    place.dispose()
  })

  it("of any bytes in any pieces reads back in any pages", async () => {
    const blobs = new Blobs({ disk: new DiskSim(), directory: "/blobs" })
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 50 }),
        async (content, pieceBytes, pageBytes) => {
          const bytes = Buffer.from(content)
          const ref = await blobs.put(pieces(bytes, pieceBytes))
          const found: Array<Buffer> = []
          for (let offset: number | undefined = 0; offset !== undefined; ) {
            const page: Awaited<ReturnType<Blobs["read"]>> = await blobs.read(ref.sha256, {
              offset,
              bytesMax: pageBytes
            })
            found.push(page.bytes)
            offset = page.next
          }
          expect(Buffer.concat(found).equals(bytes)).toBe(true)
        }
      ),
      { seed: seedFor("blobs"), numRuns: 60 }
    )
  })

  it("is durable when it has its name, whenever the power goes", async () => {
    const seed = seedFor("blob crash")
    const content = "kept ".repeat(500)
    const hash = sha256(content)
    const probe = new DiskSim()
    await new Blobs({ disk: probe, directory: "/data/blobs" }).put(content)
    for (let step = 0; step <= probe.operationCount; step++) {
      const disk = new DiskSim()
      disk.onOperation = ({ index }) => {
        if (index === step) disk.powerOff()
      }
      const acknowledged = await new Blobs({ disk, directory: "/data/blobs" }).put(content).then(
        () => true,
        () => false
      )
      for (let draw = 0; draw < 5; draw++) {
        const after = new Blobs({ disk: disk.crash(seed + step * 100 + draw), directory: "/data/blobs" })
        const there = await after.has(hash)
        if (acknowledged) expect(there, `step ${step}`).toBe(true)
        if (there) expect((await after.readAll(hash, { bytesMax: 9999 })).toString()).toBe(content)
      }
    }
  })

  it("that the disk cannot take is a typed error and leaves nothing", async () => {
    const disk = new DiskSim()
    const blobs = new Blobs({ disk, directory: "/blobs", randomHex: () => "abcd" })
    disk.failNext("write", { code: "ENOSPC" })
    await expect(blobs.put("x")).rejects.toMatchObject({ _tag: "DiskFull" })
    disk.failNext("sync", { code: "EIO" })
    await expect(blobs.put("x")).rejects.toMatchObject({ _tag: "DiskFailed" })
    expect(await disk.list("/blobs/incoming")).toEqual([])
    await blobs.put("x")
    disk.failNext("open", { code: "EIO" })
    await expect(blobs.verify(sha256("x"))).rejects.toThrow("EIO")
  })
})
