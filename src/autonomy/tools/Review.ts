// The tool of the critic: a verdict with its findings. A pass ends the goal with its proof, a retry makes tasks of the
// findings, a replan sends the orchestrator back to the plan.
import { tryCommand } from "../../contract/TryCommand.ts"
import type { Command } from "../../machine/Command.ts"
import { orchestratorIdOf } from "../../machine/decide/TaskSchedule.ts"
import type { ConversationState, PlanState } from "../../machine/State.ts"
import type { Evidence } from "../../rune/kinds/evidence.ts"
import type { Input, Tool } from "../../tool/Tool.ts"
import type { SignalContext, ToolOutcome } from "../../tool/ToolPort.ts"
import { currentEvidence } from "../Critic.ts"
import type { Tools } from "../GoalContext.ts"
import { notLooked, unreadChanges } from "../Looks.ts"
import { replanPrompt } from "../Prompts.ts"
import { followUps, objections, parseReview, type Review, regressions } from "../Review.ts"
import { goalMet } from "../Summary.ts"
import { keepProof } from "../VerifyGoal.ts"
import { done, faulty, ownTool, wrong } from "./RoleTool.ts"
import { list, object, text } from "./Schema.ts"

const finding = object(
  {
    severity: { enum: ["error", "warning", "suggestion", "info"] },
    category: text("such as correctness, tests, security, style"),
    title: text("one line"),
    detail: text("what is wrong, and how you know"),
    file: text("path"),
    line: { type: "integer" },
    suggested_fix: text("how to mend it"),
    task_id: text("of the task it is about")
  },
  ["severity", "title"]
)

const commandFor = async (
  tools: Tools,
  state: ConversationState,
  plan: PlanState,
  review: Review,
  evidence: ReadonlyArray<Evidence>,
  context: SignalContext
): Promise<Command> => {
  const { findings, verdict } = review
  const { plan_id: planId } = plan
  const advance = { _tag: "AdvancePlan", plan_id: planId } as const
  const payload = { plan_id: planId, findings, verdict }
  switch (verdict) {
    case "pass": {
      const met = await goalMet(tools, state, plan, evidence, { signal: context.signal })
      await keepProof(tools, state, plan, { tree: met.tree, signal: context.signal })
      return { ...advance, step: { _tag: "PassCritique", critique: { payload }, met: { payload: met } } }
    }
    case "retry": {
      const changes = followUps(plan, findings)
      const update = { _tag: "UpdatePlan", payload: { plan_id: planId, changes } } as const
      return { ...advance, step: { _tag: "FindIssues", payload }, also: [update] }
    }
    case "replan": {
      const said = { agent_id: orchestratorIdOf(planId), content: replanPrompt(plan, findings, regressions(plan)) }
      return { ...advance, step: { _tag: "NeedReplan", payload }, say: said }
    }
  }
}

const submitReview = async (tools: Tools, input: Input, context: SignalContext): Promise<ToolOutcome> => {
  const { conversation } = context
  const state = conversation.state()
  const { plan } = state
  if (plan === null) return wrong("there is no goal that this conversation pursues", "no_plan")
  // The call was cut off after it had taken effect.
  if (context.attempt > 1 && plan.status !== "reviewing") return done("The verdict is on record.")
  const parsed = parseReview(input, plan)
  if (parsed._tag === "Faulty") return faulty("review", parsed.problems)
  const { signal } = context
  const isPass = parsed.value.verdict === "pass"
  const evidence = isPass ? await currentEvidence(tools, { state, plan, signal }) : []
  const against = isPass ? objections(plan, evidence) : []
  if (against.length > 0)
    return faulty(
      "review",
      against.map((one) => `the files changed since the review: ${one}`)
    )
  const unread = isPass ? await unreadChanges(tools, state, plan, signal) : []
  if (unread.length > 0) return faulty("review", [notLooked(unread)])
  const refusal = await tryCommand(conversation, await commandFor(tools, state, plan, parsed.value, evidence, context))
  return refusal === undefined
    ? done("The verdict is on record. Nothing more is to be done.")
    : wrong(`a verdict is not expected now: ${refusal.message}`, "not_expected")
}

export const makeSubmitReview = (tools: Tools): Tool =>
  ownTool({
    name: "submit_review",
    description: "Hands in your verdict on the work, with what you found.",
    parameters: object(
      {
        verdict: { enum: ["pass", "retry", "replan"] },
        findings: list(finding, "what you found; empty when there is nothing to say")
      },
      ["verdict"]
    ),
    effect_class: "idempotent",
    timeout_ms: 3_600_000,
    run: (input, context) => submitReview(tools, input, context)
  })
