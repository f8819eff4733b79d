// Goal: `bash` does what its description says, with one typed result for every call, and sessions keep what they should
// and lose nothing they should not. Method: the real tool on real processes, in the sandbox and where nothing holds them.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { BlobPort } from "#src/contract/Blobs.ts"
import { type Bash, type BashOptions, makeBash } from "#src/tool/builtin/shell/Bash.ts"
import { shellLimits } from "#src/tool/builtin/shell/Limits.ts"
import type { Input } from "#src/tool/Tool.ts"
import type { ToolOutcome } from "#src/tool/ToolPort.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../../support/sandbox.ts"
import { previewOf, runTool, type TestContext } from "../../support/tool/runTool.ts"
import { type World, worlds } from "../../support/worlds.ts"

let ground: Ground
let bash: Bash

const open = (more: Partial<BashOptions> = {}): Bash => makeBash({ processes: ground.processes, ...more })

const enter = ({ contained, levels }: World): void => {
  beforeEach(async (context) => {
    if (contained) requirePart(context, bubblewrap)
    ground = await makeGround(levels === undefined ? {} : { levels })
    bash = open()
  })
  afterEach(async () => {
    if (bash !== undefined) await Effect.runPromise(bash.close)
    await ground?.clear()
  })
}

interface More {
  readonly conversation?: string
  readonly agent?: string
  readonly signal?: AbortSignal
  readonly network?: boolean
  readonly said?: Array<string>
  readonly workspace?: string
}

const contextOf = (more: More): TestContext =>
  ({
    conversation_id: more.conversation ?? "conv_a",
    agent_id: more.agent ?? "agent_a",
    workspace: "workspace" in more ? more.workspace : ground.workspace,
    signal: more.signal ?? new AbortController().signal,
    progress: (_stream: string, chunk: string) => void more.said?.push(chunk),
    ...(more.network === undefined ? {} : { network: more.network })
  }) as unknown as TestContext

const call = (input: Input, more: More = {}): Promise<ToolOutcome> => runTool(bash.tool, input, contextOf(more))

describe.each(worlds)("a command, $name", (world) => {
  enter(world)

  it("runs in the workspace; output, progress and exit code are told", async () => {
    const said: Array<string> = []
    const outcome = await call({ command: "pwd; echo héllo >&2; echo made >file" }, { said })
    expect(outcome).toMatchObject({ status: "success", exit_code: 0 })
    expect(outcome.output?.split("\n").sort()).toEqual(["", ground.workspace, "héllo"].sort())
    expect(said.join("")).toContain("héllo")
    expect(readFileSync(join(ground.workspace, "file"), "utf8")).toBe("made\n")
  })

  it.each([
    ["exit 3", { status: "error", exit_code: 3, error: { code: "command_failed" } }],
    // Only the first process of a sandbox tells of a signal by a code.
    [
      "kill -9 $$",
      world.contained
        ? { status: "error", exit_code: 137, error: { code: "command_failed" } }
        : { status: "error", error: { code: "command_killed" } }
    ],
    ["no-such-program", { status: "error", exit_code: 127, error: { code: "command_failed" } }],
    ["echo 'open", { status: "error", exit_code: 2, error: { code: "command_failed" } }]
  ])("that fails says how: %s", async (command, expected) => {
    expect(await call({ command })).toMatchObject(expected)
  })

  it("that takes too long is ended, with what it printed", async () => {
    expect(await call({ command: "echo begun; sleep 60", timeout_ms: 300 })).toMatchObject({
      status: "timeout",
      output: "begun\n",
      error: { code: "command_timeout" }
    })
  })

  it("that is cancelled is ended", async () => {
    const abort = new AbortController()
    const running = call({ command: "echo begun; sleep 60" }, { signal: abort.signal })
    setTimeout(() => abort.abort(), 200)
    expect(await running).toMatchObject({ status: "cancelled" })
  })

  it("whose output is too long keeps all of it in a blob", async () => {
    const kept: Array<Buffer> = []
    const blobs: BlobPort = {
      keep: async (source) => {
        for await (const piece of typeof source === "string" ? [Buffer.from(source)] : source)
          kept.push(Buffer.from(piece))
        const bytes = Buffer.concat(kept)
        return { sha256: createHash("sha256").update(bytes).digest("hex") as never, bytes: bytes.length }
      },
      read: () => Promise.reject(new Error("not asked for"))
    }
    bash = open({ blobs })
    const outcome = await call({ command: "seq 1 100000" })
    expect(outcome.output?.length).toBeLessThan(shellLimits.outputCharsMax + 1_000)
    expect(outcome.output).toContain("blob:")
    expect(Buffer.concat(kept).toString("utf8").split("\n")).toHaveLength(100_001)
    expect(outcome.output_blob?.bytes).toBe(Buffer.concat(kept).length)
    expect(readdirSync(join(ground.base, "overflow"))).toEqual([])
  })

  const meaningless: Readonly<Record<string, readonly [Input, RegExp]>> = {
    "a command that is no text": [{ command: 1 }, /Expected string at \["command"\]/],
    "a command of spaces": [{ command: "  " }, /must not be empty/],
    "a NUL character": [{ command: "a\0b" }, /NUL/],
    "a command that is too long": [{ command: "x".repeat(shellLimits.commandCharsMax + 1) }, /at most/],
    "no time at all": [{ command: "true", timeout_ms: 0 }, /whole number/],
    "half a millisecond": [{ command: "true", timeout_ms: 1.5 }, /whole number/],
    "more time than there is": [{ command: "true", timeout_ms: shellLimits.commandMsMax + 1 }, /whole number/],
    "a network that is no yes or no": [{ command: "true", network: "yes" }, /Expected boolean at \["network"\]/],
    "input for nobody": [{ input: "x" }, /need the name of a session/],
    "closing nothing": [{ close: true }, /need the name of a session/],
    "a session without a name": [{ session: "" }, /must have a name/],
    "a command and input": [{ session: "s", command: "true", input: "x" }, /one of command, input and close/],
    "input and an end": [{ session: "s", input: "x", close: true }, /one of command, input and close/]
  }

  it.each(Object.keys(meaningless))("that means nothing is refused in words: %s", async (name) => {
    const [input, fact] = meaningless[name] ?? [{}, /^$/]
    const outcome = await call(input)
    expect(outcome).toMatchObject({ status: "error", error: { code: "invalid_arguments" } })
    expect(outcome.error?.message).toMatch(fact)
  })

  it("without a workspace, and in one that is not there, gets a typed error", async () => {
    expect(await runTool(bash.tool, { command: "true" }, { ...contextOf({}), workspace: undefined })).toMatchObject({
      error: { code: "no_workspace" }
    })
    expect(await call({ command: "true" }, { workspace: "/nowhere/at/all" })).toMatchObject({
      error: { code: "sandbox_refused" }
    })
  })

  it("tells the policy what it would do, and a person the same", async () => {
    const { access } = bash.tool
    expect(access({ command: "ls", network: true })).toEqual({ command: "ls", network: true })
    expect(access({ command: "ls", session: "s" })).toEqual({ command: "ls", stateful: true })
    expect(access({ session: "s", input: "rm" })).toEqual({})
    expect(access({ session: "s", input: "rm", network: true })).toEqual({ network: true })
    for (const input of [{}, { session: "s" }, { session: "s", close: true }])
      expect(access(input)).toEqual({ control: true })
    expect(await previewOf(bash.tool, { command: "ls", network: true }, { workspace: "/w" })).toEqual({
      title: "run a command",
      detail: "ls",
      workspace: "/w",
      roots: ["/w"],
      network: true
    })
  })
})

