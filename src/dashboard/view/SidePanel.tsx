// Beside the transcript: the agents as a tree, the plan as a graph, what was spent of which budget, and the runes as they are.
import { useSignal } from "@preact/signals"
import type { AgentItem, ConversationSummary } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"
import type { ConversationFeed } from "../data/ConversationFeed.ts"
import { addressOf } from "../data/Route.ts"
import { duration, exactClock, money, shortNumber } from "../state/Format.ts"
import { evidenceText, type PlanTask, planTones, taskTones } from "../state/PlanLabels.ts"
import { safeText } from "../state/Safe.ts"
import { Chip, type Tone } from "./Bits.tsx"
import { Compare } from "./Compare.tsx"
import { PlanGraph } from "./PlanGraph.tsx"

export const panels = ["Agents", "Plan", "Budget", "Runes", "Compare"] as const
export type PanelName = (typeof panels)[number]

const agentTone = ({ attention, doing, status }: AgentItem): readonly [Tone, string] => {
  if (status === "failed") return ["failed", "failed"]
  if (status === "terminated") return ["closed", "ended"]
  if (doing === "waiting_for_permission" || attention === "awaiting_input") return ["person", "needs you"]
  if (status === "running_turn") return ["running", doing.replaceAll("_", " ")]
  return status === "spawning" ? ["waiting", "starting"] : ["idle", "idle"]
}

const AgentNode = ({
  agent,
  all,
  depth
}: {
  readonly agent: AgentItem
  readonly all: ReadonlyArray<AgentItem>
  readonly depth: number
}) => (
  <li>
    <div class="agent-row" style={{ paddingLeft: `${depth * 16}px` }}>
      <span class="row">
        <span class="strong cut grow">{safeText(agent.name ?? agent.role)}</span>
        <Chip tone={agentTone(agent)[0]} word={agentTone(agent)[1]} />
      </span>
      <span class="quiet small cut">
        {safeText(agent.model)} · {shortNumber(agent.usage.input_tokens + agent.usage.output_tokens)} tok ·{" "}
        {agent.tool_calls} calls · {money(agent.usage.usd)}
      </span>
      {agent.last_error === null ? null : <span class="bad small">{safeText(agent.last_error.message)}</span>}
    </div>
    <ul>
      {all
        .filter(({ parent_id: parent }) => parent === agent.agent_id)
        .map((child) => (
          <AgentNode key={child.agent_id} agent={child} all={all} depth={Math.min(8, depth + 1)} />
        ))}
    </ul>
  </li>
)

const Agents = ({ agents }: { readonly agents: ReadonlyArray<AgentItem> }) => {
  const known = new Set<string | null>(agents.map(({ agent_id: id }) => id))
  return (
    <ul>
      {agents
        .filter(({ parent_id: parent }) => !known.has(parent))
        .map((agent) => (
          <AgentNode key={agent.agent_id} agent={agent} all={agents} depth={0} />
        ))}
    </ul>
  )
}

const Task = ({ item }: { readonly item: PlanTask }) => (
  <li class="card stack tight">
    <span class="row">
      <span class="strong grow cut">{visible(item.task.title)}</span>
      <Chip tone={taskTones[item.status]} word={item.status} />
    </span>
    {(item.task.evidence ?? []).map((spec, at) => {
      const checked = item.evidence.find((one) => JSON.stringify(one.spec) === JSON.stringify(spec))
      return (
        <code key={at} class="proof">
          <span class={checked === undefined ? "quiet" : checked.passed ? "good" : "bad"}>
            {checked === undefined ? "○" : checked.passed ? "✓" : "✕"}
          </span>{" "}
          {evidenceText(spec)}
        </code>
      )
    })}
    {item.failure === null ? null : <span class="bad small">{safeText(item.failure.message)}</span>}
    {item.result === null ? null : <span class="quiet small">{safeText(item.result)}</span>}
  </li>
)

