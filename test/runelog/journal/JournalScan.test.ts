// Goal: of all that a journal may hold, recovery gets the batches it needs, in order, without a hole, and is told when
// there is one. Method: journal files written by hand.
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { bytesOf } from "#runelog/Frame.ts"
import {
  alignPage,
  BATCH_HEADER_BYTES,
  encodeJournalFileHeader,
  JOURNAL_PAGE_BYTES as page,
  sealBatch
} from "#runelog/journal/JournalBatch.ts"
import { listJournal, scanJournal } from "#runelog/journal/JournalScan.ts"
import { ForeignFile, FormatUnsupported } from "#runelog/RunelogErrors.ts"
import { MIB } from "#runelog/RunelogLimits.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { errorOf, readFileOf, writeFileOf } from "../Fixture.ts"

const directoryId = "cd".repeat(16)
const state = { directoryId, floor: 1, sequence: 0, clean: false }

class Writer {
  readonly disk: Disk = makeDiskMemory()
  previousHeaderCrc = 0

  async file(name: string, bytes = 16 * page): Promise<void> {
    await this.disk.makeDirectory("/j")
    const content = Buffer.alloc(bytes)
    encodeJournalFileHeader({ directoryId, bytes }).copy(content)
    await writeFileOf(this.disk, `/j/${name}`, content)
  }

  /** Writes a batch; returns the page behind it. */
  async batch(
    name: string,
    at: number,
    sequence: number,
    options: { payloadBytes?: number; nonce?: bigint } = {}
  ): Promise<number> {
    const { nonce = 1n, payloadBytes = 100 } = options
    const bytes = bytesOf(Buffer.alloc(BATCH_HEADER_BYTES + payloadBytes, sequence))
    const header = { payloadBytes, sequence, nonce, groups: 0, previousHeaderCrc: this.previousHeaderCrc }
    this.previousHeaderCrc = sealBatch(bytes, 0, header)
    const file = await this.disk.open(`/j/${name}`, "write")
    await file.write(bytes.buffer, 0, bytes.buffer.length, at * page)
    return at + alignPage(bytes.buffer.length) / page
  }

  scan(options: Partial<typeof state> = {}) {
    return scanJournal({ disk: this.disk, directory: "/j", ...state, ...options })
  }

  async damage(name: string, offset: number): Promise<void> {
    const content = await readFileOf(this.disk, `/j/${name}`)
    content[offset]! ^= 0x40
    await writeFileOf(this.disk, `/j/${name}`, content)
  }
}

const [one, two] = ["00000001.jnl", "00000002.jnl"]
const sequences = (batches: ReadonlyArray<{ readonly sequence: number }>) => batches.map(({ sequence }) => sequence)

const three = async (): Promise<Writer> => {
  const writer = new Writer()
  await writer.file(one)
  await writer.file(two)
  const next = await writer.batch(two, 1, 1, { payloadBytes: 3 * page })
  await writer.batch(two, next, 2)
  await writer.batch(one, 1, 3)
  return writer
}

