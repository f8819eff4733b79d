// Evidence that workers could have bent: a check reads files, and workers changed some that were there before. It may be
// right to change a test; but whoever judges has to see it.

import { specText } from "../rune/EvidenceText.ts"
import type { Evidence } from "../rune/kinds/evidence.ts"
import type { FileChange } from "../rune/kinds/plan.ts"
import { commandsOf } from "./evidence/Spec.ts"
import { limits } from "./GoalLimits.ts"

/** Where tests, and the settings of test runners, usually are. */
const testFile = /(^|\/)(tests?|__tests__|spec)\/|(\.|_)(test|spec)\.[a-z]+$|(^|\/)(test_[^/]*|conftest)\.py$/u
const settingsFile =
  /(^|\/)(package\.json|Makefile|pyproject\.toml|setup\.cfg|tox\.ini|(jest|vitest|karma)\.config\.[a-z]+)$/u

const runsTests = /\b(test|tests|unittest|pytest|jest|vitest|mocha|tap|ctest|check)\b/u

const isNamed = (text: string, path: string): boolean => {
  const name = path.split("/").at(-1) ?? path
  return text.includes(path) || new RegExp(`(^|[\\s/'"=])${escaped(name)}($|[\\s'"])`, "u").test(text)
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")

/** The files that a check reads, as far as its words tell, and that were changed or removed. */
const suspectsOf = (evidence: Evidence, changed: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (commandsOf(evidence.spec).length === 0) return []
  const text = specText(evidence.spec)
  const isTest = evidence.spec.type === "tests" || runsTests.test(text)
  return changed.filter((path) => isNamed(text, path) || (isTest && (testFile.test(path) || settingsFile.test(path))))
}

/** Files that a task was to make are new: only those that were there before can have been bent. */
export const withSuspects = (
  evidence: ReadonlyArray<Evidence>,
  changes: ReadonlyArray<FileChange>
): ReadonlyArray<Evidence> => {
  const changed = changes.filter(({ status }) => status !== "added").map(({ path }) => path)
  return evidence.map((one) => {
    const suspect = suspectsOf(one, changed).slice(0, limits.suspectsShownMax)
    return suspect.length === 0 ? one : { ...one, suspect }
  })
}
