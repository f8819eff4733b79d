/**
 * Goal: the real Claude Code under `echs run claude` is what the log says it is: its hooks, its telemetry and its terminal tell
 * states, tokens and questions; answers reach it in its own format. Started by `npm run test:clients`.
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

const touch = (path: string): string =>
  `tool:Bash:${JSON.stringify({ command: `touch ${path}`, description: "a file" })}`

const ready = async (): Promise<string> => {
  const id = world.start("claude", "--permission-mode", "manual")
  await world.untilState(id, "idle")
  return id
}

/** Types a line as a person does, who sees it before pressing Enter. */
const enter = async (id: string, text: string): Promise<void> => {
  await world.type(id, text)
  await expect.poll(() => world.shownOf(id), patient).toContain(text)
  await world.type(id, "\r")
}

const ask = async (id: string, text: string): Promise<Readonly<Record<string, unknown>>> => {
  expect(world.command("send", id, text)).toMatchObject({ code: 0 })
  await world.untilAsked()
  const [item] = await world.items("approval.list")
  return item ?? {}
}

describe("the real claude, in its terminal", { timeout: 180_000 }, () => {
  it("says its states and texts in order, and every token once", async () => {
    const id = await ready()
    expect(world.command("send", id, "say hello")).toMatchObject({ code: 0 })
    const types = async () => (await world.eventsOf(id)).map(({ type }) => type)
    await expect.poll(types, patient).toContain("turn_completed")
    await world.untilState(id, "idle")
    expect(await world.states(id)).toBe("idle thinking idle")
    const events = await world.eventsOf(id)
    expect(events.find(({ type }) => type === "user_prompt")).toMatchObject({ text: "say hello" })
    expect(events.find(({ type }) => type === "agent_message")).toMatchObject({ content: "hello" })
    const answered = world.model.requests.length
    const { input, output } = tokensPerAnswer
    const used = async () => (await world.rpc("conversation.get", { conversation_id: id }))["usage"]
    await expect.poll(used, patient).toMatchObject({ input_tokens: answered * input, output_tokens: answered * output })
    expect(world.command("peek", id).stdout).toContain("hello")
  })

  it("runs a call that was approved from the CLI, as it was edited, and not one that was denied", async () => {
    const id = await ready()
    const [yes, edited, no] = ["yes.txt", "edited.txt", "no.txt"].map((name) => join(world.home, name)) as [
      string,
      string,
      string
    ]
    expect(await ask(id, touch(yes))).toMatchObject({ conversation_id: id, tool_name: "Bash" })
    expect(world.command("approve", id)).toMatchObject({ code: 0 })
    await expect.poll(() => existsSync(yes), patient).toBe(true)
    await world.untilState(id, "idle")
    const { call_id } = await ask(id, touch(no))
    const changed = JSON.stringify({ command: `touch ${edited}`, description: "another" })
    expect(world.command("approve", id, String(call_id), "--arguments", changed)).toMatchObject({ code: 0 })
    await expect.poll(() => existsSync(edited), patient).toBe(true)
    await world.untilState(id, "idle")
    await ask(id, touch(no))
    expect(world.command("deny", id, "--reason", "not on a Friday")).toMatchObject({ code: 0 })
    await world.untilState(id, "idle")
    expect(existsSync(no)).toBe(false)
    expect(world.model.requests.at(-1)?.bodyText).toContain("not on a Friday")
    expect(world.command("verify")).toMatchObject({ code: 0 })
  })

  it("settles what was answered in its own dialog", async () => {
    const id = await ready()
    const yes = join(world.home, "yes.txt")
    await ask(id, touch(yes))
    await expect.poll(() => world.shownOf(id), patient).toContain("Yes")
    await world.type(id, "\r")
    await expect.poll(() => existsSync(yes), patient).toBe(true)
    await world.untilState(id, "idle")
    const approved = (await world.runes(id)).find(({ kind }) => kind === "tool.approved")
    expect(approved?.payload).toMatchObject({ approver: "terminal", channel: "agent" })
  })

  it("is interrupted from outside and by Escape, which no hook reports", async () => {
    const id = await ready()
    for (const stop of [() => world.command("interrupt", id), () => world.type(id, "\u001b")]) {
      world.command("send", id, "wait for me")
      await world.untilState(id, "thinking")
      await expect.poll(() => world.model.open(), patient).toBe(1)
      await stop()
      await world.untilState(id, "idle")
    }
    expect(await world.states(id)).toBe("idle thinking idle thinking idle")
  })

  it("has its question answered in the inbox", async () => {
    const id = await ready()
    const question = "Which color?"
    const options = [
      { label: "red", description: "the first" },
      { label: "blue", description: "the second" }
    ]
    const questions = [{ question, header: "Color", options, multiSelect: false }]
    const { call_id, tool_name } = await ask(id, `tool:AskUserQuestion:${JSON.stringify({ questions })}`)
    expect(tool_name).toBe("AskUserQuestion")
    const answers = JSON.stringify({ questions, answers: { [question]: "blue" } })
    expect(world.command("approve", id, String(call_id), "--arguments", answers)).toMatchObject({ code: 0 })
    await world.untilState(id, "idle")
    expect(world.model.requests.at(-1)?.bodyText).toContain("blue")
  })

  it("survives a killed server; what it does meanwhile is heard in order", async () => {
    const id = await ready()
    await world.server?.end("SIGKILL")
    await enter(id, "say afterwards")
    await expect
      .poll(() => world.model.requests.some(({ bodyText }) => bodyText.includes("say afterwards")), patient)
      .toBe(true)
    await world.serve()
    const said = async () => (await world.eventsOf(id)).map(({ content }) => content)
    await expect.poll(said, patient).toContain("afterwards")
    await world.untilState(id, "idle")
    expect((await world.eventsOf(id)).filter(({ type }) => type === "user_prompt")).toHaveLength(1)
  })

  it.each(["agent", "holder"])("leaves nothing running when its %s is killed", async (which) => {
    const id = await ready()
    const state = readState(join(world.data, "harness", id))
    process.kill((which === "agent" ? state?.pid : state?.holderPid) ?? 0, "SIGKILL")
    await world.untilClosed(id)
    await expect.poll(() => world.leftRunning(), patient).toEqual([])
  })

  it("ends with its own exit code", async () => {
    const id = await ready()
    await enter(id, "/exit")
    await world.untilClosed(id)
    const ended = (await world.runes(id)).find(({ kind }) => kind === "harness.detached")
    expect(ended?.payload).toMatchObject({ exit_code: 0 })
    expect(world.command("run", "claude", "--version")).toMatchObject({ code: 0 })
  })
})