const Plan = ({ summary: { plan } }: { readonly summary: ConversationSummary }) =>
  plan === null ? (
    <p class="quiet">No goal is pursued here.</p>
  ) : (
    <>
      <span class="row">
        <Chip tone={planTones[plan.status]} word={plan.status.replaceAll("_", " ")} />
        <span class="quiet small">
          plan {plan.revision} · review {plan.iterations}
        </span>
      </span>
      <p>{safeText(plan.goal)}</p>
      <PlanGraph tasks={plan.tasks} />
      <ol class="stack">
        {plan.tasks.map((item) => (
          <Task key={item.task.task_id} item={item} />
        ))}
      </ol>
    </>
  )

const Bar = ({
  limit,
  name,
  show,
  used
}: {
  readonly name: string
  readonly used: number
  readonly limit: number | undefined
  readonly show: (value: number) => string
}) => (
  <div class="stack tight">
    <span class="row">
      <span class="grow">{name}</span>
      <span class="quiet">
        {show(used)}
        {limit === undefined ? " · no limit" : ` of ${show(limit)}`}
      </span>
    </span>
    <meter
      min={0}
      max={limit ?? Math.max(1, used)}
      value={limit === undefined ? 0 : Math.min(used, limit)}
      aria-label={name}
      class={limit !== undefined && used > limit * 0.8 ? "high" : ""}
    />
  </div>
)

const Budget = ({ summary }: { readonly summary: ConversationSummary }) => {
  const { plan, usage } = summary
  const budget = { ...(summary.budget ?? {}), ...(plan?.budget ?? {}) }
  const worked = summary.updated_ms - (plan?.started_ms ?? summary.created_ms)
  return (
    <>
      <Bar name="Money" used={summary.cost_usd ?? 0} limit={budget.usd} show={money} />
      <Bar name="Tokens" used={usage.input_tokens + usage.output_tokens} limit={budget.tokens} show={shortNumber} />
      <Bar name="Tool calls" used={summary.tool_calls} limit={budget.tool_calls} show={String} />
      <Bar name="Time" used={worked} limit={budget.wall_ms} show={duration} />
      <dl class="facts">
        <dt>input</dt>
        <dd>{shortNumber(usage.input_tokens)} tokens</dd>
        <dt>from cache</dt>
        <dd>{shortNumber(usage.cached_tokens)} tokens</dd>
        <dt>output</dt>
        <dd>{shortNumber(usage.output_tokens)} tokens</dd>
        <dt>turns</dt>
        <dd>{summary.turns}</dd>
      </dl>
    </>
  )
}

const runesShown = 200

const Runes = ({ feed }: { readonly feed: ConversationFeed }) => {
  const filter = useSignal("")
  void feed.drawing.value
  const wanted = filter.value.trim().toLowerCase()
  const found = feed.transcript.runes.filter(
    (rune) => wanted === "" || rune.kind.includes(wanted) || JSON.stringify(rune.payload).toLowerCase().includes(wanted)
  )
  return (
    <>
      <input
        type="search"
        aria-label="Filter runes"
        placeholder="kind or text"
        value={filter.value}
        onInput={(event) => {
          filter.value = event.currentTarget.value
        }}
      />
      <ol class="runes">
        {found
          .slice(-runesShown)
          .toReversed()
          .map((rune) => (
            <li key={rune.event_id}>
              <details>
                <summary class="small">
                  <a href={addressOf("conversation", feed.id, rune.event_id)}>{rune.event_id}</a>{" "}
                  <span class="mono">{rune.kind}</span> <span class="quiet">{exactClock(rune.ts_ms)}</span>
                </summary>
                <pre class="code-block output">{safeText(JSON.stringify(rune, null, 2))}</pre>
              </details>
            </li>
          ))}
      </ol>
    </>
  )
}

export const SidePanel = ({
  feed,
  panel,
  summary
}: {
  readonly feed: ConversationFeed
  readonly panel: PanelName
  readonly summary: ConversationSummary
}) => (
  <div class="stack side-body" role="tabpanel" aria-label={panel}>
    {panel === "Agents" ? (
      <Agents agents={summary.agents} />
    ) : panel === "Plan" ? (
      <Plan summary={summary} />
    ) : panel === "Budget" ? (
      <Budget summary={summary} />
    ) : panel === "Compare" ? (
      <Compare feed={feed} />
    ) : (
      <Runes feed={feed} />
    )}
  </div>
)
