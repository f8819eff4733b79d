// Goal: an admin has what an operator must not: tokens, the policy of the server, its end. Method: the server as people
// start it, and a socket for each role.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { operationNames, operations } from "#src/wire/Operations.ts"
import { always, say, use } from "../../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../../support/server/Process.ts"
import { type Json, Socket } from "../../support/server/Socket.ts"

let place = ""
let data = ""
let server: ServerProcess
const operator = "operator-0123456789abcdef"

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-admin-"))
  data = join(place, "data")
  mkdirSync(data, { mode: 0o700 })
  mkdirSync(join(place, "workspace"))
  writeFileSync(
    join(data, "config.json"),
    JSON.stringify({ tokens: [{ name: "olga", role: "operator", token: operator }] })
  )
  const replies = [
    { when: { step: 1 }, play: [use("write_file", { path: "a.txt", content: "a" })] },
    always(say("done"))
  ]
  writeFileSync(join(place, "scenario.json"), JSON.stringify({ name: "write", replies }))
  server = await startProcess(data)
})

afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

const connect = async (token: string): Promise<Socket> => {
  const socket = await Socket.open(server.url)
  await socket.hello(token)
  return socket
}

describe("an admin", { timeout: 60_000 }, () => {
  it("alone may ask for what changes the server", async () => {
    const socket = await connect(operator)
    const forAdmins = operationNames.filter((name) => operations[name].role === "admin")
    expect(forAdmins).toEqual([
      "policy.set",
      "token.list",
      "token.create",
      "token.remove",
      "server.stop",
      "server.fibers"
    ])
    const fields: Readonly<Record<string, Json>> = {
      "policy.set": { policy: {}, revision: "0".repeat(64) },
      "token.create": { name: "x", role: "viewer" },
      "token.remove": { name: "olga" }
    }
    for (const name of forAdmins) expect((await socket.error(name, fields[name])).code, name).toBe("unauthorized")
    expect(await socket.ok("stats")).toBeDefined()
  })

  it("makes a token that works at once, and removes it with whoever came in by it", async () => {
    const admin = await connect(server.token)
    const { token } = await admin.ok("token.create", { name: "vera", role: "viewer" })
    expect((await admin.error("token.create", { name: "vera", role: "admin" })).code).toBe("invalid_state")
    expect((await admin.error("token.create", { name: "local", role: "admin" })).code).toBe("invalid_state")
    expect((await admin.error("token.create", { name: "no spaces", role: "admin" })).code).toBe("bad_request")
    const guest = await connect(String(token))
    expect((await guest.error("conversation.create")).code).toBe("unauthorized")
    expect(await admin.ok("token.list")).toEqual({
      items: [
        { name: "olga", role: "operator" },
        { name: "vera", role: "viewer" }
      ]
    })
    expect(JSON.stringify(await admin.ok("token.list"))).not.toContain(operator)
    await admin.ok("token.remove", { name: "vera" })
    expect(await guest.closed()).toBe(4001)
    const again = await Socket.open(server.url)
    expect((await again.error("hello", { protocol: 1, token })).code).toBe("unauthorized")
    expect((await admin.error("token.remove", { name: "vera" })).code).toBe("not_found")
    expect(JSON.parse(readFileSync(join(data, "config.json"), "utf8")).tokens).toHaveLength(1)
  })

  it("alone allows something for good; an operator allows it for the conversation", async () => {
    const admin = await connect(server.token)
    const socket = await connect(operator)
    const id = await socket.create({
      model: `scripted/${join(place, "scenario.json")}`,
      workspace: join(place, "workspace")
    })
    const { sub } = await socket.ok("subscribe", { conversation_id: id, after: 0 })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.until(() => socket.runes(sub).some(({ kind }) => kind === "tool.approval_requested"))
    const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
    const { arguments_hash, call_id, choices } = items[0]!
    expect(choices).toContain("rule")
    const decision = { conversation_id: id, call_id, arguments_hash }
    expect((await socket.error("approval.approve", { ...decision, scope: "rule" })).code).toBe("unauthorized")
    expect(await admin.ok("approval.approve", { ...decision, scope: "rule" })).toMatchObject({ learnt: true })
  })

  it("stops the server, in good order", async () => {
    const admin = await connect(server.token)
    const closed = admin.closed()
    expect(await admin.ok("server.stop", { reason: "an update" })).toEqual({ stopping: true })
    expect(await closed).toBe(1001)
    expect(await server.end("SIGCONT")).toBe(0)
  })
})
