// Goal: every setting comes from where it is said to come from, and one that makes no sense is refused by its name.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { ensureToken, removeServerInfo, writeServerInfo } from "#src/config/ServerFiles.ts"
import { providerAddresses, SettingInvalid, serverSettings } from "#src/config/Settings.ts"

let directory = ""
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "echs-settings-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const environment = (variables: Readonly<Record<string, string>> = {}) => ({ variables, homeDirectory: "/nobody" })
const configure = (config: unknown): void =>
  writeFileSync(join(directory, "config.json"), typeof config === "string" ? config : JSON.stringify(config))

describe("settings", () => {
  it("have defaults", () => {
    expect(serverSettings(environment(), directory)).toEqual({
      host: "127.0.0.1",
      port: 4600,
      token: undefined,
      tokens: [],
      hostNames: [],
      model: undefined,
      logLevel: "info",
      otlpEndpoint: undefined,
      providers: {},
      mcpServers: {},
      sandbox: { readable: [], hidden: [] }
    })
  })

  it("come from the flag, then the environment, then the file", () => {
    configure({ port: 1, host: "h1", model: "m1", log: "warn", otlp_endpoint: "http://o" })
    const variables = { ECHS_PORT: "2", ECHS_HOST: "h2", ECHS_MODEL: "" }
    expect(serverSettings(environment(variables), directory, { port: "3" })).toMatchObject({
      port: 3,
      host: "h2",
      model: "m1",
      logLevel: "warn",
      otlpEndpoint: "http://o"
    })
  })

  it.each([
    ["{", /config\.json/],
    ["[]", /must hold a JSON object/],
    [{ port: 70_000 }, /^port: /],
    [{ port: "4x" }, /^port: /],
    [{ host: 5 }, /^host: /],
    [{ log: "loud" }, /^log: /],
    [{ token: "short" }, /^token: /],
    [{ tokens: {} }, /^tokens: /],
    [{ tokens: [{ name: "a", token: "0123456789abcdef" }] }, /role must be/],
    [{ tokens: [{ name: "a", role: "viewer", token: "x" }] }, /at least 16/],
    [{ host_names: [5] }, /^host_names: /],
    [{ providers: [] }, /^providers: /],
    [{ sandbox: [] }, /^sandbox: /],
    [{ sandbox: { readable: ["relative"] } }, /^sandbox\.readable: /],
    [{ sandbox: { hidden: "/all" } }, /^sandbox\.hidden: /],
    [{ sandbox: { readble: [] } }, /^sandbox\.readble: there is no such setting/]
  ])("%j is refused by name", (config, message) => {
    configure(config)
    expect(() => serverSettings(environment(), directory)).toThrow(SettingInvalid)
    expect(() => serverSettings(environment(), directory)).toThrow(message)
  })

  it("name what commands find, and what they do not", () => {
    const sandbox = { readable: ["/opt/sdk"], hidden: ["/usr/local/keys"] }
    configure({ sandbox })
    expect(serverSettings(environment(), directory).sandbox).toEqual(sandbox)
  })

  it("name addresses of providers", () => {
    const variables = { OPENAI_BASE_URL: "http://a", ANTHROPIC_BASE_URL: "http://b" }
    expect(providerAddresses(environment(variables))).toEqual({
      openai: { baseUrl: "http://a" },
      "openai-chat": { baseUrl: "http://a" },
      anthropic: { baseUrl: "http://b" }
    })
  })
})

describe("the files beside the data", () => {
  it("keep one token, for the owner alone", () => {
    const token = ensureToken(directory)
    expect(Buffer.from(token, "base64url")).toHaveLength(32)
    expect(ensureToken(directory)).toBe(token)
    expect(statSync(join(directory, "token")).mode & 0o777).toBe(0o600)
    writeFileSync(join(directory, "token"), "x\n")
    expect(() => ensureToken(directory)).toThrow(/no usable token/)
  })

  it("name the running server until it ends, and never remove another's note", () => {
    const info = { url: "http://127.0.0.1:1", pid: 7, started_ms: 1, version: "0" }
    writeServerInfo(directory, info)
    expect(JSON.parse(readFileSync(join(directory, "server.json"), "utf8"))).toEqual(info)
    removeServerInfo(directory, 8)
    expect(JSON.parse(readFileSync(join(directory, "server.json"), "utf8"))).toEqual(info)
    removeServerInfo(directory, 7)
    removeServerInfo(directory, 7)
    expect(() => readFileSync(join(directory, "server.json"))).toThrow()
  })
})
