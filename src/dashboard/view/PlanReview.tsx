// A plan that waits for a yes: every task with its instructions, what it depends on, and the exact commands with which the
// server itself will check that it is done.
import { signal, useSignal } from "@preact/signals"
import type { PlanItem } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"
import { mayOperate } from "../data/Connection.ts"
import { decidePlan, deciding, type InboxItem } from "../data/Inbox.ts"
import { evidenceText } from "../state/PlanLabels.ts"
import { Key } from "./Bits.tsx"
import { Exact } from "./Exact.tsx"
import { PlanGraph } from "./PlanGraph.tsx"

type TaskItem = PlanItem["tasks"][number]

/** The item whose plan is being sent back. */
const sendingBack = signal("")

export const planKey = (item: InboxItem, key: string): boolean => {
  if (key === "a") void decidePlan(item, "plan.approve")
  else if (key === "d") sendingBack.value = item.id
  else return false
  return true
}

const Task = ({ item: { task } }: { readonly item: TaskItem }) => (
  <li class="card stack" data-task={task.task_id}>
    <h3>
      {visible(task.title)} <span class="quiet mono">{visible(task.task_id)}</span>
    </h3>
    <Exact label={`instructions of ${task.task_id}`} text={task.instructions} />
    <dl class="facts">
      {task.depends_on.length === 0 ? null : (
        <>
          <dt>after</dt>
          <dd class="mono">{task.depends_on.map(visible).join(", ")}</dd>
        </>
      )}
      <dt>proof</dt>
      <dd class="stack tight">
        {(task.evidence ?? []).length === 0 ? <span class="warm">no proof: the critic decides alone</span> : null}
        {(task.evidence ?? []).map((spec, at) => (
          <code key={at} class="proof">
            {evidenceText(spec)}
          </code>
        ))}
      </dd>
    </dl>
  </li>
)

const SendBack = ({ item }: { readonly item: InboxItem }) => {
  const words = useSignal("")
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        void decidePlan(item, "plan.reject", words.value)
        sendingBack.value = ""
      }}
    >
      <label class="field">
        <span class="quiet">What should be different? The planner is told.</span>
        <textarea
          rows={3}
          value={words.value}
          data-send-back
          ref={(element) => {
            if (element !== null && !element.dataset["seen"]) {
              element.dataset["seen"] = "yes"
              element.focus()
            }
          }}
          onInput={(event) => {
            words.value = event.currentTarget.value
          }}
        />
      </label>
      <div class="actions">
        <button type="submit" class="danger" disabled={words.value.trim() === ""}>
          Send back
        </button>
        <button
          type="button"
          onClick={() => {
            sendingBack.value = ""
          }}
        >
          Cancel
        </button>
      </div>
    </form>
  )
}

const Actions = ({ item }: { readonly item: InboxItem }) => {
  if (!mayOperate()) return <p class="quiet">You may look, not decide: your role is viewer.</p>
  if (sendingBack.value === item.id) return <SendBack item={item} />
  const isBusy = deciding.value.has(item.id)
  return (
    <div class="actions decision">
      <button type="button" class="main" disabled={isBusy} onClick={() => void decidePlan(item, "plan.approve")}>
        Approve the plan <Key name="a" />
      </button>
      <button
        type="button"
        disabled={isBusy}
        onClick={() => {
          sendingBack.value = item.id
        }}
      >
        Send back <Key name="d" />
      </button>
      <button type="button" class="danger" disabled={isBusy} onClick={() => void decidePlan(item, "plan.cancel")}>
        Stop the goal
      </button>
    </div>
  )
}

export const PlanReview = ({ item, plan }: { readonly item: InboxItem; readonly plan: PlanItem }) => (
  <>
    <h1>{visible(plan.goal)}</h1>
    <p class="quiet">
      Plan {plan.revision} · {plan.tasks.length} tasks
      {plan.needs_approval === null ? "" : ` · ${plan.needs_approval}`}
    </p>
    <Actions item={item} />
    <PlanGraph tasks={plan.tasks} />
    <ol class="stack">
      {plan.tasks.map((one) => (
        <Task key={one.task.task_id} item={one} />
      ))}
    </ol>
  </>
)
