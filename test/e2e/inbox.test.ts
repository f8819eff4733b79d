// Goal: everything that waits for a person is in one list and can be answered there, and the exit code says whether
// something waits. Method: real commands, and a real terminal for the questions.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Client } from "#src/client/Client.ts"
import { commandOn, launcher } from "../support/cli.ts"
import { requirePart } from "../support/require.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { Tmux, tmuxPart } from "../support/tmux.ts"

let place = ""
let data = ""
let workspace = ""
let server: ServerProcess
let client: Client
let echs: ReturnType<typeof commandOn>
let window: Tmux | undefined

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-inbox-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  mkdirSync(workspace)
  server = await startProcess(data)
  client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
  echs = commandOn(data, { cwd: workspace })
})

afterEach(async () => {
  window?.end()
  window = undefined
  await client.close()
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

/** A conversation that asks before it writes a file. */
const ask = async (): Promise<string> => {
  const { conversation_id: id } = await client.call("conversation.create", { model: "scripted/demo", workspace })
  await client.call("message.post", { conversation_id: id, content: "show me" })
  const waits = async () => (await client.call("approval.list", { conversation_id: id })).items.length
  await expect.poll(waits, { timeout: 20_000, interval: 50 }).toBe(1)
  return id
}

const shows = (screen: () => unknown) => expect.poll(screen, { timeout: 20_000, interval: 50 })

const open = (...args: ReadonlyArray<string>): Tmux => {
  const env = { ECHS_DATA: data, TERM: "xterm-256color", LANG: "C.UTF-8" }
  window = new Tmux("echs-inbox", { columns: 100, rows: 60 }, [process.execPath, launcher, ...args], env)
  return window
}

describe("echs inbox", () => {
  it("lists what waits in any conversation, oldest first, and says so by its exit code", async () => {
    expect(echs(["inbox"])).toMatchObject({ code: 0, stdout: "nothing waits for you\n" })
    const ids = [await ask(), await ask()]
    const listed = echs(["inbox", "--json"])
    expect(listed.code).toBe(1)
    const { items } = JSON.parse(listed.stdout)
    expect(items.map((item: { conversation_id: string }) => item.conversation_id)).toEqual(ids)
    expect(echs(["inbox"]).stdout).toContain(`echs approve ${ids[0]}`)
  })

  it("shows every byte, takes the answer in place, skips on Enter, and goes on to the next", async (context) => {
    requirePart(context, tmuxPart)
    const first = await ask()
    const second = await ask()
    const terminal = open("inbox")
    await shows(() => terminal.screen()).toMatch(
      /This file was written by a tool call[\s\S]*allow\? \[y\]es.*Enter skips/
    )
    terminal.press("Enter")
    await shows(() => terminal.screen({ history: true })).toContain(second)
    await shows(() => terminal.screen({ history: true }).match(/allow\?/g)?.length ?? 0).toBe(2)
    terminal.press("no thanks", "Enter")
    await shows(() => terminal.screen({ history: true })).toContain("exit 1")
    const { items } = await client.call("approval.list", {})
    expect(items.map((item) => item.conversation_id)).toEqual([first])
    expect(existsSync(join(workspace, "echs-demo.md"))).toBe(false)
  })

  it("watches: rings for what is new, and takes a question back that somebody else answers", async (context) => {
    requirePart(context, tmuxPart)
    const terminal = open("inbox", "--watch")
    await shows(() => terminal.screen()).toContain("nothing waits for you; watching")
    const id = await ask()
    await shows(() => terminal.screen()).toMatch(/allow\? \[y\]es/)
    const [item] = (await client.call("approval.list", { conversation_id: id })).items
    await client.call("approval.deny", { conversation_id: id, call_id: item?.call_id ?? "" })
    await shows(() => terminal.screen()).toContain("answered elsewhere")
    await shows(() => terminal.screen()).toContain("nothing waits for you; watching")
    terminal.press("C-c")
    await shows(() => terminal.screen()).toContain("exit 130")
  })
})
