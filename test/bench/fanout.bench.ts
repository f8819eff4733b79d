// From one conversation to its subscribers, beside a bare `ws` loop that sends the same string to every client and keeps
// nothing; what an idle connection costs; how fast a newcomer catches up; and the whole way from a model's stream to a
// subscriber. Subscribers are in a process of their own. BENCH_SECONDS and BENCH_ROUNDS shorten or lengthen it.
import { join } from "node:path"
import type { Bench, BenchContext, Row } from "./Bench.ts"
import { measureCatchUp } from "./fanout/catchUp.ts"
import { measureJsonLines, measureOurs, measureSqlite } from "./fanout/endToEnd.ts"
import { measureIdle } from "./fanout/idle.ts"
import { openBare, openOurs, type Publisher, paced, underLoad } from "./fanout/subjects.ts"
import { makeDirectory } from "./runelog/directory.ts"
import { median, watchOthers } from "./runelog/sampling.ts"
import { positive } from "./runelog/settings.ts"

interface Plan {
  readonly path: string
  readonly seconds: number
  readonly rounds: number
  readonly progress: BenchContext["progress"]
}

interface Measured {
  readonly deliveries: ReadonlyArray<number>
  readonly p50Ms: ReadonlyArray<number>
  readonly p99Ms: ReadonlyArray<number>
}

/** Messages a second at which latency is measured. */
const paceOf = (subscribers: number): number => (subscribers >= 1_000 ? 20 : 100)

interface Samples {
  readonly deliveries: Array<number>
  readonly p50Ms: Array<number>
  readonly p99Ms: Array<number>
}

const sample = async (publisher: Publisher, subscribers: number, seconds: number, into: Samples): Promise<void> => {
  into.deliveries.push(await underLoad(publisher, seconds))
  // A low rate is one after which nothing of a high one is left to do.
  await publisher.settle()
  const latency = await paced(publisher, paceOf(subscribers), seconds)
  into.p50Ms.push(latency.p50Ms)
  into.p99Ms.push(latency.p99Ms)
}

interface Subjects {
  readonly ours: Measured
  readonly bare: Measured
  readonly synced: Measured
}

const deliveryRows = (subscribers: number, { bare, ours }: Subjects): ReadonlyArray<Row> => {
  const to = `1 → ${subscribers.toLocaleString("en-US")}`
  const ratio = median(ours.deliveries) / median(bare.deliveries)
  const baseline = `${to}, bare ws loop`
  return [
    { name: baseline, value: median(bare.deliveries), unit: "deliveries/s" },
    {
      name: `${to}, echs, durable`,
      value: median(ours.deliveries),
      unit: "deliveries/s",
      baseline,
      ratio,
      ...(subscribers === 1 ? {} : { target: 3, met: ratio >= 3 })
    }
  ]
}

/** Beside a loop that keeps nothing, and beside one that does what durability cannot do without. */
const latencyRows = (subscribers: number, subjects: Subjects): ReadonlyArray<Row> =>
  (["p50", "p99"] as const).flatMap((percentile) => {
    const of = (subject: keyof Subjects): number => median(subjects[subject][`${percentile}Ms`])
    const at = `1 → ${subscribers.toLocaleString("en-US")}, ${percentile} at ${paceOf(subscribers)}/s`
    const against = (baseline: string, other: "bare" | "synced"): Row => {
      const ratio = of("ours") / of(other)
      const name = `${at}, echs, durable, against ${other === "bare" ? "no sync" : "one sync"}`
      return { name, value: of("ours"), unit: "ms", baseline, ratio, target: 1, met: ratio <= 1 }
    }
    const bare = `${at}, bare ws loop`
    const synced = `${at}, bare ws loop with one sync per message`
    return [
      { name: bare, value: of("bare"), unit: "ms" },
      { name: synced, value: of("synced"), unit: "ms" },
      against(bare, "bare"),
      against(synced, "synced")
    ]
  })

