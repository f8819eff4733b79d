// Goal: the policy allows only what it was told to allow. Method: tables of questions with their verdicts, and random
// command lines that begin like an allowed one.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { evaluate, ruleToLearn } from "#src/policy/Evaluate.ts"
import type { Grant, PolicyQuestion } from "#src/policy/PolicyPort.ts"
import { policyIssue, ruleIssues } from "#src/policy/Rule.ts"
import { growth } from "../support/cost.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

const workspace = "/srv/project"

const base: PolicyQuestion = {
  tool_name: "bash",
  mutating: true,
  effect_class: "effect",
  provenance: "builtin",
  approval: "by_policy",
  contained: true,
  access: {},
  arguments_hash: "a".repeat(64),
  mode: "auto",
  rules: [],
  grants: [],
  workspace,
  now_ms: 1000
}

const bash = (command: string, more: Partial<PolicyQuestion> = {}): PolicyQuestion => ({
  ...base,
  access: { command },
  ...more
})
const read = (path: string, more: Partial<PolicyQuestion> = {}): PolicyQuestion => ({
  ...base,
  tool_name: "read_file",
  mutating: false,
  effect_class: "pure",
  access: { reads: [path] },
  ...more
})
const write = (path: string, more: Partial<PolicyQuestion> = {}): PolicyQuestion => ({
  ...base,
  tool_name: "write_file",
  effect_class: "idempotent",
  access: { writes: [path] },
  ...more
})
const fetchUrl = (url: string, more: Partial<PolicyQuestion> = {}): PolicyQuestion => ({
  ...base,
  tool_name: "fetch_url",
  mutating: false,
  effect_class: "idempotent",
  access: { url },
  ...more
})

const verdict = (question: PolicyQuestion): string => evaluate(question).verdict
const reason = (question: PolicyQuestion): string => evaluate(question).reason

const granted = (question: PolicyQuestion, scope: "session" | "rule"): Grant => ({
  tool_name: question.tool_name,
  scope,
  arguments_hash: question.arguments_hash,
  expires_ms: null,
  rule: ruleToLearn(question, scope)
})

const gitStatus = { decision: "allow", tool: "bash", command: ["git", "status"] }

