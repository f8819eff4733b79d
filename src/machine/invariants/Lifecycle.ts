/** The promises about agents, turns, calls and hooks, rune by rune. */
import { ordinalOf } from "../../rune/Ids.ts"
import type { Kind } from "../../rune/Kinds.ts"
import type { Rune, RuneOf } from "../../rune/Rune.ts"
import { sessionLands } from "../table/Session.ts"
import { goalChecks } from "./Goal.ts"
import type { SeenAgent, SeenCall, World } from "./World.ts"

type Check<K extends Kind> = (world: World, rune: RuneOf<K>) => void

/** The agent a rune belongs to; one that was never spawned, or is over, is a violation. */
const speakerOf = (world: World, rune: Rune): SeenAgent | undefined => {
  const agent = rune.agent_id === undefined ? undefined : world.agents.get(rune.agent_id)
  if (agent === undefined || !agent.isAlive) {
    world.violate("INV-AGENT-SUPERVISED", rune, `${rune.agent_id ?? "no agent"} is not alive`)
  }
  return agent
}

/** The speaker, which must be in the very turn that the rune names. */
const inTurn = (world: World, rune: Rune): SeenAgent | undefined => {
  const agent = speakerOf(world, rune)
  if (agent === undefined) return undefined
  if (agent.turn_id === rune.turn_id && rune.turn_id !== undefined) return agent
  world.violate("INV-TURN-ORDER", rune, `${rune.turn_id ?? "no turn"} is not the running turn of ${agent.agent_id}`)
  return undefined
}

const spawning: Check<"agent.spawning"> = (world, rune) => {
  const { agent_id: agentId, parent_id: parentId } = rune.payload
  if (world.agents.has(agentId)) world.violate("INV-AGENT-SUPERVISED", rune, `${agentId} exists already`)
  if (parentId !== undefined && world.agents.get(parentId)?.isAlive !== true) {
    world.violate("INV-AGENT-SUPERVISED", rune, `its parent ${parentId} is not alive`)
  }
  world.agents.set(agentId, {
    agent_id: agentId,
    parent_id: parentId,
    isAlive: true,
    isExhausted: false,
    turn_id: undefined,
    request_id: undefined,
    hook_run_id: undefined
  })
}

const agentOver = (world: World, rune: RuneOf<"agent.terminated"> | RuneOf<"agent.failed">): void => {
  const agent = world.agents.get(rune.payload.agent_id)
  if (agent === undefined || !agent.isAlive) {
    world.violate("INV-AGENT-SUPERVISED", rune, `${rune.payload.agent_id} is not alive`)
    return
  }
  if (agent.turn_id !== undefined) world.violate("INV-TURN-TERMINAL", rune, `${agent.turn_id} has no terminal rune`)
  for (const child of world.agents.values()) {
    if (child.parent_id === agent.agent_id && child.isAlive) {
      world.violate("INV-AGENT-SUPERVISED", rune, `${child.agent_id} outlives its parent`)
    }
  }
  agent.isAlive = false
}

const sessionClosed: Check<"session.closed"> = (world, rune) => {
  for (const agent of world.agents.values()) {
    if (agent.isAlive) world.violate("INV-AGENT-SUPERVISED", rune, `${agent.agent_id} is still alive`)
  }
}

const turnStarted: Check<"turn.started"> = (world, rune) => {
  const agent = speakerOf(world, rune)
  if (agent === undefined) return
  const { turn_id: turnId } = rune.payload
  if (agent.turn_id !== undefined) {
    world.violate("INV-TURN-SEQUENTIAL", rune, `${agent.agent_id} is still in ${agent.turn_id}`)
  }
  if (ordinalOf(turnId) <= world.lastTurn) world.violate("INV-TURN-ORDER", rune, `${turnId} is not a new turn`)
  if (world.session !== "active") world.violate("INV-TURN-ORDER", rune, `the session is ${world.session}`)
  world.lastTurn = Math.max(world.lastTurn, ordinalOf(turnId))
  agent.turn_id = turnId
  agent.request_id = undefined
}

const turnOver = (world: World, rune: RuneOf<"turn.completed" | "turn.interrupted" | "turn.error">): void => {
  const agent = speakerOf(world, rune)
  if (agent === undefined) return
  if (agent.turn_id === undefined || agent.turn_id !== rune.turn_id) {
    world.violate("INV-TURN-TERMINAL", rune, `${rune.turn_id ?? "no turn"} is not running`)
    return
  }
  const open = world.openCallsOf(rune.turn_id)
  for (const call of open) world.violate("INV-TOOL-TERMINAL", rune, `${call.call_id} has no result`)
  if (rune.kind === "turn.completed" && open.length > 0) {
    world.violate("INV-READY-NO-PENDING-TOOLS", rune, `${open.length} calls are open`)
  }
  if (agent.hook_run_id !== undefined) {
    world.violate("INV-HOOKS-NEVER-OVERLAP", rune, `${agent.hook_run_id} is still running`)
  }
  world.forgetTurn(agent.turn_id)
  agent.turn_id = undefined
  agent.request_id = undefined
  agent.hook_run_id = undefined
}

