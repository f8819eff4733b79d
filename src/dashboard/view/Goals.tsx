// Goals: the board of what is pursued, and the form for a new one.
import { useEffect } from "preact/hooks"
import type { ConversationSummary, PlanItem } from "../../client/Client.ts"
import { mayOperate } from "../data/Connection.ts"
import { demoFailure, runDemo } from "../data/Demo.ts"
import { areGoalsLoaded, followGoals, goals, goalsFailure } from "../data/Goals.ts"
import { addressOf, route } from "../data/Route.ts"
import { money, plural } from "../state/Format.ts"
import { planTones } from "../state/PlanLabels.ts"
import { safeText } from "../state/Safe.ts"
import { Age, Banner, Chip } from "./Bits.tsx"
import { GoalForm } from "./GoalForm.tsx"

const columns: ReadonlyArray<readonly [string, ReadonlyArray<PlanItem["status"]>]> = [
  ["Planning", ["goal_received", "planning"]],
  ["Working", ["executing", "blocked"]],
  ["In review", ["reviewing"]],
  ["Done", ["goal_met", "stopped"]]
]

const isForPerson = ({ auto_start, needs_approval, proposed }: PlanItem): boolean =>
  proposed !== null && (needs_approval !== null || !auto_start)

const Progress = ({ plan }: { readonly plan: PlanItem }) => {
  const done = plan.tasks.filter(({ status }) => status === "completed").length
  if (plan.tasks.length === 0) return null
  return (
    <>
      <meter min={0} max={plan.tasks.length} value={done} aria-label="Tasks done" />
      <span class="quiet small">
        {done} of {plural(plan.tasks.length, "task")}
      </span>
    </>
  )
}

const Card = ({ summary }: { readonly summary: ConversationSummary & { readonly plan: PlanItem } }) => {
  const { plan } = summary
  const isWaiting = isForPerson(plan) && (plan.status === "planning" || plan.status === "goal_received")
  const href = isWaiting
    ? addressOf("inbox", `${summary.conversation_id}.plan`)
    : addressOf("conversation", summary.conversation_id)
  return (
    <li>
      <a class="card goal" href={href}>
        <span class="row">
          {isWaiting ? (
            <Chip tone="person" word="plan waits for you" />
          ) : (
            <Chip tone={planTones[plan.status]} word={plan.status.replaceAll("_", " ")} />
          )}
          <span class="grow" />
          <Age ms={plan.started_ms} />
        </span>
        <span class="goal-text">{safeText(plan.goal)}</span>
        <Progress plan={plan} />
        <span class="quiet small">
          {money(summary.cost_usd)}
          {plan.budget?.usd === undefined ? "" : ` of ${money(plan.budget.usd)}`}
          {plan.reason === null ? "" : ` · ${safeText(plan.reason)}`}
        </span>
      </a>
    </li>
  )
}

const Board = () => (
  <div class="board">
    {columns.map(([name, statuses]) => {
      const here = goals.value.filter(
        (one): one is ConversationSummary & { readonly plan: PlanItem } =>
          one.plan !== null && statuses.includes(one.plan.status)
      )
      return (
        <section key={name} aria-label={name}>
          <h2 class="quiet">
            {name} <span class="small">{here.length}</span>
          </h2>
          <ul class="stack">
            {here.map((summary) => (
              <Card key={summary.conversation_id} summary={summary} />
            ))}
          </ul>
        </section>
      )
    })}
  </div>
)

export const Goals = () => {
  useEffect(followGoals, [])
  if (route.value.id === "new" && mayOperate()) return <GoalForm />
  const isEmpty = areGoalsLoaded.value && goals.value.length === 0
  return (
    <section class="wide-pane" aria-label="Goals">
      <header class="pane-head">
        <h1 class="grow">Goals</h1>
        {mayOperate() ? (
          <a class="button" href={addressOf("goals", "new")}>
            New goal
          </a>
        ) : null}
      </header>
      {goalsFailure.value === "" ? null : <Banner tone="failure">{goalsFailure.value}</Banner>}
      <div class="pane-body padded">
        {isEmpty ? (
          <div class="empty">
            <h1>No goal yet</h1>
            <p>
              A goal is planned, worked on by agents side by side, reviewed by a critic, and proved by commands you have
              seen.
            </p>
            {mayOperate() ? (
              <button type="button" class="main" onClick={() => void runDemo()}>
                Run the demo goal
              </button>
            ) : null}
            {demoFailure.value === "" ? null : <Banner tone="failure">{demoFailure.value}</Banner>}
          </div>
        ) : (
          <Board />
        )}
      </div>
    </section>
  )
}
