// Goal: every setting comes from where it is said to come from, and one that makes no sense is refused by its name.
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  claimDirectory,
  ensureToken,
  removeServerInfo,
  scenarioReader,
  writeServerInfo
} from "#src/config/ServerFiles.ts"
import { providerAddresses, SettingInvalid, serverSettings } from "#src/config/Settings.ts"

let directory = ""
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "echs-settings-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const environment = (variables: Readonly<Record<string, string>> = {}) => ({ variables, homeDirectory: "/nobody" })
const configure = (config: unknown): void =>
  writeFileSync(join(directory, "config.json"), typeof config === "string" ? config : JSON.stringify(config))

describe("a scenario", () => {
  it("is read below the directory that was named, and nowhere else", async () => {
    const below = join(directory, "scenarios")
    mkdirSync(join(below, "deep"), { recursive: true })
    writeFileSync(join(below, "deep", "a.json"), "inside")
    writeFileSync(join(directory, "secret"), "outside")
    mkdirSync(join(directory, "scenarios-of-others"))
    writeFileSync(join(directory, "scenarios-of-others", "a.json"), "outside")
    symlinkSync(join(directory, "secret"), join(below, "link"))
    symlinkSync(directory, join(below, "up"))
    const read = scenarioReader(below)
    expect(await read("deep/a.json")).toBe("inside")
    expect(await read(join(below, "deep/a.json"))).toBe("inside")
    const names = [
      "../secret",
      "link",
      "up/secret",
      "deep/../../secret",
      "../scenarios-of-others/a.json",
      "/etc/hostname"
    ]
    for (const name of [...names, join(directory, "secret"), ".", "deep", "no such", "/dev/zero", "a\0b"])
      await expect(read(name), name).rejects.toThrow()
  })
})

describe("a data directory", () => {
  it("is made for its owner alone, and refused when other users can write to it or own it", () => {
    const data = join(directory, "data")
    claimDirectory(data)
    expect(statSync(data).mode & 0o777).toBe(0o700)
    for (const mode of [0o720, 0o702, 0o777, 0o1777]) {
      chmodSync(data, mode)
      expect(() => claimDirectory(data), mode.toString(8)).toThrow(/other users can write/)
    }
    chmodSync(data, 0o755)
    claimDirectory(data)
    if (process.geteuid?.() !== 0) return
    chownSync(data, 12_345, 0)
    expect(() => claimDirectory(data)).toThrow(/belongs to the user 12345/)
  })
})

describe("settings", () => {
  it("of the environment that are almost ours are refused, others are not ours", () => {
    expect(() => serverSettings(environment({ ECHS_MODLE: "x" }), directory)).toThrow(/did you mean ECHS_MODEL\?/)
    expect(serverSettings(environment({ ECHS_COUNTS_FILE: "x", ECHS_LANE: "soak" }), directory).port).toBe(4600)
  })

  it("have defaults", () => {
    expect(serverSettings(environment(), directory)).toEqual({
      host: "127.0.0.1",
      port: 4600,
      token: undefined,
      tokens: [],
      hostNames: [],
      origins: [],
      scenarios: undefined,
      model: undefined,
      logLevel: "info",
      otlpEndpoint: undefined,
      otlpSignals: ["traces"],
      providers: {},
      models: {},
      mcpServers: {},
      sandbox: { readable: [], hidden: [] },
      instructions: {}
    })
  })

  it("come from the flag, then the environment, then the file", () => {
    const collected = { otlp_endpoint: "http://o", otlp_signals: ["metrics", "logs"] }
    configure({ port: 1, host: "h1", model: "m1", log: "warn", ...collected })
    const variables = { ECHS_PORT: "2", ECHS_HOST: "h2", ECHS_MODEL: "" }
    expect(serverSettings(environment(variables), directory, { port: "3" })).toMatchObject({
      port: 3,
      host: "h2",
      model: "m1",
      logLevel: "warn",
      otlpEndpoint: "http://o",
      otlpSignals: ["metrics", "logs"]
    })
  })

  it.each([
    ["{", /config\.json/],
    ["[]", /must hold a JSON object/],
    [{ port: 70_000 }, /^port: /],
    [{ port: "4x" }, /^port: /],
    [{ host: 5 }, /^host: /],
    [{ log: "loud" }, /^log: /],
    [{ otlp_signals: ["traces", "smoke"] }, /^otlp_signals: it must be a list of traces, metrics, logs/],
    [{ otlp_signals: "logs" }, /^otlp_signals: /],
    [{ token: "short" }, /^token: /],
    [{ tokens: {} }, /^tokens: /],
    [{ tokens: [{ name: "a", token: "0123456789abcdef" }] }, /role must be/],
    [{ tokens: [{ name: "a", role: "viewer", token: "x" }] }, /at least 16/],
    [{ host_names: [5] }, /^host_names: /],
    [{ providers: [] }, /^providers: /],
    [{ sandbox: [] }, /^sandbox: /],
    [{ instructions: true }, /^instructions: /],
    [{ instructions: { user: "rules.md" } }, /^instructions\.user: it must be an absolute path/],
    [{ instructions: { project: "no" } }, /^instructions\.project: it must be true or false/],
    [{ instructions: { projects: false } }, /^instructions: .*"projects"/],
    [{ sandbox: { readable: ["relative"] } }, /^sandbox\.readable: /],
    [{ sandbox: { hidden: "/all" } }, /^sandbox\.hidden: /],
    [{ sandbox: { readble: [] } }, /^sandbox: .*"readble"; did you mean "readable"\?/],
    [{ prot: 1 }, /config\.json: there is no setting "prot"; did you mean "port"\?/],
    [{ hostnames: [] }, /there is no setting "hostnames"; did you mean "host_names"\?/],
    [{ mcpServers: {} }, /did you mean "mcp_servers"\?/],
    [{ constructor: {} }, /there is no setting "constructor"/],
    [{ tokens: [{ name: "a", role: "viewer", token: "0123456789abcdef", scope: 1 }] }, /^tokens\[0\]: .*"scope"/],
    [{ providers: { local: { base_url: "http://x" } } }, /^providers\.local: .*did you mean "baseUrl"\?/],
    [{ origins: ["*"] }, /^origins\[0\]: /],
    [{ origins: ["https://a.example/"] }, /^origins\[0\]: /],
    [{ origins: ["null"] }, /^origins\[0\]: /],
    [{ origins: ["ftp://a.example"] }, /^origins\[0\]: /],
    [{ scenarios: "here" }, /^scenarios: .*absolute/]
  ])("%j is refused by name", (config, message) => {
    configure(config)
    expect(() => serverSettings(environment(), directory)).toThrow(SettingInvalid)
    expect(() => serverSettings(environment(), directory)).toThrow(message)
  })

  it("name what commands find, and what they do not", () => {
    const sandbox = { readable: ["/opt/sdk"], hidden: ["/usr/local/keys"] }
    const instructions = { user: null, project: false }
    configure({ sandbox, instructions })
    expect(serverSettings(environment(), directory).instructions).toEqual(instructions)
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
