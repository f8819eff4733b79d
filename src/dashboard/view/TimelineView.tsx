// The timeline: a lane for each agent, model, tools and waiting in colors and patterns of their own; and the slider that
// moves everything to any rune.
import { useSignal } from "@preact/signals"
import type { ConversationFeed } from "../data/ConversationFeed.ts"
import { addressOf, go, replace } from "../data/Route.ts"
import { duration, exactClock } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"
import { type Span, type SpanKind, scaleOf, timelineOf } from "../state/Timeline.ts"

const words: Readonly<Record<SpanKind, string>> = {
  model: "model",
  tool: "tool",
  person: "waiting for a person",
  retry: "waiting for the provider"
}

const zooms = [1, 2, 5, 20, 100, 1000] as const
const percent = 100
const scrubPauseMs = 120

const Lane = ({
  id,
  place,
  spans,
  toMs
}: {
  readonly id: string
  readonly place: (ms: number) => number
  readonly spans: ReadonlyArray<Span>
  readonly toMs: number
}) => (
  <div class="lane-track">
    {spans.map((span) => {
      const end = span.toMs ?? toMs
      const [left, right] = [place(span.fromMs), place(end)]
      const style = { left: `${left * percent}%`, width: `${(right - left) * percent}%` }
      const label = `${words[span.kind]} ${safeText(span.label)}, ${duration(end - span.fromMs)}, rune ${span.eventId}`
      return (
        <a
          key={span.eventId}
          class={`span ${span.kind}`}
          style={style}
          href={addressOf("conversation", id, span.eventId)}
          title={label}
        >
          <span class="sr">{label}</span>
        </a>
      )
    })}
  </div>
)

let scrubTimer: ReturnType<typeof setTimeout> | undefined

const Slider = ({ feed }: { readonly feed: ConversationFeed }) => {
  const head = feed.head.value
  const moving = useSignal<number | undefined>(undefined)
  const at = moving.value ?? feed.at ?? head
  return (
    <label class="row scrub">
      <span class="quiet small nowrap">
        rune {at} of {head}
      </span>
      <input
        type="range"
        class="grow"
        aria-label="Moment"
        min={1}
        max={Math.max(1, head)}
        value={at}
        data-scrub
        onInput={(event) => {
          const next = Number(event.currentTarget.value)
          moving.value = next
          clearTimeout(scrubTimer)
          scrubTimer = setTimeout(() => {
            moving.value = undefined
            const address = addressOf("conversation", feed.id, next >= head ? undefined : next)
            if (feed.at === undefined) go(address)
            else replace(address)
          }, scrubPauseMs)
        }}
      />
    </label>
  )
}

const Lanes = ({
  feed,
  names,
  scale
}: {
  readonly feed: ConversationFeed
  readonly names: ReadonlyMap<string, string>
  readonly scale: number
}) => {
  // The version is read so that the lanes follow the transcript.
  void feed.drawing.value
  const timeline = timelineOf(feed.transcript.runes, feed.at === undefined ? Date.now() : 0)
  const { fromMs, lanes, toMs } = timeline
  const place = scaleOf(timeline)
  return (
    <>
      {/* Scrolled sideways with the keyboard too. */}
      <section class="lanes" tabIndex={0} aria-label="Lanes">
        <div style={{ width: `${scale * percent}%` }}>
          {lanes.map(({ agentId, spans }) => (
            <div class="lane" key={agentId}>
              <span class="lane-name cut quiet small">{safeText(names.get(agentId) ?? "goal")}</span>
              <Lane spans={spans} place={place} toMs={toMs} id={feed.id} />
            </div>
          ))}
        </div>
      </section>
      <p class="row quiet small">
        <span>{exactClock(fromMs)}</span>
        <span class="legend grow">
          <i class="span model" /> model <i class="span tool" /> tool <i class="span person" /> waiting for a person{" "}
          <i class="span retry" /> waiting for the provider; long pauses are shortened
        </span>
        <span>{exactClock(toMs)}</span>
      </p>
    </>
  )
}

export const TimelineView = ({
  feed,
  names
}: {
  readonly feed: ConversationFeed
  readonly names: ReadonlyMap<string, string>
}) => {
  const zoom = useSignal(0)
  const isOpen = useSignal(true)
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="row">
        <button
          type="button"
          class="plain small"
          aria-expanded={isOpen.value}
          onClick={() => {
            isOpen.value = !isOpen.value
          }}
        >
          {isOpen.value ? "▾" : "▸"} Timeline
        </button>
        <Slider feed={feed} />
        <button
          type="button"
          class="plain"
          aria-label="Zoom out"
          disabled={zoom.value === 0}
          onClick={() => (zoom.value -= 1)}
        >
          −
        </button>
        <button
          type="button"
          class="plain"
          aria-label="Zoom in"
          disabled={zoom.value >= zooms.length - 1}
          onClick={() => (zoom.value += 1)}
        >
          +
        </button>
      </div>
      {isOpen.value ? <Lanes feed={feed} names={names} scale={zooms[zoom.value] ?? 1} /> : null}
    </section>
  )
}
