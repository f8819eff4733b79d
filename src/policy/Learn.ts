// What a permission that outlives its call is written down as. It is bound to what the arguments mean: the parsed
// command, the paths, the host; to the workspace it was given in; and for a tool that is not ours to what that tool says
// it is. What cannot be bound cannot be learnt.

import { unknownDefinition } from "../contract/ToolAccess.ts"
import { elementAt } from "../rune/Elements.ts"
import type { Facts } from "./Match.ts"
import { isInWorkspace } from "./Match.ts"
import type { Rule } from "./Rule.ts"
import type { CommandLine, SimpleCommand } from "./ShellCommand.ts"

/** How long the permission is to last: for this conversation, or for good. */
export type Lasting = "session" | "rule"

/** A word as a pattern that fits this word alone. */
const exactly = (word: string): string => (word === "*" || word === "**" || word.startsWith("\\") ? `\\${word}` : word)

const words = (command: SimpleCommand): ReadonlyArray<string> => command.map(exactly)

const commandPattern = ({ commands, operators }: CommandLine): NonNullable<Rule["command"]> => {
  const [first, ...rest] = commands
  if (rest.length === 0) return words(first)
  return [words(first), ...rest.flatMap((command, index) => [elementAt(operators, index), words(command)])]
}

const hasPattern = (path: string): boolean => /[*?]/.test(path)

const standardPorts: ReadonlySet<number> = new Set([80, 443])

type Selector = Pick<Rule, "command" | "path" | "host" | "access">

const selectorOf = (facts: Facts, lasting: Lasting): Selector | undefined => {
  const { command, place, question, writes } = facts
  if (command !== undefined) {
    const isCertain = command._tag === "Understood" && question.access.stateful !== true
    return isCertain ? { command: commandPattern(command.line) } : undefined
  }
  if (question.access.url !== undefined) {
    if (place === undefined) return undefined
    return { host: standardPorts.has(place.port) ? place.host : `${place.host}:${place.port}` }
  }
  // Of ours, what tells nothing is something said to a program that runs: each time it is something else.
  if (writes.length === 0) return question.provenance === "builtin" ? undefined : {}
  const isAllInside = writes.every((path) => isInWorkspace(path, question.workspace))
  if (lasting === "session" && isAllInside) return { path: ["**"], access: "write" }
  return writes.some(hasPattern) ? undefined : { path: [...writes], access: "write" }
}

/** The rule that allows what this call does, and calls like it; nothing when a person has to answer each time. */
export const learnt = (facts: Facts, lasting: Lasting): Rule | undefined => {
  const { question, wantsNetwork } = facts
  const lacksSandbox = !question.contained && question.provenance === "builtin"
  if (question.approval === "always" || lacksSandbox || question.definition === unknownDefinition) return undefined
  const selector = selectorOf(facts, lasting)
  if (selector === undefined) return undefined
  return {
    decision: "allow",
    tool: question.tool_name,
    ...selector,
    ...(question.definition === undefined ? {} : { definition: question.definition }),
    ...(question.workspace === undefined ? {} : { workspace: question.workspace }),
    ...(wantsNetwork ? { network: true } : {})
  }
}
