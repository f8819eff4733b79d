// Goal: images and files reach the model, from people, tools and MCP servers, in all three wire formats, and nothing of
// them lies in the log. Method: a server with everything people get, models behind a server that keeps the bodies, a real
// MCP server that sends an image; what arrives is compared byte for byte with what was given.
import { readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mediaLimits } from "#src/rune/Media.ts"
import { commandOn } from "../support/cli.ts"
import { type ExtendedServer, follow, node, useExtendedServers } from "../support/extended.ts"
import { gif, jpeg, pdf, png, webp } from "../support/media.ts"
import { type Answer, plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import {
  type ProviderServer,
  serverKey,
  startProviderServer,
  type WireFormat,
  type WireRequest
} from "../support/provider-server/Server.ts"
import { startProcess } from "../support/server/Process.ts"
import type { Json, Socket } from "../support/server/Socket.ts"

const servers = useExtendedServers()
let models: ProviderServer
beforeAll(async () => {
  models = await startProviderServer()
})
afterAll(() => models.close())

const everything = realpathSync(
  join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js")
)
const mcpServers = {
  everything: { command: [node, everything, "stdio"], readable: [join(import.meta.dirname, "../../node_modules")] }
}

const providers = () =>
  ({
    responses: { adapter: "openai-responses", baseUrl: `${models.url}/v1`, keyVariable: "TEST_KEY" },
    chat: { adapter: "openai-chat", baseUrl: `${models.url}/v1`, keyVariable: "TEST_KEY" },
    messages: { adapter: "anthropic", baseUrl: models.url, keyVariable: "TEST_KEY" }
  }) as const

const rows = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

interface Shown {
  /** `user`, or the call whose result it is part of. */
  readonly by: string
  readonly kind: "image" | "file"
  readonly data: string
}

const plainData = (url: unknown): string => String(url).replace(/^data:[^,]*,/, "")

/** Images and files of a request, by the documented shapes of its format. */
const shownIn: { readonly [F in WireFormat]: (body: Json) => ReadonlyArray<Shown> } = {
  responses: (body) =>
    rows(body["input"]).flatMap((item) => {
      const isOutput = item["type"] === "function_call_output"
      return rows(isOutput ? item["output"] : item["content"]).flatMap((part): ReadonlyArray<Shown> => {
        const by = isOutput ? String(item["call_id"]) : String(item["role"])
        if (part["type"] === "input_image") return [{ by, kind: "image", data: plainData(part["image_url"]) }]
        return part["type"] === "input_file" ? [{ by, kind: "file", data: plainData(part["file_data"]) }] : []
      })
    }),
  chat: (body) =>
    rows(body["messages"]).flatMap((message) =>
      rows(message["content"]).flatMap((part): ReadonlyArray<Shown> => {
        const by = String(message["role"])
        if (part["type"] === "image_url") {
          return [{ by, kind: "image", data: plainData((part["image_url"] as Json)["url"]) }]
        }
        return part["type"] === "file"
          ? [{ by, kind: "file", data: plainData((part["file"] as Json)["file_data"]) }]
          : []
      })
    ),
  messages: (body) =>
    rows(body["messages"]).flatMap((message) =>
      rows(message["content"]).flatMap((block) => {
        const isResult = block["type"] === "tool_result"
        const by = isResult ? String(block["tool_use_id"]) : String(message["role"])
        return (isResult ? rows(block["content"]) : [block]).flatMap((part): ReadonlyArray<Shown> => {
          const source = (part["source"] ?? {}) as Json
          const data = String(source["data"] ?? source["url"])
          if (part["type"] === "image") return [{ by, kind: "image", data }]
          return part["type"] === "document" ? [{ by, kind: "file", data }] : []
        })
      })
    )
}

const shown = ({ body, format }: WireRequest): ReadonlyArray<Shown> => shownIn[format](body as Json)

const expectNoBytesInLog = async (
  server: ExtendedServer,
  socket: Socket,
  given: ReadonlyArray<Buffer>
): Promise<void> => {
  const text = JSON.stringify(socket.runes())
  for (const bytes of given) expect(text.includes(bytes.toString("base64").slice(0, 60))).toBe(false)
  await server.close()
}

describe.each(formats)("over $name", { timeout: 60_000 }, (format) => {
  const model = `${format.name}/test-model`
  const call = (name: string, args: object): Answer => ({
    ...plainAnswer,
    calls: [{ id: "call_1", name, arguments: JSON.stringify(args) }],
    stop: "calls"
  })
  const first = (answer: Answer): void =>
    models.respond((_, index) => ({ body: format.stream(index === 0 ? answer : plainAnswer) }))
  const open = (options: { readonly sees?: boolean; readonly mcp?: boolean } = {}) =>
    servers.open({
      ...(options.mcp === true ? { mcpServers } : {}),
      providers: providers(),
      key: () => serverKey,
      model,
      models: options.sees === false ? {} : { [model]: { images: true, files: true, contextTokens: 200_000 } }
    })
  const upload = async (server: ExtendedServer, bytes: Buffer): Promise<Json> => {
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/octet-stream" }
    const response = await fetch(`${server.url}/v1/blobs`, { method: "POST", headers, body: new Uint8Array(bytes) })
    expect(response.status).toBe(201)
    return (await response.json()) as Json
  }

  it("what a person attaches arrives byte for byte, and what it is is read from its bytes", async () => {
    first(plainAnswer)
    const server = await open()
    const socket = await server.connect()
    const id = await follow(server, socket)
    const large = png(600, 7)
    const blob = await upload(server, large)
    expect(blob).toMatchObject({ bytes: large.length, media_type: "image/png" })
    await socket.ok("message.post", {
      conversation_id: id,
      content: [
        { type: "text", text: "look" },
        { type: "image", media_type: "image/gif", data: jpeg.toString("base64") },
        { type: "image", blob },
        { type: "file", name: "picture.txt", data: webp.toString("base64") },
        { type: "file", name: "paper", data: pdf.toString("base64") },
        { type: "file", name: "notes.md", text: "remember the milk" },
        { type: "file", name: "data.bin", data: Buffer.from("plain words").toString("base64") }
      ]
    })
    await socket.rune("turn.completed")
    expect(shown(models.requests[0]!)).toEqual([
      { by: "user", kind: "image", data: jpeg.toString("base64") },
      { by: "user", kind: "image", data: large.toString("base64") },
      { by: "user", kind: "image", data: webp.toString("base64") },
      { by: "user", kind: "file", data: pdf.toString("base64") }
    ])
    const { bodyText } = models.requests[0]!
    for (const words of ["look", "remember the milk", "plain words", "notes.md"]) expect(bodyText).toContain(words)
    expect(bodyText).toContain("image/jpeg")
    expect(bodyText).not.toContain("[image")
    await expectNoBytesInLog(server, socket, [jpeg, large, webp, pdf])
  })

  it("an image that a tool reads arrives with the result of its call, and again in later turns", async () => {
    first(call("read_file", { path: "shot.txt" }))
    const server = await open()
    writeFileSync(join(server.workspace, "shot.txt"), gif)
    const socket = await server.connect()
    const id = await follow(server, socket)
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    await socket.ok("message.post", { conversation_id: id, content: "and now" })
    await socket.rune("turn.completed", 2)
    const by = format.name === "chat" ? "user" : "call_1"
    const expected = [{ by, kind: "image", data: gif.toString("base64") }]
    expect(models.requests.map(shown)).toEqual([[], expected, expected])
    expect((await socket.rune("tool.result"))["payload"]).toMatchObject({
      status: "success",
      attachments: [{ type: "image", media_type: "image/gif", blob: { bytes: gif.length } }]
    })
    await expectNoBytesInLog(server, socket, [gif])
  })

  it("an image of a real MCP server arrives with the result of its call", async () => {
    first(call("everything__get-tiny-image", {}))
    const server = await open({ mcp: true })
    const socket = await server.connect()
    const id = await follow(server, socket, { policy: { mode: "full_access" } })
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    const [image] = shown(models.requests[1]!)
    expect(image).toMatchObject({ kind: "image" })
    expect(Buffer.from(image!.data, "base64").subarray(0, 4).toString("hex")).toBe("89504e47")
    await expectNoBytesInLog(server, socket, [Buffer.from(image!.data, "base64")])
  })

  it("a model that cannot see refuses the message, and is told in words what a tool shows", async () => {
    first(call("read_file", { path: "shot.png" }))
    const server = await open({ sees: false })
    writeFileSync(join(server.workspace, "shot.png"), png())
    const socket = await server.connect()
    const id = await follow(server, socket)
    const attached = [
      ["images", { type: "image", data: png().toString("base64") }],
      ["images", { type: "file", name: "a", data: png().toString("base64") }],
      ["images", { type: "image", url: "https://example.com/a.png" }],
      ["files", { type: "file", name: "a.pdf", data: pdf.toString("base64") }]
    ] as const
    for (const [needs, part] of attached) {
      const { error } = await socket.ask("message.post", { conversation_id: id, content: [part] })
      expect(error).toMatchObject({ code: "bad_request", data: { reason: "model_cannot_see", model, needs } })
      expect(error?.message).toContain(`${model} cannot be shown ${needs}`)
    }
    expect(socket.runes().some(({ kind }) => kind === "turn.started")).toBe(false)
    await socket.ok("message.post", { conversation_id: id, content: "go" })
    await socket.rune("turn.completed")
    expect(shown(models.requests[1]!)).toEqual([])
    expect(models.requests[1]!.bodyText).toContain("this model cannot see images")
  })

  it("an image that the provider refuses is left out of the next try, and of every later turn", async () => {
    const refusal = format.errorBody("Could not process image", "too_long").replaceAll("context_length_exceeded", "bad")
    models.respond((request) =>
      shown(request).length > 0
        ? { status: 400, headers: { "content-type": "application/json" }, body: refusal }
        : { body: format.stream(plainAnswer) }
    )
    const server = await open()
    const socket = await server.connect()
    const id = await follow(server, socket)
    const content = [
      { type: "text", text: "look" },
      { type: "image", data: png().toString("base64") }
    ]
    await socket.ok("message.post", { conversation_id: id, content })
    await socket.rune("turn.completed")
    await socket.ok("message.post", { conversation_id: id, content: "and now" })
    await socket.rune("turn.completed", 2)
    expect(models.requests.map((request) => shown(request).length)).toEqual([1, 0, 0])
    expect(models.requests[1]!.bodyText).toContain("the provider refused it")
    expect((await socket.rune("turn.retry_scheduled"))["payload"]).toMatchObject({ error_type: "attachment_refused" })
  })

  it("an image whose bytes are gone is told of, and the newest of many are shown", async () => {
    first(plainAnswer)
    const server = await open()
    const socket = await server.connect()
    const id = await follow(server, socket)
    const many = Array.from({ length: 25 }, (_, at) => png(4, at))
    for (const [turn, bytes] of many.entries()) {
      const content = [{ type: "image", data: bytes.toString("base64") }]
      await socket.ok("message.post", { conversation_id: id, content })
      await socket.rune("turn.completed", turn + 1)
    }
    const last = shown(models.requests.at(-1)!).map(({ data }) => data)
    expect(last).toEqual(many.slice(5).map((bytes) => bytes.toString("base64")))
    expect(models.requests.at(-1)!.bodyText.match(/no longer shown/g)).toHaveLength(5)
    rmSync(join(server.dataDirectory, "blobs"), { recursive: true })
    await socket.ok("message.post", { conversation_id: id, content: "go on" })
    await socket.rune("turn.completed", 26)
    expect(shown(models.requests.at(-1)!)).toEqual([])
    expect(models.requests.at(-1)!.bodyText).toContain("can no longer be read")
  })
})

describe("an attachment", { timeout: 60_000 }, () => {
  const wrong: ReadonlyArray<readonly [name: string, part: Json, words: string]> = [
    ["that is no base64", { type: "image", data: "not base64!" }, "not base64"],
    ["without bytes", { type: "image" }, "has no data"],
    ["that is no image", { type: "image", data: Buffer.from("words").toString("base64") }, "attach it as a file"],
    [
      "that is an archive",
      { type: "file", name: "a.png", data: Buffer.from("504b0304aabb00", "hex").toString("base64") },
      "application/zip"
    ],
    ["that was never uploaded", { type: "image", blob: { sha256: "0".repeat(64) } }, "upload it first"],
    ["at an address without TLS", { type: "image", url: "http://127.0.0.1/a.png" }, "https"],
    ["inside of an address", { type: "image", url: "data:image/png;base64,AAAA" }, "https"]
  ]

  it.each(wrong)("%s is refused with what is wrong", async (_, part, words) => {
    const server = await servers.open()
    const socket = await server.connect()
    const id = await follow(server, socket)
    const { error } = await socket.ask("message.post", { conversation_id: id, content: [part] })
    expect(error).toMatchObject({ code: "bad_request", message: expect.stringContaining(words) })
  })

  it("too large or too many are refused, and so is an upload by somebody who only looks", async () => {
    const server = await servers.open({ tokens: [{ name: "eve", role: "viewer", token: "v".repeat(32) }] })
    const socket = await server.connect()
    const id = await follow(server, socket)
    const send = (bytes: Buffer, token = server.token) =>
      fetch(`${server.url}/v1/blobs`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: new Uint8Array(bytes)
      })
    const large = Buffer.concat([png(), Buffer.alloc(mediaLimits.imageBytesMax)])
    const blob = (await (await send(large)).json()) as Json
    const ask = (content: unknown) => socket.ask("message.post", { conversation_id: id, content })
    expect((await ask([{ type: "image", blob }])).error).toMatchObject({ data: { limit: mediaLimits.imageBytesMax } })
    const one = { type: "image", data: png().toString("base64") }
    const many = Array.from({ length: mediaLimits.perMessageMax + 1 }, () => one)
    expect((await ask(many)).error).toMatchObject({ data: { limit: mediaLimits.perMessageMax } })
    expect((await send(png(), "v".repeat(32))).status).toBe(401)
    expect((await send(Buffer.alloc(0))).status).toBe(400)
    const beyond = await send(Buffer.alloc(mediaLimits.fileBytesMax + 1)).catch(() => undefined)
    expect([429, undefined]).toContain(beyond?.status)
  })

  it("is sent along by the command line", async () => {
    const data = servers.directory()
    const workspace = servers.directory()
    const server = await startProcess(data)
    const path = join(workspace, "shot.png")
    writeFileSync(path, png(900, 3))
    writeFileSync(join(workspace, "notes.txt"), "remember the milk")
    const echs = commandOn(data, { cwd: workspace })
    const begin = ["send", "--new", "--wait", "--model", "scripted/echo", "look"]
    const sent = echs([...begin, "--image", path, "--file", "notes.txt", "--json"])
    expect(sent).toMatchObject({ code: 0 })
    const id = JSON.parse(sent.stdout)["conversation_id"]
    const shownRunes = echs(["export", id]).stdout
    expect(shownRunes).toContain('"media_type":"image/png"')
    expect(shownRunes).toContain("remember the milk")
    expect(shownRunes).not.toContain(readFileSync(path).toString("base64").slice(0, 60))
    expect(echs(["send", id, "look", "--image", "nowhere.png"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("nowhere.png")
    })
    expect(echs(["send", id, "look", "--image", "notes.txt"]).stderr).toContain("attach it as a file")
    await server.end("SIGTERM")
  })
})
