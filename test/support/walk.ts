/**
 * Random walks over a conversation: at each step a command is made up from what the
 * state offers, some of it wrong on purpose. The same numbers give the same walk.
 */

import { canonicalHash } from "#src/machine/Canonical.ts"
import type { Command, ResponseItem } from "#src/machine/Command.ts"
import { restoreSnapshot, snapshotOf } from "#src/machine/invariants/Replay.ts"
import type { AgentState, CallState, HookState } from "#src/machine/State.ts"
import { isAlive } from "#src/machine/view/Select.ts"
import { type PendingWork, pendingWork } from "#src/machine/work/PendingWork.ts"
import { type AgentId, type CallId, type HookRunId, makeAgentId, makeRequestId, type PlanId } from "#src/rune/Ids.ts"
import { autonomySamples } from "./machineSamples.ts"
import { planCommand } from "./planWork.ts"
import { payloadExamples } from "./runeExamples.ts"
import { callItem, readTool, type Story, shellTool, textItem, writeTool } from "./story.ts"

/** Draws whole numbers below a bound. */
export type Draw = (below: number) => number

const pick = <T>(draw: Draw, list: ReadonlyArray<T>): T => list[draw(list.length)]!

const someAgent = (story: Story, draw: Draw): AgentId => {
  const alive = story.state.agents.filter(isAlive)
  const agents = alive.length === 0 || draw(25) === 0 ? story.state.agents : alive
  return draw(40) === 0 ? ("agt_nobody" as AgentId) : pick<AgentState>(draw, agents).agent_id
}

const someCall = (story: Story, draw: Draw): CallId => {
  const failed = story.state.agents.flatMap((agent) => agent.failed_calls)
  if (failed.length > 0 && draw(4) === 0) return pick(draw, failed).call_id
  const calls = story.state.calls
  return calls.length === 0 || draw(20) === 0 ? (`call_${draw(6) + 1}` as CallId) : pick<CallState>(draw, calls).call_id
}

const someHook = (story: Story, draw: Draw): HookRunId => {
  const failed = story.state.agents.flatMap((agent) => agent.failed_hooks)
  if (failed.length > 0 && draw(2) === 0) return pick(draw, failed).hook_run_id
  const hooks = story.state.agents.flatMap((agent): ReadonlyArray<HookState> => agent.turn?.hooks ?? [])
  return hooks.length === 0 ? ("hookrun_1" as HookRunId) : pick(draw, hooks).hook_run_id
}

const usage = (draw: Draw) => ({ input_tokens: draw(100), output_tokens: draw(100), usd: draw(100) / 64 })

const someItems = (draw: Draw): ReadonlyArray<ResponseItem> => {
  const items: Array<ResponseItem> = [textItem("t".repeat(draw(4)))]
  const tools = [readTool, writeTool, shellTool, undefined]
  const texts = ["{}", '{"a":1}', "{", "[]", '{"__proto__":{"x":1}}']
  const ids = [undefined, "same", `id_${draw(9)}`, "not usable!"]
  for (let count = draw(4); count > 0; count--) {
    items.push(callItem(pick(draw, ["a", "ask_user"]), pick(draw, tools), pick(draw, texts), pick(draw, ids)))
  }
  return items
}

const policies = [
  { type: "fail_session" },
  { type: "warn_continue" },
  { type: "retry", max_attempts: 2, delay_ms: 5 }
] as const

const someHooks = (draw: Draw) =>
  Array.from({ length: draw(3) }, (_, index) => ({
    hook_name: `h${index}`,
    failure_policy: pick(draw, policies),
    timeout_ms: 5,
    effect_class: pick(draw, ["pure", "idempotent", "effect"] as const)
  }))

const failure = (draw: Draw) => ({
  error_type: "streaming_failed",
  message: "cut",
  retryable: draw(3) > 0,
  source: "harness" as const
})

type Maker = (story: Story, draw: Draw) => Command

