// Goal: the verbs do what they say against a real server, with the exit codes of the protocol. Method: real processes, one
// server for all, conversations with scripted models.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandOn, launcher, startCommand } from "../support/cli.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"

let place = ""
let data = ""
let workspace = ""
let server: ServerProcess
const echs = (args: ReadonlyArray<string>, input?: string) => commandOn(data, { cwd: workspace })(args, input)
const json = (args: ReadonlyArray<string>) => {
  const run = echs([...args, "--json"])
  expect(run.code, `${args.join(" ")}: ${run.stderr}`).toBe(0)
  return JSON.parse(run.stdout)
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-cli-"))
  data = join(place, "data")
  workspace = join(place, "workspace")
  mkdirSync(workspace)
  server = await startProcess(data)
})

afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

/** A conversation of the demo model that waits for its first approval. */
const waiting = async (): Promise<string> => {
  const { conversation_id: id } = json(["send", "--new", "--model", "scripted/demo", "go"])
  await expect.poll(() => json(["show", id]).pending_approvals.length, { timeout: 20_000, interval: 200 }).toBe(1)
  return id
}

describe("a conversation at the command line", () => {
  it("begins, is followed to its end, and is found again", () => {
    const run = echs(["send", "--new", "--wait", "--model", "scripted/echo", "--title", "first", "hello there"])
    expect(run).toMatchObject({ code: 0, stdout: "hello there\n" })
    const { items } = json(["ls", "--query", "first"])
    expect(items).toHaveLength(1)
    const [{ conversation_id: id }] = items
    expect(json(["show", id])).toMatchObject({ conversation_id: id, title: "first", workspace, turns: 1 })
    expect(json(["show", id.slice(0, 20)]).conversation_id).toBe(id)
    expect(echs(["show", id]).stdout).toContain(id)
    expect(json(["stats", id])).toMatchObject({ turns: 1 })
  })

  it("has agents, a budget, and turns that are tried again", () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "--model", "scripted/echo", "hello"])
    const { agent_id: worker } = json(["agents", id, "--spawn", "worker"])
    json(["agents", id, "--tell", worker, "and you"])
    expect(json(["agents", id]).items).toHaveLength(2)
    expect(echs(["agents", id]).stdout).toContain(`${worker}  worker`)
    json(["agents", id, "--kill", worker])
    expect(json(["budget", id, "--tokens", "1000000", "--usd", "0.5"])).toMatchObject({ conversation_id: id })
    expect(echs(["budget", id])).toMatchObject({ code: 2 })
    // Nothing of it failed.
    expect(echs(["retry", id]).code).toBe(6)
    expect(echs(["retry", id, "call_1"]).code).toBe(5)
    expect(echs(["retry", id, "hookrun_1"]).code).toBe(5)
  })

  it("shows what its model is told, and tells nobody's terminal what to do", () => {
    writeFileSync(join(workspace, "AGENTS.md"), "a-rule\u001b[2J of this place\n")
    const { conversation_id: id } = json(["send", "--new", "--wait", "--model", "scripted/echo", "told"])
    const { agent_id, instructions, sent } = json(["show", id, "--prompt"])
    expect(sent).toBe(true)
    expect(instructions).toContain("a-rule\u001b[2J of this place")
    expect(echs(["show", id, "--prompt"]).stdout).toBe(`${instructions.replace("\u001b[2J", "")}\n`)
    rmSync(join(workspace, "AGENTS.md"))
    expect(json(["show", id, "--prompt", "--agent", agent_id]).next).toContain("hold no more: AGENTS.md")
    expect(echs(["show", id, "--prompt"]).stdout).toContain("--- goes out with the next request")
    expect(echs(["show", id, "--prompt", "--agent", "agt_00000000000000ff"]).code).toBe(5)
  })

  it("posts once under one key", () => {
    const { conversation_id: id } = json(["send", "--new", "x"])
    const first = json(["send", id, "again", "--key", "k1"])
    expect(json(["send", id, "again", "--key", "k1"])).toEqual(first)
    expect(echs(["send", id, "something else", "--key", "k1"])).toMatchObject({ code: 6 })
  })

  it("is exported, tailed and replayed alike", () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "one"])
    const exported = echs(["export", id])
    expect(exported.code).toBe(0)
    const runes = exported.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(runes.map(({ event_id: eventId }) => eventId)).toEqual(runes.map((_, index) => index + 1))
    expect(echs(["tail", id, "--once"]).stdout).toBe(exported.stdout)
    const turns = echs(["tail", id, "--once", "--after", "3", "--kind", "turn.*", "--kind", "session.activated"]).stdout
    const expected = runes.filter(
      ({ kind, event_id: eventId }) => eventId > 3 && (kind.startsWith("turn.") || kind === "session.activated")
    )
    expect(
      turns
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    ).toEqual(expected)
    expect(echs(["tail", id, "--once", "--visibility", "public"]).stdout).not.toContain('"visibility":"internal"')
    expect(json(["replay", id])).toMatchObject({ event_id: runes.length, state: { head: runes.length, turns: 1 } })
    expect(json(["replay", id, "4"])).toMatchObject({ event_id: 4, state: { head: 4, turns: 0 } })
  })

  it("goes through its life, and what does not fit is refused with exit code 6", () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "x"])
    expect(echs(["pause", id, "--reason", "lunch"])).toMatchObject({ code: 0, stdout: `${id} paused\n` })
    expect(json(["show", id]).state).toBe("paused")
    expect(echs(["pause", id])).toMatchObject({ code: 6, stdout: "" })
    expect(echs(["resume", id]).code).toBe(0)
    const { conversation_id: fork } = json(["fork", id, "5"])
    expect(json(["show", fork]).last_event_id).toBeGreaterThanOrEqual(5)
    expect(echs(["archive", id]).code).toBe(6)
    expect(echs(["interrupt", id]).code).toBe(6)
    expect(echs(["close", id]).code).toBe(0)
    expect(echs(["send", id, "too late"]).code).toBe(6)
    expect(echs(["archive", id]).code).toBe(0)
    expect(
      json(["ls", "--state", "archived"]).items.map((item: { conversation_id: string }) => item.conversation_id)
    ).toEqual([id])
    expect(echs(["restore", id]).code).toBe(0)
  })

  it("is steered in the middle of its turn", async () => {
    const id = await waiting()
    expect(json(["steer", id, "and be brief"])).toMatchObject({ conversation_id: id })
    const steered = () => echs(["tail", id, "--once", "--kind", "turn.queued"]).stdout
    expect(JSON.parse(steered())).toMatchObject({ payload: { input: "and be brief", mode: "steer" } })
    expect(echs(["close", id]).code).toBe(0)
  })

  it("is one of all in a tail of everything", async () => {
    const tail = startCommand(data, ["tail", "*", "--kind", "turn.completed"])
    const ids = new Set<string>()
    const seen = () => new Set([...tail.stdout().matchAll(/"conversation_id":"(conv_\w+)"/g)].map(([, id]) => id))
    await expect
      .poll(
        () => {
          ids.add(json(["send", "--new", "--wait", "x"]).conversation_id)
          return seen().size
        },
        { timeout: 30_000 }
      )
      .toBeGreaterThanOrEqual(2)
    expect([...seen()].filter((id) => !ids.has(id ?? ""))).toEqual([])
    tail.child.kill("SIGINT")
    expect(await tail.ended).toBe(130)
  })

  it("chats line by line from a pipe", () => {
    const run = echs(["chat", "--model", "scripted/echo"], "first line\nsecond line\n")
    expect(run.code, run.stderr).toBe(0)
    expect(run.stdout).toMatch(/^conv_[0-9a-z]+ scripted\/echo\nfirst line\n.*tokens\nsecond line\n.*tokens\n$/)
    const lines = echs(["chat", "--model", "scripted/echo", "--json"], "a\nb\n").stdout.trim().split("\n")
    expect(lines.map((line) => JSON.parse(line).output)).toEqual(["a", "b"])
  })
})

