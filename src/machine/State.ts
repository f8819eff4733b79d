/**
 * The state of a whole conversation: plain JSON, the fold of its runes and nothing
 * else. The fold mutates it in place; everybody else sees it read-only. Lists are
 * small and bounded, ids are looked up by walking, so no key can be a prototype's.
 * Length: the one shape that every fold, view and snapshot agrees on, in one place.
 */
import type {
  AgentId,
  CallId,
  CheckpointId,
  ConversationId,
  HookRunId,
  PlanId,
  RequestId,
  TaskId,
  TurnId
} from "../rune/Ids.ts"
import type { InstructionPart } from "../rune/kinds/agent.ts"
import type { CheckpointReason } from "../rune/kinds/checkpoint.ts"
import type { Evidence, EvidenceSpec, GoalModels } from "../rune/kinds/evidence.ts"
import type { GoalOptions, PlanTask, SuspendCause, Verdict, WorkspaceBase } from "../rune/kinds/plan.ts"
import type { BudgetInfo } from "../rune/kinds/session.ts"
import type {
  Attachment,
  BlobRef,
  Budget,
  Content,
  ConversationConfig,
  EffectClass,
  ErrorInfo,
  HookFailurePolicy,
  Usage
} from "../rune/kinds/shared.ts"
import type { ApprovalScope, Learns, ShownAs, ToolResultStatus } from "../rune/kinds/tool.ts"
import type { AssistantItem, MessageMode, PlannedHook, RequestEstimate, RetryTarget } from "../rune/kinds/turn.ts"
import { type MutableTotals, noUsage } from "../rune/UsageTotals.ts"
import type { AgentStatus } from "./table/Agent.ts"
import type { AttentionStatus } from "./table/Attention.ts"
import type { AutonomyStatus } from "./table/Autonomy.ts"
import type { HookRunStatus } from "./table/Hook.ts"
import type { MonitorStatus } from "./table/Monitor.ts"
import type { SessionStatus } from "./table/Session.ts"
import type { ToolStatus } from "./table/Tool.ts"
import type { TurnStatus } from "./table/Turn.ts"

type Primitive = string | number | boolean | null | undefined
export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends Primitive
    ? T
    : T extends ReadonlyArray<infer Item>
      ? ReadonlyArray<DeepReadonly<Item>>
      : { readonly [K in keyof T]: DeepReadonly<T[K]> }

export interface MutableResult {
  status: ToolResultStatus
  output?: string
  output_blob?: BlobRef
  attachments?: ReadonlyArray<Attachment>
  error?: ErrorInfo
}

/** A call as the transcript remembers it: what the model asked and what it was told. */
export interface MutableCallRecord {
  call_id: CallId
  tool_name: string
  arguments: unknown
  provider_call_id?: string
  result?: MutableResult
}

/** A call that ran and may have changed the world, remembered when the transcript no longer has it. */
export interface MutableDoneEffect {
  call_id: CallId
  tool_name: string
  /** As short text, like the outcome. */
  arguments: string
  status: ToolResultStatus
  outcome: string
}

export interface MutableInstructed {
  event_id: number
  content: string
  parts: ReadonlyArray<InstructionPart>
}

export type MutableTranscriptItem =
  | {
      type: "user"
      event_id: number
      turn_id: TurnId
      content: Content
      from_agent_id?: AgentId
      /** It did not fit into the model's context: later requests only say that it was there. */
      unfit?: true
    }
  | {
      type: "assistant"
      event_id: number
      turn_id: TurnId
      content: string
      items: ReadonlyArray<AssistantItem>
      calls: Array<MutableCallRecord>
      /** The turn was interrupted while this was being said. */
      partial?: true
      /** Not an answer: a person had these calls run again. */
      rerun?: true
    }
  | { type: "summary"; event_id: number; content: string }
  /** What the agent was told about where it works, after its prompt was begun. */
  | ({ type: "note" } & MutableInstructed)

export interface MutableQueuedInput {
  event_id: number
  input: Content
  mode: MessageMode
  from_agent_id?: AgentId
  principal?: string
}

export interface MutableApproval {
  policy_reason: string
  shown_as: ShownAs
  asked_ms: number
  asked_event_id: number
  expires_ms: number | null
  choices: ReadonlyArray<ApprovalScope>
  learns?: Learns
  /** The JSON Schema that the answer has to fit. */
  answer_schema?: unknown
}

