// Goal: damage stays on record and what is cut off is kept, both through a power cut. Method: a simulated disk.
import { describe, expect, it } from "vitest"
import { LogDamaged } from "#runelog/RunelogErrors.ts"
import { Quarantine } from "#runelog/recovery/Quarantine.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { errorOf, readFileOf, writeFileOf } from "../Fixture.ts"

const damage = { log: "a", file: "/d/a.seg", offset: 9, reason: "rot" }

const fresh = async () => {
  const disk = new DiskSim()
  await disk.makeDirectory("/d")
  await disk.syncDirectory("/")
  return { disk, quarantine: new Quarantine(disk, "/d/quarantine") }
}

describe("the quarantine", () => {
  it("remembers damage, the first that was found, until it is told to forget", async () => {
    const { disk, quarantine } = await fresh()
    expect(await quarantine.recall("a")).toBeUndefined()
    expect(await quarantine.record(damage)).toEqual(new LogDamaged(damage))
    await quarantine.record({ ...damage, offset: 1 })
    for (let seed = 0; seed < 20; seed++) {
      const after = new Quarantine(disk.crash(seed), "/d/quarantine")
      expect(await after.recall("a")).toEqual(new LogDamaged(damage))
    }
    await quarantine.forget("a")
    await quarantine.forget("a")
    expect(await quarantine.recall("a")).toBeUndefined()
  })

  it("takes a record that cannot be read for damage all the same", async () => {
    const { disk, quarantine } = await fresh()
    await disk.makeDirectory("/d/quarantine")
    await writeFileOf(disk, "/d/quarantine/a.json", Buffer.from('{"log":'))
    expect(await quarantine.recall("a")).toMatchObject({ log: "a", reason: "damage was recorded", offset: 0 })
    await writeFileOf(disk, "/d/quarantine/a.json", Buffer.from('{"offset":4}'))
    expect(await quarantine.recall("a")).toMatchObject({ log: "a", reason: "damage was recorded", offset: 4 })
  })

  it("keeps copies under names of their own, also of large ranges", async () => {
    const { disk, quarantine } = await fresh()
    const content = Buffer.alloc(2_500_000, "0123456789")
    await writeFileOf(disk, "/d/file", content)
    const file = await disk.open("/d/file", "read")
    const paths = [await quarantine.keep(file, "a", 10, 2_400_010), await quarantine.keep(file, "a", 10, 20)]
    expect(paths).toEqual(["/d/quarantine/a.10.cut", "/d/quarantine/a.10.cut.2"])
    const after = disk.crash(1)
    expect((await readFileOf(after, paths[0]!)).equals(content.subarray(10, 2_400_010))).toBe(true)
    expect((await readFileOf(after, paths[1]!)).toString()).toBe("0123456789")
    expect(await quarantine.keepBytes("b", Buffer.from("bytes"))).toBe("/d/quarantine/b")
    expect(await quarantine.keepBytes("b", Buffer.from("more"))).toBe("/d/quarantine/b.2")
  })

  it("passes on what the disk says when it cannot keep something", async () => {
    const { disk, quarantine } = await fresh()
    disk.failNext("write", { code: "ENOSPC", times: 2 })
    expect(await errorOf(quarantine.record(damage))).toMatchObject({ code: "ENOSPC" })
    await writeFileOf(new DiskSim(), "/x", Buffer.from("x"))
    const file = await disk.open("/d/quarantine/a.json", "read")
    expect(await errorOf(quarantine.keep(file, "a", 0, 1))).toMatchObject({ code: "ENOSPC" })
  })
})
