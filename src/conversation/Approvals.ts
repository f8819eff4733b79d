// A person's yes to a call. Arguments that were changed are checked and put to the policy again before it is taken: they
// may be wrong, or be what a rule denies. A yes for longer also answers the questions of the conversation that wait and
// that it covers, each on record as answered by the same person; one for good is written down for the server as well.
import * as Effect from "effect/Effect"
import { CommandRefused } from "../contract/CommandErrors.ts"
import { outsideProvenance } from "../contract/OutsideAgents.ts"
import { adapterOf } from "../harness/Adapters.ts"
import { canonicalHash } from "../machine/Canonical.ts"
import type { Idempotency, Refusal } from "../machine/decide/Decide.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import { callOf, pendingApprovals } from "../machine/view/Select.ts"
import type { CallId } from "../rune/Ids.ts"
import type { ApprovalScope, Learns } from "../rune/kinds/tool.ts"
import { makeAnswerCheck } from "../tool/AnswerCheck.ts"
import { answerIssue } from "../tool/builtin/question/AskUser.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import type { Submitted } from "./Actor.ts"
import type { Conversations } from "./Conversations.ts"

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
  readonly tools: Pick<ToolPort, "authorize" | "judge">
  /** Writes down for the whole server what was allowed for good. */
  readonly learn?: (rule: unknown) => Promise<void>
  /** It could not be written down. */
  readonly onNotLearned?: (error: unknown) => void
}

export interface Approved extends Submitted {
  /** Whether what was allowed for good is written down for the server. */
  readonly learnt?: boolean
}

const refused = (refusal: Refusal): CommandRefused => new CommandRefused({ refusal, command: "ApproveCall" })

/** The call as it would run. */
const edited = (call: CallState, { arguments: changed }: ApprovalAnswer): CallState =>
  changed === undefined ? call : { ...call, arguments: changed, arguments_hash: canonicalHash(changed) }

type Granted = ConversationState["grants"][number]

/** Somebody else answered first, or the question is gone: nothing is left to be answered. */
const unlessRefused = (error: unknown): undefined => {
  if (!(error instanceof CommandRefused)) throw error
  return undefined
}

/** Some programs run a call as they asked for it, or not at all. */
const requireEditable = (
  state: ConversationState,
  call: CallState,
  { arguments: changed }: ApprovalAnswer
): undefined => {
  const harness = state.agents.find((agent) => agent.agent_id === call.agent_id)?.harness?.harness ?? ""
  if (changed === undefined || adapterOf(harness).capabilities.edit) return
  throw refused({
    code: "bad_request",
    message: `the arguments of a call of ${harness} cannot be changed; deny it instead`
  })
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value)

/** The rule for the scope of the answer; one for good says who gave it. */
const withReason = (learns: Learns | undefined, { approver, scope }: ApprovalAnswer): unknown => {
  if (scope === "once") return undefined
  const rule = learns?.[scope]
  if (rule === undefined || scope === "session") return rule
  return { ...(rule as object), reason: `allowed for good by ${approver}` }
}

export class Approvals {
  private readonly options: ApprovalsOptions
  private readonly answers = makeAnswerCheck()

  constructor(options: ApprovalsOptions) {
    this.options = options
  }

  async approve(conversationId: string, answer: ApprovalAnswer, idempotency?: Idempotency): Promise<Approved> {
    const { conversations } = this.options
    const rule = await this.ruleOf(await conversations.state(conversationId), answer)
    const command = { _tag: "ApproveCall", ...answer, ...(rule === undefined ? {} : { rule }) } as const
    const submitted = await conversations.submit(conversationId, command, idempotency)
    if (answer.scope === "once") return submitted
    // What is on record takes effect, also when the same answer comes a second time after a crash.
    const { grants } = await conversations.state(conversationId)
    const granted = grants.findLast((grant) => grant.event_id === submitted.event_id)
    if (granted !== undefined) await this.answerCovered(conversationId, granted, answer)
    return answer.scope === "rule" ? { ...submitted, learnt: await this.learn(granted?.rule, answer) } : submitted
  }

