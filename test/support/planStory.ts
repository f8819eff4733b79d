/**
 * A goal driven step by step in memory: the same decide, fold and list of pending work
 * as in production; agents take turns when they are told to, and say what they are told.
 */

import type { PlanState } from "#src/machine/State.ts"
import { agentOf } from "#src/machine/view/Select.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import type { PendingPlanWork, PlanWork } from "#src/machine/work/PlanWork.ts"
import type { AgentId, PlanId, TaskId } from "#src/rune/Ids.ts"
import type { PayloadOf } from "#src/rune/Kinds.ts"
import type { Finding, PlanTask, Verdict } from "#src/rune/kinds/plan.ts"
import { type Outcome, planCommand } from "./planWork.ts"
import { Story, textItem } from "./story.ts"

export const planId = "plan_1234" as PlanId
export const leadId = "agt_1234lead" as AgentId

export const task = (
  id: string,
  more: Partial<PlanTask> & { readonly after?: ReadonlyArray<string> } = {}
): PlanTask => {
  const { after = [], ...rest } = more
  return {
    task_id: id as TaskId,
    title: `do ${id}`,
    instructions: `do ${id}`,
    depends_on: after as ReadonlyArray<TaskId>,
    priority: "medium",
    ...rest
  }
}

type Step = Extract<Parameters<Story["run"]>[0], { readonly _tag: "AdvancePlan" }>["step"]

export class PlanStory extends Story {
  goal(more: Partial<PayloadOf<"plan.goal_received">> = {}): this {
    this.ready()
    this.run({ _tag: "SubmitGoal", payload: { plan_id: planId, goal: "a goal", auto_start: true, ...more } })
    return this
  }

  get plan(): PlanState {
    return this.state.plan!
  }

  get planWork(): ReadonlyArray<PendingPlanWork> {
    return pendingWork(this.state).filter((effect) => effect._tag === "PlanWork")
  }

  /** What the goal needs now, by name. */
  get works(): ReadonlyArray<string> {
    return this.planWork.map(({ work }) => work._tag)
  }

  work<Tag extends PlanWork["_tag"]>(tag: Tag): Extract<PlanWork, { readonly _tag: Tag }> {
    const found = this.planWork.find(({ work }) => work._tag === tag)
    if (found === undefined) throw new Error(`no ${tag} among ${this.works.join(", ")}`)
    return found.work as Extract<PlanWork, { readonly _tag: Tag }>
  }

  /** Carries out the first piece of work of that name. */
  carry(tag: PlanWork["_tag"], outcome: Outcome = "completed"): this {
    const found = this.planWork.find(({ work }) => work._tag === tag)
    if (found === undefined) throw new Error(`no ${tag} among ${this.works.join(", ")}`)
    this.run(planCommand(this.state, found, outcome))
    return this
  }

  step(step: Step): this {
    this.run({ _tag: "AdvancePlan", plan_id: planId, step })
    return this
  }

  /** Lets an agent do what it is asked, with a few words for an answer. */
  speak(agentId: AgentId): this {
    for (;;) {
      const effect = pendingWork(this.state).find((one) => "agent_id" in one && one.agent_id === agentId)
      if (effect === undefined) return this
      if (effect._tag === "StartAgent") this.run({ _tag: "CompleteAgentInit", agent_id: agentId })
      else if (effect._tag === "StartQueued") this.run({ _tag: "StartQueued", agent_id: agentId })
      else if (effect._tag === "CallModel") {
        this.request(agentId)
        this.respond([textItem("words")], agentId)
      } else if (effect._tag === "FinaliseResponse") this.run({ _tag: "FinaliseResponse", agent_id: agentId })
      else throw new Error(`${agentId} cannot go on with ${effect._tag}`)
    }
  }

  /** A plan is there, approved, and nothing has begun. */
  planned(tasks: ReadonlyArray<PlanTask>, more: Partial<PayloadOf<"plan.goal_received">> = {}): this {
    this.goal(more).carry("Plan").speak(leadId)
    this.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks } })
    return this.approved()
  }

  /** The checks of the plan ran before the work, and the server starts it. */
  approved(): this {
    return this.carry("Baseline").carry("Approve")
  }

  /** Begins the next task and has its worker end its turn. */
  worked(outcome: Outcome = "completed"): this {
    const { task_id: id } = this.work("BeginTask")
    this.carry("BeginTask")
    const agentId = this.plan.tasks.find((one) => one.task.task_id === id)!.agent_id!
    this.speak(agentId)
    return this.carry("SettleTask", outcome)
  }

  judged(verdict: Verdict, findings: ReadonlyArray<Finding> = []): this {
    const payload = { plan_id: planId, findings, verdict }
    if (verdict === "replan") return this.step({ _tag: "NeedReplan", payload })
    if (verdict === "retry") return this.step({ _tag: "FindIssues", payload })
    const spec = { type: "file", path: "a.txt" } as const
    const met = { payload: { plan_id: planId, summary: "met", evidence: [{ spec, passed: true }] } }
    return this.step({ _tag: "PassCritique", critique: { payload }, met })
  }

  agentNamed(agentId: AgentId) {
    return agentOf(this.state, agentId)
  }
}
