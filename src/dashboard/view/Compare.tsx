// Two moments of a conversation beside each other: what of its state, its agents and its plan changed in between.
import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { client, failureText } from "../data/Connection.ts"
import type { ConversationFeed } from "../data/ConversationFeed.ts"
import { addressOf } from "../data/Route.ts"
import { type Change, changesBetween } from "../state/Compare.ts"
import { plural } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"

const EventField = ({
  label,
  max,
  onPick,
  value
}: {
  readonly label: string
  readonly max: number
  readonly value: number
  readonly onPick: (event: number) => void
}) => (
  <label class="field grow">
    <span class="quiet small">{label}</span>
    <input
      type="number"
      min={1}
      max={max}
      value={value}
      onChange={(event) => onPick(Math.max(1, Math.min(max, Math.round(event.currentTarget.valueAsNumber) || 1)))}
    />
  </label>
)

export const Compare = ({ feed }: { readonly feed: ConversationFeed }) => {
  const head = feed.head.value
  const from = useSignal(feed.at === undefined ? Math.max(1, Math.floor(head / 2)) : feed.at)
  const to = useSignal(head)
  const changes = useSignal<ReadonlyArray<Change> | undefined>(undefined)
  const failure = useSignal("")
  useEffect(() => {
    let isCurrent = true
    const at = (at_event_id: number) => client().call("conversation.get", { conversation_id: feed.id, at_event_id })
    Promise.all([at(from.value), at(to.value)]).then(
      ([before, after]) => {
        if (isCurrent) changes.value = changesBetween(before, after)
      },
      (error: unknown) => {
        failure.value = failureText(error)
      }
    )
    return () => {
      isCurrent = false
    }
  }, [feed.id, from.value, to.value])
  return (
    <>
      <div class="row">
        <EventField
          label="From rune"
          max={head}
          value={from.value}
          onPick={(event) => {
            from.value = event
          }}
        />
        <EventField
          label="To rune"
          max={head}
          value={to.value}
          onPick={(event) => {
            to.value = event
          }}
        />
      </div>
      <p class="quiet small">
        <a href={addressOf("conversation", feed.id, from.value)}>rune {from.value}</a> to{" "}
        <a href={addressOf("conversation", feed.id, to.value)}>rune {to.value}</a>,{" "}
        {plural(Math.abs(to.value - from.value), "rune")} apart
      </p>
      {failure.value === "" ? null : <p class="bad">{failure.value}</p>}
      {changes.value?.length === 0 ? <p>Nothing that is summed up changed.</p> : null}
      <dl class="changes" data-changes>
        {changes.value?.map(({ after, before, what }) => (
          <div key={what}>
            <dt class="quiet small">{safeText(what)}</dt>
            <dd>
              {before === "" ? null : <del>{safeText(before)}</del>}{" "}
              {after === "" ? null : <ins>{safeText(after)}</ins>}
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}
