// Goal: the built-in tools do what they say, inside the workspace and nowhere else, and leave nothing running. Method:
// real files, real processes, in a directory of the test's own.
import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type CallState, type ConversationState, emptyConversation } from "#src/machine/State.ts"
import type { ConversationId } from "#src/rune/Ids.ts"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import { builtinLimits } from "#src/tool/builtin/Limits.ts"
import type { ToolContext, ToolOutcome } from "#src/tool/Port.ts"

let place = ""
let workspace = ""
const tools = builtinTools({ environment: { PATH: process.env["PATH"] ?? "", GREETING: "hello" } })

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-tools-"))
  workspace = join(place, "workspace")
  mkdirSync(workspace)
})

afterEach(() => rmSync(place, { recursive: true, force: true }))

const stateWith = (policy?: "auto" | "read_only" | "full_access"): ConversationState => {
  const empty = emptyConversation("conv_00000000" as ConversationId)
  const config = { workspace, ...(policy === undefined ? {} : { policy: { mode: policy } }) }
  return { ...empty, session: { ...empty.session, config } } as ConversationState
}

const callOf = (name: string, input: unknown): CallState =>
  ({ call_id: "call_1", tool_name: name, arguments: input }) as unknown as CallState

const run = (
  name: string,
  input: unknown,
  options: { readonly signal?: AbortSignal; readonly said?: Array<string> } = {}
): Promise<ToolOutcome> =>
  tools.run(stateWith(), callOf(name, input), {
    call_id: "call_1",
    workspace,
    signal: options.signal ?? new AbortController().signal,
    progress: (_stream: string, chunk: string) => void options.said?.push(chunk)
  } as unknown as ToolContext)

describe("files", () => {
  it("are written, listed and read", async () => {
    expect(await run("write_file", { path: "notes/a.md", content: "héllo\n" })).toMatchObject({ status: "success" })
    expect(readFileSync(join(workspace, "notes", "a.md"), "utf8")).toBe("héllo\n")
    expect(await run("list_files", {})).toEqual({ status: "success", output: "notes/" })
    expect(await run("read_file", { path: "notes/a.md" })).toEqual({ status: "success", output: "héllo\n" })
    expect(readdirSync(join(workspace, "notes"))).toEqual(["a.md"])
  })

  it.each([
    ["read_file", { path: "../secret" }],
    ["read_file", { path: "link/secret" }],
    ["list_files", { path: "/" }],
    ["write_file", { path: "../secret", content: "x" }],
    ["write_file", { path: "link/new/deep", content: "x" }]
  ])("outside the workspace are refused: %s %j", async (name, input) => {
    writeFileSync(join(place, "secret"), "kept")
    symlinkSync(place, join(workspace, "link"))
    expect(await run(name, input)).toMatchObject({ status: "sandbox_violation", error: { code: "outside_workspace" } })
    expect(readFileSync(join(place, "secret"), "utf8")).toBe("kept")
    expect(existsSync(join(place, "new"))).toBe(false)
  })

  it.each([
    ["read_file", { path: "none" }, "file_error"],
    ["read_file", { path: "." }, "file_error"],
    ["read_file", { path: 7 }, "invalid_arguments"],
    ["write_file", { path: "a", content: 7 }, "invalid_arguments"],
    ["write_file", { path: "a\0b", content: "x" }, "invalid_arguments"],
    ["write_file", { path: "a", content: "x".repeat(builtinLimits.writeBytesMax + 1) }, "too_large"],
    ["fly", {}, "unknown_tool"]
  ])("that cannot be are an error the model is told: %s", async (name, input, code) => {
    expect(await run(name, input)).toMatchObject({ status: "error", error: { code, retryable: false } })
  })

  it("that are long are cut, and the cut is told", async () => {
    writeFileSync(join(workspace, "long"), "x".repeat(builtinLimits.readBytesMax + 5))
    expect((await run("read_file", { path: "long" })).output?.slice(-16)).toBe("x\n… 5 more bytes")
  })
})

