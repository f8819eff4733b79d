// Goal: a client runs tools for a conversation: it is told of calls by runes, answers once, may go away and come back,
// and never leaves a turn stuck. Method: a running server with all its tools; plain sockets and the product's client.
import { describe, expect, it } from "vitest"
import { Client } from "#src/client/Client.ts"
import { remoteLimits } from "#src/tool/remote/RemoteToolLimits.ts"
import { type ExtendedServer, follow, useExtendedServers } from "../support/extended.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import type { Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
const payload = (rune: Json): Json => rune["payload"] as Json

const lookUp = { name: "look_up", description: "looks a word up", parameters: { type: "object" } }
const once = scenarios({ look: [step(1, use("look_up", { word: "rune" })), step(2, say("done"))] })
const twice = scenarios({
  look: [step(1, use("look_up", { word: "rune" }), use("look_up", { word: "log" })), step(2, say("done"))]
})

const start = async (server: ExtendedServer, socket: Socket, mode = "full_access"): Promise<string> =>
  follow(server, socket, { model: "scripted/look", policy: { mode } })

const post = (socket: Socket, id: string): Promise<Json> =>
  socket.ok("message.post", { conversation_id: id, content: "go" })

const callIdOf = async (socket: Socket, times = 1): Promise<string> =>
  String(payload(await socket.rune("tool.started", times))["call_id"])

