/**
 * Everything that can be asked of a conversation: by a client, by the stream of a
 * model, by a tool, a hook, a timer, an outside agent, or by recovery. A command
 * carries every id and every fact it needs; deciding looks nothing up elsewhere.
 */
import type { AgentEvent } from "../rune/AgentEvent.ts"
import type { AgentId, CallId, ConversationId, HookRunId, PlanId, RequestId, TaskId } from "../rune/Ids.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { HookStatus } from "../rune/kinds/hook.ts"
import type { PlanTask } from "../rune/kinds/plan.ts"
import type { BudgetInfo } from "../rune/kinds/session.ts"
import type {
  Attachment,
  BlobRef,
  Budget,
  BudgetMeasure,
  Content,
  ConversationConfig,
  EffectClass,
  ErrorInfo,
  ErrorSource,
  HookFailurePolicy,
  Usage
} from "../rune/kinds/shared.ts"
import type { ApprovalScope, Learns, ProgressStream, SandboxInfo, ShownAs } from "../rune/kinds/tool.ts"
import type { MessageMode, RequestEstimate } from "../rune/kinds/turn.ts"
import type { AutonomyCommand } from "./table/Autonomy.ts"

/** Provider data that must go back byte for byte. */
interface Native {
  readonly provider: string
  readonly model: string
  readonly data: unknown
}

/** What is known about a tool the model named; absent when there is no such tool. */
export interface ToolFacts {
  readonly effect_class: EffectClass
  readonly mutating: boolean
  readonly timeout_ms?: number
  readonly provenance?: string
  /** Whose tool it is, where a client runs it. */
  readonly origin?: string
}

/** One piece of a model's answer as the provider gave it. */
export type ResponseItem =
  | { readonly type: "text"; readonly text: string; readonly native?: Native }
  | { readonly type: "reasoning"; readonly text?: string; readonly native?: Native }
  | {
      readonly type: "tool_call"
      readonly provider_call_id?: string
      readonly tool_name: string
      /** The arguments as the model wrote them: JSON text, perhaps broken. */
      readonly arguments_text: string
      /** Why they must not be used, where whoever read them knows that already. */
      readonly unusable?: { readonly code: "invalid_arguments" | "arguments_too_large"; readonly message: string }
      readonly tool?: ToolFacts
      readonly native?: Native
    }

export interface CallFailure {
  readonly error_type: string
  readonly message: string
  readonly retryable: boolean
  readonly source?: ErrorSource
}

/** A hook that the batch just finished has to go through. */
export interface HookChoice {
  readonly hook_name: string
  readonly failure_policy: HookFailurePolicy
  readonly timeout_ms: number
  readonly effect_class: EffectClass
}

export interface AgentSpec {
  readonly agent_id: AgentId
  readonly role: string
  readonly model: string
  readonly parent_id?: AgentId
  readonly name?: string
  readonly instructions?: string
  readonly tools?: ReadonlyArray<unknown>
  readonly budget?: Budget
  /** Where it works, if not where the conversation does. */
  readonly workspace?: string
  readonly harness?: string
  /** An agent that is over and whose words it takes over. */
  readonly continues?: AgentId
}

export type SessionRequest =
  | {
      readonly _tag: "CreateConversation"
      readonly conversation_id: ConversationId
      readonly config: ConversationConfig
      readonly root: AgentSpec
      readonly principal?: string
    }
  | { readonly _tag: "Pause"; readonly reason: string }
  | { readonly _tag: "Resume"; readonly reason?: string }
  | { readonly _tag: "Suspend"; readonly reason: string; readonly budget_info?: BudgetInfo }
  | { readonly _tag: "Unsuspend"; readonly reason?: string }
  | { readonly _tag: "Close"; readonly reason: string }
  | { readonly _tag: "FinishClosing" }
  | { readonly _tag: "Archive"; readonly location: string; readonly hash: string }
  | {
      readonly _tag: "Restore"
      readonly location?: string
      readonly hash?: string
      /** Of the root that takes over from the one that ended; without it the conversation stays closed. */
      readonly root_agent_id?: AgentId
    }
  /** A closed conversation is spoken to again, through a root that takes over from the one that ended. */
  | { readonly _tag: "Reopen"; readonly root_agent_id: AgentId }
  /** Ends what is under way or waits to be: turns with all inside them, questions, queued input. Agents stay. */
  | { readonly _tag: "EndWork"; readonly reason: string }
  | { readonly _tag: "RecordFork"; readonly from: ConversationId; readonly at_event_id: number }
  | {
      readonly _tag: "UpdateConfig"
      readonly changes: ConversationConfig
      readonly agent_id?: AgentId
      readonly budget?: Budget
      /** Permissions to end, by the events that gave them. */
      readonly revoked_grants?: ReadonlyArray<number>
      readonly principal?: string
    }
  | {
      readonly _tag: "RecordSystemError"
      readonly payload: PayloadOf<"system.error">
      readonly agent_id?: AgentId
    }

