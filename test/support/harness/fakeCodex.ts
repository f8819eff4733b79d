// Stands in for Codex, with both of its halves: `app-server` answers clients that have the token and plays the turns of a
// recording, held up at each question until somebody answers it; anything else is the terminal, one more client of it.
import { readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { join } from "node:path"
import { WebSocket, WebSocketServer } from "ws"

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
}

const args = process.argv.slice(2)
const valueOf = (name: string): string => args[args.indexOf(name) + 1] ?? ""

if (args.includes("--version")) {
  process.stdout.write("codex-cli 0.166.0\n")
  process.exit(0)
}

const turns = (): Array<Array<Message>> => {
  const fixture = join(import.meta.dirname, "../../fixtures/harness/codex/app-server.jsonl")
  const all: Array<Array<Message>> = [[]]
  for (const line of readFileSync(fixture, "utf8").trim().split("\n")) {
    const { dir, m } = JSON.parse(line) as { readonly dir: string; readonly m: Message }
    if (dir !== "<" || m.method === undefined) continue
    all.at(-1)?.push(m)
    if (m.method === "turn/completed") all.push([])
  }
  return all
}

const serve = (): void => {
  if (process.env["FAKE_NO_SERVER"] === "1") process.exit(1)
  const token = readFileSync(valueOf("--ws-token-file"), "utf8")
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    verifyClient: ({ req }: { readonly req: IncomingMessage }) => req.headers.authorization === `Bearer ${token}`
  })
  const recorded = turns()
  let answered: (() => void) | undefined
  let open: Message | undefined
  let status: unknown = { type: "idle" }
  const thread = recorded[0]?.find((one) => one.method === "thread/started")
  const threadId = (thread?.params?.["thread"] as { readonly id: string } | undefined)?.id
  const tell = (message: Message): void => {
    for (const client of server.clients) client.send(JSON.stringify(message))
  }
  const play = async (): Promise<void> => {
    for (const message of recorded.shift() ?? []) {
      if (message.method === "thread/status/changed") status = message.params?.["status"]
      tell(message)
      if (message.id === undefined) continue
      open = message
      await new Promise<void>((resolve) => {
        answered = resolve
      })
      open = undefined
    }
  }
  const answers: Readonly<Record<string, () => unknown>> = {
    initialize: () => ({ userAgent: "fake" }),
    "thread/loaded/list": () => ({ data: [threadId] }),
    "thread/resume": () => ({ thread: { id: threadId, status, turns: [] } }),
    "turn/start": () => {
      void play()
      return {}
    }
  }
  server.on("connection", (client) => {
    client.on("message", (data) => {
      const { id, method, result } = JSON.parse(String(data)) as Message
      if (method === undefined && result !== undefined) answered?.()
      // Whoever begins to follow is asked what is open.
      if (method === "thread/resume" && open !== undefined) client.send(JSON.stringify(open))
      const answer = method === undefined ? undefined : answers[method]?.()
      if (id !== undefined && answer !== undefined) client.send(JSON.stringify({ id, result: answer }))
      // The terminal has begun its thread.
      if (method === "initialized" && thread !== undefined) client.send(JSON.stringify(thread))
    })
  })
  server.on("listening", () => {
    const { port } = server.address() as { readonly port: number }
    process.stderr.write(`codex app-server (WebSockets)\n  listening on: ws://127.0.0.1:${port}\n`)
  })
}

const show = (): void => {
  const remote = args.includes("--remote") ? valueOf("--remote") : undefined
  process.stdin.resume()
  if (remote === undefined) {
    process.stdout.write("\u001b]7501;state=idle:app=codex\u001b\\ALONE\r\n")
    return
  }
  const authorization = `Bearer ${process.env[valueOf("--remote-auth-token-env")]}`
  const socket = new WebSocket(remote, { headers: { authorization } })
  socket.on("open", () => process.stdout.write(`CONNECTED ${remote}\r\n`))
  socket.on("close", () => process.exit(1))
  socket.on("error", () => process.exit(1))
}

if (args[0] === "app-server") serve()
else show()
