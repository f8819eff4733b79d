// Clears away the worktrees of goals that are over, however they ended: met, stopped, or left behind by a server that
// died. Follows the runes as they become durable, and begins when the last agent of a goal is gone; a list that outlives the
// server says where to look at the next start. Whatever was not merged is kept in a ref, or the worktree stays.

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConversationAccess } from "../contract/ConversationAccess.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import { orchestratorIdOf } from "../machine/decide/TaskSchedule.ts"
import type { ConversationState } from "../machine/State.ts"
import { autonomy } from "../machine/table/Autonomy.ts"
import { aliveAgents } from "../machine/view/Select.ts"
import type { PlanId } from "../rune/Ids.ts"
import type { GoalOptions } from "../rune/kinds/plan.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { CommandRunner } from "./CommandRunner.ts"
import { makeGit } from "./Git.ts"
import type { Runner } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { type Swept, sweepWorktrees } from "./Worktrees.ts"

/** A goal that may have worktrees. */
export interface KeptGoal {
  readonly conversation_id: string
  readonly plan_id: string
  readonly workspace: string
}

export interface WorktreeJanitorOptions {
  readonly runner: Runner
  readonly conversations: { readonly state: (conversationId: string) => Promise<ConversationState> }
  readonly goals: {
    readonly read: () => ReadonlyArray<KeptGoal>
    readonly write: (goals: ReadonlyArray<KeptGoal>) => void
  }
  /** Told what was kept or left of a goal, and what went wrong. */
  readonly onReport?: (goal: KeptGoal, report: Swept | { readonly error: unknown }) => void
}

/** All agents of a goal have ids that begin like that of its orchestrator. */
export const agentPrefix = (planId: string): string => orchestratorIdOf(planId as PlanId).replace(/lead$/u, "")

/** A goal with worktrees begins, or a worker in a place of its own. */
const begins = (rune: AnyRune): boolean => {
  if (rune.kind !== "plan.goal_received" && rune.kind !== "agent.spawning") return false
  const { options, workspace } = rune.payload as { readonly options?: GoalOptions; readonly workspace?: string }
  return options?.worktrees === true || (rune.kind === "agent.spawning" && workspace !== undefined)
}

const ends: ReadonlySet<string> = new Set([
  "plan.goal_met",
  "plan.stopped",
  "agent.terminated",
  "agent.failed",
  "session.closed"
])

/** Nobody works on it any more, and nobody will. */
const isOver = (state: ConversationState, { plan_id: planId }: KeptGoal): boolean => {
  const { plan } = state
  const isPursued = plan?.plan_id === planId && !autonomy.terminal.includes(plan.status)
  const prefix = agentPrefix(planId)
  return !isPursued && !aliveAgents(state).some((agent) => agent.agent_id.startsWith(prefix))
}

export class WorktreeJanitor {
  private readonly options: WorktreeJanitorOptions
  /** What is on the list, and has to be read from nowhere. */
  private known: ReadonlyArray<KeptGoal>
  /** Conversations to be looked at, each once. */
  private readonly waiting = new Set<string>()
  private readonly stopping = new AbortController()
  private working: Promise<void> | undefined

  constructor(options: WorktreeJanitorOptions) {
    this.options = options
    this.known = options.goals.read()
  }

  /** Runes became durable. Cheap for all that have nothing to do with it. */
  notice(runes: ReadonlyArray<AnyRune>): void {
    for (const rune of runes) {
      const { conversation_id: id } = rune
      const isKnown = ends.has(rune.kind) && this.known.some((goal) => goal.conversation_id === id)
      if (isKnown || begins(rune)) this.look(id)
    }
  }

  /** Looks after every goal that was on the list when the server ended; resolves when all of it was looked at. */
  async recover(): Promise<void> {
    for (const { conversation_id: id } of this.known) this.look(id)
    await this.settled()
  }

  /** Resolves when nothing is left to be looked at. */
  async settled(): Promise<void> {
    while (this.working !== undefined) await this.working
  }

  async close(): Promise<void> {
    this.stopping.abort()
    await this.settled()
  }

  private look(conversationId: string): void {
    if (this.stopping.signal.aborted) return
    this.waiting.add(conversationId)
    this.working ??= this.work().finally(() => {
      this.working = undefined
    })
  }

  private async work(): Promise<void> {
    // Whatever is noticed in the same moment is looked at once.
    await Promise.resolve()
    for (const id of this.waiting) {
      this.waiting.delete(id)
      if (!this.stopping.signal.aborted) await this.lookAfter(id)
    }
  }

  private async lookAfter(conversationId: string): Promise<void> {
    const state = await this.options.conversations.state(conversationId).catch(() => undefined)
    if (state !== undefined) this.remember(state)
    for (const goal of this.known) {
      if (goal.conversation_id !== conversationId || state === undefined || !isOver(state, goal)) continue
      await this.clear(goal).catch((error: unknown) => this.options.onReport?.(goal, { error }))
    }
  }

  /** A goal with worktrees is on the list before its first worker is at work. */
  private remember({ conversation_id, plan, session }: ConversationState): void {
    const { workspace } = session.config
    if (plan?.options.worktrees !== true || workspace === undefined || autonomy.terminal.includes(plan.status)) return
    if (this.known.some(({ plan_id }) => plan_id === plan.plan_id)) return
    this.write([...this.known, { conversation_id, plan_id: plan.plan_id, workspace }].slice(-limits.goalsRememberedMax))
  }

  private write(goals: ReadonlyArray<KeptGoal>): void {
    this.known = goals
    this.options.goals.write(goals)
  }

  private async clear(goal: KeptGoal): Promise<void> {
    const { onReport, runner } = this.options
    const git = makeGit({ runner }, goal.workspace, this.stopping.signal)
    const swept = await sweepWorktrees(git, goal.workspace, agentPrefix(goal.plan_id), [])
    // Another look, at the next start, where git cannot be run or something had to stay.
    if (swept === undefined) return
    if (swept.kept.length > 0 || swept.left.length > 0) onReport?.(goal, swept)
    if (swept.left.length === 0) this.write(this.known.filter(({ plan_id }) => plan_id !== goal.plan_id))
  }
}

/** Clears away worktrees for as long as the scope is open, the ones that an earlier server left behind included. */
export const worktreeJanitor = (
  goals: WorktreeJanitorOptions["goals"]
): Layer.Layer<never, never, CommandRunner | ConversationAccess | DurableNotices | ServerLog> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const runner = yield* CommandRunner
      if (runner === undefined) return
      const conversations = yield* ConversationAccess
      const onReport = reporter(yield* ServerLog)
      const janitor = yield* Effect.acquireRelease(
        Effect.sync(() => new WorktreeJanitor({ runner, conversations, goals, onReport })),
        (opened) => Effect.promise(() => opened.close())
      )
      yield* DurableNotices.listen({ name: "worktrees", appended: (_id, runes) => janitor.notice(runes) })
      yield* Effect.forkScoped(Effect.promise(() => janitor.recover()))
    })
  )

const reporter =
  (log: Log): NonNullable<WorktreeJanitorOptions["onReport"]> =>
  ({ workspace }, report) =>
    "error" in report
      ? log.write("warn", "worktrees could not be cleared away", { workspace, cause: describeError(report.error) })
      : log.write("info", "worktrees of a goal that is over", { workspace, ...report })
