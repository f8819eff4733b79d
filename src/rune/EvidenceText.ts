/** Checks in words: models, people and summaries read the same sentence about the same check. */
import type { EvidenceSpec } from "./kinds/evidence.ts"

const line = (argv: ReadonlyArray<string>): string => {
  const [shell, flag, script, ...rest] = argv
  return shell === "sh" && flag === "-c" && script !== undefined && rest.length === 0 ? script : argv.join(" ")
}

const diffText = ({
  max_files: files,
  max_lines: lines,
  only
}: Extract<EvidenceSpec, { readonly type: "diff" }>): string =>
  [
    files === undefined ? "" : `at most ${files} files change`,
    lines === undefined ? "" : `at most ${lines} lines change`,
    only === undefined ? "" : `only ${only.join(", ")} change`
  ]
    .filter((part) => part !== "")
    .join(", ")

export const specText = (spec: EvidenceSpec): string => {
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
