// Whether a call may run: a pure function of the question. Configured rules speak first, and the first that applies
// decides; then permissions given earlier; then the mode. Whatever is broken, unknown or not contained asks a person;
// nothing of that kind ever allows.
import type { ApprovalScope } from "../rune/kinds/tool.ts"
import { type Lasting, learnt } from "./Learn.ts"
import { applies, type Facts, factsOf } from "./Match.ts"
import type { Evaluate, Grant, PolicyQuestion, PolicyVerdict } from "./PolicyPort.ts"
import { lineOf, type Rule, readRule } from "./Rule.ts"

/** What the configured rules say together. */
export interface Ruling {
  readonly decision: "allow" | "ask" | "deny" | "none"
  readonly reason: string
  readonly rule?: Rule
  /** Where the rule stands that decided, counted from 0. */
  readonly index?: number
}

const readRules = new WeakMap<object, Rule | string>()

/** Rules are read once: they are the same objects from call to call. */
const ruleOf = (value: unknown): Rule | string => {
  if (value === null || typeof value !== "object") return readRule(value)
  const known = readRules.get(value)
  if (known !== undefined) return known
  const rule = readRule(value)
  readRules.set(value, rule)
  return rule
}

const because = (rule: Rule): string => (rule.reason === undefined ? "" : `: ${rule.reason}`)

const verbs = { allow: "allows", ask: "asks about", deny: "denies" } as const

/** Names the very line, word for word: whoever wrote it, or allowed it for good, has seen what it runs. */
const isExact = ({ command }: Rule): boolean =>
  command !== undefined && lineOf(command).commands.every((words) => !words.some((word) => /^\*\*?$/u.test(word)))

/**
 * A rule that may be about a call makes a question of it, unless a later one is certain: one that denies it, or, where the
 * doubt is about a command, one that allows exactly this line.
 */
const rulingOf = (facts: Facts): Ruling => {
  const { rules, tool_name: name } = facts.question
  let doubt: (Ruling & { readonly isAboutCommand: boolean }) | undefined
  for (const [index, value] of rules.entries()) {
    const rule = ruleOf(value)
    if (typeof rule === "string") {
      return { decision: "ask", reason: `rule ${index + 1} of the policy cannot be read (${rule})` }
    }
    const answer = applies(rule, facts)
    const isOutweighed = rule.decision === "allow" && doubt !== undefined && !(doubt.isAboutCommand && isExact(rule))
    if (answer === "yes" && !isOutweighed) {
      return {
        decision: rule.decision,
        reason: `rule ${index + 1} ${verbs[rule.decision]} ${name}${because(rule)}`,
        ...{ rule, index }
      }
    }
    if (answer === "unsure") {
      const reason = doubt?.reason ?? `rule ${index + 1} may be about this ${name} call${because(rule)}`
      const isAboutCommand = rule.command !== undefined && doubt?.isAboutCommand !== false
      doubt = { decision: "ask", reason, isAboutCommand }
    }
  }
  return doubt === undefined ? { decision: "none", reason: "" } : { decision: "ask", reason: doubt.reason }
}

/** What the rules alone say: neither mode nor permissions. */
export const rulingFor = (question: PolicyQuestion): Ruling => rulingOf(factsOf(question))

/** Its arguments tell of something that it would do. */
const isTelling = ({ command, network, url, writes = [] }: PolicyQuestion["access"]): boolean =>
  command !== undefined || url !== undefined || network === true || writes.length > 0

/** It changes something, or runs something that might. */
const isEffect = ({ access, effect_class: effectClass, mutating, provenance }: PolicyQuestion): boolean => {
  const isTold = isTelling(access) && access.url === undefined
  const isControl = access.control === true && provenance === "builtin"
  return isTold || (!isControl && (mutating || effectClass === "effect"))
}

/** What it is told leaves this machine, or the word of a foreign server is all there is about it. */
const reachesOut = ({ access, provenance }: PolicyQuestion): boolean => access.url !== undefined || provenance === "mcp"

const usesNetwork = ({ question, wantsNetwork }: Facts): boolean => wantsNetwork || question.access.url !== undefined

const allow = (facts: Facts, reason: string): PolicyVerdict => ({
  verdict: "allow",
  reason,
  network: usesNetwork(facts)
})

const lastings: ReadonlyArray<Lasting> = ["session", "rule"]

