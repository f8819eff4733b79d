// Checks in words, and what they run. Models and people read the same sentence about a check, except about one that is
// hidden: of that a model is told only whether it passed.
import type { DeepReadonly } from "../../machine/State.ts"
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

const line = (argv: ReadonlyArray<string>): string => {
  const [shell, flag, script, ...rest] = argv
  return shell === "sh" && flag === "-c" && script !== undefined && rest.length === 0 ? script : argv.join(" ")
}

const diffText = ({ max_files: files, max_lines: lines, only }: Extract<Spec, { readonly type: "diff" }>): string =>
  [
    files === undefined ? "" : `at most ${files} files change`,
    lines === undefined ? "" : `at most ${lines} lines change`,
    only === undefined ? "" : `only ${only.join(", ")} change`
  ]
    .filter((part) => part !== "")
    .join(", ")

export const specText = (spec: Spec): string => {
  switch (spec.type) {
    case "command":
      return `command \`${line(spec.command)}\` exits with ${spec.expected_exit}`
    case "file":
      return `file ${spec.path} exists`
    case "report":
      return `report ${spec.path} shows no failure`
    case "tests":
      return `\`${line(spec.command)}\` runs ${spec.min_tests ?? 1} or more tests and none fails`
    case "http":
      return `with \`${line(spec.start)}\` running, ${spec.url} answers ${spec.status ?? 200}${spec.includes === undefined ? "" : ` with ${JSON.stringify(spec.includes)}`}`
    case "json":
      return `${spec.pointer === "" ? "the value" : spec.pointer} in ${spec.command === undefined ? spec.path : `the output of \`${line(spec.command)}\``} is ${JSON.stringify(spec.equals)}`
    case "delta":
      return `${spec.name} of \`${line(spec.command)}\` does not ${spec.may === "fall" ? "rise" : "fall"}`
    case "diff":
      return diffText(spec)
    case "unchanged":
      return `${spec.paths.join(", ")} unchanged`
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
