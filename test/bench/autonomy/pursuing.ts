// A plan of many tasks in the real runtime: log on disk, agents spawned and ended, scripted models that answer at once. What
// the plan costs is seen beside the same number of agents that are spawned, asked once and ended without any plan.
import { join } from "node:path"
import { secureIdSource } from "#src/rune/IdSource.ts"
import { type AgentId, type ConversationId, makeAgentId, makePlanId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import type { Row } from "../Bench.ts"
import { aimedRow, comparedRow } from "../runelog/rows.ts"
import { median } from "../runelog/sampling.ts"
import { BenchRuntime } from "../runtime/openRuntime.ts"
import { usedHeapBytes } from "../runtime/usedHeap.ts"
import { makeTasks } from "./plans.ts"
import { parallel, type Settings } from "./settings.ts"

const replies = [
  { when: { role: "orchestrator" }, play: [{ text: "I wait." }, { stall: true }] },
  { when: { role: "critic" }, play: [{ tool: "submit_review", arguments: { verdict: "pass" } }] },
  { play: [{ text: "Done." }] }
]
const scenarios = { bench: { name: "bench", replies } }
const model = "scripted/bench"
const ids = secureIdSource()

/** Counts runes and tells when there are enough of a kind. */
class Tally {
  runes = 0
  private readonly counts = new Map<string, number>()
  private readonly waiting = new Map<string, { readonly count: number; readonly resolve: () => void }>()

  readonly note = (runes: ReadonlyArray<AnyRune>): void => {
    this.runes += runes.length
    for (const { kind } of runes) {
      const count = (this.counts.get(kind) ?? 0) + 1
      this.counts.set(kind, count)
      const waiter = this.waiting.get(kind)
      if (waiter !== undefined && count >= waiter.count) waiter.resolve()
    }
  }

  until(kind: string, count: number): Promise<void> {
    if ((this.counts.get(kind) ?? 0) >= count) return Promise.resolve()
    return new Promise((resolve) => this.waiting.set(kind, { count, resolve }))
  }
}

interface Sample {
  readonly goalMs: number
  readonly bareMs: number
  readonly runes: number
  readonly heapBytes: number
}

const pursueGoal = async (runtime: BenchRuntime, tally: Tally, tasks: number): Promise<number> => {
  const id = await runtime.create(model)
  const plan_id = makePlanId(ids)
  const payload = { plan_id, goal: "the work", auto_start: true, max_parallel: parallel }
  await runtime.conversations.submit(id, { _tag: "SubmitGoal", payload })
  await tally.until("plan.planning_started", 1)
  const startedMs = performance.now()
  const created = { plan_id, tasks: makeTasks(tasks) }
  await runtime.conversations.submit(id, {
    _tag: "AdvancePlan",
    plan_id,
    step: { _tag: "CreatePlan", payload: created }
  })
  await tally.until("plan.task_completed", tasks)
  const endedMs = performance.now()
  // Its tasks have no evidence, so that nothing but the plan is measured; it is not to be met.
  await tally.until("plan.review_started", 1)
  return endedMs - startedMs
}

/** One agent: spawned, asked once, ended. */
const bareAgent = async (runtime: BenchRuntime, id: ConversationId, nth: number): Promise<void> => {
  const agent_id: AgentId = makeAgentId(ids)
  await runtime.conversations.submit(id, { _tag: "SpawnAgent", spec: { agent_id, role: "worker", model } })
  await runtime.conversations.submit(id, { _tag: "PostMessage", agent_id, content: `task ${nth}`, mode: "queue" })
  for (;;) {
    const agent = (await runtime.conversations.state(id)).agents.find((one) => one.agent_id === agent_id)
    if (agent === undefined || (agent.turns > 0 && agent.turn === null)) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  await runtime.conversations.submit(id, { _tag: "KillAgent", agent_id, reason: "done", force: true })
}

const runBare = async (runtime: BenchRuntime, tasks: number): Promise<number> => {
  const id = await runtime.create(model)
  const todo = Array.from({ length: tasks }, (_, index) => index).values()
  const startedMs = performance.now()
  const lane = async (): Promise<void> => {
    for (const nth of todo) await bareAgent(runtime, id, nth)
  }
  await Promise.all(Array.from({ length: parallel }, lane))
  return performance.now() - startedMs
}

const sample = async (directory: string, tasks: number): Promise<Sample> => {
  const tally = new Tally()
  const runtime = await BenchRuntime.open(directory, { scenarios, onRunes: tally.note })
  try {
    const heapBefore = await usedHeapBytes()
    const before = tally.runes
    const goalMs = await pursueGoal(runtime, tally, tasks)
    const runes = tally.runes - before
    const heapBytes = (await usedHeapBytes()) - heapBefore
    return { goalMs, runes, heapBytes, bareMs: await runBare(runtime, tasks) }
  } finally {
    await runtime.close()
  }
}

const middle = (values: ReadonlyArray<number>): number => median(values.toSorted((a, b) => a - b))

export const pursuingRows = async (directory: string, { rounds, tasks }: Settings): Promise<ReadonlyArray<Row>> => {
  const samples: Array<Sample> = []
  for (let round = 0; round < rounds; round++) samples.push(await sample(join(directory, `goal-${round}`), tasks))
  const of = (pick: (one: Sample) => number): number => middle(samples.map(pick))
  const bare: Row = { name: "a bare agent: spawned, asked, ended", value: of((one) => one.bareMs / tasks), unit: "ms" }
  const goal: Row = { name: `a task of a plan of ${tasks}`, value: of((one) => one.goalMs / tasks), unit: "ms" }
  const heap = {
    name: `heap after a plan of ${tasks}, per task`,
    value: of((one) => one.heapBytes / tasks / 1024),
    unit: "KiB"
  }
  return [
    bare,
    comparedRow(goal, bare, { atMost: 3 }),
    aimedRow(
      { name: "scheduling overhead per task", value: of((one) => (one.goalMs - one.bareMs) / tasks), unit: "ms" },
      { atMost: 10 }
    ),
    { name: "runes per task", value: of((one) => one.runes / tasks), unit: "runes" },
    aimedRow(heap, { atMost: 16 })
  ]
}
