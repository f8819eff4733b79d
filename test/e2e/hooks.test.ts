// Goal: hooks do what the design of the session machine says, in the order in which it says it, and hooks written for
// Claude Code do what they do there. Method: a running server with its real tools and its real sandbox, scripted models,
// files of hooks in the data directory and in the workspace, commands that are real programs.
// Verifies: INV-HOOKS-NEVER-OVERLAP, INV-TURN-ORDER
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { trustFile } from "#src/config/HookFiles.ts"
import { gitWorkspace } from "../support/autonomy/workplace.ts"
import { type ExtendedOptions, type ExtendedServer, follow, put, useExtendedServers } from "../support/extended.ts"
import { requirePart } from "../support/require.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { bubblewrap } from "../support/sandbox.ts"
import type { Json, Socket } from "../support/server/Socket.ts"
import { isContainedHere } from "../support/worlds.ts"

const servers = useExtendedServers()
const payload = (rune: Json): Json => rune["payload"] as Json
const write = use("write_file", { path: "note.txt", content: "hello\n" })
const edit = scenarios({ edit: [step(1, write), step(2, say("done"))] })

interface Setting extends ExtendedOptions {
  readonly hooks?: unknown
  readonly files?: Readonly<Record<string, string | object>>
  readonly mode?: string
  readonly trust?: ReadonlyArray<string>
}

interface Talk {
  readonly server: ExtendedServer
  readonly socket: Socket
  readonly id: string
  readonly workspace: string
  readonly data: string
}

const begin = async (setting: Setting): Promise<Talk> => {
  const { files = {}, hooks, mode = "full_access", trust = [], ...options } = setting
  const data = servers.directory()
  const workspace = servers.directory()
  if (hooks !== undefined) put(join(data, "hooks.json"), hooks as object)
  for (const [path, content] of Object.entries(files)) put(join(workspace, path), content, 0o755)
  for (const path of trust) trustFile(data, join(workspace, path), 0)
  const server = await servers.open({ scenarios: edit, ...options, dataDirectory: data }, workspace)
  const socket = await server.connect()
  const id = await follow(server, socket, { model: "scripted/edit", policy: { mode } })
  return { server, socket, id, workspace, data }
}

const post = ({ id, socket }: Talk, content = "go"): Promise<Json> =>
  socket.ok("message.post", { conversation_id: id, content })

const kinds = ({ socket }: Talk): ReadonlyArray<string> => socket.runes().map(({ kind }) => String(kind))

const hook = (name: string, script: string, more: object = {}) => ({ name, command: ["sh", "-c", script], ...more })

