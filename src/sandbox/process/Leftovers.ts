// Programs of a server that was killed. Outside a sandbox they may outlive it; they carry the mark of its data directory
// in the environment they were started with, and the next server on the same data ends them before it starts any.
import { createHash } from "node:crypto"
import { existsSync, realpathSync } from "node:fs"
import { resolve } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { processLimits } from "./ProcessLimits.ts"
import { isAlive, markedBy, signal } from "./Tree.ts"

/** What the marks of a server begin with: the same for every server on the same data. */
export const ownerOf = (dataDirectory: string): string => {
  const path = existsSync(dataDirectory) ? realpathSync(dataDirectory) : resolve(dataDirectory)
  return createHash("sha256").update(path).digest("hex").slice(0, 16)
}

/** Ends what an earlier server on these data left running; tells how many processes that were. */
export const endLeftovers = async (owner: string): Promise<number> => {
  const ended = new Set<number>()
  for (let round = 0; round < processLimits.sweepsMax; round++) {
    const left = markedBy(owner).filter((pid) => pid !== process.pid && isAlive(pid))
    if (left.length === 0) break
    for (const pid of left) {
      ended.add(pid)
      signal(pid, "SIGKILL")
    }
    await sleep(processLimits.sweepMs)
  }
  return ended.size
}