  /** The questions that wait and that nobody would have been asked any more: each is answered by itself. */
  private async answerCovered(conversationId: string, granted: Granted, given: ApprovalAnswer): Promise<void> {
    const { approver, channel } = given
    const { conversations } = this.options
    for (const { call_id } of pendingApprovals(await conversations.state(conversationId))) {
      const state = await conversations.state(conversationId)
      const call = callOf(state, call_id)
      if (call?.status !== "awaiting_approval" || !(await this.isCovered(state, call, granted))) continue
      const { arguments_hash } = call
      await conversations
        .submit(conversationId, { _tag: "ApproveCall", call_id, scope: "once", arguments_hash, approver, channel })
        .catch(unlessRefused)
    }
  }

  /** This permission makes the difference: what something else allows by now, this person has not allowed. */
  private async isCovered(state: ConversationState, call: CallState, granted: Granted): Promise<boolean> {
    // A question that can only be answered once is one that no permission answers: a hook asked it, or a person has to.
    if (call.approval?.choices.every((choice) => choice === "once") !== false) return false
    if (!(await this.isAllowed(state, call))) return false
    const without = { ...state, grants: state.grants.filter((grant) => grant.event_id !== granted.event_id) }
    return !(await this.isAllowed(without, call))
  }

  /** By the policy alone: whoever else had a say was asked when the question was. */
  private async isAllowed(state: ConversationState, call: CallState): Promise<boolean> {
    const { tools } = this.options
    if (tools.judge !== undefined) return tools.judge(state, call) === "allow"
    return (await Effect.runPromise(tools.authorize(state, call)))._tag === "Allow"
  }

  /** What the permission is bound to; throws CommandRefused for changed arguments that are wrong or denied. */
  private async ruleOf(state: ConversationState, answer: ApprovalAnswer): Promise<unknown> {
    const call = callOf(state, answer.call_id)
    const isCurrent = call?.status === "awaiting_approval" && call.arguments_hash === answer.arguments_hash
    await this.requireFit(isCurrent ? call : undefined, answer)
    // What is not to be judged here the machine refuses, and says why.
    if (!isCurrent || (answer.arguments !== undefined && !isObject(answer.arguments))) return undefined
    // Nothing here knows the tools of another program: whoever runs them judges what was changed.
    if (call.provenance === outsideProvenance) return requireEditable(state, call, answer)
    const issue = answerIssue(call.tool_name, answer.arguments)
    if (issue !== undefined) throw refused({ code: "bad_request", message: issue })
    const learns = answer.arguments === undefined ? call.approval?.learns : await this.reconsider(state, call, answer)
    return withReason(learns, answer)
  }

  /** Throws CommandRefused for an answer that is not what was asked for; the question stays open. */
  private async requireFit(call: CallState | undefined, answer: ApprovalAnswer): Promise<void> {
    const schema = call?.approval?.answer_schema
    if (call === undefined || !isObject(schema)) return
    const form = { name: call.tool_name, schema: schema as Readonly<Record<string, unknown>> }
    const given = answer.arguments === undefined ? call.arguments : answer.arguments
    const problem = await this.answers.problem(form, given)
    if (problem !== undefined)
      throw refused({ code: "bad_request", message: `${problem}; answer with other arguments` })
  }

  /** Puts changed arguments to the tool and to the policy. */
  private async reconsider(
    state: ConversationState,
    call: CallState,
    answer: ApprovalAnswer
  ): Promise<Learns | undefined> {
    const verdict = await Effect.runPromise(this.options.tools.authorize(state, edited(call, answer)))
    if (verdict._tag === "Reject") throw refused({ code: "bad_request", message: verdict.error.message })
    if (verdict._tag === "Deny") {
      const message = `the policy denies it: ${verdict.reason}`
      throw refused({ code: "invalid_state", message, data: { state: "denied" } })
    }
    const learns = verdict._tag === "Ask" ? verdict.learns : undefined
    if (answer.scope !== "once" && learns?.[answer.scope] === undefined) {
      throw refused({ code: "bad_request", message: "the changed call can only be allowed once" })
    }
    return learns
  }

  private async learn(rule: unknown, { call_id }: ApprovalAnswer): Promise<boolean> {
    if (rule === undefined || this.options.learn === undefined) return false
    try {
      await this.options.learn(rule)
      return true
    } catch (error) {
      this.options.onNotLearned?.(Object.assign(error as Error, { call_id }))
      return false
    }
  }
}