const ask = (facts: Facts, reason: string): PolicyVerdict => {
  const offered = lastings.flatMap((lasting) => {
    const rule = learnt(facts, lasting)
    return rule === undefined ? [] : [[lasting, rule] as const]
  })
  const choices: ReadonlyArray<ApprovalScope> = ["once", ...offered.map(([lasting]) => lasting)]
  const learns = offered.length === 0 ? {} : { learns: Object.fromEntries(offered) }
  return { verdict: "ask", reason, network: usesNetwork(facts), choices, ...learns }
}

/** A grant of a build that wrote no rules holds for the same arguments, and for the whole of a tool that tells nothing. */
const isCoveredByOld = (grant: Grant, { access, arguments_hash: hash }: PolicyQuestion): boolean => {
  if (grant.arguments_hash === hash) return access.network !== true && access.stateful !== true
  return grant.scope === "session" && !isTelling(access)
}

/** A permission for a tool as a whole is one for calls that tell nothing of what they do. */
const isWhole = ({ command, host, path }: Rule): boolean =>
  command === undefined && host === undefined && path === undefined

const isCovered = (grant: Grant, facts: Facts): boolean => {
  const { access, now_ms: nowMs, tool_name: name } = facts.question
  const isValid = grant.scope !== "once" && grant.tool_name === name
  if (!isValid || (grant.expires_ms !== null && grant.expires_ms <= nowMs)) return false
  // Of a tool that is not ours only what was said about this very definition counts.
  const { definition } = facts.question
  if (definition !== undefined && definition !== (grant.rule as Partial<Rule> | undefined)?.definition) return false
  if (grant.rule === undefined) return isCoveredByOld(grant, facts.question)
  const rule = ruleOf(grant.rule)
  if (typeof rule === "string" || rule.decision !== "allow" || (isWhole(rule) && isTelling(access))) return false
  return applies(rule, facts) === "yes"
}

const grantReasons = {
  once: "allowed before",
  session: "a person allowed this for the conversation",
  rule: "a person allowed this for good"
} as const

const byMode = (facts: Facts): PolicyVerdict => {
  const { mode, tool_name: name } = facts.question
  if (mode === "full_access") return allow(facts, "the policy is full_access")
  if (isEffect(facts.question)) return ask(facts, `${name} changes things, and the policy is ${mode}`)
  if (reachesOut(facts.question)) return ask(facts, `${name} reaches out of this machine, and the policy is ${mode}`)
  return allow(facts, `${name} only reads, and the policy is ${mode}`)
}

const uncontained = (facts: Facts, ruling: Ruling): PolicyVerdict => {
  const isMeant = ruling.decision === "allow" && ruling.rule?.uncontained === true
  if (isMeant) return allow(facts, `${ruling.reason} (also where nothing contains it)`)
  return ask(facts, "there is no sandbox here to contain it")
}

/** Tools that belong to ECHS itself, and tools that are a question to a person. */
const bySpecialTool = (facts: Facts, ruling: Ruling): PolicyVerdict | undefined => {
  const { approval, tool_name: name } = facts.question
  if (approval === "always") return ask(facts, `${name} is for a person to answer`)
  if (approval === "by_policy") return undefined
  return ruling.decision === "ask" ? ask(facts, ruling.reason) : allow(facts, `${name} touches nothing outside ECHS`)
}

/** What the policy says about a call. */
export const evaluate: Evaluate = (question) => {
  const facts = factsOf(question)
  const { approval, contained, grants, mode, tool_name: name } = question
  const ruling = rulingOf(facts)
  if (ruling.decision === "deny") return { verdict: "deny", reason: ruling.reason }
  const changes = isEffect(question) && approval === "by_policy"
  if (mode === "read_only" && changes) {
    return { verdict: "deny", reason: `the policy of this conversation is read_only: ${name} changes things` }
  }
  const special = bySpecialTool(facts, ruling)
  if (special !== undefined) return special
  // What others run was never ours to contain: there the mode, rules and people decide.
  const lacksSandbox = !contained && question.provenance === "builtin"
  if (changes && lacksSandbox) return uncontained(facts, ruling)
  if (ruling.decision === "allow") return allow(facts, ruling.reason)
  const grant = grants.find((one) => isCovered(one, facts))
  if (grant !== undefined) return allow(facts, grantReasons[grant.scope])
  return ruling.decision === "ask" ? ask(facts, ruling.reason) : byMode(facts)
}

/** The rule to write down when a person allows this call for longer; nothing when that is not on offer. */
export const ruleToLearn = (question: PolicyQuestion, lasting: Lasting): Rule | undefined =>
  learnt(factsOf(question), lasting)
