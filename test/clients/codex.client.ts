/**
 * Goal: the real Codex under `echs run codex` is what the log says it is. Its terminal and ECHS are clients of one app-server;
 * the model is the one of the tests. Started by `npm run test:clients`.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readState } from "#src/harness/holder/HolderFiles.ts"
import { ClientWorld, patient } from "../support/harness/ClientWorld.ts"
import { tokensPerAnswer } from "../support/harness/directedModel.ts"

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.open()
})

afterEach(() => world.end())

const escalated = (path: string): string =>
  `tool:exec_command:${JSON.stringify({ cmd: `touch ${path}`, sandbox_permissions: "require_escalated", justification: "need it" })}`

const ready = async (): Promise<string> => {
  const id = world.start("codex")
  await world.untilState(id, "idle")
  return id
}

describe("the real codex", { timeout: 180_000 }, () => {
  it("says its states and texts in order, and every token once", async () => {
    const id = await ready()
    expect(world.command("send", id, "say hello")).toMatchObject({ code: 0 })
    await expect
      .poll(async () => (await world.eventsOf(id)).map(({ type }) => type), patient)
      .toContain("turn_completed")
    await world.untilState(id, "idle")
    expect(await world.states(id)).toBe("idle thinking idle")
    const events = await world.eventsOf(id)
    expect(events.find(({ type }) => type === "user_prompt")).toMatchObject({ text: "say hello" })
    expect(events.find(({ type }) => type === "agent_message")).toMatchObject({ content: "hello" })
    const { usage } = await world.rpc("conversation.get", { conversation_id: id })
    expect(usage).toMatchObject({ input_tokens: tokensPerAnswer.input, output_tokens: tokensPerAnswer.output })
    expect(world.command("peek", id).stdout).toContain("hello")
  })

  it("runs a call that was approved from the CLI, and not one that was denied", async () => {
    const id = await ready()
    const [yes, no] = [join(world.home, "yes.txt"), join(world.home, "no.txt")]
    world.command("send", id, escalated(yes))
    await world.untilAsked()
    const [item] = await world.items("approval.list")
    expect(item).toMatchObject({ conversation_id: id, tool_name: "shell" })
    expect(JSON.stringify(item!["arguments"])).toContain(`touch ${yes}`)
    const edited = world.command("approve", id, String(item!["call_id"]), "--arguments", '{"command":"true"}')
    expect(edited).toMatchObject({ code: 2 })
    expect(edited.stderr).toContain("cannot be changed")
    expect(world.command("approve", id)).toMatchObject({ code: 0 })
    await world.untilState(id, "idle")
    expect(existsSync(yes)).toBe(true)
    world.command("send", id, escalated(no))
    await world.untilAsked()
    expect(world.command("deny", id)).toMatchObject({ code: 0 })
    await world.untilState(id, "idle")
    expect(existsSync(no)).toBe(false)
    const calls = await world.kindsOf(id, "tool.")
    expect(calls).toEqual([
      ...["tool.call", "tool.approval_requested", "tool.approved", "tool.started", "tool.result"],
      ...["tool.call", "tool.approval_requested", "tool.denied", "tool.result"]
    ])
    expect(world.command("verify")).toMatchObject({ code: 0 })
  })

  it("settles what was answered in its own dialog", async () => {
    const id = await ready()
    const yes = join(world.home, "yes.txt")
    world.command("send", id, escalated(yes))
    await world.untilAsked()
    await expect.poll(() => world.screenOf(id), patient).toContain("Would you like to run")
    await world.type(id, "y")
    await world.untilState(id, "idle")
    expect(existsSync(yes)).toBe(true)
    const approved = (await world.runes(id)).find(({ kind }) => kind === "tool.approved")
    expect(approved?.payload).toMatchObject({ approver: "terminal", channel: "agent" })
  })

  it("is interrupted from outside and by Escape", async () => {
    const id = await ready()
    world.command("send", id, "wait for me")
    await world.untilState(id, "thinking")
    expect(world.command("interrupt", id)).toMatchObject({ code: 0 })
    await world.untilState(id, "idle")
    world.command("send", id, "wait once more")
    await world.untilState(id, "thinking")
    await world.type(id, "\u001b")
    await world.untilState(id, "idle")
    expect(await world.states(id)).toBe("idle thinking idle thinking idle")
  })

  it("takes a text while it works, and answers that", async () => {
    const id = await ready()
    world.command("send", id, "wait for me")
    await world.untilState(id, "thinking")
    world.command("send", id, "say steered")
    const said = async () => (await world.eventsOf(id)).map(({ content }) => content)
    await expect.poll(said, patient).toContain("steered")
    await world.untilState(id, "idle")
  })

  it("survives a killed server with its question; the answer of the next one counts", async () => {
    const id = await ready()
    const yes = join(world.home, "yes.txt")
    world.command("send", id, escalated(yes))
    await world.untilAsked()
    await world.server!.end("SIGKILL")
    await world.serve()
    await expect.poll(async () => (await world.items("harness.list"))[0]?.["attached"], patient).toBe(true)
    await world.untilAsked()
    await expect.poll(() => world.command("approve", id).code, patient).toBe(0)
    await expect.poll(() => existsSync(yes), patient).toBe(true)
    await world.untilState(id, "idle")
    const { usage } = await world.rpc("conversation.get", { conversation_id: id })
    expect(usage).toMatchObject({ input_tokens: 2 * tokensPerAnswer.input, output_tokens: 2 * tokensPerAnswer.output })
  })

  it.each(["agent", "holder", "app-server"])("leaves nothing running when its %s is killed", async (which) => {
    const id = await ready()
    const state = readState(join(world.data, "harness", id))!
    const pid = { agent: state.pid, holder: state.holderPid, "app-server": state.companion!.pid }[which]!
    process.kill(which === "app-server" ? world.childOf(pid) : pid, "SIGKILL")
    if (which === "app-server") await world.rpc("conversation.close", { conversation_id: id })
    await world.untilClosed(id)
    await expect.poll(() => world.leftRunning(), patient).toEqual([])
  })

  it("passes its exit code on, and shows its help without an app-server", async () => {
    expect(world.command("run", "codex", "--version")).toMatchObject({ code: 0 })
    expect(world.command("run", "codex", "no-such-option", "--no-such-option").code).toBe(2)
  })
})
