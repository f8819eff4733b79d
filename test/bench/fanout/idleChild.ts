// A server in a process of its own that says, when asked, how much memory it has: nothing but the server and its
// connections is in that figure.
import { collectGarbage } from "./garbage.ts"
import { openDoor } from "./openDoor.ts"

export type IdleReport =
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "memory"; readonly residentBytes: number; readonly heapBytes: number }

const tell = (report: IdleReport): void => void process.send!(report)

const door = await openDoor(process.argv[2]!)

/** What was freed is given back to the system over a few collections. */
const settle = async (): Promise<void> => {
  for (let round = 0; round < 5; round++) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

process.on("message", async () => {
  await settle()
  const { heapUsed, rss } = process.memoryUsage()
  tell({ type: "memory", residentBytes: rss, heapBytes: heapUsed })
})
process.on("disconnect", () => process.exit(0))
tell({ type: "listening", port: door.server.port })
