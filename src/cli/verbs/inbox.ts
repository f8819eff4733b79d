// `echs inbox`: everything that waits for a person in any conversation, oldest first, answered in place with all of what it
// is about shown. `--watch` stays and rings the bell. The exit code says whether something still waits.
import type { AttentionItem, Client } from "../../client/Client.ts"
import { planRows } from "../goal/PlanView.ts"
import { showRows } from "../Pages.ts"
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { decisionRows } from "../render/Decision.ts"
import { duration, fitStart, oneLine } from "../render/Text.ts"
import { choicesText, tellDecision, tellPlan } from "../Turn.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"

export interface InboxParts extends RemoteParts {
  readonly nowMs: () => number
}

/** What to run about an item that cannot be answered here. */
const remedies: Readonly<Record<string, (id: string) => string>> = {
  approval: (id) => `echs approve ${id}`,
  question: (id) => `echs approve ${id} --answer TEXT`,
  plan: (id) => `echs plan approve ${id}`,
  provider: (id) => `echs retry ${id}`,
  suspended: (id) => `echs resume ${id}`,
  notice: (id) => `echs show ${id}`
}

/** A notice tells something; everything else waits for an answer. */
const isWaiting = ({ type }: AttentionItem): boolean => type !== "notice"

const keyOf = ({ conversation_id: id, key }: AttentionItem): string => `${id} ${key}`

const oldestFirst = (items: Iterable<AttentionItem>): ReadonlyArray<AttentionItem> =>
  [...items].toSorted((left, right) => (left.since_ms ?? 0) - (right.since_ms ?? 0))

const itemRows = (item: AttentionItem, terminal: Terminal, nowMs: number): ReadonlyArray<string> => {
  const { conversation_id: id, since_ms: since, title, title_of_conversation: of, type } = item
  const { paint } = terminal
  const columns = terminal.columns() - 1
  const age = since === null ? "" : `  ${duration(Math.max(0, nowMs - since))}`
  const about = of === null ? "" : `  ${oneLine(of)}`
  return [
    fitStart(`${id}  ${type}${age}${about}`, columns),
    `  ${paint(isWaiting(item) ? "notice" : "quiet", isWaiting(item) ? "?" : "·")} ${fitStart(oneLine(title), columns - 4)}`,
    `  ${paint("quiet", remedies[type]?.(id) ?? "")}`
  ]
}

interface Answering {
  readonly client: Client
  readonly terminal: Terminal
  readonly nowMs: () => number
  readonly signal: AbortSignal
}

/** Puts one item to the person; an empty line leaves it for later. */
const answerItem = async (at: Answering, item: AttentionItem): Promise<void> => {
  const { terminal } = at
  const [head = ""] = itemRows(item, terminal, at.nowMs())
  terminal.write(`\n${terminal.paint("strong", head)}\n`)
  if (item.type === "plan") return answerPlan(at, item)
  if (item.type === "approval" || item.type === "question") return answerCall(at, item)
  terminal.write(`${itemRows(item, terminal, at.nowMs()).slice(1).join("\n")}\n`)
}

const answerCall = async ({ client, signal, terminal }: Answering, item: AttentionItem): Promise<void> => {
  const { conversation_id: conversationId } = item
  const { items } = await client.call("approval.list", { conversation_id: conversationId })
  const call = items.find((one) => one.call_id === item.call_id)
  if (call === undefined) return
  if ((await showRows(decisionRows(call, terminal), terminal, signal)) === "stopped") return
  const isQuestion = call.tool_name === "ask_user"
  const question = isQuestion ? "  your answer (Enter skips): " : `  allow? ${choicesText(call)}, Enter skips `
  const answer = (await terminal.ask(question, signal))?.trim() ?? ""
  if (answer === "") return
  await tellDecision({ client, conversationId, terminal }, call, isQuestion ? answer : answer.toLowerCase())
}

const answerPlan = async ({ client, signal, terminal }: Answering, item: AttentionItem): Promise<void> => {
  const { conversation_id: conversationId } = item
  const { plan } = await client.call("conversation.get", { conversation_id: conversationId })
  if (plan === null) return
  if ((await showRows(planRows(plan, terminal), terminal, signal)) === "stopped") return
  const question = "  start this plan? [y]es, or what is wrong with it (Enter skips): "
  const answer = (await terminal.ask(question, signal))?.trim() ?? ""
  if (answer === "") return
  const { plan_id, revision } = plan
  await tellPlan({ client, terminal }, { conversation_id: conversationId, plan_id, revision }, answer)
}

