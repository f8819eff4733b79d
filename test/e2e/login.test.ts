// Goal: a key is stored for its owner alone, never shown, and used by a server that runs already; settings are changed only
// to what makes sense. Method: real commands beside a real server, and a real terminal for what is typed.
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Client } from "#src/client/Client.ts"
import { commandOn, launcher } from "../support/cli.ts"
import { requirePart } from "../support/require.ts"
import { Tmux, tmuxPart } from "../support/tmux.ts"

const key = "sk-test-0123456789"
let place = ""
let data = ""
let echs: ReturnType<typeof commandOn>

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-login-"))
  data = join(place, "data")
  echs = commandOn(data, { cwd: place })
})

afterEach(() => {
  echs(["server", "stop"])
  rmSync(place, { recursive: true, force: true })
})

describe("echs login", () => {
  it("stores a key for its owner alone, and a running server uses it from then on", async () => {
    expect(echs(["server", "start"]).code).toBe(0)
    const { url } = JSON.parse(readFileSync(join(data, "server.json"), "utf8"))
    const token = readFileSync(join(data, "token"), "utf8").trim()
    const client = await Client.connect({ endpoint: { url, token } })
    expect(await client.call("server.info", {})).toMatchObject({ model: "scripted/demo" })
    const stored = echs(["login", "anthropic"], `${key}\n`)
    expect(stored).toMatchObject({ code: 0, stderr: "" })
    expect(`${stored.stdout}${echs(["login", "--json"]).stdout}${echs(["config"]).stdout}`).not.toContain(key)
    expect(statSync(join(data, "credentials.json")).mode & 0o777).toBe(0o600)
    expect((await client.call("server.info", {})).model).toMatch(/^anthropic\//)
    await client.close()
    expect(echs(["models", "--usable"]).stdout).toMatch(/^\* +anthropic\/.*ready/)
    expect(echs(["login", "anthropic", "--remove"]).code).toBe(0)
    expect(echs(["login", "anthropic", "--remove"]).code).toBe(5)
  })

  it.each([
    ["", 130],
    ["two words", 2]
  ])("refuses %j and changes nothing", (typed, code) => {
    expect(echs(["login", "openai"], `${typed}\n`).code).toBe(code)
    expect(echs(["login"]).stdout).toContain("no key is set")
  })

  it("does not show what is typed", async (context) => {
    requirePart(context, tmuxPart)
    const env = { ECHS_DATA: data, TERM: "xterm-256color", LANG: "C.UTF-8" }
    const terminal = new Tmux(
      "echs-login",
      { columns: 80, rows: 20 },
      [process.execPath, launcher, "login", "openai"],
      env
    )
    try {
      const shows = expect.poll(() => terminal.screen(), { timeout: 20_000, interval: 50 })
      await shows.toContain("OPENAI_API_KEY (not shown):")
      terminal.press(key, "Enter")
      await expect.poll(() => terminal.screen(), { timeout: 20_000, interval: 50 }).toContain("stored")
      expect(terminal.screen({ history: true })).not.toContain(key)
      expect(readFileSync(join(data, "credentials.json"), "utf8")).toContain(key)
    } finally {
      terminal.end()
    }
  })
})

describe("echs config", () => {
  it("sets, reads and removes a setting", () => {
    expect(echs(["config", "set", "model", "scripted/echo"]).code).toBe(0)
    expect(echs(["config", "get", "model"]).stdout).toBe("scripted/echo\n")
    expect(echs(["config", "set", "port", "4711"]).code).toBe(0)
    expect(JSON.parse(readFileSync(join(data, "config.json"), "utf8"))).toEqual({ model: "scripted/echo", port: 4711 })
    expect(echs(["config", "unset", "model"]).code).toBe(0)
    expect(JSON.parse(readFileSync(join(data, "config.json"), "utf8"))).toEqual({ port: 4711 })
  })

  it.each([
    ["modle", "x", 'did you mean "model"?'],
    ["port", "99999", "is not a port"],
    ["mcp_servers", "[1]", "object"]
  ])("refuses %s = %s and changes nothing", (name, value, reason) => {
    echs(["config", "set", "port", "4711"])
    expect(echs(["config", "set", name, value])).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) })
    expect(JSON.parse(readFileSync(join(data, "config.json"), "utf8"))).toEqual({ port: 4711 })
  })
})
