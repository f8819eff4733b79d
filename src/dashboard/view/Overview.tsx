// The server at a glance: what its conversations do, what the last day came to, how the providers are, and how the server
// itself is. Charts are drawn from its own figures.
import { useEffect } from "preact/hooks"
import {
  chartDays,
  day,
  type Figures,
  followOverview,
  fortnight,
  overviewFailure,
  recent,
  type Sample,
  samples,
  serverInfo
} from "../data/Overview.ts"
import { addressOf } from "../data/Route.ts"
import { bytes, duration, money, plural, shortNumber, wholeNumber } from "../state/Format.ts"
import { numberOf, objectOf } from "../state/Payload.ts"
import { safeText } from "../state/Safe.ts"
import { Banner, Chip, type Tone, toneOfConversation } from "./Bits.tsx"
import { DayBars, ShareBars } from "./Charts.tsx"

const chart = { width: 240, height: 48 } as const

const Spark = ({ label, values }: { readonly label: string; readonly values: ReadonlyArray<number> }) => {
  const top = Math.max(1e-9, ...values)
  const points = values.map(
    (value, at) =>
      `${((at / Math.max(1, values.length - 1)) * chart.width).toFixed(1)},${(chart.height - 2 - (value / top) * (chart.height - 4)).toFixed(1)}`
  )
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${chart.width} ${chart.height}`}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      {points.length < 2 ? null : (
        <>
          <polygon points={`0,${chart.height} ${points.join(" ")} ${chart.width},${chart.height}`} />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  )
}

const Tile = ({
  name,
  now,
  values
}: {
  readonly name: string
  readonly now: string
  readonly values: ReadonlyArray<number>
}) => (
  <div class="card tile">
    <span class="quiet small">{name}</span>
    <span class="figure">{now}</span>
    <Spark label={`${name} over the last minutes`} values={values} />
  </div>
)

const perSecond = (all: ReadonlyArray<Sample>, name: string): ReadonlyArray<number> =>
  all.slice(1).map((sample, at) => {
    const before = all[at]
    if (before === undefined) return 0
    const change = numberOf(sample.figures[name]) - numberOf(before.figures[name])
    return Math.max(0, change / ((sample.atMs - before.atMs) / 1000))
  })

/** The mean of what was added between two samples; the last known one where nothing was. */
const meanPer = (all: ReadonlyArray<Sample>, sum: string, count: string): ReadonlyArray<number> => {
  let mean = 0
  return all.slice(1).map((sample, at) => {
    const change = (name: string): number => numberOf(sample.figures[name]) - numberOf(all[at]?.figures[name])
    if (change(count) > 0) mean = change(sum) / change(count)
    return mean
  })
}

const valuesOf = (all: ReadonlyArray<Sample>, name: string): ReadonlyArray<number> =>
  all.map(({ figures }) => numberOf(figures[name]))

const Live = () => {
  const all = samples.value
  const rates = perSecond(all, "runes_total")
  const commits = meanPer(all, "commit_ms_total", "commits_total")
  const last: Figures = all.at(-1)?.figures ?? {}
  return (
    <section class="tiles" aria-label="Server">
      <Tile name="Runes" now={`${(rates.at(-1) ?? 0).toFixed(1)} /s`} values={rates} />
      <Tile
        name="Commit latency"
        now={(commits.at(-1) ?? 0) === 0 ? "–" : `${(commits.at(-1) ?? 0).toFixed(1)} ms`}
        values={commits}
      />
      <Tile
        name="Memory"
        now={bytes(numberOf(last["process_resident_bytes"]))}
        values={valuesOf(all, "process_resident_bytes")}
      />
      <Tile
        name="Conversations in memory"
        now={`${wholeNumber(numberOf(last["conversations_resident"]))} of ${wholeNumber(numberOf(last["conversations"]))}`}
        values={valuesOf(all, "conversations_resident")}
      />
    </section>
  )
}

const order: ReadonlyArray<Tone> = ["person", "failed", "running", "waiting", "paused", "idle", "closed"]

const States = () => {
  const counts = new Map<Tone, number>()
  for (const { attention, state } of recent.value) {
    const [tone] = toneOfConversation(state, attention)
    counts.set(tone, (counts.get(tone) ?? 0) + 1)
  }
  const words: Readonly<Record<Tone, string>> = {
    person: "need you",
    failed: "failed",
    running: "running",
    waiting: "waiting",
    paused: "paused",
    idle: "idle",
    closed: "closed",
    done: "done"
  }
  const shown = order.filter((tone) => (counts.get(tone) ?? 0) > 0)
  return (
    <section class="card stack" aria-label="Conversations by state">
      <h2>Conversations by state</h2>
      <div class="stacked" aria-hidden="true">
        {shown.map((tone) => (
          <span key={tone} class={`part ${tone}`} style={{ flexGrow: counts.get(tone) ?? 0 }} />
        ))}
      </div>
      <div class="row wrap">
        {shown.map((tone) => (
          <Chip key={tone} tone={tone} word={`${counts.get(tone) ?? 0} ${words[tone]}`} />
        ))}
      </div>
      <p class="quiet small">of the {wholeNumber(recent.value.length)} that changed last</p>
    </section>
  )
}

const Charts = () => {
  const figures = fortnight.value
  if (figures === undefined) return null
  const places = figures.workspaces.map(({ workspace, ...share }) => ({ name: workspace || "no directory", share }))
  const models = figures.models.map(({ model, ...share }) => ({ name: model || "unknown", share }))
  return (
    <>
      <section class="card stack wide" aria-label="By day">
        <h2>Used by day</h2>
        <DayBars days={figures.days} count={chartDays} />
      </section>
      <section class="card stack" aria-label="By model">
        <h2>By model, {chartDays} days</h2>
        <ShareBars items={models.slice(0, 8)} />
      </section>
      <section class="card stack" aria-label="By directory">
        <h2>By directory, {chartDays} days</h2>
        <ShareBars items={places.slice(0, 8)} />
      </section>
    </>
  )
}

const Spending = () => {
  const all = recent.value
    .map((item) => ({
      name: item.title || item.conversation_id,
      href: addressOf("conversation", item.conversation_id),
      share: { ...item.usage, usd: item.usage.usd ?? 0, runes: item.last_event_id }
    }))
    .sort((one, other) => other.share.usd - one.share.usd || other.share.output_tokens - one.share.output_tokens)
  return (
    <section class="card stack" aria-label="By conversation">
      <h2>By conversation</h2>
      <ShareBars items={all.slice(0, 8)} />
    </section>
  )
}

const Day = () => {
  const figures = day.value
  if (figures === undefined) return null
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["cost", money(figures.cost_usd)],
    ["tokens in", shortNumber(figures.usage.input_tokens)],
    ["tokens out", shortNumber(figures.usage.output_tokens)],
    ["turns", `${wholeNumber(figures.turns_completed)} completed, ${wholeNumber(figures.turns_failed)} failed`],
    ["tool results", wholeNumber(figures.tool_results)],
    ["runes", wholeNumber(figures.runes)]
  ]
  return (
    <section class="card stack" aria-label="Last 24 hours">
      <h2>Last 24 hours</h2>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name}>{value}</dd>
          </>
        ))}
      </dl>
    </section>
  )
}

const Providers = () => {
  const last: Figures = samples.value.at(-1)?.figures ?? {}
  const providers = Object.entries(objectOf(last["providers"]))
  return (
    <section class="card stack" aria-label="Providers">
      <h2>Providers</h2>
      {providers.length === 0 ? <p class="quiet">None was asked yet.</p> : null}
      <ul class="stack tight">
        {providers.map(([name, value]) => {
          const { circuit, failures, held } = objectOf(value)
          const isClosed = circuit === "closed"
          return (
            <li key={name} class="row">
              <span class="grow">{safeText(name)}</span>
              <span class="quiet small">
                {numberOf(failures)} failures in a row, {numberOf(held)} calls held
              </span>
              <Chip tone={isClosed ? "done" : "failed"} word={isClosed ? "healthy" : `circuit ${String(circuit)}`} />
            </li>
          )
        })}
      </ul>
    </section>
  )
}

const Server = () => {
  const info = serverInfo.value
  const last: Figures = samples.value.at(-1)?.figures ?? {}
  if (info === undefined) return null
  const { sandbox } = info
  return (
    <section class="card stack" aria-label="This server">
      <h2>This server</h2>
      <dl class="facts">
        <dt>commands run in</dt>
        <dd>
          {sandbox === null ? (
            "no commands here"
          ) : (
            <Chip tone={sandbox.contained ? "done" : "failed"} word={safeText(sandbox.level)} />
          )}
        </dd>
        <dt>default model</dt>
        <dd>{safeText(info.model)}</dd>
        <dt>journal</dt>
        <dd>{plural(numberOf(last["log_journal_files"]), "file")}</dd>
        <dt>connections</dt>
        <dd>{wholeNumber(numberOf(last["connections"]))}</dd>
        <dt>up for</dt>
        <dd>{duration(numberOf(last["uptime_ms"]))}</dd>
        <dt>version</dt>
        <dd>{safeText(info.version)}</dd>
      </dl>
    </section>
  )
}

export const Overview = () => {
  useEffect(followOverview, [])
  return (
    <section class="wide-pane" aria-label="Overview">
      <header class="pane-head">
        <h1>Overview</h1>
      </header>
      <div class="pane-body padded">
        {overviewFailure.value === "" ? null : <Banner tone="failure">{overviewFailure.value}</Banner>}
        <div class="overview">
          <Live />
          <States />
          <Day />
          <Charts />
          <Spending />
          <Providers />
          <Server />
        </div>
      </div>
    </section>
  )
}