describe("a tool that a client runs", { timeout: 30_000 }, () => {
  it("is offered, called by a rune, and its result ends the call", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    expect(await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })).toMatchObject({
      tools: ["look_up"],
      waiting: []
    })
    await post(socket, id)
    expect(payload(await socket.rune("tool.call"))).toMatchObject({
      tool_name: "look_up",
      provenance: "remote",
      mutating: true,
      effect_class: "effect",
      arguments: { word: "rune" }
    })
    const call_id = await callIdOf(socket)
    const answered = await socket.ok("tool.result", { conversation_id: id, call_id, output: "a secret sign" })
    const result = await socket.rune("tool.result")
    expect(payload(result)).toMatchObject({ call_id, status: "success", output: "a secret sign" })
    expect(Number(answered["event_id"])).toBeGreaterThanOrEqual(Number(result["event_id"]))
    await socket.rune("turn.completed")
  })

  it("goes through approvals like any other, and the edited arguments are what runs", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
    const id = await start(server, socket, "auto")
    const inputs: Array<unknown> = []
    const registered = await client.tools.register(id, [
      {
        ...lookUp,
        run: (input) => {
          inputs.push(input)
          return "found"
        }
      }
    ])
    await post(socket, id)
    await socket.rune("tool.approval_requested")
    const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
    await socket.ok("approval.approve", {
      conversation_id: id,
      call_id: items[0]!["call_id"],
      scope: "once",
      arguments_hash: items[0]!["arguments_hash"],
      arguments: { word: "saga" }
    })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ status: "success", output: "found" })
    expect(inputs).toEqual([{ word: "saga" }])
    await registered.close()
    await client.close()
  })

  it("takes its result once, from the connection that registered it alone", async () => {
    const server = await servers.open({
      scenarios: once,
      tokens: [{ name: "ada", role: "operator", token: "ada-ada-ada-ada-ada-ada" }]
    })
    const socket = await server.connect()
    const id = await start(server, socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    const stranger = await server.connect("ada-ada-ada-ada-ada-ada")
    const sibling = await server.connect()
    expect(await stranger.error("tool.register", { conversation_id: id, tools: [lookUp] })).toMatchObject({
      code: "invalid_state"
    })
    await post(socket, id)
    const call_id = await callIdOf(socket)
    const answer = { conversation_id: id, call_id, output: "mine" }
    expect((await stranger.error("tool.result", answer)).code).toBe("unauthorized")
    expect((await sibling.error("tool.result", answer)).code).toBe("unauthorized")
    await socket.ok("tool.result", answer)
    expect((await socket.error("tool.result", { ...answer, output: "another" })).code).toBe("already_decided")
    await socket.ok("tool.result", answer)
    await socket.rune("turn.completed")
    expect(socket.runes().filter(({ kind }) => kind === "tool.result")).toHaveLength(1)
    expect((await socket.error("tool.result", { ...answer, call_id: "call_99" })).code).toBe("not_found")
  })

  it("of a client that is away is answered for by nobody who has not registered it again", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    const owner = await server.connect()
    await owner.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    const answer = { conversation_id: id, call_id: await callIdOf(socket), output: "not mine" }
    await owner.close()
    const sibling = await server.connect()
    // Whether the server has noticed that the owner is gone or not: the answer is a no.
    expect((await sibling.error("tool.result", answer)).code).toMatch(/^(invalid_state|unauthorized)$/)
    await sibling.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await sibling.ok("tool.result", { ...answer, output: "mine now" })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ output: "mine now" })
  })

  it("that is allowed for longer is asked about again once it is defined otherwise", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket, "auto")
    const questions = () => socket.runes().filter(({ kind }) => kind === "tool.approval_requested")
    const asked = async (times: number): Promise<Json> => {
      await socket.rune("tool.approval_requested", times)
      const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
      return items[0]!
    }
    const allow = (item: Json, scope: string): Promise<Json> => {
      const { arguments_hash, call_id } = item
      return socket.ok("approval.approve", { conversation_id: id, call_id, scope, arguments_hash })
    }
    const finish = async (turns: number): Promise<void> => {
      const call_id = await callIdOf(socket, turns)
      await socket.ok("tool.result", { conversation_id: id, call_id, output: "x" })
      await socket.rune("turn.completed", turns)
    }
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    const first = await asked(1)
    expect(first["shown_as"]).toMatchObject({ origin: "a client of local", definition: expect.any(String) })
    await allow(first, "session")
    await finish(1)
    // The same again asks nobody, although it may take longer.
    await socket.ok("tool.register", { conversation_id: id, tools: [{ ...lookUp, timeout_ms: 60_000 }] })
    await post(socket, id)
    await finish(2)
    expect(questions()).toHaveLength(1)
    const others = [
      { ...lookUp, description: "looks a word up and sends it home" },
      { ...lookUp, parameters: { type: "object", properties: { secret: { type: "string" } } } },
      { ...lookUp, mutating: false }
    ]
    for (const [at, other] of others.entries()) {
      await socket.ok("tool.register", { conversation_id: id, tools: [other] })
      await post(socket, id)
      await allow(await asked(at + 2), "once")
      await finish(at + 3)
    }
  })

  it("that becomes another one after its call was approved does not answer for that call", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket, "auto")
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    await socket.rune("tool.approval_requested")
    const { items } = (await socket.ok("approval.list", { conversation_id: id })) as { items: ReadonlyArray<Json> }
    await socket.ok("tool.register", { conversation_id: id, tools: [{ ...lookUp, description: "another" }] })
    const { arguments_hash, call_id } = items[0]!
    await socket.ok("approval.approve", { conversation_id: id, call_id, scope: "once", arguments_hash })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({
      status: "error",
      error: { code: "tool_changed" }
    })
  })

  it("is refused with the reason when it is no tool, or the name is taken", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    const refused = async (tools: ReadonlyArray<unknown>) =>
      (await socket.error("tool.register", { conversation_id: id, tools })).code
    expect(await refused([{ name: "bash" }])).toBe("invalid_state")
    for (const name of ["github__search", "mcp__github__search", "a__", "__a"])
      expect(await refused([{ name }]), name).toBe("invalid_state")
    expect(await refused([{ name: "no spaces" }])).toBe("bad_request")
    expect(await refused([{ name: "a" }, { name: "a" }])).toBe("bad_request")
    expect(await refused([{ name: "a", parameters: { type: "string" } }])).toBe("bad_request")
    expect(await refused([{ name: "a", mutates: true }])).toBe("bad_request")
    expect(await refused(Array.from({ length: 129 }, (_, at) => ({ name: `t${at}` })))).toBe("bad_request")
    expect((await socket.error("tool.register", { conversation_id: "conv_00000000", tools: [] })).code).toBe(
      "not_found"
    )
    const rpc = await fetch(`${server.url}/v1/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.token}` },
      body: JSON.stringify({ id: "1", op: "tool.register", conversation_id: id, tools: [lookUp] })
    })
    expect(await rpc.json()).toMatchObject({ error: { code: "bad_request" } })
  })

  it("fails to the model when its client says so", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    const call_id = await callIdOf(socket)
    await socket.ok("tool.result", { conversation_id: id, call_id, status: "error", output: "no such word" })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({
      status: "error",
      error: { code: "remote_tool_failed", message: "no such word" }
    })
    await socket.rune("turn.completed")
  })

  it("whose client goes away is waited for, and its waiting calls are taken up after it comes back", async () => {
    const server = await servers.open({ scenarios: twice })
    const watcher = await server.connect()
    const id = await start(server, watcher)
    const first = await server.connect()
    await first.ok("tool.register", { conversation_id: id, tools: [{ ...lookUp, mutating: false }] })
    await post(watcher, id)
    const calls = [await callIdOf(watcher), await callIdOf(watcher, 2)]
    await first.close()
    const second = await server.connect()
    const { waiting } = (await second.ok("tool.register", {
      conversation_id: id,
      tools: [{ ...lookUp, mutating: false }]
    })) as { waiting: ReadonlyArray<Json> }
    expect(waiting.map(({ call_id }) => call_id).sort()).toEqual(calls.sort())
    expect(waiting[0]).toMatchObject({ tool_name: "look_up", attempt: 1 })
    for (const call_id of calls) await second.ok("tool.result", { conversation_id: id, call_id, output: "back" })
    await watcher.rune("turn.completed")
    const results = watcher.runes().filter(({ kind }) => kind === "tool.result")
    expect(results.map((rune) => payload(rune)["status"])).toEqual(["success", "success"])
  })

  it("whose client does not come back ends its calls, and the turn goes on", async () => {
    const server = await servers.open({ scenarios: once, returnWithinMs: 200 })
    const watcher = await server.connect()
    const id = await start(server, watcher)
    const gone = await server.connect()
    await gone.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(watcher, id)
    await callIdOf(watcher)
    await gone.close()
    expect(payload(await watcher.rune("tool.result"))).toMatchObject({
      status: "unknown",
      error: { code: "client_gone" }
    })
    await watcher.rune("turn.completed")
    expect(remoteLimits.returnWithinMs).toBe(30_000)
  })

  it("that takes too long ends in a timeout, and a result that comes after it is refused", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [{ ...lookUp, timeout_ms: 100 }] })
    await post(socket, id)
    const call_id = await callIdOf(socket)
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ status: "timeout" })
    const late = await socket.error("tool.result", { conversation_id: id, call_id, output: "late" })
    expect(late).toMatchObject({ code: "already_decided", data: { outcome: { status: "timeout" } } })
    await socket.rune("turn.completed")
  })

  it("is withdrawn by an empty list, which ends its open calls", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const id = await start(server, socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    await callIdOf(socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [] })
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ error: { code: "client_gone" } })
    await socket.rune("turn.completed")
  })
})

