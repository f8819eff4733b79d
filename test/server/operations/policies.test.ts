// Goal: the policy that people see and edit is the one that decides, and what a trial says is what the log has. Method: a
// real server with its tools and a scripted model; calls are allowed and denied, then the policy is read, tried, replaced
// and permissions are revoked, and the next call shows whether it took effect.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { useExtendedServers } from "../../support/extended.ts"
import { say, scenarios, use } from "../../support/runtime/scenarios.ts"
import type { Json, Socket } from "../../support/server/Socket.ts"

const servers = useExtendedServers()
const write = (path: string) => use("write_file", { path, content: "hello\n" })
const played = scenarios({
  writer: [
    { when: { step: 1, input: "^a" }, play: [write("a.txt")] },
    { when: { step: 1, input: "^b" }, play: [write("b.txt")] },
    { play: [say("done")] }
  ]
})

const open = async () => {
  const dataDirectory = servers.directory()
  const server = await servers.open({ dataDirectory, scenarios: played, model: "scripted/writer" })
  const socket = await server.connect()
  const id = await socket.create({ workspace: server.workspace, title: "letters" })
  await socket.ok("subscribe", { conversation_id: id })
  return { server, socket, id, file: join(dataDirectory, "policy.json") }
}

/** Says something, and waits until a call asks, or the turn is over. */
const say1 = async (socket: Socket, id: string, content: string): Promise<"asked" | "done"> => {
  const count = (kind: string) => socket.runes().filter((one) => one["kind"] === kind).length
  const [asked, done] = [count("tool.approval_requested"), count("turn.completed")]
  await socket.ok("message.post", { conversation_id: id, content })
  await socket.until(() => count("tool.approval_requested") > asked || count("turn.completed") > done)
  return count("tool.approval_requested") > asked ? "asked" : "done"
}

const answer = async (socket: Socket, id: string, scope: string): Promise<Json> => {
  const { items } = await socket.ok("approval.list", { conversation_id: id })
  const { arguments_hash, call_id } = (items as ReadonlyArray<Json>)[0]!
  const done = socket.runes().filter((one) => one["kind"] === "turn.completed").length
  const given =
    scope === "deny"
      ? await socket.ok("approval.deny", { conversation_id: id, call_id })
      : await socket.ok("approval.approve", { conversation_id: id, call_id, scope, arguments_hash })
  await socket.until(() => socket.runes().filter((one) => one["kind"] === "turn.completed").length > done)
  return given
}

describe("the policy on the wire", { timeout: 60_000 }, () => {
  it("counts what each rule applies to, and lists what an edit would change", async () => {
    const { id, socket } = await open()
    expect(await say1(socket, id, "a")).toBe("asked")
    await answer(socket, id, "once")
    expect(await say1(socket, id, "b")).toBe("asked")
    await answer(socket, id, "deny")
    const rules = [
      { decision: "deny", tool: "write_file", path: "a.txt" },
      { decision: "allow", tool: "write_file", path: "b.txt" },
      { decision: "deny", tool: "bash" }
    ]
    const tried = await socket.ok("policy.test", { policy: { rules } })
    expect(tried).toMatchObject({
      conversations: 1,
      calls: 2,
      complete: true,
      counts: { blocked: 1, asked: 0, let_run: 1, same: 0 },
      rules: [
        { ran: 0, approved: 1, denied: 0, other: 0 },
        { ran: 0, approved: 0, denied: 1, other: 0 },
        { ran: 0, approved: 0, denied: 0, other: 0 }
      ]
    })
    expect((tried["items"] as ReadonlyArray<Json>).map(({ change }) => change)).toEqual(["let_run", "blocked"])
    expect(await say1(socket, id, "a")).toBe("asked")
  })

  it("is replaced by an admin, decides about the next call, and is not written over unseen", async () => {
    const { file, id, server, socket } = await open()
    const { revision } = await socket.ok("policy.get")
    const policy = { rules: [{ decision: "allow", tool: "write_file" }] }
    await socket.ok("policy.set", { policy, revision })
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(policy)
    expect(await say1(socket, id, "a")).toBe("done")
    expect(await socket.error("policy.set", { policy: { rules: [] }, revision })).toMatchObject({
      code: "invalid_state"
    })
    const { revision: now } = await socket.ok("policy.get")
    const wrong = { policy: { rules: [{ decision: "maybe" }] }, revision: now }
    expect(await socket.error("policy.set", wrong)).toMatchObject({ code: "bad_request" })
    expect(await socket.error("policy.test", { policy: wrong.policy })).toMatchObject({ code: "bad_request" })
    writeFileSync(file, "{ by hand")
    const { issue, revision: broken } = await socket.ok("policy.get")
    expect(String(issue)).toContain("no JSON")
    expect(await socket.error("policy.set", { policy, revision: broken })).toMatchObject({ code: "bad_request" })
    expect(readFileSync(file, "utf8")).toBe("{ by hand")
    await server.close()
  })

  it("lists permissions with their origin; a revoked one asks again, also after a restart", async () => {
    const { id, server, socket } = await open()
    expect(await say1(socket, id, "a")).toBe("asked")
    const { event_id: given } = await answer(socket, id, "session")
    expect(await say1(socket, id, "a")).toBe("done")
    const { items } = await socket.ok("grant.list", {})
    expect(items).toMatchObject([
      { conversation_id: id, title: "letters", event_id: given, scope: "session", approver: "local" }
    ])
    const revoke = { conversation_id: id, grant_event_id: given }
    await socket.ok("grant.revoke", revoke)
    expect((await socket.ok("grant.list", { conversation_id: id }))["items"]).toEqual([])
    expect(await socket.error("grant.revoke", revoke)).toMatchObject({ code: "not_found" })
    await server.close()
    const again = await servers.open({ dataDirectory: server.dataDirectory, scenarios: played }, server.workspace)
    const other = await again.connect()
    await other.ok("subscribe", { conversation_id: id, after: "tail" })
    expect(await say1(other, id, "a")).toBe("asked")
  })
})
