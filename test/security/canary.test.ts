// Goal: what the server knows to be secret stays with it: not in runes, logs, frames, errors, answers of the command, nor in
// the environment of anything it starts. Method: twenty planted values in the environment and the settings of a real
// server; agents that dump every environment and file they can reach, and providers that repeat the key they were sent;
// then a search of everything that was written and sent.
// Verifies: G12
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { count, reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { always, type ReplySpec, say, use } from "../support/runtime/scenarios.ts"
import { bubblewrap } from "../support/sandbox.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"

const planted = (name: string): string => `canary-${name.toLowerCase().replaceAll("_", "-")}-9f3b7c61d2e84a05`

const variables = [
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "ECHS_TOKEN",
  "OTHER_PROVIDER_KEY",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "GITHUB_TOKEN",
  "GH_TOKEN",
  "NPM_TOKEN",
  "DATABASE_URL",
  "PGPASSWORD",
  "STRIPE_SECRET_KEY",
  "SLACK_BOT_TOKEN",
  "GOOGLE_API_KEY",
  "AZURE_CLIENT_SECRET",
  "SSH_AUTH_SOCK",
  "HTTP_PROXY_PASSWORD",
  "SOMETHING_OF_MINE",
  "LD_LIBRARY_PATH_X"
] as const
const settingsToken = planted("TOKEN_IN_SETTINGS").padEnd(48, "0")

const canaries: ReadonlyArray<string> = [...variables.map(planted), settingsToken]

let place = ""
let data = ""
let workspace = ""
let server: ServerProcess
let provider: Server
let socket: Socket
const frames: Array<string> = []
/** What providers were sent, to be sure that the keys were in use. */
const sent: Array<string> = []

const dumps = (): ReadonlyArray<readonly [string, object]> => [
  ["bash", { command: "env" }],
  ["bash", { command: "printenv; export -p; set; declare -p" }],
  ["bash", { command: "cat /proc/self/environ | tr '\\0' '\\n'" }],
  ["bash", { command: "cat /proc/1/environ /proc/2/environ | tr '\\0' '\\n'" }],
  ["bash", { command: "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done" }],
  ["bash", { command: "ps auxeww || ps aux" }],
  ["bash", { command: "cat /proc/*/cmdline | tr '\\0' ' '" }],
  ["bash", { command: `cat ${data}/token ${data}/config.json ${data}/server.json` }],
  ["bash", { command: `grep -r canary ${place} / --include=config.json --include=token -s --max-count=3 -l | head` }],
  ["bash", { command: `find ${data} -type f -exec cat {} +` }],
  ["bash", { command: "cat ../data/token ../data/config.json" }],
  ["bash", { command: "node -e 'console.log(process.env)' || python3 -c 'import os; print(os.environ)'" }],
  ["bash", { command: "env >&2; exit 3" }],
  ["bash", { command: "env > environment.txt; cat environment.txt" }],
  ["bash", { command: "git config --list --show-origin; cat ~/.netrc ~/.npmrc ~/.aws/credentials" }],
  ["bash", { command: "cat /proc/$PPID/environ | tr '\\0' '\\n'; cat /proc/$$/environ" }],
  ["bash", { command: "env", session: "s" }],
  ["bash", { session: "s", command: "export -p; cat /proc/$$/environ | tr '\\0' '\\n'" }],
  ["bash", { session: "s", close: true }],
  ["read_file", { path: "../data/token" }],
  ["read_file", { path: `${data}/config.json` }],
  ["read_file", { path: "/proc/self/environ" }],
  ["list_files", { path: data }],
  ["grep", { pattern: "canary", path: place }],
  ["git_status", {}]
]

const scenario = (): { readonly name: string; readonly replies: ReadonlyArray<ReplySpec> } => ({
  name: "dumps",
  replies: [
    ...dumps().map(([tool, args], index) => ({ when: { input: `^dump ${index}$`, step: 1 }, play: [use(tool, args)] })),
    { when: { input: "^sleep", step: 1 }, play: [use("bash", { command: "sleep 30 & sleep 30" })] },
    always(say("done"))
  ]
})

/** Repeats everything it was sent, as an error. */
const startProvider = async (): Promise<string> => {
  provider = createServer((request, response) => {
    sent.push(JSON.stringify(request.headers))
    const body = { error: { type: "authentication_error", message: `wrong key: ${JSON.stringify(request.headers)}` } }
    response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-canary-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  for (const path of [data, workspace]) mkdirSync(path, { mode: 0o700 })
  const base = await startProvider()
  const settings = {
    tokens: [{ name: "second", role: "viewer", token: settingsToken }],
    providers: { other: { adapter: "openai-chat", baseUrl: `${base}/v1`, keyVariable: "OTHER_PROVIDER_KEY" } }
  }
  writeFileSync(join(data, "config.json"), JSON.stringify(settings), { mode: 0o600 })
  writeFileSync(join(data, "token"), `${planted("ECHS_TOKEN")}\n`, { mode: 0o600 })
  writeFileSync(join(place, "scenario.json"), JSON.stringify(scenario()))
  const env = Object.fromEntries(variables.map((name) => [name, planted(name)]))
  server = await startProcess(data, {
    args: ["--log", "debug"],
    env: { ...env, OPENAI_BASE_URL: `${base}/v1`, ANTHROPIC_BASE_URL: base }
  })
  socket = await Socket.open(server.url)
  socket.raw.on("message", (text) => void frames.push(String(text)))
  await socket.hello(planted("ECHS_TOKEN"))
})
afterAll(async () => {
  await socket.close()
  await server.end("SIGKILL")
  provider.close()
  rmSync(place, { recursive: true, force: true })
})

const turn = async (id: string, content: string): Promise<void> => {
  const { sub } = await socket.ok("subscribe", { conversation_id: id, after: "tail" })
  await socket.ok("message.post", { conversation_id: id, content })
  const isOver = (rune: Json): boolean => /^turn\.(completed|error|interrupted)$/.test(String(rune["kind"]))
  await socket.until(() => socket.runes(sub).some(isOver))
}

const found = (text: string | Buffer): ReadonlyArray<string> => canaries.filter((canary) => text.includes(canary))

const filesBelow = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })

