// The conversations: filtered, searched, selected. Only the rows in sight are in the document, so that a hundred thousand
// scroll like ten.
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import type { ConversationItem } from "../../client/Client.ts"
import { mayOperate } from "../data/Connection.ts"
import {
  bulkOutcome,
  conversations,
  filter,
  followList,
  isListLoaded,
  listFailure,
  loadMore,
  runOnSelected,
  selection,
  setFilter,
  toggleSelected
} from "../data/ConversationList.ts"
import { addressOf } from "../data/Route.ts"
import { money, plural, shortNumber } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"
import { Age, Banner, Chip, toneOfConversation } from "./Bits.tsx"

const rowPx = 56
const overscan = 8
const states = ["active", "paused", "suspended", "closed", "archived"] as const
const typingPauseMs = 200

const Row = ({ at, item }: { readonly item: ConversationItem; readonly at: number }) => {
  const [tone, word] = toneOfConversation(item.state, item.attention)
  const id = item.conversation_id
  return (
    <li class="conversation-row" style={{ top: `${at * rowPx}px` }}>
      {mayOperate() ? (
        <input
          type="checkbox"
          aria-label={`Select ${item.title || id}`}
          checked={selection.value.has(id)}
          onChange={() => toggleSelected(id)}
        />
      ) : null}
      <a href={addressOf("conversation", id)}>
        <span class="state">
          <Chip tone={tone} word={word} />
        </span>
        <span class="stack tight cut">
          <span class="title cut">{safeText(item.title) || id}</span>
          <span class="quiet small cut place">{safeText(item.workspace ?? "no directory")}</span>
        </span>
        <span class="labels cut">
          {Object.entries(item.labels).map(([key, value]) => (
            <span class="chip" key={key}>
              {safeText(`${key}=${value}`)}
            </span>
          ))}
        </span>
        <span class="quiet small cut model">
          {safeText(item.model)}
          {item.agents_alive > 1 ? ` · ${item.agents_alive} agents` : ""}
        </span>
        <span class="number quiet">{shortNumber(item.usage.input_tokens + item.usage.output_tokens)} tok</span>
        <span class="number quiet">{item.usage.usd === null ? "–" : money(item.usage.usd)}</span>
        <span class="number quiet turns">{plural(item.turns, "turn")}</span>
        <span class="number">
          <Age ms={item.updated_ms} />
        </span>
      </a>
    </li>
  )
}

const Filters = () => {
  const text = useSignal(filter.value.q)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  return (
    <div class="filters">
      <input
        type="search"
        aria-label="Search"
        placeholder="Search titles, labels, ids"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value
          clearTimeout(timer.current)
          timer.current = setTimeout(() => setFilter({ q: text.value.trim() }), typingPauseMs)
        }}
      />
      <select
        aria-label="State"
        value={filter.value.state}
        onChange={(event) => setFilter({ state: event.currentTarget.value })}
      >
        <option value="">every state</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {state}
          </option>
        ))}
      </select>
      <input
        aria-label="Label"
        placeholder="label, or key=value"
        value={filter.value.label}
        onChange={(event) => setFilter({ label: event.currentTarget.value.trim() })}
      />
    </div>
  )
}

const Bulk = () =>
  selection.value.size === 0 ? (
    bulkOutcome.value === "" ? null : (
      <p class="quiet" role="status">
        {bulkOutcome.value}
      </p>
    )
  ) : (
    <div class="actions">
      <span class="strong">{selection.value.size} selected</span>
      <button type="button" onClick={() => void runOnSelected("conversation.close")}>
        Close
      </button>
      <button type="button" onClick={() => void runOnSelected("conversation.archive")}>
        Archive
      </button>
    </div>
  )

export const Conversations = () => {
  const top = useSignal(0)
  const height = useSignal(800)
  const box = useRef<HTMLDivElement>(null)
  useEffect(followList, [])
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const watch = new ResizeObserver(() => {
      height.value = element.clientHeight
    })
    watch.observe(element)
    return () => watch.disconnect()
  }, [height])
  const all = conversations.value
  const first = Math.max(0, Math.floor(top.value / rowPx) - overscan)
  const last = Math.min(all.length, Math.ceil((top.value + height.value) / rowPx) + overscan)
  useEffect(() => {
    if (last >= all.length - overscan) loadMore()
  }, [last, all.length])
  return (
    <section class="wide-pane" aria-label="Conversations">
      <header class="pane-head wrap">
        <h1>Conversations</h1>
        <Filters />
        <Bulk />
      </header>
      {listFailure.value === "" ? null : <Banner tone="failure">{listFailure.value}</Banner>}
      {/* Scrolled with the keyboard too. */}
      <section
        class="pane-body"
        aria-label="List"
        tabIndex={0}
        ref={box}
        onScroll={(event) => {
          top.value = event.currentTarget.scrollTop
        }}
      >
        {isListLoaded.value && all.length === 0 ? <p class="empty quiet">No conversation fits.</p> : null}
        <ul class="rows" style={{ height: `${all.length * rowPx}px` }}>
          {all.slice(first, last).map((item, index) => (
            <Row key={item.conversation_id} item={item} at={first + index} />
          ))}
        </ul>
      </section>
    </section>
  )
}