describe("the client's tools", { timeout: 60_000 }, () => {
  it("stay registered when the server is restarted, and a call that can be repeated goes on there", async () => {
    const dataDirectory = servers.directory()
    const workspace = servers.directory()
    const first = await servers.open({ scenarios: once, dataDirectory }, workspace)
    let url = first.url
    const client = await Client.connect({ endpoint: async () => ({ url, token: first.token }), random: () => 0 })
    const socket = await first.connect()
    const id = await start(first, socket)
    const attempts: Array<number> = []
    const { promise: isRunning, resolve: running } = Promise.withResolvers<void>()
    const registered = await client.tools.register(id, [
      {
        ...lookUp,
        effect_class: "idempotent",
        run: async (_input, { attempt, signal }) => {
          attempts.push(attempt)
          running()
          if (attempt === 1) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
          return `attempt ${attempt}`
        }
      }
    ])
    await post(socket, id)
    await isRunning
    await first.close()
    const second = await servers.open({ scenarios: once, dataDirectory }, workspace)
    url = second.url
    const watcher = await second.connect()
    await watcher.ok("subscribe", { conversation_id: id })
    expect(payload(await watcher.rune("tool.result"))).toMatchObject({ status: "success", output: "attempt 2" })
    await watcher.rune("turn.completed")
    expect(attempts).toEqual([1, 2])
    await registered.close()
    await client.close()
  })

  it("of the kind that must not run twice run on while the server is away, and their result is taken", async () => {
    const dataDirectory = servers.directory()
    const workspace = servers.directory()
    const first = await servers.open({ scenarios: once, dataDirectory }, workspace)
    let url = first.url
    const client = await Client.connect({ endpoint: async () => ({ url, token: first.token }), random: () => 0 })
    const socket = await first.connect()
    const id = await start(first, socket)
    const started = Promise.withResolvers<void>()
    const paid = Promise.withResolvers<string>()
    const attempts: Array<number> = []
    const run = (_input: unknown, { attempt }: { readonly attempt: number }): Promise<string> => {
      attempts.push(attempt)
      started.resolve()
      return paid.promise
    }
    const registered = await client.tools.register(id, [{ ...lookUp, run }])
    await post(socket, id)
    await started.promise
    await first.close()
    const second = await servers.open({ scenarios: once, dataDirectory }, workspace)
    url = second.url
    await second.recovered
    paid.resolve("paid once")
    const watcher = await second.connect()
    await watcher.ok("subscribe", { conversation_id: id, after: 0 })
    expect(payload(await watcher.rune("tool.result"))).toMatchObject({ status: "success", output: "paid once" })
    await watcher.rune("turn.completed")
    expect(attempts).toEqual([1])
    expect(watcher.runes().filter(({ kind }) => kind === "tool.started")).toHaveLength(1)
    await registered.close()
    await client.close()
  })

  it("that do not come back after a restart end with an unknown outcome in words, once", async () => {
    const dataDirectory = servers.directory()
    const workspace = servers.directory()
    const first = await servers.open({ scenarios: once, dataDirectory }, workspace)
    const socket = await first.connect()
    const id = await start(first, socket)
    await socket.ok("tool.register", { conversation_id: id, tools: [lookUp] })
    await post(socket, id)
    await callIdOf(socket)
    await first.close()
    const second = await servers.open({ scenarios: once, dataDirectory, returnWithinMs: 200 }, workspace)
    const watcher = await second.connect()
    await watcher.ok("subscribe", { conversation_id: id, after: 0 })
    expect(payload(await watcher.rune("tool.result"))).toMatchObject({ error: { code: "client_gone" } })
    await watcher.rune("turn.completed")
    expect(watcher.runes().filter(({ kind }) => kind === "tool.result")).toHaveLength(1)
  })

  it("give the model the message of what they throw", async () => {
    const server = await servers.open({ scenarios: once })
    const socket = await server.connect()
    const client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
    const id = await start(server, socket)
    await client.tools.register(id, [
      {
        ...lookUp,
        run: () => {
          throw new Error("the book is lost")
        }
      }
    ])
    await post(socket, id)
    expect(payload(await socket.rune("tool.result"))).toMatchObject({ status: "error", output: "the book is lost" })
    await client.close()
  })

  it("that the server does not want are refused to the one who registers them", async () => {
    const server = await servers.open({ scenarios: once })
    const client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
    const socket = await server.connect()
    const id = await start(server, socket)
    await expect(client.tools.register(id, [{ name: "bash", run: () => "" }])).rejects.toMatchObject({
      code: "invalid_state"
    })
    const registered = await client.tools.register(id, [{ name: "mine", run: () => "" }])
    await expect(client.tools.register(id, [{ name: "more", run: () => "" }])).rejects.toMatchObject({
      code: "invalid_state"
    })
    await registered.close()
    const again = await client.tools.register(id, [{ name: "more", run: () => "" }])
    await again.close()
    await client.close()
  })
})
