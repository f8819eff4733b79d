// Checks evidence: runs the commands, looks at the files, counts what changed. What the server finds is what counts,
// whatever a model said before. A check that cannot be made has not passed.
import type { TaskState } from "../machine/State.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import { checkDiff, checkFile, checkUnchanged } from "./evidence/Look.ts"
import { cut, type Found, failed, type Place } from "./evidence/Place.ts"
import { checkCommand, checkDelta, checkHttp, checkJson, checkTests } from "./evidence/Run.ts"
import { markOf } from "./evidence/Spec.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

/** A check, and whose it is. */
export interface Asked {
  readonly spec: EvidenceSpec
  readonly origin?: Evidence["origin"]
}

/** The checks of a task; those that a person named are the person's. */
export const askedOf = ({ task }: TaskState): ReadonlyArray<Asked> =>
  ((task.evidence ?? []) as ReadonlyArray<EvidenceSpec>).map((spec) =>
    task.origin === undefined ? { spec } : { spec, origin: task.origin }
  )

/** The more checks there are, the less is kept of each. */
const fitted = (found: ReadonlyArray<Evidence>): ReadonlyArray<Evidence> => {
  const each = Math.floor(limits.evidenceDetailsCharsMax / Math.max(1, found.length))
  return found.map((one) => (one.detail === undefined ? one : { ...one, detail: cut(one.detail, each) }))
}

const check = (tools: Tools, spec: EvidenceSpec, place: Place): Promise<Found> | Found => {
  switch (spec.type) {
    case "command":
      return checkCommand(tools, spec, place)
    case "file":
      return checkFile(tools, spec, place)
    case "report":
      return failed("an existing report proves nothing: the server counts only tests it ran itself")
    case "tests":
      return checkTests(tools, spec, place)
    case "http":
      return checkHttp(tools, spec, place)
    case "json":
      return checkJson(tools, spec, place)
    case "delta":
      return checkDelta(tools, spec, place)
    case "diff":
      return checkDiff(spec, place)
    case "unchanged":
      return checkUnchanged(spec, place)
  }
}

const checked = async (tools: Tools, { origin, spec }: Asked, place: Place): Promise<Evidence> => {
  const found = place.signal.aborted
    ? failed("the check was cut off")
    : await check(tools, spec, { ...place, isPersons: origin !== undefined })
  const wasGreen = place.isBaseline !== true && place.baseline(spec)?.passed === true
  return {
    spec,
    ...found,
    ...(origin === undefined ? {} : { origin }),
    ...(place.tree === undefined ? {} : { tree: place.tree }),
    ...(wasGreen && isWitness(spec) ? { was_green: true } : {})
  }
}

/** A check that a task can turn from failing to passing; the others only keep what is there. */
export const isWitness = ({ type }: EvidenceSpec): boolean =>
  type !== "delta" && type !== "diff" && type !== "unchanged"

/** Each check once; one that the person named stays the person's. */
export const distinct = (asked: ReadonlyArray<Asked>): ReadonlyArray<Asked> => {
  const byMark = new Map<string, Asked>()
  for (const one of asked) {
    const mark = markOf(one.spec)
    if (!byMark.has(mark)) byMark.set(mark, one)
  }
  return [...byMark.values()]
}

/** Checks all of it, the same check once. The order is that of the list. */
export const checkEvidence = async (
  tools: Tools,
  asked: ReadonlyArray<Asked>,
  place: Place
): Promise<ReadonlyArray<Evidence>> => {
  const found: Array<Evidence> = []
  // One after another: commands that test the same files may get in each other's way.
  for (const one of distinct(asked)) found.push(await checked(tools, one, place))
  return fitted(found)
}