/** A step of the plan that is pursued, as often as not out of place. */
const somePlanStep: Maker = (story, draw) => {
  const plan_id = story.state.plan?.plan_id ?? ("plan_1" as PlanId)
  const step = JSON.parse(
    JSON.stringify(pick(draw, Object.values(autonomySamples)), (key, value) => (key === "plan_id" ? plan_id : value))
  )
  return { _tag: "AdvancePlan", plan_id, step }
}

/** What comes from people and programs outside. */
const outside: ReadonlyArray<Maker> = [
  (story, draw) => ({
    _tag: "PostMessage",
    content: "hello",
    mode: pick(draw, ["queue", "steer"] as const),
    ...(draw(2) === 0 ? {} : { agent_id: someAgent(story, draw) })
  }),
  (story, draw) => ({ _tag: "InterruptTurn", agent_id: someAgent(story, draw), reason: "stop", usage: usage(draw) }),
  (story, draw) => ({ _tag: "RetryTurn", agent_id: someAgent(story, draw) }),
  () => ({ _tag: "Pause", reason: "p" }),
  () => ({ _tag: "Resume" }),
  () => ({ _tag: "Suspend", reason: "s" }),
  () => ({ _tag: "Unsuspend" }),
  (_, draw) => (draw(25) === 0 ? { _tag: "Close", reason: "c" } : { _tag: "Resume" }),
  () => ({ _tag: "Archive", location: "l", hash: "0".repeat(64) }),
  () => ({ _tag: "Restore" }),
  () => ({ _tag: "Unsuspend" }),
  () => ({ _tag: "Resume" }),
  (_, draw) => ({ _tag: "UpdateConfig", changes: { title: `t${draw(3)}` } }),
  (story, draw) => ({
    _tag: "SpawnAgent",
    spec: { agent_id: makeAgentId(story.ids), role: "w", model: "m", parent_id: someAgent(story, draw) }
  }),
  (story, draw) =>
    draw(4) === 0
      ? { _tag: "KillAgent", agent_id: someAgent(story, draw), reason: "k", force: draw(2) === 0 }
      : { _tag: "PostMessage", agent_id: someAgent(story, draw), content: "go", mode: "queue" },
  (story, draw) => ({ _tag: "SendAgentMessage", to_agent_id: someAgent(story, draw), content: "m" }),
  (story, draw) => ({
    _tag: "ExhaustBudget",
    agent_id: someAgent(story, draw),
    which: "usd",
    used: 2,
    limit: 1,
    consequence: draw(5) === 0 ? "terminate" : "suspend"
  }),
  (story, draw) => ({
    _tag: "ApproveCall",
    call_id: someCall(story, draw),
    approver: "a",
    channel: "c",
    scope: pick(draw, ["once", "session", "rule"] as const),
    ...(draw(3) === 0 ? { arguments: { edited: true } } : {})
  }),
  (story, draw) => ({
    _tag: "DenyCall",
    call_id: someCall(story, draw),
    approver: "a",
    reason: "r",
    interrupt: draw(3) === 0
  }),
  (story, draw) => ({ _tag: "RetryCall", call_id: someCall(story, draw), repeat_effect: draw(3) > 0 }),
  (story, draw) => ({ _tag: "RetryHook", hook_run_id: someHook(story, draw), repeat_effect: draw(3) > 0 }),
  (story, draw) => ({
    _tag: "SubmitGoal",
    payload: { plan_id: `plan_${story.state.head}` as PlanId, goal: "g", auto_start: draw(4) > 0 }
  }),
  somePlanStep,
  somePlanStep,
  (story, draw) => ({
    _tag: "OpenCall",
    agent_id: someAgent(story, draw),
    call_id: `out_${story.state.head}` as CallId,
    tool_name: "Bash",
    arguments: {},
    tool: shellTool
  }),
  (story, draw) => ({ _tag: "AttachHarness", agent_id: someAgent(story, draw), payload: { harness: "codex" } }),
  (story, draw) => ({
    _tag: "RecordHarnessEvents",
    agent_id: someAgent(story, draw),
    events: [payloadExamples["harness.event"].event]
  }),
  (story, draw) => ({ _tag: "DetachHarness", agent_id: someAgent(story, draw), payload: { reason: "gone" } })
]