/** A call of an earlier turn that did not go well: all that is needed to run it again. */
export interface MutableFailedCall {
  call_id: CallId
  turn_id: TurnId
  tool_name: string
  arguments: unknown
  arguments_hash: string
  effect_class: EffectClass
  mutating: boolean
  timeout_ms: number | null
  provenance: string | null
  status: ToolResultStatus
  started: boolean
}

/** A hook run of an earlier turn that did not go well, and the hooks after it that it kept from running. */
export interface MutableFailedHook {
  hook_run_id: HookRunId
  turn_id: TurnId
  call_ids: Array<CallId>
  hooks: Array<Omit<PlannedHook, "hook_run_id">>
}

/** A call that is not over, or whose batch is not. */
export interface MutableCall {
  call_id: CallId
  run_id: string
  agent_id: AgentId | null
  turn_id: TurnId | null
  event_id: number
  tool_name: string
  /** What will run: the model's arguments, or what an approver made of them. */
  arguments: unknown
  arguments_hash: string
  effect_class: EffectClass
  mutating: boolean
  timeout_ms: number | null
  provenance: string | null
  /** Whose tool it is, where a client runs it. */
  origin?: string
  /** What the model wrote was no arguments: there is nothing to run. */
  unreadable?: true
  status: ToolStatus
  attempt: number
  started_ms: number | null
  approval: MutableApproval | null
  /** The newest output, while it runs. */
  progress_tail: string
  result: MutableResult | null
  duration_ms: number
}

export interface MutableHook {
  hook_run_id: HookRunId
  hook_name: string
  failure_policy: HookFailurePolicy
  timeout_ms: number
  effect_class: EffectClass
  status: HookRunStatus
  attempt: number
  started_ms: number | null
}

export interface MutableRequest {
  request_id: RequestId
  provider: string
  model: string
  attempt: number
  event_id: number
  requested_ms: number
  purpose: "answer" | "summary"
  estimate: RequestEstimate | null
  /** What the provider has said so far, and how many characters have come. */
  told: Usage | null
  chars: number
}

export interface MutableRetry {
  target: RetryTarget
  attempt: number
  due_ms: number
  error_type: string
  message: string
  event_id: number
  scheduled_ms: number
  provider: string | null
  /** There is no timer: a person makes it go on. */
  waits_for_person: boolean
  /** Nothing was sent: it waits until the provider may be tried. */
  held: boolean
}

export interface MutableTurn {
  turn_id: TurnId
  status: TurnStatus
  started_event_id: number
  started_ms: number
  /** Answers received in this turn. */
  model_calls: number
  /** Failures of the model call that is being tried. */
  llm_failures: number
  /** How often a call was held back because its provider was known to be down. */
  holds: number
  /** When the first of them was. */
  failing_since_ms: number | null
  request: MutableRequest | null
  /** The request that ended without an answer; the next one replaces it. */
  abandoned_request_id: RequestId | null
  /** Text of the answer so far. */
  partial: string
  /** The batch being worked on, in the order in which the model asked. */
  call_ids: Array<CallId>
  hooks: Array<MutableHook>
  retry: MutableRetry | null
  usage: MutableTotals
  /** Model calls in a row before each of which the context had to be summed up, and the last of them. */
  compactions: number
  compacted_at: number
  /** Since when its clock runs; it stands while the conversation is suspended. */
  clock_ms: number | null
}

export interface MutableLastTurn {
  turn_id: TurnId
  status: TurnStatus
}

export interface MutableHarness {
  harness: string
  pid: number | null
  session_ref: string | null
  /** It was brought up as an agent of another program: no model of ours answers for it. */
  born_outside: boolean
  attached: boolean
  monitor: MonitorStatus
  attention: AttentionStatus
  last_event_ms: number
}

export interface MutableForgotten {
  usage: MutableTotals
  tool_calls: number
}

export interface MutableAgent {
  agent_id: AgentId
  role: string
  model: string
  parent_id: AgentId | null
  name: string | null
  instructions: string | null
  /** How its prompt begins, once a request was made; it stays so, byte for byte. */
  prompt: MutableInstructed | null
  tools: ReadonlyArray<unknown> | null
  budget: Budget | null
  workspace: string | null
  status: AgentStatus
  /** Out of budget and not given more since. */
  exhausted: boolean
  turns: number
  tool_calls: number
  usage: MutableTotals
  /** What agents that it spawned and that are forgotten had used. */
  forgotten: MutableForgotten | null
  /** Time its turns took, up to the last time its clock was stopped. */
  wall_ms: number
  turn: MutableTurn | null
  last_turn: MutableLastTurn | null
  last_error: (ErrorInfo & { event_id: number }) | null
  queue: Array<MutableQueuedInput>
  transcript: Array<MutableTranscriptItem>
  /** What it did to the world, oldest first, and how many of these are no longer listed. */
  effects: Array<MutableDoneEffect>
  effects_dropped: number
  /** Runs that a person can have done again, newest last. */
  failed_calls: Array<MutableFailedCall>
  failed_hooks: Array<MutableFailedHook>
  /** Images and files up to this event were refused by the provider: they are named in requests, and not shown. */
  refused_upto?: number
  harness: MutableHarness | null
}

