// What stands between the commands of a plan's evidence and their being run: rules of the policy, and whether anything
// holds them. Says it when the plan is handed in, so that it can be mended or shown to a person; whoever runs them looks
// again.
import type { ConversationState } from "../../machine/State.ts"
import type { TaskId } from "../../rune/Ids.ts"
import type { PlanChange, PlanTask } from "../../rune/kinds/plan.ts"
import { commandsOf } from "../evidence/Spec.ts"
import { maySelfApprove, type RunnerRuling, type Tools } from "../GoalContext.ts"

const holdsCommand = (tasks: ReadonlyArray<PlanTask>): boolean =>
  tasks.some((one) => one.evidence?.some((spec) => commandsOf(spec).length > 0) === true)

const unheld = "its evidence runs commands, and no sandbox holds them"

interface Ruled extends RunnerRuling {
  readonly task_id: TaskId
  readonly command: ReadonlyArray<string>
}

/** What the rules of the policy say about the commands of the evidence, before any of them is run. */
const ruledCommands = (
  { runner }: Tools,
  state: ConversationState,
  tasks: ReadonlyArray<PlanTask>
): ReadonlyArray<Ruled> =>
  tasks.flatMap(({ evidence: specs = [], task_id }) =>
    specs
      .flatMap(commandsOf)
      .flatMap((command) =>
        runner === undefined ? [] : [{ ...runner.ruling(state, null, command), task_id, command }]
      )
  )

const denials = (rulings: ReadonlyArray<Ruled>): ReadonlyArray<string> =>
  rulings
    .filter(({ decision }) => decision === "deny")
    .map(({ reason, task_id }) => `${task_id}.evidence: the policy denies this command (${reason}): check it otherwise`)

/** The commands of a plan that the policy denies, as problems of the plan. */
export const deniedCommands = (
  tools: Tools,
  state: ConversationState,
  tasks: ReadonlyArray<PlanTask>
): ReadonlyArray<string> => denials(ruledCommands(tools, state, tasks))

/** Why a person has to see the plan first, if there is a reason. */
export const approvalReason = (
  tools: Tools,
  state: ConversationState,
  tasks: ReadonlyArray<PlanTask>
): string | undefined => {
  if (holdsCommand(tasks) && !maySelfApprove(tools.runner)) return unheld
  const asked = ruledCommands(tools, state, tasks).find(({ decision }) => decision === "ask")
  return asked === undefined ? undefined : `its evidence runs a command that is asked about: ${asked.reason}`
}

/** What a person has approved stays what it was: commands that nobody has seen do not come in later. */
const unseen = (changes: ReadonlyArray<PlanChange>): ReadonlyArray<string> =>
  changes
    .flatMap((one) => ("task" in one && holdsCommand([one.task]) ? one.task.task_id : []))
    .map((id) => `${id}.evidence: a command cannot be added now, no sandbox holds it: name a file instead`)

const commandKeys = (tasks: ReadonlyArray<PlanTask>): ReadonlyArray<string> =>
  tasks.flatMap(({ evidence = [] }) => evidence.flatMap(commandsOf).map((command) => JSON.stringify(command)))

/** What cannot come into a plan that is pursued already: nobody is asked about it any more. */
export const refusedChanges = (
  tools: Tools,
  state: ConversationState,
  changes: ReadonlyArray<PlanChange>
): ReadonlyArray<string> => {
  const rulings = ruledCommands(
    tools,
    state,
    changes.flatMap((one) => ("task" in one ? one.task : []))
  )
  // Commands of the plan as it stands were allowed, by the policy or by a person; they may be named again.
  const seen = new Set(commandKeys((state.plan?.tasks ?? []).map(({ task }) => task as PlanTask)))
  const asked = rulings
    .filter(({ command, decision }) => decision === "ask" && !seen.has(JSON.stringify(command)))
    .map(
      ({ reason, task_id }) => `${task_id}.evidence: this command is asked about, and nobody is asked now: ${reason}`
    )
  return [...(maySelfApprove(tools.runner) ? [] : unseen(changes)), ...denials(rulings), ...asked]
}