const modelRequested: Check<"turn.model_requested"> = (world, rune) => {
  const agent = inTurn(world, rune)
  if (agent === undefined) return
  const { request_id: requestId, replaces } = rune.payload
  if (agent.request_id !== undefined && agent.request_id !== replaces) {
    world.violate("INV-ONE-MODEL-CALL-PER-AGENT", rune, `${agent.request_id} is not answered`)
  }
  if (agent.isExhausted) world.violate("INV-AGENT-BUDGET", rune, `${agent.agent_id} is out of budget`)
  const open = world.openCallsOf(agent.turn_id)
  if (open.length > 0) world.violate("INV-READY-NO-PENDING-TOOLS", rune, `${open[0]?.call_id} has no result`)
  agent.request_id = requestId
}

const delta = (world: World, rune: RuneOf<"turn.assistant_delta" | "turn.reasoning_delta">): void => {
  const agent = inTurn(world, rune)
  if (agent !== undefined && agent.request_id === undefined) {
    world.violate("INV-TURN-ORDER", rune, "no request is being answered")
  }
}

const assistantFinal: Check<"turn.assistant_final"> = (world, rune) => {
  const agent = inTurn(world, rune)
  if (agent === undefined) return
  if (agent.request_id === undefined) world.violate("INV-TURN-ORDER", rune, "no request is being answered")
  agent.request_id = undefined
}

/** The summary that was asked for is there. */
const compacted: Check<"turn.compacted"> = (world, rune) => {
  const agent = world.agents.get(rune.agent_id ?? "")
  if (agent !== undefined) agent.request_id = undefined
}

const retryScheduled: Check<"turn.retry_scheduled"> = (world, rune) => {
  const agent = inTurn(world, rune)
  if (agent !== undefined && rune.payload.target.type === "llm") agent.request_id = undefined
}

const toolsFinished: Check<"turn.tools_finished"> = (world, rune) => {
  const agent = inTurn(world, rune)
  for (const call of world.openCallsOf(agent?.turn_id)) {
    world.violate("INV-TOOL-TERMINAL", rune, `${call.call_id} has no result`)
  }
}

const toolCall: Check<"tool.call"> = (world, rune) => {
  const { call_id: callId } = rune.payload
  if (rune.turn_id === undefined) speakerOf(world, rune)
  else inTurn(world, rune)
  if (world.calls.has(callId)) world.violate("INV-TOOL-TERMINAL", rune, `${callId} is used twice`)
  world.addCall({
    call_id: callId,
    agent_id: rune.agent_id,
    turn_id: rune.turn_id,
    visibility: rune.visibility,
    asked: false,
    approved: false,
    denied: false,
    started: false,
    result: false
  })
}

/** The call a rune speaks of: it must have been made, and not be over. */
const openCall = (world: World, rune: Rune, callId: string): SeenCall | undefined => {
  const call = world.calls.get(callId)
  if (call === undefined) {
    world.violate("INV-TOOL-CALL-BEFORE-RESULT", rune, `${callId} was never called`)
    return undefined
  }
  if (!call.result) return call
  world.violate("INV-TOOL-TERMINAL", rune, `${callId} has its result already`)
  return undefined
}

const approvalRequested: Check<"tool.approval_requested"> = (world, rune) => {
  const call = openCall(world, rune, rune.payload.call_id)
  if (call === undefined) return
  if (call.started) world.violate("INV-TOOL-APPROVAL-BEFORE-EXEC", rune, `${call.call_id} has started`)
  call.asked = true
}

const approved: Check<"tool.approved"> = (world, rune) => {
  const call = openCall(world, rune, rune.payload.call_id)
  if (call === undefined) return
  if (!call.asked || call.approved || call.denied) {
    world.violate("INV-TOOL-APPROVAL-BEFORE-EXEC", rune, `${call.call_id} waits for no decision`)
  }
  call.approved = true
}

const denied: Check<"tool.denied"> = (world, rune) => {
  const call = openCall(world, rune, rune.payload.call_id)
  if (call === undefined) return
  if (call.approved || call.denied || call.started) {
    world.violate("INV-TOOL-APPROVAL-BEFORE-EXEC", rune, `${call.call_id} waits for no decision`)
  }
  call.denied = true
}