describe("post-tool hooks", { timeout: 30_000 }, () => {
  /** "Example Event Sequence (Single Tool)" of the design, line by line, and the rune that stands for it in the log. */
  const example: ReadonlyArray<readonly [string, string]> = [
    ["state_changed(Ready -> CallingLlm, streamId=turn_1)", "turn.started"],
    ["stream_event(text_delta)", "turn.assistant_delta"],
    // Fragments of a call are not on record by themselves: the answer has the whole call.
    ["stream_event(tool_call_delta)", "turn.assistant_final"],
    ["stream_event(completed)", "turn.assistant_final"],
    ["state_changed(CallingLlm -> ProcessingResponse)", "turn.assistant_final"],
    ["state_changed(ProcessingResponse -> ExecutingTools)", "turn.tool_calls_received"],
    ["tool_lifecycle(started)", "tool.started"],
    ["tool_lifecycle(completed)", "tool.result"],
    ["state_changed(ExecutingTools -> PostToolsHook)", "turn.tools_finished"],
    ["hook_lifecycle(started)", "hook.started"],
    ["hook_lifecycle(completed)", "hook.completed"],
    ["state_changed(PostToolsHook -> CallingLlm)", "turn.hooks_finished"],
    ["stream_event(text_delta)", "turn.assistant_delta"],
    ["stream_event(completed)", "turn.assistant_final"],
    ["state_changed(CallingLlm -> Ready)", "turn.completed"]
  ]

  const lineOf = ({ from, status, streamId, to, type }: Json): string => {
    if (type !== "state_changed") return `${String(type)}(${status === "Running" ? "started" : "completed"})`
    return from === "Ready"
      ? `state_changed(${from} -> ${to}, streamId=${streamId})`
      : `state_changed(${from} -> ${to})`
  }

  const withoutRepeats = (items: ReadonlyArray<string>): ReadonlyArray<string> =>
    items.filter((item, at) => item !== items[at - 1])

  it("come in the order of the design's example, in the view state_events and in the log", async () => {
    const talk = await begin({
      hooks: { hooks: [hook("check", "cat note.txt")] },
      scenarios: scenarios({ edit: [step(1, say("let me see"), write), step(2, say("done"))] })
    })
    const { id, socket } = talk
    const { sub } = await socket.ok("subscribe", { conversation_id: id, view: "state_events" })
    await post(talk)
    await socket.rune("turn.completed")
    const events = (): ReadonlyArray<Json> =>
      socket.pushed.flatMap((frame) => ("event" in frame && frame["sub"] === sub ? [frame["event"] as Json] : []))
    await socket.until(() => events().some(({ from, to }) => from === "CallingLlm" && to === "Ready"))
    // Runs that are queued are more than the example shows, and so is the state of the conversation.
    const isShown = ({ status, type }: Json): boolean => status !== "Queued" && type !== "session_changed"
    const lines = events().filter(isShown).map(lineOf)
    const expected = example.map(([line]) => line).filter((line) => !line.startsWith("stream_event"))
    expect(lines.slice(lines.indexOf(expected[0]!))).toEqual(expected)
    const ids = events().map(({ eventId }) => String(eventId))
    expect(new Set(ids).size).toBe(ids.length)
    for (const event of events()) expect(event).toMatchObject({ sessionId: id, timestampMs: expect.any(Number) })
    const standsFor = new Set(example.map(([, kind]) => kind))
    const log = kinds(talk).filter((kind) => standsFor.has(kind))
    expect(withoutRepeats(log)).toEqual(withoutRepeats(example.map(([, kind]) => kind)))
  })

  it("run in the workspace, see allowed variables alone, and what they print is on record", async () => {
    const script =
      'pwd; echo "names=$ECHS_TOOL_NAMES hook=$ECHS_HOOK_NAME try=$ECHS_HOOK_ATTEMPT"; echo "a=$ALLOWED s=$SECRET"'
    const talk = await begin({
      hooks: { hooks: [hook("look", script, { env: ["ALLOWED"] })] },
      variables: { ALLOWED: "yes", SECRET: "do-not-tell" }
    })
    await post(talk)
    const done = payload(await talk.socket.rune("hook.completed"))
    expect(done).toMatchObject({ status: "succeeded", exit_code: 0 })
    expect(done["output"]).toBe(`${talk.workspace}\nnames=write_file hook=look try=1\na=yes s=\n`)
    expect(payload(await talk.socket.rune("hook.started"))).toMatchObject({ hook_name: "look", attempt: 1 })
  })

  it("are told of the runs of the batch on their standard input", async () => {
    const talk = await begin({ hooks: { hooks: [hook("tell", "cat > told.json")] } })
    await post(talk)
    await talk.socket.rune("hook.completed")
    expect(JSON.parse(readFileSync(join(talk.workspace, "told.json"), "utf8"))).toMatchObject({
      hook_name: "tell",
      conversation_id: talk.id,
      tool_runs: [{ tool_name: "write_file", mutating: true, status: "success", arguments: { path: "note.txt" } }]
    })
  })

  it("run one after the other in the order of the file, those alone whose filter lets the batch in", async () => {
    const names = (tool_names: ReadonlyArray<string>) => ({ tool_filter: { type: "tool_names", tool_names } })
    const talk = await begin({
      hooks: {
        hooks: [
          hook("second", "echo 2 >> order", names(["write_file"])),
          hook("never", "echo x >> order", names(["bash"])),
          hook("first", "echo 1 >> order")
        ]
      }
    })
    await post(talk)
    await talk.socket.rune("turn.completed")
    expect(readFileSync(join(talk.workspace, "order"), "utf8")).toBe("2\n1\n")
    const order = kinds(talk).filter((kind) => kind.startsWith("hook."))
    expect(order).toEqual(["hook.started", "hook.completed", "hook.started", "hook.completed"])
  })

  it("commit what agents changed with the very file that the design shows, as whom the repository names", async () => {
    const autoCommit = {
      name: "auto_commit",
      command: ["git", "commit", "-am", "Auto-commit"],
      timeout_ms: 120_000,
      failure_policy: { type: "fail_session" },
      tool_filter: { type: "any_mutating" }
    }
    const talk = await begin({ hooks: { hooks: [autoCommit] }, files: { "note.txt": "before\n" } })
    gitWorkspace(talk.workspace, {})
    const git = (...args: ReadonlyArray<string>) =>
      spawnSync("git", args, { cwd: talk.workspace, encoding: "utf8" }).stdout
    git("config", "user.name", "ada")
    git("config", "user.email", "ada@localhost")
    await post(talk)
    expect(payload(await talk.socket.rune("hook.completed"))).toMatchObject({ status: "succeeded", exit_code: 0 })
    await talk.socket.rune("turn.completed")
    expect(git("log", "-1", "--format=%an %s")).toBe("ada Auto-commit\n")
    expect(git("show", "HEAD:note.txt")).toBe("hello\n")
  })

  it("reach nothing outside their workspace, as commands of agents do not", async (context) => {
    requirePart(context, bubblewrap)
    const outside = servers.directory()
    put(join(outside, "secret.txt"), "a secret\n")
    const script = `cat ${outside}/secret.txt; echo x > ${outside}/new.txt; cat /etc/shadow; true`
    const talk = await begin({ hooks: { hooks: [hook("curious", `${script}; echo x > inside.txt`)] } })
    await post(talk)
    const done = payload(await talk.socket.rune("hook.completed"))
    expect(done).toMatchObject({ status: "succeeded" })
    expect(String(done["output"])).not.toContain("a secret")
    expect(String(done["output"])).not.toMatch(/^root:/m)
    expect(existsSync(join(outside, "new.txt"))).toBe(false)
    expect(readFileSync(join(talk.workspace, "inside.txt"), "utf8")).toBe("x\n")
  })

  it("do not run after a batch that changed nothing", async () => {
    const talk = await begin({
      hooks: {
        hooks: [
          hook("any", "touch ran"),
          hook("named", "touch ran", { tool_filter: { type: "tool_names", tool_names: ["list_files"] } })
        ]
      },
      scenarios: scenarios({ edit: [step(1, use("list_files", {})), step(2, say("done"))] })
    })
    await post(talk)
    await talk.socket.rune("turn.completed")
    expect(kinds(talk)).not.toContain("hook.started")
    expect(existsSync(join(talk.workspace, "ran"))).toBe(false)
  })

  it("that fail end the turn unless told otherwise, with the error before the state", async () => {
    const talk = await begin({ hooks: { hooks: [hook("lint", "echo wrong >&2; exit 3")] } })
    const { id, socket } = talk
    const { sub } = await socket.ok("subscribe", { conversation_id: id, view: "state_events" })
    await post(talk)
    expect(payload(await socket.rune("turn.error"))).toMatchObject({
      error_type: "hook_execution_failed",
      source: "hook"
    })
    expect(payload(await socket.rune("hook.completed"))).toMatchObject({
      status: "failed",
      exit_code: 3,
      output: "wrong\n"
    })
    const events = (): ReadonlyArray<Json> =>
      socket.pushed.flatMap((frame) => ("event" in frame && frame["sub"] === sub ? [frame["event"] as Json] : []))
    await socket.until(() => events().some(({ to }) => to === "Error"))
    const types = events().map(({ to, type }) => (type === "state_changed" ? String(to) : String(type)))
    const at = types.indexOf("Error")
    expect(types.slice(at - 3, at + 1)).toEqual(["hook_lifecycle", "hook_lifecycle", "session_error", "Error"])
  })

  it("that fail under warn_continue are passed over", async () => {
    const talk = await begin({
      hooks: { hooks: [hook("lint", "exit 1", { failure_policy: { type: "warn_continue" } })] }
    })
    await post(talk)
    await talk.socket.rune("turn.completed")
    expect(payload(await talk.socket.rune("hook.completed"))).toMatchObject({ status: "failed", exit_code: 1 })
  })

  it("that fail under retry run again after their delay, and hook.retry does not wait for it", async () => {
    const once = "test -e seen && exit 0; touch seen; exit 1"
    const quick = await begin({
      hooks: { hooks: [hook("flaky", once, { failure_policy: { type: "retry", max_attempts: 2, delay_ms: 10 } })] }
    })
    await post(quick)
    await quick.socket.rune("turn.completed")
    expect(payload(await quick.socket.rune("hook.started", 2))).toMatchObject({ attempt: 2 })

    const slow = await begin({
      hooks: { hooks: [hook("flaky", once, { failure_policy: { type: "retry", max_attempts: 2, delay_ms: 600_000 } })] }
    })
    await post(slow)
    await slow.socket.rune("turn.retry_scheduled")
    const { hook_run_id } = payload(await slow.socket.rune("hook.started"))
    await slow.socket.ok("hook.retry", { conversation_id: slow.id, hook_run_id })
    await slow.socket.rune("turn.completed")
    expect(payload(await slow.socket.rune("hook.completed", 2))).toMatchObject({ status: "succeeded" })
    expect((await slow.socket.error("hook.retry", { conversation_id: slow.id, hook_run_id })).code).toBe("not_found")
  })

  it("of several agents and of several conversations in one workspace never run side by side", async () => {
    // Whoever finds another one at work has failed, and its turn with it.
    const alone = hook("alone", "mkdir busy || exit 9; sleep 0.05; echo one >> ran; rmdir busy")
    const talk = await begin({ hooks: { hooks: [alone] } })
    const { server, socket, workspace } = talk
    const fields = { model: "scripted/edit", policy: { mode: "full_access" } }
    const other = await follow(server, socket, fields)
    const agents: Array<readonly [string, string]> = []
    for (const id of [talk.id, other]) {
      for (const name of ["b", "c", "d"]) {
        const { agent_id } = await socket.ok("agent.spawn", { conversation_id: id, role: "worker", name })
        agents.push([id, String(agent_id)])
      }
    }
    for (const id of [talk.id, other]) await socket.ok("message.post", { conversation_id: id, content: "go" })
    for (const [conversation_id, agent_id] of agents)
      await socket.ok("agent.message", { conversation_id, agent_id, content: "go" })
    const ends = () => socket.runes().filter(({ kind }) => kind === "turn.completed" || kind === "turn.error")
    await socket.until(() => ends().length === 8)
    expect(ends().map(({ kind }) => kind)).toEqual(Array.from({ length: 8 }, () => "turn.completed"))
    expect(readFileSync(join(workspace, "ran"), "utf8")).toBe("one\n".repeat(8))
  })

  it("that outlive their time are ended with all they started", async () => {
    const talk = await begin({
      hooks: {
        hooks: [hook("hang", "sleep 600 & sleep 600", { timeout_ms: 300, failure_policy: { type: "warn_continue" } })]
      }
    })
    await post(talk)
    const done = payload(await talk.socket.rune("hook.completed"))
    expect(done).toMatchObject({ status: "failed", error: { code: "hook_execution_failed" } })
    expect(String((done["error"] as Json)["message"])).toMatch(/did not end within 300 ms/)
    await talk.socket.rune("turn.completed")
  })

  it("whose program is not there fail with the reason", async () => {
    const talk = await begin({
      hooks: { hooks: [{ name: "x", command: ["/no/such/program"], failure_policy: { type: "warn_continue" } }] }
    })
    await post(talk)
    expect(payload(await talk.socket.rune("hook.completed"))).toMatchObject({ status: "failed" })
    await talk.socket.rune("turn.completed")
  })

  it("of a file that is invalid are off, told once per conversation, and back when the file is mended", async () => {
    const talk = await begin({ hooks: '{"hooks": [{"name": "x"}]}' })
    await post(talk)
    await talk.socket.rune("turn.completed")
    const told = payload(await talk.socket.rune("system.error"))
    expect(told).toMatchObject({ code: "hook_config_invalid", source: "hook", retryable: false })
    expect(String(told["message"])).toContain("command")
    expect(kinds(talk)).not.toContain("hook.started")
    await post(talk)
    await talk.socket.rune("turn.completed", 2)
    expect(kinds(talk).filter((kind) => kind === "system.error")).toHaveLength(1)
    put(join(talk.data, "hooks.json"), { hooks: [hook("mended", "true")] })
    await post(talk)
    await talk.socket.rune("turn.completed", 3)
    expect(payload(await talk.socket.rune("hook.started"))).toMatchObject({ hook_name: "mended" })
  })

  it("that are interrupted are canceled, and the turn with them", async () => {
    const talk = await begin({ hooks: { hooks: [hook("long", "sleep 600")] } })
    await post(talk)
    await talk.socket.rune("hook.started")
    await talk.socket.ok("turn.interrupt", { conversation_id: talk.id })
    expect(payload(await talk.socket.rune("hook.completed"))).toMatchObject({ status: "canceled" })
    await talk.socket.rune("turn.interrupted")
  })
})