const exitOf = (items: Iterable<AttentionItem>): ExitCode =>
  [...items].some(isWaiting) ? exitCode.failed : exitCode.done

/** Everything that waits now, each put to the person once. */
const answerAll = async (at: Answering): Promise<ExitCode> => {
  const { items } = await at.client.call("attention.list", {})
  for (const item of oldestFirst(items)) {
    if (at.signal.aborted) return exitCode.interrupted
    await answerItem(at, item)
  }
  const left = (await at.client.call("attention.list", {})).items
  if (left.length === 0) at.terminal.write(at.terminal.paint("quiet", "nothing waits for you\n"))
  return exitOf(left)
}

/** Stays: puts each new item to the person, and takes a question back when somebody else has answered it. */
class Watch {
  private readonly at: Answering
  private readonly items = new Map<string, AttentionItem>()
  private readonly seen = new Set<string>()
  private asked: { readonly key: string; readonly stop: AbortController } | undefined
  private wake: () => void = () => {}

  constructor(at: Answering) {
    this.at = at
  }

  async run(): Promise<ExitCode> {
    const following = this.follow()
    while (!this.at.signal.aborted) {
      const next = oldestFirst(this.items.values()).find((item) => !this.seen.has(keyOf(item)))
      if (next === undefined) await this.rest()
      else await this.put(next)
    }
    await following
    return exitCode.interrupted
  }

  private async put(item: AttentionItem): Promise<void> {
    const key = keyOf(item)
    const stop = new AbortController()
    this.seen.add(key)
    this.asked = { key, stop }
    this.at.terminal.status(undefined)
    this.at.terminal.write("\u0007")
    await answerItem({ ...this.at, signal: AbortSignal.any([this.at.signal, stop.signal]) }, item)
    if (stop.signal.aborted) this.at.terminal.write("\n  answered elsewhere\n")
    this.asked = undefined
  }

  private async rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = [...this.items.values()].filter(isWaiting).length
    const text = waiting === 0 ? "nothing waits for you" : `${waiting} skipped, still waiting`
    this.at.terminal.status(this.at.terminal.paint("quiet", `${text}; watching (Ctrl-C leaves)`))
    this.wake = resolve
    this.at.signal.addEventListener("abort", () => resolve(), { once: true })
    await promise
    this.at.terminal.status(undefined)
  }

  private async follow(): Promise<void> {
    for await (const update of this.at.client.attention({ signal: this.at.signal })) {
      if ("items" in update) this.reset(update.items)
      else if (update.changed.change === "resolved") this.remove(keyOf(update.changed))
      else this.items.set(keyOf(update.changed), update.changed)
      this.wake()
    }
  }

  private reset(items: ReadonlyArray<AttentionItem>): void {
    const now = new Set(items.map(keyOf))
    for (const key of this.items.keys()) if (!now.has(key)) this.remove(key)
    for (const item of items) this.items.set(keyOf(item), item)
  }

  private remove(key: string): void {
    this.items.delete(key)
    this.seen.delete(key)
    if (this.asked?.key === key) this.asked.stop.abort()
  }
}

const streamJson = async (client: Client, terminal: Terminal, signal: AbortSignal): Promise<ExitCode> => {
  for await (const update of client.attention({ signal })) terminal.write(`${JSON.stringify(update)}\n`)
  return exitCode.interrupted
}

export const make = (parts: InboxParts): Verb =>
  makeRemoteVerb(parts, {
    name: "inbox",
    options: {
      watch: { type: "boolean", short: "w", help: "keep running, ring the bell and ask for each new item" },
      list: { type: "boolean", short: "l", help: "only list, without asking" }
    },
    example: "echs inbox --watch",
    notes: [
      "Exit code 0 if nothing waits for an answer, 1 if something does.",
      "With --json, prints the list; with --watch and --json, the list and then every change, one line each."
    ],
    isPatient: true,
    run: async ({ answer, client, terminal, values }) => {
      const { nowMs } = parts
      const isWatching = values.watch === true
      if (isWatching || (terminal.isAnswered && values.json !== true && values.list !== true)) {
        const signal = terminal.interruption()
        if (values.json === true) return streamJson(client, terminal, signal)
        const at = { client, terminal, nowMs, signal }
        return isWatching && terminal.isAnswered ? new Watch(at).run() : answerAll(at)
      }
      const items = oldestFirst((await client.call("attention.list", {})).items)
      answer({ items }, () =>
        items.length === 0
          ? terminal.paint("quiet", "nothing waits for you\n")
          : items.map((item) => `${itemRows(item, terminal, nowMs()).join("\n")}\n`).join("")
      )
      return exitOf(items)
    }
  })
