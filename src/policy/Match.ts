// Whether a rule is about a call. A rule that allows must cover all the call would do; a rule that stops it needs only
// one thing in common with it, and where that cannot be told the answer is "unsure", which nobody may take for a no.
import { elementAt } from "../rune/Elements.ts"
import { absolutePath, isInside, matchesHost, matchesName, matchesPath, mayMatchBelow } from "./Glob.ts"
import type { PolicyQuestion } from "./PolicyPort.ts"
import { lineOf, patternsOf, type Rule } from "./Rule.ts"
import { type ParsedCommand, parseCommand, programName, type SimpleCommand } from "./ShellCommand.ts"
import { isSimple } from "./SimplePrograms.ts"

export type Applies = "yes" | "no" | "unsure"

export interface Place {
  readonly host: string
  readonly port: number
}

/** A question with what its arguments mean worked out. */
export interface Facts {
  readonly question: PolicyQuestion
  /** Absolute, and without `.` and `..`. */
  readonly reads: ReadonlyArray<string>
  readonly writes: ReadonlyArray<string>
  readonly command: ParsedCommand | undefined
  /** Its command is understood, and none of its programs starts another. */
  readonly isSimple: boolean
  /** Where its address leads; nothing when it is no address. */
  readonly place: Place | undefined
  readonly wantsNetwork: boolean
}

const defaultPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 }

export const placeOf = (url: string): Place | undefined => {
  if (!URL.canParse(url)) return undefined
  const { hostname, port, protocol } = new URL(url)
  const usual = Object.hasOwn(defaultPorts, protocol) ? defaultPorts[protocol] : undefined
  if (usual === undefined || hostname === "") return undefined
  return { host: hostname.replace(/\.$/, ""), port: port === "" ? usual : Number(port) }
}

export const factsOf = (question: PolicyQuestion): Facts => {
  const { access, workspace } = question
  const absolute = (path: string): string => absolutePath(path, workspace)
  const command = access.command === undefined ? undefined : parseCommand(access.command)
  return {
    question,
    reads: (access.reads ?? []).map(absolute),
    writes: (access.writes ?? []).map(absolute),
    command,
    isSimple: command?._tag === "Understood" && access.stateful !== true && command.line.commands.every(isSimple),
    place: access.url === undefined ? undefined : placeOf(access.url),
    wantsNetwork: access.network === true
  }
}

const matchesWord = (pattern: string, word: string): boolean =>
  pattern === "*" || (pattern.startsWith("\\") ? pattern.slice(1) : pattern) === word