describe("modes", () => {
  it.each([
    ["read_only", read("a.ts"), "allow"],
    ["read_only", write("a.ts"), "deny"],
    ["read_only", bash("ls"), "deny"],
    ["read_only", fetchUrl("https://example.org/"), "ask"],
    ["auto", read("a.ts"), "allow"],
    ["auto", write("a.ts"), "ask"],
    ["auto", bash("ls"), "ask"],
    ["auto", fetchUrl("https://example.org/"), "ask"],
    ["full_access", read("a.ts"), "allow"],
    ["full_access", write("a.ts"), "allow"],
    ["full_access", bash("ls $(x)"), "allow"],
    ["full_access", fetchUrl("https://example.org/"), "allow"]
  ] as const)("%s: %#", (mode, question, expected) => {
    expect(verdict({ ...question, mode })).toBe(expected)
  })

  it("asks about what reads all of a directory where some of it may be denied", () => {
    const below = (path: string, pattern: string, more: object = {}): string =>
      verdict(
        read(path, {
          tool_name: "grep",
          access: { reads: [path], below: true },
          rules: [{ decision: "deny", path: pattern, ...more }]
        })
      )
    for (const pattern of ["**/.env", "secrets/**", "src/*/key", "/srv/project/secrets/key", "/srv/**"])
      expect([pattern, below(".", pattern)]).toEqual([pattern, pattern === "/srv/**" ? "deny" : "ask"])
    expect(below("src", "**/.env")).toBe("ask")
    expect(below("src/a", "src/*/key")).toBe("ask")
    expect(below("src", "secrets/**")).toBe("allow")
    expect(below("src", "src-old/**")).toBe("allow")
    expect(below("src", "key")).toBe("allow")
    expect(below(".", "**/.env", { access: "write" })).toBe("allow")
    expect(verdict(read("src", { rules: [{ decision: "deny", path: "**/.env" }] }))).toBe("allow")
  })

  it("does not take a permission for commits for one to run hooks", () => {
    const commit = write("a.txt", { tool_name: "git_commit", effect_class: "effect" })
    const rules = [{ decision: "allow", tool: "git_commit", path: "**" }]
    const withHooks = { ...commit.access, command: "git commit", stateful: true }
    expect(verdict({ ...commit, rules })).toBe("allow")
    expect(verdict({ ...commit, rules, access: withHooks })).toBe("ask")
    expect(evaluate({ ...commit, access: withHooks })).toMatchObject({ verdict: "ask", choices: ["once"] })
  })

  it("knows tools of MCP servers by both of their names", () => {
    const rules = [{ decision: "deny", tool: "mcp__github__*" }]
    const tool = { ...base, tool_name: "github__search", rules }
    expect(verdict({ ...tool, provenance: "mcp" })).toBe("deny")
    expect(verdict({ ...tool, provenance: "mcp", rules: [{ decision: "deny", tool: "github__*" }] })).toBe("deny")
    expect(verdict({ ...tool, provenance: "remote" })).toBe("ask")
  })

  it("read_only is a ceiling that no rule and no permission lifts", () => {
    const rules = [{ decision: "allow", tool: "*" }]
    const question = bash("git status", { mode: "read_only", rules })
    expect(verdict({ ...question, grants: [granted(bash("git status"), "rule")] })).toBe("deny")
  })

  it("a call that wants the network is not covered by a permission without it", () => {
    const wants = { access: { command: "npm ci", network: true } }
    expect(evaluate(bash("", wants))).toMatchObject({ verdict: "ask", network: true })
    const rule = { decision: "allow", tool: "bash", command: ["npm", "ci"] }
    expect(verdict(bash("", { ...wants, rules: [rule] }))).toBe("ask")
    const wide = { ...rule, network: true }
    expect(evaluate(bash("", { ...wants, rules: [wide] }))).toMatchObject({ verdict: "allow", network: true })
    expect(evaluate(bash("npm ci", { rules: [wide] }))).toMatchObject({ verdict: "allow", network: false })
    expect(verdict(bash("", { ...wants, grants: [granted(bash("npm ci"), "session")] }))).toBe("ask")
  })

  it("asks about tools of foreign servers whatever these say of themselves", () => {
    const tool = { tool_name: "mcp__x__read", provenance: "mcp", mutating: false, effect_class: "pure" } as const
    expect(verdict({ ...base, ...tool })).toBe("ask")
    expect(verdict({ ...base, ...tool, rules: [{ decision: "allow", tool: "mcp__x__*" }] })).toBe("allow")
  })

  it("always asks where a person is the answer, and never where only ECHS is touched", () => {
    const question = { ...base, tool_name: "ask_user", mutating: false, effect_class: "pure" } as const
    for (const mode of ["read_only", "auto", "full_access"] as const) {
      const asked = evaluate({
        ...question,
        mode,
        approval: "always",
        rules: [{ decision: "allow", tool: "ask_user" }]
      })
      expect(asked).toMatchObject({ verdict: "ask", choices: ["once"] })
      expect(verdict({ ...question, tool_name: "update_plan", mutating: true, mode, approval: "never" })).toBe("allow")
    }
    const denied = [{ decision: "deny", tool: "ask_user" }]
    expect(verdict({ ...question, approval: "always", rules: denied })).toBe("deny")
  })
})

describe("without a sandbox", () => {
  const grants = [granted(bash("ls"), "session"), granted(bash("ls"), "rule")]
  it("every effect asks, in every mode, whatever was allowed before", () => {
    for (const mode of ["auto", "full_access"] as const) {
      const question = bash("ls", { mode, contained: false, grants, rules: [{ decision: "allow", tool: "bash" }] })
      expect(evaluate(question)).toMatchObject({ verdict: "ask", choices: ["once"] })
      expect(verdict(write("a", { mode, contained: false }))).toBe("ask")
    }
    expect(verdict(bash("ls", { mode: "read_only", contained: false }))).toBe("deny")
    expect(verdict(read("a", { contained: false }))).toBe("allow")
  })

  it("a configured rule that says so in as many words lets it run", () => {
    const rule = { decision: "allow", tool: "bash", command: ["ls"], uncontained: true }
    expect(verdict(bash("ls", { contained: false, rules: [rule] }))).toBe("allow")
    const learnt = { ...granted(bash("ls"), "rule"), rule }
    expect(verdict(bash("ls", { contained: false, grants: [learnt] }))).toBe("ask")
  })
})