describe("hooks of a workspace", { timeout: 30_000 }, () => {
  const files = { ".echs/hooks.json": { hooks: [hook("own", "echo ran > ran", { network: true })] } }
  const asked = async (talk: Talk): Promise<void> => {
    await talk.socket.rune("tool.approval_requested")
    const { items } = (await talk.socket.ok("approval.list", { conversation_id: talk.id })) as {
      items: ReadonlyArray<Json>
    }
    const { arguments_hash, call_id } = items[0]!
    await talk.socket.ok("approval.approve", { conversation_id: talk.id, call_id, scope: "once", arguments_hash })
  }

  it("do not run where nobody answers for them, and the conversation is told", async () => {
    const talk = await begin({ files, mode: "auto" })
    await post(talk)
    await asked(talk)
    await talk.socket.rune("turn.completed")
    expect(payload(await talk.socket.rune("system.error"))).toMatchObject({ code: "hook_config_untrusted" })
    expect(existsSync(join(talk.workspace, "ran"))).toBe(false)
  })

  it("run where a person trusted exactly this content, and no longer when it changes", async () => {
    const talk = await begin({ files, mode: "auto", trust: [".echs/hooks.json"] })
    await post(talk)
    await asked(talk)
    await talk.socket.rune("turn.completed")
    expect(payload(await talk.socket.rune("hook.started"))).toMatchObject({ hook_name: "workspace:own" })
    put(join(talk.workspace, ".echs/hooks.json"), { hooks: [hook("own", "echo other > ran")] })
    await post(talk)
    await talk.socket.rune("tool.approval_requested", 2)
    await asked(talk)
    await talk.socket.rune("turn.completed", 2)
    expect(readFileSync(join(talk.workspace, "ran"), "utf8")).toBe("ran\n")
    expect(payload(await talk.socket.rune("system.error"))).toMatchObject({ code: "hook_config_untrusted" })
  })

  it("run where the conversation may do everything anyway, and something holds what it does", async () => {
    const talk = await begin({ files })
    await post(talk)
    await talk.socket.rune("turn.completed")
    if (isContainedHere()) {
      expect(readFileSync(join(talk.workspace, "ran"), "utf8")).toBe("ran\n")
      return
    }
    expect(payload(await talk.socket.rune("system.error"))).toMatchObject({ code: "hook_config_untrusted" })
    expect(existsSync(join(talk.workspace, "ran"))).toBe(false)
  })
})

