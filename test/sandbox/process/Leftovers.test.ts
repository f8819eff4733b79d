// Goal: nothing of a killed server goes on: what nothing contains is ended with it or by the next server on the same data,
// and a sandbox that was being made at that moment does not wait for ever. Method: real servers, killed; the sandbox is
// held up by strace between its first process and its second, which is where it used to be left.
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { endLeftovers, ownerOf } from "#src/sandbox/process/Leftovers.ts"
import { reportCount } from "../../support/counts.ts"
import { parts, requirePart } from "../../support/require.ts"
import { bubblewrap } from "../../support/sandbox.ts"

const program = fileURLToPath(new URL("./killedChild.ts", import.meta.url))
let base = ""
let mark = ""

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "echs-killed-")))
  mark = `77${randomBytes(5).readUIntBE(0, 5)}`
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

/** Processes whose arguments or environment hold the text. */
const holding = (text: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid)
    .filter((name) =>
      ["cmdline", "environ"].some((file) => {
        try {
          return readFileSync(`/proc/${name}/${file}`, "latin1").includes(text)
        } catch {
          return false
        }
      })
    )

const untilNone = async (text: string): Promise<ReadonlyArray<string>> => {
  for (let round = 0; round < 200 && holding(text).length > 0; round++) await sleep(20)
  return holding(text)
}

const startServer = async (level: string, slow = ""): Promise<ChildProcess> => {
  const server = spawn(process.execPath, [program, base, mark, level, slow], { stdio: ["ignore", "pipe", "inherit"] })
  await once(server.stdout, "data")
  return server
}

const kill = async (server: ChildProcess): Promise<void> => {
  server.kill("SIGKILL")
  await once(server, "exit")
}

describe("programs that nothing contained, after their server was killed", () => {
  it("end with it, and those that left their group end with the next start", async () => {
    const server = await startServer("limits_only")
    expect(holding(`sleep\0${mark}`).length).toBe(2)
    await kill(server)
    for (let round = 0; round < 200 && holding(`sleep\0${mark}`).length > 1; round++) await sleep(20)
    expect(holding(`sleep\0${mark}`)).toHaveLength(1)
    expect(await endLeftovers("0000000000000000")).toBe(0)
    expect(await endLeftovers(ownerOf(join(base, "data")))).toBe(1)
    expect(await untilNone(`sleep\0${mark}`)).toEqual([])
    reportCount("programs of killed servers found by their mark", 1)
  })
})

describe("a sandbox whose server was killed while it was made", () => {
  it("does not wait for ever", async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.strace)
    const bin = mkdtempSync("/var/tmp/echs-slow-")
    chmodSync(bin, 0o755)
    try {
      // Its first process sleeps before the one write that lets the second go on.
      const slow = join(bin, "bwrap")
      const hold = `-e trace=write -e inject=write:delay_enter=3000000:when=1`
      writeFileSync(slow, `#!/bin/sh\nexec strace -D -qq -o /dev/null ${hold} "$(command -v bwrap)" "$@"\n`, {
        mode: 0o755
      })
      const server = await startServer("bubblewrap", slow)
      const owner = ownerOf(join(base, "data"))
      // Two of it: the one that was held up, and the one that waits for its word.
      const bwraps = (): number =>
        holding(`ECHS_PROCESS_TREE=${owner}.`).filter((pid) => {
          try {
            return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "bwrap"
          } catch {
            return false
          }
        }).length
      for (let round = 0; round < 500 && bwraps() < 2; round++) await sleep(10)
      expect(bwraps()).toBe(2)
      await kill(server)
      expect(await untilNone(`ECHS_PROCESS_TREE=${owner}.`)).toEqual([])
      reportCount("servers killed while a sandbox was made, nothing left", 1)
    } finally {
      rmSync(bin, { recursive: true, force: true })
    }
  })
})