describe("approvals at the command line", () => {
  it("are given, and the audit says who, what and why", async () => {
    const id = await waiting()
    expect(echs(["show", id]).stdout).toContain(`echs approve ${id} call_2`)
    expect(echs(["approve", id, "--scope", "often"]).code).toBe(2)
    expect(json(["approve", id, "call_2"])).toMatchObject({ call_id: "call_2" })
    expect(echs(["approve", id, "call_2"])).toMatchObject({ code: 6 })
    expect(echs(["deny", id, "call_2"])).toMatchObject({ code: 6 })
    await expect.poll(() => json(["show", id]).pending_approvals.length, { timeout: 20_000, interval: 200 }).toBe(1)
    expect(echs(["deny", id, "--reason", "no commands"])).toMatchObject({ code: 0, stdout: "call_3 denied\n" })
    await expect.poll(() => json(["show", id]).working, { timeout: 20_000, interval: 200 }).toBe(false)
    expect(existsSync(join(workspace, "echs-demo.md"))).toBe(true)
    expect(json(["audit", id]).items).toMatchObject([
      {
        call_id: "call_2",
        tool_name: "write_file",
        decision: "approved",
        by: "local",
        channel: "websocket",
        scope: "once",
        result: "success"
      },
      { call_id: "call_3", tool_name: "bash", decision: "denied", by: "local", reason: "no commands", result: "denied" }
    ])
    expect(echs(["audit", id]).stdout).toMatch(
      /call_2 +approved +local websocket once +success +path_checks +write_file/
    )
  })

  it("end with the turn when it is interrupted", async () => {
    const id = await waiting()
    expect(echs(["interrupt", id, "--reason", "enough"]).code).toBe(0)
    expect(json(["show", id])).toMatchObject({ working: false, pending_approvals: [] })
  })
})

