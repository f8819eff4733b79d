// The state that one Claude Code session is in, as its hooks, its telemetry and its terminal tell it. Late, doubled and
// missing signals are dealt with here: a tool is started and completed once, a stop ends the turn of its own prompt, work
// of sub-agents never moves their parent, and a stop while some of it runs is not the end.
import { randomUUID } from "node:crypto"
import type { AgentEvent, MonitorSubState } from "../../rune/AgentEvent.ts"
import { harnessLimits } from "../HarnessLimits.ts"
import type { HarnessSession, Heard, ProgramStatus, Settled, TelemetryRecord } from "../Port.ts"
import { nothingHeard } from "../Port.ts"
import { type ClaudeBody, callKey, countOf, listOf, Remembered, readBody, textOf, titleOf } from "./ClaudeBody.ts"
import { usageOfRecord } from "./ClaudeTelemetry.ts"

interface OpenTool {
  readonly name: string
  readonly key: string
  readonly subAgent: string | undefined
  /** A person is asked about it. */
  waiting: boolean
}

type Events = ReadonlyArray<AgentEvent>
type Step = (body: ClaudeBody) => Heard | Events

const active = (subState: MonitorSubState): AgentEvent => ({
  type: "state_change",
  state: "active",
  sub_state: subState
})
const idle: AgentEvent = { type: "state_change", state: "idle" }

const completed = (turnId: string | undefined, error?: string): AgentEvent => ({
  type: "turn_completed",
  ...(turnId === undefined ? {} : { turn_id: turnId }),
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  cost_usd: null,
  ...(error === undefined ? {} : { error })
})

/** Hooks that fire in the course of a turn and nowhere else. */
const ofTurns: ReadonlySet<string> = new Set([
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PostToolBatch",
  "PermissionRequest",
  "MessageDisplay",
  "Stop",
  "StopFailure"
])

/** Sessions that end only to begin again in the same process. */
const goesOn: ReadonlySet<string> = new Set(["clear", "resume"])

export class ClaudeSession implements HarnessSession {
  private promptId: string | undefined
  private turnOpen = false
  private stopHeld = false
  private compacting = false
  private lastTerminal: ProgramStatus["state"] | undefined
  private readonly tools = new Map<string, OpenTool>()
  private readonly finished = new Remembered<string>()
  private readonly ended = new Remembered<string>()
  private readonly counted = new Remembered<string>()
  private readonly subAgents = new Set<string>()
  private readonly messages = new Map<string, string>()

  constructor({ isBusy }: { readonly isBusy: boolean } = { isBusy: false }) {
    this.turnOpen = isBusy
  }

  hook(name: string, raw: unknown): Heard {
    const step = this.steps[name]
    const body = readBody(raw)
    const { sessionId: ref, transcript } = body
    const session = ref === undefined ? {} : { session: { ref, ...(transcript === undefined ? {} : { transcript }) } }
    if (step === undefined)
      return { ...nothingHeard, ...session, ignored: `the hook ${name.slice(0, 80)} says nothing of the state` }
    const opened = this.openTurn(name, body)
    const said = step(body)
    const heard: Heard = "events" in said ? said : { events: said }
    return { ...heard, ...session, events: [...opened, ...heard.events] }
  }

  telemetry(records: ReadonlyArray<TelemetryRecord>): Heard {
    const events = records.flatMap((record) => {
      const usage = usageOfRecord(record)
      if (usage === undefined) return []
      const id = `${record.sessionId ?? ""} ${record.sequence ?? ""} ${String(record.attributes["request_id"] ?? "")}`
      if (this.counted.has(id)) return []
      this.counted.add(id)
      return [usage]
    })
    return { events }
  }

  status({ source, state }: ProgramStatus): Heard {
    // It says itself what it does; output and silence mean nothing beside that.
    if (source === "silence") return nothingHeard
    const before = this.lastTerminal
    this.lastTerminal = state
    if (state === "working") {
      if (before === "blocked") return this.answeredInTerminal()
      return this.isBusy() ? nothingHeard : this.startedUnheard()
    }
    if (state === "blocked") return nothingHeard
    return this.isBusy() && !this.stopHeld ? this.interrupted() : nothingHeard
  }