/** What comes from the work itself, whether it is due or not. */
const inside: ReadonlyArray<Maker> = [
  (story, draw) => ({ _tag: "CompleteAgentInit", agent_id: someAgent(story, draw) }),
  (story, draw) =>
    draw(8) === 0
      ? { _tag: "FailAgentInit", agent_id: someAgent(story, draw), error: { code: "x", message: "y" } }
      : { _tag: "CompleteAgentInit", agent_id: someAgent(story, draw) },
  (story, draw) => ({ _tag: "StartQueued", agent_id: someAgent(story, draw) }),
  (story, draw) => ({
    _tag: "RequestModel",
    agent_id: someAgent(story, draw),
    request_id: makeRequestId(story.ids),
    provider: "p",
    model: "m"
  }),
  (story, draw) => ({
    _tag: pick(draw, ["AppendText", "AppendReasoning"] as const),
    agent_id: someAgent(story, draw),
    content: "x"
  }),
  (story, draw) => ({
    _tag: "ReceiveResponse",
    agent_id: someAgent(story, draw),
    items: someItems(draw),
    usage: usage(draw)
  }),
  (story, draw) => ({ _tag: "FailModelCall", agent_id: someAgent(story, draw), error: failure(draw) }),
  (story, draw) => ({ _tag: "RetryDue", agent_id: someAgent(story, draw) }),
  (story, draw) => ({ _tag: "FinaliseResponse", agent_id: someAgent(story, draw) }),
  (story, draw) => ({
    _tag: "SettleTools",
    agent_id: someAgent(story, draw),
    hooks: someHooks(draw),
    end_turn: draw(6) === 0
  }),
  (story, draw) => ({ _tag: "FailTurn", agent_id: someAgent(story, draw), error: failure(draw) }),
  (story, draw) => ({
    _tag: "Compact",
    agent_id: someAgent(story, draw),
    upto: 1 + draw(story.state.head + 2),
    summary: "s"
  }),
  (story, draw) => ({
    _tag: "RequireApproval",
    call_id: someCall(story, draw),
    policy_reason: "r",
    shown_as: { title: "t" },
    ...(draw(2) === 0 ? {} : { expires_ms: story.nowMs + draw(20) })
  }),
  (story, draw) => ({ _tag: "ExpireApproval", call_id: someCall(story, draw) }),
  (story, draw) => ({ _tag: "StartCall", call_id: someCall(story, draw), sandbox: { level: "none" } }),
  (story, draw) => ({ _tag: "AppendProgress", call_id: someCall(story, draw), stream: "stdout", chunk: "p" }),
  (story, draw) => ({
    _tag: "FinishCall",
    call_id: someCall(story, draw),
    status: pick(draw, ["success", "error", "timeout", "cancelled", "unknown", "sandbox_violation"] as const),
    output: "o",
    duration_ms: 1
  }),
  (story, draw) => ({ _tag: "CrashCall", call_id: someCall(story, draw), message: "boom" }),
  (story, draw) => ({ _tag: "StartHook", hook_run_id: someHook(story, draw) }),
  (story, draw) => ({
    _tag: "FinishHook",
    hook_run_id: someHook(story, draw),
    status: pick(draw, ["succeeded", "failed", "canceled"] as const),
    duration_ms: 1
  }),
  () => ({ _tag: "FinishClosing" })
]