const parentOf = (pid: string): string => {
  try {
    return /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? ""
  } catch {
    return ""
  }
}

/** The processes below this one, however deep. */
const below = (root: string): ReadonlyArray<string> => {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]))
  const isBelow = (pid: string): boolean => {
    for (let at = parents.get(pid) ?? ""; at !== "" && at !== "0"; at = parents.get(at) ?? "")
      if (at === root) return true
    return false
  }
  return all.filter(isBelow)
}

describe("twenty planted secrets", () => {
  it("are in no rune, file, log, frame or answer after agents looked everywhere", async (context) => {
    requirePart(context, bubblewrap)
    expect(canaries.length).toBe(20)
    const wanted = count("canary turns", { fast: 50, soak: 500 })
    let turns = 0
    const ids: Array<string> = []
    for (const name of ["openai/gpt-5", "openai-chat/gpt-5", "anthropic/claude-x", "other/model"]) {
      // A wrong key waits for a person, unless nobody is to be waited for.
      const id = await socket.create({ model: name, workspace, limits: { llm_retry_ms: 0 } })
      ids.push(id)
      await turn(id, "hello")
      turns += 1
    }
    const model = `scripted/${join(place, "scenario.json")}`
    const agent = await socket.create({ model, workspace, policy: { mode: "full_access" } })
    ids.push(agent)
    for (let index = 0; turns < wanted; index++, turns++) await turn(agent, `dump ${index % dumps().length}`)
    const answers = [
      ["config"],
      ["doctor"],
      ["token"],
      ["ls"],
      ["show", agent],
      ["audit", agent],
      ["export", agent],
      ["stats"]
    ].map((args) => {
      const run = commandOn(data, { cwd: workspace, env: { ECHS_TOKEN: planted("ECHS_TOKEN") } })(args)
      return `${run.stdout}${run.stderr}`
    })
    const keepers = new Set([join(data, "config.json"), join(data, "token")])
    const files = [...filesBelow(data), ...filesBelow(workspace)].filter((path) => !keepers.has(path))
    const places: ReadonlyArray<readonly [string, string | Buffer]> = [
      ...files.map((path) => [path.slice(place.length), readFileSync(path)] as const),
      ["log", server.errors()],
      ["frames", frames.join("\n")],
      ...answers.map((text, index) => [`answer ${index}`, text] as const)
    ]
    const hits = places.flatMap(([name, text]) => found(text).map((canary) => `${name}: ${canary}`))
    const bytes = places.reduce((sum, [, text]) => sum + text.length, 0)
    reportCount("canary turns", turns)
    reportCount("canary files and streams searched", places.length)
    reportCount("canary bytes searched", bytes)
    reportCount("canary hits", hits.length)
    expect(hits).toEqual([])
    expect(sent.filter((headers) => found(headers).length > 0).length).toBeGreaterThanOrEqual(3)
    // The search would find one: the dumps did run, and what they printed is there to be read.
    const runes = frames.join("\n")
    for (const seen of ["PATH=", "wrong key", "GIT_TERMINAL_PROMPT"]) expect(runes).toContain(seen)
    expect(statSync(join(data, "token")).mode & 0o077).toBe(0)
  })

  it("are in the environment of nothing that the server starts", async (context) => {
    requirePart(context, bubblewrap)
    const model = `scripted/${join(place, "scenario.json")}`
    const id = await socket.create({ model, workspace, policy: { mode: "full_access" } })
    const { sub } = await socket.ok("subscribe", { conversation_id: id, after: "tail" })
    await socket.ok("message.post", { conversation_id: id, content: "sleep" })
    await socket.until(() => socket.runes(sub).some((rune) => rune["kind"] === "tool.started"))
    const server_pid = String(server.child.pid)
    await expect.poll(() => below(server_pid).length, { timeout: 10_000, interval: 50 }).toBeGreaterThanOrEqual(2)
    const hits = below(server_pid).flatMap((pid) => {
      try {
        return found(readFileSync(`/proc/${pid}/environ`)).map((canary) => `${pid}: ${canary}`)
      } catch {
        return []
      }
    })
    reportCount("canary processes searched", below(server_pid).length)
    expect(found(readFileSync(`/proc/${server_pid}/environ`)).length).toBeGreaterThan(10)
    expect(hits).toEqual([])
    await socket.ok("turn.interrupt", { conversation_id: id })
  })
})
