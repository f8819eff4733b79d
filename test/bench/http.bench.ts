// What a request over HTTP costs beside a bare node:http server: the health check, an operation, a page of runes, and a
// route of the router. Requests a second depend on who else is at work; the CPU time of the server does not.
// BENCH_SECONDS and BENCH_ROUNDS shorten or lengthen it.
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { Agent, type IncomingMessage, request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import type { Bench, Row } from "./Bench.ts"
import { token } from "./fanout/openDoor.ts"
import type { Report } from "./http/server.ts"
import { median, watchOthers } from "./runelog/sampling.ts"
import { positive } from "./runelog/settings.ts"

const connections = 16

interface Call {
  readonly name: string
  readonly port: number
  readonly path: string
  readonly method?: string
  readonly body?: string
}

interface Sample {
  readonly perSecond: number
  readonly cpuMicroseconds: number
}

const next = async <T extends Report["type"]>(child: ChildProcess, type: T) => {
  const [report] = (await once(child, "message")) as [Report]
  if (report.type !== type) throw new Error(`${report.type} where ${type} was expected`)
  return report as Extract<Report, { readonly type: T }>
}

const cpuOf = async (child: ChildProcess): Promise<number> => {
  child.send("cpu")
  return (await next(child, "cpu")).microseconds
}

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const piece of message) text += String(piece)
  return text
}

const send = (agent: Agent, { body, method = "GET", path, port }: Omit<Call, "name">): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    }
    const sent = request({ agent, host: "127.0.0.1", port, path, method, headers }, (message) => {
      if (message.statusCode !== 200 && message.statusCode !== 201)
        reject(new Error(`${method} ${path}: ${message.statusCode}`))
      textOf(message).then(resolve, reject)
    })
    sent.on("error", reject)
    sent.end(body)
  })

const sample = async (child: ChildProcess, call: Call, seconds: number): Promise<Sample> => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const cpuBefore = await cpuOf(child)
  const startedMs = performance.now()
  let count = 0
  const lane = async (): Promise<void> => {
    while (performance.now() - startedMs < seconds * 1_000) {
      await send(agent, call)
      count += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const elapsedSeconds = (performance.now() - startedMs) / 1_000
  const cpuMicroseconds = ((await cpuOf(child)) - cpuBefore) / count
  agent.destroy()
  return { perSecond: count / elapsedSeconds, cpuMicroseconds }
}

/** A conversation with one finished turn of some sixty runes. */
const talked = async (port: number): Promise<string> => {
  const agent = new Agent({ keepAlive: true })
  const created = await send(agent, { port, path: "/v1/conversations", method: "POST", body: "{}" })
  const { conversation_id: id } = JSON.parse(created) as { readonly conversation_id: string }
  const body = JSON.stringify({ id: "1", op: "message.post", conversation_id: id, content: "go" })
  await send(agent, { port, path: "/v1/rpc", method: "POST", body })
  const ended = { port, path: `/v1/conversations/${id}/runes?kinds=turn.completed` }
  while ((await send(agent, ended)) === "") await sleep(20)
  agent.destroy()
  return id
}

const callsOf = (port: number, barePort: number, id: string): ReadonlyArray<Call> => [
  { name: "bare node:http", port: barePort, path: "/healthz" },
  { name: "GET /healthz", port, path: "/healthz" },
  {
    name: "POST /v1/rpc, conversation.get",
    port,
    path: "/v1/rpc",
    method: "POST",
    body: JSON.stringify({ id: "1", op: "conversation.get", conversation_id: id })
  },
  { name: "GET /v1/conversations/:id", port, path: `/v1/conversations/${id}` },
  { name: "GET /v1/conversations/:id/runes", port, path: `/v1/conversations/${id}/runes` },
  { name: "POST /v1/tickets", port, path: "/v1/tickets", method: "POST" }
]

const rowsOf = (calls: ReadonlyArray<Call>, samples: ReadonlyMap<Call, ReadonlyArray<Sample>>): ReadonlyArray<Row> => {
  const of = (call: Call, field: keyof Sample): number => median((samples.get(call) ?? []).map((one) => one[field]))
  const rates = calls.map((call) => ({ name: call.name, value: of(call, "perSecond"), unit: "requests/s" }))
  const costs = calls.map((call) => ({ name: `${call.name}, CPU`, value: of(call, "cpuMicroseconds"), unit: "µs" }))
  return [rates, costs].flatMap((rows) => {
    const [bare] = rows
    return rows.map((row) =>
      bare === undefined || row === bare ? row : { ...row, baseline: bare.name, ratio: row.value / bare.value }
    )
  })
}

export const run: Bench["run"] = async ({ directory, progress }) => {
  const seconds = positive("BENCH_SECONDS", 1)
  const rounds = Math.ceil(positive("BENCH_ROUNDS", 5))
  const child = fork(fileURLToPath(new URL("./http/server.ts", import.meta.url)), [directory])
  const busyOthers = watchOthers()
  try {
    const { barePort, port } = await next(child, "listening")
    const calls = callsOf(port, barePort, await talked(port))
    const samples = new Map<Call, Array<Sample>>(calls.map((call) => [call, []]))
    for (const call of calls) await sample(child, call, seconds)
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      for (const call of calls) samples.get(call)?.push(await sample(child, call, seconds))
    }
    const others = "cores that other processes kept busy, the server included"
    return [...rowsOf(calls, samples), { name: others, value: busyOthers(), unit: "cores" }]
  } finally {
    child.kill("SIGKILL")
  }
}
