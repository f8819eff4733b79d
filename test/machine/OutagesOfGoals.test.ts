/**
 * Goal: trouble with a provider costs a goal nothing, whenever it comes and however long it takes: what passes is waited
 * out, what only a person can mend is asked about and goes on from there. Method: every kind of trouble, for 20 seconds, 10
 * minutes and 2 hours, in every phase of a goal driven step by step.
 */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { leadId, PlanStory, planId, task } from "../support/planStory.ts"

const failure = (error_type: string) => ({ error_type, message: "no", retryable: true, source: "harness" }) as const

/** As a provider answers, and as its adapter tells it. */
const troubles = [
  ["429 with retry-after", { error: failure("rate_limited"), outage: true, delay_ms: 7_000 }],
  ["429", { error: failure("rate_limited"), outage: true }],
  ["503", { error: failure("server_error"), outage: true }],
  ["529", { error: failure("overloaded"), outage: true }],
  ["401", { error: failure("authentication"), waits_for: "person" as const }],
  ["402", { error: failure("quota_exceeded"), waits_for: "person" as const }]
] as const

const phases = ["planning", "work", "critic", "replan"] as const
type Phase = (typeof phases)[number]

/** Has an agent ask its model in vain until the time is over, and then be answered. */
const suffer = (story: PlanStory, agentId: AgentId, trouble: object, forMs: number): void => {
  for (;;) {
    const effect = pendingWork(story.state).find((one) => "agent_id" in one && one.agent_id === agentId)
    if (effect?._tag === "CallModel") break
    if (effect?._tag === "StartAgent") story.run({ _tag: "CompleteAgentInit", agent_id: agentId })
    else story.run({ _tag: "StartQueued", agent_id: agentId })
  }
  const overMs = story.nowMs + forMs
  while (story.nowMs < overMs) {
    story.request(agentId)
    story.run({ _tag: "FailModelCall", agent_id: agentId, error: failure("x"), provider: "openai", ...trouble })
    const retry = story.agentNamed(agentId)?.turn?.retry
    if (retry === undefined || retry === null) throw new Error("the turn is over")
    if (retry.waits_for_person === true) {
      story.nowMs = overMs
      story.run({ _tag: "ResumeGoal", plan_id: planId, reason: "seen to" })
    } else {
      story.nowMs = retry.due_ms
      story.run({ _tag: "RetryDue", agent_id: agentId })
    }
  }
  story.speak(agentId)
}

const metWith = (phase: Phase, trouble: object, forMs: number): PlanStory => {
  const story = new PlanStory()
  const turn = (at: Phase, agentId: AgentId) => {
    if (at === phase) suffer(story, agentId, trouble, forMs)
    else story.speak(agentId)
  }
  const plan = (at: Phase, id: string) => {
    turn(at, leadId)
    story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task(id)] } })
    story.approved().carry("BeginTask")
    const worker = story.plan.tasks[0]?.agent_id
    if (worker === null || worker === undefined) throw new Error("nobody works")
    if (id === "a") turn("work", worker)
    else story.speak(worker)
    story.carry("SettleTask").carry("Review")
  }
  story.goal().carry("Plan")
  plan("planning", "a")
  const critic = story.plan.critic_id
  if (critic === null) throw new Error("nobody reviews")
  turn("critic", critic)
  const findings = [{ severity: "error", category: "plan", title: "wrong" }] as const
  const step = { _tag: "NeedReplan", payload: { plan_id: planId, findings, verdict: "replan" } } as const
  story.run({ _tag: "AdvancePlan", plan_id: planId, step, say: { agent_id: leadId, content: "plan anew" } })
  plan("replan", "b")
  return story.judged("pass")
}

describe.each(phases)("during %s", (phase) => {
  describe.each([20_000, 600_000, 7_200_000])("for %s ms", (forMs) => {
    it.each(troubles)("%s costs nothing: the goal is met", (_name, trouble) => {
      const story = metWith(phase, trouble, forMs)
      expect(story.plan.status).toBe("goal_met")
      const kinds = story.runes.map(({ kind }) => kind)
      for (const lost of ["plan.task_failed", "plan.task_released", "turn.error", "plan.stopped"]) {
        expect(kinds).not.toContain(lost)
      }
      expect(kinds.filter((kind) => kind === "plan.task_completed")).toHaveLength(2)
      expect(kinds).toContain("turn.retry_started")
      expect(checkInvariants(story.runes)).toEqual([])
    })
  })
})
