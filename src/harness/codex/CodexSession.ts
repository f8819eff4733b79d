// The state of one Codex, as its app-server tells it: what it does is said outright, so nothing is guessed. ECHS is one client
// among others; the terminal is another. An approval goes to all of them, and the first answer counts.
import type { AgentEvent, MonitorSubState } from "../../rune/AgentEvent.ts"
import { Remembered } from "../claude/ClaudeBody.ts"
import { harnessLimits } from "../HarnessLimits.ts"
import {
  type Decision,
  type Found,
  type Heard,
  nothingFound,
  nothingHeard,
  type ProgramStatus,
  type ProtocolSession,
  type Settled
} from "../Port.ts"
import {
  type CodexMessage,
  countOf,
  type Fields,
  fieldsOf,
  isHidden,
  listOf,
  promptOf,
  readMessage,
  textOf,
  toolOf
} from "./CodexMessage.ts"

type Events = ReadonlyArray<AgentEvent>

interface OpenTool {
  readonly name: string
  readonly input: Fields
  readonly isOfSubAgent: boolean
  /** The question about it that waits, by the id of its request. */
  asked: { readonly id: string | number; isResolved: boolean } | undefined
}

interface Thread {
  readonly isSubAgent: boolean
  /** What it does reaches us in full. */
  isFollowed: boolean
  /** Nothing of it was there before this connection. */
  readonly isNew: boolean
  status: "idle" | "active"
  isWaiting: boolean
  turnId: string | undefined
  total: Tokens
}

interface Tokens {
  readonly input: number
  readonly output: number
  readonly cached: number
}

const noTokens: Tokens = { input: 0, output: 0, cached: 0 }
const idle: AgentEvent = { type: "state_change", state: "idle" }
const active = (subState: MonitorSubState): AgentEvent => ({
  type: "state_change",
  state: "active",
  sub_state: subState
})

const waitingFlags: ReadonlySet<unknown> = new Set(["waitingOnApproval", "waitingOnUserInput"])
const approvals: ReadonlySet<string> = new Set([
  "item/commandExecution/requestApproval",
  "item/fileChange/requestApproval"
])

export class CodexSession implements ProtocolSession {
  private readonly threads = new Map<string, Thread>()
  private readonly hidden = new Remembered<string>()
  private readonly tools = new Map<string, OpenTool>()
  private readonly seen = new Remembered<string>()
  private readonly pending = new Map<number, (result: Fields | undefined) => Heard>()
  private counted: Tokens
  private current: string | undefined
  private compacting = false
  private nextId = 1
  private isBusyBefore: boolean

  constructor({ counted, isBusy }: Found = nothingFound) {
    this.counted = counted
    this.isBusyBefore = isBusy
  }

  greeting(): ReadonlyArray<unknown> {
    const clientInfo = { name: "echs", title: "ECHS", version: "1" }
    this.pending.clear()
    return [
      this.call("initialize", { clientInfo, capabilities: { experimentalApi: true } }, () => ({
        events: [],
        replies: [{ method: "initialized" }, this.call("thread/loaded/list", {}, (result) => this.listed(result))]
      }))
    ]
  }

  message(value: unknown): Heard {
    const message = readMessage(value)
    if (message._tag === "Answer") {
      const hear = this.pending.get(message.id)
      this.pending.delete(message.id)
      return hear?.(message.result) ?? nothingHeard
    }
    if (message._tag === "Request") return this.requested(message)
    if (message._tag === "Unknown") return { ...nothingHeard, ignored: "the message is none of an app-server" }
    return this.notices[message.method]?.(message.params) ?? nothingHeard
  }

  input(text: string): ReadonlyArray<unknown> | undefined {
    const threadId = this.current
    const thread = threadId === undefined ? undefined : this.threads.get(threadId)
    if (thread === undefined) return undefined
    const input = [{ type: "text", text }]
    if (thread.status === "idle") return [this.call("turn/start", { threadId, input })]
    if (thread.turnId === undefined) return undefined
    return [this.call("turn/steer", { threadId, input, expectedTurnId: thread.turnId })]
  }

