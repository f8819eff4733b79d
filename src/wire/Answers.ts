/**
 * Shapes that answers are made of. Which operation answers with which is in its definition. Answers may grow: readers
 * ignore fields they do not know.
 */
import * as Schema from "effect/Schema"
import { AgentId, CallId, ConversationId, HookRunId, PlanId, Sha256Hex, TaskId, TurnId } from "../rune/Ids.ts"
import { Evidence, EvidenceSpec, GoalModels } from "../rune/kinds/evidence.ts"
import { GoalOptions, PlanTask, SuspendCause, Verdict, WorkspaceBase } from "../rune/kinds/plan.ts"
import { Amount, Budget, Count, ErrorInfo, JsonValue, Ordinal } from "../rune/kinds/shared.ts"
import { ApprovalScope, Learns, ShownAs } from "../rune/kinds/tool.ts"

const optional = Schema.optionalKey
const { Array: List, NullOr, String: Text, Struct } = Schema

/** Sums over model calls. */
export const UsageTotals = Struct({
  input_tokens: Count,
  output_tokens: Count,
  cached_tokens: Count,
  reasoning_tokens: Count,
  /** Null where some of it has no known price. */
  usd: NullOr(Amount),
  /** A call was cut off: some of it is an estimate. */
  estimated: optional(Schema.Boolean)
})

const SessionState = Schema.Literals(["created", "active", "paused", "suspended", "closing", "closed", "archived"])
const AttentionState = Schema.Literals([
  "starting",
  "running",
  "idle",
  "awaiting_input",
  "awaiting_approval",
  "error",
  "closed"
])
const Doing = Schema.Literals([
  "initialized",
  "idle",
  "thinking",
  "tool_use",
  "waiting_for_permission",
  "compacting",
  "exited"
])
const TurnState = Schema.Literals([
  "idle",
  "streaming",
  "processing",
  "tool_executing",
  "hooks_running",
  "retry_waiting",
  "completed",
  "interrupted",
  "error"
])

const told = {
  conversation_id: ConversationId,
  state: SessionState,
  labels: Schema.Record(Text, Text),
  created_ms: Count,
  updated_ms: Count,
  last_event_id: Count,
  attention: AttentionState,
  turns: Count,
  usage: UsageTotals
}

/** A line of a list of conversations. */
export const ConversationItem = Struct({
  ...told,
  title: Text,
  /** Of its root agent. */
  model: Text,
  workspace: NullOr(Text),
  agents_alive: Count,
  forked_from: optional(Text),
  /** There is work that a restart goes on with. */
  unfinished: Schema.Boolean,
  /** The log cannot be read to its end; what is shown is what could be. */
  damaged: optional(Text)
})

/** A question that waits for a person. */
export const ApprovalItem = Struct({
  conversation_id: ConversationId,
  call_id: CallId,
  agent_id: NullOr(AgentId),
  /** The agents from the root to the one that asks, by id and by name. */
  agent_path: List(AgentId),
  agent_names: List(Text),
  tool_name: Text,
  arguments: JsonValue,
  arguments_hash: Sha256Hex,
  policy_reason: Text,
  shown_as: NullOr(ShownAs),
  asked_ms: NullOr(Count),
  expires_ms: NullOr(Count),
  choices: List(ApprovalScope),
  /** What allowing it for longer would be written down as. */
  learns: NullOr(Learns)
})

export const AgentItem = Struct({
  agent_id: AgentId,
  role: Text,
  name: NullOr(Text),
  model: Text,
  parent_id: NullOr(AgentId),
  status: Schema.Literals(["spawning", "idle", "running_turn", "terminated", "failed"]),
  doing: Doing,
  attention: AttentionState,
  turn_id: NullOr(TurnId),
  turn_status: NullOr(TurnState),
  queued: Count,
  turns: Count,
  tool_calls: Count,
  usage: UsageTotals,
  budget: NullOr(Budget),
  last_error: NullOr(Struct({ ...ErrorInfo.fields, event_id: Count })),
  /** Calls and hook runs of earlier turns that did not go well: `tool.retry` and `hook.retry` take them. */
  failed_runs: List(
    Struct({ id: Schema.Union([CallId, HookRunId]), name: Text, status: Text, needs_repeat_effect: Schema.Boolean })
  )
})

/** What the model of an agent is told before and beside the messages. */
export const ConversationPrompt = Struct({
  agent_id: AgentId,
  role: Text,
  model: Text,
  /** The beginning of every request, byte for byte; null for an agent that is over. */
  instructions: NullOr(Text),
  /** Whether a request was made with it; else it is what the next one would begin with. */
  sent: Schema.Boolean,
  /** What was told since, in order, as far as the transcript has it. */
  notes: List(Struct({ event_id: Count, text: Text })),
  /** What the next request would tell besides, for something has changed; null when nothing has. */
  next: NullOr(Text),
  /** The instruction files, and the other things it was told, that it knows now. */
  parts: List(Struct({ name: Text, sha256: Sha256Hex }))
})

