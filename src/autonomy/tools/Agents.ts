// Tools for agents that need help: spawn another agent, talk to it, wait for its answer. How deep and how many is bounded,
// and nobody can wait for somebody who waits for them.
import { createHash } from "node:crypto"
import { tryCommand } from "../../contract/TryCommand.ts"
import type { AgentState, ConversationState } from "../../machine/State.ts"
import { agentOf, aliveAgents, isAlive, pathOf } from "../../machine/view/Select.ts"
import { type AgentId, isAgentId } from "../../rune/Ids.ts"
import type { Input, Tool } from "../../tool/Tool.ts"
import type { SignalContext, ToolOutcome } from "../../tool/ToolPort.ts"
import { limits } from "../GoalLimits.ts"
import { lastAnswer } from "../LastAnswer.ts"
import { Problems } from "../Problems.ts"
import { done, faulty, ownTool, wrong } from "./RoleTool.ts"
import { list, object, text } from "./Schema.ts"

/** The same call makes the same agent, however often it is run. */
const idOf = ({ call_id, conversation_id }: SignalContext): AgentId =>
  `agt_${createHash("sha256").update(`${conversation_id} ${call_id}`).digest("hex").slice(0, 16)}` as AgentId

const tooMany = (state: ConversationState, agentId: AgentId): string | undefined => {
  if (pathOf(state, agentId).length >= limits.spawnDepthMax) return "agents are nested as deep as they may be"
  const children = aliveAgents(state).filter((one) => one.parent_id === agentId).length
  return children < limits.childrenMax ? undefined : `you have ${children} agents already; end or use one of them`
}

const spawnAgent = async (input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { agent_id: parentId, conversation } = context
  const state = conversation.state()
  const agentId = idOf(context)
  const self = agentOf(state, parentId)
  const made = agentOf(state, agentId)
  // The call was cut off after it had taken effect, or half of it.
  if (made !== undefined && (made.turns > 0 || made.queue.length > 0)) return done(`Agent ${agentId} is at work.`)
  const problems = new Problems()
  const message = problems.text("message", input["message"], limits.taskTextCharsMax)
  const role = problems.text("role", input["role"] ?? "worker", 64)
  const tools = problems.texts("tools", input["tools"], 64)
  const full = made === undefined ? tooMany(state, parentId) : undefined
  if (full !== undefined) return wrong(full, "too_many_agents")
  if (problems.list.length > 0) return faulty("agent", problems.list)
  const { instructions } = input
  const spec = {
    agent_id: agentId,
    role,
    model: self?.model ?? state.session.config.model ?? "",
    parent_id: parentId,
    ...(typeof instructions === "string" ? { instructions } : {}),
    ...(tools.length === 0 ? {} : { tools }),
    ...(self?.workspace == null ? {} : { workspace: self.workspace })
  }
  const refused = made === undefined ? await tryCommand(conversation, { _tag: "SpawnAgent", spec }) : undefined
  if (refused !== undefined) return wrong(refused.message, refused.code)
  const refusal = await tryCommand(conversation, {
    _tag: "SendAgentMessage",
    to_agent_id: agentId,
    from_agent_id: parentId,
    content: message
  })
  return refusal === undefined
    ? done(`Agent ${agentId} is at work. Use wait_agent with its id for the answer.`)
    : wrong(refusal.message, refusal.code)
}

const namedAgent = (state: ConversationState, value: unknown): AgentState | undefined =>
  isAgentId(value) ? agentOf(state, value) : undefined

const sendAgent = async (input: Input, { agent_id: from, conversation }: SignalContext): Promise<ToolOutcome> => {
  const problems = new Problems()
  const content = problems.text("message", input["message"], limits.taskTextCharsMax)
  const agent = namedAgent(conversation.state(), input["agent_id"])
  if (agent === undefined) problems.add("agent_id", `there is no agent ${String(input["agent_id"])}`)
  if (agent?.agent_id === from) problems.add("agent_id", "that is you")
  if (problems.list.length > 0 || agent === undefined) return faulty("message", problems.list)
  const to = { to_agent_id: agent.agent_id, from_agent_id: from }
  const refusal = await tryCommand(conversation, { _tag: "SendAgentMessage", ...to, content })
  return refusal === undefined ? done(`Sent to ${agent.agent_id}.`) : wrong(refusal.message, refusal.code)
}

const isQuiet = (agent: AgentState | undefined): boolean =>
  agent === undefined || !isAlive(agent) || (agent.status === "idle" && agent.queue.length === 0)

const reportOf = (state: ConversationState, agentId: AgentId): string => {
  const agent = agentOf(state, agentId)
  if (agent === undefined) return `${agentId} has ended.`
  if (!isAlive(agent))
    return agent.last_error === null ? `${agentId} has ended.` : `${agentId} has ended: ${agent.last_error.message}`
  if (!isQuiet(agent)) return `${agentId} is still at work.`
  if (agent.last_turn?.status === "error") return `${agentId} failed: ${agent.last_error?.message ?? "no reason given"}`
  return `${agentId} answers:\n${lastAnswer(agent)}`
}

const waitAgent = async (input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { agent_id: self, conversation, signal } = context
  const state = conversation.state()
  const problems = new Problems()
  const ids = problems.texts("agent_ids", input["agent_ids"] ?? [], limits.childrenMax) as ReadonlyArray<AgentId>
  if (ids.length === 0) problems.add("agent_ids", "name at least one agent")
  for (const id of ids) {
    if (namedAgent(state, id) === undefined) problems.add("agent_ids", `there is no agent ${id}`)
    if (pathOf(state, self).includes(id)) problems.add("agent_ids", `${id} waits for you`)
  }
  if (problems.list.length > 0) return faulty("wait", problems.list)
  const { timeout_ms: given } = input
  const timeoutMs = typeof given === "number" && given > 0 ? Math.min(given, limits.waitMsMax) : limits.waitMsDefault
  const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  while (!late.aborted && !ids.every((id) => isQuiet(agentOf(conversation.state(), id))))
    await conversation.changed(late)
  return done(ids.map((id) => reportOf(conversation.state(), id)).join("\n\n"))
}

const anAgent = text("id of the agent")

/** For every agent that may have help. */
export const agentTools: ReadonlyArray<Tool> = [
  ownTool({
    name: "spawn_agent",
    description: "Starts another agent with a context of its own on a piece of work. It sees only what you tell it.",
    parameters: object(
      {
        message: text("what it is to do, with all it has to know"),
        role: text("such as worker or explorer"),
        instructions: text("standing instructions"),
        tools: list({ type: "string" }, "names of the tools it may use; all of yours unless told")
      },
      ["message"]
    ),
    effect_class: "idempotent",
    run: spawnAgent
  }),
  ownTool({
    name: "send_agent",
    description: "Sends a message to another agent. It is read when the agent has ended its turn.",
    parameters: object({ agent_id: anAgent, message: text("the message") }, ["agent_id", "message"]),
    effect_class: "effect",
    run: sendAgent
  }),
  ownTool({
    name: "wait_agent",
    description: "Waits until agents have nothing more to do, and gives you their last words.",
    parameters: object(
      {
        agent_ids: list({ type: "string" }, "ids of the agents"),
        timeout_ms: { type: "integer", description: `at most ${limits.waitMsMax}` }
      },
      ["agent_ids"]
    ),
    effect_class: "pure",
    timeout_ms: limits.waitMsMax + 60_000,
    run: waitAgent
  })
]
