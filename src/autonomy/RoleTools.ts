// Gives the agents of a goal the tools of their part, on top of those that every agent has: the orchestrator and the
// critic read and hand in, workers do everything and leave notes. Whatever tools there are besides, those two get none
// that changes anything.
import * as Effect from "effect/Effect"
import { orchestratorIdOf } from "../machine/decide/TaskSchedule.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import { pathOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Input, Tool } from "../tool/Tool.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import { withProtection } from "./Demands.ts"
import type { Tools } from "./GoalContext.ts"
import { agentTools } from "./tools/Agents.ts"
import { giveUpTool, makeSubmitPlan, makeUpdatePlan } from "./tools/Plan.ts"
import { makeSubmitReview } from "./tools/Review.ts"

type Part = "orchestrator" | "critic" | "worker"

/** Which part an agent has in the goal that is pursued, if any. */
export const partOf = (state: ConversationState, agentId: AgentId | null): Part | undefined => {
  const { plan } = state
  if (plan === null || agentId === null) return undefined
  if (agentId === orchestratorIdOf(plan.plan_id)) return "orchestrator"
  if (agentId === plan.critic_id) return "critic"
  return pathOf(state, agentId).includes(orchestratorIdOf(plan.plan_id)) ? "worker" : undefined
}

/** A batch that holds one of these, accepted, is the end of the turn: there is nothing more to say. */
const lastCalls: ReadonlySet<string> = new Set(["submit_plan", "submit_review", "give_up"])

export const endsTurn = (call: CallState): boolean => lastCalls.has(call.tool_name) && call.result?.status === "success"

/** The state as the policy sees it: workers of a goal may not change what it protects. */
const seenBy = (state: ConversationState, call: CallState): ConversationState =>
  partOf(state, call.agent_id) === undefined ? state : withProtection(state)

const inProcess = { level: "in_process", network: false, roots: [] } as const

export const withRoleTools = (inner: ToolPort, tools: Tools): ToolPort => {
  const own: Readonly<Record<Part, ReadonlyArray<Tool>>> = {
    orchestrator: [makeSubmitPlan(tools), makeUpdatePlan(tools), giveUpTool],
    critic: [makeSubmitReview(tools)],
    worker: [makeUpdatePlan(tools), ...agentTools]
  }
  const ownOf = (state: ConversationState, agentId: AgentId | null, name: string): Tool | undefined => {
    const part = partOf(state, agentId)
    return part === undefined ? undefined : own[part].find((tool) => tool.name === name)
  }
  const isKept = (state: ConversationState, agentId: AgentId, name: string): boolean => {
    const part = partOf(state, agentId)
    if (part === undefined || part === "worker") return true
    return inner.facts(state, agentId, name)?.mutating === false
  }
  const isOutside = (state: ConversationState, call: CallState): boolean =>
    call.agent_id !== null && !isKept(state, call.agent_id, call.tool_name)
  const { judge } = inner
  return {
    ...(inner.ready === undefined ? {} : { ready: inner.ready }),
    ...(inner.leftOut === undefined ? {} : { leftOut: inner.leftOut }),
    describe: (state, agentId) => {
      const part = partOf(state, agentId)
      const offered = inner.describe(state, agentId).filter(({ name }) => isKept(state, agentId, name))
      if (part === undefined) return offered
      const added = own[part].filter((tool) => !offered.some(({ name }) => name === tool.name))
      return [...offered, ...added.map(({ description, name, parameters }) => ({ name, description, parameters }))]
    },
    facts: (state, agentId, name) =>
      ownOf(state, agentId, name) ?? (isKept(state, agentId, name) ? inner.facts(state, agentId, name) : undefined),
    ...(judge === undefined
      ? {}
      : {
          judge: (state, call) => {
            if (ownOf(state, call.agent_id, call.tool_name) !== undefined) return "allow"
            return isOutside(state, call) ? "deny" : judge(seenBy(state, call), call)
          }
        }),
    authorize: (state, call, asking) => {
      if (ownOf(state, call.agent_id, call.tool_name) !== undefined)
        return Effect.succeed({ _tag: "Allow", sandbox: inProcess })
      return isOutside(state, call)
        ? Effect.succeed({ _tag: "Deny", reason: `${call.tool_name} changes things, and this agent only reads` })
        : inner.authorize(seenBy(state, call), call, asking)
    },
    sandbox: (state, call) =>
      ownOf(state, call.agent_id, call.tool_name) === undefined ? inner.sandbox(state, call) : inProcess,
    run: (state, call, context) => {
      const tool = ownOf(state, call.agent_id, call.tool_name)
      return tool === undefined ? inner.run(state, call, context) : tool.run((call.arguments ?? {}) as Input, context)
    }
  }
}
