// A rule of a policy: which calls it is about, and what becomes of them. What is not a rule is refused with the place
// and the reason, and never counts as a permission.
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { splitHost } from "./Glob.ts"
import { policyLimits } from "./PolicyLimits.ts"
import type { PolicyMode } from "./PolicyPort.ts"
import { operators } from "./ShellCommand.ts"

const optional = Schema.optionalKey
const Text = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(policyLimits.ruleTextCharsMax))
const Texts = Schema.Array(Text).check(Schema.isMinLength(1), Schema.isMaxLength(policyLimits.ruleListMax))
const Patterns = Schema.Union([Text, Texts])

/** Words of one command; `*` stands for any one word, `**` at the end for any more, `\` before a word for the word itself. */
const Words = Schema.Array(Schema.String.check(Schema.isMaxLength(policyLimits.commandCharsMax))).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(policyLimits.commandWordsMax)
)
/** A whole line: commands with the operators between them. */
const Line = Schema.Array(Schema.Union([Words, Schema.Literals(operators)])).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(policyLimits.ruleListMax)
)

export const Decision = Schema.Literals(["allow", "ask", "deny"])

export const Rule = Schema.Struct({
  decision: Decision,
  /** Names of tools. Every tool where there is none. */
  tool: optional(Patterns),
  /** Paths that the call reads or writes; relative ones are below the workspace. */
  path: optional(Patterns),
  /** Which of its paths are meant: those it reads, those it writes, or (where it is left out) both. */
  access: optional(Schema.Literals(["read", "write"])),
  command: optional(Schema.Union([Words, Line])),
  /** Hosts of an address to be fetched; `*.name` is every name below. */
  host: optional(Patterns),
  /** Only in conversations with this workspace. */
  workspace: optional(Text),
  /** Only while the tool says of itself what it said when this was allowed: a hash of its definition. */
  definition: optional(Text),
  /** An allowed command may reach the network. */
  network: optional(Schema.Boolean),
  /** Allows also where nothing contains what runs. */
  uncontained: optional(Schema.Boolean),
  /** Why, for the record. */
  reason: optional(Text)
})
export type Rule = typeof Rule.Type

/** A rule that is none: where it stands and what is wrong with it. */
export interface RuleIssue {
  /** Counted from 0. */
  readonly index: number
  readonly message: string
}

const decode = Schema.decodeUnknownResult(Rule, { onExcessProperty: "error" })

