/** Deciding about the conversation as a whole. */
import type { AgentId } from "../../rune/Ids.ts"
import { usageOf } from "../../rune/UsageTotals.ts"
import type { SessionRequest } from "../Command.ts"
import type { ConversationState } from "../State.ts"
import { agent as agentMachine } from "../table/Agent.ts"
import { type SessionCommand, type SessionStatus, session } from "../table/Session.ts"
import { agentOf, aliveAgents } from "../view/Select.ts"
import { spawn, successorOf } from "./agent.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endAgent } from "./Ending.ts"
import { stopPlan } from "./plan.ts"
import { endWork } from "./work.ts"

type Of<Tag extends SessionRequest["_tag"]> = Extract<SessionRequest, { readonly _tag: Tag }>

const create = (sheet: Drafting, command: Of<"CreateConversation">): undefined => {
  if (sheet.state.head > 0) {
    sheet.refuse("invalid_state", "the conversation already exists", { state: sheet.state.session.status })
    return
  }
  sheet.write(
    draft("session.created", {
      config: command.config,
      ...(command.principal === undefined ? {} : { principal: command.principal })
    })
  )
  spawn(sheet, command.root)
}

const close = (sheet: Drafting, command: Of<"Close">): undefined => {
  sheet.step(session, sheet.state.session.status, { _tag: "Close", reason: command.reason })
  const alive = aliveAgents(sheet.state)
  stopPlan(sheet, "conversation_closed")
  const tops = alive.filter((agent) => !alive.some((other) => other.agent_id === agent.parent_id))
  for (const agent of tops) endAgent(sheet, agent, { reason: "session_closing", force: true })
}

export const finalStats = (state: ConversationState) => ({
  turns: state.turns,
  tool_calls: state.tool_calls,
  agents: state.agents.length,
  runes: state.head + 1,
  usage: usageOf(state.usage),
  wall_ms: Math.max(0, state.last_ms - state.session.created_ms)
})

const finishClosing = (sheet: Drafting): undefined => {
  if (aliveAgents(sheet.state).length > 0) {
    sheet.refuse("invalid_state", "agents are still running", { state: sheet.state.session.status })
    return
  }
  const payload = { final_stats: finalStats(sheet.state) }
  sheet.step(session, sheet.state.session.status, { _tag: "FinishClosing", payload })
}

const updateConfig = (sheet: Drafting, command: Of<"UpdateConfig">): undefined => {
  if (command.agent_id !== undefined && agentOf(sheet.state, command.agent_id) === undefined) {
    sheet.refuse("not_found", `no agent ${command.agent_id}`)
    return
  }
  const unknown = command.revoked_grants?.find((id) => !sheet.state.grants.some((grant) => grant.event_id === id))
  if (unknown !== undefined) {
    sheet.refuse("not_found", `event ${unknown} gave no permission that is still valid`)
    return
  }
  const { _tag: _, ...payload } = command
  const { reason, status } = sheet.state.session
  sheet.step(session, status, { _tag: "Configure", payload })
  const isBudget = command.budget !== undefined || command.changes.budget !== undefined
  // More to spend is what it waits for. If it is not enough, it is suspended again at once.
  if (isBudget && status === "suspended" && reason === "budget_exhausted") {
    sheet.step(session, status, { _tag: "Unsuspend", reason: "budget set" })
  }
}

/** A new root with the settings of the one that ended, which goes on from what was said. */
const reopen = (sheet: Drafting, status: SessionStatus, rootAgentId: AgentId): undefined => {
  const before = agentOf(sheet.state, sheet.state.session.root_agent_id)
  if (before === undefined) return
  spawn(sheet, successorOf(before, rootAgentId))
  const payload = { agent_id: rootAgentId }
  sheet.step(agentMachine, "spawning", { _tag: "CompleteInit", payload, place: payload })
  sheet.step(session, status, { _tag: "Activate", payload: { root_agent_id: rootAgentId } })
}

const restore = (sheet: Drafting, command: Of<"Restore">): undefined => {
  const { _tag, root_agent_id: rootAgentId, ...payload } = command
  const landed = sheet.step(session, sheet.state.session.status, { _tag, payload })
  if (rootAgentId !== undefined) reopen(sheet, landed, rootAgentId)
}

type StepOnly = "Pause" | "Resume" | "Suspend" | "Unsuspend" | "Archive" | "RecordFork"

/** Commands that are one step of the session table and nothing else. */
const stepOnly =
  <Tag extends StepOnly>(stepOf: (command: Of<Tag>) => SessionCommand) =>
  (sheet: Drafting, command: Of<Tag>): undefined => {
    sheet.step(session, sheet.state.session.status, stepOf(command))
  }

export const sessionDeciders: Deciders<SessionRequest> = {
  CreateConversation: create,
  Pause: stepOnly((command) => command),
  Resume: stepOnly((command) => command),
  Suspend: stepOnly(({ _tag, ...payload }) => ({ _tag, payload })),
  Unsuspend: stepOnly((command) => command),
  Close: close,
  FinishClosing: finishClosing,
  Archive: stepOnly(({ _tag, ...payload }) => ({ _tag, payload })),
  Restore: restore,
  Reopen: (sheet, command) => reopen(sheet, sheet.state.session.status, command.root_agent_id),
  EndWork: endWork,
  RecordFork: stepOnly(({ _tag: _, ...payload }) => ({ _tag: "Fork", payload })),
  UpdateConfig: updateConfig,
  RecordSystemError: (sheet, command) =>
    sheet.write(draft("system.error", command.payload, { agent_id: command.agent_id }))
}
