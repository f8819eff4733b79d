// Goal: the table of options is the parser, the usage and the completions at once; audits and completions say what they
// should. Method: verbs of the test's own, runes of the test's own, and bash itself for its script.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { VerbEntry } from "#src/cli/Verb.ts"
import { makeVerb, oneOf, wholeNumber } from "#src/cli/VerbSpec.ts"
import { auditOf } from "#src/cli/verbs/audit.ts"
import { make as makeCompletions } from "#src/cli/verbs/completions.ts"
import type { AnyRune } from "#src/client/Client.ts"
import { explainSettings, mask } from "#src/config/Explain.ts"
import { createNamedToken, readNamedTokens, readServerInfo, removeNamedToken } from "#src/config/LocalServer.ts"
import { verbs } from "#src/main/Verbs.ts"
import { operationNames } from "#src/wire/Operations.ts"
import { recordingTerminal } from "../support/terminal.ts"

const verb = makeVerb({
  name: "walk",
  takes: "WHERE",
  positionals: { min: 1, max: 1 },
  options: {
    pace: { type: "string", short: "p", value: "SPEED", help: "slow or fast" },
    steps: { type: "string", help: "how many" },
    dog: { type: "boolean", help: "take the dog" }
  },
  example: "echs walk home",
  run: async ({ answer, positionals: [where], values }) => {
    const pace = oneOf("pace", values.pace, ["slow", "fast"])
    answer({ where, pace, steps: wholeNumber("steps", values.steps, 1), dog: values.dog }, () => `${where}\n`)
    return 0
  }
})

const walk = async (...args: ReadonlyArray<string>) => {
  const terminal = recordingTerminal()
  return { code: await verb.run(args, terminal), output: terminal.output(), complaints: terminal.complaints() }
}

describe("a verb made from a table", () => {
  it("answers in words or in JSON", async () => {
    expect(await walk("home")).toEqual({ code: 0, output: "home\n", complaints: "" })
    const { output } = await walk("home", "-p", "fast", "--steps=3", "--dog", "--json")
    expect(JSON.parse(output)).toEqual({ where: "home", pace: "fast", steps: 3, dog: true })
  })

  it.each([
    [[], /missing argument: expected WHERE/],
    [["a", "b"], /"b"/],
    [["a", "--wings"], /--wings/],
    [["a", "--pace"], /pace/],
    [["a", "--pace", "flying"], /--pace must be one of: slow, fast/],
    [["a", "--steps", "0"], /--steps must be a whole number, 1 or greater/],
    [["a", "--steps", "1e3"], /--steps must be a whole number/]
  ])("refuses %j with exit code 2 and nothing on standard output", async (args, message) => {
    const { code, complaints, output } = await walk(...args)
    expect({ code, output }).toEqual({ code: 2, output: "" })
    expect(complaints).toMatch(message)
  })

  it("shows every option and an example in its usage", () => {
    expect(verb.usage).toContain("usage: echs walk WHERE [options]")
    expect(verb.usage).toMatch(/-p, --pace SPEED +slow or fast/)
    expect(verb.usage).toMatch(/--json +print machine-readable/)
    expect(verb.usage).toContain("example: echs walk home")
  })
})

describe("the verbs of the command", () => {
  const entries = verbs({ launcher: "echs.js" })

  it("are all those that were promised", () => {
    const promised =
      "serve server open demo goal plan task chat run attach peek send steer tail ls show inbox approve deny interrupt pause resume retry budget agents close archive restore fork replay verify repair export stats audit policy doctor hooks token login models config bench completions undo"
    expect(entries.map(({ name }) => name).toSorted()).toEqual(promised.split(" ").toSorted())
  })

  it("cover every operation that is for people", () => {
    const folder = new URL("../../src/cli/", import.meta.url)
    const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => readFileSync(new URL(path, folder), "utf8"))
      .join("\n")
    // Of clients that run tools, of programs that bring agents, of followers; `token` works on the files themselves, and so does
    // `demo`; `task` makes the names of its operations of its actions; the page has the policy and the grants.
    const ofPrograms =
      /^(tool\.(register|result)|(harness|terminal)\.\w+|(attention\.)?subscribe|unsubscribe|server\.stop|goal\.demo|(token|plan\.task|policy|grant)\.\w+)$/
    const missing = operationNames.filter((name) => !ofPrograms.test(name) && !sources.includes(`"${name}"`))
    expect(missing).toEqual([])
  })

  it("are all described", () => {
    const described = readFileSync(new URL("../../docs/CLI.md", import.meta.url), "utf8")
    expect(entries.filter(({ name }) => !described.includes(`\`${name}\``)).map(({ name }) => name)).toEqual([])
  })

  it.each(entries.map((one) => [one.name, one] as const))(
    "%s has --json, and an example in its usage",
    async (name, one) => {
      const { usage } = await one.load()
      expect(usage).toContain(`usage: echs ${name}`)
      expect(usage).toContain("--json")
      expect(usage).toMatch(/^example: .*echs /m)
    }
  )
})