/** The command that carries one pending effect a step further. */
export const carryOut = (story: Story, effect: PendingWork, draw: Draw): Command => {
  switch (effect._tag) {
    case "StartAgent":
      return { _tag: "CompleteAgentInit", agent_id: effect.agent_id }
    case "StartQueued":
    case "FinaliseResponse":
      return { _tag: effect._tag, agent_id: effect.agent_id }
    case "CallModel": {
      const isAsked = effect.cut_off !== null
      const request = {
        _tag: "RequestModel",
        agent_id: effect.agent_id,
        request_id: makeRequestId(story.ids),
        provider: "p",
        model: "m"
      } as const
      if (!isAsked) return request
      if (draw(6) === 0) return { _tag: "FailModelCall", agent_id: effect.agent_id, error: failure(draw) }
      const items = draw(2) === 0 ? [textItem("done")] : someItems(draw)
      return { _tag: "ReceiveResponse", agent_id: effect.agent_id, items, usage: usage(draw) }
    }
    case "RouteTool":
      return draw(3) === 0
        ? { _tag: "RequireApproval", call_id: effect.call_id, policy_reason: "r", shown_as: { title: "t" } }
        : { _tag: "StartCall", call_id: effect.call_id, sandbox: { level: "none" } }
    case "AwaitApproval":
      return draw(2) === 0 && (effect.expires_ms === null || story.nowMs < effect.expires_ms)
        ? { _tag: "ApproveCall", call_id: effect.call_id, approver: "a", channel: "c", scope: "once" }
        : { _tag: "ExpireApproval", call_id: effect.call_id }
    case "RunTool": {
      const call = story.call(effect.call_id)
      const mayRepeat = call.effect_class !== "effect"
      if (call.attempt === 0 || (mayRepeat && draw(4) === 0))
        return { _tag: "StartCall", call_id: effect.call_id, sandbox: { level: "none" } }
      if (draw(6) === 0) return { _tag: "CrashCall", call_id: effect.call_id, message: "boom" }
      return { _tag: "FinishCall", call_id: effect.call_id, status: "success", output: "o", duration_ms: 1 }
    }
    case "SettleTools":
      return { _tag: "SettleTools", agent_id: effect.agent_id, hooks: someHooks(draw) }
    case "RunHook": {
      const hook = story.state.agents
        .flatMap((agent): ReadonlyArray<HookState> => agent.turn?.hooks ?? [])
        .find((one) => one.hook_run_id === effect.hook_run_id)!
      if (hook.status !== "running") return { _tag: "StartHook", hook_run_id: effect.hook_run_id }
      const status = draw(4) === 0 ? "failed" : "succeeded"
      return { _tag: "FinishHook", hook_run_id: effect.hook_run_id, status, duration_ms: 1 }
    }
    case "RetryAfter":
      return { _tag: "RetryDue", agent_id: effect.agent_id }
    case "FinishClosing":
      return { _tag: "FinishClosing" }
    case "PlanWork":
      return planCommand(story.state, effect, draw(4) === 0 ? "failed" : "completed")
  }
}

/** The server stops and starts again: state from a snapshot, what was under way resolved. */
const crash = (story: Story): void => {
  const hash = canonicalHash(story.state)
  story.state = restoreSnapshot(snapshotOf(story.state))
  if (canonicalHash(story.state) !== hash) throw new Error("the snapshot differs from the state")
  story.recover()
  const again = story.recover()
  if (again.resolved !== 0) throw new Error("a resolved crash was resolved again")
}

/** One step of the walk. */
export const takeStep = (story: Story, draw: Draw): void => {
  const kind = draw(40)
  const effects = pendingWork(story.state)
  if (new Set(effects.map((effect) => effect.key)).size !== effects.length) throw new Error("two effects share a key")
  if (kind === 0) {
    crash(story)
    return
  }
  if (kind <= 24 && effects.length > 0) {
    story.send(carryOut(story, pick(draw, effects), draw))
    return
  }
  story.send(pick(draw, kind <= 33 ? inside : outside)(story, draw))
}

/** Lets the work go on by itself until none is left; returns how many steps that took. */
export const drain = (story: Story, draw: Draw, stepsMax: number): number => {
  const { status } = story.state.session
  if (status === "paused") story.run({ _tag: "Resume" })
  if (status === "suspended") story.run({ _tag: "Unsuspend" })
  for (let steps = 0; steps < stepsMax; steps++) {
    const effects = pendingWork(story.state)
    if (effects.length === 0) return steps
    const effect = pick(draw, effects)
    const verdict = story.send(carryOut(story, effect, draw))
    if (verdict._tag !== "Accepted") throw new Error(`${effect._tag} was refused: ${JSON.stringify(verdict)}`)
  }
  throw new Error(`work goes on after ${stepsMax} steps: ${story.effects.join(", ")}`)
}
