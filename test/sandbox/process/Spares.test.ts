// Goal: a sandbox that was made ahead is used only while it is exactly what would be made now, and none outlives its
// use. Method: real sandboxes, with the workspace changed behind their back in every way that matters.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { processLimits } from "#src/sandbox/process/ProcessLimits.ts"
import type { ProcessRequest } from "#src/sandbox/process/ProcessPort.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../../support/sandbox.ts"

let ground: Ground

beforeEach(async (context) => {
  requirePart(context, bubblewrap)
  ground = await makeGround()
})
afterEach(() => ground?.clear())

const stats = () => {
  const { spareStats } = ground.processes
  if (spareStats === undefined) throw new Error("there are no spares")
  return spareStats
}

/** Runs something, and waits until the next sandbox of that kind is ready. */
const getReady = async (more: Partial<ProcessRequest> = {}): Promise<void> => {
  const { made } = stats()
  await ground.run("true", more)
  while (stats().made === made) await sleep(5)
}

const repository = (): void => {
  mkdirSync(join(ground.workspace, ".git/hooks"), { recursive: true })
  writeFileSync(join(ground.workspace, ".git/config"), "[core]\n")
}

describe("a sandbox made ahead", () => {
  it("runs what it is given, as a new one would", async () => {
    await getReady()
    const script = 'printf \'%s|\' "$PWD" "$0" "$#" "$1" "$2"; cat; echo err >&2; exit 5'
    const ended = await ground.run("", {
      argv: ["bash", "--norc", "-c", script, "name", "two words\n'and' \"quotes\" $(no)", "é"],
      stdin: "input"
    })
    expect(stats().used).toBe(1)
    expect(ended).toMatchObject({ end: "exited", exit_code: 5, stderr: "err\n" })
    expect(ended.stdout).toBe(`${ground.workspace}|name|2|two words\n'and' "quotes" $(no)|é|input`)
  })

  it("is used once", async () => {
    await getReady()
    await ground.run("cd /tmp && echo x >left; echo y >~/left")
    expect(stats().used).toBe(1)
    expect((await ground.run("ls -A /tmp ~")).stdout).not.toContain("left")
  })

  it("has input that ends when nobody gives any", async () => {
    await getReady()
    expect(await ground.run("cat; echo over")).toMatchObject({ stdout: "over\n" })
  })

  it("is not used for another directory, root, environment or network", async () => {
    await getReady()
    mkdirSync(join(ground.workspace, "sub"))
    await ground.run("true", { directory: join(ground.workspace, "sub") })
    await ground.run("true", { environment: { OTHER: "1" } })
    await ground.run("true", { network: true })
    await ground.run("true", { writable: [] })
    expect(stats().used).toBe(0)
  })

  it("is thrown away when a repository has appeared, whose hooks it would not protect", async () => {
    await getReady()
    repository()
    await ground.run("echo x >.git/hooks/pre-commit; echo x >>.git/config")
    expect(stats().used).toBe(0)
    expect(existsSync(join(ground.workspace, ".git/hooks/pre-commit"))).toBe(false)
    expect(readFileSync(join(ground.workspace, ".git/config"), "utf8")).toBe("[core]\n")
  })

  it("is thrown away when the hooks were replaced, for it protects the old ones", async () => {
    repository()
    await getReady()
    renameSync(join(ground.workspace, ".git/hooks"), join(ground.workspace, ".git/old"))
    mkdirSync(join(ground.workspace, ".git/hooks"))
    await ground.run("echo x >.git/hooks/pre-commit")
    expect(stats().used).toBe(0)
    expect(existsSync(join(ground.workspace, ".git/hooks/pre-commit"))).toBe(false)
  })

  it("is thrown away when the workspace was replaced", async () => {
    await getReady()
    renameSync(ground.workspace, `${ground.workspace}-old`)
    mkdirSync(ground.workspace)
    await ground.run("echo x >file")
    expect(existsSync(join(ground.workspace, "file"))).toBe(true)
    expect(existsSync(join(`${ground.workspace}-old`, "file"))).toBe(false)
  })

  it("is thrown away when a service has begun to listen where it could be reached", async (context) => {
    requirePart(context, {
      name: "root",
      isThere: () => process.getuid?.() === 0 && existsSync("/srv"),
      remedy: "run as root"
    })
    await getReady()
    const place = mkdtempSync("/srv/echs-service-")
    const server = createServer((socket) => void socket.end("reached"))
    await new Promise<void>((resolve) => server.listen(join(place, "service.sock"), resolve))
    const script = `perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0); print "reached" if connect($s, pack_sockaddr_un("${place}/service.sock"))'`
    expect((await ground.run(`chmod 755 ${place}; ${script}`)).stdout).toBe("")
    server.close()
    rmSync(place, { recursive: true, force: true })
  })

  it("is one of a few, and all end with the server", async () => {
    const directories = Array.from({ length: processLimits.sparesMax + 2 }, (_, index) =>
      join(ground.workspace, `d${index}`)
    )
    for (const directory of directories) {
      mkdirSync(directory)
      await getReady({ directory })
    }
    expect(stats().ready).toBeLessThanOrEqual(processLimits.sparesMax)
    await ground.processes.close()
    expect(stats().ready).toBe(0)
  })

  it("keeps no program alive that has nothing else to do, and ends with it", async () => {
    const program = `import { makeGround } from ${JSON.stringify(new URL("../../support/sandbox.ts", import.meta.url).href)}
      const ground = await makeGround()
      await ground.run("true")
      while (ground.processes.spareStats.ready === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      console.log(ground.base)`
    const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 20_000
    })
    expect(ended).toMatchObject({ status: 0, signal: null })
    rmSync(ended.stdout.trim(), { recursive: true, force: true })
  })

  it("is not made where there is no namespace", async () => {
    const other = await makeGround({ levels: ["limits_only"] })
    expect(other.processes.spareStats).toBeUndefined()
    await other.clear()
  })
})
