// Follows a goal to its end: what happens in words, questions asked where they come up, and a plan that waits for a word
// put to whoever sits at the terminal. The goal itself lives on the server: going away does not stop it.
import type { AnyRune, Client } from "../../client/Client.ts"
import { showRows } from "../Pages.ts"
import { decide, tellPlan } from "../Turn.ts"
import type { Terminal } from "../Verb.ts"
import { Board } from "./Board.ts"
import { GoalLines } from "./Lines.ts"
import { taskRows } from "./PlanView.ts"

export interface FollowGoalOptions {
  readonly client: Client
  readonly terminal: Terminal
  readonly conversationId: string
  readonly planId: string
  readonly signal: AbortSignal
  /** The plan waits for a person before it starts. */
  readonly review: boolean
  /** Runes up to this one are of the time before the goal. */
  readonly after?: number
}

const refreshMs = 500

export const followGoal = async (options: FollowGoalOptions): Promise<Board> => {
  const { after = 0, client, conversationId, planId, signal, terminal } = options
  const board = new Board(planId)
  const lines = new GoalLines(terminal, board)
  const since = performance.now()
  // A line that is replaced would run over a question.
  let isAsking = false
  const refresh = (): void => {
    if (!isAsking) terminal.status(lines.status(performance.now() - since))
  }
  const timer = setInterval(refresh, refreshMs)
  try {
    for await (const item of client.tail(conversationId, { after, signal })) {
      if (!("rune" in item)) continue
      const { rune } = item
      board.apply(rune)
      for (const line of lines.linesOf(rune)) terminal.write(`${line}\n`)
      const question = questionIn(options, rune)
      if (question !== undefined) {
        isAsking = true
        terminal.status(undefined)
        await question()
        isAsking = false
      }
      if (board.end !== undefined) break
      refresh()
    }
  } finally {
    clearInterval(timer)
    terminal.status(undefined)
  }
  terminal.write(lines.ending())
  return board
}

/** What a person has to answer before it goes on. */
const questionIn = (options: FollowGoalOptions, rune: AnyRune): (() => Promise<void>) | undefined => {
  const { planId, review } = options
  const payload = rune.payload as {
    readonly call_id?: string
    readonly plan_id?: string
    readonly needs_approval?: string
    readonly revision?: number
    readonly tasks?: unknown
  }
  if (rune.kind === "tool.approval_requested") {
    return () => decide({ ...options, after: rune.event_id }, String(payload.call_id))
  }
  if (rune.kind === "plan.baseline_checked" && payload.plan_id === planId && payload.needs_approval !== undefined) {
    return async () => {
      const { plan } = await options.client.call("conversation.get", { conversation_id: options.conversationId })
      await judge(options, { ...payload, tasks: plan?.tasks.map(({ task }) => task) })
    }
  }
  const waits = review || payload.needs_approval !== undefined
  if (!waits || rune.kind !== "plan.created" || payload.plan_id !== planId) return undefined
  return () => judge(options, payload)
}

/** Puts the plan to whoever can answer; without an answer it says how to give one later. */
const judge = async (
  { client, conversationId, planId, signal, terminal }: FollowGoalOptions,
  { revision, tasks }: { readonly revision?: number; readonly tasks?: unknown }
): Promise<void> => {
  const seen = revision === undefined ? {} : { revision }
  const plan = { conversation_id: conversationId, plan_id: planId, ...seen }
  const seenAll = await showRows(taskRows(tasks, terminal), terminal, signal)
  const answer =
    terminal.isAnswered && seenAll === "seen"
      ? (await terminal.ask("  start this plan? [y]es, or what is wrong with it: ", signal))?.trim()
      : undefined
  if (signal.aborted) return
  if (answer === undefined || answer === "") {
    const which = revision === undefined ? conversationId : `${conversationId} --revision ${revision}`
    terminal.complain(`the plan waits: echs plan approve ${which}, or echs plan reject ${which} --reason …\n`)
    return
  }
  await tellPlan({ client, terminal }, plan, answer)
}