/** Ways to make a line begin with an allowed command and do something else. */
const evasions: ReadonlyArray<string> = [
  "git status; rm -rf /",
  "git status;rm -rf /",
  "git status && rm -rf /",
  "git status || rm -rf /",
  "git status | sh",
  "git status |& sh",
  "git status & rm -rf /",
  "git status\nrm -rf /",
  "git status\r\nrm -rf /",
  "git status $(rm -rf /)",
  "git status `rm -rf /`",
  'git status "$(rm -rf /)"',
  `git status $${"{x}"}`,
  "git status > /etc/passwd",
  "git status >> ~/.bashrc",
  "git status < /etc/shadow",
  "git status <<EOF",
  "git status <(rm -rf /)",
  "git status >(sh)",
  "git status --upload-pack=x",
  "git status *",
  "git -c alias.status='!rm -rf /' status",
  "git  statusx",
  "gitstatus",
  "GIT_SSH=x git status",
  "PATH=. git status",
  "./git status",
  "/opt/git status",
  "../git status",
  "bin/git status",
  "sudo git status",
  "env git status",
  "command git status",
  "exec git status",
  "eval git status",
  "alias git=rm; git status",
  "function git() { rm; }; git status",
  "git() { rm; }; git status",
  "cd /; git status",
  "(git status; rm -rf /)",
  "{ git status; rm -rf /; }",
  "! git status",
  "git status # \nrm -rf /",
  "git status \\\n; rm -rf /",
  "git status ' ; rm -rf /",
  'git status "; rm -rf /',
  "git 'status; rm -rf /'",
  "'git status'",
  '"git status"',
  "git status ''",
  "g\\it status; x",
  "git status\u0000; rm",
  "git status\u2028rm -rf /",
  "git\u00a0status",
  "gіt status",
  "git status\u200b",
  "time git status",
  "xargs git status",
  "git status 2>&1 >x",
  "git status;"
]

