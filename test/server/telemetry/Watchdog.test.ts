// Goal: a blocked event loop is reported with where it is, also when it spins in microtasks, and nothing else is reported.
// Method: the real server process, blocked on purpose until it has been reported; the count behind it by hand.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { BeatCounter } from "#src/server/telemetry/BeatCounter.ts"
import { type ServerProcess, startProcess } from "../../support/server/Process.ts"

const directories: Array<string> = []

afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true, force: true })
})

const linesOf = (server: ServerProcess): ReadonlyArray<{ readonly message: string; readonly stack?: unknown }> =>
  server
    .errors()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))

const said = async (server: ServerProcess, message: string): Promise<{ readonly stack?: unknown }> => {
  for (;;) {
    const found = linesOf(server).find((line) => line.message === message)
    if (found !== undefined) return found
    await new Promise((resolve) => server.child.stderr?.once("data", resolve))
  }
}

describe("a server whose event loop is blocked", { timeout: 60_000 }, () => {
  it.each([
    ["by a loop", "SIGUSR2", "blockedOnPurpose"],
    ["by microtasks", "SIGPIPE", "spinningOnPurpose"]
  ] as const)("%s says where, and goes on when it is free", async (_name, signal, where) => {
    const directory = mkdtempSync(join(tmpdir(), "echs-watchdog-"))
    directories.push(directory)
    const unblock = join(directory, "unblock")
    const block = join(import.meta.dirname, "..", "..", "support", "server", "blockOnSignal.mjs")
    const env = { NODE_OPTIONS: `--import=${block}`, ECHS_TEST_UNBLOCK: unblock }
    const server = await startProcess(join(directory, "data"), { env })
    server.child.kill(signal)
    const { stack } = await said(server, "the event loop is blocked")
    expect(stack).toEqual(expect.arrayContaining([expect.stringContaining(where)]))
    expect(JSON.stringify(stack)).toContain("blockOnSignal.mjs")
    writeFileSync(unblock, "")
    await said(server, "the event loop is running again")
    expect(await (await fetch(`${server.url}/healthz`)).json()).toMatchObject({ status: "ok" })
    expect(await server.end("SIGTERM")).toBe(0)
  })
})

describe("the count of turns without a sign of life", () => {
  const turns = (counter: BeatCounter, beats: ReadonlyArray<number>) => beats.map((beat) => counter.turn(beat)._tag)

  it("takes a thread for blocked after so many turns, says it again twice as late, and that it is over", () => {
    const counter = new BeatCounter(2)
    expect(turns(counter, [1, 2, 2, 2, 2, 2, 2, 3, 3, 4])).toEqual([
      "Alive",
      "Alive",
      "Alive",
      "Blocked",
      "Alive",
      "Blocked",
      "Alive",
      "Freed",
      "Alive",
      "Alive"
    ])
  })

  it("takes a stop of the whole process, however long, for one turn", () => {
    const counter = new BeatCounter(2)
    // Both threads stand still meanwhile; whichever goes on first, the other follows.
    for (let stop = 0; stop < 100; stop++) expect(turns(counter, [stop, stop])).toEqual(["Alive", "Alive"])
  })
})
