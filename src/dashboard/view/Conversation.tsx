// One conversation: its transcript, its agents, plan and budget beside it, its timeline below; now, or at any moment of
// its past.
import { computed, effect, signal, useSignal } from "@preact/signals"
import type { ConversationSummary } from "../../client/Client.ts"
import { client, failureText, mayOperate } from "../data/Connection.ts"
import { ConversationFeed } from "../data/ConversationFeed.ts"
import { addressOf, go, route } from "../data/Route.ts"
import { clock, money, shortNumber } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"
import { Banner, Chip, toneOfConversation } from "./Bits.tsx"
import { Composer } from "./Composer.tsx"
import { type PanelName, panels, SidePanel } from "./SidePanel.tsx"
import { TimelineView } from "./TimelineView.tsx"
import { TranscriptView } from "./TranscriptView.tsx"

const wanted = computed(() => {
  const { at, id, view } = route.value
  return view === "conversation" ? `${id} ${at ?? ""}` : ""
})

const feed = signal<ConversationFeed | undefined>(undefined)

/** Follows the conversation that the address names, and no other. */
export const followConversation = (): void => {
  effect(() => {
    const key = wanted.value
    const opened = key === "" ? undefined : new ConversationFeed(route.peek().id, route.peek().at)
    feed.value = opened
    return () => opened?.close()
  })
}

const namesOf = ({ agents }: ConversationSummary): ReadonlyMap<string, string> =>
  new Map(agents.map(({ agent_id: id, name, role }) => [id, name ?? role]))

type StateVerb = "pause" | "resume" | "unsuspend" | "close" | "archive" | "restore"

const verbsOf = ({ state }: ConversationSummary): ReadonlyArray<readonly [StateVerb, string]> => {
  switch (state) {
    case "active":
      return [
        ["pause", "Pause"],
        ["close", "Close"]
      ]
    case "paused":
      return [
        ["resume", "Resume"],
        ["close", "Close"]
      ]
    case "suspended":
      return [
        ["unsuspend", "Continue"],
        ["close", "Close"]
      ]
    case "closed":
      return [["archive", "Archive"]]
    case "archived":
      return [["restore", "Restore"]]
    default:
      return []
  }
}

const Controls = ({
  onFailure,
  summary
}: {
  readonly summary: ConversationSummary
  readonly onFailure: (text: string) => void
}) => {
  const run = async (verb: StateVerb): Promise<void> => {
    try {
      await client().call(`conversation.${verb}`, { conversation_id: summary.conversation_id })
      onFailure("")
    } catch (error) {
      onFailure(failureText(error))
    }
  }
  return (
    <>
      {verbsOf(summary).map(([verb, word]) => (
        <button key={verb} type="button" data-verb={verb} onClick={() => void run(verb)}>
          {word}
        </button>
      ))}
    </>
  )
}

const Head = ({ open, summary }: { readonly open: ConversationFeed; readonly summary: ConversationSummary }) => {
  const failure = useSignal("")
  const [tone, word] = toneOfConversation(summary.state, summary.attention)
  const models = [...new Set(summary.agents.map(({ model }) => model))].join(", ")
  return (
    <header class="conversation-head">
      <div class="row wrap">
        <a class="only-narrow button" href={addressOf("conversations")} aria-label="Back to the conversations">
          ‹
        </a>
        <h1 class="cut">{safeText(summary.title ?? summary.conversation_id)}</h1>
        <Chip tone={tone} word={word} />
        <span class="grow" />
        {mayOperate() && open.at === undefined ? (
          <Controls
            summary={summary}
            onFailure={(text) => {
              failure.value = text
            }}
          />
        ) : null}
      </div>
      <p class="quiet small cut">
        {safeText(models)} · {shortNumber(summary.usage.input_tokens + summary.usage.output_tokens)} tok ·{" "}
        {money(summary.cost_usd)}
        {summary.budget?.usd === undefined ? "" : ` of ${money(summary.budget.usd)}`}
        {summary.workspace === null ? "" : ` · ${safeText(summary.workspace)}`}
      </p>
      {summary.reason === null ? null : <p class="warm small">{safeText(summary.reason)}</p>}
      {failure.value === "" ? null : <Banner tone="failure">{failure.value}</Banner>}
    </header>
  )
}

const Past = ({
  at,
  open,
  summary
}: {
  readonly at: number
  readonly open: ConversationFeed
  readonly summary: ConversationSummary
}) => {
  const failure = useSignal("")
  const fork = async (): Promise<void> => {
    try {
      const { conversation_id } = await client().call("conversation.fork", {
        conversation_id: open.id,
        at_event_id: at
      })
      go(addressOf("conversation", conversation_id))
    } catch (error) {
      failure.value = failureText(error)
    }
  }
  return (
    <div class="past">
      <Banner>
        <span class="grow">
          You are looking at {clock(summary.updated_ms)}, rune {at}. Live is {Math.max(0, open.head.value - at)} runes
          ahead.
          {failure.value === "" ? null : <span class="bad"> {failure.value}</span>}
        </span>
        {mayOperate() ? (
          <button type="button" onClick={() => void fork()}>
            Fork from here
          </button>
        ) : null}
        <a class="button" href={addressOf("conversation", open.id)}>
          Back to live
        </a>
      </Banner>
    </div>
  )
}

const panel = signal<PanelName | undefined>(undefined)

const Side = ({ open, summary }: { readonly open: ConversationFeed; readonly summary: ConversationSummary }) => {
  const shown = panel.value ?? (summary.plan === null ? "Agents" : "Plan")
  return (
    <aside class="side" aria-label="Details">
      <div class="tabs" role="tablist">
        {panels.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            class="plain small"
            aria-selected={shown === name}
            onClick={() => {
              panel.value = name
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <SidePanel feed={open} panel={shown} summary={summary} />
    </aside>
  )
}

const canTalk = ({ state }: ConversationSummary): boolean =>
  state === "active" || state === "paused" || state === "created"

export const Conversation = () => {
  const open = feed.value
  const summary = open?.summary.value
  const isSideShown = useSignal(false)
  if (open === undefined) return null
  if (summary === undefined)
    return (
      <div class="empty">
        {open.failure.value === "" ? (
          <p class="quiet">Loading…</p>
        ) : (
          <Banner tone="failure">{open.failure.value}</Banner>
        )}
      </div>
    )
  const names = namesOf(summary)
  return (
    <div class={`conversation ${isSideShown.value ? "side-shown" : ""}`} key={`${open.id} ${open.at ?? ""}`}>
      <Head open={open} summary={summary} />
      {open.at === undefined ? null : <Past at={open.at} open={open} summary={summary} />}
      {open.failure.value === "" ? null : <Banner tone="failure">{open.failure.value}</Banner>}
      <div class="conversation-body">
        <TranscriptView feed={open} names={names} />
        <Side open={open} summary={summary} />
      </div>
      <button
        type="button"
        class="only-narrow side-toggle"
        aria-expanded={isSideShown.value}
        onClick={() => {
          isSideShown.value = !isSideShown.value
        }}
      >
        {isSideShown.value ? "Transcript" : "Agents, plan, budget, runes"}
      </button>
      <TimelineView feed={open} names={names} />
      {mayOperate() && open.at === undefined && canTalk(summary) ? <Composer summary={summary} /> : null}
    </div>
  )
}
