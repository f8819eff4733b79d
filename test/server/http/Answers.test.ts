// Goal: every answer over HTTP stays as recorded: status, headers in their order, body; errors, wrong methods, wrong
// tokens, foreign origins and odd addresses included. Method: the real server, requests written by hand. What differs
// from run to run (ids, times, hashes) is replaced. A wanted change: record it with ECHS_RECORD=1.
import { readFileSync, writeFileSync } from "node:fs"
import { Agent, type IncomingMessage, request } from "node:http"
import { expect, test } from "vitest"
import { mediaLimits } from "#src/rune/Media.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { type TestServer, useServers } from "../../support/server/TestServer.ts"

const golden = new URL("./answers.golden.txt", import.meta.url)
const origin = "https://app.example.org"
const viewerToken = "a-token-of-somebody-who-only-looks"
const { open } = useServers()

interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Sent without a content-length. */
  readonly chunked?: boolean
  /** `null`: no token at all. */
  readonly token?: string | null
  /** Enough of a stream that does not end. */
  readonly until?: string
}

const json = { "content-type": "application/json" }

/** Replaces what differs from run to run, by order of appearance. */
const makeSteady = () => {
  const names = new Map<string, string>()
  const named = (word: string, text: string): string => {
    if (!names.has(text)) names.set(text, `<${word} ${names.size + 1}>`)
    return names.get(text) as string
  }
  return (text: string): string =>
    text
      .replace(/\b(conv|agt|turn|run|req|msg|call|plan|task)_[0-9a-f]{8,}/g, (id, word: string) => named(word, id))
      .replace(/"(ticket|next_cursor)":"[^"]+"/g, (_, name: string) => `"${name}":"<${name}>"`)
      .replace(/\b[0-9a-f]{64}\b/g, (hash) => named("hash", hash))
      .replace(/\b[0-9a-f]{16}\b/g, (id) => named("id", id))
      .replace(/\b1[0-9]{12}\b/g, "<ms>")
      .replace(/^date: .*$/gim, "date: <date>")
      .replace(/127\.0\.0\.1:\d+/g, "<here>")
}

const read = (message: IncomingMessage, until?: string): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    message.on("data", (piece: Buffer) => {
      text += piece.toString("utf8")
      if (until !== undefined && text.includes(until)) {
        message.destroy()
        resolve(text)
      }
    })
    message.on("end", () => resolve(text))
    message.on("error", () => resolve(text))
  })

const headerLines = ({ rawHeaders }: IncomingMessage): ReadonlyArray<string> =>
  rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[at + 1]}`] : []))

const send = (server: TestServer, path: string, ask: Ask): Promise<string> =>
  new Promise((resolve, reject) => {
    const { body, chunked = false, headers = {}, method = "GET", token = server.token, until } = ask
    const agent = new Agent({ keepAlive: true })
    const length = body === undefined || chunked ? {} : { "content-length": String(Buffer.byteLength(body)) }
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` }
    const { hostname, port } = new URL(server.url)
    const sent = request({ agent, hostname, port, path, method, headers: { ...authorization, ...length, ...headers } })
    sent.on("response", async (message) => {
      const answered = `${message.statusCode} ${message.statusMessage}\n${headerLines(message).join("\n")}\n`
      const text = await read(message, until)
      agent.destroy()
      resolve(`${answered}\n${text}`)
    })
    // What is sent after the answer finds a closed socket.
    sent.on("error", (error) => (sent.destroyed || "code" in error ? undefined : reject(error)))
    sent.end(body)
  })

