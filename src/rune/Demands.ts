/** Whether checks that somebody names can be made at all: told when they are named, not when they first fail. */
import type { EvidenceSpec } from "./kinds/evidence.ts"

/** Checks and protected paths that a person may name for a goal. */
const demandsMax = 128

const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"])

const urlIssue = (url: string): string | undefined => {
  if (!URL.canParse(url)) return `${url} is not an address`
  const { hostname, protocol } = new URL(url)
  if (protocol !== "http:") return `${url}: only http:// is checked`
  return loopback.has(hostname) ? undefined : `${url}: only an address of the same machine (127.0.0.1) is checked`
}

const pathIssue = (path: string): string | undefined => {
  if (path.startsWith("/")) return `${path}: write it relative to the workspace`
  return path.split("/").includes("..") ? `${path} is outside the workspace` : undefined
}

const argvIssue = (argv: ReadonlyArray<string>): string | undefined =>
  argv[0] === undefined || argv[0].trim() === "" ? "the command is empty" : undefined

const jsonIssue = (spec: Extract<EvidenceSpec, { readonly type: "json" }>): string | undefined => {
  if ((spec.path === undefined) === (spec.command === undefined)) return "json: give either a path or a command"
  if (spec.pointer !== "" && !spec.pointer.startsWith("/"))
    return `json: the pointer ${spec.pointer} must begin with a slash`
  return spec.path === undefined ? argvIssue(spec.command ?? []) : pathIssue(spec.path)
}

/** What is wrong with a check, in words; nothing when it can be made. */
export const specIssue = (spec: EvidenceSpec): string | undefined => {
  switch (spec.type) {
    case "command":
    case "delta":
      return argvIssue(spec.command)
    case "file":
      return pathIssue(spec.path)
    case "report":
      return "an existing report proves nothing: use tests with the command that writes it"
    case "tests":
      return argvIssue(spec.command) ?? (spec.report === undefined ? undefined : pathIssue(spec.report))
    case "http":
      return argvIssue(spec.start) ?? urlIssue(spec.url)
    case "json":
      return jsonIssue(spec)
    case "diff":
      return spec.max_files === undefined && spec.max_lines === undefined && spec.only === undefined
        ? "diff: give max_files, max_lines or only"
        : spec.only?.map(pathIssue).find((issue) => issue !== undefined)
    case "unchanged":
      return spec.paths.length === 0
        ? "unchanged: give at least one path"
        : spec.paths.map(pathIssue).find((issue) => issue !== undefined)
  }
}

export interface Demands {
  readonly evidence?: ReadonlyArray<EvidenceSpec>
  readonly hidden_evidence?: ReadonlyArray<EvidenceSpec>
  readonly protect?: ReadonlyArray<string>
}

/** What is wrong with what a person demands of a goal. */
export const demandsIssue = ({
  evidence = [],
  hidden_evidence: hidden = [],
  protect = []
}: Demands): string | undefined => {
  const named = [
    ...evidence.map((spec, at) => [`evidence[${at}]`, specIssue(spec)] as const),
    ...hidden.map((spec, at) => [`hidden_evidence[${at}]`, specIssue(spec)] as const),
    ...protect.map((path, at) => [`protect[${at}]`, pathIssue(path)] as const)
  ]
  if (named.length > demandsMax) return `more than ${demandsMax} checks and protected paths`
  const [where, issue] = named.find(([, one]) => one !== undefined) ?? []
  return issue === undefined ? undefined : `${where}: ${issue}`
}
