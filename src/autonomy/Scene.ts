// One piece of work on a goal: the state it starts from, and the way to put its outcome on record.
import { tryCommand } from "../contract/TryCommand.ts"
import type { Command } from "../machine/Command.ts"
import type { ConversationState, PlanState } from "../machine/State.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import { type Git, makeGit } from "./Git.ts"
import type { GoalContext } from "./GoalContext.ts"

export interface Scene {
  readonly context: GoalContext
  readonly state: ConversationState
  readonly plan: PlanState
  readonly signal: AbortSignal
  /** How the workspace stood after the newest merge, also of one that is not on record yet. */
  readonly workspaceNow: { tree?: string }
  /** One after another: each starts from what the one before it left of the repository. */
  readonly alone: <A>(work: () => Promise<A>) => Promise<A>
}

/** What the machine refuses is out of date; the next look at the state says what is to be done instead. */
export const submit = async ({ context }: Scene, command: Command): Promise<void> => {
  await tryCommand(context.conversation, command)
}

type Advance = Extract<Command, { readonly _tag: "AdvancePlan" }>

/** One step of the plan, with what belongs to it. */
export const advance = (scene: Scene, step: Advance["step"], more: Partial<Advance> = {}): Promise<void> =>
  submit(scene, { _tag: "AdvancePlan", plan_id: scene.plan.plan_id, step, ...more })

export const workspaceIn = ({ state }: Pick<Scene, "state">): string | undefined => state.session.config.workspace

/** The workspace where every worker has a worktree of its own; nothing otherwise. */
export const worktreesIn = ({ plan, state }: Scene): string | undefined =>
  plan.options.worktrees === true ? state.session.config.workspace : undefined

export const gitIn = ({ context, signal }: Scene, workspace: string): Git => makeGit(context, workspace, signal)

export const failure = (code: string, message: string, data?: unknown): ErrorInfo => ({
  code,
  message,
  source: "orchestrator",
  ...(data === undefined ? {} : { data })
})