describe("a scan of the journal", () => {
  it("gives the batches from the floor on, in order, from whatever file", async () => {
    const writer = await three()
    expect(await writer.scan()).toMatchObject({ damage: undefined, torn: undefined, lastSequence: 3 })
    expect(sequences((await writer.scan()).batches)).toEqual([1, 2, 3])
    expect(sequences((await writer.scan({ floor: 3 })).batches)).toEqual([3])
    const empty = await writer.scan({ floor: 4 })
    expect(empty).toMatchObject({ batches: [], lastSequence: 3, damage: undefined })
    expect((await writer.scan({ floor: 9 })).lastSequence).toBe(8)
    expect((await writer.scan({ sequence: 20 })).lastSequence).toBe(20)
  })

  it("reads no batch after a clean close, but every header", async () => {
    const writer = await three()
    expect(await writer.scan({ clean: true, sequence: 7 })).toMatchObject({
      batches: [],
      lastSequence: 7,
      damage: undefined
    })
    await writer.damage(one, 20)
    expect(await writer.scan({ clean: true })).toMatchObject({ damage: { file: `/j/${one}`, offset: 0 } })
  })

  it("takes a last batch that is not whole for one that was never acknowledged", async () => {
    const writer = await three()
    await writer.damage(one, page + BATCH_HEADER_BYTES + 5)
    const { batches, damage, torn } = await writer.scan()
    expect(sequences(batches)).toEqual([1, 2])
    expect(damage).toBeUndefined()
    expect(torn).toMatchObject({ sequence: 3, name: one, offset: page })
    await writer.damage(one, page + 20)
    expect(await writer.scan()).toMatchObject({ damage: undefined, torn: undefined })
  })

  it("names a hole: by the batch itself where its header is left, else by the one behind it", async () => {
    const writer = await three()
    await writer.damage(two, page + BATCH_HEADER_BYTES + 5)
    expect(await writer.scan()).toMatchObject({
      batches: [],
      torn: undefined,
      damage: { file: `/j/${two}`, offset: page, reason: "batch 1 does not match its checksum" }
    })
    await writer.damage(two, page + 20)
    const { damage } = await writer.scan()
    expect(damage).toMatchObject({ file: `/j/${two}`, offset: 5 * page, reason: "batch 1 is missing before batch 2" })
  })

  it("takes a batch of another writer, or one that follows another, for no continuation", async () => {
    const other = await three()
    await other.batch(one, 2, 4, { nonce: 2n })
    expect(await other.scan()).toMatchObject({ damage: { reason: "batch 4 does not continue the one before it" } })
    const unchained = await three()
    unchained.previousHeaderCrc = 99
    await unchained.batch(one, 2, 4)
    expect(sequences((await unchained.scan()).batches)).toEqual([1, 2, 3])
    expect(await unchained.scan()).toMatchObject({ damage: { reason: "batch 4 does not continue the one before it" } })
    const doubled = await three()
    await doubled.batch(one, 2, 3)
    expect(await doubled.scan()).toMatchObject({ damage: { reason: "batch 3 is there twice", offset: 2 * page } })
  })

  it("finds a file that is shorter or longer than it was made, or that has no header", async () => {
    const writer = await three()
    const content = await readFileOf(writer.disk, `/j/${one}`)
    await writeFileOf(writer.disk, `/j/${one}`, content.subarray(0, 5 * page + 1))
    expect(await writer.scan()).toMatchObject({ damage: { offset: 5 * page + 1 }, batches: [{}, {}, {}] })
    await writeFileOf(writer.disk, `/j/${one}`, Buffer.concat([content, Buffer.alloc(1)]))
    expect(await writer.scan()).toMatchObject({ damage: { offset: 16 * page } })
    await writeFileOf(writer.disk, `/j/${one}`, Buffer.alloc(10))
    expect(await writer.scan()).toMatchObject({ damage: { offset: 0, reason: "the journal header is cut short" } })
    await writeFileOf(writer.disk, `/j/${one}`, content.subarray(0, page + 80))
    expect((await writer.scan()).batches).toHaveLength(2)
  })

  it("finds that there is no file where there must be one", async () => {
    const disk = makeDiskMemory()
    await disk.makeDirectory("/j")
    expect(await scanJournal({ disk, directory: "/j", ...state })).toMatchObject({
      damage: { reason: "there is no journal file" }
    })
    expect(await scanJournal({ disk, directory: "/j", ...state, clean: true })).toMatchObject({ damage: undefined })
  })

  it("finds batches beyond the first chunk it reads", async () => {
    const writer = new Writer()
    await writer.file(one, 3 * MIB)
    const next = await writer.batch(one, 1, 1, { payloadBytes: MIB })
    await writer.batch(one, await writer.batch(one, next, 2, { payloadBytes: MIB }), 3)
    expect(sequences((await writer.scan()).batches)).toEqual([1, 2, 3])
  })

  it("refuses what is of another version, of another directory or no journal file", async () => {
    const foreign = await three()
    expect(await errorOf(foreign.scan({ directoryId: "00".repeat(16) }))).toEqual(
      new ForeignFile({ file: `/j/${one}` })
    )
    const version = await three()
    const content = await readFileOf(version.disk, `/j/${one}`)
    content.writeUInt16LE(2, 12)
    content.writeUInt32LE(crc32c(content, 12, BATCH_HEADER_BYTES, 0), 8)
    await writeFileOf(version.disk, `/j/${one}`, content)
    expect(await errorOf(version.scan())).toEqual(
      new FormatUnsupported({ file: `/j/${one}`, version: 2, supported: 1 })
    )
    const other = await three()
    await writeFileOf(other.disk, "/j/notes.txt", Buffer.from("mine"))
    expect(await errorOf(other.scan())).toEqual(new ForeignFile({ file: "/j/notes.txt" }))
    const directory = await three()
    await directory.disk.makeDirectory(`/j/${journalLike}`)
    expect(await errorOf(directory.scan())).toEqual(new ForeignFile({ file: `/j/${journalLike}` }))
  })

  it("tells unfinished files apart", async () => {
    const writer = await three()
    await writeFileOf(writer.disk, `/j/${two}.tmp`, Buffer.alloc(3))
    expect(await listJournal(writer.disk, "/j")).toEqual({ files: [one, two], leftovers: [`${two}.tmp`] })
  })
})

const journalLike = "00000009.jnl"
