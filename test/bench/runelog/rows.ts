// Rows out of measurements: rates with their latencies and processor time, and the targets, each a row of its own that
// names what it is compared with.
import type { Row } from "../Bench.ts"
import type { Results, Summary } from "./sampling.ts"

export const found = (results: Results, name: string): Summary => {
  const summary = results.get(name)
  if (summary === undefined) throw new Error(`"${name}" was not measured`)
  return summary
}

export const rateRow = (results: Results, name: string, unit: string): Row => ({
  name,
  value: found(results, name).perSecond,
  unit
})

/** What acknowledgement took, and what an append cost in processor time. */
export const detailRows = (results: Results, name: string): ReadonlyArray<Row> => {
  const { cpuMicrosecondsPerItem, p50Ms, p99Ms } = found(results, name)
  return [
    { name: `${name}: ack p50`, value: p50Ms, unit: "ms" },
    { name: `${name}: ack p99`, value: p99Ms, unit: "ms" },
    { name: `${name}: processor time`, value: cpuMicrosecondsPerItem, unit: "µs/append" }
  ]
}

export type Aim = { readonly atLeast: number } | { readonly atMost: number }

const judge = (value: number, aim: Aim | undefined): Pick<Row, "target" | "met"> => {
  if (aim === undefined) return {}
  return "atLeast" in aim
    ? { target: aim.atLeast, met: value >= aim.atLeast }
    : { target: aim.atMost, met: value <= aim.atMost }
}

/** A value that is aimed at by itself. */
export const aimedRow = (row: Row, aim: Aim): Row => ({ ...row, ...judge(row.value, aim) })

/** A row beside another of the same unit; the aim is for the ratio. */
export const comparedRow = (row: Row, baseline: Row, aim?: Aim): Row => {
  const ratio = row.value / baseline.value
  return { ...row, baseline: baseline.name, ratio, ...judge(ratio, aim) }
}

/** Takes the target away from a row whose conditions were not there: what was not shown is not met. */
export const unlessShown = (row: Row, isShown: boolean): Row => (isShown ? row : { ...row, met: false })