describe("a permission for a command", () => {
  it("covers that command, however it is spaced and quoted", () => {
    for (const line of [
      "git status",
      " git  status ",
      "git 'status'",
      '"git" status',
      "git status 2>&1",
      "g\\it status"
    ])
      expect(verdict(bash(line, { rules: [gitStatus] })), line).toBe("allow")
  })

  it("covers nothing else that looks like it", () => {
    const grants = [granted(bash("git status"), "session"), granted(bash("git status"), "rule")]
    expect(verdict(bash("git status", { grants }))).toBe("allow")
    const open = evasions.filter(
      (line) => verdict(bash(line, { rules: [gitStatus] })) !== "ask" || verdict(bash(line, { grants })) !== "ask"
    )
    console.log(
      `evasions of a permission for "git status": ${evasions.length - open.length} of ${evasions.length} asked about`
    )
    expect(open).toEqual([])
  })

  it("given to one tool is not one for another", () => {
    const grants = [granted(bash("git status"), "session"), granted(bash("git status"), "rule")]
    expect(verdict(bash("git status", { grants, tool_name: "other_shell" }))).toBe("ask")
    const old = grants.map(({ rule: _, ...grant }) => grant)
    expect(verdict(bash("git status", { grants: old }))).toBe("allow")
    expect(verdict(bash("git status", { grants: old, tool_name: "other_shell" }))).toBe("ask")
  })

  it("covers no random line that begins with it", () => {
    const suffix = fc.string({
      unit: fc.constantFrom(..."; &|$()`<>\n\\'\"*?~#{}![]abrm-/=".split("")),
      minLength: 1,
      maxLength: 12
    })
    const grants = [granted(bash("git status"), "rule")]
    let lines = 0
    fc.assert(
      fc.property(suffix, (text) => {
        const line = `git status ${text}`
        const answer = verdict(bash(line, { grants, rules: [gitStatus] }))
        const isSame = /^ *$/.test(text)
        lines += 1
        expect(answer === "allow", JSON.stringify(line)).toBe(isSame)
      }),
      { seed, numRuns: 20_000, examples: [[" "]] }
    )
    console.log(`seed ${seed}: ${lines} random lines that begin with "git status"`)
  })

  it("may leave arguments open, one by one or at the end", () => {
    const one = { decision: "allow", command: ["npm", "run", "*"] }
    const more = { decision: "allow", command: ["npm", "run", "**"] }
    expect(verdict(bash("npm run build", { rules: [one] }))).toBe("allow")
    expect(verdict(bash("npm run build -- x", { rules: [one] }))).toBe("ask")
    expect(verdict(bash("npm run", { rules: [one] }))).toBe("ask")
    expect(verdict(bash("npm run build -- x", { rules: [more] }))).toBe("allow")
    expect(verdict(bash("npm run build; x", { rules: [more] }))).toBe("ask")
    const literal = granted(bash("echo '*' '\\x' '**'"), "rule")
    expect(verdict(bash("echo '*' '\\x' '**'", { grants: [literal] }))).toBe("allow")
    expect(verdict(bash("echo a '\\x' '**'", { grants: [literal] }))).toBe("ask")
    expect(verdict(bash("echo '*' '\\x' a b", { grants: [literal] }))).toBe("ask")
  })

  it("given to a whole line covers that line and none of its parts", () => {
    const grants = [granted(bash("make && make test"), "session")]
    expect(verdict(bash("make  &&  make test", { grants }))).toBe("allow")
    for (const line of ["make", "make test", "make; make test", "make || make test", "make && make test && x"])
      expect(verdict(bash(line, { grants })), line).toBe("ask")
  })

  it("holds in the workspace it was given in, and only for its tool", () => {
    const grants = [granted(bash("ls"), "rule")]
    expect(verdict(bash("ls", { grants, workspace: "/elsewhere" }))).toBe("ask")
    expect(verdict(bash("ls", { grants, workspace: undefined }))).toBe("ask")
    expect(verdict(bash("ls", { grants, workspace: `${workspace}/.` }))).toBe("allow")
    expect(verdict({ ...bash("ls", { grants }), tool_name: "other" })).toBe("ask")
  })

  it("ends when its time is over", () => {
    const until = { ...granted(bash("ls"), "session"), expires_ms: 1000 }
    expect(verdict(bash("ls", { grants: [until], now_ms: 999 }))).toBe("allow")
    expect(verdict(bash("ls", { grants: [until], now_ms: 1000 }))).toBe("ask")
  })

  it("that a person gave once, or that cannot be read, covers nothing", () => {
    const once: Grant = { ...granted(bash("ls"), "rule"), scope: "once" }
    const broken: Grant = { ...granted(bash("ls"), "rule"), rule: { decision: "allow", everything: true } }
    const denying: Grant = { ...granted(bash("ls"), "rule"), rule: { decision: "ask", tool: "bash" } }
    expect(verdict(bash("ls", { grants: [once, broken, denying] }))).toBe("ask")
  })

  it("is offered for longer only when the command is understood", () => {
    expect(evaluate(bash("make test"))).toMatchObject({
      choices: ["once", "session", "rule"],
      learns: { rule: { decision: "allow", tool: "bash", command: ["make", "test"], workspace } }
    })
    expect(evaluate(bash("make test > out"))).toMatchObject({ choices: ["once"] })
    expect(evaluate(bash("make test > out"))).not.toHaveProperty("learns")
  })
})

