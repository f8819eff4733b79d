// Goal: a new policy on old calls says what it would have decided otherwise, and nothing more. Method: conversations made
// by the machine itself, told rune by rune; a long one against the clock.
import { describe, expect, it } from "vitest"
import { knownTools } from "#src/main/KnownTools.ts"
import { changeOf, type Happened, PolicyReplay } from "#src/policy/PolicyReplay.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { growth } from "../support/cost.ts"

const tools = knownTools()
const workspace = "/srv/project"
let eventId = 0

const rune = (kind: string, payload: object, more: object = {}): AnyRune =>
  ({
    event_id: ++eventId,
    rune_id: `rune_${eventId}`,
    conversation_id: "conv_00000000000000000001",
    kind,
    schema_version: kind === "tool.result" ? 2 : 1,
    ts_ms: eventId,
    visibility: "public",
    payload,
    ...more
  }) as unknown as AnyRune

const created = (): AnyRune => rune("session.created", { config: { workspace, policy: { mode: "auto" } } })

const call = (id: string, tool: string, args: object, mutating: boolean): AnyRune =>
  rune("tool.call", {
    call_id: id,
    tool_name: tool,
    arguments: args,
    arguments_hash: "0".repeat(64),
    effect_class: mutating ? "effect" : "pure",
    mutating,
    provenance: "builtin"
  })

const history = (): ReadonlyArray<AnyRune> => [
  created(),
  call("call_1", "read_file", { path: "secrets/key" }, false),
  rune("tool.started", { call_id: "call_1", attempt: 1, sandbox: { level: "path_checks" } }),
  rune("tool.result", { call_id: "call_1", status: "success", duration_ms: 1 }),
  call("call_2", "bash", { command: "rm -rf build" }, true),
  rune("tool.approval_requested", { call_id: "call_2", policy_reason: "auto", shown_as: { title: "x" } }),
  rune("tool.approved", { call_id: "call_2", approver: "ada", channel: "cli", scope: "once" }),
  rune("tool.started", { call_id: "call_2", attempt: 1, sandbox: { level: "bubblewrap" } }),
  rune("tool.result", { call_id: "call_2", status: "success", duration_ms: 1 }),
  call("call_3", "bash", { command: "git status" }, true),
  rune("tool.approval_requested", { call_id: "call_3", policy_reason: "auto", shown_as: { title: "x" } }),
  rune("tool.result", { call_id: "call_3", status: "timeout", duration_ms: 0 }),
  call("call_4", "bash", { command: "git push" }, true),
  rune("tool.denied", { call_id: "call_4", approver: "policy", reason: "rule 1", channel: "policy" }),
  rune("tool.result", { call_id: "call_4", status: "denied", duration_ms: 0 }),
  call("call_5", "no_such_tool", {}, true),
  rune("tool.result", { call_id: "call_5", status: "error", duration_ms: 0 })
]

const replay = (rules: ReadonlyArray<unknown>, mode?: "auto" | "full_access" | "read_only") => {
  const policy = { rules, learnt: [], ...(mode === undefined ? {} : { mode }) }
  const one = new PolicyReplay("conv_00000000000000000001", policy, tools)
  for (const next of history()) one.add(next)
  return one.finish()
}

describe("a policy on the past", () => {
  it("sets every decision beside what happened", () => {
    const rules = [
      { decision: "deny", tool: "read_file", path: "secrets/**" },
      { decision: "deny", tool: "bash", command: ["rm", "**"] },
      { decision: "allow", tool: "bash", command: ["git", "status"] }
    ]
    expect(replay(rules)).toMatchObject([
      { call_id: "call_1", happened: "ran", would: "deny", change: "blocked", reason: "rule 1 denies read_file" },
      { call_id: "call_2", happened: "approved", would: "deny", change: "blocked" },
      { call_id: "call_3", happened: "expired", would: "allow", change: "let_run" },
      { call_id: "call_4", happened: "denied_by_policy", would: "ask", change: "asked" }
    ])
  })

  it("takes the mode of the file before that of the conversation", () => {
    const changes = (mode?: "auto" | "full_access" | "read_only") => replay([], mode).map(({ change }) => change)
    expect(changes()).toEqual(["same", "same", "same", "asked"])
    expect(changes("full_access")).toEqual(["same", "let_run", "let_run", "let_run"])
    expect(changes("read_only")).toEqual(["same", "blocked", "same", "same"])
  })

  it("knows every pair of what was and what would be", () => {
    const all: ReadonlyArray<Happened> = [
      "ran",
      "approved",
      "denied",
      "denied_by_policy",
      "expired",
      "waiting",
      "not_run"
    ]
    const table = all.map((happened) => [
      happened,
      ...(["allow", "ask", "deny"] as const).map((would) => changeOf(happened, would))
    ])
    expect(table).toEqual([
      ["ran", "same", "asked", "blocked"],
      ["approved", "let_run", "same", "blocked"],
      ["denied", "let_run", "same", "same"],
      ["denied_by_policy", "let_run", "asked", "same"],
      ["expired", "let_run", "same", "same"],
      ["waiting", "let_run", "same", "same"],
      ["not_run", "let_run", "same", "same"]
    ])
  })

  it("costs in proportion to the length of a history", () => {
    const policy = { rules: [{ decision: "deny", tool: "bash", command: ["rm", "**"] }], learnt: [] }
    const runes = Array.from({ length: 20_000 }, (_, index) => {
      const id = `call_${Math.floor(index / 3) + 1}`
      if (index % 3 === 0) return call(id, "bash", { command: `ls -l file${index}` }, true)
      if (index % 3 === 1) return rune("tool.started", { call_id: id, attempt: 1, sandbox: { level: "bubblewrap" } })
      return rune("tool.result", { call_id: id, status: "success", duration_ms: 1 })
    })
    const replay = (length: number) => {
      const one = new PolicyReplay("conv_00000000000000000001", policy, tools)
      for (const next of runes.slice(0, length)) one.add(next)
      return one.finish()
    }
    expect(replay(runes.length)).toHaveLength(6_667)
    expect(growth(replay, runes.length / 2)).toBeLessThan(3)
  })
})
