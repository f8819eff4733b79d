// Goal: the batch that a writer left last is durable before recovery builds on it, whatever became of its sync. Method:
// writers killed on a simulated disk; what a crash at each step leaves is shown in crash/Restart.test.ts.
import { describe, expect, it } from "vitest"
import { copyLastBatch } from "#runelog/journal/JournalCopy.ts"
import { scanJournal } from "#runelog/journal/JournalScan.ts"
import { WriterPoisoned } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { MetaFile } from "#runelog/recovery/MetaFile.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { directory, errorOf, fill, flipBit, journalPath, openSmall, readFileOf, writeFileOf } from "../Fixture.ts"

const journal = `${directory}/journal`
const directoryId = "5a".repeat(16)
const files = async (disk: DiskSim): Promise<ReadonlyArray<string>> =>
  (await disk.list(journal)).map(({ name }) => name).sort()

/** The disk of a writer that was killed behind so many appends, all of them in the journal only. */
const killed = async (appends = 3): Promise<DiskSim> => {
  const disk = new DiskSim()
  await fill(await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } }), "a", 1, appends)
  return disk.killProcess()
}

const scan = async (disk: DiskSim) => {
  const meta = await MetaFile.open(disk, directory)
  await meta.close()
  return scanJournal({ disk, directory: journal, ...meta.state })
}

const copy = async (disk: DiskSim) => copyLastBatch({ disk, directory: journal, directoryId }, await scan(disk))

describe("the last batch", () => {
  it("is copied to a file of its own, once, and counts once", async () => {
    const disk = await killed()
    const before = await scan(disk)
    expect(before).toMatchObject({ damage: undefined, batches: [{}, {}, { copyName: undefined }] })
    const made = await copy(disk)
    expect(made).toMatchObject({ name: "00000002.jnl", path: journalPath(2) })
    expect((await readFileOf(disk, journalPath(2))).length).toBe(made!.bytes)
    const { batches, damage } = await scan(disk)
    expect(damage).toBeUndefined()
    expect(batches).toEqual(before.batches.with(-1, { ...before.batches.at(-1)!, copyName: "00000002.jnl" }))
    expect(await copy(disk)).toBeUndefined()
    expect(await files(disk)).toEqual(["00000001.jnl", "00000002.jnl"])
  })

  it("is found where only the copy is left", async () => {
    const disk = await killed()
    await copy(disk)
    const { offset } = (await scan(disk)).batches.at(-1)!
    await writeFileOf(disk, journalPath(1), flipBit(await readFileOf(disk, journalPath(1)), (offset + 70) * 8))
    expect(await scan(disk)).toMatchObject({ damage: undefined, torn: undefined, batches: [{}, {}, { offset: 4096 }] })
    const runelog = await openSmall({ disk })
    expect(await runelog.head("a")).toBe(3)
    await runelog.close()
  })

  it("has no copy any more once the start is over", async () => {
    const disk = await killed()
    const runelog = await openSmall({ disk })
    expect(await files(disk)).toEqual(["00000001.jnl"])
    expect(await runelog.head("a")).toBe(3)
  })

  it("of a damaged journal stays as it is", async () => {
    const disk = await killed()
    const content = await scan(disk)
    await writeFileOf(
      disk,
      journalPath(1),
      flipBit(await readFileOf(disk, journalPath(1)), (content.batches[1]!.offset + 70) * 8)
    )
    const { readOnly } = await openSmall({ disk })
    expect(readOnly).toBeDefined()
    expect(await files(disk)).toEqual(["00000001.jnl"])
  })

  it("is done without a copy on a full disk", async () => {
    for (const operation of ["create", "write"] as const) {
      const disk = await killed()
      await writeFileOf(disk, `${journalPath(2)}.tmp`, Buffer.from("left by a start before"))
      disk.failNext(operation, { code: "ENOSPC", partialBytes: 100 })
      expect(await copy(disk)).toBeUndefined()
      expect(await files(disk)).toEqual(["00000001.jnl"])
      expect(await (await openSmall({ disk })).head("a")).toBe(3)
    }
  })

  it("stops the start when the disk fails under its copy", async () => {
    const failing = await killed()
    failing.failNext("create", { code: "EIO" })
    expect(await errorOf(openSmall({ disk: failing }))).toMatchObject({ _tag: "DiskFailed" })
    const distrusted = await killed()
    distrusted.failNext("sync", { code: "ENOSPC", after: 1 })
    expect(await errorOf(openSmall({ disk: distrusted }))).toBeInstanceOf(WriterPoisoned)
  })
})
