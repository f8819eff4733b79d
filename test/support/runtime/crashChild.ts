// A server-like process that runs one turn and ends itself by SIGKILL at a step of the test's choosing: before the append
// of a rune, while it is under way, or in the moment it is durable and before anybody knows. What clients were told
// by then is on a file, written before anything else can happen.
import { appendFileSync } from "node:fs"
import { Runelog } from "#runelog/Runelog.ts"
import { makeRegistry } from "#src/provider/Registry.ts"
import { secureIdSource } from "#src/rune/IdSource.ts"
import type { AgentId, ConversationId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { functionTools } from "../tool/FunctionTools.ts"
import { crashHooks, crashLimits, crashScenarios, crashTools } from "./crashWorld.ts"
import { openConversations } from "./openConversations.ts"

export interface CrashPlan {
  readonly directory: string
  readonly conversationId: ConversationId
  readonly agentId: AgentId
  readonly asksFirst: boolean
  /** A process before this one was killed: go on where it was. */
  readonly resume: boolean
  /** Where to end; not at all when absent. */
  readonly crash?: { readonly at: number; readonly when: "before" | "during" | "after" }
}

const plan: CrashPlan = JSON.parse(process.argv[2] ?? "{}")
const die = (): void => {
  process.kill(process.pid, "SIGKILL")
}
const acknowledge = (runes: ReadonlyArray<AnyRune>): void => {
  for (const { event_id, rune_id } of runes) appendFileSync(`${plan.directory}/acks`, `${event_id} ${rune_id}\n`)
}
const isIt = (runes: ReadonlyArray<AnyRune>): boolean => runes.some(({ event_id }) => event_id === plan.crash?.at)

const runelog = await Runelog.open({ directory: `${plan.directory}/data`, limits: crashLimits })
let ended: () => void = () => undefined
const over = new Promise<void>((resolve) => {
  ended = resolve
})

class KilledStore extends RuneStore {
  override appendNow(...input: Parameters<RuneStore["appendNow"]>): Promise<void> {
    const isHere = isIt(input[1])
    appendFileSync(`${plan.directory}/batches`, `${input[1][0]?.event_id}\n`)
    if (isHere && plan.crash?.when === "before") die()
    const durable = super.appendNow(...input)
    if (isHere && plan.crash?.when === "during") die()
    return durable
  }
}

const store = new KilledStore({
  runelog,
  notices: {
    appended: (_id, runes) => {
      if (isIt(runes) && plan.crash?.when === "after") die()
      if (runes.some(({ kind }) => kind === "turn.completed" || kind === "turn.error")) setImmediate(ended)
      if (plan.asksFirst && runes.some(({ kind }) => kind === "tool.approval_requested"))
        setImmediate(() => void approve())
    }
  }
})

const conversations = openConversations({
  store,
  pressure: { busy: () => runelog.busy, ready: () => runelog.ready() },
  registry: makeRegistry({ key: () => undefined, scenarios: crashScenarios }),
  tools: functionTools(crashTools(plan.directory, { asksFirst: plan.asksFirst })),
  hooks: crashHooks(plan.directory),
  ids: secureIdSource(),
  clock: { nowMs: () => Date.now() },
  deltaEveryMs: 0
})

const approve = async (): Promise<void> => {
  const state = await conversations.state(plan.conversationId)
  const call = state.calls.find(({ status }) => status === "awaiting_approval")
  if (call === undefined) return
  const answer = { call_id: call.call_id, approver: "ada", channel: "test", scope: "once" } as const
  acknowledge((await conversations.submit(plan.conversationId, { _tag: "ApproveCall", ...answer })).runes)
}

const begin = async (): Promise<void> => {
  const root = { agent_id: plan.agentId, role: "root", model: "scripted/crash" }
  const config = { model: "scripted/crash" }
  const command = { _tag: "CreateConversation", conversation_id: plan.conversationId, config, root } as const
  acknowledge((await conversations.create(command)).runes)
}

if (!plan.resume || (await store.headNow(plan.conversationId)) === 0) await begin()
await conversations.recover([plan.conversationId])
const { agents, turns } = await conversations.state(plan.conversationId)
if (turns === 0 && agents[0]?.queue.length === 0) {
  const post = { _tag: "PostMessage", content: "go", mode: "queue" } as const
  acknowledge((await conversations.submit(plan.conversationId, post)).runes)
}
if (plan.resume) await approve()
await over
await conversations.close()
await runelog.close()