/** Everything that is asked, in order; ids come from earlier answers. */
const asked = async (server: TestServer): Promise<ReadonlyArray<readonly [title: string, path: string, Ask]>> => {
  const socket = await server.connect()
  const id = await socket.create({ title: "talk" })
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "hello" })
  await socket.rune("turn.completed")
  const rpc = (body: unknown, more: Ask = {}): readonly [string, string, Ask] => {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    return [`rpc ${text.slice(0, 120)}`, "/v1/rpc", { method: "POST", headers: json, body: text, ...more }]
  }
  const get = (path: string, more: Ask = {}): readonly [string, string, Ask] => [path, path, more]
  const create = (body: unknown, more: Ask = {}): readonly [string, string, Ask] => {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    const headers = { ...json, ...more.headers }
    return [`create ${text}`, "/v1/conversations", { method: "POST", body: text, ...more, headers }]
  }
  const upload = (body: string | Buffer, more: Ask = {}): readonly [string, string, Ask] => [
    `upload ${body.length}`,
    "/v1/blobs",
    { method: "POST", body, ...more }
  ]
  const here = `/v1/conversations/${id}`
  const paths = ["/healthz", "/metrics", "/v1/rpc", "/v1/tickets", "/v1/blobs", "/v1/conversations", here]
  const every = [...paths, `${here}/runes`, `${here}/events`, "/nothing", "/"]
  const methods = ["HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "PROPFIND"]
  const deep = "[".repeat(limits.messageDepthMax + 1) + "]".repeat(limits.messageDepthMax + 1)
  const preflight = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-private-network": "true"
  }
  return [
    ...every.map((path) => get(path, { token: null })),
    ...every.map((path) => get(path, { token: "wrong" })),
    ...every.flatMap((path) => methods.map((method) => get(path, { method }))),
    ...["/metrics", "/v1/conversations", here].map((path) => get(path, { method: "POST" })),
    ...["/v1/rpc", "/v1/tickets", "/v1/blobs", "/nothing", "/"].map((path) => get(path)),
    get("/healthz?x=1"),
    get("/healthz", { method: "POST", token: null }),
    get("/healthz/"),
    get("/metrics", { headers: { authorization: "Basic abc" } }),
    get("/metrics", { headers: { host: "elsewhere.example.org" } }),
    get("/metrics", { headers: { origin: "https://elsewhere.example.org" } }),
    get("/healthz", { headers: { origin } }),
    get("/metrics", { token: null, headers: { origin } }),
    get("/v1/rpc", { method: "OPTIONS", token: null, headers: preflight }),
    get("/v1/rpc", { method: "OPTIONS", headers: { origin } }),
    ...["/v1/../healthz", "http://elsewhere.example.org/metrics", "/metrics/", "/METRICS", "//metrics"].map((path) =>
      get(path)
    ),
    ...[
      "/%6Detrics",
      "/v1/conversations;x",
      "/v1/conversations/",
      "/v1/conversations/a%5Fb",
      "/v1/conversations/a;b"
    ].map((path) => get(path)),
    ...[
      "/v1/conversations/a%20b/runes",
      "/v1/conversations/a%zz",
      "/v1/conversations/%",
      "/nothing#x",
      "/v1/conversations/a/b/c"
    ].map((path) => get(path)),
    get(`/v1/conversations/${"x".repeat(80)}`),
    get(`/v1/conversations/${"x".repeat(81)}`),
    get(`/nothing/${"x".repeat(400)}`),
    rpc({ id: "9", op: "conversation.get", conversation_id: id }),
    rpc({ op: "conversation.get", conversation_id: id }),
    rpc({ id: "9", op: "conversation.resume", conversation_id: id }),
    rpc({ id: "9", op: "conversation.get", conversation_id: "conv_0000000000000000" }),
    rpc({ id: "9", op: "subscribe", conversation_id: id }),
    rpc({ id: "9", op: "no.such" }),
    rpc({ id: "9", op: 1 }),
    rpc({ id: 9, op: "stats" }),
    rpc({ id: "x".repeat(limits.idCharsMax + 1), op: "stats" }),
    rpc({ id: "9", op: "conversation.get", conversation_id: id, more: 1 }),
    rpc({ id: "9", op: "conversation.close", conversation_id: id }, { token: viewerToken }),
    rpc("{"),
    rpc("[]"),
    rpc(""),
    rpc(deep),
    rpc({ id: "9", op: "stats" }, { headers: { "content-type": "text/plain" } }),
    rpc({ id: "9", op: "stats" }, { headers: {} }),
    rpc(
      { id: "9", op: "conversation.get", conversation_id: id },
      { headers: { "content-type": "Application/JSON; charset=utf-8" } }
    ),
    rpc({ id: "9", op: "conversation.get", conversation_id: id }, { chunked: true }),
    rpc(`"${"x".repeat(limits.messageBytesMax)}"`),
    rpc(`"${"x".repeat(limits.messageBytesMax)}"`, { chunked: true }),
    ["ticket", "/v1/tickets", { method: "POST" }],
    ["ticket", "/v1/tickets", { method: "POST", token: viewerToken, body: "ignored" }],
    upload("some text of a file"),
    upload(Buffer.from([0, 1, 2, 255])),
    upload(""),
    upload("x", { token: viewerToken }),
    upload(Buffer.alloc(mediaLimits.fileBytesMax + 1)),
    create({ title: "x", labels: { team: "a" } }, { headers: { "idempotency-key": "one" } }),
    create({ title: "x", labels: { team: "a" } }, { headers: { "idempotency-key": "one" } }),
    create({ title: "y" }, { headers: { "idempotency-key": "one" } }),
    create({ title: "x", labels: { team: "a" }, idempotency_key: "one" }),
    create({ title: "x", op: "stats", id: "7" }, { headers: { "idempotency-key": "two" } }),
    create({ title: 1 }),
    create("{"),
    create({}, { token: viewerToken }),
    create({}, { headers: { "content-type": "text/html" } }),
    ...[
      "?q=talk",
      "?limit=1&q=talk",
      "?limit=ten",
      "?limit=",
      "?limit=0",
      "?limit=100000&q=talk",
      "?state=nonsense",
      "?label=team%3Da"
    ].map((query) => get(`/v1/conversations${query}`)),
    ...[
      "?nothing=1",
      "?state=closed&state=active&q=talk",
      "?id=7&op=stats&q=talk",
      "?q=talk&x",
      "?idempotency_key=a"
    ].map((query) => get(`/v1/conversations${query}`)),
    get(here),
    get(here, { token: viewerToken }),
    get(`${here}?nothing=1`),
    get("/v1/conversations/conv_0000000000000000"),
    get("/v1/conversations/nonsense"),
    ...["", "?after=2&limit=3", "?after=tail", "?visibility=public&limit=2", "?kinds=turn.started,turn.completed"].map(
      (query) => get(`${here}/runes${query}`)
    ),
    ...["?after=-1", "?after=x", "?after=99999", "?limit=0", "?limit=x", "?limit=", "?after="].map((query) =>
      get(`${here}/runes${query}`)
    ),
    get(`${here}/runes`, { token: viewerToken }),
    get("/v1/conversations/conv_0000000000000000/runes"),
    get(`${here}/events?kinds=turn.started`, { until: "caught_up" }),
    get(`${here}/events?after=tail`, { until: "caught_up" }),
    get(`${here}/events?view=state_events&kinds=turn.started`, { until: "caught_up" }),
    get(`${here}/events`, { headers: { "last-event-id": "5", origin }, until: "caught_up" }),
    get(`${here}/events`, { headers: { "last-event-id": "x" } }),
    ...["?view=nothing", "?after=99999", "?after=x"].map((query) => get(`${here}/events${query}`)),
    get("/v1/conversations/conv_0000000000000000/events"),
    get("/metrics"),
    get("/metrics?x=1", { token: viewerToken })
  ]
}

