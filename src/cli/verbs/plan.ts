// `echs plan`: shows a plan, approves or rejects one that waits for review, resumes a goal that waits, or cancels it.
import type { Client, PlanItem } from "../../client/Client.ts"
import { planRows } from "../goal/PlanView.ts"
import { showRows } from "../Pages.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { oneOf, UsageError, wholeNumber } from "../VerbSpec.ts"

const planOf = async (client: Client, conversationId: string): Promise<PlanItem> => {
  const { plan } = await client.call("conversation.get", { conversation_id: conversationId })
  if (plan === null) throw new UsageError(`${conversationId} has no goal`)
  return plan
}

/** A decision applies to the revision the person saw: the named one, or the one shown here. */
const answered = (plan: PlanItem, given: string | undefined): { readonly revision?: number } => {
  const revision = wholeNumber("revision", given, 1) ?? plan.revision
  return revision === 0 ? {} : { revision }
}

/** Shows the plan and asks for confirmation, where a person can answer. */
const isConfirmed = async (rows: ReadonlyArray<string>, terminal: Terminal): Promise<boolean> => {
  if (!terminal.isAnswered) return true
  const signal = terminal.interruption()
  if ((await showRows(rows, terminal, signal)) === "stopped") return false
  const answer = await terminal.ask("  start this plan? [y]es, [n]o ", signal)
  return /^y(es)?$/i.test(answer?.trim() ?? "")
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "plan",
    takes: "show|approve|reject|resume|cancel CONVERSATION",
    positionals: { min: 2, max: 2 },
    options: {
      reason: { type: "string", value: "TEXT", help: "reason; the planner sees it" },
      revision: { type: "string", value: "NUMBER", help: "revision to decide on; refused if the plan has changed" }
    },
    example: "echs plan reject last --reason 'leave the public names alone'",
    run: async ({ answer, client, positionals: [what = "", named = ""], terminal, values }) => {
      const action = oneOf("action", what, ["show", "approve", "reject", "resume", "cancel"])
      if (action === undefined) throw new UsageError("unknown action; use show, approve, reject, resume or cancel")
      const conversationId = await findConversation(client, named, parts.workingDirectory())
      const plan = await planOf(client, conversationId)
      const { plan_id: planId } = plan
      const rows = planRows(plan, terminal)
      const shown = `${rows.join("\n")}\n`
      if (action === "show") {
        answer({ conversation_id: conversationId, ...plan }, () => shown)
        return exitCode.done
      }
      const isAsked = action === "approve" && values.revision === undefined && values.json !== true
      if (isAsked && !(await isConfirmed(rows, terminal))) {
        terminal.complain("the plan is still waiting\n")
        return exitCode.interrupted
      }
      const seen = action === "cancel" || action === "resume" ? {} : answered(plan, values.revision)
      const done = await client.call(action === "resume" ? "goal.resume" : `plan.${action}`, {
        conversation_id: conversationId,
        plan_id: planId,
        ...seen,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      answer(
        { conversation_id: conversationId, plan_id: planId, ...seen, ...done },
        () =>
          `${action === "cancel" || action === "resume" || (isAsked && terminal.isAnswered) ? "" : shown}${planId}: ${action}\n`
      )
      return exitCode.done
    }
  })
