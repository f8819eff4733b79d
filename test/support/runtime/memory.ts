// Measures what conversations cost in memory: resident and idle after a turn, and after they have left. Runs as a process
// of its own, with --expose-gc, on a real directory; prints one JSON object.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Runelog } from "#runelog/Runelog.ts"
import type { Conversations } from "#src/conversation/Conversations.ts"
import { makeRegistry } from "#src/provider/Registry.ts"
import { secureIdSource } from "#src/rune/IdSource.ts"
import { type ConversationId, makeAgentId, makeConversationId } from "#src/rune/Ids.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { functionTools } from "../tool/FunctionTools.ts"
import { openConversations } from "./openConversations.ts"
import { say, scenarios, step, use } from "./scenarios.ts"
import { tool } from "./tools.ts"

export interface MemoryFigures {
  readonly conversations: number
  /** After a turn, when the log has reached a checkpoint. */
  readonly residentBytes: number
  readonly evictedBytes: number
  /** After a restart: loaded from the log, and left again. */
  readonly residentAfterLoadBytes: number
  readonly evictedAfterLoadBytes: number
}

const batch = 100
const total = Number(process.argv[2] ?? "2000")
const directory = mkdtempSync(join(tmpdir(), "echs-memory-"))
const ids = secureIdSource()
let completed = 0
let allDone: () => void = () => undefined

const open = async () => {
  const runelog = await Runelog.open({ directory })
  const store = new RuneStore({
    runelog,
    notices: {
      appended: (_id, runes) => {
        if (!runes.some(({ kind }) => kind === "turn.completed")) return
        completed += 1
        if (completed % batch === 0) allDone()
      }
    }
  })
  const conversations = openConversations({
    store,
    pressure: { busy: () => runelog.busy, ready: () => runelog.ready(), rest: (id) => runelog.rest(id) },
    registry: makeRegistry({
      key: () => undefined,
      scenarios: scenarios({ work: [step(1, say("Let me look. "), use("look")), step(2, say("It said {{output}}."))] })
    }),
    tools: functionTools([tool("look", async () => "seen")]),
    ids,
    clock: { nowMs: () => Date.now() },
    residentMax: 1_000_000
  })
  const checkpoint = () => runelog.checkpoint()
  const close = async () => {
    await conversations.close()
    await runelog.close()
  }
  return { checkpoint, conversations, close }
}

/** Creates so many conversations and lets each have a turn. */
const live = async (conversations: Conversations, count: number): Promise<ReadonlyArray<ConversationId>> => {
  const made: Array<ConversationId> = []
  for (let at = 0; at < count; at += batch) {
    const some = Array.from({ length: batch }, () => makeConversationId(ids))
    const done = new Promise<void>((resolve) => {
      allDone = resolve
    })
    await Promise.all(
      some.map(async (id) => {
        const root = { agent_id: makeAgentId(ids), role: "root", model: "scripted/work" }
        const command = { _tag: "CreateConversation", conversation_id: id, config: { title: "A title" }, root } as const
        await conversations.create(command)
        await conversations.submit(id, { _tag: "PostMessage", content: "Please look at it.", mode: "queue" })
      })
    )
    await done
    made.push(...some)
  }
  return made
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Bytes in use, garbage left out; pages that a pool keeps are not a conversation's. */
const used = async (): Promise<number> => {
  await settle()
  for (let time = 0; time < 4; time++) {
    ;(globalThis as unknown as { readonly gc: () => void }).gc()
    await settle()
  }
  return process.memoryUsage().heapUsed
}

/** Bytes per conversation while all are in memory, and after all have left it. */
const weigh = async (conversations: Conversations, made: ReadonlyArray<ConversationId>, before: number) => {
  const resident = await used()
  for (const id of made) if (!conversations.unload(id)) throw new Error(`${id} did not leave`)
  const evicted = await used()
  return { resident: Math.round((resident - before) / total), evicted: Math.round((evicted - before) / total) }
}

const first = await open()
await live(first.conversations, 500)
const empty = await used()
const made = await live(first.conversations, total)
await first.checkpoint()
const worked = await weigh(first.conversations, made, empty)
await first.close()

const second = await open()
await second.conversations.state(made[0]!)
const reopened = await used()
for (const id of made) await second.conversations.state(id)
const loaded = await weigh(second.conversations, made, reopened)
await second.close()

const figures: MemoryFigures = {
  conversations: total,
  residentBytes: worked.resident,
  evictedBytes: worked.evicted,
  residentAfterLoadBytes: loaded.resident,
  evictedAfterLoadBytes: loaded.evicted
}
process.stdout.write(`${JSON.stringify(figures)}\n`)
rmSync(directory, { recursive: true, force: true })
