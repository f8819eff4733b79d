// Goal: at a terminal the command looks right, whatever its width, and leaves it as it was. Method: tmux, at 80 and at 200
// columns, with a real server behind it; what is asserted is what the window shows.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { Client } from "#src/client/Client.ts"
import { launcher } from "../support/cli.ts"
import { requirePart } from "../support/require.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { Tmux, tmuxPart } from "../support/tmux.ts"

let place = ""
let data = ""
let workspace = ""
let server: ServerProcess
let client: Client
let window: Tmux | undefined

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-terminal-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  mkdirSync(workspace)
  server = await startProcess(data)
  client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
})

afterAll(async () => {
  await client.close()
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

beforeEach((context) => requirePart(context, tmuxPart))
afterEach(() => window?.end())

const open = (columns: number, ...args: ReadonlyArray<string>): Tmux => {
  window = new Tmux(`echs-${columns}`, { columns, rows: 60 }, [process.execPath, launcher, ...args], {
    ECHS_DATA: data,
    TERM: "xterm-256color",
    LANG: "C.UTF-8"
  })
  return window
}

const shows = (screen: () => string) => expect.poll(screen, { timeout: 20_000, interval: 100 })
const spinner = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/

describe.each([80, 200])("a tail at %i columns", (columns) => {
  it("shows a line a rune, in color, with progress while the model speaks, and leaves a clean terminal", async () => {
    const { conversation_id: id } = await client.call("conversation.create", {
      model: "scripted/demo",
      workspace,
      policy: { mode: "full_access" }
    })
    const terminal = open(columns, "tail", id)
    await shows(() => terminal.screen()).toContain("session.activated")
    await client.call("message.post", { conversation_id: id, content: `say ${"much ".repeat(80)}` })
    await shows(() => terminal.screen()).toMatch(spinner)
    await shows(() => terminal.screen()).toMatch(/✓ turn\.completed/)
    const lines = terminal
      .screen()
      .split("\n")
      .filter((line) => /^ +\d+ /.test(line))
    const ids = lines.map((line) => Number.parseInt(line, 10))
    expect(ids).toEqual(ids.toSorted((left, right) => left - right))
    expect(ids[0]).toBe(1)
    // A rune that did not fit its line would leave the rest of it on a line that begins otherwise.
    const { last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
    expect(ids.at(-1)).toBe(head)
    expect(lines.find((line) => line.includes("turn.started"))).toMatch(
      columns === 80 ? /› turn\.started +say much.*…$/ : /^ +\d+ \d\d:\d\d:\d\d › turn\.started +say much.*…$/
    )
    expect(lines.every((line) => [...line].length <= columns)).toBe(true)
    expect(terminal.screen({ colors: true })).toContain("\u001b[")
    terminal.press("C-c")
    await shows(() => terminal.screen()).toContain("exit 130")
    const rest = terminal.screen().trimEnd().split("\n").slice(-2)
    expect(rest).toEqual([expect.stringContaining("turn.completed"), expect.stringMatching(/^(\^C)?exit 130$/)])
    expect(terminal.isCursorShown()).toBe(true)
  })
})

describe("the demo at a terminal", () => {
  it("asks the person and shows progress in place", async () => {
    const terminal = open(100, "demo")
    await shows(() => terminal.screen()).toContain("start this plan? [Y]es, [n]o")
    terminal.press("Enter")
    await shows(() => terminal.screen()).toMatch(/\? run a command[\s\S]*allow\? \[Y\]es, \[n\]o/)
    terminal.press("Enter")
    await shows(() => terminal.screen()).toContain("Nothing that was acknowledged is lost.")
    await shows(() => terminal.screen()).toContain("exit 0")
  })
})