export const TaskItem = Struct({
  task: PlanTask,
  status: Schema.Literals(["pending", "assigned", "running", "completed", "failed", "cancelled"]),
  agent_id: NullOr(AgentId),
  attempts: Count,
  starts: Count,
  /** Why the last attempt failed. */
  failure: NullOr(ErrorInfo),
  result: NullOr(Text),
  evidence: List(Evidence),
  note: NullOr(Text),
  /** The newest attempts that failed or did not count. */
  tries: List(Struct({ agent_id: NullOr(AgentId), counted: Schema.Boolean, code: Text, message: Text })),
  /** Its number in the plan it came with; stays when it is moved. */
  nth: Count
})

/** What a person said to the worker of a task; `read_event_id` is the first answer of the model that had read it. */
const SteerItem = Struct({
  event_id: Count,
  task_id: TaskId,
  agent_id: AgentId,
  text: Text,
  turn_id: NullOr(TurnId),
  read_event_id: NullOr(Count)
})

/** A goal that is pursued, or was last. */
export const PlanItem = Struct({
  plan_id: PlanId,
  status: Schema.Literals(["goal_received", "planning", "executing", "blocked", "reviewing", "goal_met", "stopped"]),
  goal: Text,
  auto_start: Schema.Boolean,
  max_parallel: NullOr(Ordinal),
  budget: NullOr(Budget),
  options: GoalOptions,
  demands: Struct({ evidence: List(EvidenceSpec), hidden_evidence: List(EvidenceSpec), protect: List(Text) }),
  models: GoalModels,
  started_ms: Count,
  attempts: Count,
  planner_turns: Count,
  base: NullOr(WorkspaceBase),
  proposed: NullOr(Count),
  needs_approval: NullOr(Text),
  approver: NullOr(Text),
  /** Goes up with every plan that is handed in; a yes or no says which one it is about. */
  revision: Count,
  tasks: List(TaskItem),
  steers: List(SteerItem),
  /** What checks found before any work was done. */
  baseline: List(Evidence),
  baseline_revision: Count,
  returned: Count,
  /** Why the goal waits for a person; null when it does not. */
  waiting: NullOr(Struct({ cause: SuspendCause, question: Text, event_id: Count })),
  critic_id: NullOr(AgentId),
  critic_turns: Count,
  evidence: List(Evidence),
  verdicts: List(Struct({ verdict: Verdict, mark: Text })),
  blocks: Count,
  progress_tokens: Count,
  blocked_task_ids: List(TaskId),
  iterations: Count,
  replans: Count,
  last_verdict: NullOr(Verdict),
  reason: NullOr(Text)
})

/** The conversation at a glance. */
export const ConversationSummary = Struct({
  ...told,
  title: NullOr(Text),
  reason: NullOr(Text),
  workspace: NullOr(Text),
  root_agent_id: NullOr(AgentId),
  agents: List(AgentItem),
  agents_alive: Count,
  working: Schema.Boolean,
  budget: NullOr(Budget),
  pending_approvals: List(ApprovalItem),
  cost_usd: NullOr(Amount),
  tool_calls: Count,
  plan: NullOr(PlanItem)
})

/** Something that waits for a person, or that one should know. */
export const AttentionItem = Struct({
  conversation_id: ConversationId,
  title_of_conversation: NullOr(Text),
  /** What it is known by in its conversation for as long as it waits. */
  key: Text,
  type: Schema.Literals(["approval", "question", "plan", "provider", "suspended", "notice"]),
  event_id: Count,
  agent_id: NullOr(AgentId),
  agent_path: List(AgentId),
  call_id: NullOr(CallId),
  title: Text,
  since_ms: NullOr(Count),
  expires_ms: NullOr(Count)
})

/** What happened since a time. */
const Shares = { input_tokens: Count, output_tokens: Count, usd: Amount, runes: Count }

export const WindowFigures = Struct({
  since_ms: Schema.Int,
  conversations: Count,
  runes: Count,
  turns_started: Count,
  turns_completed: Count,
  turns_failed: Count,
  turns_interrupted: Count,
  tool_results: Count,
  usage: Struct({ input_tokens: Count, output_tokens: Count, cached_tokens: Count, reasoning_tokens: Count }),
  cost_usd: NullOr(Amount),
  /** The same usage by day (UTC), by model and by workspace, the most expensive first; `usd` as far as prices are known. */
  days: List(Struct({ day_ms: Schema.Int, ...Shares })),
  models: List(Struct({ model: Text, ...Shares })),
  workspaces: List(Struct({ workspace: Text, ...Shares })),
  /** Conversations that were too many to be counted. */
  left_out: optional(Count)
})

export const OpenToolCall = Struct({ call_id: CallId, tool_name: Text, arguments: JsonValue })

export const OutsideAgentItem = Struct({
  conversation_id: Text,
  agent_id: Text,
  harness: Text,
  pid: Schema.NullOr(Schema.Int),
  attached: Schema.Boolean,
  /** What the monitor shows: the sub-state while it is active. */
  state: Text,
  attention: Text,
  workspace: Text,
  directory: Text
})

export const Changed = Struct({ event_id: Count })

/** Items of conversations out of memory too; `left_out` says how many conversations were too many to be asked. */
export const fromAll = <Item extends Schema.ConstraintCodec<unknown, unknown>>(item: Item) =>
  Struct({ items: List(item), left_out: optional(Count) })
