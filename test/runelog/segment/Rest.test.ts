// Goal: a log that nobody needs costs no memory, and one that is needed is not forgotten. Method: a log on a disk in
// memory, before and after a checkpoint.
import { expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"

const body = Buffer.from("{}")

it("forgets a log at rest, keeps one whose frames are not in its segment, and knows both", async () => {
  const log = await Runelog.open({ directory: "/d", disk: makeDiskMemory() })
  await log.append("conv_a", 1, [{ body }])
  log.rest("conv_a")
  expect(log.stats.residentLogs).toBe(1)
  await log.checkpoint()
  log.rest("conv_a")
  expect(log.stats.residentLogs).toBe(0)
  log.rest("conv_unknown")
  expect(await log.head("conv_a")).toBe(1)
  await log.append("conv_a", 2, [{ body }])
  expect(await log.head("conv_a")).toBe(2)
  await log.close()
})

it("says how much of a log in memory a seal would go through", async () => {
  const disk = makeDiskMemory()
  const log = await Runelog.open({ directory: "/d", disk })
  expect(log.unsealedBytes("conv_a")).toBe(0)
  expect(await log.head("conv_a")).toBe(0)
  expect(log.unsealedBytes("conv_a")).toBe(0)
  await log.append("conv_a", 1, [{ body }])
  const one = log.unsealedBytes("conv_a")
  expect(one).toBeGreaterThan(body.length)
  await log.append("conv_a", 2, [{ body }])
  expect(log.unsealedBytes("conv_a")).toBe(2 * one)
  await log.seal("conv_a")
  expect(log.unsealedBytes("conv_a")).toBe(0)
  await log.append("conv_a", 3, [{ body }])
  expect(log.unsealedBytes("conv_a")).toBe(one)
  const removing = log.remove("conv_a")
  await Promise.resolve()
  expect(log.unsealedBytes("conv_a")).toBe(0)
  await removing
  await log.close()
})
