/** Deciding about agents: spawning, readiness, messages between them, their end. */
import { emptyContent, isEmptyContent } from "../../rune/Content.ts"
import type { AgentId } from "../../rune/Ids.ts"
import type { AgentRequest, AgentSpec } from "../Command.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState } from "../State.ts"
import { type AgentStatus, agent as agentMachine } from "../table/Agent.ts"
import { session } from "../table/Session.ts"
import { agentOf, aliveAgents, isAlive } from "../view/Select.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endAgent, endDependants, endInside, failTurn, terminatedPayload } from "./Ending.ts"
import { requireAgent } from "./Require.ts"
import { settlementOf } from "./Settlement.ts"

type Of<Tag extends AgentRequest["_tag"]> = Extract<AgentRequest, { readonly _tag: Tag }>

export const spawn = (sheet: Drafting, spec: AgentSpec): undefined =>
  sheet.write(draft("agent.spawning", spec, { agent_id: spec.agent_id }))

const kept = ["name", "instructions", "tools", "budget", "workspace"] as const

/** An agent like one that is over, to take over from it. */
export const successorOf = (before: AgentState, agentId: AgentId): AgentSpec => {
  const settings = Object.fromEntries(kept.filter((key) => before[key] !== null).map((key) => [key, before[key]]))
  return { ...settings, agent_id: agentId, role: before.role, model: before.model, continues: before.agent_id }
}

/** No model of ours would answer. */
export const outsideInput = "an outside agent gets input through harness.send"

const spawnsIn: ReadonlySet<string> = new Set(["created", "active"])

const spawnAgent = (sheet: Drafting, { spec }: Of<"SpawnAgent">): undefined => {
  const { state } = sheet
  const { status } = state.session
  if (!spawnsIn.has(status)) {
    sheet.refuse("invalid_state", `Session is ${status}: no agent can be spawned`, { state: status })
  }
  if (agentOf(state, spec.agent_id) !== undefined) sheet.refuse("invalid_state", `${spec.agent_id} exists already`)
  if (aliveAgents(state).length >= limits.agentsAliveMax) {
    sheet.refuse("limit_exceeded", `the limit of ${limits.agentsAliveMax} running agents is reached`, {
      limit: limits.agentsAliveMax
    })
  }
  if (spec.parent_id !== undefined) {
    const parent = requireAgent(sheet, spec.parent_id)
    if (parent !== undefined && !isAlive(parent)) {
      sheet.refuse("invalid_state", `parent ${spec.parent_id} is ${parent.status}`, { state: parent.status })
    }
  }
  spawn(sheet, spec)
}

const completeInit = (sheet: Drafting, command: Of<"CompleteAgentInit">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const payload = { agent_id: agent.agent_id }
  sheet.step(agentMachine, agent.status, { _tag: "CompleteInit", payload, place: { agent_id: agent.agent_id } })
  const { status, root_agent_id: root } = sheet.state.session
  if (status === "created" && agent.agent_id === root) {
    sheet.step(session, status, { _tag: "Activate", payload: { root_agent_id: root } })
  }
}

const failInit = (sheet: Drafting, command: Of<"FailAgentInit">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  endDependants(sheet, agent, command.error.message)
  const payload = { agent_id: agent.agent_id, error: command.error }
  sheet.step(agentMachine, agent.status, { _tag: "FailInit", payload, place: { agent_id: agent.agent_id } })
}

const instruct = (sheet: Drafting, { _tag: _, ...payload }: Of<"InstructAgent">): undefined => {
  const agent = requireAgent(sheet, payload.agent_id)
  if (agent === undefined) return
  if (!isAlive(agent)) {
    sheet.refuse("invalid_state", `Agent is ${agent.status}: it accepts no messages`, { state: agent.status })
    return
  }
  sheet.write(draft("agent.instructed", payload, { agent_id: agent.agent_id }))
}

const kill = (sheet: Drafting, command: Of<"KillAgent">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  if (!isAlive(agent)) {
    sheet.refuse("invalid_state", `Agent is ${agent.status}: Kill does not apply`, { state: agent.status })
    return
  }
  endAgent(sheet, agent, command)
}

const send = (sheet: Drafting, command: Of<"SendAgentMessage">): undefined => {
  const agent = requireAgent(sheet, command.to_agent_id)
  if (agent === undefined) return
  if (agent.harness?.born_outside === true) sheet.refuse("invalid_state", outsideInput, { state: agent.status })
  if (agent.queue.length >= limits.queuedMessagesMax) {
    sheet.refuse("limit_exceeded", `the queue of ${agent.agent_id} is full`, { limit: limits.queuedMessagesMax })
  }
  if (isEmptyContent(command.content)) sheet.refuse("bad_request", emptyContent)
  const { _tag: _, ...payload } = command
  sheet.step(agentMachine, agent.status, { _tag: "Deliver", payload, place: { agent_id: agent.agent_id } })
}

/** Its turn ends in an error, as one that may not go on; where that leaves the agent. */
const endExhaustedTurn = (sheet: Drafting, agent: AgentState, message: string): AgentStatus => {
  const { turn } = agent
  if (turn === null) return agent.status
  const error = { error_type: "budget_exhausted", message, retryable: false, source: "orchestrator" } as const
  endInside(sheet, { agent, turn }, { reason: message, end: "lose_effects" })
  failTurn(sheet, { agent, turn }, error, { usage: settlementOf(turn.request) })
  return "idle"
}

const exhaust = (sheet: Drafting, command: Of<"ExhaustBudget">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const { which, used, limit } = command
  const place = { agent_id: agent.agent_id }
  const payload = { agent_id: agent.agent_id, which, used, limit }
  if (command.consequence === "terminate") {
    endDependants(sheet, agent, "budget_exhausted")
    const status = endExhaustedTurn(sheet, agent, `${which}: ${used} of ${limit} used`)
    const terminated = { payload: terminatedPayload(agent, "budget_exhausted"), place }
    sheet.step(agentMachine, status, { _tag: "TerminateExhausted", exhausted: { payload, place }, terminated })
    return
  }
  sheet.step(agentMachine, agent.status, { _tag: "ReportExhaustion", payload, place })
  const { status } = sheet.state.session
  if (status === "suspended") return
  const suspended = { reason: "budget_exhausted", budget_info: { which, used, limit, agent_id: agent.agent_id } }
  sheet.step(session, status, { _tag: "Suspend", payload: suspended })
}

export const agentDeciders: Deciders<AgentRequest> = {
  SpawnAgent: spawnAgent,
  CompleteAgentInit: completeInit,
  FailAgentInit: failInit,
  InstructAgent: instruct,
  KillAgent: kill,
  SendAgentMessage: send,
  ExhaustBudget: exhaust
}