describe("completions", () => {
  const entries: ReadonlyArray<VerbEntry> = [{ name: "walk", summary: "it's a walk: far", load: async () => verb }]
  const script = async (...args: ReadonlyArray<string>) => {
    const terminal = recordingTerminal()
    expect(await makeCompletions({ verbs: () => entries }).run(args, terminal)).toBe(0)
    return terminal.output()
  }

  it("complete verbs and options in bash", async () => {
    const text = await script("bash")
    const complete = (line: string, at: number) =>
      spawnSync("bash", ["-c", `${text}\nCOMP_WORDS=(${line}); COMP_CWORD=${at}; _echs; echo "\${COMPREPLY[@]}"`], {
        encoding: "utf8"
      }).stdout.trim()
    expect(complete("echs w", 1)).toBe("walk")
    expect(complete("echs walk --p", 2)).toBe("--pace")
    expect(complete("echs walk --", 2)).toBe("--pace --steps --dog --json --help")
  })

  it.each(["zsh", "fish"])("name verbs and options for %s", async (shell) => {
    const text = await script(shell)
    expect(text).toContain("walk")
    expect(text).toMatch(/pace/)
  })
})

describe("an audit", () => {
  const rune = (eventId: number, kind: string, payload: object): AnyRune =>
    ({
      event_id: eventId,
      kind,
      ts_ms: eventId * 1_000,
      agent_id: "agt_1",
      payload: { call_id: "call_1", ...payload }
    }) as unknown as AnyRune
  const call = (effect: string) =>
    rune(1, "tool.call", { tool_name: "bash", arguments: { command: "x" }, effect_class: effect })

  it("leaves out what changes nothing", () => {
    expect(auditOf([call("pure"), rune(2, "tool.started", {}), rune(3, "tool.result", { status: "success" })])).toEqual(
      []
    )
  })

  it("says who allowed it, when, how far and why it was asked", () => {
    const runes = [
      call("effect"),
      rune(2, "tool.approval_requested", { policy_reason: "auto" }),
      rune(3, "tool.approved", {
        approver: "ada",
        channel: "websocket",
        scope: "session",
        arguments: { command: "y" }
      }),
      rune(4, "tool.started", {}),
      rune(5, "tool.result", { status: "success" })
    ]
    expect(auditOf(runes)).toMatchObject([
      {
        decision: "approved",
        by: "ada",
        channel: "websocket",
        scope: "session",
        decided_ms: 3_000,
        reason: "auto",
        result: "success",
        arguments: { command: "y" },
        asked_arguments: { command: "x" },
        asked_ms: 2_000,
        started_ms: 4_000
      }
    ])
  })

  it("tells apart what the policy allowed, what was denied, what is open and what never ran", () => {
    const decision = (...runes: ReadonlyArray<AnyRune>) => auditOf([call("idempotent"), ...runes])[0]
    const sandbox = { level: "bubblewrap", network: false, roots: ["/srv/x"], allowed_by: "rule 2 allows bash" }
    expect(decision(rune(2, "tool.started", { sandbox }))).toMatchObject({
      decision: "allowed by policy",
      decided_ms: 2_000,
      by: "policy",
      reason: "rule 2 allows bash",
      sandbox: "bubblewrap",
      network: false,
      roots: ["/srv/x"]
    })
    expect(decision(rune(2, "tool.denied", { approver: "ada", reason: "no" }))).toMatchObject({
      decision: "denied",
      by: "ada",
      reason: "no"
    })
    expect(decision(rune(2, "tool.approval_requested", {}))).toMatchObject({ decision: "not decided" })
    expect(
      decision(rune(2, "tool.approval_requested", {}), rune(3, "tool.result", { status: "timeout" }))
    ).toMatchObject({ decision: "expired", decided_ms: 3_000 })
    expect(decision(rune(2, "tool.result", { status: "cancelled" }))).toMatchObject({
      decision: "not run",
      result: "cancelled"
    })
  })
})

describe("what local tools read", () => {
  const within = (work: (directory: string) => void): void => {
    const directory = mkdtempSync(join(tmpdir(), "echs-settings-"))
    try {
      work(directory)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  it("finds a server that runs and no other", () =>
    within((directory) => {
      const write = (info: unknown) => writeFileSync(join(directory, "server.json"), JSON.stringify(info))
      expect(readServerInfo(directory)).toBeUndefined()
      write({ url: "http://127.0.0.1:1", pid: process.pid })
      expect(readServerInfo(directory)).toMatchObject({ pid: process.pid })
      write({ url: "http://127.0.0.1:1", pid: 2 ** 22 + 1 })
      expect(readServerInfo(directory)).toBeUndefined()
      write({ url: 7 })
      expect(readServerInfo(directory)).toBeUndefined()
    }))

  it("keeps the other settings when a token is made or removed", () =>
    within((directory) => {
      writeFileSync(join(directory, "config.json"), '{ "port": 4711 }')
      const made = createNamedToken(directory, "guest", "viewer")
      expect(createNamedToken(directory, "guest", "admin")).toBeUndefined()
      expect(readNamedTokens(directory)).toEqual([made])
      expect(removeNamedToken(directory, "other")).toBe(false)
      expect(removeNamedToken(directory, "guest")).toBe(true)
      const explained = explainSettings({ variables: {}, homeDirectory: "/home" }, directory)
      expect(explained.find(({ name }) => name === "port")).toMatchObject({ value: "4711", source: "config.json" })
      expect(explained.find(({ name }) => name === "data")).toMatchObject({ source: "flag" })
    }))

  it("names the file that cannot be read", () =>
    within((directory) => {
      writeFileSync(join(directory, "config.json"), "[1]")
      expect(() => explainSettings({ variables: {}, homeDirectory: "/home" }, directory)).toThrow(
        /config\.json: it must hold a JSON object/
      )
      writeFileSync(join(directory, "config.json"), "{")
      expect(() => readNamedTokens(directory)).toThrow(/config\.json/)
    }))

  it("masks secrets but for their end", () => {
    expect([mask("short"), mask("sk-abcdefghijkl")]).toEqual(["••••••••", "••••••••"])
  })
})
