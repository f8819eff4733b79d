// What an idle connection costs: a server alone in its process, its clients in another, and what the server's memory
// grows by between none of them and all of them.
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { IdleReport } from "./idleChild.ts"
import { token } from "./openDoor.ts"
import { Sink } from "./Sink.ts"

type Memory = Extract<IdleReport, { readonly type: "memory" }>

const next = async <T extends IdleReport["type"]>(child: ChildProcess, type: T) => {
  const [report] = (await once(child, "message")) as [IdleReport]
  if (report.type !== type) throw new Error(`${report.type} where ${type} was expected`)
  return report as Extract<IdleReport, { readonly type: T }>
}

const memoryOf = (child: ChildProcess): Promise<Memory> => {
  child.send("memory")
  return next(child, "memory")
}

/** Bytes of the server's process, and of its heap, per connection that has said hello and nothing since. */
export const measureIdle = async (directory: string, connections: number) => {
  const child = fork(fileURLToPath(new URL("./idleChild.ts", import.meta.url)), [directory])
  try {
    const { port } = await next(child, "listening")
    const frames = [JSON.stringify({ id: "0", op: "hello", protocol: 1 })]
    // The first connections warm up code and tables that all later ones share.
    const warm = await Sink.open({ port, token, connections: 500, frames })
    await warm.close()
    const before = await memoryOf(child)
    const sink = await Sink.open({ port, token, connections, frames })
    const after = await memoryOf(child)
    await sink.close()
    return {
      residentBytesEach: (after.residentBytes - before.residentBytes) / connections,
      heapBytesEach: (after.heapBytes - before.heapBytes) / connections
    }
  } finally {
    child.kill("SIGKILL")
  }
}
