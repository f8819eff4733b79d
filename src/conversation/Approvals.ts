// A person's yes to a call. Before it is taken, the arguments that would run are checked and put to the policy again:
// changed ones may be wrong, or be what a rule denies. A yes for good is written down for the server when it is durable.
import { canonicalHash } from "../machine/Canonical.ts"
import type { Idempotency, Refusal } from "../machine/Decide.ts"
import { callOf } from "../machine/Select.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import type { CallId } from "../rune/Ids.ts"
import type { ApprovalScope, Learns } from "../rune/kinds/tool.ts"
import { answerIssue } from "../tool/builtin/question/AskUser.ts"
import type { Authorization, ToolPort } from "../tool/Port.ts"
import type { Submitted } from "./Actor.ts"
import type { Conversations } from "./Conversations.ts"
import { CommandRefused } from "./Errors.ts"

export interface ApprovalAnswer {
  readonly call_id: CallId
  readonly scope: ApprovalScope
  /** Of the arguments that the person saw. */
  readonly arguments_hash: string
  /** To run instead of those. */
  readonly arguments?: unknown
  readonly approver: string
  readonly channel: string
}

export interface ApprovalsOptions {
  readonly conversations: Pick<Conversations, "state" | "submit">
  readonly tools: Pick<ToolPort, "authorize">
  /** Writes down for the whole server what was allowed for good. */
  readonly learn?: (rule: unknown) => Promise<void>
  /** It could not be written down. */
  readonly onNotLearnt?: (error: unknown) => void
}

export interface Approved extends Submitted {
  /** Whether what was allowed for good is written down for the server. */
  readonly learnt?: boolean
}

const refused = (refusal: Refusal): CommandRefused => new CommandRefused({ refusal, command: "ApproveCall" })

/** The call as it would run. */
const edited = (call: CallState, { arguments: changed }: ApprovalAnswer): CallState =>
  changed === undefined ? call : { ...call, arguments: changed, arguments_hash: canonicalHash(changed) }

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value)

export class Approvals {
  private readonly options: ApprovalsOptions

  constructor(options: ApprovalsOptions) {
    this.options = options
  }

  async approve(conversationId: string, answer: ApprovalAnswer, idempotency?: Idempotency): Promise<Approved> {
    const { conversations } = this.options
    const state = await conversations.state(conversationId)
    const rule = await this.ruleOf(state, answer)
    const command = { _tag: "ApproveCall", ...answer, ...(rule === undefined ? {} : { rule }) } as const
    const submitted = await conversations.submit(conversationId, command, idempotency)
    if (answer.scope !== "rule") return submitted
    return { ...submitted, learnt: await this.learn(rule, answer) }
  }

  /** What the permission is bound to, once the policy has been asked again; throws CommandRefused. */
  private async ruleOf(state: ConversationState, answer: ApprovalAnswer): Promise<unknown> {
    const call = callOf(state, answer.call_id)
    const isCurrent = call?.status === "awaiting_approval" && call.arguments_hash === answer.arguments_hash
    // What is not to be judged here the machine refuses, and says why.
    if (!isCurrent || (answer.arguments !== undefined && !isObject(answer.arguments))) return undefined
    const issue = answerIssue(call.tool_name, answer.arguments)
    if (issue !== undefined) throw refused({ code: "bad_request", message: issue })
    const verdict = await this.options.tools.authorize(state, edited(call, answer))
    if (verdict._tag === "Reject") throw refused({ code: "bad_request", message: verdict.error.message })
    if (verdict._tag === "Deny") {
      throw refused({
        code: "invalid_state",
        message: `the policy denies it: ${verdict.reason}`,
        data: { state: "denied" }
      })
    }
    return answer.scope === "once" ? undefined : this.lasting(call, answer, verdict)
  }

  private lasting(call: CallState, answer: ApprovalAnswer, verdict: Authorization): unknown {
    const { approver, scope } = answer
    if (scope === "once") return undefined
    const learns: Learns | undefined = verdict._tag === "Ask" ? verdict.learns : call.approval?.learns
    const rule = learns?.[scope]
    if (rule === undefined && answer.arguments !== undefined && scope === "rule") {
      throw refused({ code: "bad_request", message: `the changed call can be allowed once, and not by a rule` })
    }
    return rule === undefined || scope === "session"
      ? rule
      : { ...(rule as object), reason: `allowed for good by ${approver}` }
  }

  private async learn(rule: unknown, { call_id }: ApprovalAnswer): Promise<boolean> {
    if (rule === undefined || this.options.learn === undefined) return false
    try {
      await this.options.learn(rule)
      return true
    } catch (error) {
      this.options.onNotLearnt?.(Object.assign(error as Error, { call_id }))
      return false
    }
  }
}
