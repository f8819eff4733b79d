// Goal: a chat at a terminal keeps what is typed and what is said: pastes whole, turns stopped with their text, messages
// queued or steered, approvals in place, a window of any size, a server that is killed under it. Method: tmux with real
// servers; what is asserted is what the window shows and what the log holds.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type AnyRune, Client } from "#src/client/Client.ts"
import { commandOn, launcher } from "../support/cli.ts"
import { requirePart } from "../support/require.ts"
import { Tmux, tmuxPart } from "../support/tmux.ts"
import { freely } from "../support/worlds.ts"

let place = ""
let data = ""
let workspace = ""
let client: Client
let window: Tmux | undefined
let echs: ReturnType<typeof commandOn>

const env = () => ({ ECHS_DATA: data, ECHS_SCENARIOS: place, TERM: "xterm-256color", LANG: "C.UTF-8" })
const endpoint = async () => {
  const { url } = JSON.parse(readFileSync(join(data, "server.json"), "utf8"))
  return { url, token: readFileSync(join(data, "token"), "utf8").trim() }
}

/** A model that speaks for long enough to be stopped, queued behind or steered. */
const slow = {
  name: "slow",
  replies: [{ play: [{ text: `You said: {{input}}\n\n${"word ".repeat(400)}`, chunk_chars: 5, delay_ms: 20 }] }]
}

/** Three batches that each change a file, and make one. */
const changing = {
  name: "changing",
  replies: [
    ...["two", "three", "four"].map((text, at) => ({
      when: { step: at + 1 },
      play: [
        { tool: "write_file", arguments: { path: "price-list.txt", content: `${text}\n` } },
        { tool: "write_file", arguments: { path: `made/${text}.txt`, content: text } }
      ]
    })),
    { play: [{ text: "All changed." }] }
  ]
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-chat-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  mkdirSync(workspace)
  writeFileSync(join(workspace, "price-list.txt"), "1\n")
  writeFileSync(join(place, "slow.json"), JSON.stringify(slow))
  writeFileSync(join(place, "changing.json"), JSON.stringify(changing))
  echs = commandOn(data, { cwd: workspace, env: { ECHS_SCENARIOS: place } })
  expect(echs(["server", "start"]).code).toBe(0)
  client = await Client.connect({ endpoint })
})

afterAll(async () => {
  await client.close()
  echs(["server", "stop"])
  rmSync(place, { recursive: true, force: true })
})

beforeEach((context) => requirePart(context, tmuxPart))
afterEach(() => window?.end())

const open = (columns: number, ...args: ReadonlyArray<string>): Tmux => {
  const command = ["sh", "-c", `cd '${workspace}' && exec "$0" "$@"`, process.execPath, launcher, ...args]
  window = new Tmux(`echs-chat-${columns}`, { columns, rows: 40 }, command, env())
  return window
}

const shows = (screen: () => string) => expect.poll(screen, { timeout: 20_000, interval: 50 })
const isReady = (terminal: Tmux) => shows(() => terminal.screen()).toMatch(/─ ready/)

const runesOfLast = async (): Promise<ReadonlyArray<AnyRune>> => {
  const [newest] = (await client.call("conversation.list", { limit: 1 })).items
  const runes: Array<AnyRune> = []
  for await (const item of client.tail(newest?.conversation_id ?? "")) {
    if ("caught_up" in item) break
    if ("rune" in item) runes.push(item.rune)
  }
  return runes
}

const inputs = (runes: ReadonlyArray<AnyRune>): ReadonlyArray<unknown> =>
  runes.filter(({ kind }) => kind === "turn.started").map(({ payload }) => (payload as { input: unknown }).input)

