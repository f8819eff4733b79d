// Makes many conversations with one short turn each, in a process of its own, and says what one costs in memory: while it
// is resident and idle, and when it has left. Closes the directory in good order. Arguments: directory, conversations.
import type { ConversationId } from "#src/rune/Ids.ts"
import { BenchRuntime } from "./openRuntime.ts"
import { usedHeapBytes } from "./usedHeap.ts"

export interface MemoryReport {
  readonly conversations: number
  readonly residentBytes: number
  readonly evictedBytes: number
  readonly residentRssBytes: number
  readonly evictedRssBytes: number
}

const WARM_UP_CONVERSATIONS = 1_500
const WARM_UP_LOG = "warm-up"
const WARM_UP_APPENDS = 16
const WARM_UP_BODY = Buffer.alloc(1_000_000)

const used = async (runtime: BenchRuntime): Promise<{ readonly heap: number; readonly rss: number }> => {
  await runtime.store.catalog.flush()
  await runtime.store.runelog.checkpoint()
  return { heap: await usedHeapBytes(), rss: process.memoryUsage.rss() }
}

const speakMany = async (runtime: BenchRuntime, count: number): Promise<ReadonlyArray<ConversationId>> => {
  const ids = await runtime.createMany(count, "scripted/echo")
  for (let at = 0; at < ids.length; at += 500) {
    const some = ids.slice(at, at + 500)
    await Promise.all(some.map((id) => runtime.turn(id, "Say what is wrong with the second test.")))
  }
  return ids
}

/**
 * Before anything is counted, code is compiled, and the pools and caches that are bounded are as full as they stay: what
 * is measured then is what each further conversation adds, not a fixed cost divided by however many there are.
 */
const warmUp = async (runtime: BenchRuntime): Promise<void> => {
  const { runelog } = runtime.store
  const entries = [{ body: WARM_UP_BODY }]
  await Promise.all(Array.from({ length: WARM_UP_APPENDS }, (_, at) => runelog.append(WARM_UP_LOG, at + 1, entries)))
  await runelog.remove(WARM_UP_LOG)
  const ids = await speakMany(runtime, WARM_UP_CONVERSATIONS)
  await used(runtime)
  runtime.unload(ids)
}

const measure = async (directory: string, count: number): Promise<MemoryReport> => {
  const runtime = await BenchRuntime.open(directory)
  await warmUp(runtime)
  const before = await used(runtime)
  const ids = await speakMany(runtime, count)
  const resident = await used(runtime)
  if (runtime.conversations.resident !== count) throw new Error(`${runtime.conversations.resident} are in memory`)
  runtime.unload(ids)
  const evicted = await used(runtime)
  if (runtime.conversations.resident !== 0) throw new Error(`${runtime.conversations.resident} did not leave`)
  await runtime.close()
  return {
    conversations: count,
    residentBytes: (resident.heap - before.heap) / count,
    evictedBytes: (evicted.heap - before.heap) / count,
    residentRssBytes: (resident.rss - before.rss) / count,
    evictedRssBytes: (evicted.rss - before.rss) / count
  }
}

const [, , directory = "", count = ""] = process.argv
process.stdout.write(`${JSON.stringify(await measure(directory, Number(count)))}\n`)
