// Goal: one command is enough: it finds the server of the data directory or starts one that outlives it, once, and the
// server leaves when nobody needs it. Method: real commands and processes on a directory of the test's own.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { hasCrashed } from "#src/config/LocalServer.ts"
import { commandOn, startCommand } from "../support/cli.ts"
import { startProcess } from "../support/server/Process.ts"

let place = ""
let data = ""
let echs: ReturnType<typeof commandOn>

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-background-"))
  data = join(place, "data")
  mkdirSync(join(place, "workspace"))
  echs = commandOn(data, { cwd: join(place, "workspace") })
})

afterEach(() => {
  echs(["server", "stop"])
  rmSync(place, { recursive: true, force: true })
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("echs server", () => {
  it("starts a server that outlives the command, shows it and stops it", () => {
    expect(echs(["server", "status", "--json"])).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('"running":false')
    })
    const started = JSON.parse(echs(["server", "start", "--json"]).stdout)
    expect(started).toMatchObject({ started: true, pid: expect.any(Number), url: expect.stringMatching(/^http:/) })
    expect(isAlive(started.pid)).toBe(true)
    expect(JSON.parse(echs(["server", "start", "--json"]).stdout)).toMatchObject({ started: false, pid: started.pid })
    expect(JSON.parse(echs(["server", "--json"]).stdout)).toMatchObject({ running: true, pid: started.pid })
    expect(echs(["ls"])).toMatchObject({ code: 0 })
    expect(echs(["server", "stop"])).toMatchObject({ code: 0, stdout: `stopped (process ${started.pid})\n` })
    expect(isAlive(started.pid)).toBe(false)
    expect(echs(["server", "stop"])).toMatchObject({ code: 3, stderr: expect.stringContaining("echs server start") })
  })

  it("is started once by commands that need one at the same moment, and none comes up later", async () => {
    const commands = [1, 2, 3].map(() => startCommand(data, ["server", "start", "--json"]))
    await Promise.all(commands.map(({ ended }) => ended))
    const pids = new Set(commands.map(({ stdout }) => JSON.parse(stdout()).pid))
    expect(pids.size).toBe(1)
    echs(["server", "stop"])
    expect(echs(["server", "status"]).code).toBe(3)
  })

  it("says why it could not start", () => {
    const run = echs(["server", "start", "--port", "70000"])
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("70000") })
    expect(existsSync(join(data, "logs", "server.log"))).toBe(true)
  })

  it("leaves by itself when nobody uses it, and not while somebody is connected", async () => {
    const { pid } = JSON.parse(echs(["server", "start", "--idle", "1s", "--json"]).stdout)
    await expect.poll(() => isAlive(pid), { timeout: 20_000, interval: 100 }).toBe(false)
    expect(readFileSync(join(data, "logs", "server.log"), "utf8")).not.toContain("error")
    const again = JSON.parse(echs(["server", "start", "--idle", "1s", "--json"]).stdout)
    const tail = startCommand(data, ["tail", "*"])
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect(isAlive(again.pid)).toBe(true)
    tail.child.kill("SIGKILL")
    await tail.ended
  })
})

describe("a server that crashed", () => {
  it("is brought back by a command only where a command had started it", async () => {
    const { pid } = JSON.parse(echs(["server", "start", "--json"]).stdout)
    expect(hasCrashed(data)).toBe(false)
    process.kill(pid, "SIGKILL")
    await expect.poll(() => hasCrashed(data), { timeout: 10_000, interval: 50 }).toBe(true)
    const foreground = await startProcess(data)
    expect(hasCrashed(data)).toBe(false)
    await foreground.end("SIGKILL")
    expect(hasCrashed(data)).toBe(false)
  })
})

describe("a command that talks to an agent", () => {
  it("starts a server where none runs", () => {
    const run = echs(["chat", "--model", "scripted/echo"], "hello there\n")
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("hello there") })
    expect(echs(["server", "status"]).code).toBe(0)
  })

  it("without a command and without a terminal prints the help, and with options alone chats", () => {
    expect(echs([]).stdout).toContain("usage: echs [options]")
    const run = echs(["--model", "scripted/echo", "--json"], "hello there\n")
    expect(JSON.parse(run.stdout)).toMatchObject({
      kind: "turn.completed",
      output: expect.stringContaining("hello there")
    })
  })

  it("suggests the command that was meant", () => {
    expect(echs(["aprove"])).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean approve?") })
    expect(echs(["fly"])).toMatchObject({ code: 2, stderr: expect.stringContaining("echs --help") })
  })
})