describe("a chat at a terminal", () => {
  it("shows model, sandbox and how to get a key, streams the answer and asks for approvals in place", async () => {
    const terminal = open(100, "--model", "scripted/demo")
    await isReady(terminal)
    expect(terminal.screen()).toMatch(/echs \d[\s\S]*scripted\/demo · auto · /)
    expect(terminal.screen()).toContain("echs login anthropic")
    terminal.press("show me", "Enter")
    await shows(() => terminal.screen()).toMatch(/\? write .*echs-demo\.md/)
    await shows(() => terminal.screen()).toMatch(/allow\? \[y\]es|rows: Enter shows more/)
    if (terminal.screen().includes("shows more")) terminal.press("Enter")
    await shows(() => terminal.screen()).toMatch(/allow\? \[y\]es/)
    terminal.press("y", "Enter")
    await shows(() => terminal.screen()).toMatch(/\? run a command[\s\S]*allow\?/)
    terminal.press("n", "Enter")
    await isReady(terminal)
    expect(terminal.screen({ history: true })).toMatch(/✓ write_file echs-demo\.md +\+7 −0/)
    expect(terminal.screen()).toMatch(/✗ call_3 · by local · not allowed/)
    terminal.press("/quit", "Enter")
    await shows(() => terminal.screen()).toContain("exit 0")
    expect(terminal.isCursorShown()).toBe(true)
  })

  it("keeps a paste of 200 lines whole and sends it only on Enter", async () => {
    const terminal = open(100, "--model", "scripted/echo")
    await isReady(terminal)
    const text = Array.from({ length: 200 }, (_, at) => `line ${at} of\tthe "paste"`).join("\n")
    terminal.paste(`${text}\n`)
    await shows(() => terminal.screen()).toMatch(/… \d+ more lines above[\s\S]*line 199/)
    terminal.press("Enter")
    await shows(() => terminal.screen({ history: true })).toMatch(/180 more lines[\s\S]*─ ready/)
    expect(inputs(await runesOfLast())).toEqual([`${text}\n`])
  })

  it("stops a turn with Esc, keeps what was said, and leaves on Ctrl-C twice", async () => {
    const terminal = open(100, "--model", "scripted/slow.json")
    await isReady(terminal)
    terminal.press("talk", "Enter")
    await shows(() => terminal.screen()).toMatch(/word word word/)
    terminal.press("Escape")
    await shows(() => terminal.screen()).toContain("■ stopped at the terminal")
    await isReady(terminal)
    const end = (await runesOfLast()).find(({ kind }) => kind === "turn.interrupted")
    expect(end?.payload).toMatchObject({ partial_output: expect.stringMatching(/^You said: talk\n\nword word/) })
    expect(terminal.screen()).toMatch(/You said: talk[\s\S]*word word[\s\S]*■ stopped/)
    terminal.press("C-c")
    await shows(() => terminal.screen()).toContain("Ctrl-C again leaves")
    terminal.press("C-c")
    await shows(() => terminal.screen()).toContain("exit 130")
    expect(terminal.isCursorShown()).toBe(true)
  })

  it("brings files back with /undo after three batches, and back again by the checkpoint of what was overwritten", async () => {
    const list = () => readFileSync(join(workspace, "price-list.txt"), "utf8")
    const labels = { directory: workspace.slice(-128) }
    await client.call("conversation.create", { workspace, model: "scripted/changing.json", labels, ...freely })
    const terminal = open(100, "--continue")
    await isReady(terminal)
    terminal.press("change it", "Enter")
    await shows(() => terminal.screen({ history: true })).toMatch(/All changed\.[\s\S]*─ ready/)
    expect([list(), readdirSync(join(workspace, "made"))]).toEqual(["four\n", ["four.txt", "three.txt", "two.txt"]])
    terminal.press("/undo", "Enter")
    await shows(() => terminal.screen({ history: true })).toMatch(
      /4 files would go back to before turn_1[\s\S]*- made\/four\.txt[\s\S]*~ price-list\.txt[\s\S]*\+1[\s\S]*\/undo yes/
    )
    expect(list()).toBe("four\n")
    terminal.press("/undo yes", "Enter")
    await shows(() => terminal.screen()).toMatch(/✓ 4 files back to chk_1; what was there is chk_4/)
    expect([list(), existsSync(join(workspace, "made"))]).toEqual(["1\n", false])
    expect(echs(["undo"]).stdout).toContain("nothing to undo")
    expect(echs(["undo", "chk_4"]).stderr).toContain("add --yes")
    expect(echs(["undo", "chk_4", "--yes"]).stdout).toContain("4 files back to chk_4")
    expect(list()).toBe("four\n")
    const both = JSON.parse(echs(["undo", "1", "--what", "both", "--yes", "--json"]).stdout)
    expect(both).toMatchObject({ checkpoint_id: "chk_1", files: 4, conversation_id: expect.stringMatching(/^conv_/) })
    expect(list()).toBe("1\n")
    const copy = await client.call("conversation.get", { conversation_id: both.conversation_id })
    expect(copy).toMatchObject({ state: "active", turns: 0 })
    terminal.press("/quit", "Enter")
    await shows(() => terminal.screen()).toContain("exit 0")
  })

  it("queues with Enter and steers with /steer, and shows which", async () => {
    const terminal = open(100, "--model", "scripted/slow.json")
    await isReady(terminal)
    terminal.press("first", "Enter")
    await shows(() => terminal.screen()).toMatch(/word word/)
    terminal.press("second", "Enter")
    await shows(() => terminal.screen()).toMatch(/… queued: second[\s\S]*queue 1/)
    terminal.press("/steer third", "Enter")
    await shows(() => terminal.screen({ history: true })).toContain("You said: third")
    terminal.press("Escape")
    await shows(() => terminal.screen({ history: true })).toContain("You said: second")
    terminal.press("Escape")
    await isReady(terminal)
    expect(inputs(await runesOfLast())).toEqual(["first", "third", "second"])
  })

  it("writes several lines, completes commands and files, and finds earlier messages in a later chat", async () => {
    const terminal = open(100, "--model", "scripted/echo")
    await isReady(terminal)
    terminal.press("one\\", "Enter", "two", "M-Enter", "@pri")
    await shows(() => terminal.screen()).toContain("price-list.txt")
    terminal.press("Tab", "Enter")
    await shows(() => terminal.screen()).toMatch(/› one\n +two\n +@price-list\.txt/)
    await isReady(terminal)
    expect(inputs(await runesOfLast())).toEqual(["one\ntwo\n@price-list.txt "])
    terminal.press("/he")
    await shows(() => terminal.screen()).toContain("show the commands and the keys")
    terminal.press("Tab", "Enter")
    await shows(() => terminal.screen()).toMatch(/\/steer +send a message into the turn/)
    window?.end()
    const later = open(100, "--model", "scripted/echo")
    await isReady(later)
    later.press("Up", "Up")
    await shows(() => later.screen()).toMatch(/› one\n +two\n +@price-list\.txt/)
  })

  it("draws nothing twice when the window is resized, down to 40 columns", async () => {
    const terminal = open(100, "--model", "scripted/slow.json")
    await isReady(terminal)
    terminal.press("talk", "Enter")
    await shows(() => terminal.screen()).toMatch(/word word/)
    for (const columns of [60, 40, 120, 80]) {
      terminal.resize(columns, 30)
      await shows(() => terminal.screen()).toMatch(/Esc stop|⏎ queue/)
    }
    terminal.press("Escape")
    await isReady(terminal)
    const screen = terminal.screen({ history: true })
    expect(screen.match(/You said: talk/g)).toHaveLength(1)
    await shows(() => String(terminal.screen().match(/─ ready/g)?.length)).toBe("1")
    expect(terminal.screen().match(/^›/gm)?.length).toBeLessThanOrEqual(2)
  })

  it("comes back to the conversation of the directory with what was said", async () => {
    const terminal = open(100, "--model", "scripted/echo")
    await isReady(terminal)
    terminal.press("remember me", "Enter")
    await shows(() => terminal.screen()).toMatch(/remember me[\s\S]*remember me[\s\S]*─ ready/)
    terminal.press("/quit", "Enter")
    await shows(() => terminal.screen()).toContain("exit 0")
    window?.end()
    const again = open(100, "--continue")
    await isReady(again)
    expect(again.screen()).toMatch(/› remember me/)
    window?.end()
    const picked = open(100, "--resume")
    await shows(() => picked.screen()).toMatch(/1 .*remember me[\s\S]*which one\?/)
    picked.press("Enter")
    await isReady(picked)
    expect(picked.screen()).toMatch(/› remember me/)
  })

  it("survives kill -9 of its server: the server comes back, and what was typed meanwhile counts once", async () => {
    const terminal = open(100, "--model", "scripted/echo")
    await isReady(terminal)
    terminal.press("before", "Enter")
    await shows(() => terminal.screen()).toMatch(/before[\s\S]*before[\s\S]*─ ready/)
    process.kill(JSON.parse(readFileSync(join(data, "server.json"), "utf8")).pid, "SIGKILL")
    terminal.press("meanwhile", "Enter")
    await shows(() => terminal.screen()).toContain("connection lost")
    await shows(() => terminal.screen()).toContain("connected again, resumed at rune")
    await shows(() => terminal.screen()).toMatch(/› meanwhile[\s\S]*meanwhile[\s\S]*─ ready/)
    expect(inputs(await runesOfLast())).toEqual(["before", "meanwhile"])
    expect(terminal.screen().match(/› before/g)).toHaveLength(1)
  })
})