const toolStarted: Check<"tool.started"> = (world, rune) => {
  const call = openCall(world, rune, rune.payload.call_id)
  if (call === undefined) return
  if (call.denied || (call.asked && !call.approved)) {
    world.violate("INV-TOOL-APPROVAL-BEFORE-EXEC", rune, `${call.call_id} was not approved`)
  }
  if (rune.payload.sandbox.level === "") world.violate("INV-TOOL-SANDBOX", rune, "no sandbox level is named")
  call.started = true
}

const toolResult: Check<"tool.result"> = (world, rune) => {
  const { call_id: callId, status } = rune.payload
  const call = openCall(world, rune, callId)
  if (call === undefined) return
  if (!call.started && (status === "success" || status === "unknown")) {
    world.violate("INV-TOOL-CALL-BEFORE-RESULT", rune, `${callId} never started`)
  }
  if (!call.started && status === "sandbox_violation") world.violate("INV-TOOL-SANDBOX", rune, `${callId} never ran`)
  world.settleCall(call)
}

const hookStarted: Check<"hook.started"> = (world, rune) => {
  const agent = inTurn(world, rune)
  if (agent === undefined) return
  const { hook_run_id: hookRunId } = rune.payload
  // The same run may start again: the server went away while it ran.
  for (const { hook_run_id: running } of world.agents.values()) {
    if (running === undefined || running === hookRunId) continue
    world.violate("INV-HOOKS-NEVER-OVERLAP", rune, `${running} is still running`)
  }
  if (world.openCallsOf(agent.turn_id).length > 0) world.violate("INV-TURN-ORDER", rune, "the batch is not finished")
  agent.hook_run_id = hookRunId
}

const hookCompleted: Check<"hook.completed"> = (world, rune) => {
  const agent = inTurn(world, rune)
  if (agent === undefined) return
  if (agent.hook_run_id !== rune.payload.hook_run_id) {
    world.violate("INV-HOOKS-NEVER-OVERLAP", rune, `${rune.payload.hook_run_id} is not running`)
  }
  agent.hook_run_id = undefined
}

const budgetExhausted: Check<"agent.budget_exhausted"> = (world, rune) => {
  const agent = speakerOf(world, rune)
  if (agent !== undefined) agent.isExhausted = true
}

const forgive = (world: World): void => {
  for (const agent of world.agents.values()) agent.isExhausted = false
}

const requireTurn = (world: World, rune: Rune): void => {
  inTurn(world, rune)
}

const requireSpeaker = (world: World, rune: Rune): void => {
  speakerOf(world, rune)
}

const requireCall = (world: World, rune: RuneOf<"tool.progress">): void => {
  const call = openCall(world, rune, rune.payload.call_id)
  if (call !== undefined && !call.started) {
    world.violate("INV-TOOL-CALL-BEFORE-RESULT", rune, `${call.call_id} never started`)
  }
}

const checks: { readonly [K in Kind]?: Check<K> } = {
  "session.closed": sessionClosed,
  "session.unsuspended": forgive,
  "config.updated": (world, rune) => {
    if (rune.payload.budget !== undefined || rune.payload.changes.budget !== undefined) forgive(world)
  },
  "agent.spawning": spawning,
  "agent.ready": requireSpeaker,
  "agent.terminated": agentOver,
  "agent.failed": agentOver,
  "agent.budget_exhausted": budgetExhausted,
  "turn.queued": requireSpeaker,
  "turn.dequeued": requireSpeaker,
  "turn.started": turnStarted,
  "turn.model_requested": modelRequested,
  "turn.compacted": compacted,
  "turn.assistant_delta": delta,
  "turn.reasoning_delta": delta,
  "turn.assistant_final": assistantFinal,
  "turn.tool_calls_received": requireTurn,
  "turn.tools_finished": toolsFinished,
  "turn.hooks_finished": requireTurn,
  "turn.retry_scheduled": retryScheduled,
  "turn.retry_started": requireTurn,
  "turn.completed": turnOver,
  "turn.interrupted": turnOver,
  "turn.error": turnOver,
  "tool.call": toolCall,
  "tool.approval_requested": approvalRequested,
  "tool.approved": approved,
  "tool.denied": denied,
  "tool.started": toolStarted,
  "tool.progress": requireCall,
  "tool.result": toolResult,
  "hook.started": hookStarted,
  "hook.completed": hookCompleted,
  "harness.attached": requireSpeaker,
  "harness.event": requireSpeaker,
  ...goalChecks
}

export const checkLifecycle = (world: World, rune: Rune): void => {
  // The one widening: the check is looked up by the very kind that the rune carries.
  const check = checks[rune.kind] as ((world: World, rune: Rune) => void) | undefined
  check?.(world, rune)
  world.session = sessionLands(world.session, rune)
}