  interrupt(): ReadonlyArray<unknown> {
    return [...this.threads].flatMap(([threadId, { status, turnId }]) =>
      status === "active" && turnId !== undefined ? [this.call("turn/interrupt", { threadId, turnId })] : []
    )
  }

  answer(callId: string, decision: Decision): ReadonlyArray<unknown> {
    const asked = this.tools.get(callId)?.asked
    if (asked === undefined || asked.isResolved || decision._tag === "Unsaid") return []
    return [{ id: asked.id, result: { decision: decision._tag === "Allow" ? "accept" : "decline" } }]
  }

  hook(name: string): Heard {
    return { ...nothingHeard, ignored: `the hook ${name.slice(0, 80)} is not used where there is an app-server` }
  }

  telemetry(): Heard {
    return nothingHeard
  }

  /** The app-server says it exactly; the terminal is only shown. */
  status(_: ProgramStatus): Heard {
    return nothingHeard
  }

  decided(): Heard {
    return nothingHeard
  }

  interrupted(): Heard {
    return { events: [...this.dropTools(), idle] }
  }

  isBusy(): boolean {
    return this.threads.size === 0 ? this.isBusyBefore : this.ofPerson().some(({ status }) => status === "active")
  }

  private ofPerson(): ReadonlyArray<Thread> {
    return [...this.threads.values()].filter(({ isSubAgent }) => !isSubAgent)
  }

  private call(method: string, params: Fields, hear: (result: Fields | undefined) => Heard = () => nothingHeard) {
    const id = this.nextId
    this.nextId += 1
    this.pending.set(id, hear)
    return { id, method, params }
  }

  private listed(result: Fields | undefined): Heard {
    const ids = Array.isArray(result?.["data"]) ? result["data"].filter((id) => typeof id === "string") : []
    // Oldest first: ids begin with their time.
    return { events: [], replies: ids.toSorted().flatMap((id) => this.follow(id)) }
  }

  /** A thread without a turn cannot be followed yet: it is tried again when it does something. */
  private follow(threadId: string): ReadonlyArray<unknown> {
    const known = this.threads.get(threadId)
    if (known?.isFollowed === true || this.hidden.has(threadId)) return []
    if (known !== undefined) known.isFollowed = true
    const heard = (result: Fields | undefined): Heard => this.followed(threadId, result)
    return [this.call("thread/resume", { threadId }, heard)]
  }

  private followed(threadId: string, result: Fields | undefined): Heard {
    const told = fieldsOf(result?.["thread"])
    const known = this.threads.get(threadId)
    if (result === undefined) {
      if (known !== undefined) known.isFollowed = false
      // It began before anybody listened and has no turn yet: the one that the terminal shows. A hidden one is younger than a turn.
      return known === undefined && this.threads.size === 0 ? this.threadStarted({ id: threadId }) : nothingHeard
    }
    if (isHidden(told)) {
      this.hidden.add(threadId)
      this.threads.delete(threadId)
      return nothingHeard
    }
    const thread = known ?? this.add(threadId, told, { isNew: false })
    thread.isFollowed = true
    const turns = listOf(told["turns"])
    const last = turns.at(-1)
    if (last?.["status"] === "inProgress") thread.turnId = textOf(last["id"])
    // What was said before this connection is on record already, unless the thread is younger than it.
    const items = thread.isNew ? turns.flatMap((turn) => listOf(turn["items"])) : []
    const said = items.flatMap((item) => this.said(item))
    return { events: [...said, ...this.changed(threadId, told["status"])], ...this.sessionOf(threadId) }
  }

  private add(threadId: string, told: Fields, { isNew }: { readonly isNew: boolean }): Thread {
    const thread: Thread = {
      isSubAgent: typeof told["parentThreadId"] === "string",
      isFollowed: false,
      isNew,
      status: "idle",
      isWaiting: false,
      turnId: undefined,
      total: noTokens
    }
    this.threads.set(threadId, thread)
    if (!thread.isSubAgent) this.current = threadId
    return thread
  }