const matchesArguments = (patterns: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean => {
  const isOpen = patterns.at(-1) === "**"
  const fixed = isOpen ? patterns.slice(0, -1) : patterns
  if (isOpen ? words.length < fixed.length : words.length !== fixed.length) return false
  return fixed.every((pattern, index) => matchesWord(pattern, elementAt(words, index)))
}

/** A program without a directory is the one that is found by its name, and no other. */
const matchesExactly = (pattern: ReadonlyArray<string>, command: SimpleCommand): boolean =>
  matchesArguments(pattern, command)

/** For rules that stop something, a program is the same wherever it is. */
const matchesAnywhere = (pattern: ReadonlyArray<string>, [program = "", ...words]: SimpleCommand): boolean => {
  const [wanted = "", ...rest] = pattern
  const name = wanted.includes("/") ? program : programName(program)
  return matchesArguments([wanted, ...rest], [name, ...words])
}

/** Some uses of a program are meant: whether another use comes to the same, its words do not tell. */
const isSameProgram = ([wanted = "", ...rest]: ReadonlyArray<string>, [program = ""]: SimpleCommand): boolean =>
  rest.some((word) => word !== "**") && matchesWord(programName(wanted), programName(program))

const commandApplies = (rule: Rule, { command, isSimple: isAllSimple, question }: Facts): Applies => {
  if (command === undefined || rule.command === undefined) return "no"
  const isCertain = command._tag === "Understood" && question.access.stateful !== true
  if (rule.decision === "allow" && !isCertain) return "no"
  if (command._tag === "NotUnderstood") return "unsure"
  const { commands, operators } = command.line
  const wanted = lineOf(rule.command)
  const isWholeLine =
    commands.length === wanted.commands.length && operators.every((one, index) => one === wanted.operators[index])
  if (rule.decision === "allow") {
    return isWholeLine && commands.every((one, index) => matchesExactly(elementAt(wanted.commands, index), one))
      ? "yes"
      : "no"
  }
  const stops =
    wanted.commands.length === 1
      ? commands.some((one) => matchesAnywhere(elementAt(wanted.commands, 0), one))
      : isWholeLine && commands.every((one, index) => matchesAnywhere(elementAt(wanted.commands, index), one))
  if (stops) return "yes"
  if (!isAllSimple) return "unsure"
  const isMeant = commands.some((one) => wanted.commands.some((pattern) => isSameProgram(pattern, one)))
  return isMeant ? "unsure" : "no"
}

const pathsMeant = (rule: Rule, { reads, writes }: Facts): ReadonlyArray<string> =>
  rule.access === "read" ? reads : rule.access === "write" ? writes : [...reads, ...writes]

/** Somebody's Git may run what is written there. */
const isSensitive = (path: string): boolean => path.split("/").some((part) => part.toLowerCase() === ".git")

const pathApplies = (rule: Rule, facts: Facts): Applies => {
  const { workspace } = facts.question
  const patterns = patternsOf(rule.path).map((pattern) => absolutePath(pattern, workspace))
  const fits = (path: string): boolean => patterns.some((pattern) => matchesPath(pattern, path))
  const paths = pathsMeant(rule, facts)
  if (rule.decision === "allow") {
    const isMore = facts.command !== undefined || facts.question.access.url !== undefined
    const writesToo = rule.access === "read" && facts.writes.length > 0
    if (isMore || writesToo || paths.length === 0) return "no"
    const covered = (path: string): boolean => fits(path) && (!isSensitive(path) || patterns.includes(path))
    return paths.every(covered) ? "yes" : "no"
  }
  if (paths.some(fits)) return "yes"
  const isUnknown = facts.command !== undefined || paths.some((path) => path.includes("\0"))
  const mayReach = (path: string): boolean => patterns.some((pattern) => mayMatchBelow(pattern, path))
  const isBelow = facts.question.access.below === true && paths.some(mayReach)
  return isUnknown || isBelow ? "unsure" : "no"
}

const hostApplies = (rule: Rule, facts: Facts): Applies => {
  const { place, question, wantsNetwork } = facts
  const isStopping = rule.decision !== "allow"
  if (place === undefined) return isStopping && (question.access.url !== undefined || wantsNetwork) ? "unsure" : "no"
  return patternsOf(rule.host).some((pattern) => matchesHost(pattern, place.host, place.port)) ? "yes" : "no"
}

const selects = (rule: Rule, facts: Facts): Applies => {
  if (rule.command !== undefined) return commandApplies(rule, facts)
  if (rule.path !== undefined) return pathApplies(rule, facts)
  if (rule.host !== undefined) return hostApplies(rule, facts)
  return "yes"
}

/** Tools of MCP servers also have the name that other programs give them: `github__search` is `mcp__github__search`. */
const namesOf = ({ provenance, tool_name: name }: PolicyQuestion): ReadonlyArray<string> =>
  provenance === "mcp" ? [name, `mcp__${name}`] : [name]

/** Whether the rule decides about the call. */
export const applies = (rule: Rule, facts: Facts): Applies => {
  const { workspace } = facts.question
  const names = namesOf(facts.question)
  const isTool =
    rule.tool === undefined || patternsOf(rule.tool).some((pattern) => names.some((name) => matchesName(pattern, name)))
  const isHere =
    rule.workspace === undefined ||
    (workspace !== undefined && absolutePath(workspace, undefined) === absolutePath(rule.workspace, undefined))
  const { definition } = facts.question
  const isSame = rule.definition === undefined || definition === undefined || rule.definition === definition
  if (!isTool || !isHere || !isSame) return "no"
  if (rule.decision === "allow" && facts.wantsNetwork && rule.network !== true) return "no"
  return selects(rule, facts)
}

export const isInWorkspace = (path: string, workspace: string | undefined): boolean =>
  workspace !== undefined && isInside(path, absolutePath(workspace, undefined)) && !isSensitive(path)