// Where nothing holds a command nothing keeps it from the network: that is why it is asked about.
describe("a command in the sandbox", () => {
  enter({ name: "in the sandbox", contained: true })

  it("has the network only when it asked for it and was given it", async () => {
    const command = "grep -c : /proc/net/dev"
    expect(await call({ command, network: true }, { network: true })).not.toMatchObject({ output: "1\n" })
    expect(await call({ command, network: true }, { network: false })).toMatchObject({ output: "1\n" })
    expect(await call({ command }, { network: true })).toMatchObject({ output: "1\n" })
  })
})

describe.each(worlds)("a session, $name", (world) => {
  enter(world)

  it("keeps directory and variables between commands, and tells each exit code", async () => {
    expect(await call({ session: "s", command: "cd /usr; kept=5" })).toMatchObject({ status: "success", exit_code: 0 })
    const outcome = await call({ session: "s", command: "pwd; echo $kept; (exit 4)" })
    expect(outcome).toMatchObject({ status: "error", exit_code: 4, error: { code: "command_failed" } })
    expect(outcome.output).toContain("/usr\n5\n")
    expect(outcome.output).toContain("[session s: ready]")
  })

  it("passes input to the program that runs, not to the shell", async () => {
    const asked = await call({ session: "s", command: "read -r name; echo hello $name", timeout_ms: 200 })
    expect(asked.output).toContain("still running: read -r name")
    expect(await call({ session: "s", command: "true" })).toMatchObject({ error: { code: "session_busy" } })
    const answered = await call({ session: "s", input: "world\n" })
    expect(answered).toMatchObject({ status: "success", exit_code: 0 })
    expect(answered.output).toContain("hello world\n")
  })

  it("goes on with a long command, and shows what is new at each look", async () => {
    const first = await call({ session: "s", command: "echo one; sleep 0.7; echo two", timeout_ms: 250 })
    expect(first.output).toContain("one")
    expect(first.output).not.toContain("two\n")
    const second = await call({ session: "s", timeout_ms: 5_000 })
    const third = second.output?.includes("two") === true ? second : await call({ session: "s", timeout_ms: 5_000 })
    expect(third.output).toContain("two\n")
    expect(third.output).not.toContain("one\n")
  })

  it("lists what runs in it, and ends with all of that", async () => {
    const started = await call({ session: "s", command: "sleep 7654321 & echo begun" })
    expect(started.output).toMatch(/\d+ sleep 7654321/)
    expect((await call({})).output).toMatch(/\[session s: ready\]\n {2}\d+ sleep 7654321/)
    expect(await call({ session: "s", close: true })).toMatchObject({ status: "success" })
    expect(await call({})).toMatchObject({ output: "no sessions\n" })
    expect(await call({ session: "s" })).toMatchObject({ error: { code: "session_unknown" } })
    expect(isRunning("7654321")).toBe(false)
  })

  it("that ends by itself says so, and its name is free again", async () => {
    expect(await call({ session: "s", command: "exit 3" })).toMatchObject({ status: "error", exit_code: 3 })
    expect(await call({ session: "s", command: "echo again" })).toMatchObject({ status: "success" })
  })

  it("gets no control of what drives it", async () => {
    const outcome = await call({ session: "s", command: "ls /proc/self/fd; (echo 9 >&4) 2>/dev/null; echo over" })
    expect(outcome).toMatchObject({ status: "success", exit_code: 0 })
    const descriptors = outcome.output?.split("\n").filter((line) => /^\d+$/.test(line))
    // Outside a sandbox there may be others, which this process was started with.
    expect(world.contained ? descriptors : descriptors?.filter((one) => Number(one) < 10)).toEqual(["0", "1", "2", "3"])
    expect(outcome.output).toContain("over\n")
  })

  it("whose command is cancelled is gone", async () => {
    const abort = new AbortController()
    const running = call({ session: "s", command: "sleep 7654322" }, { signal: abort.signal })
    setTimeout(() => abort.abort(), 200)
    expect(await running).toMatchObject({ status: "cancelled" })
    expect(await call({})).toMatchObject({ output: "no sessions\n" })
    expect(isRunning("7654322")).toBe(false)
  })

  it("belongs to one agent of one conversation", async () => {
    await call({ session: "s", command: "true" })
    expect(await call({ session: "s" }, { agent: "agent_b" })).toMatchObject({ error: { code: "session_unknown" } })
    expect(await call({ session: "s" }, { conversation: "conv_b" })).toMatchObject({
      error: { code: "session_unknown" }
    })
  })

  it("does not gain the network later", async () => {
    await call({ session: "s", command: "true" })
    expect(await call({ session: "s", command: "true", network: true }, { network: true })).toMatchObject({
      error: { code: "session_network" }
    })
  })

  it("that has the network is used only by calls that say so", async () => {
    const granted = { network: true }
    await call({ session: "s", command: "true", network: true }, granted)
    const silent = { error: { code: "session_network", message: expect.stringContaining("session s has the network") } }
    expect(await call({ session: "s", command: "true" })).toMatchObject(silent)
    expect(await call({ session: "s", command: "true", network: true })).toMatchObject(silent)
    expect(await call({ session: "s", input: "x\n" })).toMatchObject(silent)
    expect(await call({ session: "s", command: "true", network: true }, granted)).toMatchObject({ status: "success" })
    await call({ session: "s", command: "read line; echo got $line", network: true, timeout_ms: 1 }, granted)
    const answered = await call({ session: "s", input: "x\n", network: true }, granted)
    expect(answered.output).toContain("got x")
  })

  it("is one of a bounded number", async () => {
    for (let index = 0; index < shellLimits.sessionsPerConversationMax; index++)
      expect(await call({ session: `s${index}`, command: "true" })).toMatchObject({ status: "success" })
    expect(await call({ session: "more", command: "true" })).toMatchObject({ error: { code: "sessions_full" } })
    expect(await call({ session: "s", command: "true" }, { conversation: "conv_b" })).toMatchObject({
      status: "success"
    })
    await Effect.runPromise(bash.closeConversation("conv_a"))
    expect(await call({})).toMatchObject({ output: "no sessions\n" })
    expect((await call({}, { conversation: "conv_b" })).output).toContain("session s")
  })

  it("that nobody uses is ended", async () => {
    bash = open({ sessionIdleMs: 150 })
    await call({ session: "s", command: "sleep 7654323 &" })
    await expect.poll(() => isRunning("7654323"), { timeout: 10_000 }).toBe(false)
    expect(await call({ session: "s" })).toMatchObject({ error: { code: "session_unknown" } })
  })

  it("that prints without end takes no more than its share of memory", async () => {
    const outcome = await call({ session: "s", command: "yes", timeout_ms: 500 })
    expect(outcome.output?.length).toBeLessThan(shellLimits.outputCharsMax + 1_000)
    const left = Number(/ (\d+) bytes left out/.exec(outcome.output ?? "")?.[1])
    // Read at a pace: without one it would be hundreds of MiB.
    expect(left).toBeLessThan(64 * shellLimits.paceBytesMax)
    expect(left).toBeGreaterThan(0)
    expect(await call({ session: "s", close: true })).toMatchObject({ status: "success" })
  })

  it("ends with the server", async () => {
    await call({ session: "s", command: "sleep 7654324 &" })
    await ground.processes.close()
    expect(isRunning("7654324")).toBe(false)
  })
})

const isRunning = (mark: string): boolean =>
  readdirSync("/proc").some((name) => {
    if (!/^[0-9]+$/.test(name) || !existsSync(`/proc/${name}/cmdline`)) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, "latin1").startsWith(`sleep\0${mark}`)
    } catch {
      return false
    }
  })
