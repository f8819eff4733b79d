// Names for the pieces of work that pending effects stand for: one for machines, one for people.
import type { ConversationState } from "../machine/State.ts"
import { callOf } from "../machine/view/Select.ts"
import type { PendingWork as Pending } from "../machine/work/PendingWork.ts"

/** Routing and running a call are one piece of work: it must not start over when it moves from one to the other. */
export const workId = (pending: Pending): string =>
  pending._tag === "RouteTool" || pending._tag === "RunTool" ? `call ${pending.call_id}` : pending.key

/** Where the work belongs among the fibers of its conversation: its agent, then its turn. */
export const workPath = (state: ConversationState, pending: Pending): ReadonlyArray<string> => {
  if (pending._tag === "PlanWork") return [`goal ${pending.plan_id}`]
  if (!("agent_id" in pending)) return []
  const agentId = pending.agent_id ?? state.session.root_agent_id
  const turnId =
    pending._tag === "AwaitApproval"
      ? callOf(state, pending.call_id)?.turn_id
      : "turn_id" in pending
        ? pending.turn_id
        : undefined
  return [`agent ${agentId}`, ...(turnId === undefined ? [] : [`turn ${turnId}`])]
}

/** The work as a person would name it. */
export const describeWork = (pending: Pending): string => {
  switch (pending._tag) {
    case "StartAgent":
      return `starting agent ${pending.agent_id}`
    case "StartQueued":
      return `starting the next turn of agent ${pending.agent_id}`
    case "CallModel":
      return `calling model ${pending.model} for ${pending.turn_id} of agent ${pending.agent_id}`
    case "FinaliseResponse":
      return `taking up the answer in ${pending.turn_id} of agent ${pending.agent_id}`
    case "RouteTool":
    case "RunTool":
      return `running ${pending.call_id} in ${pending.turn_id} of agent ${pending.agent_id}`
    case "AwaitApproval":
      return `waiting for an answer about ${pending.call_id}`
    case "SettleTools":
      return `finishing the tool calls of ${pending.turn_id} of agent ${pending.agent_id}`
    case "RunHook":
      return `running ${pending.hook_run_id} in ${pending.turn_id} of agent ${pending.agent_id}`
    case "RetryAfter":
      return `retrying ${pending.turn_id} of agent ${pending.agent_id}`
    case "FinishClosing":
      return "closing the conversation"
    case "PlanWork":
      return `the step ${pending.work._tag} of ${pending.plan_id}`
  }
}
