// Goal: a person can see what a running server is doing. Method: the server as people start it, an agent that waits for an
// answer, and `echs doctor --fibers`.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { always, say, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { Socket } from "../support/server/Socket.ts"

let place = ""
let data = ""
let server: ServerProcess

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-fibers-"))
  data = join(place, "data")
  mkdirSync(join(place, "workspace"))
  const replies = [{ when: { step: 1 }, play: [use("ask_user", { question: "Which?" })] }, always(say("done"))]
  writeFileSync(join(place, "scenario.json"), JSON.stringify({ name: "ask", replies }))
  server = await startProcess(data)
})

afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(place, { recursive: true, force: true })
})

it("doctor --fibers prints the conversations at work, their agents, turns and work", { timeout: 60_000 }, async () => {
  const doctor = (...more: ReadonlyArray<string>) => commandOn(data)(["doctor", "--fibers", ...more])
  expect(doctor()).toMatchObject({ code: 0, stdout: "no conversation is at work\n" })
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  const { conversation_id: id, root_agent_id: agent } = await socket.ok("conversation.create", {
    model: `scripted/${join(place, "scenario.json")}`,
    workspace: join(place, "workspace")
  })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  const { call_id: call } = (await socket.rune("tool.approval_requested"))["payload"] as Record<string, unknown>
  expect(
    doctor()
      .stdout.replaceAll(/ #\d+$/gm, "")
      .replaceAll(/turn_\w+/g, "turn_x")
  ).toBe(
    [`conversation ${id}`, `  agent ${agent}`, "    turn turn_x", `      waiting for an answer about ${call}`, ""].join(
      "\n"
    )
  )
  const { items, left_out } = JSON.parse(doctor("--json").stdout)
  expect(items.map(({ depth }: { depth: number }) => depth)).toEqual([0, 1, 2, 3])
  expect(left_out).toBe(0)
  await socket.ok("turn.interrupt", { conversation_id: id })
  await socket.rune("turn.interrupted")
  expect(doctor()).toMatchObject({ code: 0, stdout: "no conversation is at work\n" })
  await socket.close()
})

it("doctor --fibers without a server says how to start one", () => {
  const run = commandOn(join(place, "elsewhere"))(["doctor", "--fibers"])
  expect(run.code).not.toBe(0)
  expect(run.stderr).toContain('start one with "echs server start"')
})