describe("what cannot be", () => {
  it.each([
    [["show", "conv_00000000000000000000"], 5, /there is no conversation/],
    [["tail", "conv_00000000000000000000"], 5, /there is no conversation/],
    [["approve", "conv_00000000000000000000", "call_1"], 5, /there is no conversation/],
    [["tail"], 2, /missing argument: expected CONVERSATION/],
    [["tail", "last", "--after", "soon"], 2, /--after/],
    [["ls", "--limit", "0"], 2, /--limit/],
    [["ls", "--fly"], 2, /--fly/],
    [["send", "last"], 2, /expected two arguments: CONVERSATION TEXT/],
    [["show", "a", "b"], 2, /unexpected argument "b"/],
    [["completions", "tcsh"], 2, /SHELL must be one of/],
    [["fly"], 2, /unknown command "fly"/]
  ] as const)("%j ends with %i", (args, code, message) => {
    const run = echs([...args])
    expect(run).toMatchObject({ code, stdout: "" })
    expect(run.stderr).toMatch(message)
  })

  it("is told as JSON too, where JSON was asked for", () => {
    const run = echs(["show", "conv_00000000000000000000", "--json"])
    expect(run.code).toBe(5)
    expect(JSON.parse(run.stdout)).toMatchObject({ error: { code: "not_found" } })
  })

  it("is exit code 4 with a wrong token", () => {
    const run = commandOn(data, { env: { ECHS_TOKEN: "x".repeat(43) } })(["ls"])
    expect(run).toMatchObject({ code: 4, stdout: "" })
    expect(run.stderr).toContain("echs token")
  })

  it("is exit code 3 without a server, with a word on how to start one", () => {
    const empty = mkdtempSync(join(tmpdir(), "echs-cli-none-"))
    try {
      for (const args of [["ls"], ["tail", "last"], ["ls", "--url", "http://127.0.0.1:1"]]) {
        const run = commandOn(empty)(args)
        expect(run, args.join(" ")).toMatchObject({ code: 3, stdout: "" })
        expect(run.stderr).toContain('"echs server start"')
      }
    } finally {
      rmSync(empty, { recursive: true, force: true })
    }
  })
})

