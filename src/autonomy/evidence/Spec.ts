// What checks run, and how they ended in words. Models and people read the same sentence about a check, except about one
// that is hidden: of that a model is told only whether it passed.
import type { DeepReadonly } from "../../machine/State.ts"
import { specText } from "../../rune/EvidenceText.ts"
import type { Evidence, EvidenceSpec } from "../../rune/kinds/evidence.ts"

type Spec = DeepReadonly<EvidenceSpec>

/** The same check has the same mark, wherever it is named. */
export const markOf = (spec: Spec): string => JSON.stringify(spec)

/** The programs that a check starts, for the policy to rule on. */
export const commandsOf = (spec: Spec): ReadonlyArray<ReadonlyArray<string>> => {
  switch (spec.type) {
    case "command":
    case "tests":
    case "delta":
      return [spec.command]
    case "http":
      return [spec.start]
    case "json":
      return spec.command === undefined ? [] : [spec.command]
    case "file":
    case "report":
    case "diff":
    case "unchanged":
      return []
  }
}

/** How a check ended, for people. */
export const evidenceText = (evidence: DeepReadonly<Evidence>): string => {
  const { detail, exit_code: exitCode, passed, spec, suspect = [], was_green: wasGreen } = evidence
  const exit = exitCode === undefined ? "" : ` (exit ${exitCode})`
  const why = passed || detail === undefined || detail === "" ? "" : `\n${detail}`
  const before = wasGreen === true ? " (it passed before any work was done, so it shows nothing)" : ""
  const changed = suspect.length === 0 ? "" : ` (workers changed what it reads: ${suspect.join(", ")})`
  return `${passed ? "passed" : "FAILED"}: ${specText(spec)}${exit}${before}${changed}${why}`
}

const hiddenText = {
  true: "passed: a check that only the person knows",
  false: "FAILED: a check that only the person knows"
}

/** The same for models. */
export const modelText = (evidence: DeepReadonly<Evidence>): string =>
  evidence.origin === "hidden" ? hiddenText[`${evidence.passed}`] : evidenceText(evidence)
