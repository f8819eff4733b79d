// Goal: batches get places that overwrite nothing that is needed, room is kept for the last words, and a file that cannot
// be made leaves nothing behind. Method: a journal of small files on a simulated disk.
import { describe, expect, it } from "vitest"
import { isJournalFileName, isJournalLeftover, Journal, journalFileName } from "#runelog/journal/Journal.ts"
import { decodeJournalFileHeader, JOURNAL_PAGE_BYTES as page } from "#runelog/journal/JournalBatch.ts"
import { resolveLimits } from "#runelog/Options.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { errorOf, readFileOf } from "../Fixture.ts"

const directoryId = "ab".repeat(16)
const normal = { mayUseReserve: false }
const terminal = { mayUseReserve: true }

const fresh = async (files: number, overrides: Parameters<typeof resolveLimits>[0] = {}) => {
  const disk = new DiskSim()
  await disk.makeDirectory("/j")
  await disk.syncDirectory("/")
  const limits = resolveLimits({ journalFileBytes: 8 * page, reserveBytes: page, journalFilesMax: 3, ...overrides })
  const journal = new Journal({ disk, directory: "/j", directoryId, limits })
  for (let file = 0; file < files; file++) await journal.grow()
  return { disk, journal }
}

/** Places a batch and notes its sequence, as the committer does. */
const place = (journal: Journal, sequence: number, pages: number, options = normal) => {
  const placement = journal.place(pages * page, options)
  if (placement !== undefined) placement.journal.lastSequence = sequence
  return placement && [placement.journal.name, placement.position / page]
}

const one = journalFileName(1)
const two = journalFileName(2)

describe("the journal", () => {
  it("makes files that are filled, durable and say what they are", async () => {
    const { disk, journal } = await fresh(2)
    for (let seed = 0; seed < 10; seed++) {
      const after = disk.crash(seed)
      expect((await after.list("/j")).map(({ name }) => name)).toEqual([one, two])
      const content = await readFileOf(after, `/j/${one}`)
      expect(decodeJournalFileHeader(content)).toEqual({ _tag: "Header", version: 1, directoryId, bytes: 8 * page })
      expect(content.subarray(page).every((byte) => byte === 0)).toBe(true)
    }
    expect([journal.files, journal.usedFiles]).toEqual([2, 0])
    await journal.close()
  })

  it("places batches one behind the other, then in the next file", async () => {
    const { journal } = await fresh(2)
    expect(place(journal, 1, 3)).toEqual([one, 1])
    expect(place(journal, 2, 4)).toEqual([one, 4])
    expect(place(journal, 3, 1)).toEqual([two, 1])
    expect(journal.usedFiles).toBe(2)
    expect(journal.checkpointTarget).toBe(2)
  })

  it("has no place for a batch larger than a file, nor when all are full", async () => {
    const { journal } = await fresh(1)
    expect(place(journal, 1, 8)).toBeUndefined()
    expect(place(journal, 1, 6)).toEqual([one, 1])
    expect(place(journal, 2, 2)).toBeUndefined()
    expect(journal.checkpointTarget).toBe(0)
  })

  it("keeps the reserve for those who may use it", async () => {
    const { journal } = await fresh(1)
    expect(place(journal, 1, 6)).toEqual([one, 1])
    expect(place(journal, 2, 1)).toBeUndefined()
    expect(place(journal, 2, 1, terminal)).toEqual([one, 7])
  })

  it("keeps the reserve across files", async () => {
    const { journal } = await fresh(2)
    expect(place(journal, 1, 7)).toEqual([one, 1])
    expect(place(journal, 2, 7)).toBeUndefined()
    expect(place(journal, 2, 7, terminal)).toEqual([two, 1])
  })

  it("gives back the place of a batch that could not be written", async () => {
    const { journal } = await fresh(1)
    const placement = journal.place(2 * page, normal)!
    journal.retract(placement)
    expect(place(journal, 1, 1)).toEqual([one, 1])
  })

  it("uses files again once nothing in them is needed", async () => {
    const { journal } = await fresh(2)
    place(journal, 1, 5)
    place(journal, 2, 5)
    place(journal, 3, 1)
    journal.recycle(2)
    expect([journal.usedFiles, journal.files]).toEqual([1, 2])
    expect(place(journal, 4, 4)).toEqual([one, 1])
    journal.recycle(4)
    expect(place(journal, 5, 3)).toEqual([one, 5])
    journal.recycle(6)
    expect(place(journal, 6, 1)).toEqual([one, 1])
  })

  it("asks for another file when the current one is half full, up to the limit", async () => {
    const { journal } = await fresh(0)
    expect(journal.wantsGrowth).toBe(true)
    const growing = journal.grow()
    expect(journal.wantsGrowth).toBe(false)
    expect(journal.grow()).toBe(growing)
    await growing
    expect(journal.wantsGrowth).toBe(false)
    place(journal, 1, 2)
    expect(journal.wantsGrowth).toBe(false)
    place(journal, 2, 3)
    expect(journal.wantsGrowth).toBe(true)
    await journal.grow()
    place(journal, 3, 7)
    await journal.grow()
    place(journal, 4, 7, terminal)
    expect([journal.files, journal.wantsGrowth]).toEqual([3, false])
  })

  it("leaves nothing behind when a file cannot be made, and makes it the next time", async () => {
    const { disk, journal } = await fresh(0)
    disk.failNext("sync", { code: "EIO" })
    expect(await errorOf(journal.grow())).toMatchObject({ code: "EIO" })
    expect(await disk.list("/j")).toEqual([])
    await journal.grow()
    expect(journal.files).toBe(1)
  })

  it("makes a file over what an earlier attempt left, and closes what is under way", async () => {
    const { disk, journal } = await fresh(0)
    await (await disk.open(`/j/${one}.tmp`, "create")).close()
    const growing = journal.grow()
    await journal.close()
    await growing
    expect(await disk.list("/j")).toMatchObject([{ name: one }])
  })

  it("is closed also when a file could not be made", async () => {
    const { disk, journal } = await fresh(0)
    disk.failNext("write", { code: "ENOSPC" })
    const growing = errorOf(journal.grow())
    await journal.close()
    expect(await growing).toMatchObject({ code: "ENOSPC" })
  })

  it("knows its own names", () => {
    expect([isJournalFileName("00000001.jnl"), isJournalFileName("1.jnl")]).toEqual([true, false])
    expect([isJournalLeftover("00000001.jnl.tmp"), isJournalLeftover("00000001.jnl")]).toEqual([true, false])
  })
})