export interface MutableSession {
  status: SessionStatus
  config: ConversationConfig
  root_agent_id: AgentId | null
  /** Why it is paused, suspended or closing. */
  reason: string | null
  budget_info: BudgetInfo | null
  /** The event that suspended it last; 0 when none has. */
  suspended_event_id: number
  created_ms: number
  forked_from: ConversationId | null
}

/** What became of a command that came with a key. */
export interface MutableOutcome {
  key: string
  hash: string
  first_event_id: number
  last_event_id: number
  ts_ms: number
  kind: string
  agent_id: AgentId | null
  turn_id: TurnId | null
}

/** A permission that outlives its call. */
export interface MutableGrant {
  event_id: number
  tool_name: string
  scope: ApprovalScope
  approver: string
  expires_ms: number | null
  arguments_hash: string
  rule?: unknown
}

/** Who decided about a call, kept for a while for whoever comes second. */
export interface MutableDecision {
  call_id: CallId
  decision: "approved" | "denied" | "expired" | "cancelled"
  approver: string
  channel: string
  event_id: number
}

/** Something a person should know although nothing waits for it. */
export interface MutableNotice {
  event_id: number
  type: "unknown_outcome" | "turn_error" | "system_error" | "budget_exhausted" | "agent_failed"
  agent_id: AgentId | null
  call_id: CallId | null
  message: string
}

export type TaskStatus = "pending" | "assigned" | "running" | "completed" | "failed" | "cancelled"

/** An attempt at a task that came to nothing: who made it, and what was found out. */
export interface MutableTry {
  agent_id: AgentId | null
  /** Whether it counts as one. */
  counted: boolean
  code: string
  message: string
}

export interface MutableTask {
  task: PlanTask
  status: TaskStatus
  agent_id: AgentId | null
  attempts: number
  /** How often it was given to somebody, whatever changed about it since. */
  starts: number
  /** Why the last attempt failed. */
  failure: ErrorInfo | null
  /** What was said and shown when it was completed. */
  result: string | null
  evidence: ReadonlyArray<Evidence>
  /** The newest word of whoever works on it. */
  note: string | null
  /** The newest attempts that failed or did not count. */
  tries: Array<MutableTry>
  /** How often the same worker was asked to bring its work together with that of others. */
  returns: number
  /** How often it was opened again because its work broke something, and the checks that it broke. */
  reopens: number
  regressions: ReadonlyArray<EvidenceSpec>
  /** The files of the workspace when its work was in them, and the event that says so. */
  tree: string | null
  completed_event_id: number | null
  /** Its number in the plan it came with; stays when it is moved. */
  nth: number
}

/** What a person said to the worker of a task, and the first answer of the model that had read it. */
export interface MutableSteer {
  event_id: number
  task_id: TaskId
  agent_id: AgentId
  text: string
  /** The turn that takes it up. */
  turn_id: TurnId | null
  read_event_id: number | null
}

/** What the person asked for beside the goal itself; no plan can drop it. */
export interface MutableDemands {
  evidence: ReadonlyArray<EvidenceSpec>
  hidden_evidence: ReadonlyArray<EvidenceSpec>
  protect: ReadonlyArray<string>
}

/** Why the goal waits for a person. */
export interface MutableWaiting {
  cause: SuspendCause
  question: string
  event_id: number
}

/** A verdict of the critic, with a mark of its findings: the same findings, the same mark. */
export interface MutableVerdict {
  verdict: Verdict
  mark: string
}

