// Goal: whoever must open a file still can when the process has no descriptor left, as often as there is a reserve, and
// the reserve fills again. Method: a counted supply of descriptors; and the real limit, in a process of its own.
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { DescriptorReserve, RESERVE_DESCRIPTORS } from "#runelog/disk/DescriptorReserve.ts"
import { type FaultCode, systemError } from "#runelog/disk/DiskFault.ts"
import { errorOf } from "../Fixture.ts"

/** A process with so many descriptors left. */
const supply = (left: number) => {
  const open = new Set<number>()
  let next = 3
  const openSync = (): number => {
    if (open.size >= left) throw systemError("EMFILE", "open", "/dev/null")
    open.add(next)
    return next++
  }
  return { open, fileSystem: { openSync, closeSync: (fd: number) => void open.delete(fd) } }
}

describe("the reserve", () => {
  it("gives a descriptor to each who finds none, and fills again when there are some", async () => {
    const { fileSystem, open } = supply(6)
    const reserve = new DescriptorReserve(3, fileSystem)
    const opened: Array<number> = []
    const want = async (): Promise<number> => reserve.opening(async () => fileSystem.openSync())
    for (let files = 1; files <= 6; files++) {
      opened.push(await want())
      expect(reserve.left).toBe(Math.min(3, 6 - files))
    }
    expect(await errorOf(want())).toMatchObject({ code: "EMFILE" })
    for (const fd of opened.splice(0, 5)) fileSystem.closeSync(fd)
    opened.push(await want())
    expect(reserve.left).toBe(3)
    expect(open.size).toBe(5)
  })

  it.each(["ENOENT", "ENOMEM", "EACCES"] satisfies ReadonlyArray<FaultCode>)("is not touched by %s", async (code) => {
    const reserve = new DescriptorReserve(2, supply(10).fileSystem)
    const failing = (): Promise<never> => Promise.reject(systemError(code, "open", "/a"))
    expect(await errorOf(reserve.opening(failing))).toMatchObject({ code })
    expect(reserve.left).toBe(2)
  })

  it("holds under the real limit", () => {
    const directory = fs.mkdtempSync(join(tmpdir(), "echs-reserve-"))
    const script = `
      import * as fs from "node:fs"
      import { makeDiskNode } from "${join(import.meta.dirname, "../../../runelog/disk/DiskNode.ts")}"
      const disk = makeDiskNode()
      await disk.list("/")
      for (;;) { try { fs.openSync("/dev/null") } catch { break } }
      const opened = []
      for (;;) {
        try { opened.push(await disk.open("${directory}/" + opened.length, "create")) } catch (error) {
          console.log(opened.length, error.code)
          break
        }
      }`
    const command = `ulimit -n 64; exec "$0" --input-type=module -e "$1"`
    const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath, script], { encoding: "utf8" })
    fs.rmSync(directory, { recursive: true })
    expect(stdout.trim(), stderr).toBe(`${RESERVE_DESCRIPTORS} EMFILE`)
  })
})