describe("a permission for files", () => {
  it("for the conversation covers the workspace, and not what Git would run", () => {
    const grants = [granted(write("src/a.ts"), "session")]
    expect(verdict(write("src/b.ts", { grants }))).toBe("allow")
    for (const path of ["../b.ts", "/etc/passwd", ".git/hooks/pre-commit", "src/../.git/config", "sub/.GIT/hooks/x"])
      expect(verdict(write(path, { grants })), path).toBe("ask")
    expect(verdict(write("src/b.ts", { grants, tool_name: "edit_file" }))).toBe("ask")
  })

  it("for good covers the same paths", () => {
    const grants = [granted(write("src/a.ts"), "rule")]
    expect(verdict(write("./src/x/../a.ts", { grants }))).toBe("allow")
    expect(verdict(write("src/b.ts", { grants }))).toBe("ask")
    expect(evaluate(write("src/*.ts"))).toMatchObject({ choices: ["once", "session"] })
  })

  it("is never one for all that a tool of ours may do", () => {
    const typed = bash("", { access: {} })
    expect(evaluate(typed)).toMatchObject({ verdict: "ask", choices: ["once"] })
    const whole: Grant = { ...granted(bash("ls"), "session"), rule: { decision: "allow", tool: "bash" } }
    expect(verdict(bash("rm -rf x", { grants: [whole] }))).toBe("ask")
    expect(verdict(bash("", { access: { control: true } }))).toBe("allow")
    expect(verdict(bash("", { access: { control: true }, mode: "read_only", contained: false }))).toBe("allow")
    expect(verdict(bash("", { access: { control: true, command: "ls" } }))).toBe("ask")
    expect(verdict(bash("", { access: { control: true }, provenance: "custom" }))).toBe("ask")
  })

  it("does not reach into a shell that earlier commands may have changed", () => {
    const inSession = { command: "git status", stateful: true }
    const grants = [granted(bash("git status"), "rule"), { ...granted(bash("git status"), "session"), rule: undefined }]
    expect(verdict(bash("", { access: inSession, grants, rules: [gitStatus] }))).toBe("ask")
    expect(evaluate(bash("", { access: inSession }))).toMatchObject({ choices: ["once"] })
    const deny = [{ decision: "deny", command: ["rm", "**"] }]
    expect(verdict(bash("", { access: { ...inSession, command: "rm x" }, rules: deny, mode: "full_access" }))).toBe(
      "deny"
    )
    expect(verdict(bash("", { access: inSession, rules: deny, mode: "full_access" }))).toBe("ask")
  })

  it("of a tool that tells nothing of what it touches covers the tool", () => {
    const custom = { ...base, tool_name: "deploy", provenance: "custom" } as const
    const grants = [granted(custom, "session")]
    expect(verdict({ ...custom, arguments_hash: "b".repeat(64), grants })).toBe("allow")
    const old: Grant = { tool_name: "deploy", scope: "session", arguments_hash: "c".repeat(64), expires_ms: null }
    expect(verdict({ ...custom, grants: [old] })).toBe("allow")
    expect(verdict(bash("ls", { grants: [{ ...old, tool_name: "bash" }] }))).toBe("ask")
  })
})

describe("a permission for a tool that is not ours", () => {
  const hash = (letter: string): string => letter.repeat(64)
  const foreign = (definition: string, more: Partial<PolicyQuestion> = {}): PolicyQuestion => ({
    ...base,
    tool_name: "github__merge",
    provenance: "mcp",
    definition,
    ...more
  })

  it.each(["session", "rule"] as const)("for %s is for the tool as it was defined", (scope) => {
    const grants = [granted(foreign(hash("a")), scope)]
    expect(grants[0]?.rule).toMatchObject({ definition: hash("a") })
    expect(verdict(foreign(hash("a"), { arguments_hash: hash("d"), grants }))).toBe("allow")
    expect(verdict(foreign(hash("b"), { grants }))).toBe("ask")
    expect(verdict(foreign("unknown", { grants }))).toBe("ask")
    expect(verdict(foreign(hash("a"), { rules: [grants[0]?.rule] }))).toBe("allow")
    expect(verdict(foreign(hash("b"), { rules: [grants[0]?.rule] }))).toBe("ask")
  })

  it("that says nothing of its definition does not hold any more, whatever its arguments are", () => {
    const old: Grant = {
      tool_name: "github__merge",
      scope: "session",
      arguments_hash: base.arguments_hash,
      expires_ms: null
    }
    expect(verdict(foreign(hash("a"), { grants: [old] }))).toBe("ask")
    const rule = { decision: "allow", tool: "github__merge" }
    expect(verdict(foreign(hash("a"), { grants: [{ ...old, rule }] }))).toBe("ask")
    expect(verdict(foreign(hash("a"), { rules: [rule] }))).toBe("allow")
  })

  it("is not offered while nobody knows what the tool is", () => {
    expect(evaluate(foreign("unknown"))).toMatchObject({ verdict: "ask", choices: ["once"] })
  })
})

