// Goal: goals and plans over the wire do what the protocol says: one goal per key, a plan that waits is shown, approved,
// rejected and cancelled by whoever may. Method: the real server in this process, a plain client, real files.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { fileTools } from "../../support/autonomy/fileTools.ts"
import type { Socket } from "../../support/server/Socket.ts"
import { useServers } from "../../support/server/TestServer.ts"

const { directory, open } = useServers()

const start = async () => {
  const data = directory()
  const workspace = join(data, "workspace")
  mkdirSync(workspace)
  const server = await open({ dataDirectory: data, tools: fileTools })
  return { server, workspace, socket: await server.connect() }
}

const follow = async (socket: Socket, submitted: Readonly<Record<string, unknown>>) => {
  const { conversation_id, plan_id } = submitted
  await socket.ok("subscribe", { conversation_id, after: 0 })
  return { conversation_id, plan_id }
}

describe("goal.submit", () => {
  it("begins a conversation of its own, and the goal is pursued to its end", async () => {
    const { socket, workspace } = await start()
    const submitted = await socket.ok("goal.submit", {
      goal: "Write a letter",
      model: "scripted/goal-critique",
      workspace
    })
    expect(submitted).toMatchObject({
      conversation_id: expect.stringMatching(/^conv_/),
      plan_id: expect.stringMatching(/^plan_/)
    })
    const { conversation_id } = await follow(socket, submitted)
    const met = await socket.rune("plan.goal_met")
    expect(met["payload"]).toMatchObject({ summary: expect.stringMatching(/^The goal is met: Write a letter/) })
    const found = await socket.ok("conversation.get", { conversation_id })
    expect(found).toMatchObject({ title: "Write a letter", plan: { status: "goal_met" } })
  })

  it("is one goal for one key, also when it is asked for again", async () => {
    const { socket, workspace } = await start()
    const asked = {
      goal: "Write a letter",
      model: "scripted/goal-endless",
      workspace,
      max_parallel: 2,
      budget: { tokens: 1_000_000 },
      options: { max_iterations: 3 },
      idempotency_key: "k1"
    }
    const first = await socket.ok("goal.submit", asked)
    const again = await socket.ok("goal.submit", asked)
    expect(again).toEqual(first)
    expect((await socket.error("goal.submit", { ...asked, goal: "Another" })).code).toBe("idempotency_conflict")
    await follow(socket, first)
    const received = await socket.rune("plan.goal_received")
    expect(received["payload"]).toMatchObject({
      max_parallel: 2,
      budget: { tokens: 1_000_000 },
      options: { max_iterations: 3 },
      principal: "local"
    })
    expect(socket.runes().filter((rune) => rune["kind"] === "plan.goal_received")).toHaveLength(1)
  })

  it("takes a conversation that is there, one goal at a time, and nothing that was chosen at its creation", async () => {
    const { socket, workspace } = await start()
    const conversation_id = await socket.create({ model: "scripted/goal-endless", workspace })
    const submitted = await socket.ok("goal.submit", { goal: "g", conversation_id })
    expect(submitted["conversation_id"]).toBe(conversation_id)
    expect((await socket.error("goal.submit", { goal: "h", conversation_id })).code).toBe("invalid_state")
    expect((await socket.error("goal.submit", { goal: "h", conversation_id, model: "x" })).message).toMatch(/^model: /)
    expect((await socket.error("goal.submit", { goal: "h", conversation_id: "conv_00000000" })).code).toBe("not_found")
    expect((await socket.error("goal.submit", { goal: "" })).code).toBe("bad_request")
  })
})

describe("a plan over the wire", () => {
  it("waits where people see it, is rejected with a reason, then approved", async () => {
    const { socket, workspace } = await start()
    const asked = { goal: "Write a letter", model: "scripted/goal-critique", workspace, auto_start: false }
    const plan = await follow(socket, await socket.ok("goal.submit", asked))
    expect((await socket.error("plan.approve", { ...plan, plan_id: "plan_other" })).code).toBe("not_found")
    const created = await socket.rune("plan.created")
    const { items } = (await socket.ok("attention.list")) as { readonly items: ReadonlyArray<object> }
    expect(items).toContainEqual(expect.objectContaining({ type: "plan", event_id: created["event_id"] }))
    await socket.ok("plan.reject", { ...plan, reason: "say please" })
    const rejected = await socket.rune("plan.rejected")
    expect(rejected["payload"]).toMatchObject({ reason: "say please", approver: "local" })
    await socket.rune("plan.created", 2)
    await socket.ok("plan.approve", plan)
    expect((await socket.rune("plan.approved"))["payload"]).toMatchObject({ approver: "local", channel: "websocket" })
    await socket.rune("plan.goal_met")
    expect((await socket.error("plan.approve", plan)).code).toBe("invalid_state")
    expect((await socket.error("plan.cancel", plan)).data).toMatchObject({ state: "goal_met" })
  })

  it("is cancelled with the words of whoever cancels it", async () => {
    const { socket, workspace } = await start()
    const asked = { goal: "Write a letter", model: "scripted/goal-endless", workspace, auto_start: false }
    const plan = await follow(socket, await socket.ok("goal.submit", asked))
    await socket.rune("plan.created")
    await socket.ok("plan.cancel", { ...plan, reason: "no longer needed" })
    const stopped = await socket.rune("plan.stopped")
    expect(stopped["payload"]).toMatchObject({
      reason: "user_cancel",
      summary: expect.stringMatching(/^The goal was not met \(user_cancel\): no longer needed\n/)
    })
  })
})