describe("hooks written for Claude Code", { timeout: 30_000 }, () => {
  const command = (script: string, more: object = {}) => ({ type: "command", command: script, ...more })
  const settings = (hooks: object) => ({ hooks })

  it("of PreToolUse see the call under both names, and exit code 2 keeps it from running", async () => {
    const script = 'cat > seen.json; echo "not in this house" >&2; exit 2'
    const talk = await begin({ hooks: settings({ PreToolUse: [{ matcher: "Write|Edit", hooks: [command(script)] }] }) })
    await post(talk)
    expect(payload(await talk.socket.rune("tool.denied"))).toMatchObject({
      reason: "hook PreToolUse[0.0]: not in this house"
    })
    expect(payload(await talk.socket.rune("tool.result"))).toMatchObject({ status: "denied" })
    expect(existsSync(join(talk.workspace, "note.txt"))).toBe(false)
    expect(JSON.parse(readFileSync(join(talk.workspace, "seen.json"), "utf8"))).toMatchObject({
      hook_event_name: "PreToolUse",
      session_id: talk.id,
      cwd: talk.workspace,
      tool_name: "Write",
      echs_tool_name: "write_file",
      tool_input: { path: "note.txt", file_path: join(talk.workspace, "note.txt"), content: "hello\n" }
    })
  })

  const decision = (output: object) => `cat > /dev/null; echo '${JSON.stringify(output)}'`

  it("of PreToolUse decide by JSON: deny, ask, and other arguments; allow changes nothing", async () => {
    const specific = (more: object) => ({ hookSpecificOutput: { hookEventName: "PreToolUse", ...more } })
    const run = async (output: object, mode = "full_access"): Promise<Talk> => {
      const hooks = settings({ PreToolUse: [{ matcher: "write_file", hooks: [command(decision(output))] }] })
      const talk = await begin({ hooks, mode })
      await post(talk)
      return talk
    }
    const denied = await run(specific({ permissionDecision: "deny", permissionDecisionReason: "no" }))
    expect(payload(await denied.socket.rune("tool.denied"))["reason"]).toBe("hook PreToolUse[0.0]: no")
    const asked = await run(specific({ permissionDecision: "ask", permissionDecisionReason: "look at this" }))
    expect(payload(await asked.socket.rune("tool.approval_requested"))["policy_reason"]).toContain("look at this")
    const other = await run(specific({ permissionDecision: "allow", updatedInput: { path: "other.txt" } }))
    expect(payload(await other.socket.rune("tool.denied"))["reason"]).toContain('{"path":"other.txt"}')
    const allowed = await run(specific({ permissionDecision: "allow" }), "auto")
    expect(payload(await allowed.socket.rune("tool.approval_requested"))["policy_reason"]).toContain("auto")
  })

  it("of PreToolUse that cannot be asked in time keep the call from running; a mistake of theirs does not", async () => {
    const late = await begin({ hooks: settings({ PreToolUse: [{ hooks: [command("sleep 60", { timeout: 0.3 })] }] }) })
    await post(late)
    expect(String(payload(await late.socket.rune("tool.denied"))["reason"])).toContain("did not end within 300 ms")
    const broken = await begin({ hooks: settings({ PreToolUse: [{ hooks: [command("exit 7")] }] }) })
    await post(broken)
    expect(payload(await broken.socket.rune("tool.result"))).toMatchObject({ status: "success" })
  })

  it("of PostToolUse are on record as hooks, and what they block is told to the model before it goes on", async () => {
    const script = 'cat > seen.json; echo "tests fail" >&2; exit 2'
    const talk = await begin({
      hooks: settings({
        PostToolUse: [
          { matcher: "Write", hooks: [command(script)] },
          { matcher: "Bash", hooks: [command("touch wrong")] }
        ]
      }),
      scenarios: scenarios({
        edit: [{ when: { input: "tests fail" }, play: [say("mending")] }, step(1, write), step(2, say("done"))]
      })
    })
    await post(talk)
    expect(payload(await talk.socket.rune("hook.completed"))).toMatchObject({ status: "failed", exit_code: 2 })
    await talk.socket.rune("turn.completed")
    const queued = talk.socket.runes().filter(({ kind }) => kind === "turn.queued" || kind === "turn.started")
    expect(JSON.stringify(queued)).toContain("tests fail")
    expect(existsSync(join(talk.workspace, "wrong"))).toBe(false)
    expect(JSON.parse(readFileSync(join(talk.workspace, "seen.json"), "utf8"))).toMatchObject({
      hook_event_name: "PostToolUse",
      tool_name: "Write",
      tool_response: { success: true }
    })
  })

  it("of UserPromptSubmit keep a message from being taken, or add to it; SessionStart adds to the first", async () => {
    const talk = await begin({
      hooks: settings({
        SessionStart: [{ matcher: "startup", hooks: [command("echo today is Tuesday")] }],
        UserPromptSubmit: [{ hooks: [command('grep -q forbidden && { echo "not that word" >&2; exit 2; }; exit 0')] }]
      })
    })
    const refused = await talk.socket.error("message.post", { conversation_id: talk.id, content: "the forbidden word" })
    expect(refused).toMatchObject({ code: "invalid_state", message: "hook UserPromptSubmit[0.0]: not that word" })
    expect(kinds(talk)).not.toContain("turn.started")
    await post(talk, "hello")
    const input = payload(await talk.socket.rune("turn.started"))["input"]
    expect(input).toEqual([
      { type: "text", text: "hello" },
      { type: "text", text: "today is Tuesday" }
    ])
    await talk.socket.rune("turn.completed")
    await post(talk, "again")
    expect(payload(await talk.socket.rune("turn.started", 2))["input"]).toBe("again")
  })

  it("of UserPromptSubmit and SessionStart have their say about a goal as about a message", async () => {
    const talk = await begin({
      hooks: settings({
        SessionStart: [{ matcher: "startup", hooks: [command("echo today is Tuesday")] }],
        UserPromptSubmit: [
          {
            hooks: [
              command('echo asked >> asked.txt; grep -q forbidden && { echo "not that word" >&2; exit 2; }; exit 0')
            ]
          }
        ]
      })
    })
    const { id, socket, workspace } = talk
    const listed = async () => ((await socket.ok("conversation.list"))["items"] as ReadonlyArray<Json>).length
    const wish = { workspace, model: "scripted/goal-success", policy: { mode: "full_access" } }
    for (const place of [{ conversation_id: id }, wish]) {
      const refused = await socket.error("goal.submit", { goal: "the forbidden goal", ...place })
      expect(refused).toMatchObject({
        code: "invalid_state",
        message: "hook UserPromptSubmit[0.0]: not that word",
        data: { state: "blocked" }
      })
    }
    expect(kinds(talk).filter((kind) => kind.startsWith("plan."))).toEqual([])
    expect(await listed()).toBe(1)
    const key = { idempotency_key: "the same goal" }
    const first = await socket.ok("goal.submit", { goal: "Write a letter", ...wish, ...key })
    const asked = readFileSync(join(workspace, "asked.txt"), "utf8")
    expect(await socket.ok("goal.submit", { goal: "Write a letter", ...wish, ...key })).toEqual(first)
    expect(readFileSync(join(workspace, "asked.txt"), "utf8")).toBe(asked)
    const { plan } = await socket.ok("conversation.get", { conversation_id: first["conversation_id"] })
    expect(plan).toMatchObject({ goal: "Write a letter\n\ntoday is Tuesday" })
    await socket.ok("plan.cancel", { conversation_id: first["conversation_id"], plan_id: first["plan_id"] })
  })

  it("of Stop send the agent back to work, a bounded number of times", async () => {
    const talk = await begin({
      hooks: settings({ Stop: [{ hooks: [command("cat >> stops.json; echo not yet >&2; exit 2")] }] }),
      scenarios: scenarios({ edit: [{ play: [say("finished")] }] })
    })
    await post(talk)
    await talk.socket.rune("turn.completed", 9)
    const isGivenUp = (): boolean => talk.server.lines.some((line) => line.includes("sent the agent back 8 times"))
    await expect.poll(isGivenUp, { timeout: 10_000 }).toBe(true)
    const stops = readFileSync(join(talk.workspace, "stops.json"), "utf8").trim().split("\n")
    expect(stops.map((line) => (JSON.parse(line) as Json)["stop_hook_active"])).toEqual([
      false,
      ...Array.from({ length: 8 }, () => true)
    ])
    expect(kinds(talk).filter((kind) => kind === "turn.started")).toHaveLength(9)
    expect(payload(await talk.socket.rune("turn.started", 2))).toMatchObject({
      input: "not yet",
      principal: "hook:Stop[0.0]"
    })
  })

  it("of Notification and SessionEnd are told when a person is waited for and when it is over", async () => {
    const talk = await begin({
      mode: "auto",
      hooks: settings({
        Notification: [{ matcher: "permission_prompt", hooks: [command("cat > asked.json")] }],
        SessionEnd: [{ hooks: [command("cat > ended.json")] }]
      })
    })
    await post(talk)
    await talk.socket.rune("tool.approval_requested")
    await talk.socket.ok("conversation.close", { conversation_id: talk.id, reason: "enough" })
    const written = async (name: string): Promise<Json> => {
      const path = join(talk.workspace, name)
      await expect
        .poll(() => existsSync(path) && readFileSync(path, "utf8").endsWith("\n"), { timeout: 10_000 })
        .toBe(true)
      return JSON.parse(readFileSync(path, "utf8")) as Json
    }
    expect(await written("asked.json")).toMatchObject({
      hook_event_name: "Notification",
      notification_type: "permission_prompt"
    })
    expect(await written("ended.json")).toMatchObject({ hook_event_name: "SessionEnd", reason: "enough" })
  })

  it("are found in the settings of a workspace that is trusted", async () => {
    const talk = await begin({
      mode: "auto",
      files: {
        ".claude/settings.json": {
          permissions: { allow: [] },
          ...settings({ PreToolUse: [{ matcher: "Write", hooks: [command("$CLAUDE_PROJECT_DIR/deny.sh")] }] })
        },
        "deny.sh": "#!/bin/sh\necho from the project >&2\nexit 2\n"
      },
      trust: [".claude/settings.json"]
    })
    await post(talk)
    expect(payload(await talk.socket.rune("tool.denied"))["reason"]).toBe(
      "hook workspace:PreToolUse[0.0]: from the project"
    )
  })
})