describe("rules", () => {
  it("decide in their order", () => {
    const deny = { decision: "deny", tool: "bash", command: ["rm", "**"] }
    const allowAll = { decision: "allow", tool: "bash" }
    expect(verdict(bash("rm -rf x", { rules: [deny, allowAll] }))).toBe("deny")
    expect(verdict(bash("rm -rf x", { rules: [allowAll, deny] }))).toBe("allow")
    expect(verdict(bash("ls", { rules: [deny, allowAll] }))).toBe("allow")
  })

  it("that deny beat permissions given earlier and the mode", () => {
    const rules = [{ decision: "deny", tool: "bash", command: ["rm", "**"], reason: "no" }]
    const grants = [granted(bash("rm x"), "rule"), granted(bash("rm x"), "session")]
    expect(evaluate(bash("rm x", { rules, grants, mode: "full_access" }))).toEqual({
      verdict: "deny",
      reason: "rule 1 denies bash: no"
    })
  })

  it("that ask can be answered for longer by a person", () => {
    const rules = [{ decision: "ask", tool: "bash" }]
    expect(verdict(bash("ls", { rules, mode: "full_access" }))).toBe("ask")
    expect(verdict(bash("ls", { rules, mode: "full_access", grants: [granted(bash("ls"), "session")] }))).toBe("allow")
  })

  it("against a command find it in every part of a line, and ask where they cannot tell", () => {
    const rules = [{ decision: "deny", command: ["rm", "**"] }]
    const full = { rules, mode: "full_access" } as const
    for (const line of ["rm x", "/bin/rm x", "ls && rm x", "ls | rm", "./rm", "'rm' x", "r\\m x"])
      expect(verdict(bash(line, full)), line).toBe("deny")
    for (const line of [
      "$(echo rm) x",
      "ls; `rm`",
      "sudo rm x",
      "xargs rm",
      "sh -c 'rm x'",
      "find . -delete",
      "ls\nrm x"
    ])
      expect(verdict(bash(line, full)), line).toBe("ask")
    expect(verdict(bash("ls -l rm", full))).toBe("allow")
  })

  it("about paths see through dots, and stop what they cannot see", () => {
    const rules = [{ decision: "deny", path: ["secrets/**", "/etc/**"] }]
    const full = { rules, mode: "full_access" } as const
    for (const path of [
      "secrets/a",
      "./secrets/a",
      "x/../secrets/a",
      "/etc/passwd",
      `${workspace}/secrets/x/y`,
      "secrets"
    ])
      expect(verdict(read(path, full)), path).toBe("deny")
    expect(verdict(read("secret/a", full))).toBe("allow")
    expect(verdict(read("src/secrets/a", full))).toBe("allow")
    expect(verdict(bash("cat secrets/a", full))).toBe("ask")
    expect(verdict(bash("cat secrets/a", { ...full, rules: [{ ...rules[0], tool: "*_file" }] }))).toBe("allow")
  })

  it("that allow paths cover all a call touches", () => {
    const rules = [{ decision: "allow", path: "src/**/*.ts" }]
    const both = { access: { writes: ["src/a.ts", "b.ts"] } }
    expect(verdict(write("src/a.ts", { rules }))).toBe("allow")
    expect(verdict(write("src/x/y/a.ts", { rules }))).toBe("allow")
    expect(verdict(write("", { rules, ...both }))).toBe("ask")
    expect(verdict(write("src/a.ts", { rules: [{ ...rules[0], access: "read" }] }))).toBe("ask")
    expect(verdict(bash("", { rules, access: { command: "x", writes: ["src/a.ts"] } }))).toBe("ask")
  })

  it("about hosts take the whole name", () => {
    const rules = [{ decision: "allow", tool: "fetch_url", host: ["example.org", "*.example.com", "other.net:8443"] }]
    const allowed = [
      "https://example.org/x",
      "http://EXAMPLE.org./",
      "https://a.b.example.com",
      "https://other.net:8443/"
    ]
    const asked = [
      "https://example.org.evil.net/",
      "https://xexample.org/",
      "https://evil.net/?example.org",
      "https://evil.net#example.org",
      "https://example.org@evil.net/",
      "https://example.com/",
      "https://xexample.com/",
      "https://other.net/",
      "ftp://example.org/",
      "example.org",
      "not an address",
      "javascript://example.org/%0aalert(1)"
    ]
    for (const url of allowed) expect(verdict(fetchUrl(url, { rules })), url).toBe("allow")
    for (const url of asked) expect(verdict(fetchUrl(url, { rules })), url).toBe("ask")
    const stop = { rules: [{ decision: "deny", host: "evil.net" }], mode: "full_access" } as const
    expect(verdict(fetchUrl("https://EVIL.net./x", stop))).toBe("deny")
    expect(verdict(fetchUrl("no address", stop))).toBe("ask")
    expect(verdict(bash("", { ...stop, access: { command: "curl evil.net", network: true } }))).toBe("ask")
  })

  it("learn a host with the port it was asked on", () => {
    const grants = [granted(fetchUrl("https://docs.example.org/a"), "session")]
    expect(verdict(fetchUrl("https://docs.example.org/b", { grants }))).toBe("allow")
    expect(verdict(fetchUrl("https://example.org/b", { grants }))).toBe("ask")
    expect(ruleToLearn(fetchUrl("https://example.org:8443/"), "rule")).toMatchObject({ host: "example.org:8443" })
  })
})