export interface MutablePlan {
  plan_id: PlanId
  status: AutonomyStatus
  goal: string
  auto_start: boolean
  max_parallel: number | null
  budget: Budget | null
  options: GoalOptions
  demands: MutableDemands
  models: GoalModels
  started_ms: number
  /** How often planning was begun, and how many turns the planner had had before it was asked last. */
  attempts: number
  planner_turns: number
  base: WorkspaceBase | null
  /** The event that brought a plan which is not yet approved; and why a person has to do that. */
  proposed: number | null
  needs_approval: string | null
  /** Who approved it last. */
  approver: string | null
  revision: number
  tasks: Array<MutableTask>
  /** The newest words to workers. */
  steers: Array<MutableSteer>
  /** What checks found before any work was done, each once; and the newest plan whose checks are among them. */
  baseline: Array<Evidence>
  baseline_revision: number
  /** How often the server itself sent a plan back. */
  returned: number
  waiting: MutableWaiting | null
  /** The agent that reviews, and what was checked for it. */
  critic_id: AgentId | null
  /** How many turns it had had when it was asked last. */
  critic_turns: number
  evidence: ReadonlyArray<Evidence>
  verdicts: Array<MutableVerdict>
  /** How often nothing could run. */
  blocks: number
  /** Tokens of the conversation when something was last achieved. */
  progress_tokens: number
  /** Marks of checks that were seen to pass, each once; how many there were at the last review; reviews that saw no new one. */
  green: Array<string>
  green_reviewed: number
  stale_reviews: number
  blocked_task_ids: ReadonlyArray<TaskId>
  iterations: number
  replans: number
  last_verdict: Verdict | null
  reason: string | null
}

/** The files of a workspace as they were. */
export interface MutableCheckpoint {
  checkpoint_id: CheckpointId
  event_id: number
  made_ms: number
  reason: CheckpointReason
  workspace: string
  commit: string
  tree: string
  left_out: number
  agent_id: AgentId | null
  turn_id: TurnId | null
  call_id: CallId | null
  turn_event_id: number | null
}

export interface MutableConversation {
  /** Version of this shape; a snapshot of another version is not used. */
  format: 5
  conversation_id: ConversationId
  /** The last event id folded in. */
  head: number
  last_ms: number
  session: MutableSession
  agents: Array<MutableAgent>
  calls: Array<MutableCall>
  next_turn: number
  next_call: number
  next_hook_run: number
  next_checkpoint: number
  /** The newest of them, oldest first. */
  checkpoints: Array<MutableCheckpoint>
  /** Why the last one could not be made. */
  checkpoint_failure: string | null
  turns: number
  /** Turns that failed since one went well, or since a person let it go on. */
  errors_in_row: number
  tool_calls: number
  usage: MutableTotals
  /** Time in which some turn ran, up to the last time the clock was stopped, and since when it runs. */
  wall_ms: number
  clock_ms: number | null
  outcomes: Array<MutableOutcome>
  grants: Array<MutableGrant>
  decisions: Array<MutableDecision>
  notices: Array<MutableNotice>
  plan: MutablePlan | null
  /** Runes of a newer build that were carried but not understood. */
  unknown_runes: number
}

export type ConversationState = DeepReadonly<MutableConversation>
export type AgentState = DeepReadonly<MutableAgent>
export type TurnState = DeepReadonly<MutableTurn>
export type RequestState = DeepReadonly<MutableRequest>
export type RetryState = DeepReadonly<MutableRetry>
export type CallState = DeepReadonly<MutableCall>
export type HookState = DeepReadonly<MutableHook>
export type TranscriptItem = DeepReadonly<MutableTranscriptItem>
export type DoneEffect = DeepReadonly<MutableDoneEffect>
export type CallRecord = DeepReadonly<MutableCallRecord>
export type FailedCall = DeepReadonly<MutableFailedCall>
export type FailedHook = DeepReadonly<MutableFailedHook>
export type PlanState = DeepReadonly<MutablePlan>
export type TaskState = DeepReadonly<MutableTask>
export type CheckpointState = DeepReadonly<MutableCheckpoint>
export type Outcome = DeepReadonly<MutableOutcome>

/** The state before the first rune. */
export const emptyConversation = (conversationId: ConversationId): ConversationState => {
  const state: MutableConversation = {
    format: 5,
    conversation_id: conversationId,
    head: 0,
    last_ms: 0,
    session: {
      status: "created",
      config: {},
      root_agent_id: null,
      reason: null,
      budget_info: null,
      suspended_event_id: 0,
      created_ms: 0,
      forked_from: null
    },
    agents: [],
    calls: [],
    next_turn: 1,
    next_call: 1,
    next_hook_run: 1,
    next_checkpoint: 1,
    checkpoints: [],
    checkpoint_failure: null,
    turns: 0,
    errors_in_row: 0,
    tool_calls: 0,
    usage: noUsage(),
    wall_ms: 0,
    clock_ms: null,
    outcomes: [],
    grants: [],
    decisions: [],
    notices: [],
    plan: null,
    unknown_runes: 0
  }
  return state
}