  decided(callId: string): Heard {
    const tool = this.tools.get(callId)
    if (tool?.waiting !== true) return nothingHeard
    tool.waiting = false
    return { events: [this.turnOpen || this.stopHeld ? active(this.resting()) : idle] }
  }

  interrupted(): Heard {
    const settled = this.settleWaiting("not_run")
    const events = this.dropTools((tool) => tool.subAgent === undefined)
    return { events: [...events, ...this.endTurn()], settled }
  }

  isBusy(): boolean {
    return this.turnOpen || this.compacting || [...this.tools.values()].some(({ waiting }) => waiting)
  }

  private readonly steps: Readonly<Record<string, Step>> = {
    SessionStart: ({ fields, sessionId }) => {
      if (fields["source"] === "compact") return []
      const model = textOf(fields["model"])
      const thread = sessionId === undefined ? {} : { thread_id: sessionId }
      this.reset()
      return [{ type: "session_started", ...thread, ...(model === undefined ? {} : { model }) }]
    },
    UserPromptSubmit: (body) => this.prompted(body),
    PreToolUse: (body) => this.started(body),
    PostToolUse: (body) => this.over(body, { success: true }),
    PostToolUseFailure: (body) => this.over(body, { success: false }),
    PostToolBatch: (body) => this.batchOver(body),
    PermissionRequest: (body) => this.asked(body),
    MessageDisplay: (body) => this.said(body),
    Stop: (body) => this.stopped(body),
    StopFailure: (body) => this.failed(body),
    SubagentStart: ({ subAgent }) => {
      if (subAgent !== undefined) this.subAgents.add(subAgent)
      return []
    },
    SubagentStop: (body) => this.subAgentOver(body),
    PreCompact: () => {
      this.compacting = true
      return [active("compacting")]
    },
    PostCompact: () => {
      this.compacting = false
      return [this.turnOpen ? active(this.resting()) : idle]
    },
    SessionEnd: ({ fields }) => {
      const reason = textOf(fields["reason"])
      const settled = this.settleWaiting("not_run")
      this.reset()
      if (reason !== undefined && goesOn.has(reason)) return { events: [idle], settled }
      return { events: [{ type: "session_ended", ...(reason === undefined ? {} : { reason }) }], settled }
    }
  }

  private reset(): void {
    this.tools.clear()
    this.subAgents.clear()
    this.messages.clear()
    this.turnOpen = false
    this.stopHeld = false
    this.compacting = false
  }

  /** What the agent itself does while nothing else is known. */
  private resting(): MonitorSubState {
    const tools = [...this.tools.values()]
    if (tools.some(({ waiting }) => waiting)) return "waiting_for_permission"
    if (this.compacting) return "compacting"
    return this.stopHeld || tools.some(({ subAgent }) => subAgent === undefined) ? "tool_use" : "thinking"
  }

  /** A prompt that nobody announced: one that was typed while the turn before it ran. */
  private openTurn(name: string, { promptId, subAgent }: ClaudeBody): Events {
    if (promptId === undefined || promptId === this.promptId || subAgent !== undefined) return []
    if (!(ofTurns.has(name) || name === "UserPromptSubmit") || this.ended.has(promptId)) return []
    this.promptId = promptId
    if (name === "UserPromptSubmit") return []
    this.turnOpen = true
    return [{ type: "turn_started", turn_id: promptId }]
  }

  private prompted({ fields, promptId }: ClaudeBody): Events {
    const text = textOf(fields["prompt"], harnessLimits.promptCharsMax) ?? ""
    const key = `prompt ${promptId ?? ""} ${text}`
    if (this.finished.has(key) && this.turnOpen) return []
    this.finished.add(key)
    this.turnOpen = true
    this.stopHeld = false
    const isOfPerson = !text.startsWith("<task-notification>")
    const length = typeof fields["prompt"] === "string" ? fields["prompt"].length : 0
    const turn = promptId === undefined ? {} : { turn_id: promptId }
    const first: AgentEvent = isOfPerson
      ? { type: "user_prompt", text, prompt_length: length }
      : { type: "turn_started", ...turn }
    return [first, active(this.resting())]
  }