const badRules: ReadonlyArray<readonly [string, unknown]> = [
  ["no object", "allow bash"],
  ["no object", null],
  ["no object", ["allow"]],
  ["no decision", { tool: "bash" }],
  ["an unknown decision", { decision: "permit", tool: "bash" }],
  ["an unknown field", { decision: "allow", tool: "bash", commands: ["ls"] }],
  ["a field of the wrong type", { decision: "allow", tool: 7 }],
  ["a command that is a text", { decision: "allow", command: "git status" }],
  ["a command that is a text in a list", { decision: "allow", command: ["git status"] }],
  ["an empty command", { decision: "allow", command: [] }],
  ["a command without a program", { decision: "allow", command: [""] }],
  ["a program that is every program", { decision: "allow", command: ["*", "x"] }],
  ["a program that is everything", { decision: "deny", command: ["**"] }],
  ["open arguments in the middle", { decision: "allow", command: ["a", "**", "b"] }],
  ["a line without operators", { decision: "allow", command: [["a"], ["b"]] }],
  ["a line that ends in an operator", { decision: "allow", command: [["a"], "&&"] }],
  ["a line with an unknown operator", { decision: "allow", command: [["a"], "&", ["b"]] }],
  ["a permission for everything", { decision: "allow" }],
  ["a path of somebody's home", { decision: "deny", path: "~/x" }],
  ["a path that goes up", { decision: "deny", path: "../x" }],
  ["a path with stars in a part", { decision: "deny", path: "a**b" }],
  ["no path in a list", { decision: "deny", path: [] }],
  ["an access without a path", { decision: "deny", tool: "x", access: "read" }],
  ["a host that is an address of a page", { decision: "allow", host: "https://example.org/" }],
  ["a host with a star inside", { decision: "allow", host: "ex*.org" }],
  ["a host with a wrong port", { decision: "allow", host: "example.org:99999" }],
  ["two kinds in one", { decision: "allow", host: "example.org", path: "a" }],
  ["a workspace that is relative", { decision: "allow", tool: "x", workspace: "here" }],
  ["a denial with the network", { decision: "deny", tool: "x", network: true }],
  ["a text without end", { decision: "deny", tool: "x".repeat(5000) }]
]

describe("a rule that is none", () => {
  it.each(badRules)("is found: %s", (_name, rule) => {
    const issues = ruleIssues([{ decision: "deny", tool: "x" }, rule])
    expect(issues).toHaveLength(1)
    expect(issues[0]?.index).toBe(1)
    expect(policyIssue({ rules: [rule] })).toMatch(/^rule 1 of the policy: \S/)
  })

  it("never allows: what it may have been about is asked", () => {
    for (const [name, rule] of badRules) {
      const rules = [rule, { decision: "allow", tool: "*" }]
      for (const question of [
        bash("ls", { rules, mode: "full_access" }),
        read("a", { rules }),
        write("a", { rules })
      ]) {
        expect(verdict(question), name).toBe("ask")
        expect(reason(question)).toMatch(/rule 1 of the policy cannot be read/)
      }
    }
    expect(verdict(bash("ls", { rules: [{ decision: "deny", tool: "bash" }, badRules[0]?.[1]] }))).toBe("deny")
    console.log(`bad rules: ${badRules.length}, none allows`)
  })

  it("is not confused with a good one", () => {
    const good = [gitStatus, { decision: "deny", path: ["**/.env", "/etc/**"], access: "read", reason: "keys" }]
    expect(ruleIssues(good)).toEqual([])
    expect(policyIssue(undefined)).toBeUndefined()
    expect(policyIssue({ rules: Array.from({ length: 600 }, () => gitStatus) })).toMatch(/more than 512 rules/)
  })
})

describe("evaluation", () => {
  it("gives the same answer for the same question, and costs in proportion to the number of questions", () => {
    const rules = [
      ...Array.from({ length: 50 }, (_, index) => ({ decision: "deny", command: [`program${index}`, "**"] })),
      gitStatus
    ]
    const question = bash("git status", { rules })
    const answersTo = (times: number) =>
      new Set(Array.from({ length: times }, () => JSON.stringify(evaluate(question))))
    expect(answersTo(2_000).size).toBe(1)
    expect(growth(answersTo, 2_000)).toBeLessThan(3)
  })
})
