// Goal: a file of hooks means what it says or is refused with the reason; defaults are those of the design. Method:
// texts in both forms, sound and broken.
import { describe, expect, it } from "vitest"
import type { HookOrigin, HookSet } from "#src/hook/Definition.ts"
import { hookLimits } from "#src/hook/HookLimits.ts"
import { parseHooks } from "#src/hook/Parse.ts"

const parse = (value: unknown, origin: HookOrigin = "data", isSettings = false) =>
  parseHooks({ text: typeof value === "string" ? value : JSON.stringify(value), origin, isSettings })

const sound = (value: unknown, origin: HookOrigin = "data"): HookSet => {
  const parsed = parse(value, origin)
  if (parsed._tag === "Invalid") throw new Error(parsed.reason)
  return parsed.set
}

const reason = (value: unknown): string => {
  const parsed = parse(value)
  return parsed._tag === "Invalid" ? parsed.reason : "it is valid"
}

const autoCommit = {
  hooks: [
    {
      name: "auto_commit",
      command: ["git", "commit", "-am", "Auto-commit"],
      timeout_ms: 120_000,
      failure_policy: { type: "fail_session" },
      tool_filter: { type: "any_mutating" }
    }
  ]
}

describe("a list of hooks", () => {
  it("is read as the design writes it", () => {
    expect(sound(autoCommit).batch).toEqual([
      {
        name: "auto_commit",
        argv: ["git", "commit", "-am", "Auto-commit"],
        timeoutMs: 120_000,
        failurePolicy: { type: "fail_session" },
        filter: { type: "any_mutating" },
        effectClass: "effect",
        reach: { network: false, environment: [] }
      }
    ])
  })

  it("has the defaults of the design: fail_session, 120000 ms, any_mutating", () => {
    const [hook] = sound({ hooks: [{ name: "lint", command: ["lint"] }] }).batch
    expect(hook).toMatchObject({
      failurePolicy: { type: "fail_session" },
      timeoutMs: 120_000,
      filter: { type: "any_mutating" }
    })
  })

  it("keeps filters by name and retries with their delay", () => {
    const [hook] = sound({
      hooks: [
        {
          name: "test",
          command: ["make", "test"],
          failure_policy: { type: "retry", max_attempts: 3, delay_ms: 20 },
          tool_filter: { type: "tool_names", tool_names: ["edit_file", "write_file"] }
        }
      ]
    }).batch
    expect(hook?.failurePolicy).toEqual({ type: "retry", max_attempts: 3, delay_ms: 20 })
    expect(hook?.filter).toEqual({ type: "tool_names", names: new Set(["edit_file", "write_file"]) })
  })

  it("gives network and variables to hooks of the data directory alone, and names the others by their origin", () => {
    const file = { hooks: [{ name: "push", command: ["git", "push"], network: true, env: ["TOKEN"] }] }
    expect(sound(file).batch[0]).toMatchObject({ name: "push", reach: { network: true, environment: ["TOKEN"] } })
    expect(sound(file, "workspace").batch[0]).toMatchObject({
      name: "workspace:push",
      reach: { network: false, environment: [] }
    })
  })

  const broken: ReadonlyArray<readonly [string, unknown, RegExp]> = [
    ["no JSON", "{", /it is not JSON/],
    ["no object", [], /no JSON object/],
    ["nothing about hooks", { hook: [] }, /object/],
    ["no name", { hooks: [{ command: ["x"] }] }, /name/],
    ["an empty command", { hooks: [{ name: "x", command: [] }] }, /command/],
    ["a command line", { hooks: [{ name: "x", command: "make test" }] }, /command/],
    ["a word with NUL", { hooks: [{ name: "x", command: ["a\0b"] }] }, /command/],
    ["a name twice", { hooks: [autoCommit.hooks[0], autoCommit.hooks[0]] }, /two hooks are called "auto_commit"/],
    ["an unknown policy", { hooks: [{ name: "x", command: ["x"], failure_policy: { type: "shrug" } }] }, /shrug|type/],
    [
      "a retry without a number",
      { hooks: [{ name: "x", command: ["x"], failure_policy: { type: "retry" } }] },
      /max_attempts/
    ],
    ["an unknown filter", { hooks: [{ name: "x", command: ["x"], tool_filter: { type: "all" } }] }, /tool_filter|type/],
    ["a word nobody knows", { hooks: [{ name: "x", command: ["x"], timeuot_ms: 5 }] }, /timeuot_ms/],
    ["a time that is none", { hooks: [{ name: "x", command: ["x"], timeout_ms: 0 }] }, /timeout_ms/],
    ["too many", { hooks: Array.from({ length: 65 }, (_, at) => ({ name: `h${at}`, command: ["x"] })) }, /more than 64/]
  ]
  it.each(broken)("with %s is refused, and says why", (_name, value, message) => {
    expect(reason(value)).toMatch(message)
  })
})

describe("settings of Claude Code", () => {
  const settings = {
    permissions: { allow: ["Bash(ls)"] },
    hooks: {
      PreToolUse: [{ matcher: "Edit|Write", hooks: [{ type: "command", command: "./check.sh", timeout: 5 }] }],
      PostToolUse: [
        {
          matcher: "*",
          hooks: [
            { type: "command", command: "a" },
            { type: "command", command: "b" }
          ]
        }
      ],
      Stop: [{ hooks: [{ type: "command", command: "c", statusMessage: "…" }] }],
      SomethingNew: [{ whatever: true }]
    }
  }

  it("become hooks of events, with seconds as milliseconds and matchers of whole names", () => {
    const { batch, events } = sound(settings)
    expect(batch).toEqual([])
    expect(events.map(({ command, event, name, timeoutMs }) => [name, event, command, timeoutMs])).toEqual([
      ["PreToolUse[0.0]", "PreToolUse", "./check.sh", 5_000],
      ["PostToolUse[0.0]", "PostToolUse", "a", hookLimits.eventTimeoutMs],
      ["PostToolUse[0.1]", "PostToolUse", "b", hookLimits.eventTimeoutMs],
      ["Stop[0.0]", "Stop", "c", hookLimits.eventTimeoutMs]
    ])
    expect(["Edit", "Write", "MultiEdit"].map((name) => events[0]!.matcher!.test(name))).toEqual([true, true, false])
    expect(events[1]!.matcher).toBeUndefined()
  })

  it("without hooks are sound where they belong to somebody else", () => {
    expect(parse({ permissions: {} }, "workspace", true)).toMatchObject({ _tag: "Hooks" })
  })

  it("with a kind of hook or a matcher that cannot be used are refused", () => {
    expect(reason({ hooks: { PreToolUse: [{ hooks: [{ type: "prompt", prompt: "ok?" }] }] } })).toMatch(
      /PreToolUse\[0\]/
    )
    expect(reason({ hooks: { PreToolUse: [{ matcher: "(", hooks: [] }] } })).toMatch(/PreToolUse\[0\].*regular/i)
    expect(reason({ hooks: { Stop: [{ hooks: [{ type: "command", command: "" }] }] } })).toMatch(/Stop\[0\]/)
    expect(reason({ hooks: "yes" })).not.toBe("it is valid")
  })
})