  private started(body: ClaudeBody): Events {
    const { subAgent, toolName, toolUseId = randomUUID() } = body
    if (this.finished.has(toolUseId) || this.tools.has(toolUseId)) return []
    this.tools.set(toolUseId, { name: toolName, key: callKey(body), subAgent, waiting: false })
    if (subAgent !== undefined) return []
    this.turnOpen = true
    return [{ type: "tool_started", tool_name: toolName, call_id: toolUseId }, active(this.resting())]
  }

  private over(body: ClaudeBody, { success }: { readonly success: boolean }): Heard | Events {
    const { fields, promptId, subAgent, toolName, toolUseId = this.oldestLike(body) } = body
    if (toolUseId !== undefined && this.finished.has(toolUseId)) return []
    const tool = toolUseId === undefined ? undefined : this.tools.get(toolUseId)
    if (toolUseId !== undefined) {
      this.tools.delete(toolUseId)
      this.finished.add(toolUseId)
    }
    const durationMs = countOf(fields["duration_ms"])
    const error = success ? undefined : (textOf(fields["error"], harnessLimits.detailCharsMax) ?? "failed")
    const call = toolUseId === undefined ? {} : { callId: toolUseId }
    const settled: ReadonlyArray<Settled> =
      toolUseId === undefined
        ? []
        : [
            {
              callId: toolUseId,
              outcome: success ? "ran" : "failed",
              durationMs,
              ...(error === undefined ? {} : { output: error })
            }
          ]
    if (subAgent !== undefined) return { events: this.afterSubAgent(tool), settled }
    const event: AgentEvent = {
      type: "tool_completed",
      tool_name: toolName,
      ...(call.callId === undefined ? {} : { call_id: call.callId }),
      duration_ms: durationMs,
      success,
      ...(error === undefined ? {} : { error })
    }
    const isLate = promptId !== undefined && this.ended.has(promptId) && !this.turnOpen
    return { events: isLate ? [event] : [event, active(this.resting())], settled }
  }

  /** A tool of a sub-agent is over: its parent shows again what it showed before it was asked about. */
  private afterSubAgent(tool: OpenTool | undefined): Events {
    if (tool?.waiting !== true) return []
    return [this.turnOpen || this.stopHeld ? active(this.resting()) : idle]
  }

  private oldestLike(body: ClaudeBody): string | undefined {
    const key = callKey(body)
    return [...this.tools].find(([, tool]) => tool.key === key)?.[0]
  }

  /** Calls of a batch that is over and that nobody saw end were refused. */
  private batchOver({ fields }: ClaudeBody): Heard {
    const ids = listOf(fields["tool_calls"]).map((call) =>
      textOf((call as Record<string, unknown> | null)?.["tool_use_id"])
    )
    const settled: Array<Settled> = []
    const events: Array<AgentEvent> = []
    for (const id of ids) {
      const tool = id === undefined ? undefined : this.tools.get(id)
      if (id === undefined || tool === undefined) continue
      this.tools.delete(id)
      this.finished.add(id)
      settled.push({ callId: id, outcome: "not_run", durationMs: 0 })
      if (tool.subAgent === undefined) events.push(notRun(id, tool.name))
    }
    return events.length === 0 ? { events, settled } : { events: [...events, active(this.resting())], settled }
  }

  private asked(body: ClaudeBody): Heard {
    const { fields, subAgent, toolInput, toolName } = body
    const key = callKey(body)
    const known = [...this.tools].findLast(([, tool]) => tool.key === key && !tool.waiting)
    const callId = known?.[0] ?? `ask_${randomUUID()}`
    const tool = known?.[1] ?? { name: toolName, key, subAgent, waiting: true }
    tool.waiting = true
    this.tools.set(callId, tool)
    if (subAgent === undefined) this.turnOpen = true
    const title = titleOf(toolName, toolInput)
    const suggestions = listOf(fields["permission_suggestions"])
    const from = subAgent === undefined ? {} : { subAgent }
    return {
      events: [{ type: "approval_requested", tool_name: toolName, call_id: callId, detail: title }],
      question: { callId, toolName, input: toolInput, title, suggestions, ...from }
    }
  }

