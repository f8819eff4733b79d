// Goal: conversations that wait cost little, and those that have left cost next to nothing. Method: thousands of them in a
// process of their own, weighed before and after.
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import type { MemoryFigures } from "../support/runtime/memory.ts"

const script = fileURLToPath(new URL("../support/runtime/memory.ts", import.meta.url))
const KIB = 1024

const weigh = (conversations: number): Promise<MemoryFigures> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--expose-gc", script, String(conversations)], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += String(chunk)
    })
    child.on("error", reject)
    child.on("exit", (code) => (code === 0 ? resolve(JSON.parse(text)) : reject(new Error(`ended with ${code}`))))
  })

it("an idle conversation in memory takes at most 12 KiB, and one that has left at most 1 KiB", async () => {
  const figures = await weigh(2000)
  expect(figures.residentBytes).toBeLessThanOrEqual(12 * KIB)
  expect(figures.residentAfterLoadBytes).toBeLessThanOrEqual(12 * KIB)
  expect(figures.evictedBytes).toBeLessThanOrEqual(KIB)
  expect(figures.evictedAfterLoadBytes).toBeLessThanOrEqual(KIB)
  reportCount("bytes of an idle conversation in memory", figures.residentBytes)
  reportCount("bytes of a conversation that has left memory", figures.evictedBytes)
})
