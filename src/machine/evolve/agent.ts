/** How agent and harness runes change the state. */
import type { AgentId } from "../../rune/Ids.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import type { RuneOf } from "../../rune/Rune.ts"
import { addTo, addTotals, noUsage } from "../../rune/UsageTotals.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableAgent, MutableConversation, MutableHarness, MutableInstructed } from "../State.ts"
import { agentLands } from "../table/Agent.ts"
import { attentionStep } from "../table/Attention.ts"
import { monitorStep, observe, signalOf } from "../table/Monitor.ts"
import { attentionSignals } from "../view/AttentionSignals.ts"
import { usageOfEvent } from "../view/OutsideUsage.ts"
import { findAgent, type Handlers, notice } from "./Parts.ts"

/** An agent of which nothing is known but that it is being brought up. */
export const blankAgent = (agentId: AgentId): MutableAgent => ({
  agent_id: agentId,
  role: "",
  model: "",
  parent_id: null,
  name: null,
  instructions: null,
  prompt: null,
  tools: null,
  budget: null,
  workspace: null,
  status: "spawning",
  exhausted: false,
  turns: 0,
  tool_calls: 0,
  usage: noUsage(),
  forgotten: null,
  wall_ms: 0,
  turn: null,
  last_turn: null,
  last_error: null,
  queue: [],
  transcript: [],
  effects: [],
  effects_dropped: 0,
  failed_calls: [],
  failed_hooks: [],
  harness: null
})

const newAgent = ({ payload }: RuneOf<"agent.spawning">): MutableAgent => ({
  ...blankAgent(payload.agent_id),
  role: payload.role,
  model: payload.model,
  parent_id: payload.parent_id ?? null,
  name: payload.name ?? null,
  instructions: payload.instructions ?? null,
  tools: payload.tools ?? null,
  budget: payload.budget ?? null,
  workspace: payload.workspace ?? null,
  harness:
    payload.harness === undefined ? null : { ...blankHarness(payload.harness), born_outside: true, attached: false }
})

const dropWords = (agent: MutableAgent): void => {
  agent.prompt = null
  agent.transcript = []
  agent.effects = []
  agent.failed_calls = []
  agent.failed_hooks = []
}

/**
 * An agent whose life is over keeps its figures and loses its words; old ones are forgotten. The root keeps both: a
 * conversation that is opened again goes on from them.
 */
const retire = (state: MutableConversation, agent: MutableAgent): void => {
  const isRoot = (one: MutableAgent): boolean => one.agent_id === state.session.root_agent_id
  agent.turn = null
  agent.queue = []
  if (!isRoot(agent)) dropWords(agent)
  state.calls = state.calls.filter((call) => call.agent_id !== agent.agent_id)
  const isOver = ({ status }: MutableAgent): boolean => status === "terminated" || status === "failed"
  const ended = state.agents.filter((one) => isOver(one) && !isRoot(one))
  const [oldest] = ended
  if (oldest !== undefined && ended.length > limits.endedAgentsMax) forget(state, oldest)
}

/** What it used still counts for whoever spawned it, and so do those that it spawned. */
const forget = (state: MutableConversation, agent: MutableAgent): void => {
  state.agents.splice(state.agents.indexOf(agent), 1)
  for (const one of state.agents) if (one.parent_id === agent.agent_id) one.parent_id = agent.parent_id
  const parent = findAgent(state, agent.parent_id ?? undefined)
  if (parent === undefined) return
  parent.forgotten ??= { usage: noUsage(), tool_calls: 0 }
  for (const used of [agent, agent.forgotten]) {
    if (used === null) continue
    addTotals(parent.forgotten.usage, used.usage)
    parent.forgotten.tool_calls += used.tool_calls
  }
}

const takeOver = (agent: MutableAgent, before: MutableAgent | undefined): void => {
  if (before === undefined) return
  agent.transcript = before.transcript
  agent.effects = before.effects
  dropWords(before)
}

const message = (agent: MutableAgent, rune: RuneOf<"agent.message">, content: Content): void => {
  const from = rune.payload.from_agent_id
  agent.queue.push({
    event_id: rune.event_id,
    input: content,
    mode: "queue",
    ...(from === undefined ? {} : { from_agent_id: from })
  })
}

/** An input that nobody has answered yet stays the last word. */
const addNote = (agent: MutableAgent, told: MutableInstructed): void => {
  const at = agent.transcript.findLastIndex((item) => item.type !== "user") + 1
  agent.transcript.splice(at, 0, { type: "note", ...told })
}