export type AgentRequest =
  | { readonly _tag: "SpawnAgent"; readonly spec: AgentSpec }
  | { readonly _tag: "CompleteAgentInit"; readonly agent_id: AgentId }
  /** What its model is told about where it works, before its next request. */
  | {
      readonly _tag: "InstructAgent"
      readonly agent_id: AgentId
      readonly text: string
      readonly parts: PayloadOf<"agent.instructed">["parts"]
    }
  | { readonly _tag: "FailAgentInit"; readonly agent_id: AgentId; readonly error: ErrorInfo }
  /** Kills the agent and all it spawned; one in the middle of a turn only by force. */
  | { readonly _tag: "KillAgent"; readonly agent_id: AgentId; readonly reason: string; readonly force: boolean }
  | {
      readonly _tag: "SendAgentMessage"
      readonly to_agent_id: AgentId
      readonly from_agent_id?: AgentId
      readonly content: Content
    }
  | {
      readonly _tag: "ExhaustBudget"
      readonly agent_id: AgentId
      readonly which: BudgetMeasure
      readonly used: number
      readonly limit: number
      /** Suspend the conversation until someone raises the budget, or end this agent. */
      readonly consequence: "suspend" | "terminate"
    }

export type TurnRequest =
  | {
      readonly _tag: "PostMessage"
      /** The root agent when absent. */
      readonly agent_id?: AgentId
      readonly content: Content
      readonly mode: MessageMode
      readonly principal?: string
    }
  | { readonly _tag: "StartQueued"; readonly agent_id: AgentId }
  | {
      readonly _tag: "InterruptTurn"
      readonly agent_id?: AgentId
      readonly reason: string
      readonly principal?: string
      /** What the abandoned model call had used, where the provider said so. */
      readonly usage?: Usage
    }
  | { readonly _tag: "RetryTurn"; readonly agent_id?: AgentId }
  | {
      readonly _tag: "RequestModel"
      readonly agent_id: AgentId
      readonly request_id: RequestId
      readonly provider: string
      readonly model: string
      /** What it is charged with where no answer comes. */
      readonly estimate?: RequestEstimate
      readonly purpose?: "summary"
      /** What the request before it had used; estimated where nobody says. */
      readonly usage?: Usage
    }
  | {
      readonly _tag: "AppendText" | "AppendReasoning"
      readonly agent_id: AgentId
      readonly content: string
      readonly request_id?: RequestId
      /** What the provider has said so far. */
      readonly usage?: Usage
    }
  | {
      readonly _tag: "ReceiveResponse"
      readonly agent_id: AgentId
      readonly items: ReadonlyArray<ResponseItem>
      readonly request_id?: RequestId
      readonly usage?: Usage
      readonly stop_reason?: string
    }
  /** An answer is there and what follows from it is not. */
  | { readonly _tag: "FinaliseResponse"; readonly agent_id: AgentId }
  | {
      readonly _tag: "FailModelCall"
      readonly agent_id: AgentId
      readonly error: CallFailure
      /** What the provider asked for, or the default with jitter; the table's delay when absent. */
      readonly delay_ms?: number
      /** It says nothing about the request: the same one is tried again for as long as an outage is waited out. */
      readonly outage?: boolean
      /** Nothing was sent: the provider is known to be down, and the call is held until it may be tried. */
      readonly held?: boolean
      /** Only a person can help: a key, a bill. */
      readonly waits_for?: "person"
      readonly provider?: string
      readonly usage?: Usage
    }
  /** The retry timer fired. */
  | { readonly _tag: "RetryDue"; readonly agent_id: AgentId }
  | {
      readonly _tag: "SettleTools"
      readonly agent_id: AgentId
      readonly hooks: ReadonlyArray<HookChoice>
      /** The batch itself ends the turn: the model is not asked again. */
      readonly end_turn?: boolean
    }
  /** The agent's own machinery broke: the turn ends, the agent lives. */
  | { readonly _tag: "FailTurn"; readonly agent_id: AgentId; readonly error: CallFailure; readonly usage?: Usage }
  | {
      readonly _tag: "Compact"
      readonly agent_id: AgentId
      readonly upto: number
      readonly summary: string
      readonly tokens_before?: number
      readonly tokens_after?: number
      /** What the last request for the summary had used; estimated where nobody says. */
      readonly usage?: Usage
    }

