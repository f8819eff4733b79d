// What the pursuit of a goal works with: the conversation it happens in, a runner of programs, and a look into the
// workspace. The state is the only memory: whoever sits down here after a crash finds everything in it.

import { serverName } from "../machine/decide/TaskSchedule.ts"
import type { ConversationState, PlanState } from "../machine/State.ts"
import { agentOf } from "../machine/view/Select.ts"
import type { CommandRuling } from "../policy/CommandRules.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { GoalModels } from "../rune/kinds/evidence.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import type { WorkspaceLook } from "../tool/evidence/Look.ts"
import type { ToolConversation } from "../tool/ToolPort.ts"

/** Runs the programs that show whether a task is done. */
export interface Runner extends Pick<ProcessPort, "run"> {
  /** The operating system holds what it runs. */
  readonly contained: boolean
  /** What the policy says about a program before it is run for an agent, or for none in particular. */
  readonly ruling: (state: ConversationState, agentId: AgentId | null, argv: ReadonlyArray<string>) => RunnerRuling
}

export type RunnerRuling = CommandRuling

type Argv = ReadonlyArray<string>

export interface Tools {
  readonly runner: Runner | undefined
  readonly look: WorkspaceLook
  readonly nowMs: () => number
  /** The program that asks a server under test, inside the sandbox. */
  readonly node: string
}

export interface GoalContext extends Tools {
  readonly conversation: ToolConversation
}

/** The model that agents of a role speak with: the goal's for this role, else that of the conversation. */
export const modelOf = (state: ConversationState, role: keyof GoalModels): string =>
  state.plan?.models[role] ?? state.session.config.model ?? agentOf(state, state.session.root_agent_id)?.model ?? ""

/** Whether the commands of a plan may run without a person having seen them: only where something holds them. */
export const maySelfApprove = (runner: Runner | undefined): boolean => runner?.contained === true

/** A person said yes to the plan as it is, with its commands before their eyes. */
const isApprovedByPerson = ({ plan }: ConversationState): boolean =>
  plan !== null && plan.approver !== null && plan.approver !== serverName

/** Whether a command of the evidence may be run now, and why not. */
export const refusalOf = (
  runner: Runner,
  state: ConversationState,
  agentId: AgentId | null,
  argv: Argv,
  given: { readonly isPersons: boolean }
): string | undefined => {
  const { decision, reason } = runner.ruling(state, agentId, argv)
  if (decision === "deny") return `the policy denies it: ${reason}`
  return decision === "ask" && !given.isPersons && !isApprovedByPerson(state)
    ? `it is asked about, and nobody said yes: ${reason}`
    : undefined
}

/** Nothing a check does may change a workspace that is only to be read. */
export const writableOf = (state: ConversationState, directory: string): ReadonlyArray<string> =>
  state.session.config.policy?.mode === "read_only" ? [] : [directory]

/** The plan that is pursued, if it is the one that is meant. */
export const planOf = (state: ConversationState, planId: string): PlanState | undefined =>
  state.plan?.plan_id === planId ? state.plan : undefined