  private said({ fields, subAgent }: ClaudeBody): Events {
    const id = textOf(fields["message_id"]) ?? ""
    const index = countOf(fields["index"])
    const seen = `message ${id} ${index}`
    if (this.finished.has(seen) || subAgent !== undefined) return []
    this.finished.add(seen)
    const text = `${this.messages.get(id) ?? ""}${textOf(fields["delta"], harnessLimits.messageCharsMax) ?? ""}`
    const content = text.slice(0, harnessLimits.messageCharsMax)
    if (fields["final"] !== true) {
      if (this.messages.size < harnessLimits.rememberedMax) this.messages.set(id, content)
      return []
    }
    this.messages.delete(id)
    return content === "" ? [] : [{ type: "agent_message", content }]
  }

  private stopped({ fields, promptId, subAgent }: ClaudeBody): Heard | Events {
    if (subAgent !== undefined) return []
    if (promptId !== undefined && this.promptId !== undefined && promptId !== this.promptId) return []
    if (this.subAgents.size > 0 || listOf(fields["background_tasks"]).length > 0) {
      this.stopHeld = true
      this.turnOpen = false
      return [active(this.resting())]
    }
    if (!this.turnOpen && !this.stopHeld && promptId !== undefined && this.ended.has(promptId)) return []
    const settled = this.settleWaiting("not_run")
    return { events: [...this.dropTools(() => true), ...this.endTurn()], settled }
  }

  private failed({ fields, promptId }: ClaudeBody): Heard {
    if (!this.turnOpen && promptId !== undefined && this.ended.has(promptId)) return nothingHeard
    const error = textOf(fields["error"], harnessLimits.detailCharsMax) ?? "the turn failed"
    const settled = this.settleWaiting("not_run")
    return { events: [...this.dropTools(() => true), ...this.endTurn(error)], settled }
  }

  private subAgentOver({ subAgent }: ClaudeBody): Heard | Events {
    if (subAgent === undefined || !this.subAgents.delete(subAgent)) return []
    const settled = this.settleWaiting("not_run", subAgent)
    this.dropTools((tool) => tool.subAgent === subAgent)
    if (this.stopHeld && this.subAgents.size === 0) return { events: this.endTurn(), settled }
    return settled.length === 0 ? { events: [] } : { events: [active(this.resting())], settled }
  }

  private endTurn(error?: string): Events {
    const turnId = this.promptId
    if (turnId !== undefined) this.ended.add(turnId)
    this.turnOpen = false
    this.stopHeld = false
    this.compacting = false
    // The state first: an error stays what is shown.
    return [idle, completed(turnId, error)]
  }

  private startedUnheard(): Heard {
    this.turnOpen = true
    return { events: [{ type: "turn_started" }] }
  }

  private answeredInTerminal(): Heard {
    const settled = this.settleWaiting("started")
    for (const tool of this.tools.values()) tool.waiting = false
    return settled.length === 0 ? nothingHeard : { events: [active(this.resting())], settled }
  }

  private settleWaiting(outcome: Settled["outcome"], subAgent?: string): ReadonlyArray<Settled> {
    return [...this.tools]
      .filter(([, tool]) => tool.waiting && (subAgent === undefined || tool.subAgent === subAgent))
      .map(([callId]) => ({ callId, outcome, durationMs: 0 }))
  }

  /** Forgets calls that will not be heard of again; those of the agent itself are told as not run. */
  private dropTools(which: (tool: OpenTool) => boolean): Events {
    const events: Array<AgentEvent> = []
    for (const [id, tool] of this.tools) {
      if (!which(tool)) continue
      this.tools.delete(id)
      this.finished.add(id)
      if (tool.subAgent === undefined) events.push(notRun(id, tool.name))
    }
    return events
  }
}

const notRun = (callId: string, toolName: string): AgentEvent => ({
  type: "tool_completed",
  tool_name: toolName,
  call_id: callId,
  duration_ms: 0,
  success: false,
  error: "ended without a result"
})