/** Doing again what belongs to a turn that is over. */
export interface Again {
  /** It may have taken effect already, and whoever asks says to run it all the same. */
  readonly repeat_effect?: boolean
  readonly principal?: string
}

export type ToolRequest =
  /** A call outside any turn: an outside agent asks for permission. */
  | {
      readonly _tag: "OpenCall"
      readonly agent_id: AgentId
      readonly call_id: CallId
      readonly tool_name: string
      readonly arguments: unknown
      readonly tool: ToolFacts
    }
  | {
      readonly _tag: "RequireApproval"
      readonly call_id: CallId
      readonly policy_reason: string
      readonly shown_as: ShownAs
      /** Absent: it never expires. */
      readonly expires_ms?: number
      readonly choices?: ReadonlyArray<ApprovalScope>
      readonly learns?: Learns
      /** The JSON Schema that the answer to a question has to fit. */
      readonly answer_schema?: unknown
    }
  | {
      readonly _tag: "ApproveCall"
      readonly call_id: CallId
      readonly approver: string
      readonly channel: string
      readonly scope: ApprovalScope
      /** Hash of the arguments that the approver saw. */
      readonly arguments_hash?: string
      /** Edited arguments, to run instead. */
      readonly arguments?: unknown
      readonly expires_ms?: number
      readonly rule?: unknown
    }
  | {
      readonly _tag: "DenyCall"
      readonly call_id: CallId
      readonly approver: string
      readonly reason: string
      readonly channel?: string
      /** Also end the turn. */
      readonly interrupt?: boolean
    }
  | { readonly _tag: "ExpireApproval"; readonly call_id: CallId }
  | { readonly _tag: "StartCall"; readonly call_id: CallId; readonly sandbox: SandboxInfo }
  | {
      readonly _tag: "AppendProgress"
      readonly call_id: CallId
      readonly stream: ProgressStream
      readonly chunk: string
    }
  | {
      readonly _tag: "FinishCall"
      readonly call_id: CallId
      readonly status: "success" | "error" | "timeout" | "cancelled" | "unknown" | "sandbox_violation"
      readonly output?: string
      readonly output_blob?: BlobRef
      readonly attachments?: ReadonlyArray<Attachment>
      readonly error?: ErrorInfo
      readonly exit_code?: number
      readonly duration_ms: number
      readonly answer_sha256?: string
    }
  /** The runner itself broke: not the tool's answer, but the lack of one. */
  | { readonly _tag: "CrashCall"; readonly call_id: CallId; readonly message: string }
  /** A call that waits for its retry, or one of an earlier turn that did not go well. */
  | ({ readonly _tag: "RetryCall"; readonly call_id: CallId } & Again)

export type HookRequest =
  | { readonly _tag: "StartHook"; readonly hook_run_id: HookRunId }
  | {
      readonly _tag: "FinishHook"
      readonly hook_run_id: HookRunId
      readonly status: HookStatus
      readonly duration_ms: number
      readonly exit_code?: number
      readonly output?: string
      readonly error?: ErrorInfo
    }
  | ({ readonly _tag: "RetryHook"; readonly hook_run_id: HookRunId } & Again)