  private sessionOf(threadId: string): Pick<Heard, "session"> {
    return this.threads.get(threadId)?.isSubAgent === true ? {} : { session: { ref: threadId } }
  }

  private readonly notices: Readonly<Record<string, (params: Fields) => Heard>> = {
    "thread/started": ({ thread }) => this.threadStarted(fieldsOf(thread)),
    "thread/status/changed": ({ status, threadId }) => {
      const id = textOf(threadId) ?? ""
      if (this.hidden.has(id)) return nothingHeard
      if (!this.threads.has(id)) return { events: [], replies: this.follow(id) }
      const replies = this.follow(id)
      return { events: this.changed(id, status), replies, settled: this.answeredElsewhere() }
    },
    "turn/started": ({ threadId, turn }) => {
      const id = textOf(fieldsOf(turn)["id"])
      const thread = this.threads.get(textOf(threadId) ?? "")
      if (thread === undefined || id === undefined) return nothingHeard
      thread.turnId = id
      if (thread.isSubAgent || this.isSeen(`turn ${id}`)) return nothingHeard
      return { events: [{ type: "turn_started", turn_id: id }, this.state()] }
    },
    "turn/completed": ({ threadId, turn }) => this.turnOver(textOf(threadId) ?? "", fieldsOf(turn)),
    "item/started": ({ item, threadId }) => this.itemStarted(textOf(threadId) ?? "", fieldsOf(item)),
    "item/completed": ({ item, threadId }) => this.itemOver(textOf(threadId) ?? "", fieldsOf(item)),
    "thread/tokenUsage/updated": ({ threadId, tokenUsage }) => ({
      events: this.used(textOf(threadId) ?? "", fieldsOf(fieldsOf(tokenUsage)["total"]))
    }),
    "serverRequest/resolved": ({ requestId }) => {
      for (const { asked } of this.tools.values())
        if (asked !== undefined && asked.id === requestId) asked.isResolved = true
      return nothingHeard
    }
  }

  private isSeen(key: string): boolean {
    if (this.seen.has(key)) return true
    this.seen.add(key)
    return false
  }

  private threadStarted(told: Fields): Heard {
    const id = textOf(told["id"])
    if (id === undefined) return nothingHeard
    if (isHidden(told)) {
      this.hidden.add(id)
      return nothingHeard
    }
    if (this.threads.has(id)) return nothingHeard
    const { isSubAgent } = this.add(id, told, { isNew: true })
    if (isSubAgent) return { events: [], replies: this.follow(id) }
    const model = textOf(told["model"])
    const started: AgentEvent = {
      type: "session_started",
      thread_id: id,
      ...(model === undefined ? {} : { model })
    }
    return { events: [started], ...this.sessionOf(id) }
  }

  private changed(threadId: string, status: unknown): Events {
    const thread = this.threads.get(threadId)
    const { activeFlags, type } = fieldsOf(status)
    if (thread === undefined || (type !== "idle" && type !== "active")) return []
    thread.status = type
    thread.isWaiting = Array.isArray(activeFlags) && activeFlags.some((flag) => waitingFlags.has(flag))
    if (type === "active" && !thread.isSubAgent) this.current = threadId
    return [this.state()]
  }

  /** What is shown: of the threads of the person, and of whoever waits for one. */
  private state(): AgentEvent {
    const threads = [...this.threads.values()]
    if (threads.some(({ isWaiting }) => isWaiting)) return active("waiting_for_permission")
    if (!this.ofPerson().some(({ status }) => status === "active")) return idle
    if (this.compacting) return active("compacting")
    return active([...this.tools.values()].some(({ isOfSubAgent }) => !isOfSubAgent) ? "tool_use" : "thinking")
  }

