// The page in a real browser: how long a conversation of very many runes takes until it can be read, how soon a call that
// waits is in the inbox, and how many frames a second are left while runes arrive. Needs chromium. BENCH_RUNES,
// BENCH_SECONDS and BENCH_ROUNDS shorten or lengthen it.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { AnyRune, Client } from "#src/client/Client.ts"
import { chromium, type OpenPage, PageWorld } from "../support/page.ts"
import { always, say, use } from "../support/runtime/scenarios.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import type { Bench, Row } from "./Bench.ts"
import { growConversation } from "./page/grow.ts"
import { median } from "./runelog/sampling.ts"
import { positive } from "./runelog/settings.ts"

const talker = {
  name: "talker",
  replies: [
    { when: { step: 1, input: "^ask" }, play: [use("bash", { command: "true" })] },
    { when: { step: 1, input: "^stream" }, play: [say("word ".repeat(20_000), { chunk_chars: 5, delay_ms: 5 })] },
    always(say("It is done."))
  ]
}

/** Until the last words of the conversation are in the document. */
const openedWithinMs = async (open: () => Promise<OpenPage>, id: string): Promise<number> => {
  const { context, page } = await open()
  const startedMs = performance.now()
  await page.evaluate((hash) => {
    location.hash = hash
  }, `#/c/${id}`)
  await page.locator(".entry.answer").last().waitFor()
  const ms = performance.now() - startedMs
  await context.close()
  return ms
}

const until = async (client: Client, id: string, kind: string): Promise<AnyRune> => {
  for await (const item of client.tail(id)) if ("rune" in item && item.rune.kind === kind) return item.rune
  throw new Error(`no ${kind} came`)
}

/** From the rune of the question to its row in the inbox. */
const inboxAfterMs = async ({ page }: OpenPage, client: Client, workspace: string): Promise<number> => {
  const { conversation_id: id } = await client.call("conversation.create", { workspace })
  const seen = page.evaluate(
    (wanted) =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          if (document.querySelector(`.item[href*="${wanted}"]`) === null) requestAnimationFrame(look)
          else resolve(Date.now())
        }
        look()
      }),
    id
  )
  await client.call("message.post", { conversation_id: id, content: "ask" })
  const { ts_ms: askedMs } = await until(client, id, "tool.approval_requested")
  const ms = (await seen) - askedMs
  await client.call("conversation.close", { conversation_id: id })
  return ms
}

const framesOf = ({ page }: OpenPage, seconds: number): Promise<number> =>
  page.evaluate(
    (ms) =>
      new Promise<number>((resolve) => {
        const startedMs = performance.now()
        let frames = 0
        const count = (): void => {
          frames += 1
          if (performance.now() - startedMs < ms) requestAnimationFrame(count)
          else resolve((frames / (performance.now() - startedMs)) * 1000)
        }
        requestAnimationFrame(count)
      }),
    seconds * 1000
  )

/** Ten agents that speak at once in one conversation. */
const crowd = async (client: Client): Promise<string> => {
  const { conversation_id: id } = await client.call("conversation.create", { title: "crowd" })
  const agents = await Promise.all(
    Array.from({ length: 10 }, () => client.call("agent.spawn", { conversation_id: id, role: "talker" }))
  )
  for (const { agent_id } of agents)
    await client.call("agent.message", { conversation_id: id, agent_id, content: "stream" })
  return id
}

const headOf = async (client: Client, id: string): Promise<number> =>
  (await client.call("conversation.get", { conversation_id: id })).last_event_id

const measure = async (
  world: PageWorld,
  server: ServerProcess,
  long: string,
  progress: (line: string) => void
): Promise<ReadonlyArray<Row>> => {
  const [rounds, seconds] = [positive("BENCH_ROUNDS", 5), positive("BENCH_SECONDS", 10)]
  const client = await world.client(server)
  const open = (): Promise<OpenPage> => world.open(server, { hash: "/overview" })
  const { conversation_id: short } = await client.call("conversation.create", {})
  await client.call("message.post", { conversation_id: short, content: "hello" })
  await until(client, short, "turn.completed")
  await openedWithinMs(open, short)
  const times = { long: [] as Array<number>, short: [] as Array<number>, inbox: [] as Array<number> }
  for (let round = 0; round < rounds; round++) {
    times.short.push(await openedWithinMs(open, short))
    times.long.push(await openedWithinMs(open, long))
  }
  progress("conversations opened")
  const inbox = await world.open(server)
  for (let round = 0; round < rounds * 2; round++) times.inbox.push(await inboxAfterMs(inbox, client, world.place))
  const idle = await framesOf(inbox, seconds)
  progress("inbox measured")
  const id = await crowd(client)
  await inbox.page.goto(`${server.url}/#/c/${id}`)
  await inbox.page.locator(".entry.answer").first().waitFor()
  const before = await headOf(client, id)
  const busy = await framesOf(inbox, seconds)
  const arrived = ((await headOf(client, id)) - before) / seconds
  const shortMs = median(times.short)
  const longMs = median(times.long)
  const inboxMs = median(times.inbox)
  return [
    { name: "a short conversation can be read", value: shortMs, unit: "ms" },
    {
      name: "a long conversation can be read",
      value: longMs,
      unit: "ms",
      baseline: "a short conversation can be read",
      ratio: longMs / shortMs
    },
    { name: "a call that waits is in the inbox", value: inboxMs, unit: "ms", target: 100, met: inboxMs <= 100 },
    { name: "frames, nothing arrives", value: idle, unit: "frames/s" },
    {
      name: "frames, ten agents speak",
      value: busy,
      unit: "frames/s",
      baseline: "frames, nothing arrives",
      ratio: busy / idle
    },
    { name: "runes that arrived meanwhile", value: arrived, unit: "runes/s" }
  ]
}

export const run: Bench["run"] = async ({ progress }) => {
  if (!chromium.isThere()) throw new Error(`chromium is not installed: ${chromium.remedy}`)
  const world = new PageWorld()
  mkdirSync(world.data, { mode: 0o700 })
  writeFileSync(join(world.place, "talker.json"), JSON.stringify(talker))
  const env = { ECHS_SCENARIOS: world.place, ECHS_MODEL: "scripted/talker.json" }
  const long = await growConversation(world.data, positive("BENCH_RUNES", 100_000))
  progress("a long conversation is there")
  const server = await startProcess(world.data, { env })
  try {
    return await measure(world, server, long, progress)
  } finally {
    await server.end("SIGKILL")
    await world.close()
  }
}
