// The transcript as people read it: newest at the bottom, earlier pages on demand, following what comes for as long as the
// reader stays at the end.
import { useSignal } from "@preact/signals"
import { memo } from "preact/compat"
import { useLayoutEffect, useRef } from "preact/hooks"
import type { ConversationFeed } from "../data/ConversationFeed.ts"
import { addressOf } from "../data/Route.ts"
import { exactClock } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"
import type { AnswerEntry, Entry, InputEntry, NoteEntry } from "../state/Transcript.ts"
import { MarkdownView, PlainText } from "./MarkdownView.tsx"
import { ToolRow } from "./ToolRow.tsx"
import { Images } from "./WholeOutput.tsx"

/** Entries in the document at once. */
const shownMax = 300
const nearEndPx = 80

const Answer = ({ entry }: { readonly entry: AnswerEntry }) => (
  <>
    {entry.reasoning === "" ? null : (
      <details class="thinking">
        <summary class="quiet small">thinking</summary>
        <PlainText label="thinking" text={entry.reasoning} />
      </details>
    )}
    {entry.text === "" ? null : <MarkdownView text={entry.text} />}
    {entry.isStreaming ? <span class="caret pulse" aria-hidden="true" /> : null}
  </>
)

const Input = ({ entry }: { readonly entry: InputEntry }) => (
  <div class={entry.from === "" ? "task-input" : "said"}>
    <MarkdownView text={entry.text} />
    <Images blobs={entry.images} />
    {entry.isWaiting ? <p class="quiet small">queued</p> : null}
  </div>
)

const NoteLine = ({ entry }: { readonly entry: NoteEntry }) => (
  <p class={`note small ${entry.tone}`}>{safeText(entry.text)}</p>
)

interface RowProps {
  readonly entry: Entry
  readonly who: string
  readonly conversationId: string
}

const Row = memo(({ conversationId, entry, who }: RowProps) => (
  <li class={`entry ${entry.type}`} data-event={entry.eventId}>
    <span class="who">
      <span class="cut">{who}</span>
      <a
        class="stamp small quiet"
        href={addressOf("conversation", conversationId, entry.eventId)}
        title={`rune ${entry.eventId}`}
      >
        {exactClock(entry.tsMs).slice(0, 8)}
      </a>
    </span>
    <div class="what">
      {entry.type === "answer" ? (
        <Answer entry={entry} />
      ) : entry.type === "input" ? (
        <Input entry={entry} />
      ) : entry.type === "tool" ? (
        <ToolRow entry={entry} conversationId={conversationId} />
      ) : (
        <NoteLine entry={entry} />
      )}
    </div>
  </li>
))

const whoOf = (entry: Entry, names: ReadonlyMap<string, string>): string => {
  if (entry.type === "input" && entry.from !== "") return safeText(names.get(entry.from) ?? entry.from)
  const name = safeText(names.get(entry.agentId) ?? "")
  return entry.type === "input" && name !== "" ? `→ ${name}` : name
}

export const TranscriptView = ({
  feed,
  names
}: {
  readonly feed: ConversationFeed
  readonly names: ReadonlyMap<string, string>
}) => {
  const box = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLOListElement>(null)
  const isAtEnd = useRef(true)
  const shown = useSignal(shownMax)
  const version = feed.version.value
  useLayoutEffect(() => {
    const element = box.current
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight
  }, [version])
  // Entries take their real height only once they are in sight.
  useLayoutEffect(() => {
    const [element, inside] = [box.current, list.current]
    if (element === null || inside === null) return
    const watch = new ResizeObserver(() => {
      if (isAtEnd.current) element.scrollTop = element.scrollHeight
    })
    watch.observe(inside)
    return () => watch.disconnect()
  }, [])
  const { entries } = feed.transcript
  const visible = entries.slice(-shown.value)
  const earlier = async (): Promise<void> => {
    const element = box.current
    const height = element?.scrollHeight ?? 0
    shown.value += shownMax
    if (entries.length <= shown.value) await feed.loadEarlier()
    requestAnimationFrame(() => {
      if (element !== null) element.scrollTop += element.scrollHeight - height
    })
  }
  return (
    // Scrolled with the keyboard too.
    <section
      class="transcript"
      ref={box}
      aria-label="Transcript"
      tabIndex={0}
      onScroll={(event) => {
        const { clientHeight, scrollHeight, scrollTop } = event.currentTarget
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < nearEndPx
      }}
    >
      {feed.from.value > 1 || entries.length > visible.length ? (
        <button type="button" class="plain small earlier" onClick={() => void earlier()}>
          Load earlier
        </button>
      ) : null}
      <ol ref={list}>
        {visible.map((entry) => (
          <Row key={entry.key} entry={entry} who={whoOf(entry, names)} conversationId={feed.id} />
        ))}
      </ol>
      {version === 0 && feed.failure.value === "" ? <p class="quiet">Loading…</p> : null}
    </section>
  )
}