  private said(item: Fields): Events {
    const id = textOf(item["id"]) ?? ""
    if (item["type"] === "userMessage") {
      const text = promptOf(item)
      return this.isSeen(`prompt ${id}`) ? [] : [{ type: "user_prompt", text, prompt_length: text.length }]
    }
    const content = item["type"] === "agentMessage" ? textOf(item["text"], harnessLimits.messageCharsMax) : undefined
    if (content === undefined || content === "") return []
    const turn = textOf(item["completedAtMs"]) ?? String(item["completedAtMs"] ?? "")
    return this.isSeen(`message ${id} ${turn}`) ? [] : [{ type: "agent_message", content }]
  }

  private itemStarted(threadId: string, item: Fields): Heard {
    const isOfSubAgent = this.threads.get(threadId)?.isSubAgent === true
    if (item["type"] === "contextCompaction" && !isOfSubAgent) {
      this.compacting = true
      return { events: [this.state()] }
    }
    if (item["type"] === "userMessage" && !isOfSubAgent) return { events: this.said(item) }
    const id = textOf(item["id"])
    const tool = toolOf(item)
    if (id === undefined || tool === undefined || this.seen.has(`tool ${id}`) || this.tools.has(id)) return nothingHeard
    this.tools.set(id, { ...tool, isOfSubAgent, asked: undefined })
    if (isOfSubAgent) return nothingHeard
    return { events: [{ type: "tool_started", tool_name: tool.name, call_id: id }, this.state()] }
  }

  private itemOver(threadId: string, item: Fields): Heard {
    const isOfSubAgent = this.threads.get(threadId)?.isSubAgent === true
    if (item["type"] === "contextCompaction") {
      this.compacting = false
      return { events: [this.state()] }
    }
    const tool = toolOf(item)
    const id = textOf(item["id"])
    if (tool === undefined || id === undefined) return { events: isOfSubAgent ? [] : this.said(item) }
    if (this.isSeen(`tool ${id}`)) return nothingHeard
    this.tools.delete(id)
    const durationMs = countOf(item["durationMs"])
    const { exitCode, status } = item
    const output = textOf(item["aggregatedOutput"], harnessLimits.detailCharsMax)
    const outcome = status === "declined" ? "not_run" : status === "completed" ? "ran" : "failed"
    const settled: Settled = { callId: id, outcome, durationMs, ...(output === undefined ? {} : { output }) }
    if (isOfSubAgent) return { events: [], settled: [settled] }
    const success = status === "completed" && (exitCode === undefined || exitCode === null || exitCode === 0)
    const event: AgentEvent = {
      type: "tool_completed",
      tool_name: tool.name,
      call_id: id,
      duration_ms: durationMs,
      success,
      ...(success ? {} : { error: status === "declined" ? "refused" : `ended with ${String(exitCode ?? status)}` })
    }
    return { events: [event, this.state()], settled: [settled] }
  }

  private turnOver(threadId: string, turn: Fields): Heard {
    const thread = this.threads.get(threadId)
    const id = textOf(turn["id"])
    if (thread === undefined || id === undefined || this.isSeen(`over ${id}`)) return nothingHeard
    thread.turnId = undefined
    thread.status = "idle"
    thread.isWaiting = false
    if (thread.isSubAgent) return nothingHeard
    this.compacting = false
    const error =
      turn["status"] === "failed"
        ? (textOf(fieldsOf(turn["error"])["message"], harnessLimits.detailCharsMax) ?? "the turn failed")
        : undefined
    const settled = this.waiting()
    const completed: AgentEvent = {
      type: "turn_completed",
      turn_id: id,
      input_tokens: 0,
      output_tokens: 0,
      cached_tokens: 0,
      cost_usd: null,
      ...(error === undefined ? {} : { error })
    }
    const said = listOf(turn["items"]).flatMap((item) => this.said(item))
    return { events: [...said, ...this.dropTools(), this.state(), completed], settled }
  }