export type HarnessRequest =
  | { readonly _tag: "AttachHarness"; readonly agent_id: AgentId; readonly payload: PayloadOf<"harness.attached"> }
  /** What one signal of an outside agent means, in order; all of it is written, or nothing. */
  | {
      readonly _tag: "RecordHarnessEvents"
      readonly agent_id: AgentId
      readonly events: ReadonlyArray<AgentEvent>
    }
  | {
      readonly _tag: "RecordHarnessInput"
      readonly agent_id: AgentId
      readonly text: string
      readonly principal?: string
    }
  | { readonly _tag: "DetachHarness"; readonly agent_id: AgentId; readonly payload: PayloadOf<"harness.detached"> }
  | { readonly _tag: "RecoverHarness"; readonly agent_id: AgentId; readonly reason: string }

/** What of a task a person may choose; what is left out stays as it is. */
export type TaskFields = Partial<Omit<PlanTask, "task_id" | "origin">>

export type TaskChange =
  | { readonly type: "add"; readonly task: Omit<PlanTask, "task_id" | "origin">; readonly before?: TaskId }
  | { readonly type: "edit"; readonly fields: TaskFields }
  | { readonly type: "drop"; readonly reason: string }
  | { readonly type: "retry"; readonly reason: string }
  | { readonly type: "reassign"; readonly reason: string; readonly model?: string; readonly role?: string }
  | { readonly type: "reorder"; readonly before?: TaskId; readonly priority?: PlanTask["priority"] }
  | { readonly type: "steer"; readonly content: Content }

/** The files of a workspace at a moment, as they were recorded. */
export interface TakenFiles {
  readonly workspace: string
  readonly commit: string
  readonly tree: string
  readonly left_out: number
  readonly duration_ms: number
}

export type CheckpointRequest =
  /** Before a call that may change files; or, without one, before files are brought back. */
  | { readonly _tag: "RecordCheckpoint"; readonly taken: TakenFiles; readonly call_id?: CallId }
  | {
      readonly _tag: "RecordCheckpointFailure"
      readonly agent_id?: AgentId
      readonly payload: PayloadOf<"checkpoint.failed">
    }
  | { readonly _tag: "RecordRestore"; readonly payload: PayloadOf<"checkpoint.restored"> }

export type PlanRequest =
  | { readonly _tag: "SubmitGoal"; readonly payload: PayloadOf<"plan.goal_received"> }
  /** One step of the loop, with what has to happen together with it: all of it is written, or nothing. */
  | {
      readonly _tag: "AdvancePlan"
      readonly plan_id: PlanId
      /** The plan that was seen; another one is there when it differs. */
      readonly revision?: number
      readonly step: AutonomyCommand
      /** Steps that follow at once. */
      readonly also?: ReadonlyArray<AutonomyCommand>
      readonly spawn?: AgentSpec
      /** Said to the agent that is spawned, or to one that is alive. */
      readonly say?: { readonly agent_id: AgentId; readonly content: Content }
      /** Agents whose work is over, with all they spawned; those that are gone already do not matter. */
      readonly dismiss?: ReadonlyArray<AgentId>
    }
  /** Whatever the goal waits for a person about: it is pursued again, with more to spend if that is given. */
  | {
      readonly _tag: "ResumeGoal"
      readonly plan_id: PlanId
      readonly reason: string
      readonly budget?: Budget
      readonly principal?: string
    }
  /** A person changes a single task, or speaks to whoever works on it, while the goal is pursued. */
  | {
      readonly _tag: "ChangeTask"
      readonly plan_id: PlanId
      readonly task_id: TaskId
      /** The plan that was seen; another one is there when it differs. */
      readonly revision?: number
      readonly change: TaskChange
      readonly principal?: string
    }
  /** Asks an agent of the team again, unless it has been asked so often meanwhile. */
  | {
      readonly _tag: "PromptTeam"
      readonly plan_id: PlanId
      readonly agent_id: AgentId
      readonly turns: number
      readonly content: Content
    }

export type Command =
  | SessionRequest
  | AgentRequest
  | TurnRequest
  | ToolRequest
  | HookRequest
  | HarnessRequest
  | CheckpointRequest
  | PlanRequest

export type CommandTag = Command["_tag"]
