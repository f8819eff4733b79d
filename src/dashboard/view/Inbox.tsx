// The inbox: what waits for a person, oldest first, and beside it everything there is to know about the one that is
// selected. Made for the keyboard first, and for a thumb.
import { computed, signal } from "@preact/signals"
import { mayOperate } from "../data/Connection.ts"
import {
  approvalOf,
  deciding,
  type InboxItem,
  inbox,
  isInboxLoaded,
  lastDecision,
  waitingCount
} from "../data/Inbox.ts"
import { askToNotify, canAskToNotify } from "../data/Notify.ts"
import { addressOf, go, route } from "../data/Route.ts"
import { callSummary, safeText } from "../state/Safe.ts"
import { Age, Banner } from "./Bits.tsx"
import { decisionKeys, InboxDetail } from "./InboxDetail.tsx"
import { isWelcome, Welcome } from "./Welcome.tsx"

const typeWords: Readonly<Record<InboxItem["type"], string>> = {
  approval: "approve",
  question: "question",
  plan: "plan",
  provider: "provider",
  suspended: "suspended",
  notice: "notice"
}

/** Where the selection was: moving on from an item that is gone goes to what took its place. */
const lastIndex = signal(0)

/** Nothing is selected by itself: a key that was meant for one item must not decide about another. */
const selected = computed<InboxItem | undefined>(() => {
  const { id, view } = route.value
  return view === "inbox" ? inbox.value.find((item) => item.id === id) : undefined
})

const select = (item: InboxItem | undefined): void => {
  if (item === undefined) return
  lastIndex.value = Math.max(0, inbox.value.indexOf(item))
  go(addressOf("inbox", item.id))
}

const move = (step: number): void => {
  const all = inbox.value
  const at = selected.value === undefined ? lastIndex.value - (step > 0 ? 1 : 0) : all.indexOf(selected.value)
  select(all[Math.max(0, Math.min(all.length - 1, at + step))])
}

/** Keys of the inbox; true where one was taken. */
export const inboxKey = (key: string): boolean => {
  if (key === "j" || key === "ArrowDown") move(1)
  else if (key === "k" || key === "ArrowUp") move(-1)
  else {
    const item = selected.value
    return item !== undefined && mayOperate() && decisionKeys(item, key)
  }
  return true
}

const wordsOf = (item: InboxItem): string => {
  const tool = approvalOf(item)?.tool_name
  if (tool === "ask_user") return typeWords.question
  return tool === undefined ? typeWords[item.type] : `${typeWords[item.type]} ${safeText(tool)}`
}

const Row = ({ item }: { readonly item: InboxItem }) => {
  const isCurrent = selected.value?.id === item.id
  const isBusy = deciding.value.has(item.id)
  const approval = approvalOf(item)
  return (
    <li>
      <a
        class="item"
        href={addressOf("inbox", item.id)}
        aria-current={isCurrent ? "true" : undefined}
        onClick={() => {
          lastIndex.value = inbox.value.indexOf(item)
        }}
      >
        <span class="row">
          <span class={item.type === "notice" ? "quiet small" : "warm small strong"}>
            {item.type === "notice" ? "·" : "?"} {wordsOf(item)}
          </span>
          <span class="grow" />
          {isBusy ? <span class="quiet small">sending</span> : <Age ms={item.since_ms} />}
        </span>
        {approval === undefined ? (
          <span class="cut strong">{safeText(item.title)}</span>
        ) : (
          <span class="cut mono">{callSummary(approval.arguments)}</span>
        )}
        <span class="cut quiet small">
          {safeText(
            [item.title_of_conversation ?? item.conversation_id, ...(approval?.agent_names ?? []).slice(-1)].join(" · ")
          )}
        </span>
      </a>
    </li>
  )
}

const Outcome = () => {
  const last = lastDecision.value
  return (
    <div aria-live="polite" class={last === undefined ? "" : "outcome"}>
      {last === undefined ? null : <Banner tone={last.isFailure ? "failure" : "success"}>{last.text}</Banner>}
    </div>
  )
}

export const Inbox = () => {
  if (!isInboxLoaded.value) return <div class="empty quiet">Loading what waits for you…</div>
  if (inbox.value.length === 0 && isWelcome.value) return <Welcome />
  const item = selected.value
  return (
    <div class={`two-pane ${item === undefined ? "" : "has-detail"}`}>
      <section class="list-pane" aria-label="Inbox">
        <header class="pane-head">
          <h1 class="grow">Inbox · {waitingCount.value} waiting</h1>
          {canAskToNotify.value ? (
            <button type="button" class="plain small" onClick={askToNotify}>
              Notify me
            </button>
          ) : null}
        </header>
        <div class="only-narrow">
          <Outcome />
        </div>
        <div class="pane-body">
          {inbox.value.length === 0 ? (
            <p class="empty quiet">Nothing waits for you.</p>
          ) : (
            <ul>
              {inbox.value.map((one) => (
                <Row key={one.id} item={one} />
              ))}
            </ul>
          )}
        </div>
      </section>
      <section class="detail-pane" aria-label="Decision">
        <div class="column">
          <div class="only-wide">
            <Outcome />
          </div>
          {item === undefined ? (
            <p class="quiet">
              {inbox.value.length === 0
                ? "New questions appear here by themselves."
                : "Select something that waits: j and k move, ? shows all keys."}
            </p>
          ) : (
            <InboxDetail key={item.id} item={item} />
          )}
        </div>
      </section>
    </div>
  )
}
