// How often a heavy test repeats itself, and the record of how often it really did. `npm test` takes the fast
// count, `npm run soak` the long one; what suites report is summed by name and printed at the end of the run.
import { appendFileSync } from "node:fs"

export type Lane = "fast" | "soak"

export interface CountRecord {
  readonly name: string
  readonly value: number
}

/** Set by the reporter of the run; absent when a test file is run by other means. */
export const countsFileVariable = "ECHS_COUNTS_FILE"

export const lane = (): Lane => (process.env["ECHS_LANE"] === "soak" ? "soak" : "fast")

/** How many repetitions this lane asks for. `ECHS_COUNT` overrides every count, to reproduce or to hurry. */
export const count = (name: string, wanted: { readonly [L in Lane]: number }): number => {
  const override = process.env["ECHS_COUNT"]
  if (override === undefined || override === "") return wanted[lane()]
  if (!/^[1-9][0-9]*$/.test(override)) throw new Error(`ECHS_COUNT is "${override}"; ${name} needs a whole number`)
  return Number(override)
}

/** Tells the run what was really done: call it after the work, with the number that was counted, not the one planned. */
export const reportCount = (name: string, value: number): void => {
  const record: CountRecord = { name, value }
  const file = process.env[countsFileVariable]
  if (file === undefined) process.stdout.write(`counted: ${name} … ${value}\n`)
  else appendFileSync(file, `${JSON.stringify(record)}\n`)
}
