// Everything that waits for a person, with what has to be known to decide about it. The list follows the server's own
// list; a decision is sent once, whatever happens to the connection, and its outcome is the server's word.
import { computed, signal } from "@preact/signals"
import type { ApprovalItem, AttentionItem, Client, ConversationSummary } from "../../client/Client.ts"
import { client, failureCode, failureText, lastHeardMs } from "./Connection.ts"

export interface InboxItem extends AttentionItem {
  /** Its address in the page. */
  readonly id: string
}

export const itemId = ({ conversation_id, key }: AttentionItem): string => `${conversation_id}.${key}`

const items = signal<ReadonlyMap<string, InboxItem>>(new Map())
export const isInboxLoaded = signal(false)
/** Details of questions, by conversation and call. */
export const approvals = signal<ReadonlyMap<string, ApprovalItem>>(new Map())
export const summaries = signal<ReadonlyMap<string, ConversationSummary>>(new Map())
/** What the last decision came to, for whoever made it. */
export const lastDecision = signal<{ readonly text: string; readonly isFailure: boolean } | undefined>(undefined)
/** Items that a decision of this page is under way for. */
export const deciding = signal<ReadonlySet<string>>(new Set())

/** Notices are for information; everything else waits. */
export const inbox = computed<ReadonlyArray<InboxItem>>(() =>
  [...items.value.values()].sort(
    (one, other) =>
      Number(one.type === "notice") - Number(other.type === "notice") || (one.since_ms ?? 0) - (other.since_ms ?? 0)
  )
)

export const waitingCount = computed(() => inbox.value.filter(({ type }) => type !== "notice").length)

export const approvalOf = ({ call_id, conversation_id }: AttentionItem): ApprovalItem | undefined =>
  approvals.value.get(`${conversation_id} ${call_id}`)

/** The address of the item that a call waits as. */
export const idOfCall = (conversationId: string, callId: string): string =>
  inbox.value.find((item) => item.conversation_id === conversationId && item.call_id === callId)?.id ?? ""

const onRaised = new Set<(item: InboxItem) => void>()

export const whenRaised = (listener: (item: InboxItem) => void): void => void onRaised.add(listener)

const put = (changed: ReadonlyArray<AttentionItem>, isWhole: boolean): void => {
  const next = new Map(isWhole ? [] : items.value)
  for (const item of changed) next.set(itemId(item), { ...item, id: itemId(item) })
  items.value = next
}

const remove = (item: AttentionItem): void => {
  const next = new Map(items.value)
  next.delete(itemId(item))
  items.value = next
}

const loadDetails = async (conversationId?: string): Promise<void> => {
  const field = conversationId === undefined ? {} : { conversation_id: conversationId }
  const { items: found } = await client().call("approval.list", field)
  const kept = [...approvals.value].filter(
    ([, one]) => conversationId !== undefined && one.conversation_id !== conversationId
  )
  approvals.value = new Map([...kept, ...found.map((one) => [`${one.conversation_id} ${one.call_id}`, one] as const)])
}

export const loadSummary = async (conversationId: string): Promise<void> => {
  const summary = await client().call("conversation.get", { conversation_id: conversationId })
  const kept = [...summaries.value].filter(([id]) => id !== conversationId).slice(-50)
  summaries.value = new Map([...kept, [conversationId, summary]])
}

const isQuestion = ({ type }: AttentionItem): boolean => type === "approval" || type === "question"

/** Follows the list for as long as the page lives. */
export const followInbox = async (from: Client): Promise<void> => {
  for await (const update of from.attention()) {
    lastHeardMs.value = Date.now()
    if ("items" in update) {
      put(update.items, true)
      isInboxLoaded.value = true
      void loadDetails().catch(failureText)
      continue
    }
    const { change, ...item } = update.changed
    if (change === "resolved") {
      remove(item)
      continue
    }
    put([item], false)
    if (isQuestion(item)) void loadDetails(item.conversation_id).catch(failureText)
    if (change === "raised") for (const listener of onRaised) listener({ ...item, id: itemId(item) })
  }
}

/** One decision at a time for an item; what the server says is what happened. */
const decide = async (item: InboxItem, done: string, run: () => Promise<unknown>): Promise<boolean> => {
  if (deciding.value.has(item.id)) return false
  deciding.value = new Set([...deciding.value, item.id])
  try {
    await run()
    lastDecision.value = { text: done, isFailure: false }
    return true
  } catch (error) {
    const isLate = failureCode(error) === "already_decided"
    lastDecision.value = {
      text: isLate ? `Decided elsewhere: ${failureText(error)}` : failureText(error),
      isFailure: true
    }
    return false
  } finally {
    deciding.value = new Set([...deciding.value].filter((id) => id !== item.id))
  }
}

export type Scope = "once" | "session" | "rule"

const scopeWords: Readonly<Record<Scope, string>> = {
  once: "Allowed once",
  session: "Allowed for this conversation",
  rule: "Allowed by a new rule"
}

export const approve = (
  item: InboxItem,
  scope: Scope,
  edited?: { readonly arguments: unknown; readonly done: string }
): Promise<boolean> => {
  const approval = approvalOf(item)
  if (approval === undefined) return Promise.resolve(false)
  const { arguments_hash, call_id, conversation_id, tool_name } = approval
  return decide(item, `${edited?.done ?? scopeWords[scope]}: ${tool_name}`, () =>
    client().call("approval.approve", {
      conversation_id,
      call_id,
      scope,
      arguments_hash,
      ...(edited === undefined ? {} : { arguments: edited.arguments })
    })
  )
}

export const deny = (item: InboxItem, reason?: string): Promise<boolean> => {
  const { call_id, conversation_id } = item
  if (call_id === null) return Promise.resolve(false)
  const why = reason === undefined || reason.trim() === "" ? {} : { reason }
  return decide(item, `Denied: ${approvalOf(item)?.tool_name ?? item.title}`, () =>
    client().call("approval.deny", { conversation_id, call_id, ...why })
  )
}

export const answerQuestion = (item: InboxItem, text: string): Promise<boolean> => {
  const approval = approvalOf(item)
  const given = (approval?.arguments ?? {}) as object
  return approve(item, "once", { arguments: { ...given, answer: text }, done: "Answered" })
}

type PlanVerb = "plan.approve" | "plan.reject" | "plan.cancel"
const planWords: Readonly<Record<PlanVerb, string>> = {
  "plan.approve": "Plan approved",
  "plan.reject": "Plan sent back",
  "plan.cancel": "Goal stopped"
}

export const decidePlan = (item: InboxItem, verb: PlanVerb, reason?: string): Promise<boolean> => {
  const { conversation_id } = item
  const plan = summaries.value.get(conversation_id)?.plan
  if (plan === null || plan === undefined) return Promise.resolve(false)
  const why = reason === undefined ? {} : { reason }
  const of = verb === "plan.cancel" || plan.revision < 1 ? {} : { revision: plan.revision }
  return decide(item, planWords[verb], () =>
    client().call(verb, { conversation_id, plan_id: plan.plan_id, ...why, ...of })
  )
}

export const retryTurn = (item: InboxItem): Promise<boolean> => {
  const agent = item.agent_id === null ? {} : { agent_id: item.agent_id }
  return decide(item, "Trying again", () =>
    client().call("turn.retry", { conversation_id: item.conversation_id, ...agent })
  )
}

export const unsuspend = (item: InboxItem): Promise<boolean> =>
  decide(item, "Continued", () => client().call("conversation.unsuspend", { conversation_id: item.conversation_id }))