export const agentHandlers: Handlers<"agent"> = {
  "agent.spawning": (state, rune) => {
    if (findAgent(state, rune.payload.agent_id) !== undefined) return
    const agent = newAgent(rune)
    takeOver(agent, findAgent(state, rune.payload.continues))
    state.agents.push(agent)
    // The first agent without a parent is the root, whatever happens to it later.
    if (rune.payload.parent_id === undefined) state.session.root_agent_id ??= rune.payload.agent_id
  },
  "agent.ready": (state, rune) => {
    const agent = findAgent(state, rune.payload.agent_id)
    if (agent !== undefined) agent.status = agentLands(agent.status, rune)
  },
  "agent.instructed": (state, { event_id, payload }) => {
    const agent = findAgent(state, payload.agent_id)
    if (agent === undefined) return
    const told = { event_id, content: payload.text, parts: payload.parts }
    if (agent.prompt === null) agent.prompt = told
    else addNote(agent, told)
  },
  "agent.failed": (state, rune) => {
    const agent = findAgent(state, rune.payload.agent_id)
    if (agent === undefined) return
    const { error } = rune.payload
    agent.status = agentLands(agent.status, rune)
    agent.last_error = { ...error, event_id: rune.event_id }
    retire(state, agent)
    notice(state, {
      event_id: rune.event_id,
      type: "agent_failed",
      agent_id: agent.agent_id,
      call_id: null,
      message: error.message
    })
  },
  "agent.terminated": (state, rune) => {
    const agent = findAgent(state, rune.payload.agent_id)
    if (agent === undefined) return
    agent.status = agentLands(agent.status, rune)
    retire(state, agent)
  },
  "agent.message": (state, rune) => {
    const agent = findAgent(state, rune.payload.to_agent_id)
    if (agent !== undefined) message(agent, rune, rune.payload.content)
  },
  "agent.budget_exhausted": (state, rune) => {
    const { agent_id: agentId, which, used, limit } = rune.payload
    const agent = findAgent(state, agentId)
    if (agent === undefined) return
    agent.exhausted = true
    notice(state, {
      event_id: rune.event_id,
      type: "budget_exhausted",
      agent_id: agentId,
      call_id: null,
      message: `${which}: ${used} of ${limit} used`
    })
  },
  "agent.state_changed": (state, rune) => {
    const harness = findAgent(state, rune.agent_id)?.harness
    if (harness === null || harness === undefined) return
    harness.monitor = monitorStep(harness.monitor, signalOf({ type: "state_change", ...rune.payload }))
    for (const signal of attentionSignals(rune)) harness.attention = attentionStep(harness.attention, signal)
    harness.last_event_ms = rune.ts_ms
  }
}

export const blankHarness = (harness: string): MutableHarness => ({
  harness,
  pid: null,
  session_ref: null,
  born_outside: false,
  attached: true,
  monitor: "initialized",
  attention: "starting",
  last_event_ms: 0
})

const newHarness = (rune: RuneOf<"harness.attached">): MutableHarness => ({
  ...blankHarness(rune.payload.harness),
  pid: rune.payload.pid ?? null,
  session_ref: rune.payload.session_ref ?? null,
  last_event_ms: rune.ts_ms
})

export const harnessHandlers: Handlers<"harness"> = {
  "harness.attached": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    if (agent !== undefined) agent.harness = { ...newHarness(rune), born_outside: agent.harness?.born_outside ?? false }
  },
  "harness.event": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    if (agent === undefined || agent.harness === null) return
    const { harness } = agent
    const usage = usageOfEvent(rune.payload.event)
    if (usage !== undefined) for (const totals of [agent.usage, state.usage]) addTo(totals, usage)
    harness.monitor = observe(harness.monitor, rune.payload.event)
    for (const signal of attentionSignals(rune)) harness.attention = attentionStep(harness.attention, signal)
    harness.last_event_ms = rune.ts_ms
  },
  "harness.input_sent": (state, rune) => {
    const harness = findAgent(state, rune.agent_id)?.harness
    if (harness !== null && harness !== undefined) harness.last_event_ms = rune.ts_ms
  },
  "harness.detached": (state, rune) => {
    const harness = findAgent(state, rune.agent_id)?.harness
    if (harness === null || harness === undefined) return
    harness.attached = false
    harness.monitor = monitorStep(harness.monitor, "session_ended")
    harness.attention = attentionStep(harness.attention, "mark_stopped")
  },
  "harness.recovered": (state, rune) => {
    const harness = findAgent(state, rune.agent_id)?.harness
    if (harness === null || harness === undefined) return
    harness.attention = attentionStep(harness.attention, "health_check_recovery")
    harness.last_event_ms = rune.ts_ms
  }
}
