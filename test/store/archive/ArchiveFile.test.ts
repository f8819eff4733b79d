// Goal: a file that is well formed and tells an untrue story is refused as firmly as one that is torn. Method: archives
// made by hand: right checksums, wrong manifests; sources that are no segments.
import { beforeEach, describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { Runelog } from "#runelog/Runelog.ts"
import type { SealedFile } from "#runelog/recovery/Import.ts"
import { Archive } from "#src/store/archive/Archive.ts"
import { ArchiveWriter, type Manifest, readManifest, rowIn } from "#src/store/archive/ArchiveFile.ts"
import { ArchiveReader } from "#src/store/archive/ArchiveReader.ts"
import { emptyRow } from "#src/store/catalog/CatalogRow.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { Scribe } from "../support.ts"

const scribe = () => new Scribe(1).begin().turn().close()
const id = scribe().conversationId
let disk: Disk
let files: ReadonlyArray<SealedFile>

beforeEach(async () => {
  disk = makeDiskMemory()
  const runelog = await Runelog.open({ disk, directory: "/data", limits: { segmentBytes: 1000 } })
  await new RuneStore({ runelog }).appendNow(id, scribe().runes.slice(0, 4))
  await new RuneStore({ runelog }).appendNow(id, scribe().runes.slice(4))
  files = await runelog.sealedFiles(id)
})

const write = async (change: (manifest: Manifest) => Manifest): Promise<ArchiveReader> => {
  if (await disk.exists("/made.arc")) await disk.remove("/made.arc")
  const file = await disk.open("/made.arc", "create")
  const writer = new ArchiveWriter(file)
  await writer.begin()
  const segments = []
  for (const source of files) segments.push(await writer.segment(source))
  const { lastEventId: head, sha256 } = files.at(-1)!
  await writer.finish(change({ conversation_id: id, head, sha256, segments, row: emptyRow(id) }))
  await file.close()
  return ArchiveReader.open(disk, "/made.arc", id)
}

describe("an archive that is well formed", () => {
  it("is read when its manifest tells the truth", async () => {
    const reader = await write((manifest) => manifest)
    await reader.verify()
    expect((await reader.readPage({ after: 0, bytesMax: 1e6 })).frames[0]?.eventId).toBe(1)
    expect(rowIn(reader.manifest)).toEqual(emptyRow(id))
    expect(rowIn({ ...reader.manifest, row: { ...emptyRow(id), format: 0 as 4 } })).toBeUndefined()
  })

  it.each<readonly [string, (manifest: Manifest) => Manifest, RegExp]>([
    ["ends earlier", (manifest) => ({ ...manifest, head: manifest.head - 1 }), /ends elsewhere/],
    ["has another digest", (manifest) => ({ ...manifest, sha256: "0".repeat(64) }), /ends elsewhere/],
    ["lacks a segment", (manifest) => ({ ...manifest, segments: manifest.segments.slice(0, 1) }), /ends elsewhere/],
    ["has no segment", (manifest) => ({ ...manifest, segments: [] }), /ends elsewhere/],
    [
      "claims other lengths",
      (manifest) => lengthen(manifest, 8),
      /cannot be inflated|cut short|not sealed|inside a frame/
    ]
  ])("and %s is found out", async (_what, change, reason) => {
    const reader = await write(change)
    await expect(reader.verify()).rejects.toThrow(reason)
  })

  it("and has no block for an event, or one without it, says so to the reader", async () => {
    const none = await write((manifest) => ({ ...manifest, segments: [] }))
    await expect(none.readPage({ after: 0, bytesMax: 100 })).rejects.toThrow("no block holds event 1")
    const longer = await write((manifest) => ({ ...manifest, head: manifest.head + 5 }))
    const { head } = longer.manifest
    await expect(longer.readPage({ after: head - 5, bytesMax: 100 })).rejects.toThrow(`event ${head - 4} is missing`)
    const moved = await write((manifest) => lengthen(manifest, 8))
    await expect(moved.readPage({ after: 0, bytesMax: 100 })).rejects.toMatchObject({ _tag: "ArchiveDamaged" })
  })

  it("and belongs to a newer build or another conversation is not read", async () => {
    await write((manifest) => manifest)
    await expect(ArchiveReader.open(disk, "/made.arc", new Scribe(2).conversationId)).rejects.toThrow(
      `it belongs to ${id}`
    )
    const file = await disk.open("/made.arc", "write")
    const header = Buffer.alloc(16)
    await file.read(header, 0, 16, 0)
    header.writeUInt32LE(9, 8)
    header.writeUInt32LE(crc32c(header, 0, 12, 0), 12)
    await file.write(header, 0, 16, 0)
    await file.close()
    await expect(readManifest(disk, "/made.arc", id)).rejects.toMatchObject({ _tag: "ArchiveUnsupported", version: 9 })
    await expect(readManifest(disk, "/made.arc", id)).rejects.toThrow("this build reads version 1")
  })
})

describe("a source that is no segment", () => {
  const fake = (bytes: Buffer): SealedFile => ({
    firstEventId: 1,
    lastEventId: 1,
    bytes: bytes.length,
    sha256: "",
    read: async (position, length) => bytes.subarray(position, position + length)
  })

  it.each<readonly [string, Buffer, RegExp]>([
    ["too short", Buffer.alloc(100), /no frame at byte 128/],
    ["of frames beyond any length", Buffer.alloc(4096, 0xff), /no frame at byte 128/],
    [
      "cut inside its first frame",
      frameOf(limits.archiveBlockBytes * 2).subarray(0, limits.archiveBlockBytes + 500),
      /cut short/
    ]
  ])("is not archived: %s", async (_what, bytes, reason) => {
    const writer = new ArchiveWriter(await disk.open("/none.arc", "create"))
    await expect(writer.segment(fake(bytes))).rejects.toThrow(reason)
  })

  it("but a frame larger than a block is", async () => {
    const writer = new ArchiveWriter(await disk.open("/large.arc", "create"))
    const segment = await writer.segment(fake(frameOf(limits.archiveBlockBytes * 2)))
    expect(segment.blocks).toMatchObject([{ bytes: 128 + 32 + limits.archiveBlockBytes * 2 }])
  })
})

describe("an archive that cannot be opened", () => {
  it("is an error of whoever asks, again and again", async () => {
    const runelog = await Runelog.open({ disk, directory: "/other" })
    const archive = new Archive({ runelog, disk, directory: "/other" })
    await disk.makeDirectory("/other/archive")
    await (await disk.open(`/other/archive/${id}.arc`, "create")).close()
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(archive.head(id)).rejects.toMatchObject({ _tag: "ArchiveDamaged", reason: "it is cut short" })
    }
    await runelog.close()
  })

  it("does not fill memory with readers", async () => {
    const runelog = await Runelog.open({ disk, directory: "/many" })
    const archive = new Archive({ runelog, disk, directory: "/many" })
    await write((manifest) => manifest)
    for (let number = 0; number < limits.archiveReadersMax * 2; number++) {
      expect(await archive.head(new Scribe(number).conversationId)).toBeUndefined()
    }
    await runelog.close()
  })
})

/** A segment's header and one frame of that body length, as far as lengths go. */
function frameOf(bodyBytes: number): Buffer {
  const bytes = Buffer.alloc(128 + 32 + bodyBytes)
  bytes.writeUInt32LE(bodyBytes, 128 + 8)
  return bytes
}

/** The manifest with every block longer than it is. */
function lengthen(manifest: Manifest, bytes: number): Manifest {
  return {
    ...manifest,
    segments: manifest.segments.map((segment) => ({
      ...segment,
      bytes: segment.bytes + bytes * segment.blocks.length,
      blocks: segment.blocks.map((block) => ({ ...block, bytes: block.bytes + bytes }))
    }))
  }
}