describe("a command", () => {
  it("runs in the workspace with the environment it is given and no other", async () => {
    const said: Array<string> = []
    const outcome = await run(
      "bash",
      { command: "pwd -P; env | sort | grep -v -E '^(PWD|SHLVL|_|OLDPWD|PATH)='" },
      { said }
    )
    expect(outcome).toMatchObject({ status: "success", exit_code: 0 })
    const [directory, ...variables] = (outcome.output ?? "").trim().split("\n")
    expect(directory?.endsWith("workspace")).toBe(true)
    expect(variables).toEqual(["GREETING=hello"])
    expect(said.join("")).toBe(outcome.output)
  })

  it("that fails tells its exit code and what it said", async () => {
    expect(await run("bash", { command: "echo no >&2; exit 3" })).toMatchObject({
      status: "error",
      exit_code: 3,
      output: "no\n"
    })
  })

  it("that is cancelled ends with everything it started", async () => {
    const controller = new AbortController()
    const said: Array<string> = []
    const running = run(
      "bash",
      { command: "(trap '' TERM; sleep 871) & echo started; wait" },
      { signal: controller.signal, said }
    )
    await expect.poll(() => said.join("")).toContain("started")
    controller.abort()
    expect(await running).toMatchObject({ status: "cancelled" })
    await expect.poll(() => spawnSync("pgrep", ["-f", "sleep 871"], { encoding: "utf8" }).stdout).toBe("")
  })

  it("leaves nothing running when it is done", async () => {
    expect(await run("bash", { command: "sleep 872 & echo done" })).toMatchObject({
      status: "success",
      output: "done\n"
    })
    await expect.poll(() => spawnSync("pgrep", ["-f", "sleep 872"], { encoding: "utf8" }).stdout).toBe("")
  })

  it("that prints without end is cut in the middle", async () => {
    const outcome = await run("bash", { command: "seq 1 100000; echo end" })
    expect(outcome.output?.length).toBeLessThan(builtinLimits.outputCharsMax + 100)
    expect(outcome.output).toMatch(/^1\n2\n[\s\S]*characters left out[\s\S]*\nend\n$/)
  })

  it.each([[{ command: "" }], [{ command: 3 }], [{}], [{ command: "x".repeat(builtinLimits.commandCharsMax + 1) }]])(
    "that makes no sense is refused: %#",
    async (input) => {
      expect(await run("bash", input)).toMatchObject({ status: "error", error: { code: "invalid_arguments" } })
    }
  )
})

describe("the policy", () => {
  const authorize = async (name: string, state: ConversationState) =>
    (await tools.authorize(state, callOf(name, { path: "a", content: "b", command: "c" })))._tag

  it.each([
    ["auto", "read_file", "Allow"],
    ["auto", "list_files", "Allow"],
    ["auto", "write_file", "Ask"],
    ["auto", "bash", "Ask"],
    ["read_only", "read_file", "Allow"],
    ["read_only", "write_file", "Deny"],
    ["read_only", "bash", "Deny"],
    ["full_access", "write_file", "Allow"],
    ["full_access", "bash", "Allow"],
    ["full_access", "fly", "Reject"]
  ] as const)("%s has %s answered with %s", async (mode, name, expected) => {
    expect(await authorize(name, stateWith(mode))).toBe(expected)
  })

  it("asks by default, and not again for what was allowed for the conversation", async () => {
    const state = stateWith()
    expect(await authorize("bash", state)).toBe("Ask")
    const granted = {
      ...state,
      grants: [{ tool_name: "bash", scope: "session", expires_ms: null }]
    } as unknown as ConversationState
    expect(await authorize("bash", granted)).toBe("Allow")
    expect(await authorize("write_file", granted)).toBe("Ask")
  })

  it("says that a command runs without a sandbox", () => {
    expect(tools.sandbox(stateWith(), callOf("bash", {}))).toEqual({ level: "none", network: true })
    expect(tools.sandbox(stateWith(), callOf("write_file", {}))).toMatchObject({
      level: "path_checks",
      roots: [workspace]
    })
  })
})
