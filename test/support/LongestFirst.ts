// The order of test files: the longest first, so that at the end of a run no worker waits for another that has just begun
// with a long one. How long each takes is measured, not told: a whole run with ECHS_DURATIONS=write puts it in durations.json,
// and where this tree was tested before, vitest knows better. The rest follows in the order that vitest gives it.
import { readFileSync, writeFileSync } from "node:fs"
import { relative } from "node:path"
import { fileURLToPath } from "node:url"
import { BaseSequencer, type TestModule, type TestSpecification } from "vitest/node"

const file = fileURLToPath(new URL("./durations.json", import.meta.url))
const shortMs = 3_000

export type Durations = Readonly<Record<string, number>>

/** Seconds that test files took when they were measured last, by their path from the top of the project. */
export const measured: Durations = JSON.parse(readFileSync(file, "utf8"))

/** Sorts by measured seconds; files that were not measured, or were short, keep their order behind the others. */
export const longestFirst = <A>(
  files: ReadonlyArray<A>,
  pathOf: (file: A) => string,
  durations: Durations = measured
): Array<A> => {
  const secondsOf = (one: A): number => durations[pathOf(one)] ?? 0
  return files.toSorted((left, right) => secondsOf(right) - secondsOf(left))
}

/** What a run tells about its files: whole seconds, longest first, without those that are over at once. */
export const durationsOf = (runs: ReadonlyArray<{ readonly path: string; readonly ms: number }>): Durations =>
  Object.fromEntries(
    runs
      .filter(({ ms }) => ms >= shortMs)
      .toSorted((left, right) => right.ms - left.ms)
      .map(({ ms, path }) => [path, Math.round(ms / 1_000)])
  )

export const writeDurations = (modules: ReadonlyArray<TestModule>): void => {
  const runs = modules.map((module) => ({ path: module.relativeModuleId, ms: module.diagnostic().duration }))
  writeFileSync(file, `${JSON.stringify(durationsOf(runs), null, 2)}\n`)
}

export default class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const { root } = this.ctx.config
    return longestFirst(await super.sort(files), ({ moduleId }) => relative(root, moduleId).replaceAll("\\", "/"))
  }
}
