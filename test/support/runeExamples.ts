/**
 * One example payload of every kind of rune. A kind without an example does not
 * compile. The schema generator writes them out, tests decode and fold them.
 */
import type {
  AgentId,
  CallId,
  CheckpointId,
  ConversationId,
  HookRunId,
  PlanId,
  RequestId,
  RuneId,
  TaskId,
  TurnId
} from "#src/rune/Ids.ts"
import { definitionOf, type Kind, type PayloadOf } from "#src/rune/Kinds.ts"
import { type Rune, type RuneDraft, stamp } from "#src/rune/Rune.ts"

const agent = "agt_0a1b2c3d4e5f6071" as AgentId
const worker = "agt_1111222233334444" as AgentId
const call = "call_7" as CallId
const checkpoint = "chk_3" as CheckpointId
const hookRun = "hookrun_2" as HookRunId
const request = "req_00112233445566ff" as RequestId
const plan = "plan_fedcba9876543210" as PlanId
const task = "task_1" as TaskId
const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
const usage = { input_tokens: 1200, output_tokens: 340, cached_tokens: 1000, reasoning_tokens: 64, usd: 0.0125 }
const planTask = {
  task_id: task,
  title: "Fix the parser",
  instructions: "Make the failing test in test/parser.test.ts pass.",
  depends_on: [],
  priority: "high",
  role: "worker",
  success_criteria: ["the parser test passes"],
  evidence: [{ type: "command", command: ["npm", "test"], expected_exit: 0 }]
} as const
const evidence = [
  { spec: { type: "command", command: ["npm", "test"], expected_exit: 0 }, passed: true, exit_code: 0, event_ids: [41] }
] as const

