// What a tool call costs beside a bare spawn of the same program: one at a time with the pauses of a model, once with
// sandboxes made ahead and once without; a hundred at once; and a GiB of output, where memory is what counts. BENCH_ROUNDS and BENCH_CALLS shorten or lengthen it; BENCH_OUTPUT_MIB the output.
import { setTimeout as sleep } from "node:timers/promises"
import type { Bench, BenchContext, Row } from "./Bench.ts"
import { median, watchOthers } from "./runelog/sampling.ts"
import { positive } from "./runelog/settings.ts"
import { bareSpawn, type Subject, toolCalls } from "./tools/subjects.ts"

const MIB = 1_048_576
const targetWithout = 2
const targetWith = 3

interface Plan {
  readonly rounds: number
  readonly calls: number
  readonly outputMiB: number
  readonly progress: BenchContext["progress"]
}

const millisecondsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

/** Samples of every subject in turns, so that a slow minute of the machine meets all of them. */
const inTurns = async (
  subjects: ReadonlyArray<Subject>,
  times: number,
  sample: (subject: Subject) => Promise<number>
) => {
  const samples = new Map<Subject, Array<number>>(subjects.map((subject) => [subject, []]))
  for (let turn = 0; turn < times; turn++)
    for (const subject of subjects) samples.get(subject)?.push(await sample(subject))
  return (subject: Subject): number => median(samples.get(subject) ?? [])
}

const compared = (row: Row, baseline: Row, target?: number): Row => {
  const ratio = row.value / baseline.value
  return { ...row, baseline: baseline.name, ratio, ...(target === undefined ? {} : { target, met: ratio <= target }) }
}

/** Between two calls a model thinks; this is far less than it takes. */
const pauseMs = 60

const oneAtATime = async ([bare, without, within, cold]: Subjects, plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`${plan.rounds * plan.calls} calls of each, one at a time`)
  const all = [bare, without, within, cold]
  for (const subject of all) await subject.run("true")
  const value = await inTurns(all, plan.rounds * plan.calls, async (subject) => {
    await sleep(pauseMs)
    return millisecondsOf(() => subject.run("true"))
  })
  const row = (subject: Subject): Row => ({ name: `no-op, ${subject.name}`, value: value(subject), unit: "ms" })
  return [
    row(bare),
    compared(row(without), row(bare), targetWithout),
    compared(row(within), row(bare), targetWith),
    compared(row(cold), row(bare))
  ]
}

const parallel = 100

const atOnce = async ([bare, without, within]: Subjects, plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`${parallel} at once`)
  const all = [bare, without, within]
  const hundred = (subject: Subject) =>
    millisecondsOf(() => Promise.all(Array.from({ length: parallel }, () => subject.run("true"))))
  const value = await inTurns(all, plan.rounds, hundred)
  const row = (subject: Subject): Row => ({
    name: `${parallel} at once, ${subject.name}`,
    value: value(subject),
    unit: "ms"
  })
  return [row(bare), compared(row(without), row(bare), targetWithout), compared(row(within), row(bare), targetWith)]
}

const withOutput = async ([bare, , within]: Subjects, plan: Plan): Promise<ReadonlyArray<Row>> => {
  plan.progress(`${plan.outputMiB} MiB of output`)
  const command = `head -c ${plan.outputMiB * MIB} /dev/zero`
  const before = process.memoryUsage().rss
  let most = before
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 10)
  const ourMs = await millisecondsOf(() => within.run(command))
  clearInterval(watch)
  const bareMs = await millisecondsOf(() => bare.run(command))
  const speed = (subject: Subject, ms: number): Row => ({
    name: `${plan.outputMiB} MiB of output, ${subject.name}`,
    value: plan.outputMiB / (ms / 1_000),
    unit: "MiB/s"
  })
  const grown = (most - before) / MIB
  return [
    speed(bare, bareMs),
    compared(speed(within, ourMs), speed(bare, bareMs)),
    { name: `${plan.outputMiB} MiB of output, memory`, value: grown, unit: "MiB", target: 64, met: grown <= 64 }
  ]
}

type Subjects = readonly [bare: Subject, without: Subject, within: Subject, cold: Subject]

export const run: Bench["run"] = async ({ directory, progress }) => {
  const plan: Plan = {
    rounds: Math.ceil(positive("BENCH_ROUNDS", 5)),
    calls: Math.ceil(positive("BENCH_CALLS", 40)),
    outputMiB: positive("BENCH_OUTPUT_MIB", 1_024),
    progress
  }
  const subjects: Subjects = [
    bareSpawn(directory),
    await toolCalls(directory, { name: "without", levels: ["limits_only"] }),
    await toolCalls(directory, { name: "within" }),
    await toolCalls(directory, { name: "cold", spares: false })
  ]
  const busyOthers = watchOthers()
  try {
    // First, while no memory of the other rows lies about.
    const output = await withOutput(subjects, plan)
    const rows = [...(await oneAtATime(subjects, plan)), ...(await atOnce(subjects, plan)), ...output]
    const others = "cores that other processes kept busy, own children included"
    return [...rows, { name: others, value: busyOthers(), unit: "cores" }]
  } finally {
    for (const subject of subjects) await subject.close()
  }
}