const listed = (patterns: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  patterns === undefined ? [] : typeof patterns === "string" ? [patterns] : patterns

export { listed as patternsOf }

const isLine = (command: NonNullable<Rule["command"]>): boolean => command.some((part) => typeof part !== "string")

/** The commands and operators that a rule names; one command is a line of one. */
export const lineOf = (
  command: NonNullable<Rule["command"]>
): { readonly commands: ReadonlyArray<ReadonlyArray<string>>; readonly operators: ReadonlyArray<string> } => {
  if (!isLine(command)) return { commands: [command as ReadonlyArray<string>], operators: [] }
  return {
    commands: command.filter((part) => typeof part !== "string"),
    operators: command.filter((part) => typeof part === "string")
  }
}

const wordsIssue = (words: ReadonlyArray<string>): string | undefined => {
  if (words[0] === "" || words[0] === undefined) return "command names no program"
  if (words[0] === "**") return 'command: "**" in place of the program would mean every command'
  const rest = words.indexOf("**")
  if (rest !== -1 && rest !== words.length - 1) return 'command: "**" stands at the end only'
  const isText = words.length === 1 && /[\s;&|<>$`]/.test(words[0])
  return isText ? 'command is a list of words, such as ["git", "status"], and no line of text' : undefined
}

const commandIssue = ({ command, decision }: Rule): string | undefined => {
  if (command === undefined) return undefined
  const { commands } = lineOf(command)
  const alternates =
    !isLine(command) || command.every((part, index) => (typeof part === "string") === (index % 2 === 1))
  if (!alternates || (isLine(command) && command.length % 2 === 0)) {
    return 'command: commands and operators take turns, such as [["make"], "&&", ["make", "test"]]'
  }
  if (decision === "allow" && commands.some(([program]) => program === "*")) {
    return 'command: "*" in place of the program would allow every command'
  }
  return commands.map(wordsIssue).find((issue) => issue !== undefined)
}

const pathIssue = (pattern: string): string | undefined => {
  if (pattern.includes("\0")) return "path has a NUL in it"
  if (pattern.startsWith("~")) return `path "${pattern}": write the home directory out`
  const isOdd = pattern.split("/").some((part) => part === ".." || (part.includes("**") && part !== "**"))
  return isOdd ? `path "${pattern}": ".." is not followed, and "**" stands between slashes` : undefined
}

const isLabel = (label: string): boolean => label.length <= 63 && /^[a-z0-9_-]+$/.test(label) && !/^-|-$/.test(label)

const hostIssue = (pattern: string): string | undefined => {
  const { name, port } = splitHost(pattern)
  const isName = name === "*" || name.replace(/^\*\./, "").split(".").every(isLabel)
  const isAddress = /^\[[0-9a-f:.]+\]$/.test(name)
  if (!isName && !isAddress) return `host "${pattern}": write a name, an address, or "*." and a name`
  return port !== undefined && (port < 1 || port > 65_535) ? `host "${pattern}": there is no such port` : undefined
}

const selectorIssue = (rule: Rule): string | undefined => {
  if (rule.access !== undefined && rule.path === undefined)
    return "access says which paths are meant, and there is no path"
  if (rule.workspace !== undefined && !rule.workspace.startsWith("/")) return "workspace is an absolute path"
  const kinds = [rule.path, rule.command, rule.host].filter((one) => one !== undefined)
  if (kinds.length > 1) return "a rule is about paths, a command or hosts: make one rule for each"
  const isWide = rule.tool === undefined && kinds.length === 0
  if (rule.decision === "allow" && isWide) return "a rule that allows names a tool, a path, a command or a host"
  const widens = rule.network !== undefined || rule.uncontained !== undefined
  return widens && rule.decision !== "allow" ? "network and uncontained belong to rules that allow" : undefined
}

const issueOf = (rule: Rule): string | undefined =>
  selectorIssue(rule) ??
  commandIssue(rule) ??
  listed(rule.path)
    .map(pathIssue)
    .find((issue) => issue !== undefined) ??
  listed(rule.host)
    .map(hostIssue)
    .find((issue) => issue !== undefined)

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, 300)

/** The rule, or what is wrong with it. */
export const readRule = (value: unknown): Rule | string => {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "a rule is an object"
  const decoded = decode(value)
  if (Result.isFailure(decoded)) return oneLine(String(decoded.failure.message))
  return issueOf(decoded.success) ?? decoded.success
}

/** Everything wrong with the rules, in their order. */
export const ruleIssues = (rules: ReadonlyArray<unknown>): ReadonlyArray<RuleIssue> => {
  if (rules.length > policyLimits.rulesMax) {
    return [{ index: policyLimits.rulesMax, message: `more than ${policyLimits.rulesMax} rules` }]
  }
  return rules.flatMap((value, index) => {
    const rule = readRule(value)
    return typeof rule === "string" ? [{ index, message: rule }] : []
  })
}

export interface Policy {
  readonly mode?: PolicyMode
  readonly rules?: ReadonlyArray<unknown>
}

/** What is wrong with a policy, in one sentence; nothing when all is well. */
export const policyIssue = (policy: Policy | undefined): string | undefined => {
  const [first, ...more] = ruleIssues(policy?.rules ?? [])
  if (first === undefined) return undefined
  return `rule ${first.index + 1} of the policy: ${first.message}${more.length === 0 ? "" : ` (and ${more.length} more)`}`
}
