// `echs goal`: hands a goal to the server and follows it to its end; the exit code tells whether it was met. `echs plan`
// answers for a plan that waits, and stops one that should not go on.
import type { Client, PlanItem } from "../../client/Client.ts"
import type { Board } from "../goal/Board.ts"
import { followGoal } from "../goal/Follow.ts"
import { goalFields, goalOptions } from "../goal/Options.ts"
import { planRows } from "../goal/PlanView.ts"
import { showRows } from "../Pages.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { oneOf, UsageError, wholeNumber } from "../VerbSpec.ts"

export const makeGoal = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "goal",
    takes: "TEXT",
    positionals: { min: 1, max: 1 },
    options: goalOptions,
    example: "echs goal 'make the tests pass'",
    notes: ["Ctrl-C stops following, not the goal: `echs plan cancel CONVERSATION` does that."],
    isPatient: true,
    run: async ({ answer, client, positionals: [goal = ""], terminal, values }) => {
      if (goal.trim() === "") throw new UsageError("TEXT is empty: say what is to be done")
      const fields = goalFields(values, parts.workingDirectory())
      const place = values.in === undefined ? undefined : await placeIn(client, values.in)
      const submitted = await client.call("goal.submit", { goal, ...place?.fields, ...fields })
      if (values.detach === true) {
        answer(submitted, () => `${submitted.conversation_id} ${submitted.plan_id}\n`)
        return exitCode.done
      }
      const view = values.json === true ? quietly(terminal) : terminal
      view.write(`${view.paint("quiet", submitted.conversation_id)}\n`)
      const { conversation_id: conversationId, plan_id: planId } = submitted
      const signal = terminal.interruption()
      const board = await followGoal({
        client,
        terminal: view,
        conversationId,
        planId,
        signal,
        review: values.review === true,
        ...(place === undefined ? {} : { after: place.head })
      })
      if (values.json === true) answer(await reportOf(client, conversationId, board), () => "")
      return ended(board, conversationId, terminal)
    }
  })

/** A conversation that is there already, and how far it has come. */
const placeIn = async (client: Client, named: string) => {
  const id = await findConversation(client, named)
  const { last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
  return { fields: { conversation_id: id }, head }
}

const quietly = (terminal: Terminal): Terminal => ({
  ...terminal,
  isAnswered: false,
  write: () => {},
  status: () => {}
})

const ended = (board: Board, conversationId: string, terminal: Terminal): ExitCode => {
  if (board.end?.outcome === "goal_met") return exitCode.done
  if (board.end !== undefined) return exitCode.failed
  terminal.complain(
    `the goal goes on without you: echs tail ${conversationId}, or echs plan cancel ${conversationId}\n`
  )
  return exitCode.interrupted
}

const reportOf = async (client: Client, conversationId: string, board: Board) => {
  const {
    cost_usd: usd,
    tool_calls: toolCalls,
    usage
  } = await client.call("conversation.get", {
    conversation_id: conversationId
  })
  const { end, startedMs } = board
  return {
    conversation_id: conversationId,
    plan_id: board.planId,
    outcome: end?.outcome ?? "running",
    ...(end?.payload ?? {}),
    tasks: board.tasks.map(({ attempt, state, task_id, title }) => ({ task_id, title, state, attempt })),
    usage,
    cost_usd: usd,
    tool_calls: toolCalls,
    duration_ms: end === undefined || startedMs === undefined ? null : end.ts_ms - startedMs
  }
}

const planOf = async (client: Client, conversationId: string): Promise<PlanItem> => {
  const { plan } = await client.call("conversation.get", { conversation_id: conversationId })
  if (plan === null) throw new UsageError(`${conversationId} has no goal`)
  return plan
}

/** A yes or no is about the plan that was seen: the one that was named, or the one that is shown here. */
const answered = (plan: PlanItem, given: string | undefined): { readonly revision?: number } => {
  const revision = wholeNumber("revision", given, 1) ?? plan.revision
  return revision === 0 ? {} : { revision }
}

/** Whoever names no revision has not said which plan: it is shown, and asked about where somebody can answer. */
const isMeant = async (rows: ReadonlyArray<string>, terminal: Terminal): Promise<boolean> => {
  if (!terminal.isAnswered) return true
  const signal = terminal.interruption()
  if ((await showRows(rows, terminal, signal)) === "stopped") return false
  const answer = await terminal.ask("  start this plan? [y]es, [n]o ", signal)
  return /^y(es)?$/i.test(answer?.trim() ?? "")
}

export const makePlan = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "plan",
    takes: "show|approve|reject|cancel CONVERSATION",
    positionals: { min: 2, max: 2 },
    options: {
      reason: { type: "string", value: "TEXT", help: "why; a planner that is told can do better" },
      revision: { type: "string", value: "NUMBER", help: "of the plan that was seen; another one is refused" }
    },
    example: "echs plan reject last --reason 'leave the public names alone'",
    run: async ({ answer, client, positionals: [what = "", named = ""], terminal, values }) => {
      const action = oneOf("action", what, ["show", "approve", "reject", "cancel"])
      if (action === undefined) throw new UsageError("takes show, approve, reject or cancel")
      const conversationId = await findConversation(client, named)
      const plan = await planOf(client, conversationId)
      const { plan_id: planId } = plan
      const rows = planRows(plan, terminal)
      const shown = `${rows.join("\n")}\n`
      if (action === "show") {
        answer({ conversation_id: conversationId, ...plan }, () => shown)
        return exitCode.done
      }
      const isAsked = action === "approve" && values.revision === undefined && values.json !== true
      if (isAsked && !(await isMeant(rows, terminal))) {
        terminal.complain("the plan still waits\n")
        return exitCode.interrupted
      }
      const seen = action === "cancel" ? {} : answered(plan, values.revision)
      const done = await client.call(`plan.${action}`, {
        conversation_id: conversationId,
        plan_id: planId,
        ...seen,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      answer(
        { conversation_id: conversationId, plan_id: planId, ...seen, ...done },
        () => `${action === "cancel" || (isAsked && terminal.isAnswered) ? "" : shown}${planId}: ${action}\n`
      )
      return exitCode.done
    }
  })