/** In turns, so that what else the machine does falls on all alike. */
const fanout = async (subscribers: number, plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`1 → ${subscribers}`)
  const publishers = {
    bare: await openBare(subscribers),
    synced: await openBare(subscribers, join(plan.path, `sync-${subscribers}`)),
    ours: await openOurs(join(plan.path, `fanout-${subscribers}`), subscribers)
  }
  const none = (): Samples => ({ deliveries: [], p50Ms: [], p99Ms: [] })
  const subjects = { bare: none(), synced: none(), ours: none() }
  const names = ["bare", "synced", "ours"] as const
  for (const name of names) await underLoad(publishers[name], Math.min(plan.seconds, 0.5))
  for (let round = 0; round < plan.rounds; round++) {
    for (const name of names) await sample(publishers[name], subscribers, plan.seconds, subjects[name])
  }
  for (const name of names) await publishers[name].close()
  return [...deliveryRows(subscribers, subjects), ...latencyRows(subscribers, subjects)]
}

const IDLE = 5_000

const idle = async (plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`${IDLE} idle connections`)
  const { heapBytesEach, residentBytesEach } = await measureIdle(join(plan.path, "idle"), IDLE)
  const name = `${IDLE.toLocaleString("en-US")} idle connections`
  return [
    { name: `${name}, memory of the process each`, value: residentBytesEach, unit: "bytes" },
    { name: `${name}, of which heap`, value: heapBytesEach, unit: "bytes" }
  ]
}

const RUNES = 100_000

const catchUp = async (plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`a newcomer catches up with ${RUNES} runes`)
  const measured = await measureCatchUp(join(plan.path, "catch-up"), RUNES)
  const baseline = "100,000 runes, read from the files"
  const ratio = measured.subscriberPerSecond / measured.filesPerSecond
  return [
    { name: baseline, value: measured.filesPerSecond, unit: "runes/s" },
    {
      name: "100,000 runes, by a new subscriber",
      value: measured.subscriberPerSecond,
      unit: "runes/s",
      baseline,
      ratio,
      target: 0.3,
      met: ratio >= 0.3
    }
  ]
}

const CONVERSATIONS = 1_000

const endToEnd = async (plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress("end to end")
  const lines = await measureJsonLines(join(plan.path, "lines"), CONVERSATIONS, 2 * plan.seconds)
  const rows = await measureSqlite(join(plan.path, "sqlite"), CONVERSATIONS, 2 * plan.seconds)
  const ours = await measureOurs(join(plan.path, "end-to-end"), CONVERSATIONS)
  const byLines = "1,000 conversations, bare ws and JSON lines, never synced"
  const byRows = "1,000 conversations, bare ws and SQLite FULL"
  const of = (baseline: string, ratio: number, target: number): Row => ({
    name: `1,000 conversations, model to subscriber, echs, against ${baseline === byLines ? "JSON lines" : "SQLite"}`,
    value: ours,
    unit: "runes/s",
    baseline,
    ratio,
    target,
    met: ratio >= target
  })
  return [
    { name: byLines, value: lines, unit: "runes/s" },
    { name: byRows, value: rows, unit: "runes/s" },
    of(byLines, ours / lines, 1),
    of(byRows, ours / rows, 8)
  ]
}

export const run: Bench["run"] = async ({ directory: temporary, progress }) => {
  const directory = makeDirectory(temporary)
  const plan: Plan = {
    path: directory.path,
    seconds: positive("BENCH_SECONDS", 2),
    rounds: Math.ceil(positive("BENCH_ROUNDS", 3)),
    progress
  }
  const busyOthers = watchOthers()
  try {
    const rows: Array<Row> = [...(await idle(plan))]
    for (const subscribers of [1, 100, 1_000]) rows.push(...(await fanout(subscribers, plan)))
    rows.push(...(await catchUp(plan)), ...(await endToEnd(plan)))
    const others = "cores that other processes kept busy, the subscribers' own included"
    return [...rows, { name: others, value: busyOthers(), unit: "cores" }]
  } finally {
    directory.remove()
  }
}