/** Of long answers and of the metrics only how they begin: what is in them belongs to the operations, and grows. */
const shortened = (path: string, answer: string): string => {
  const [head = "", body = ""] = answer.split(/\n\n(.*)/s)
  const shown = path.startsWith("/metrics") ? "# TYPE ".length : 100
  const isWhole = !head.startsWith("200") || (body.length < 400 && !path.startsWith("/metrics"))
  if (isWhole || !head.includes("content-length")) return answer
  return `${head.replace(/content-length: \d+/, "content-length: <n>")}\n\n${body.slice(0, shown)}…\n`
}

const record = async (server: TestServer): Promise<string> => {
  const steady = makeSteady()
  let text = ""
  for (const [title, path, ask] of await asked(server)) {
    const { headers = {}, method = "GET", token } = ask
    const who = token === null ? " no token" : token === undefined ? "" : ` token ${token.slice(0, 8)}`
    const named = `=== ${method} ${title.slice(0, 160)}${who} ${JSON.stringify(headers)}`
    text += steady(`${named}\n${shortened(path, await send(server, path, ask))}\n`)
  }
  return text
}

test("every answer over HTTP is byte for byte as recorded", async () => {
  const tokens = [{ name: "viewer", role: "viewer" as const, token: viewerToken }]
  const recorded = await record(await open({ origins: [origin], tokens }))
  if (process.env["ECHS_RECORD"] === "1") writeFileSync(golden, recorded)
  expect(recorded).toBe(readFileSync(golden, "utf8"))
})