describe("a tail in a pipe", () => {
  it("has no color, goes on over a killed server, and ends with 130 on an interrupt", async () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "one"])
    const tail = startCommand(data, ["tail", id])
    await expect.poll(tail.stdout, { timeout: 20_000 }).toContain('"turn.completed"')
    await server.end("SIGKILL")
    server = await startProcess(data)
    json(["send", id, "two", "--wait"])
    await expect.poll(() => tail.stdout().match(/"turn\.completed"/g)?.length, { timeout: 20_000 }).toBe(2)
    tail.child.kill("SIGINT")
    expect(await tail.ended).toBe(130)
    expect(tail.stdout()).toBe(echs(["export", id]).stdout)
    expect(tail.stdout()).not.toContain("\u001b")
  })

  it("whose reader has seen enough ends in silence", () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "one"])
    const command = [process.execPath, launcher, "export", id].map((word) => `'${word}'`).join(" ")
    const run = spawnSync("sh", ["-c", `(${command}; echo "exit $?" >&2) | head -n 1`], {
      encoding: "utf8",
      env: { ...process.env, ECHS_DATA: data }
    })
    expect(JSON.parse(run.stdout)).toMatchObject({ event_id: 1 })
    expect(run.stderr).toBe("exit 0\n")
  })
})

describe("a server that is frozen", () => {
  it("does not keep a command that is told to end", async () => {
    const { conversation_id: id } = json(["send", "--new", "--wait", "one"])
    const tail = startCommand(data, ["tail", id])
    await expect.poll(tail.stdout, { timeout: 20_000 }).toContain('"turn.completed"')
    server.child.kill("SIGSTOP")
    try {
      // A command that waited for the server would wait until the end of the test.
      tail.child.kill("SIGINT")
      expect(await tail.ended).toBe(130)
    } finally {
      server.child.kill("SIGCONT")
    }
  })
})

describe("what is set", () => {
  it("is printed with its source, secrets masked", () => {
    const run = commandOn(data, { env: { OPENAI_API_KEY: "sk-abcdefghijklmnop", ECHS_PORT: "4711" } })([
      "config",
      "--json"
    ])
    const items: ReadonlyArray<{ readonly name: string }> = JSON.parse(run.stdout).items
    expect(run.stdout).not.toContain("abcdefgh")
    expect(items.find(({ name }) => name === "openai_api_key")).toMatchObject({
      value: "••••••••",
      source: "environment"
    })
    expect(items.find(({ name }) => name === "port")).toMatchObject({ value: "4711", source: "environment" })
    expect(items.find(({ name }) => name === "host")).toMatchObject({ value: "127.0.0.1", source: "default" })
    expect(items.find(({ name }) => name === "data")).toMatchObject({ value: data, source: "environment" })
  })

  it("tells what is installed and which model would answer", () => {
    const { items, well } = json(["doctor"])
    expect(well).toBe(true)
    const byName = Object.fromEntries(items.map((item: { name: string; text: string }) => [item.name, item.text]))
    expect(byName["server"]).toContain(server.url)
    expect(byName["model"]).toContain("scripted/demo")
    expect(byName["sandbox"]).toContain("path checks")
  })

  it("holds tokens for others, which the server takes up when it starts, with the role they have", async () => {
    expect(echs(["token"]).stdout).toBe(`${join(data, "token")}\n`)
    expect(echs(["token", "create", "bad name"]).code).toBe(2)
    const { token } = json(["token", "create", "guest", "--role", "viewer"])
    expect(echs(["token", "create", "guest"]).code).toBe(6)
    expect(echs(["token"]).stdout).not.toContain(token)
    expect(statSync(join(data, "config.json")).mode & 0o777).toBe(0o600)
    await server.end("SIGTERM")
    server = await startProcess(data)
    const guest = commandOn(data, { env: { ECHS_TOKEN: token } })
    expect(guest(["ls", "--json"]).code).toBe(0)
    expect(guest(["send", "--new", "x"])).toMatchObject({ code: 4 })
    expect(echs(["token", "remove", "guest"]).code).toBe(0)
    expect(echs(["token", "remove", "guest"]).code).toBe(5)
    expect(readFileSync(join(data, "config.json"), "utf8")).not.toContain(token)
  })

  it("is measured by the bench", () => {
    const { measured } = json(["bench", "--count", "10"])
    expect(measured.map(({ count }: { count: number }) => count)).toEqual([10, 10, 10])
  })
})