export const payloadExamples: { readonly [K in Kind]: PayloadOf<K> } = {
  "session.created": {
    config: {
      title: "Tidy the build",
      workspace: "/home/ada/project",
      model: "scripted/demo",
      instructions: "Be brief.",
      policy: { mode: "auto" },
      budget: { tokens: 200_000, usd: 1.5 },
      labels: { team: "build" }
    },
    principal: "local"
  },
  "session.activated": { root_agent_id: agent },
  "session.paused": { reason: "lunch" },
  "session.resumed": {},
  "session.suspended": {
    reason: "budget_exhausted",
    budget_info: { which: "tokens", used: 200_400, limit: 200_000, agent_id: agent }
  },
  "session.unsuspended": { reason: "budget raised" },
  "session.closing": { reason: "done" },
  "session.closed": { final_stats: { turns: 3, tool_calls: 5, agents: 2, runes: 120, usage, wall_ms: 91_000 } },
  "session.archived": { location: "archive/conv_0123456789abcdef.tar.zst", hash },
  "session.restored": { location: "archive/conv_0123456789abcdef.tar.zst" },
  "session.forked": { from: "conv_0123456789abcdef" as ConversationId, at_event_id: 42 },

  "agent.spawning": { agent_id: worker, role: "worker", model: "scripted/demo", parent_id: agent, name: "parser" },
  "agent.ready": { agent_id: worker },
  "agent.instructed": {
    agent_id: worker,
    text: "You work in /srv/shop.",
    parts: [{ name: "environment", sha256: hash }, { name: "AGENTS.md" }]
  },
  "agent.failed": { agent_id: worker, error: { code: "model_not_found", message: "no model named scripted/none" } },
  "agent.terminated": { agent_id: worker, reason: "task done", stats: { turns: 1, tool_calls: 2, usage } },
  "agent.message": { from_agent_id: agent, to_agent_id: worker, content: "Look at the lexer first." },
  "agent.budget_exhausted": { agent_id: worker, which: "tool_calls", used: 30, limit: 30 },
  "agent.state_changed": { state: "active", sub_state: "tool_use" },

  "turn.queued": { input: "And run the linter too.", mode: "queue", principal: "local" },
  "turn.dequeued": { event_ids: [12, 13], reason: "forked" },
  "turn.started": {
    turn_id: "turn_3" as TurnId,
    agent_id: agent,
    input: [
      { type: "text", text: "What is on this picture?" },
      { type: "image", media_type: "image/png", blob: { sha256: hash, bytes: 20_480 } }
    ],
    queued_event_ids: [17]
  },
  "turn.model_requested": { request_id: request, provider: "scripted", model: "demo", attempt: 1 },
  "turn.assistant_delta": { content: "I will read the ", request_id: request },
  "turn.reasoning_delta": { content: "The test names a file. ", request_id: request },
  "turn.assistant_final": {
    content: "I will read the file first.",
    items: [
      {
        type: "reasoning",
        text: "The test names a file.",
        native: { provider: "anthropic", model: "a-model", data: { signature: "c2lnbmVk" } }
      },
      { type: "text", chars: 27 },
      { type: "tool_call", call_id: call, provider_call_id: "toolu_01" }
    ],
    request_id: request,
    usage,
    stop_reason: "tool_use"
  },
  "turn.tool_calls_received": { call_ids: [call] },
  "turn.tools_finished": {
    summaries: [{ call_id: call, tool_name: "write_file", status: "success", duration_ms: 12 }],
    hooks: [
      {
        hook_run_id: hookRun,
        hook_name: "auto_commit",
        failure_policy: { type: "fail_session" },
        timeout_ms: 120_000,
        effect_class: "effect"
      }
    ]
  },
  "turn.hooks_finished": { summaries: [{ hook_run_id: hookRun, hook_name: "auto_commit", status: "succeeded" }] },
  "turn.completed": { final_output: "The parser test passes now.", usage },
  "turn.interrupted": { reason: "steer", partial_output: "I will read the ", principal: "local" },
  "turn.error": {
    error_type: "streaming_failed",
    message: "the stream ended before its terminal event",
    retryable: true,
    source: "harness",
    partial_output: "I will read the "
  },
  "turn.retry_scheduled": {
    attempt: 2,
    delay_ms: 250,
    target: { type: "llm" },
    error_type: "streaming_failed",
    message: "connection reset",
    source: "harness"
  },
  "turn.retry_started": { attempt: 2, target: { type: "llm" } },
  "turn.compacted": {
    upto: 40,
    summary: "The user asked for a green build; the lexer is fixed.",
    tokens_before: 180_000,
    tokens_after: 12_000
  },

  "tool.call": {
    call_id: call,
    tool_name: "write_file",
    arguments: { path: "src/parser.ts", content: "export {}\n" },
    arguments_hash: hash,
    effect_class: "idempotent",
    mutating: true,
    provider_call_id: "toolu_01",
    provenance: "built_in"
  },
  "tool.approval_requested": {
    call_id: call,
    policy_reason: "write_file changes files and the mode is auto",
    shown_as: { title: "write src/parser.ts", diff: "+export {}\n", workspace: "/home/ada/project", network: false },
    expires_ms: 1_763_251_800_000,
    choices: ["once", "session", "rule"]
  },
  "tool.approved": { call_id: call, approver: "ada", channel: "cli", scope: "once", arguments_hash: hash },
  "tool.denied": { call_id: call, approver: "ada", reason: "not in this folder", channel: "dashboard" },
  "tool.started": { call_id: call, attempt: 1, sandbox: { level: "bubblewrap", network: false } },
  "tool.progress": { call_id: call, stream: "stdout", chunk: "compiling…\n" },
  "tool.result": {
    call_id: call,
    status: "error",
    output: "partial log",
    error: { code: "tool_execution_failed", message: "exit code 2", retryable: false, source: "tool" },
    exit_code: 2,
    duration_ms: 830
  },

  "hook.started": { hook_run_id: hookRun, hook_name: "auto_commit", call_ids: [call], attempt: 1 },
  "hook.completed": { hook_run_id: hookRun, status: "succeeded", exit_code: 0, duration_ms: 95, output: "1 file\n" },

  "plan.goal_received": { plan_id: plan, goal: "Make the tests pass.", auto_start: true, max_parallel: 3 },
  "plan.planning_started": { plan_id: plan, attempt: 1 },
  "plan.created": { plan_id: plan, tasks: [planTask], revision: 1 },
  "plan.updated": { plan_id: plan, changes: [{ type: "task_changed", task: planTask }] },
  "plan.approved": { plan_id: plan, approver: "ada", channel: "cli" },
  "plan.rejected": { plan_id: plan, reason: "too many tasks", approver: "ada" },
  "plan.task_assigned": { plan_id: plan, task_id: task, agent_id: worker },
  "plan.task_started": { plan_id: plan, task_id: task, attempt: 1 },
  "plan.task_completed": { plan_id: plan, task_id: task, result: "Fixed in src/parser.ts.", evidence },
  "plan.task_failed": {
    plan_id: plan,
    task_id: task,
    attempt: 1,
    error: { code: "evidence_missing", message: "npm test exited with 1" }
  },
  "plan.baseline_checked": { plan_id: plan, revision: 1, evidence: [{ ...evidence[0]!, passed: false, exit_code: 1 }] },
  "plan.task_released": {
    plan_id: plan,
    task_id: task,
    error: { code: "overloaded", message: "the provider gave no answer for six hours" }
  },
  "plan.task_returned": {
    plan_id: plan,
    task_id: task,
    agent_id: worker,
    error: { code: "merge_conflict", message: "others changed the same lines in a.txt", data: { files: ["a.txt"] } }
  },
  "plan.task_reopened": {
    plan_id: plan,
    task_id: task,
    error: { code: "regression", message: "its work broke `npm test`" },
    evidence: [{ ...evidence[0]!, passed: false, exit_code: 1 }]
  },
  "plan.task_added": {
    plan_id: plan,
    task_id: "docs" as typeof task,
    task: { ...planTask, task_id: "docs" as typeof task, title: "Describe it", origin: "person" },
    principal: "ada"
  },
  "plan.task_edited": { plan_id: plan, task_id: task, task: { ...planTask, priority: "low" }, principal: "ada" },
  "plan.task_dropped": { plan_id: plan, task_id: task, reason: "not needed", principal: "ada" },
  "plan.task_retried": { plan_id: plan, task_id: task, reason: "the network is back", principal: "ada" },
  "plan.task_reassigned": { plan_id: plan, task_id: task, reason: "too slow", model: "gpt-5", principal: "ada" },
  "plan.task_reordered": { plan_id: plan, task_id: task, priority: "high", principal: "ada" },
  "plan.task_steered": { plan_id: plan, task_id: task, agent_id: worker, content: "leave the names", principal: "ada" },
  "plan.suspended": { plan_id: plan, cause: "budget", question: "all 100,000 tokens are used: give the goal more?" },
  "plan.resumed": { plan_id: plan, reason: "asked for", budget: { tokens: 200_000 }, principal: "ada" },
  "plan.review_started": { plan_id: plan, iteration: 1 },
  "plan.critique": {
    plan_id: plan,
    findings: [
      {
        severity: "warning",
        category: "tests",
        title: "No test for the empty input",
        file: "test/parser.test.ts",
        line: 12,
        task_id: task
      }
    ],
    verdict: "retry"
  },
  "plan.blocked": { plan_id: plan, task_ids: [task], reason: "waits for an approval" },
  "plan.unblocked": { plan_id: plan, task_ids: [task], reason: "approval given" },
  "plan.goal_met": { plan_id: plan, summary: "All 42 tests pass; one file changed.", evidence },
  "plan.stopped": { plan_id: plan, reason: "user_cancel" },

  "harness.attached": { harness: "claude", pid: 4711, session_ref: "0d9e", workspace: "/home/ada/project" },
  "harness.event": {
    event: { type: "tool_completed", tool_name: "Bash", call_id: "toolu_9", duration_ms: 40, success: true }
  },
  "harness.input_sent": { text: "continue", principal: "local" },
  "harness.detached": { reason: "process exited", exit_code: 0 },
  "harness.recovered": { reason: "transcript advanced without an event" },

  "checkpoint.made": {
    checkpoint_id: checkpoint,
    reason: "batch",
    workspace: "/home/ada/project",
    commit: "5f1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    tree: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    left_out: 1,
    duration_ms: 21,
    call_id: call,
    turn_event_id: 12
  },
  "checkpoint.failed": {
    workspace: "/home/ada/project",
    code: "too_many_files",
    message: "more than 20000 files would have to be recorded"
  },
  "checkpoint.restored": {
    checkpoint_id: checkpoint,
    what: "both",
    saved_as: "chk_4" as CheckpointId,
    files: 3,
    forked_to: "conv_00112233445566ff" as ConversationId,
    principal: "local"
  },
  "config.updated": {
    changes: { model: "openai/a-model", budget: { tokens: 400_000 } },
    revoked_grants: [41],
    principal: "local"
  },
  "system.error": {
    code: "hook_config_invalid",
    message: "hooks.json: hooks[0].command is empty",
    retryable: false,
    source: "hook"
  },
  "system.invariant_violation": { invariant: "INV-TOOL-TERMINAL", detail: "call_7 has two results", event_id: 91 },
  "system.recovered": { pending: 1, resolved: 2, detail: ["call_7: outcome unknown"] },
  "system.thinned": { from: 10, to: 90 }
}

/** The first shape of kinds that have a later one, by `kind@version`. */
export const oldPayloadExamples: Readonly<Record<string, unknown>> = {
  "tool.result@1": { call_id: call, status: "error", output: "partial log", error: "exit code 2", duration_ms: 830 }
}

const place = (eventId: number) => ({
  event_id: eventId,
  rune_id: `run_${eventId.toString(16).padStart(16, "0")}` as RuneId,
  conversation_id: "conv_0123456789abcdef" as ConversationId,
  ts_ms: 1_763_251_200_000
})

const envelopeIds = (kind: Kind): Pick<RuneDraft, "agent_id" | "turn_id"> => {
  const family = definitionOf(kind).family
  if (family === "turn" || family === "tool" || family === "hook")
    return { agent_id: agent, turn_id: "turn_3" as TurnId }
  return family === "agent" || family === "harness" ? { agent_id: worker } : {}
}

/** A whole rune of the kind, with the same bytes every time. */
export const exampleRune = (kind: Kind, eventId = 42): Rune =>
  stamp({ kind, payload: payloadExamples[kind], ...envelopeIds(kind) } as RuneDraft, place(eventId))
