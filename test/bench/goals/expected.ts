// What must come of a goal, by who was drawn: several ends are right where a habit may be noticed in more than one place.
import type { Cast } from "./pursuit.ts"

const met = ["met"]
/** Work that does not pass its checks: the critic and the server do not let it through. */
const unmended = [
  "verdict_ping_pong",
  "iterations_exhausted",
  "unresolvable",
  "critic_silent",
  "no_progress",
  "reviews_refused"
]

/** Planners whose checks would show nothing: a person is asked, unless the person's own checks show it. */
const shownByPerson = new Set(["checks what is there", "checks nothing"])

const plannerEnds: Readonly<Record<string, ReadonlyArray<string>>> = {
  "never submits": ["planner_silent"],
  "reads for ever": ["planner_silent"]
}

const workerEnds: Readonly<Record<string, ReadonlyArray<string>>> = {
  "forges a report": unmended,
  lies: unmended,
  "is wrong": unmended,
  "gives up at once": unmended,
  "makes the same call for ever": ["repeated_tool_calls"]
}

const criticEnds: Readonly<Record<string, ReadonlyArray<string>>> = {
  "never agrees": ["verdict_ping_pong"],
  "changes its mind": ["verdict_ping_pong"],
  "says nothing": ["critic_silent"],
  "replans for ever": ["replans_exhausted", "waits: approval", "plans_rejected"]
}

const overfits = new Set(["fits the tests", "fits the tests after reading"])

export const expectedEnds = ({ asked, critic, planner, worker }: Cast): ReadonlySet<string> => {
  if (shownByPerson.has(planner.name)) return new Set(asked === "nothing" ? ["waits: approval"] : met)
  if (plannerEnds[planner.name] !== undefined) return new Set(plannerEnds[planner.name])
  if (overfits.has(worker.name)) return new Set(asked === "hidden" ? unmended : met)
  if (worker.name === "bends the tests") return new Set(asked === "hidden" ? unmended : met)
  if (worker.name === "bends the tests, then mends") return new Set(met)
  if (workerEnds[worker.name] !== undefined) return new Set(workerEnds[worker.name])
  return new Set(criticEnds[critic.name] ?? met)
}
