// Goal: a log that is found read-only in the middle of a turn stops the work at once: no model is paid for what cannot be
// kept, nobody is told that something was taken, followers and readers are told why, and everybody else goes on.
// Method: a real server on a real directory whose segment is damaged under it, and a model that counts its requests.
// Verifies: G4, INV-CRC-VALID
import { closeSync, fstatSync, openSync, readdirSync, writeFileSync, writeSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import type { Json, Socket } from "../support/server/Socket.ts"
import { type TestServer, useServers } from "../support/server/TestServer.ts"

const servers = useServers()
const cleanUp: Array<() => void> = []
afterEach(() => {
  for (const step of cleanUp.splice(0)) step()
})

interface PaidRequest {
  readonly gone: Promise<void>
}

/** A provider that refuses its first request, and then takes every one and answers none. */
const silentModel = async () => {
  const requests: Array<PaidRequest> = []
  const arrivals = [Promise.withResolvers<PaidRequest>(), Promise.withResolvers<PaidRequest>()]
  let isFirst = true
  const http = createServer((request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    if (isFirst) {
      isFirst = false
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: "no" } }))
      return
    }
    const paid = { gone: new Promise<void>((resolve) => response.once("close", resolve)) }
    arrivals[requests.push(paid) - 1]?.resolve(paid)
  })
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
  cleanUp.push(() => {
    http.closeAllConnections()
    http.close()
  })
  const baseUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`
  return {
    requests,
    arrivals,
    providers: { paid: { adapter: "openai-chat", baseUrl, keyVariable: "PAID_KEY" } } as const
  }
}

/** Overwrites bytes in the middle of the conversation's first segment. */
const damage = (directory: string, id: string): void => {
  const folder = join(directory, "runelog", id)
  const segment = readdirSync(folder).find((name) => name.endsWith(".seg"))!
  const fd = openSync(join(folder, segment), "r+")
  writeSync(fd, Buffer.from("XXXX"), 0, 4, Math.floor(fstatSync(fd).size / 2))
  closeSync(fd)
}

const page = async (server: TestServer, id: string, part = "runes"): Promise<ReadonlyArray<string>> => {
  const url = `${server.url}/v1/conversations/${id}/${part}`
  const answer = await fetch(url, { headers: { authorization: `Bearer ${server.token}` } })
  return (await answer.text()).trimEnd().split("\n")
}

/** Conversations with a past in their segments, and a model that answers no more. */
const withPast = async () => {
  const directory = servers.directory()
  servers.leaveUnchecked(directory)
  const model = await silentModel()
  const options = { dataDirectory: directory, providers: model.providers, key: () => "0123456789abcdef" }
  const first = await servers.open(options)
  const writer = await first.connect()
  const [id, other] = [await writer.create({ model: "paid/any" }), await writer.create({ model: "paid/any" })]
  await writer.ok("subscribe", { conversation_id: id })
  await writer.ok("message.post", { conversation_id: id, content: "remember this ".repeat(50) })
  await writer.rune("turn.error")
  await first.close()
  const server = await servers.open(options)
  return { ...model, directory, server, socket: await server.connect(), id, other }
}

const errorsOf = (socket: Socket, sub: unknown): ReadonlyArray<Json> =>
  socket.pushed.filter((frame) => frame["sub"] === sub && "error" in frame).map((frame) => frame["error"] as Json)

describe("a log found read-only in the middle of a turn", () => {
  it("stops its work at once, pays for nothing more and tells everybody why", async () => {
    const { arrivals, directory, id, other, requests, server, socket } = await withPast()
    const { sub } = await socket.ok("subscribe", { conversation_id: id, after: "tail" })
    await socket.ok("agent.list", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "go on" })
    const paid = await arrivals[0]!.promise
    damage(directory, id)
    const lines = await page(server, id)
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ error: { code: "read_only" } })
    // The request is broken off, and the follower hears of it without asking.
    await paid.gone
    await socket.until(() => errorsOf(socket, sub).length > 0)
    expect(errorsOf(socket, sub)).toMatchObject([{ code: "read_only", data: { reason: expect.stringContaining(id) } }])
    for (let round = 0; round < 5; round++) {
      for (const op of ["turn.interrupt", "conversation.pause"]) {
        expect(await socket.error(op, { conversation_id: id })).toMatchObject({ code: "read_only" })
      }
      const refused = await socket.error("message.post", { conversation_id: id, content: "and now?" })
      expect(refused).toMatchObject({ code: "read_only", message: expect.stringContaining("is damaged at byte") })
      await socket.ok("attention.list")
    }
    expect(requests.length).toBe(1)
    // Everybody else goes on.
    await socket.ok("message.post", { conversation_id: other, content: "hello" })
    await arrivals[1]!.promise
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect(server.lines.filter((line) => line.includes("read-only from now on")).length).toBe(1)
  })

  it("is an error, and not unknown, where not even the first event is left", async () => {
    const { directory, id, server, socket } = await withPast()
    const folder = join(directory, "runelog", id)
    for (const name of readdirSync(folder)) if (name.endsWith(".seg")) writeFileSync(join(folder, name), "XXXX")
    const [line] = await page(server, id)
    expect(JSON.parse(line!)).toMatchObject({ error: { code: "read_only" } })
    expect(await socket.error("subscribe", { conversation_id: id })).toMatchObject({ code: "read_only" })
  })

  it("is told to whoever comes later, over HTTP and over a socket", async () => {
    const { directory, id, server, socket } = await withPast()
    damage(directory, id)
    await page(server, id)
    for (const after of [0, "tail"]) {
      const { sub } = await socket.ok("subscribe", { conversation_id: id, after })
      await socket.until(() => errorsOf(socket, sub).length > 0)
      expect(errorsOf(socket, sub)).toMatchObject([{ code: "read_only" }])
    }
    const events = await page(server, id, "events")
    expect(events.slice(-2)).toEqual(["event: error", expect.stringContaining('"code":"read_only"')])
  })
})
