// The server of the HTTP benchmark, in a process of its own: what it needs of the CPU is its own, whatever else the
// machine does. Beside it a bare node:http server that answers every request with the same bytes.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { openDoor } from "../fanout/openDoor.ts"

export type Report =
  | { readonly type: "listening"; readonly port: number; readonly barePort: number }
  | { readonly type: "cpu"; readonly microseconds: number }

const tell = (report: Report): void => void process.send?.(report)

const [directory = ""] = process.argv.slice(2)
const { server } = await openDoor(directory)
const body = JSON.stringify({ status: "ok", version: "bench" })
const bare = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.end(body)
})
await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve))

process.on("message", () => {
  const { system, user } = process.cpuUsage()
  tell({ type: "cpu", microseconds: system + user })
})
tell({ type: "listening", port: server.port, barePort: (bare.address() as AddressInfo).port })
