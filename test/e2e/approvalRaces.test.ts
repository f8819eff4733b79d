// Goal: however many people, clocks and interruptions reach for one question at once, one of them decides, the others are
// told who, and what was not allowed never runs. Method: eight clients on real sockets, a question that expires about
// when they answer, and turns that are interrupted under them; every round by a seed.
// Verifies: G5, G6
import { describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import type { Answer, Json, Socket } from "../support/server/Socket.ts"
import { useServers } from "../support/server/TestServer.ts"

const { open } = useServers()

type Wish = "approve" | "edit" | "deny" | "deny and interrupt" | "interrupt"
const wishes: ReadonlyArray<Wish> = ["approve", "edit", "deny", "deny and interrupt", "interrupt"]

const ask = (socket: Socket, item: Json, wish: Wish): Promise<Answer> => {
  const call = { conversation_id: item["conversation_id"], call_id: item["call_id"] }
  const yes = { ...call, scope: "once", arguments_hash: item["arguments_hash"] }
  switch (wish) {
    case "approve":
      return socket.ask("approval.approve", yes)
    case "edit":
      return socket.ask("approval.approve", { ...yes, arguments: { how: "otherwise" } })
    case "deny":
      return socket.ask("approval.deny", { ...call, reason: "no" })
    case "deny and interrupt":
      return socket.ask("approval.deny", { ...call, reason: "no", interrupt: true })
    case "interrupt":
      return socket.ask("turn.interrupt", { conversation_id: item["conversation_id"] })
  }
}

const ofCall = (runes: ReadonlyArray<Json>, kind: string): ReadonlyArray<Json> =>
  runes.filter((rune) => rune["kind"] === kind)

describe("eight who decide at once", () => {
  it("make one decision, whatever the clock and interruptions do meanwhile", async () => {
    const rounds = count("approval races of eight", { fast: 200, soak: 10_000 })
    const random = randomFrom(seedFor("approval races of eight"))
    const ran = new Map<string, ReadonlyArray<unknown>>()
    const server = await open({
      scenarios: scenarios({ act: [step(1, use("act", { how: "well" })), always(say("done"))] }),
      tools: [
        effectTool(
          "act",
          async (input, context) => {
            ran.set(context.conversation_id, [...(ran.get(context.conversation_id) ?? []), input["how"]])
            return "ran"
          },
          { approval: "ask" }
        )
      ]
    })
    const sockets: Array<Socket> = []
    for (let index = 0; index < 64; index++) sockets.push(await server.connect())
    const ends: Record<string, number> = { approved: 0, denied: 0, expired: 0, cancelled: 0 }
    for (let round = 0; round < rounds; round++) {
      const clients = sockets.slice((round % 8) * 8, (round % 8) * 8 + 8)
      const [first] = clients as [Socket]
      const isShort = random() < 0.4
      const limits = { approval_timeout_ms: isShort ? 2 + Math.floor(random() * 10) : 600_000 }
      const id = await first.create({ model: "scripted/act", limits })
      const { sub } = await first.ok("subscribe", { conversation_id: id })
      await first.ok("message.post", { conversation_id: id, content: "go" })
      const mine = () => first.runes(sub)
      await first.until(() => ofCall(mine(), "tool.approval_requested").length > 0)
      const asked = ofCall(mine(), "tool.call")[0]!["payload"] as Json
      const item = { conversation_id: id, call_id: asked["call_id"], arguments_hash: asked["arguments_hash"] }
      const chosen = clients.map(() => wishes[Math.floor(random() * wishes.length)]!)
      const answers = await Promise.all(clients.map((socket, index) => ask(socket, item, chosen[index]!)))
      await first.until(() => mine().some((rune) => /^turn\.(completed|interrupted|error)$/.test(String(rune["kind"]))))
      const runes = mine()
      const decisions = [...ofCall(runes, "tool.approved"), ...ofCall(runes, "tool.denied")]
      const results = ofCall(runes, "tool.result")
      expect(results).toHaveLength(1)
      expect(decisions.length).toBeLessThanOrEqual(1)
      const deciding = answers.filter(({ ok }, index) => ok !== undefined && chosen[index] !== "interrupt")
      expect(deciding.length).toBe(decisions.length)
      const status = String((results[0]!["payload"] as Json)["status"])
      const end =
        ofCall(runes, "tool.approved").length > 0
          ? "approved"
          : status === "denied"
            ? "denied"
            : status === "timeout"
              ? "expired"
              : "cancelled"
      ends[end]! += 1
      const told = answers.flatMap(({ error }, index) =>
        error === undefined || chosen[index] === "interrupt" ? [] : [error]
      )
      for (const error of told) {
        const isKnown = ["already_decided", "invalid_state", "not_found"].includes(error.code)
        expect(isKnown, JSON.stringify(error)).toBe(true)
        if (error.code === "already_decided") expect(error.data).toMatchObject({ decision: { decision: end } })
      }
      const runs = ran.get(id) ?? []
      expect(runs.length).toBeLessThanOrEqual(end === "approved" ? 1 : 0)
      for (const socket of clients) socket.pushed.length = 0
      await first.ask("unsubscribe", { sub })
    }
    for (const [end, number] of Object.entries(ends)) reportCount(`approval races of eight: ${end}`, number)
    expect(Object.values(ends).reduce((sum, one) => sum + one, 0)).toBe(rounds)
    expect(ends["approved"]).toBeGreaterThan(0)
    expect(ends["denied"]).toBeGreaterThan(0)
  })
})
