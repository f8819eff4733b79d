// What the heap of this process holds after everything that can go has gone, memory outside the engine included.
import { setTimeout as sleep } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const PASSES = 3
const PAUSE_MS = 50

export const usedHeapBytes = async (): Promise<number> => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  for (let pass = 0; pass < PASSES; pass++) {
    await sleep(PAUSE_MS)
    collect()
  }
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}