  /** The totals of all threads only grow; what is more than was counted is new, however often it is told. */
  private used(threadId: string, total: Fields): Events {
    const thread = this.threads.get(threadId)
    if (thread === undefined) return []
    thread.total = {
      input: countOf(total["inputTokens"]),
      output: countOf(total["outputTokens"]),
      cached: countOf(total["cachedInputTokens"])
    }
    const all = [...this.threads.values()].map((one) => one.total)
    const sum = (of: keyof Tokens): number => all.reduce((before, one) => before + one[of], 0)
    const grown = (of: keyof Tokens): number => Math.max(0, sum(of) - this.counted[of])
    const [input, output, cached] = [grown("input"), grown("output"), grown("cached")]
    if (input + output === 0) return []
    this.counted = {
      input: this.counted.input + input,
      output: this.counted.output + output,
      cached: this.counted.cached + cached
    }
    const tokens = { input_tokens: input, output_tokens: output, cached_tokens: cached }
    return [{ type: "usage_reported", ...tokens, cost_usd: null }]
  }

  private requested({ id, method, params }: Extract<CodexMessage, { _tag: "Request" }>): Heard {
    const callId = textOf(params["itemId"])
    // Other questions are answered in the terminal; that one waits is said by the state of the thread.
    if (!approvals.has(method) || callId === undefined) return nothingHeard
    const command = { command: textOf(params["command"], harnessLimits.messageCharsMax), cwd: params["cwd"] }
    const isCommand = method.startsWith("item/command")
    const isOfSubAgent = this.threads.get(textOf(params["threadId"]) ?? "")?.isSubAgent === true
    const fresh = toolOf(isCommand ? { type: "commandExecution", ...command } : { type: "fileChange", changes: [] })
    const tool = this.tools.get(callId) ?? {
      name: fresh?.name ?? "tool",
      input: fresh?.input ?? {},
      isOfSubAgent,
      asked: undefined
    }
    tool.asked = { id, isResolved: false }
    this.tools.set(callId, tool)
    const reason = textOf(params["reason"], harnessLimits.detailCharsMax)
    const input = reason === undefined ? tool.input : { ...tool.input, reason }
    const title = titleOf(tool)
    return {
      events: [{ type: "approval_requested", tool_name: tool.name, call_id: callId, detail: title }],
      question: {
        callId,
        toolName: tool.name,
        input,
        title,
        suggestions: [],
        ...(isOfSubAgent ? { subAgent: "codex" } : {})
      }
    }
  }

  /** Resolved, not declined, and nobody waits any more: it runs. */
  private answeredElsewhere(): ReadonlyArray<Settled> {
    if ([...this.threads.values()].some(({ isWaiting }) => isWaiting)) return []
    return [...this.tools]
      .filter(([, { asked }]) => asked?.isResolved === true)
      .map(([callId]) => ({ callId, outcome: "started", durationMs: 0 }))
  }

  private waiting(): ReadonlyArray<Settled> {
    return [...this.tools]
      .filter(([, { asked, isOfSubAgent }]) => asked !== undefined && !isOfSubAgent)
      .map(([callId]) => ({ callId, outcome: "not_run", durationMs: 0 }))
  }

  private dropTools(): Events {
    const events: Array<AgentEvent> = []
    for (const [id, tool] of this.tools) {
      if (tool.isOfSubAgent) continue
      this.tools.delete(id)
      this.seen.add(`tool ${id}`)
      const error = "ended without a result"
      events.push({
        type: "tool_completed",
        tool_name: tool.name,
        call_id: id,
        duration_ms: 0,
        success: false,
        error
      })
    }
    return events
  }
}

const titleOf = ({ input, name }: OpenTool): string => {
  const paths = listOf(input["changes"]).map(({ path }) => String(path))
  const said = name === "shell" ? String(input["command"] ?? "") : paths.join(", ")
  return `${name}${said === "" ? "" : `: ${said}`}`.slice(0, harnessLimits.nameCharsMax)
}
