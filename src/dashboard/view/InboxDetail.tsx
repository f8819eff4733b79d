// One thing that waits, whole, with everything that can be answered to it.
import { useEffect } from "preact/hooks"
import { visible } from "../../present/VisibleText.ts"
import { mayOperate } from "../data/Connection.ts"
import { approvalOf, type InboxItem, loadSummary, retryTurn, summaries, unsuspend } from "../data/Inbox.ts"
import { addressOf } from "../data/Route.ts"
import { Age } from "./Bits.tsx"
import { ApprovalActions, approvalKey, QuestionActions } from "./DecisionActions.tsx"
import { DecisionFacts } from "./DecisionFacts.tsx"
import { PlanReview, planKey } from "./PlanReview.tsx"

/** Keys that answer the item; true where one was taken. */
export const decisionKeys = (item: InboxItem, key: string): boolean => {
  if (item.type === "approval" || item.type === "question") return approvalKey(item, key)
  return item.type === "plan" ? planKey(item, key) : false
}

const Origin = ({ item }: { readonly item: InboxItem }) => {
  const names = approvalOf(item)?.agent_names ?? []
  return (
    <p class="quiet row wrap">
      <a class="only-narrow button" href={addressOf("inbox")}>
        ‹ Inbox
      </a>
      <a href={addressOf("conversation", item.conversation_id, undefined)}>
        {item.title_of_conversation ?? item.conversation_id}
      </a>
      {names.length === 0 ? null : <span>{names.map(visible).join(" › ")}</span>}
      <Age ms={item.since_ms} />
      <a class="small" href={addressOf("conversation", item.conversation_id, item.event_id)}>
        rune {item.event_id}
      </a>
    </p>
  )
}

const Approval = ({ item }: { readonly item: InboxItem }) => {
  const approval = approvalOf(item)
  if (approval === undefined) return <p class="quiet">Loading what exactly would run…</p>
  return (
    <>
      <DecisionFacts approval={approval} />
      {mayOperate() ? (
        approval.tool_name === "ask_user" ? (
          <QuestionActions item={item} approval={approval} />
        ) : (
          <ApprovalActions item={item} approval={approval} />
        )
      ) : (
        <p class="quiet">You may look, not decide: your role is viewer.</p>
      )}
    </>
  )
}

const Plan = ({ item }: { readonly item: InboxItem }) => {
  useEffect(() => void loadSummary(item.conversation_id), [item.conversation_id, item.event_id])
  const plan = summaries.value.get(item.conversation_id)?.plan
  return plan === undefined || plan === null ? (
    <p class="quiet">Loading the plan…</p>
  ) : (
    <PlanReview item={item} plan={plan} />
  )
}

const Other = ({ item }: { readonly item: InboxItem }) => {
  if (!mayOperate()) return null
  if (item.type === "provider")
    return (
      <div class="actions decision">
        <button type="button" class="main" onClick={() => void retryTurn(item)}>
          Try again now
        </button>
        <a class="button" href={addressOf("conversation", item.conversation_id)}>
          Open the conversation
        </a>
      </div>
    )
  if (item.type === "suspended")
    return (
      <div class="actions decision">
        <button type="button" class="main" onClick={() => void unsuspend(item)}>
          Continue
        </button>
        <a class="button" href={addressOf("conversation", item.conversation_id)}>
          Open the conversation
        </a>
      </div>
    )
  return null
}

export const InboxDetail = ({ item }: { readonly item: InboxItem }) => (
  <article class="column" data-item={item.call_id ?? item.type}>
    <Origin item={item} />
    {item.type === "approval" || item.type === "question" ? (
      <Approval item={item} />
    ) : item.type === "plan" ? (
      <Plan item={item} />
    ) : (
      <>
        <h1>{item.title}</h1>
        <Other item={item} />
      </>
    )}
  </article>
)
