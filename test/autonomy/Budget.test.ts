// Goal: the budget of a goal holds however many workers spend it side by side: it is overshot by at most one call, also
// when the server stops in between and forgets what was reserved. Method: random runs of fifty workers over the real
// machine and the real reservation tree; and fifty workers in the real runtime.
// Verifies: INV-AGENT-BUDGET
import { describe, expect, it } from "vitest"
import { exhaustion } from "#src/machine/decide/Exhaustion.ts"
import { teamUse } from "#src/machine/view/PlanSummary.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { type Admission, Spending } from "#src/turn/Spending.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { useWorkspaces } from "../support/autonomy/workplace.ts"
import { reportCount } from "../support/counts.ts"
import { leadId, PlanStory, planId, task } from "../support/planStory.ts"
import { say, scenarios, use } from "../support/runtime/scenarios.ts"
import { useWorlds } from "../support/runtime/World.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { textItem } from "../support/story.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()
const workers = 50
const ids = Array.from({ length: workers }, (_, index) => `t${index}`)

/** Fifty workers, each in the middle of its turn. */
const team = (tokens: number): { readonly story: PlanStory; readonly agents: ReadonlyArray<AgentId> } => {
  const story = new PlanStory().goal({
    budget: { tokens },
    max_parallel: workers,
    options: { stop_on_budget: true }
  })
  story.run({
    _tag: "AdvancePlan",
    plan_id: planId,
    step: { _tag: "DecomposeGoal", payload: { plan_id: planId, attempt: 1 } },
    spawn: { agent_id: leadId, role: "orchestrator", model: "m", parent_id: story.root, budget: { tokens } },
    say: { agent_id: leadId, content: "plan" }
  })
  story.speak(leadId)
  story.step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: ids.map((id) => task(id)) } })
  story.approved()
  for (const _ of ids) story.carry("BeginTask")
  const agents = story.plan.tasks.map((one) => one.agent_id!)
  for (const agent_id of agents) {
    story.run({ _tag: "CompleteAgentInit", agent_id })
    story.run({ _tag: "StartQueued", agent_id })
  }
  return { story, agents }
}

interface Call {
  readonly agentId: AgentId
  readonly admission: Extract<Admission, { readonly _tag: "Reserved" }>
  readonly wanted: number
}

const spentBy = (story: PlanStory): number => {
  const { usage } = teamUse(story.state, story.plan)
  return usage.input_tokens + usage.output_tokens
}

/** One run: calls begin, end and are lost at random until the goal is stopped; returns the largest call that was made. */
const spendAll = (story: PlanStory, agents: ReadonlyArray<AgentId>, random: () => number) => {
  let spending = new Spending()
  let running: Array<Call> = []
  let largest = 0
  let restarts = 0
  const draw = (below: number): number => Math.floor(random() * below)
  const finish = ({ admission, agentId, wanted }: Call): void => {
    const used = draw(wanted + 1)
    largest = Math.max(largest, used)
    story.request(agentId)
    const usage = { input_tokens: used, output_tokens: 0 }
    story.run({ _tag: "ReceiveResponse", agent_id: agentId, items: [textItem("w")], usage })
    if (story.agentNamed(agentId)?.turn !== null) story.run({ _tag: "FinaliseResponse", agent_id: agentId })
    story.run({ _tag: "PostMessage", agent_id: agentId, content: "more", mode: "queue" })
    admission.release()
  }
  while (story.plan.status === "executing") {
    const act = draw(20)
    if (act === 0) {
      // The server stops: reservations are gone, and so are the calls they were for.
      spending = new Spending()
      running = []
      restarts += 1
    } else if (act < 8 && running.length > 0) {
      finish(running.splice(draw(running.length), 1)[0]!)
    } else {
      const idle = agents.filter((id) => !running.some((one) => one.agentId === id))
      const agentId = idle[draw(idle.length)]
      if (agentId === undefined) continue
      const wanted = 1 + draw(2_000)
      const amounts = { tokens: wanted, micro_usd: 0, tool_calls: 0 }
      const admission = spending.reserve(story.state, agentId, amounts, story.nowMs)
      if (admission._tag === "Reserved") running.push({ agentId, admission, wanted })
      else if (admission._tag === "Exhausted") story.run(exhaustion(story.state, agentId, admission))
      else if (running.length > 0) finish(running.splice(draw(running.length), 1)[0]!)
    }
  }
  return { largest, restarts }
}

describe("the budget of a goal", () => {
  it("is overshot by at most one call by fifty workers at once, restarts included", () => {
    const random = randomFrom(seedFor("fifty workers"))
    const runs = 20
    let restarts = 0
    for (let run = 0; run < runs; run++) {
      const limit = 5_000 + Math.floor(random() * 30_000)
      const { agents, story } = team(limit)
      const result = spendAll(story, agents, random)
      restarts += result.restarts
      expect(story.plan).toMatchObject({ status: "stopped", reason: "budget_exhausted" })
      expect(spentBy(story)).toBeGreaterThanOrEqual(limit)
      expect(spentBy(story)).toBeLessThanOrEqual(limit + result.largest)
      expect(story.plan.tasks.every((one) => story.agentNamed(one.agent_id!)?.status === "terminated")).toBe(true)
    }
    expect(restarts).toBeGreaterThan(0)
    reportCount("goals of fifty workers stopped at their budget", runs)
  }, 60_000)

  it("holds in the runtime: fifty workers start, and one call more than fits is all that is made", async () => {
    const cost = 30_000
    const limit = 400_000
    const plan = {
      tasks: ids.map((id) => ({ id, title: id, instructions: id, evidence: [{ type: "file", path: `${id}.txt` }] }))
    }
    const costly = scenarios({
      costly: [
        {
          when: { role: "orchestrator" },
          play: [use("submit_plan", plan), { usage: { input_tokens: 10, output_tokens: 0 } }]
        },
        { when: { role: "worker" }, play: [say("hm"), { usage: { input_tokens: cost, output_tokens: 0 } }] }
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: costly }))
    const goal = await submitGoal(world, {
      model: "scripted/costly",
      workspace: workspaces.make(),
      max_parallel: workers,
      budget: { tokens: limit },
      options: { stop_on_budget: true }
    })
    expect((await goalEnd(goal)).payload).toMatchObject({ reason: "budget_exhausted" })
    expect(goal.talk.of("plan.task_started").length).toBeGreaterThanOrEqual(workers)
    const { usage } = await goal.talk.state()
    expect(usage.input_tokens).toBeGreaterThanOrEqual(limit)
    expect(usage.input_tokens).toBeLessThanOrEqual(limit + cost)
  })
})
